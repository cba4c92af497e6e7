// SPDX-License-Identifier: Apache-2.0
// Runs over time: panels on one time axis, for one run or two side by side.
"use strict";

const MAX_PARTS = 16; // loaded at once; with more parts, the overview is shown
const MAX_DRAWN = 4000, CONDENSED_TO = 1500; // rows per table
const MARKED = 400; // with more rows, segments have no arrows and letters (as xplot draws them)

const PANELS = [
  { name: "sequence", title: "Sequence number (MB)", height: 330 },
  { name: "window", title: "Congestion window (packets)", height: 130 },
  { name: "rtt", title: "Round-trip time (ms)", height: 130 },
  { name: "queue", title: "Queue (packets)", height: 130 },
  { name: "goodput", title: "Goodput (Mb/s)", height: 130 },
  { name: "losses", title: "Losses and what the sender made of them", height: 130 },
];
const GAP = 44, NAMED_GAP = 60; // pixels between panels, without and with a run's name

// Panel, form and colour of each table. Later tables are drawn over earlier ones.
const FORMS = {
  "advertised window": { panel: "sequence", form: "steps", colour: "#E69F00" },
  "acknowledged": { panel: "sequence", form: "steps", colour: "#009E73" },
  "SACK block": { panel: "sequence", form: "bars", colour: "#0072B2", width: 1 },
  "segment": { panel: "sequence", form: "bars", colour: "#000000", width: 1.2, dense: true },
  "probe": { panel: "sequence", form: "bars", colour: "#999999", width: 2 },
  "out of order": { panel: "sequence", form: "bars", colour: "#CC79A7", width: 2, letter: "O" },
  "retransmission": { panel: "sequence", form: "bars", colour: "#D55E00", width: 2, letter: "R" },
  "duplicate ACK": { panel: "sequence", form: "dots", colour: "#009E73", symbol: "line-ew-open", size: 6 },
  "lost": { panel: "sequence", form: "dots", colour: "#A03040", symbol: "x-thin-open", size: 7 },
  "ssthresh": { panel: "window", form: "line", colour: "#8C8C8C", dash: "dash" },
  "cwnd": { panel: "window", form: "line", colour: "#000000" },
  "RTT": { panel: "rtt", form: "dots", colour: "#8C8C8C", symbol: "circle", size: 3 },
  "smoothed RTT": { panel: "rtt", form: "line", colour: "#000000" },
  "queue": { panel: "queue", form: "steps", colour: "#000000" },
  "goodput": { panel: "goodput", form: "steps", colour: "#000000" },
};
const TAKEN = {
  congestion: { label: "taken for congestion", colour: "#D55E00", symbol: "triangle-down" },
  channel: { label: "taken for channel loss", colour: "#0072B2", symbol: "circle" },
  undecided: { label: "undecided", colour: "#8C8C8C", symbol: "square" },
  "not noticed": { label: "not noticed", colour: "#000000", symbol: "circle-open" },
  unknown: { label: "not known what for", colour: "#8C8C8C", symbol: "diamond-open" },
};
const LOSS_ROWS = { "channel loss": 3, "queue overflow": 2, "AQM drop": 2, "given up": 3 };
const LOSS_TICKS = { tickvals: [3, 2, 1, 0], ticktext: ["channel", "queue", "state", "told"] };
const STATES = { recovery: "#B07800", timeout: "#A03040", CWR: "#7A5195" };
const EVENTS = {
  three_duplicates: "triangle-up", timeout: "x", partial_ack: "line-ns-open", congestion_mark: "diamond", fallback: "star",
};

let cells = []; // shown runs: { run, flow (its number), tables }
let range = [0, 1], whole = [0, 1]; // s
const chosenY = new Map(); // dragged range by panel
let drawing = 0; // number of the current drawing; data of earlier drawings are dropped

