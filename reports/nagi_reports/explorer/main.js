// SPDX-License-Identifier: Apache-2.0
// Choose the page by the address: #RUN or #RUN,RUN is a page of runs, anything else the campaign.
"use strict";

function openRun(id) {
  if (id && runOf.get(id).data) location.hash = id;
}

function complain(text) {
  byId("problem").textContent = text;
  byId("problem").hidden = !text;
}

async function show() {
  complain("");
  const wanted = decodeURIComponent(location.hash.slice(1)).split(",").filter(Boolean).slice(0, 2);
  const known = wanted.filter((id) => runOf.has(id));
  if (known.length < wanted.length) complain("This campaign has no such run.");
  byId("campaign").hidden = known.length > 0;
  byId("run").hidden = known.length === 0;
  document.title = known.length ? `${known.map((id) => runLabel(runOf.get(id))).join(" | ")}: ${data.title}` : data.title;
  if (!known.length) {
    drawCampaign();
    return;
  }
  try {
    await showRuns(known);
  } catch (error) {
    complain(error.message);
  }
}

function start(given) {
  prepareCampaign(given);
  prepareRuns();
  window.addEventListener("hashchange", show);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    if (byId("run").hidden) drawCampaign(); else drawRuns();
  });
  show();
}
