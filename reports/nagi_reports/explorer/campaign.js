// SPDX-License-Identifier: Apache-2.0
// The campaign: a chart of any result over any axis, filters, and a table of its runs.
"use strict";

const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B07800", "#3793C8", "#000000",
  "#7A5195", "#6B6B00", "#A03040"];
const SYMBOLS = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "star",
  "triangle-left", "triangle-right", "hexagon"];
const DASHES = ["solid", "dash", "dashdot", "dot", "longdash"];
const MAX_CHARTS = 12, MAX_ROWS = 200;

let data; // data of campaign.py
let runById; // run by id
const hidden = new Map(); // hidden values by filter

// Properties of rows for filters, colours and panels:
// name -> label, function that returns the value of a row, values in their order.
const traits = new Map();

function prepareCampaign(campaignData) {
  data = campaignData;
  runById = new Map(data.runs.map((run) => [run.id, run]));
  const rows = data.rows;
  for (const axis of data.axes) {
    traits.set(`point.${axis.name}`, {
      label: axis.label, getValue: (i) => runById.get(rows.run[i]).point[axis.name], values: axis.values, axis,
    });
  }
  const listed = (values) => [...new Set(values)];
  const status = (i) => runById.get(rows.run[i]).status;
  traits.set("status", { label: "verdict", getValue: status, values: listed(rows.run.map((_, i) => status(i))) });
  traits.set("flow", { label: "flow", getValue: (i) => rows.flow[i], values: listed(rows.flow) });
  if (rows.scheme.some((name, i) => name !== runById.get(rows.run[i]).point.scheme)) {
    traits.set("flow's scheme", { label: "scheme of the flow", getValue: (i) => rows.scheme[i], values: listed(rows.scheme) });
  }
  const repeat = (i) => String(runById.get(rows.run[i]).repeat);
  traits.set("repeat", { label: "repeat", getValue: repeat, values: listed(rows.run.map((_, i) => repeat(i))) });
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

function makeOption(value, text) {
  return makeElement("option", { value }, text);
}

function fillChoices() {
  const axes = data.axes.map((axis) => makeOption(`point.${axis.name}`, axis.label));
  const metrics = () => data.metrics.map(
    (metric) => makeOption(`metric.${metric.name}`, metric.unit ? `${metric.label}, ${metric.unit}` : metric.label));
  const groups = () => [
    makeElement("optgroup", { label: "Axes of the matrix" }, ...axes.map((each) => each.cloneNode(true))),
    makeElement("optgroup", { label: "Results" }, ...metrics()),
  ];
  byId("x").append(...groups());
  byId("y").append(...groups().reverse());
  for (const id of ["colour", "panels"]) {
    byId(id).append(makeOption("", id === "colour" ? "one colour" : "no: one chart"));
    for (const [name, trait] of traits) byId(id).append(makeOption(name, trait.label));
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
    const values = makeElement("div", { class: "values" });
    for (const value of trait.values) {
      const box = makeElement("input", { type: "checkbox", "data-filter": name, "data-value": value });
      box.checked = true;
      box.addEventListener("change", () => {
        if (box.checked) hidden.get(name).delete(value); else hidden.get(name).add(value);
        drawCampaign();
      });
      values.append(makeElement("label", {}, box, ` ${value}`));
    }
    byId("filters").append(makeElement("fieldset", {}, makeElement("legend", {}, trait.label), values));
  }
}

// Return an axis of the chart: label, functions that return value and text of a row, and ticks if
// values are names.
function chooseAxis(key) {
  if (key.startsWith("metric.")) {
    const metric = data.metrics.find((each) => `metric.${each.name}` === key);
    const values = data.rows.values[metric.name];
    return {
      label: metric.unit ? `${metric.label} (${metric.unit})` : metric.label, what: metric.what,
      getValue: (i) => values[i], text: (i) => `${formatNumber(values[i])} ${metric.unit}`.trim(),
    };
  }
  const { axis, getValue } = traits.get(key);
  const numbers = axis.numbers || axis.values.map((_, position) => position);
  const numberOf = new Map(axis.values.map((value, position) => [value, numbers[position]]));
  return {
    label: axis.unit ? `${axis.label} (${axis.unit})` : axis.label, isAxis: true,
    getValue: (i) => numberOf.get(getValue(i)), text: getValue,
    ticks: axis.numbers ? null : { tickvals: numbers, ticktext: axis.values.map(escapeText) },
  };
}

function listChosenRows() {
  const chosen = [];
  for (let i = 0; i < data.rows.run.length; i++) {
    let shown = true;
    for (const [name, values] of hidden) if (values.size && values.has(traits.get(name).getValue(i))) shown = false;
    if (shown) chosen.push(i);
  }
  return chosen;
}

function labelRun(run) {
  const repeats = data.runs.some((each) => each.repeat > 1);
  return Object.values(run.point).join(", ") + (repeats ? `, repeat ${run.repeat}` : "");
}

// Return the mean over runs at each x. A run counts with the mean of its flows without background.
function computeMeans(rows, x, y) {
  const runs = new Map();
  for (const i of rows) {
    if (data.rows.background[i] || traits.get("status").getValue(i) !== "valid") continue;
    const key = data.rows.run[i];
    if (!runs.has(key)) runs.set(key, { x: x.getValue(i), values: [] });
    runs.get(key).values.push(y.getValue(i));
  }
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const at = new Map();
  for (const run of runs.values()) at.set(run.x, [...(at.get(run.x) || []), mean(run.values)]);
  return [...at].sort((a, b) => a[0] - b[0]).map(([position, values]) => [position, mean(values)]);
}

function drawCampaign() {
  const x = chooseAxis(byId("x").value), y = chooseAxis(byId("y").value);
  const rows = listChosenRows();
  const known = rows.filter((i) => x.getValue(i) !== null && y.getValue(i) !== null);
  const colour = traits.get(byId("colour").value), panels = traits.get(byId("panels").value);
  const present = panels ? panels.values.filter((value) => known.some((i) => panels.getValue(i) === value)) : [null];
  const charts = present.slice(0, MAX_CHARTS);
  const width = byId("chart").clientWidth || 800;
  const columns = Math.max(1, Math.min(charts.length, Math.floor(width / 330)));
  const lines = Math.max(1, Math.ceil(charts.length / columns));
  const height = lines > 1 || columns > 1 ? 300 : 420;
  const names = colour ? colour.values.map((value) => 50 + 8 * value.length) : [];
  const legendHeight = 24 * Math.ceil(Math.max(...names, 0) * names.length / (width - 70)); // pixels
  const layout = {
    font: PLOT_FONT, height: 36 + lines * (height + 60) + legendHeight, hovermode: "closest", annotations: [],
    margin: { l: 58, r: 12, t: 36, b: 60 + legendHeight }, legend: { orientation: "h", y: 0, yref: "container", yanchor: "bottom" },
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
      domain: [left, Math.min(right, 1)], anchor: `y${suffix}`, title: { text: escapeText(x.label), standoff: 6, font: { size: 13 } },
      type: log("log-x"), showline: true, zeroline: false, gridcolor: "#eee", ...(x.ticks || {}),
      ...(number ? { matches: "x" } : {}),
    };
    layout[`yaxis${suffix}`] = {
      domain: [Math.max(top - step * height / (height + 60), 0), top], anchor: `x${suffix}`,
      title: column ? undefined : { text: escapeText(y.label), standoff: 4, font: { size: 13 } }, automargin: true,
      type: log("log-y"), showline: true, zeroline: false, gridcolor: "#eee", ...(y.ticks || {}),
      ...(number ? { matches: "y" } : {}),
      ...(!y.isAxis && log("log-y") === "linear" ? { rangemode: "tozero" } : {}),
    };
    if (panel !== null) {
      layout.annotations.push({
        text: escapeText(`${panels.label} ${panel}`), xref: "paper", yref: "paper", x: (left + right) / 2, y: top,
        yanchor: "bottom", showarrow: false, font: { size: 13 },
      });
    }
    const panelRows = known.filter((i) => panel === null || panels.getValue(i) === panel);
    (colour ? colour.values : [null]).forEach((value, colourIndex) => {
      const seriesRows = panelRows.filter((i) => value === null || colour.getValue(i) === value);
      if (!seriesRows.length) return;
      const ink = COLOURS[colourIndex % COLOURS.length];
      const shown = {
        xaxis: `x${suffix}`, yaxis: `y${suffix}`, legendgroup: String(value), name: escapeText(value ?? "runs"),
      };
      const first = !traces.some((trace) => trace.legendgroup === String(value));
      const meanPoints = x.isAxis && byId("means").checked ? computeMeans(seriesRows, x, y) : [];
      if (meanPoints.length > 1) {
        traces.push({
          ...shown, mode: "lines", x: meanPoints.map((each) => each[0]), y: meanPoints.map((each) => each[1]),
          line: { color: ink, width: 1.5, dash: DASHES[colourIndex % DASHES.length] }, hoverinfo: "skip", showlegend: false,
        });
      }
      const symbol = SYMBOLS[colourIndex % SYMBOLS.length];
      traces.push({
        ...shown, mode: "markers", x: seriesRows.map(x.getValue), y: seriesRows.map(y.getValue), showlegend: first && value !== null,
        customdata: seriesRows.map((i) => data.rows.run[i]), hoverinfo: "text", text: seriesRows.map((i) => makeHoverText(i, x, y)),
        marker: {
          color: ink, size: 7,
          symbol: seriesRows.map((i) => (traits.get("status").getValue(i) === "valid" ? symbol : `${symbol}-open`)),
        },
      });
    });
  });
  const chart = byId("chart");
  const listeners = {
    plotly_click: (event) => openRun(event.points[0].customdata),
    plotly_doubleclick: () => Plotly.relayout(chart, { "xaxis.autorange": true, "yaxis.autorange": true }),
  };
  drawPlot(chart, `${charts.length} in ${columns}`, traces, layout, listeners);
  const parts = [`${known.length} of ${data.rows.run.length} values are shown`];
  if (rows.length > known.length) parts.push(`${rows.length - known.length} rows have no value of these axes`);
  if (present.length > charts.length) parts.push(`the first ${charts.length} of ${present.length} charts; filters show others`);
  byId("shown").textContent = `${parts.join("; ")}. Hollow marks: runs that are not valid; lines are means of valid runs.`;
  byId("what").textContent = [x, y].filter((each) => each.what).map((each) => `${each.label}: ${each.what}.`).join(" ");
  drawTable(rows, x, y);
}

