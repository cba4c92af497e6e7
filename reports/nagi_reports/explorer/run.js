// SPDX-License-Identifier: Apache-2.0
// Runs over time: panels on one time axis, for one run or two side by side.
"use strict";

const MAX_PARTS = 16; // parts that are loaded at once; if more are needed, the overview is shown
const MAX_DRAWN = 4000, CONDENSED_TO = 1500; // a table with more rows than MAX_DRAWN is condensed
const MARKED = 400; // with more rows, segments have no arrows and letters (as xplot draws them)

const PANELS = [
  { name: "sequence", title: "Sequence number (MB)", height: 330 },
  { name: "window", title: "Congestion window (packets)", height: 130 },
  { name: "rtt", title: "Round-trip time (ms)", height: 130 },
  { name: "queue", title: "Queue (packets)", height: 130 },
  { name: "goodput", title: "Goodput (Mb/s)", height: 130 },
  { name: "losses", title: "Losses and how the sender classified them", height: 130 },
];
const GAP = 44, NAMED_GAP = 60; // pixels between panels, without and with a run's name

// Panel, shape and colour of each track. Later tracks are drawn over earlier ones.
const TRACK_STYLES = {
  "advertised window": { panel: "sequence", shape: "steps", colour: "#E69F00" },
  "acknowledged": { panel: "sequence", shape: "steps", colour: "#009E73" },
  "SACK block": { panel: "sequence", shape: "bars", colour: "#0072B2", width: 1 },
  "segment": { panel: "sequence", shape: "bars", colour: "#000000", width: 1.2, dense: true },
  "probe": { panel: "sequence", shape: "bars", colour: "#999999", width: 2 },
  "out of order": { panel: "sequence", shape: "bars", colour: "#CC79A7", width: 2, letter: "O" },
  "retransmission": { panel: "sequence", shape: "bars", colour: "#D55E00", width: 2, letter: "R" },
  "duplicate ACK": { panel: "sequence", shape: "dots", colour: "#009E73", symbol: "line-ew-open", size: 6 },
  "lost": { panel: "sequence", shape: "dots", colour: "#A03040", symbol: "x-thin-open", size: 7 },
  "ssthresh": { panel: "window", shape: "line", colour: "#8C8C8C", dash: "dash" },
  "cwnd": { panel: "window", shape: "line", colour: "#000000" },
  "RTT": { panel: "rtt", shape: "dots", colour: "#8C8C8C", symbol: "circle", size: 3 },
  "smoothed RTT": { panel: "rtt", shape: "line", colour: "#000000" },
  "queue": { panel: "queue", shape: "steps", colour: "#000000" },
  "goodput": { panel: "goodput", shape: "steps", colour: "#000000" },
};
const OUTCOME_STYLES = {
  congestion: { label: "classified as congestion", colour: "#D55E00", symbol: "triangle-down" },
  channel: { label: "classified as channel loss", colour: "#0072B2", symbol: "circle" },
  undecided: { label: "undecided", colour: "#8C8C8C", symbol: "square" },
  "not noticed": { label: "not noticed", colour: "#000000", symbol: "circle-open" },
  unknown: { label: "classification not known", colour: "#8C8C8C", symbol: "diamond-open" },
};
const LOSS_ROWS = { "channel loss": 3, "queue overflow": 2, "AQM drop": 2, "given up": 3 };
const LOSS_TICKS = { tickvals: [3, 2, 1, 0], ticktext: ["channel", "queue", "state", "events"] };
const STATES = { recovery: "#B07800", timeout: "#A03040", CWR: "#7A5195" };
const EVENTS = {
  three_duplicates: "triangle-up", timeout: "x", partial_ack: "line-ns-open", congestion_mark: "diamond", fallback: "star",
};

let cells = []; // shown runs: { run, flow (number), tables (by track), flowData (of the flow) }
let range = [0, 1], whole = [0, 1]; // shown time and time of the whole run, s
const chosenY = new Map(); // panel -> range of values that the user dragged
let drawing = 0; // number of the latest drawing; earlier drawings are abandoned