function prepareRuns() {
  for (const run of data.runs.filter((each) => each.data)) {
    const text = `${runLabel(run)} (${run.id.slice(0, 8)})`;
    byId("first").append(option(run.id, text));
    byId("second").append(option(run.id, text));
  }
  byId("second").prepend(option("", "no run"));
  for (const id of ["first", "second"]) {
    byId(id).addEventListener("change", () => {
      location.hash = [byId("first").value, byId("second").value].filter(Boolean).join(",");
    });
  }
  ["first-flow", "second-flow"].forEach((id, number) => byId(id).addEventListener("change", async () => {
    cells[number] = await cellOf(cells[number].run.id, Number(byId(id).value));
    chosenY.clear();
    showFacts();
    drawRuns();
  }));
  for (const id of ["from", "to"]) {
    byId(id).addEventListener("change", () => {
      const [begin, end] = ["from", "to"].map((each) => byId(each).valueAsNumber);
      if (begin < end) zoom(begin, end); else showRange();
    });
  }
  for (const id of ["run-choices", "time"]) byId(id).addEventListener("submit", (event) => event.preventDefault());
  const scaled = (factor, shift) => {
    const middle = (range[0] + range[1]) / 2, half = (range[1] - range[0]) / 2;
    zoom(middle + shift * half - half * factor, middle + shift * half + half * factor);
  };
  byId("zoom-in").addEventListener("click", () => scaled(1 / 3, 0));
  byId("zoom-out").addEventListener("click", () => scaled(3, 0));
  byId("earlier").addEventListener("click", () => scaled(1, -1));
  byId("later").addEventListener("click", () => scaled(1, 1));
  byId("whole").addEventListener("click", () => zoom(...whole));
}

async function cellOf(id, flow) {
  const run = nagi.runs.get(id);
  const tables = {};
  for (const [name, packed] of Object.entries(run.flows[flow].tracks)) tables[name] = await unpack(packed);
  return { run, flow, tables, said: run.flows[flow] };
}

async function showRuns(ids) {
  await Promise.all(ids.map((id) => (runOf.get(id).data ? loadScript(`runs/${id}.js`) : Promise.reject(
    new Error(`Of the run ${id} there is nothing but its verdict.`)))));
  cells = await Promise.all(ids.map((id) => cellOf(id, 0)));
  byId("first").value = ids[0];
  byId("second").value = ids[1] || "";
  byId("run-title").textContent = ids.map((id) => runLabel(runOf.get(id))).join(" beside ");
  ["first-flow", "second-flow"].forEach((id, number) => {
    const flows = cells[number] ? cells[number].run.flows : [];
    byId(id).replaceChildren(...flows.map((flow, place) => option(place, `${flow.name}: ${flow.scheme}, ${flow.ends}`)));
    byId(`${id}-label`).hidden = flows.length < 2;
  });
  whole = [0, Math.max(...cells.map((cell) => cell.run.end_s))];
  range = whole;
  chosenY.clear();
  showFacts();
  await drawRuns();
}

function zoom(begin, end) {
  const length = Math.min(Math.max(end - begin, 1e-5), whole[1] - whole[0]);
  const first = Math.min(Math.max(begin, whole[0]), whole[1] - length);
  range = [first, first + length];
  chosenY.clear();
  return drawRuns();
}

function showRange() {
  byId("from").value = Number(range[0].toFixed(6));
  byId("to").value = Number(range[1].toFixed(6));
}

// Return the tables of a cell in the shown time: every packet if there are few, else the overview.
async function tablesOf(cell) {
  const { edges, in_parts: inParts } = cell.said;
  const last = edges.length - 2;
  const first = Math.max(Math.min(firstAt(edges, range[0]), last + 1) - (edges.includes(range[0]) ? 0 : 1), 0);
  const final = Math.min(Math.max(firstAt(edges, range[1]) - 1, first), last);
  const found = { ...cell.tables };
  const detailed = inParts.length > 0 && final - first < MAX_PARTS;
  if (detailed) {
    const numbers = Array.from({ length: final - first + 1 }, (_, step) => first + step);
    const names = numbers.map((number) => `${cell.run.id}/${cell.flow}-${number}`);
    if (!names.every((name) => nagi.parts.has(name))) byId("detail").textContent = "Loading packets ...";
    await Promise.all(names.map((name) => loadScript(`runs/${name}.js`)));
    for (const track of inParts) {
      const packed = names.map((name) => nagi.parts.get(name)[track]).filter(Boolean);
      const tables = await Promise.all(packed.map(unpack));
      found[track] = tables.length ? joined(tables) : { ...cell.tables[track], time: [], low: [], high: [] };
    }
  }
  const shown = {};
  for (const [name, table] of Object.entries(found)) {
    const beyond = FORMS[name] && FORMS[name].form === "line" ? 1 : 0; // lines continue to the edges
    shown[name] = table.time.length ? clipped(table, range[0], range[1], beyond) : table;
  }
  return { shown, detailed, inParts: inParts.length > 0 };
}

