// SPDX-License-Identifier: Apache-2.0
// Show what the address selects: #RUN or #RUN,RUN one or two runs, any other address the campaign.
"use strict";

function openRun(id) {
  if (id && runById.get(id).data) location.hash = id;
}

function showProblem(text) {
  byId("problem").textContent = text;
  byId("problem").hidden = !text;
}

async function show() {
  showProblem("");
  const requestedIds = decodeURIComponent(location.hash.slice(1)).split(",").filter(Boolean).slice(0, 2);
  const ids = requestedIds.filter((id) => runById.has(id));
  if (ids.length < requestedIds.length) showProblem("This campaign has no such run.");
  byId("campaign").hidden = ids.length > 0;
  byId("run").hidden = ids.length === 0;
  document.title = ids.length ? `${ids.map((id) => labelRun(runById.get(id))).join(" | ")}: ${data.title}` : data.title;
  if (!ids.length) {
    drawCampaign();
    return;
  }
  try {
    await showRuns(ids);
  } catch (error) {
    showProblem(error.message);
  }
}

function start(campaignData) {
  prepareCampaign(campaignData);
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
