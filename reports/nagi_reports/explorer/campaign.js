// SPDX-License-Identifier: Apache-2.0
// The campaign: a chart of any result over any axis, filters, and a table of its runs.
"use strict";

const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B07800", "#3793C8", "#000000",
  "#7A5195", "#6B6B00", "#A03040"];
const SYMBOLS = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "star",
  "triangle-left", "triangle-right", "hexagon"];
const DASHES = ["solid", "dash", "dashdot", "dot", "longdash"];
const MAX_CHARTS = 12, MAX_ROWS = 200;

let data; // of campaign.py
let runOf; // run by id
const hidden = new Map(); // hidden values by filter

// Choices of filters and colours: name -> [label, value of a row, values in their order].
const traits = new Map();

function prepareCampaign(given) {
  data = given;
  runOf = new Map(data.runs.map((run) => [run.id, run]));
  const rows = data.rows;
  for (const axis of data.axes) {
    traits.set(`point.${axis.name}`, {
      label: axis.label, of: (i) => runOf.get(rows.run[i]).point[axis.name], values: axis.values, axis,
    });
  }
  const listed = (values) => [...new Set(values)];
  const status = (i) => runOf.get(rows.run[i]).status;
  traits.set("status", { label: "verdict", of: status, values: listed(rows.run.map((_, i) => status(i))) });
  traits.set("flow", { label: "flow", of: (i) => rows.flow[i], values: listed(rows.flow) });
  if (rows.scheme.some((name, i) => name !== runOf.get(rows.run[i]).point.scheme)) {
    traits.set("its scheme", { label: "scheme of the flow", of: (i) => rows.scheme[i], values: listed(rows.scheme) });
  }
  const repeat = (i) => String(runOf.get(rows.run[i]).repeat);
  traits.set("repeat", { label: "repeat", of: repeat, values: listed(rows.run.map((_, i) => repeat(i))) });
  for (const [name, trait] of traits) hidden.set(name, new Set());

  byId("title").textContent = data.title;
  byId("reference").textContent = data.reference;
  byId("reference").hidden = !data.reference;
  const counts = {};
  for (const run of data.runs) counts[run.status] = (counts[run.status] || 0) + 1;
  const states = Object.entries(counts).map(([name, count]) => `${count} ${name}`).join(", ");
  byId("about").textContent = `${data.experiment}${data.variant ? ` (${data.variant})` : ""}, lab ${data.lab}, ` +
    `build ${data.build}. ${data.runs.length} runs: ${states}.`;

  fillChoices();
  fillFilters();
  for (const control of byId("choices").elements) control.addEventListener("change", drawCampaign);
  byId("choices").addEventListener("submit", (event) => event.preventDefault());
  byId("all").addEventListener("click", () => {
    for (const values of hidden.values()) values.clear();
    for (const box of byId("filters").querySelectorAll("input")) box.checked = true;
    drawCampaign();
  });
}

function option(value, text) {
  return element("option", { value }, text);
}

function fillChoices() {
  const axes = data.axes.map((axis) => option(`point.${axis.name}`, axis.label));
  const metrics = () => data.metrics.map(
    (metric) => option(`metric.${metric.name}`, metric.unit ? `${metric.label}, ${metric.unit}` : metric.label));
  const groups = () => [
    element("optgroup", { label: "Axes of the matrix" }, ...axes.map((each) => each.cloneNode(true))),
    element("optgroup", { label: "Results" }, ...metrics()),
  ];
  byId("x").append(...groups());
  byId("y").append(...groups().reverse());
  for (const id of ["colour", "panels"]) {
    byId(id).append(option("", id === "colour" ? "one colour" : "no: one chart"));
    for (const [name, trait] of traits) byId(id).append(option(name, trait.label));
  }
  byId("x").value = `point.${data.x}`;
  const first = data.metrics.find((metric) => metric.name === "agi") || data.metrics[0];
  byId("y").value = first ? `metric.${first.name}` : `point.${data.x}`;
  byId("colour").value = `point.${data.series}`;
  byId("panels").value = data.panels ? `point.${data.panels}` : "";
}

function fillFilters() {
  for (const [name, trait] of traits) {
    if (trait.values.length < 2) continue;
    const values = element("div", { class: "values" });
    for (const value of trait.values) {
      const box = element("input", { type: "checkbox", "data-filter": name, "data-value": value });
      box.checked = true;
      box.addEventListener("change", () => {
        if (box.checked) hidden.get(name).delete(value); else hidden.get(name).add(value);
        drawCampaign();
      });
      values.append(element("label", {}, box, ` ${value}`));
    }
    byId("filters").append(element("fieldset", {}, element("legend", {}, trait.label), values));
  }
}

