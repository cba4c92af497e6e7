// SPDX-License-Identifier: Apache-2.0
// Functions that the scripts of runs call, and the decoder of their tables (see tracks.py).
"use strict";

const nagi = {
  runs: new Map(), // run id -> data of run.py
  parts: new Map(), // "id/flow-part" -> tables by track
  run(data) { nagi.runs.set(data.id, data); },
  part([id, flow, part], tables) { nagi.parts.set(`${id}/${flow}-${part}`, tables); },
};

const loading = new Map();

// Load a script from the page's directory, once.
function loadScript(path) {
  if (!loading.has(path)) {
    loading.set(path, new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = path;
      script.onload = resolve;
      script.onerror = () => {
        loading.delete(path);
        reject(new Error(`${path} cannot be loaded. nagi view writes this file; keep it with this page.`));
      };
      document.head.append(script);
    }));
  }
  return loading.get(path);
}

// Decode a table as columns of floats: time (s), low, high.
async function unpack(packed) {
  const octets = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([octets]).stream().pipeThrough(new DecompressionStream("deflate"));
  const numbers = new Int32Array(await new Response(stream).arrayBuffer());
  const { rows, scale } = packed;
  const time = new Float64Array(rows), low = new Float64Array(rows), high = new Float64Array(rows);
  let at = packed.time_us, value = packed.first;
  for (let i = 0; i < rows; i++) {
    at += numbers[i];
    value += numbers[rows + i];
    time[i] = at / 1e6;
    low[i] = value / scale;
    high[i] = packed.ranges ? (value + numbers[2 * rows + i]) / scale : low[i];
  }
  return { time, low, high, steps: packed.steps, exact: packed.exact };
}

// Return the first row at or after a time.
function findFirstRow(times, at) {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < at) low = middle + 1; else high = middle;
  }
  return low;
}

// Return the rows of a time span, and `beyond` rows before and after it. For steps, include the row
// whose value holds at the begin of the span.
function clipTable(table, begin, end, beyond = 0) {
  const first = Math.max(findFirstRow(table.time, begin) - (table.steps ? 1 : beyond), 0);
  const last = findFirstRow(table.time, end) + beyond;
  const cut = (column) => column.subarray(first, last);
  return { ...table, time: cut(table.time), low: cut(table.low), high: cut(table.high) };
}

// Condense a table to at most `maxRows` rows, each with minimum and maximum of the rows it replaces.
function condenseTable(table, maxRows) {
  const rows = table.time.length;
  if (rows <= maxRows) return table;
  const begin = table.time[0], span = (table.time[rows - 1] - begin) || 1;
  const time = [], low = [], high = [];
  let bucket = -1;
  for (let i = 0; i < rows; i++) {
    const rowBucket = Math.floor((table.time[i] - begin) / span * maxRows);
    if (rowBucket !== bucket) {
      bucket = rowBucket;
      time.push(table.time[i]);
      low.push(table.low[i]);
      high.push(table.high[i]);
    } else {
      const last = time.length - 1;
      low[last] = Math.min(low[last], table.low[i]);
      high[last] = Math.max(high[last], table.high[i]);
    }
  }
  return { ...table, time, low, high, exact: false };
}

// Join tables of consecutive parts.
function joinTables(tables) {
  const all = (name) => tables.flatMap((table) => Array.from(table[name]));
  const column = (name) => Float64Array.from(all(name));
  return { ...tables[0], time: column("time"), low: column("low"), high: column("high") };
}

const byId = (id) => document.getElementById(id);

function makeElement(name, attributes = {}, ...children) {
  const created = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  created.append(...children);
  return created;
}

// Escape a text for Plotly, which interprets some HTML.
function escapeText(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function formatNumber(value) {
  if (value === null || value === undefined) return "n/a";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(3);
  return String(Number(value.toPrecision(5)));
}

const PLOT_FONT = { family: 'Georgia, "Libertinus Serif", "Times New Roman", serif', size: 13, color: "#000" };
// Plotly's button that uploads a chart is removed: nothing leaves this page.
const PLOT_CONFIG = {
  displaylogo: false, responsive: true, doubleClick: false, plotlyServerURL: "",
  modeBarButtonsToRemove: ["sendChartToCloud", "select2d", "lasso2d", "autoScale2d", "resetScale2d", "zoomIn2d", "zoomOut2d"],
};

// Draw a plot. If its subplots have changed, Plotly.react fails, so create the plot again.
// `listeners` are functions by event.
function drawPlot(plot, subplots, traces, layout, listeners) {
  if (plot.dataset.subplots === subplots) return Plotly.react(plot, traces, layout, PLOT_CONFIG);
  Plotly.purge(plot);
  plot.dataset.subplots = subplots;
  const promise = Plotly.newPlot(plot, traces, layout, PLOT_CONFIG);
  for (const [event, listener] of Object.entries(listeners)) plot.on(event, listener);
  return promise;
}