function prepareRuns() {
  for (const run of data.runs.filter((each) => each.data)) {
    const text = `${labelRun(run)} (${run.id.slice(0, 8)})`;
    byId("first").append(makeOption(run.id, text));
    byId("second").append(makeOption(run.id, text));
  }
  byId("second").prepend(makeOption("", "no run"));
  for (const id of ["first", "second"]) {
    byId(id).addEventListener("change", () => {
      location.hash = [byId("first").value, byId("second").value].filter(Boolean).join(",");
    });
  }
  ["first-flow", "second-flow"].forEach((id, number) => byId(id).addEventListener("change", async () => {
    cells[number] = await loadCell(cells[number].run.id, Number(byId(id).value));
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

async function loadCell(id, flow) {
  const run = nagi.runs.get(id);
  const tables = {};
  for (const [name, packed] of Object.entries(run.flows[flow].tracks)) tables[name] = await unpack(packed);
  return { run, flow, tables, flowData: run.flows[flow] };
}

async function showRuns(ids) {
  await Promise.all(ids.map((id) => (runById.get(id).data ? loadScript(`runs/${id}.js`) : Promise.reject(
    new Error(`Run ${id} has a verdict, but no data.`)))));
  cells = await Promise.all(ids.map((id) => loadCell(id, 0)));
  byId("first").value = ids[0];
  byId("second").value = ids[1] || "";
  byId("run-title").textContent = ids.map((id) => labelRun(runById.get(id))).join(" beside ");
  ["first-flow", "second-flow"].forEach((id, number) => {
    const flows = cells[number] ? cells[number].run.flows : [];
    byId(id).replaceChildren(...flows.map((flow, number) => makeOption(number, `${flow.name}: ${flow.scheme}, ${flow.ends}`)));
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

// Return the tables of a cell in the shown time. They have every packet if at most MAX_PARTS parts
// are needed, otherwise the overview.
async function loadTables(cell) {
  const { edges, in_parts: inParts } = cell.flowData;
  const last = edges.length - 2;
  const first = Math.max(Math.min(findFirstRow(edges, range[0]), last + 1) - (edges.includes(range[0]) ? 0 : 1), 0);
  const final = Math.min(Math.max(findFirstRow(edges, range[1]) - 1, first), last);
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
      found[track] = tables.length ? joinTables(tables) : { ...cell.tables[track], time: [], low: [], high: [] };
    }
  }
  const shown = {};
  for (const [name, table] of Object.entries(found)) {
    const beyond = TRACK_STYLES[name] && TRACK_STYLES[name].shape === "line" ? 1 : 0; // lines continue to the edges
    shown[name] = table.time.length ? clipTable(table, range[0], range[1], beyond) : table;
  }
  return { shown, detailed, inParts: inParts.length > 0 };
}

async function drawRuns() {
  if (!cells.length) return;
  const thisDrawing = ++drawing;
  showRange();
  let found;
  try {
    found = await Promise.all(cells.map(loadTables));
  } catch (error) {
    showProblem(error.message);
    byId("detail").textContent = "";
    return;
  }
  if (thisDrawing !== drawing) return;
  const plot = byId("panels-of-run");
  const columns = cells.length > 1 && plot.clientWidth >= 700 ? 2 : 1;
  const stacked = cells.length / columns; // number of plots of a panel, one below the other
  const lines = PANELS.flatMap((panel) => Array.from({ length: stacked }, () => panel));
  const gapOf = (line) => (stacked === 2 || (columns === 2 && line === 0) ? NAMED_GAP : GAP);
  const height = lines.reduce((sum, panel, line) => sum + panel.height + gapOf(line), 0);
  const layout = {
    font: PLOT_FONT, height: height + 50, hovermode: "closest", showlegend: false, annotations: [], shapes: [],
    margin: { l: 58, r: 14, t: 8, b: 42 }, dragmode: "zoom", hoverlabel: { align: "left", font: { size: 12 } },
  };
  const traces = [];
  PANELS.forEach((panel, panelIndex) => cells.forEach((cell, number) => {
    const line = stacked === 2 ? 2 * panelIndex + number : panelIndex;
    const column = stacked === 2 ? 0 : number;
    const axis = panelIndex * cells.length + number;
    const suffix = axis ? String(axis + 1) : "";
    const above = lines.slice(0, line).reduce((sum, each, i) => sum + each.height + gapOf(i), gapOf(line));
    const top = 1 - above / height, bottom = 1 - (above + panel.height) / height;
    const left = column * 0.53, right = columns === 2 ? left + 0.47 : 1;
    const on = { xaxis: `x${suffix}`, yaxis: `y${suffix}` };
    const drawn = panel.name === "losses" ? makeLossTraces(cell.flowData, found[number].shown, on)
      : makePanelTraces(panel.name, found[number].shown, on);
    const last = line === lines.length - 1;
    layout[`xaxis${suffix}`] = {
      domain: [left, right], anchor: `y${suffix}`, range: [...range], showline: true, zeroline: false, gridcolor: "#eee",
      ...(axis ? { matches: "x" } : {}), ticks: "outside", ticklen: 3,
      ...(last ? { title: { text: "time since the traffic began (s)", standoff: 4, font: { size: 13 } } } : {}),
    };
    layout[`yaxis${suffix}`] = {
      domain: [Math.max(bottom, 0), top], anchor: `x${suffix}`, showline: true, zeroline: false, gridcolor: "#eee",
      range: chosenY.get(panel.name) || findValueRange(panel.name, found.map((each) => each.shown)), nticks: panel.height > 200 ? 8 : 4,
      ...(panel.name === "losses" ? { tickmode: "array", ...LOSS_TICKS, fixedrange: true } : {}),
    };
    const named = gapOf(line) === NAMED_GAP;
    layout.annotations.push({
      text: (named ? `<i>${escapeText(shortenText(labelRun(runById.get(cell.run.id)), (right - left) * (plot.clientWidth - 72)))}</i><br>` : "") + escapeText(panel.title),
      xref: "paper", yref: "paper", x: left, y: top, xanchor: "left", yanchor: "bottom", align: "left",
      showarrow: false, font: { size: 12.5 },
    });
    if (!hasTables(panel.name, cell)) {
      layout.annotations.push({
        text: escapeText(wrapText(cell.flowData.missing[panel.name] || "Nothing was recorded.", (right - left) * plot.clientWidth)).replaceAll("\n", "<br>"),
        xref: "paper", yref: "paper", x: (left + right) / 2, y: (top + bottom) / 2, showarrow: false, font: { size: 12.5, color: "#444" },
      });
    }
    // An invisible trace keeps the axes of an empty panel.
    traces.push(...(drawn.length ? drawn : [{ ...on, x: [], y: [], mode: "markers", hoverinfo: "skip" }]));
  }));
  await drawPlot(plot, `${cells.length} in ${columns}`, traces, layout, {
    plotly_relayout: followZoom, plotly_doubleclick: () => { zoom(...whole); },
  });
  const detailed = found.every((each) => each.detailed || !each.inParts);
  plot.dataset.detail = found.some((each) => each.inParts) ? (detailed ? "packets" : "overview") : "none";
  const dense = found.some((each) => Object.values(each.shown).some((table) => table.time.length > MAX_DRAWN));
  byId("detail").textContent = {
    packets: `Every packet is loaded${dense ? "; zoom in to distinguish them" : ""}.`,
    overview: "Overview: each mark shows the range of several packets. Zoom in to load every packet.",
    none: "There are no packets to load.",
  }[plot.dataset.detail];
  showKeys(found.map((each) => each.shown));
}

// Apply a range that the user dragged: a time span, and maybe a range of values of a panel.
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

function hasTables(panel, cell) {
  if (panel === "losses") {
    return cell.flowData.states.length || cell.flowData.events.length || Object.keys(cell.tables).some((name) => name.startsWith("loss: "));
  }
  return Object.keys(cell.tables).some((name) => TRACK_STYLES[name] && TRACK_STYLES[name].panel === panel);
}

// Return the range of values that a panel shows, over all cells.
function findValueRange(panel, shown) {
  if (panel === "losses") return [-0.6, 3.6];
  let low = Infinity, high = -Infinity, window = -Infinity;
  for (const tables of shown) {
    for (const [name, table] of Object.entries(tables)) {
      if (!TRACK_STYLES[name] || TRACK_STYLES[name].panel !== panel) continue;
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
  // The range includes the advertised window unless the window is far above the segments.
  const top = window < high + 0.5 * room ? Math.max(window, high) : high;
  return [low - 0.03 * room, top + 0.05 * room];
}

function makePanelTraces(panel, shown, on) {
  return Object.entries(TRACK_STYLES).filter(([name, style]) => style.panel === panel && shown[name] && shown[name].time.length)
    .flatMap(([name, style]) => makeTraces(name, style, shown[name], on));
}

function makeTraces(name, style, full, on) {
  const few = full.exact && full.time.length <= MARKED;
  const table = full.time.length > MAX_DRAWN ? condenseTable(full, CONDENSED_TO) : full;
  const { time, low, high } = table;
  const hover = { hovertemplate: `${name}<br>%{x:.6f} s<br>%{y:.6~g}<extra></extra>` };
  const line = { color: style.colour, width: style.width || 1.2, dash: style.dash || "solid" };
  const shared = { ...on, name, ...hover };
  if (style.shape === "line") return [{ ...shared, mode: "lines", x: Array.from(time), y: Array.from(high), line }];
  if (style.shape === "dots") {
    const marker = { color: style.colour, size: style.size, symbol: style.symbol, line: { width: 1.2, color: style.colour } };
    if (table.exact) return [{ ...shared, mode: "markers", x: Array.from(time), y: Array.from(high), marker }];
    return [{ ...shared, mode: "lines", ...makeBars(time, low, high), line }];
  }
  if (style.shape === "steps" && table.exact) {
    const held = time.length ? [...time, Math.max(range[1], time[time.length - 1])] : [];
    return [{ ...shared, mode: "lines", x: held, y: [...low, low[low.length - 1]], line: { ...line, shape: "hv" } }];
  }
  if (style.shape === "steps" || (style.dense && !table.exact)) {
    const x = [], y = [];
    for (let i = 0; i < time.length; i++) {
      x.push(time[i], time[i]);
      y.push(low[i], high[i]);
    }
    return [{ ...shared, mode: "lines", x, y, line }];
  }
  const drawn = [{ ...shared, mode: "lines", ...makeBars(time, low, high), line }];
  const marker = { color: style.colour, size: 5 };
  if (few) {
    // As in xplot, segments have an arrow at either end; special segments have a letter.
    drawn.push({ ...on, x: Array.from(time), y: Array.from(high), mode: style.letter ? "markers+text" : "markers",
      marker: { ...marker, symbol: "triangle-up" }, text: style.letter, textposition: "top center",
      textfont: { color: style.colour, size: 11 }, hoverinfo: "skip" });
    drawn.push({ ...on, x: Array.from(time), y: Array.from(low), mode: "markers", marker: { ...marker, symbol: "triangle-down" },
      hoverinfo: "skip" });
  } else {
    // A bar of one pixel is not visible.
    drawn.push({ ...on, x: Array.from(time), y: Array.from(high), mode: "markers", hoverinfo: "skip",
      marker: { ...marker, size: style.dense ? 2 : 3 } });
  }
  return drawn;
}

function makeBars(time, low, high) {
  const x = [], y = [];
  for (let i = 0; i < time.length; i++) {
    x.push(time[i], time[i], null);
    y.push(low[i], high[i], null);
  }
  return { x, y };
}

// The rows are channel losses, queue drops, the sender's state, and events of its scheme.
function makeLossTraces(flowData, shown, on) {
  const drawn = [];
  for (const [begin, end, state] of flowData.states) {
    if (end < range[0] || begin > range[1]) continue;
    drawn.push({
      ...on, x: [begin, end], y: [1, 1], mode: "lines", line: { color: STATES[state], width: 9 },
      hovertemplate: `${state}: ${begin.toFixed(3)} to ${end.toFixed(3)} s<extra></extra>`,
    });
  }
  for (const [name, table] of Object.entries(shown)) {
    if (!name.startsWith("loss: ")) continue;
    const [, cause, outcome] = name.split(": ");
    const outcomeStyle = OUTCOME_STYLES[outcome];
    const groups = groupInstants(Array.from(table.time));
    drawn.push({
      ...on, x: groups.map((each) => each.at), y: groups.map(() => LOSS_ROWS[cause]), mode: "markers",
      marker: { color: outcomeStyle.colour, symbol: outcomeStyle.symbol, size: 8 }, hoverinfo: "text",
      text: groups.map((each) => `${each.count > 1 ? `${each.count} segments` : "segment"}: ${cause}<br>${outcomeStyle.label}<br>${each.at.toFixed(6)} s`),
    });
  }
  for (const [event, symbol] of Object.entries(EVENTS)) {
    const shownEvents = flowData.events.filter((each) => each.event === event && each.t_s >= range[0] && each.t_s <= range[1]);
    const drawnEvents = shownEvents.length > MAX_DRAWN
      ? groupInstants(shownEvents.map((each) => each.t_s)).map((each) => shownEvents[each.first]) : shownEvents;
    if (!drawnEvents.length) continue;
    drawn.push({
      ...on, x: drawnEvents.map((each) => each.t_s), y: drawnEvents.map(() => 0), mode: "markers", hoverinfo: "text",
      marker: { symbol, size: 8, color: drawnEvents.map((each) => (each.verdict ? OUTCOME_STYLES[each.verdict].colour : "#000")), line: { width: 1 } },
      text: drawnEvents.map((each) => `${event.replaceAll("_", " ")}${each.verdict ? `: ${OUTCOME_STYLES[each.verdict].label}` : ""}` +
        `<br>cwnd ${each.cwnd[0]} to ${each.cwnd[1]}<br>${each.t_s.toFixed(6)} s`),
    });
  }
  return drawn;
}

// Group instants whose marks would overlap.
function groupInstants(times) {
  const width = (range[1] - range[0]) / 1000;
  const groups = [];
  times.forEach((at, index) => {
    const last = groups[groups.length - 1];
    if (last && at - last.at < width) last.count += 1; else groups.push({ at, count: 1, first: index });
  });
  return groups;
}

// Shorten a text to one line of a number of pixels; the page's heading has the whole text.
function shortenText(text, width) {
  const maxLetters = Math.max(Math.floor(width / 7), 10);
  return text.length > maxLetters ? `${text.slice(0, maxLetters - 1)}…` : text;
}

function wrapText(text, width) {
  const maxLetters = Math.max(Math.floor(width / 8), 20);
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines[lines.length - 1]} ${word}`.trim();
    if (longer.length > maxLetters) lines.push(word); else lines[lines.length - 1] = longer;
  }
  return lines.join("\n");
}

function makeSwatch(colour, label, dash) {
  const item = makeElement("li");
  item.innerHTML = '<svg width="18" height="10" aria-hidden="true"><line x1="1" y1="5" x2="17" y2="5" stroke-width="3"/></svg>';
  const line = item.querySelector("line");
  line.setAttribute("stroke", colour);
  if (dash) line.setAttribute("stroke-dasharray", "4 2");
  item.append(label);
  return item;
}

function showKeys(shown) {
  const present = (name) => shown.some((tables) => tables[name] && tables[name].time.length);
  const lists = [];
  for (const panel of PANELS.slice(0, 3)) {
    const names = Object.keys(TRACK_STYLES).filter((name) => TRACK_STYLES[name].panel === panel.name && present(name));
    lists.push([panel.title, names.map((name) => makeSwatch(TRACK_STYLES[name].colour, name, TRACK_STYLES[name].dash))]);
  }
  const outcomes = Object.entries(OUTCOME_STYLES).filter(([outcome]) => shown.some((tables) => Object.keys(tables).some((name) => name.endsWith(`: ${outcome}`))));
  const states = Object.entries(STATES).filter(([state]) => cells.some((cell) => cell.flowData.states.some((each) => each[2] === state)));
  lists.push(["Losses", [...outcomes.map(([, outcomeStyle]) => makeSwatch(outcomeStyle.colour, outcomeStyle.label)),
    ...states.map(([state, colour]) => makeSwatch(colour, `sender in ${state}`))]]);
  byId("keys").replaceChildren(...lists.filter(([, items]) => items.length).map(
    ([title, items]) => makeElement("ul", { class: "key", "aria-label": title }, makeElement("li", {}, `${title}:`), ...items)));
}

function showFacts() {
  byId("run-facts").replaceChildren(...cells.map((cell) => {
    const run = runById.get(cell.run.id);
    const facts = makeElement("ul");
    const add = (text) => facts.append(makeElement("li", {}, text));
    add(`run ${run.id}, seed ${cell.run.seed}`);
    add(run.reasons.length ? `${run.status}: ${run.reasons.join("; ")}` : run.status);
    for (const axis of data.axes) add(`${axis.label}: ${run.point[axis.name]}`);
    add(`measured from ${formatNumber(cell.run.measured_s[0])} s to ${formatNumber(cell.run.measured_s[1])} s`);
    const flow = cell.flowData;
    add(`flow ${flow.name}: ${flow.scheme}, ${flow.ends}, bottleneck ${formatNumber(flow.bottleneck_mbps)} Mb/s, base RTT ${formatNumber(flow.base_rtt_ms)} ms`);
    for (const note of new Set([...flow.notes, ...Object.values(flow.missing)])) add(note);
    const more = cell.run.left_out;
    if (more) add(more === 1 ? "1 more flow is not shown." : `${more} more flows are not shown.`);
    const results = makeElement("details", {}, makeElement("summary", {}, "All results"), makeResultsTable(run.id));
    return makeElement("section", {}, makeElement("h2", {}, labelRun(run)), facts, results);
  }));
}

function makeResultsTable(id) {
  const rows = data.rows.run.flatMap((run, i) => (run === id ? [i] : []));
  if (!rows.length) return makeElement("p", {}, "This run has no results.");
  const head = makeElement("tr", {}, makeElement("th", { scope: "col" }, "result"),
    ...rows.map((i) => makeElement("th", { scope: "col", class: "right" }, data.rows.flow[i])));
  const body = makeElement("tbody", {}, ...data.metrics.map((metric) => makeElement("tr", {},
    makeElement("td", { title: metric.what }, metric.unit ? `${metric.label} (${metric.unit})` : metric.label),
    ...rows.map((i) => makeElement("td", { class: "right" }, formatNumber(data.rows.values[metric.name][i]))))));
  return makeElement("div", { class: "wide" }, makeElement("table", {}, makeElement("thead", {}, head), body));
}