// Return an axis of the chart: label, value of a row, and ticks if values are names.
function axisOf(key) {
  if (key.startsWith("metric.")) {
    const metric = data.metrics.find((each) => `metric.${each.name}` === key);
    const values = data.rows.values[metric.name];
    return {
      label: metric.unit ? `${metric.label} (${metric.unit})` : metric.label, what: metric.what,
      of: (i) => values[i], text: (i) => `${shortNumber(values[i])} ${metric.unit}`.trim(),
    };
  }
  const { axis, of } = traits.get(key);
  const numbers = axis.numbers || axis.values.map((_, position) => position);
  const numberOf = new Map(axis.values.map((value, position) => [value, numbers[position]]));
  return {
    label: axis.unit ? `${axis.label} (${axis.unit})` : axis.label, isAxis: true,
    of: (i) => numberOf.get(of(i)), text: of,
    ticks: axis.numbers ? null : { tickvals: numbers, ticktext: axis.values.map(plain) },
  };
}

function chosenRows() {
  const chosen = [];
  for (let i = 0; i < data.rows.run.length; i++) {
    let shown = true;
    for (const [name, values] of hidden) if (values.size && values.has(traits.get(name).of(i))) shown = false;
    if (shown) chosen.push(i);
  }
  return chosen;
}

function runLabel(run) {
  const repeats = data.runs.some((each) => each.repeat > 1);
  return Object.values(run.point).join(", ") + (repeats ? `, repeat ${run.repeat}` : "");
}

// Return the mean over runs at each x. A run counts with the mean of its flows without background.
function means(rows, x, y) {
  const runs = new Map();
  for (const i of rows) {
    if (data.rows.background[i] || traits.get("status").of(i) !== "valid") continue;
    const key = data.rows.run[i];
    if (!runs.has(key)) runs.set(key, { x: x.of(i), values: [] });
    runs.get(key).values.push(y.of(i));
  }
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const at = new Map();
  for (const run of runs.values()) at.set(run.x, [...(at.get(run.x) || []), mean(run.values)]);
  return [...at].sort((a, b) => a[0] - b[0]).map(([place, values]) => [place, mean(values)]);
}

function drawCampaign() {
  const x = axisOf(byId("x").value), y = axisOf(byId("y").value);
  const rows = chosenRows();
  const known = rows.filter((i) => x.of(i) !== null && y.of(i) !== null);
  const colour = traits.get(byId("colour").value), panels = traits.get(byId("panels").value);
  const present = panels ? panels.values.filter((value) => known.some((i) => panels.of(i) === value)) : [null];
  const charts = present.slice(0, MAX_CHARTS);
  const width = byId("chart").clientWidth || 800;
  const columns = Math.max(1, Math.min(charts.length, Math.floor(width / 330)));
  const lines = Math.max(1, Math.ceil(charts.length / columns));
  const height = lines > 1 || columns > 1 ? 300 : 420;
  const names = colour ? colour.values.map((value) => 50 + 8 * value.length) : [];
  const key = 24 * Math.ceil(Math.max(...names, 0) * names.length / (width - 70)); // pixels for the legend
  const layout = {
    font: PLOT_FONT, height: 36 + lines * (height + 60) + key, hovermode: "closest", annotations: [],
    margin: { l: 58, r: 12, t: 36, b: 60 + key }, legend: { orientation: "h", y: 0, yref: "container", yanchor: "bottom" },
    hoverlabel: { align: "left", font: { size: 12 } },
  };
  const traces = [];
  charts.forEach((panel, number) => {
    const suffix = number ? String(number + 1) : "";
    const line = Math.floor(number / columns), column = number % columns;
    const wide = 1 / columns, gap = columns > 1 ? 0.07 : 0;
    const step = (height + 60) / (lines * (height + 60) - 60);
    const top = 1 - line * step;
    const left = column * (wide + gap / columns), right = left + wide - gap * (columns - 1) / columns;
    const log = (id) => (byId(id).checked ? "log" : "linear");
    layout[`xaxis${suffix}`] = {
      domain: [left, Math.min(right, 1)], anchor: `y${suffix}`, title: { text: plain(x.label), standoff: 6, font: { size: 13 } },
      type: log("log-x"), showline: true, zeroline: false, gridcolor: "#eee", ...(x.ticks || {}),
      ...(number ? { matches: "x" } : {}),
    };
    layout[`yaxis${suffix}`] = {
      domain: [Math.max(top - step * height / (height + 60), 0), top], anchor: `x${suffix}`,
      title: column ? undefined : { text: plain(y.label), standoff: 4, font: { size: 13 } }, automargin: true,
      type: log("log-y"), showline: true, zeroline: false, gridcolor: "#eee", ...(y.ticks || {}),
      ...(number ? { matches: "y" } : {}),
      ...(!y.isAxis && log("log-y") === "linear" ? { rangemode: "tozero" } : {}),
    };
    if (panel !== null) {
      layout.annotations.push({
        text: plain(`${panels.label} ${panel}`), xref: "paper", yref: "paper", x: (left + right) / 2, y: top,
        yanchor: "bottom", showarrow: false, font: { size: 13 },
      });
    }
    const inside = known.filter((i) => panel === null || panels.of(i) === panel);
    (colour ? colour.values : [null]).forEach((value, place) => {
      const mine = inside.filter((i) => value === null || colour.of(i) === value);
      if (!mine.length) return;
      const ink = COLOURS[place % COLOURS.length];
      const shown = {
        xaxis: `x${suffix}`, yaxis: `y${suffix}`, legendgroup: String(value), name: plain(value ?? "runs"),
      };
      const first = !traces.some((trace) => trace.legendgroup === String(value));
      const between = x.isAxis && byId("means").checked ? means(mine, x, y) : [];
      if (between.length > 1) {
        traces.push({
          ...shown, mode: "lines", x: between.map((each) => each[0]), y: between.map((each) => each[1]),
          line: { color: ink, width: 1.5, dash: DASHES[place % DASHES.length] }, hoverinfo: "skip", showlegend: false,
        });
      }
      const symbol = SYMBOLS[place % SYMBOLS.length];
      traces.push({
        ...shown, mode: "markers", x: mine.map(x.of), y: mine.map(y.of), showlegend: first && value !== null,
        customdata: mine.map((i) => data.rows.run[i]), hoverinfo: "text", text: mine.map((i) => hoverText(i, x, y)),
        marker: {
          color: ink, size: 7,
          symbol: mine.map((i) => (traits.get("status").of(i) === "valid" ? symbol : `${symbol}-open`)),
        },
      });
    });
  });
  const chart = byId("chart");
  const listeners = {
    plotly_click: (event) => openRun(event.points[0].customdata),
    plotly_doubleclick: () => Plotly.relayout(chart, { "xaxis.autorange": true, "yaxis.autorange": true }),
  };
  draw(chart, `${charts.length} in ${columns}`, traces, layout, listeners);
  const parts = [`${known.length} of ${data.rows.run.length} values are shown`];
  if (rows.length > known.length) parts.push(`${rows.length - known.length} chosen rows have no value of these axes`);
  if (present.length > charts.length) parts.push(`the first ${charts.length} of ${present.length} charts; filters show others`);
  byId("shown").textContent = `${parts.join("; ")}. Hollow marks: runs that are not valid; lines are means of valid runs.`;
  byId("what").textContent = [x, y].filter((each) => each.what).map((each) => `${each.label}: ${each.what}.`).join(" ");
  drawTable(rows, x, y);
}