async function drawRuns() {
  if (!cells.length) return;
  const mine = ++drawing;
  showRange();
  let found;
  try {
    found = await Promise.all(cells.map(tablesOf));
  } catch (error) {
    complain(error.message);
    byId("detail").textContent = "";
    return;
  }
  if (mine !== drawing) return;
  const plot = byId("panels-of-run");
  const columns = cells.length > 1 && plot.clientWidth >= 700 ? 2 : 1;
  const stacked = cells.length / columns; // plots of a panel, one below the other
  const lines = PANELS.flatMap((panel) => Array.from({ length: stacked }, () => panel));
  const gapOf = (line) => (stacked === 2 || (columns === 2 && line === 0) ? NAMED_GAP : GAP);
  const height = lines.reduce((sum, panel, line) => sum + panel.height + gapOf(line), 0);
  const layout = {
    font: PLOT_FONT, height: height + 50, hovermode: "closest", showlegend: false, annotations: [], shapes: [],
    margin: { l: 58, r: 14, t: 8, b: 42 }, dragmode: "zoom", hoverlabel: { align: "left", font: { size: 12 } },
  };
  const traces = [];
  PANELS.forEach((panel, place) => cells.forEach((cell, number) => {
    const line = stacked === 2 ? 2 * place + number : place;
    const column = stacked === 2 ? 0 : number;
    const axis = place * cells.length + number;
    const suffix = axis ? String(axis + 1) : "";
    const above = lines.slice(0, line).reduce((sum, each, i) => sum + each.height + gapOf(i), gapOf(line));
    const top = 1 - above / height, bottom = 1 - (above + panel.height) / height;
    const left = column * 0.53, right = columns === 2 ? left + 0.47 : 1;
    const on = { xaxis: `x${suffix}`, yaxis: `y${suffix}` };
    const drawn = panel.name === "losses" ? lossTraces(cell.said, found[number].shown, on)
      : panelTraces(panel.name, found[number].shown, on);
    const last = line === lines.length - 1;
    layout[`xaxis${suffix}`] = {
      domain: [left, right], anchor: `y${suffix}`, range: [...range], showline: true, zeroline: false, gridcolor: "#eee",
      ...(axis ? { matches: "x" } : {}), ticks: "outside", ticklen: 3,
      ...(last ? { title: { text: "time since the traffic began (s)", standoff: 4, font: { size: 13 } } } : {}),
    };
    layout[`yaxis${suffix}`] = {
      domain: [Math.max(bottom, 0), top], anchor: `x${suffix}`, showline: true, zeroline: false, gridcolor: "#eee",
      range: chosenY.get(panel.name) || rangeOf(panel.name, found.map((each) => each.shown)), nticks: panel.height > 200 ? 8 : 4,
      ...(panel.name === "losses" ? { tickmode: "array", ...LOSS_TICKS, fixedrange: true } : {}),
    };
    const named = gapOf(line) === NAMED_GAP;
    layout.annotations.push({
      text: (named ? `<i>${plain(shortened(runLabel(runOf.get(cell.run.id)), (right - left) * (plot.clientWidth - 72)))}</i><br>` : "") + plain(panel.title),
      xref: "paper", yref: "paper", x: left, y: top, xanchor: "left", yanchor: "bottom", align: "left",
      showarrow: false, font: { size: 12.5 },
    });
    if (!hasAny(panel.name, cell)) {
      layout.annotations.push({
        text: plain(wrapped(cell.said.missing[panel.name] || "Nothing was recorded.", (right - left) * plot.clientWidth)).replaceAll("\n", "<br>"),
        xref: "paper", yref: "paper", x: (left + right) / 2, y: (top + bottom) / 2, showarrow: false, font: { size: 12.5, color: "#444" },
      });
    }
    // An invisible trace keeps the axes of an empty panel.
    traces.push(...(drawn.length ? drawn : [{ ...on, x: [], y: [], mode: "markers", hoverinfo: "skip" }]));
  }));
  await draw(plot, `${cells.length} in ${columns}`, traces, layout, {
    plotly_relayout: followZoom, plotly_doubleclick: () => { zoom(...whole); },
  });
  const detailed = found.every((each) => each.detailed || !each.inParts);
  plot.dataset.detail = found.some((each) => each.inParts) ? (detailed ? "packets" : "overview") : "none";
  const dense = found.some((each) => Object.values(each.shown).some((table) => table.time.length > MAX_DRAWN));
  byId("detail").textContent = {
    packets: `Every packet is loaded${dense ? "; zoom in to tell them apart" : ""}.`,
    overview: "Overview: each mark stands for several packets. Zoom in to load every packet.",
    none: "There are no packets to load.",
  }[plot.dataset.detail];
  showKeys(found.map((each) => each.shown));
}