function makeHoverText(i, x, y) {
  const run = runById.get(data.rows.run[i]);
  const lines = data.axes.map((axis) => `${axis.label}: ${run.point[axis.name]}`);
  lines.push(`flow ${data.rows.flow[i]}, repeat ${run.repeat}, ${run.status}`);
  for (const each of [x, y]) if (!each.isAxis) lines.push(`${each.label}: ${each.text(i)}`);
  lines.push(`run ${run.id}${run.data ? ": click to open" : ""}`);
  return lines.map(escapeText).join("<br>");
}

// Draw the table of runs: runs without results, then the rows of results.
function drawTable(rows, x, y) {
  const results = [x, y].filter((each) => !each.isAxis);
  const head = ["run", ...data.axes.map((axis) => axis.label), "repeat", "verdict", "flow"];
  const body = makeElement("tbody");
  const withRows = new Set(data.rows.run);
  const without = data.runs.filter((run) => !withRows.has(run.id) && data.axes.every(
    (axis) => !hidden.get(`point.${axis.name}`).has(run.point[axis.name])));
  const lines = [...without.map((run) => [run, null]), ...rows.map((i) => [runById.get(data.rows.run[i]), i])];
  for (const [run, i] of lines.slice(0, MAX_ROWS)) {
    const name = run.data ? makeElement("a", { href: `#${run.id}` }, run.id.slice(0, 8)) : run.id.slice(0, 8);
    const reasons = run.reasons.length ? `${run.status}: ${run.reasons.join("; ")}` : run.status;
    const cells = [...data.axes.map((axis) => run.point[axis.name]), String(run.repeat), reasons,
      i === null ? "" : data.rows.flow[i]];
    body.append(makeElement("tr", {}, makeElement("td", { class: "mono" }, name),
      ...cells.map((cell) => makeElement("td", {}, cell)),
      ...results.map((each) => makeElement("td", { class: "right" }, i === null ? "n/a" : each.text(i)))));
  }
  const caption = lines.length > MAX_ROWS ? `The first ${MAX_ROWS} of ${lines.length} rows; filters show others.` : "";
  byId("runs").replaceChildren(
    makeElement("caption", {}, caption),
    makeElement("thead", {}, makeElement("tr", {}, ...head.map((name) => makeElement("th", { scope: "col" }, name)),
      ...results.map((each) => makeElement("th", { scope: "col", class: "right" }, each.label)))), body);
}