function hoverText(i, x, y) {
  const run = runOf.get(data.rows.run[i]);
  const lines = data.axes.map((axis) => `${axis.label}: ${run.point[axis.name]}`);
  lines.push(`flow ${data.rows.flow[i]}, repeat ${run.repeat}, ${run.status}`);
  for (const each of [x, y]) if (!each.isAxis) lines.push(`${each.label}: ${each.text(i)}`);
  lines.push(`run ${run.id}${run.data ? ": click to open" : ""}`);
  return lines.map(plain).join("<br>");
}

// Return the runs of the rows, and the runs without results.
function drawTable(rows, x, y) {
  const results = [x, y].filter((each) => !each.isAxis);
  const head = ["run", ...data.axes.map((axis) => axis.label), "repeat", "verdict", "flow"];
  const body = element("tbody");
  const withRows = new Set(data.rows.run);
  const without = data.runs.filter((run) => !withRows.has(run.id) && data.axes.every(
    (axis) => !hidden.get(`point.${axis.name}`).has(run.point[axis.name])));
  const lines = [...without.map((run) => [run, null]), ...rows.map((i) => [runOf.get(data.rows.run[i]), i])];
  for (const [run, i] of lines.slice(0, MAX_ROWS)) {
    const name = run.data ? element("a", { href: `#${run.id}` }, run.id.slice(0, 8)) : run.id.slice(0, 8);
    const reasons = run.reasons.length ? `${run.status}: ${run.reasons.join("; ")}` : run.status;
    const cells = [...data.axes.map((axis) => run.point[axis.name]), String(run.repeat), reasons,
      i === null ? "" : data.rows.flow[i]];
    body.append(element("tr", {}, element("td", { class: "mono" }, name),
      ...cells.map((cell) => element("td", {}, cell)),
      ...results.map((each) => element("td", { class: "right" }, i === null ? "n/a" : each.text(i)))));
  }
  const caption = lines.length > MAX_ROWS ? `The first ${MAX_ROWS} of ${lines.length} rows; filters show others.` : "";
  byId("runs").replaceChildren(
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...head.map((name) => element("th", { scope: "col" }, name)),
      ...results.map((each) => element("th", { scope: "col", class: "right" }, each.label)))), body);
}