// Apply a dragged range: the time, or also the range of a panel.
function followZoom(change) {
  let time = null;
  for (const [key, value] of Object.entries(change)) {
    const found = /^([xy])axis(\d*)\.range(\[0\])?$/.exec(key);
    if (!found) continue;
    const axis = found[2] ? Number(found[2]) - 1 : 0;
    const limits = found[3] ? [value, change[key.replace("[0]", "[1]")]] : value;
    if (found[1] === "x") time = limits.map(Number);
    else chosenY.set(PANELS[Math.floor(axis / cells.length)].name, limits);
  }
  if (time) range = [Math.max(time[0], whole[0]), Math.min(time[1], whole[1])];
  if (!(range[0] < range[1])) range = whole;
  if (time || chosenY.size) drawRuns();
}

function hasAny(panel, cell) {
  if (panel === "losses") {
    return cell.said.states.length || cell.said.events.length || Object.keys(cell.tables).some((name) => name.startsWith("loss: "));
  }
  return Object.keys(cell.tables).some((name) => FORMS[name] && FORMS[name].panel === panel);
}

// Return the range of values that a panel shows, over all cells.
function rangeOf(panel, shown) {
  if (panel === "losses") return [-0.6, 3.6];
  let low = Infinity, high = -Infinity, window = -Infinity;
  for (const tables of shown) {
    for (const [name, table] of Object.entries(tables)) {
      if (!FORMS[name] || FORMS[name].panel !== panel) continue;
      for (let i = 0; i < table.time.length; i++) {
        if (name === "advertised window") window = Math.max(window, table.high[i]);
        else {
          low = Math.min(low, table.low[i]);
          high = Math.max(high, table.high[i]);
        }
      }
    }
  }
  if (low > high) return [0, 1];
  if (panel !== "sequence") return [0, high * 1.06 || 1];
  const room = Math.max(high - low, 1e-6);
  // The advertised window counts unless it is far above.
  const top = window < high + 0.5 * room ? Math.max(window, high) : high;
  return [low - 0.03 * room, top + 0.05 * room];
}

function panelTraces(panel, shown, on) {
  return Object.entries(FORMS).filter(([name, form]) => form.panel === panel && shown[name] && shown[name].time.length)
    .flatMap(([name, form]) => traceOf(name, form, shown[name], on));
}

function traceOf(name, form, full, on) {
  const few = full.exact && full.time.length <= MARKED;
  const table = full.time.length > MAX_DRAWN ? condensed(full, CONDENSED_TO) : full;
  const { time, low, high } = table;
  const hover = { hovertemplate: `${name}<br>%{x:.6f} s<br>%{y:.6~g}<extra></extra>` };
  const line = { color: form.colour, width: form.width || 1.2, dash: form.dash || "solid" };
  const shared = { ...on, name, ...hover };
  if (form.form === "line") return [{ ...shared, mode: "lines", x: Array.from(time), y: Array.from(high), line }];
  if (form.form === "dots") {
    const marker = { color: form.colour, size: form.size, symbol: form.symbol, line: { width: 1.2, color: form.colour } };
    if (table.exact) return [{ ...shared, mode: "markers", x: Array.from(time), y: Array.from(high), marker }];
    return [{ ...shared, mode: "lines", ...bars(time, low, high), line }];
  }
  if (form.form === "steps" && table.exact) {
    const held = time.length ? [...time, Math.max(range[1], time[time.length - 1])] : [];
    return [{ ...shared, mode: "lines", x: held, y: [...low, low[low.length - 1]], line: { ...line, shape: "hv" } }];
  }
  if (form.form === "steps" || (form.dense && !table.exact)) {
    const x = [], y = [];
    for (let i = 0; i < time.length; i++) {
      x.push(time[i], time[i]);
      y.push(low[i], high[i]);
    }
    return [{ ...shared, mode: "lines", x, y, line }];
  }
  const drawn = [{ ...shared, mode: "lines", ...bars(time, low, high), line }];
  const marker = { color: form.colour, size: 5 };
  if (few) {
    // As in xplot, segments have an arrow at either end; special segments have a letter.
    drawn.push({ ...on, x: Array.from(time), y: Array.from(high), mode: form.letter ? "markers+text" : "markers",
      marker: { ...marker, symbol: "triangle-up" }, text: form.letter, textposition: "top center",
      textfont: { color: form.colour, size: 11 }, hoverinfo: "skip" });
    drawn.push({ ...on, x: Array.from(time), y: Array.from(low), mode: "markers", marker: { ...marker, symbol: "triangle-down" },
      hoverinfo: "skip" });
  } else {
    // A bar of one pixel is not visible.
    drawn.push({ ...on, x: Array.from(time), y: Array.from(high), mode: "markers", hoverinfo: "skip",
      marker: { ...marker, size: form.dense ? 2 : 3 } });
  }
  return drawn;
}

function bars(time, low, high) {
  const x = [], y = [];
  for (let i = 0; i < time.length; i++) {
    x.push(time[i], time[i], null);
    y.push(low[i], high[i], null);
  }
  return { x, y };
}

// The rows are channel losses, queue drops, the sender's state, and events of its scheme.
function lossTraces(said, shown, on) {
  const drawn = [];
  for (const [begin, end, state] of said.states) {
    if (end < range[0] || begin > range[1]) continue;
    drawn.push({
      ...on, x: [begin, end], y: [1, 1], mode: "lines", line: { color: STATES[state], width: 9 },
      hovertemplate: `${state}: ${begin.toFixed(3)} to ${end.toFixed(3)} s<extra></extra>`,
    });
  }
  for (const [name, table] of Object.entries(shown)) {
    if (!name.startsWith("loss: ")) continue;
    const [, cause, outcome] = name.split(": ");
    const taken = TAKEN[outcome];
    const groups = grouped(Array.from(table.time));
    drawn.push({
      ...on, x: groups.map((each) => each.at), y: groups.map(() => LOSS_ROWS[cause]), mode: "markers",
      marker: { color: taken.colour, symbol: taken.symbol, size: 8 }, hoverinfo: "text",
      text: groups.map((each) => `${each.count > 1 ? `${each.count} segments` : "segment"}: ${cause}<br>${taken.label}<br>${each.at.toFixed(6)} s`),
    });
  }
  for (const [event, symbol] of Object.entries(EVENTS)) {
    const mine = said.events.filter((each) => each.event === event && each.t_s >= range[0] && each.t_s <= range[1]);
    const kept = mine.length > MAX_DRAWN ? grouped(mine.map((each) => each.t_s)).map((each) => mine[each.first]) : mine;
    if (!kept.length) continue;
    drawn.push({
      ...on, x: kept.map((each) => each.t_s), y: kept.map(() => 0), mode: "markers", hoverinfo: "text",
      marker: { symbol, size: 8, color: kept.map((each) => (each.verdict ? TAKEN[each.verdict].colour : "#000")), line: { width: 1 } },
      text: kept.map((each) => `${event.replaceAll("_", " ")}${each.verdict ? `: ${TAKEN[each.verdict].label}` : ""}` +
        `<br>cwnd ${each.cwnd[0]} to ${each.cwnd[1]}<br>${each.t_s.toFixed(6)} s`),
    });
  }
  return drawn;
}

// Group instants that would overlap.
function grouped(times) {
  const width = (range[1] - range[0]) / 1000;
  const groups = [];
  times.forEach((at, place) => {
    const last = groups[groups.length - 1];
    if (last && at - last.at < width) last.count += 1; else groups.push({ at, count: 1, first: place });
  });
  return groups;
}

// Shorten a text to one line of a number of pixels; the page's heading has the whole text.
function shortened(text, width) {
  const most = Math.max(Math.floor(width / 7), 10);
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function wrapped(text, width) {
  const most = Math.max(Math.floor(width / 8), 20);
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines[lines.length - 1]} ${word}`.trim();
    if (longer.length > most) lines.push(word); else lines[lines.length - 1] = longer;
  }
  return lines.join("\n");
}

function swatch(colour, label, dash) {
  const made = element("li");
  made.innerHTML = '<svg width="18" height="10" aria-hidden="true"><line x1="1" y1="5" x2="17" y2="5" stroke-width="3"/></svg>';
  const line = made.querySelector("line");
  line.setAttribute("stroke", colour);
  if (dash) line.setAttribute("stroke-dasharray", "4 2");
  made.append(label);
  return made;
}

function showKeys(shown) {
  const present = (name) => shown.some((tables) => tables[name] && tables[name].time.length);
  const lists = [];
  for (const panel of PANELS.slice(0, 3)) {
    const names = Object.keys(FORMS).filter((name) => FORMS[name].panel === panel.name && present(name));
    lists.push([panel.title, names.map((name) => swatch(FORMS[name].colour, name, FORMS[name].dash))]);
  }
  const outcomes = Object.entries(TAKEN).filter(([outcome]) => shown.some((tables) => Object.keys(tables).some((name) => name.endsWith(`: ${outcome}`))));
  const states = Object.entries(STATES).filter(([state]) => cells.some((cell) => cell.said.states.some((each) => each[2] === state)));
  lists.push(["Losses", [...outcomes.map(([, taken]) => swatch(taken.colour, taken.label)),
    ...states.map(([state, colour]) => swatch(colour, `sender in ${state}`))]]);
  byId("keys").replaceChildren(...lists.filter(([, items]) => items.length).map(
    ([title, items]) => element("ul", { class: "key", "aria-label": title }, element("li", {}, `${title}:`), ...items)));
}

function showFacts() {
  byId("run-facts").replaceChildren(...cells.map((cell) => {
    const run = runOf.get(cell.run.id);
    const facts = element("ul");
    const add = (text) => facts.append(element("li", {}, text));
    add(`run ${run.id}, seed ${cell.run.seed}`);
    add(run.reasons.length ? `${run.status}: ${run.reasons.join("; ")}` : run.status);
    for (const axis of data.axes) add(`${axis.label}: ${run.point[axis.name]}`);
    add(`measured from ${shortNumber(cell.run.measured_s[0])} s to ${shortNumber(cell.run.measured_s[1])} s`);
    const flow = cell.said;
    add(`flow ${flow.name}: ${flow.scheme}, ${flow.ends}, bottleneck ${shortNumber(flow.bottleneck_mbps)} Mb/s, base RTT ${shortNumber(flow.base_rtt_ms)} ms`);
    for (const note of new Set([...flow.notes, ...Object.values(flow.missing)])) add(note);
    const more = cell.run.left_out;
    if (more) add(more === 1 ? "1 more flow is not here." : `${more} more flows are not here.`);
    const results = element("details", {}, element("summary", {}, "All results"), resultsTable(run.id));
    return element("section", {}, element("h2", {}, runLabel(run)), facts, results);
  }));
}

function resultsTable(id) {
  const rows = data.rows.run.flatMap((run, i) => (run === id ? [i] : []));
  if (!rows.length) return element("p", {}, "This run has no results.");
  const head = element("tr", {}, element("th", { scope: "col" }, "result"),
    ...rows.map((i) => element("th", { scope: "col", class: "right" }, data.rows.flow[i])));
  const body = element("tbody", {}, ...data.metrics.map((metric) => element("tr", {},
    element("td", { title: metric.what }, metric.unit ? `${metric.label} (${metric.unit})` : metric.label),
    ...rows.map((i) => element("td", { class: "right" }, shortNumber(data.rows.values[metric.name][i]))))));
  return element("div", { class: "wide" }, element("table", {}, element("thead", {}, head), body));
}
