# SPDX-License-Identifier: Apache-2.0
"""The report of a campaign as PDF: the content is gathered here, report.typ lays it out."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import typst
from nagi.contracts.plan import RunPlan
from nagi.contracts.records import Campaign, Manifest, Verdict
from nagi.errors import InputError, refuse

from nagi_reports import figures
from nagi_reports.summary import Mean, Summary, summarise
from nagi_reports.text import title

_LAYOUT = Path(__file__).with_name("report.typ")
_FIGURES: dict[str, Callable[[Summary, Path], None]] = {
    "ag": figures.achieved_goodput,
    "agi": figures.achieved_goodput_index,
    "nagi": figures.normalised_index,
}
_PDF = "report.pdf"


def write_report(out: Path, campaign: Campaign, table: pd.DataFrame) -> Path:
    """Writes OUT/report.pdf and its figures, OUT/figures/*.svg.

    Raises InputError if there is nothing to report."""
    summary = summarise(campaign, table)
    if summary.valid == 0:
        raise refuse(
            "there is no valid run to report", "see the verdicts of its runs", file=str(out)
        )
    verdicts = _verdicts(out, campaign)
    drawn = out / "figures"
    drawn.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".report-") as name:
        work = Path(name)
        for key, draw in _FIGURES.items():
            draw(summary, work / f"{key}.svg")
        content = _content(out, campaign, table, summary, verdicts)
        (work / "report.json").write_text(json.dumps(content))
        shutil.copyfile(_LAYOUT, work / "report.typ")
        typst.compile(str(work / "report.typ"), output=str(work / _PDF))
        for figure in work.glob("*.svg"):
            figure.replace(drawn / figure.name)
        return (work / _PDF).replace(out / _PDF)


def _verdicts(out: Path, campaign: Campaign) -> dict[str, Verdict]:
    found = {}
    for run in campaign.runs:
        try:
            found[run.run_id] = Verdict.read(out / "runs" / run.run_id / "verdict.json")
        except InputError:
            continue  # not run yet
    return found


def _content(
    out: Path,
    campaign: Campaign,
    table: pd.DataFrame,
    summary: Summary,
    verdicts: dict[str, Verdict],
) -> dict[str, Any]:
    directories = [out / "runs" / run_id for run_id in table["run_id"].unique()]
    plans = [RunPlan.read(directory / "plan.json") for directory in directories]
    manifest = Manifest.read(directories[0] / "manifest.json")
    numbers, unit = summary.x.numbers()
    heads = [f"{number:g}" for number in numbers] if unit else summary.x.values
    return {
        "title": campaign.title,
        "reference": campaign.reference,
        "experiment": campaign.experiment + (f" ({campaign.form})" if campaign.form else ""),
        "version": campaign.build.version,
        "build": campaign.build.id,
        "x": summary.x.title.lower(),
        "series": campaign.series,
        "ceiling": f"{summary.panels[0].ceiling:.3f}",
        "figures": {key: f"{key}.svg" for key in _FIGURES},
        "overview": _overview(campaign, summary, plans, manifest),
        "notes": _notes(campaign, summary),
        "panels": [
            {
                "title": title(summary, panel) if summary.panels_axis else "",
                "heads": [f"{head} {unit}".strip() for head in heads] + ["NAGI"],
                "rows": [
                    [curve.series, *(_number(mean) for mean in curve.agi), _number(curve.nagi)]
                    for curve in panel.curves
                ],
            }
            for panel in summary.panels
        ],
        "certificate": _certificate(verdicts),
        "runs": _run_table(campaign, table, verdicts),
        "method": _method(campaign, manifest),
    }


def _overview(
    campaign: Campaign, summary: Summary, plans: list[RunPlan], manifest: Manifest
) -> list[str]:
    plan = plans[0]
    counts = [f"{summary.valid} valid"]
    for count, word in ((summary.invalid, "invalid"), (summary.failed, "failed or not run")):
        if count:
            counts.append(f"{count} {word}")
    kernel = next(iter(manifest.nodes.values())).facts.kernel
    measured = plan.measure.end_s - plan.measure.start_s
    repeats = 1 + max(run.repeat for run in campaign.runs)
    caps = {flow.max_window for flow in plan.flows if flow.max_window is not None}
    cap = f", window capped at {max(caps)} packets" if caps else ""
    return [
        f"{summary.runs} runs ({', '.join(counts)}), {repeats} a point, in the "
        f"{campaign.lab} lab: real kernel TCP, Linux {kernel}.",
        f"Measured over {measured:g} s of each run; host profile {plan.host_profile}{cap}.",
        "Path: "
        + ", ".join(_link_in_words(plans, index) for index in range(len(plan.links)))
        + ".",
    ]


def _link_in_words(plans: list[RunPlan], index: int) -> str:
    link = plans[0].links[index]
    rates = [plan.links[index].forward.mean_rate_bps for plan in plans]
    known = sorted({rate / 1e6 for rate in rates if rate is not None})
    words = [link.name]
    if known:
        words.append(
            f"{known[0]:g} Mb/s" if len(known) == 1 else f"{known[0]:g} to {known[-1]:g} Mb/s"
        )
    least, most = link.forward.least_delay_ns / 1e6, link.forward.most_delay_ns / 1e6
    words.append(f"{least:g} ms" if least == most else f"{least:g} to {most:g} ms")
    return f"{link.ends[0].node} to {link.ends[1].node} ({', '.join(words)})"


def _notes(campaign: Campaign, summary: Summary) -> list[str]:
    notes = [f"Left out: {scheme}: {why}." for scheme, why in campaign.left_out.items()]
    if summary.failed:
        notes.append(f"{summary.failed} runs did not come to their end; they are in no mean.")
    if summary.invalid:
        notes.append(
            f"{summary.invalid} runs are invalid, because their links did not do what was asked; "
            "they are listed, and in no mean."
        )
    for panel in summary.panels:
        for curve in panel.curves:
            if curve.nagi is not None and curve.nagi.runs < len(summary.x.values):
                notes.append(
                    f"NAGI of {curve.series} ({title(summary, panel)}) is over {curve.nagi.runs} "
                    f"of {len(summary.x.values)} values."
                )
    return notes


def _certificate(verdicts: dict[str, Verdict]) -> dict[str, Any]:
    judged = [verdict for verdict in verdicts.values() if verdict.checks]
    rows = []
    for index, check in enumerate(judged[0].checks if judged else []):
        same = [verdict.checks[index] for verdict in judged]
        values = [each.value for each in same if each.value is not None]
        rows.append(
            [
                check.description,
                f"{max(values):.3g} {check.unit}" if values else "n/a",
                f"{check.limit:g} {check.unit}",
                str(sum(not each.ok for each in same)),
            ]
        )
    valid = sum(verdict.status == "valid" for verdict in judged)
    return {
        "text": f"{valid} of {len(judged)} runs passed every check. Each row shows the worst value "
        f"of all runs. {losses_in_words(judged)}",
        "rows": rows,
    }


def losses_in_words(verdicts: list[Verdict]) -> str:
    """How likely the losses were, by the channel whose were the least likely. The p-value is
    corrected for the number of channels by Bonferroni's inequality."""
    found = [
        each.value
        for verdict in verdicts
        for each in verdict.information
        if each.name == "loss_p_value"
    ]
    if not found:
        return ""
    return (
        f"The numbers of packets lost on {len(found)} channels were compared with the loss rates "
        f"asked for: the least likely has p = {min(found):.2g}, "
        f"{min(1.0, min(found) * len(found)):.2g} corrected for their number."
    )


def _run_table(
    campaign: Campaign, table: pd.DataFrame, verdicts: dict[str, Verdict]
) -> dict[str, Any]:
    axes = list(campaign.runs[0].point)
    heads = [axis.replace("_", " ") for axis in axes]
    heads += ["repeat", "flow", "AG (Mb/s)", "AGI", "sent", "retr.", "overfl.", "lost", "run", ""]
    rows = []
    by_run = dict(list(table.groupby("run_id")))
    for run in campaign.runs:
        point = [run.point[axis] for axis in axes] + [str(run.repeat + 1)]
        verdict = verdicts.get(run.run_id)
        status = verdict.status if verdict else "not run"
        if run.run_id not in by_run:
            rows.append([*point, "", "", "", "", "", "", "", run.run_id, status])
            continue
        for _, row in by_run[run.run_id].iterrows():
            rows.append(
                [
                    *point,
                    row["flow"],
                    f"{row['goodput_bps'] / 1e6:.3f}",
                    f"{row['agi']:.3f}",
                    str(row["segments_sent"]),
                    str(row["segments_retransmitted"]),
                    str(row["queue_overflows"]),
                    str(row["channel_losses"]),
                    run.run_id,
                    "" if status == "valid" else status,
                ]
            )
    align = ["left"] * len(axes) + ["right", "left"] + ["right"] * 6 + ["left", "left"]
    return {"heads": heads, "rows": rows, "align": align}


def _method(campaign: Campaign, manifest: Manifest) -> list[str]:
    programs = {
        name: version
        for node in manifest.nodes.values()
        for name, version in node.facts.programs.items()
    }
    form = f" --{campaign.form}" if campaign.form == "quick" else ""
    if campaign.form and campaign.form != "quick":
        form = f" --form {campaign.form}"
    return [
        "Every link is emulated by nagi-link (drop-tail queue, rate server, delay, loss) between "
        "network interfaces; hosts and routers are Linux network namespaces with all segmentation "
        "and checksum offloads off. Goodput counts the payload bytes that reach the receiver's "
        "interface for the first time during the measurement interval. Seeds follow from campaign, "
        "links and repeat, so all schemes meet the same channel.",
        "Programs: " + "; ".join(programs.values()) + ".",
        f"To reproduce: nagi run experiments/{campaign.experiment}.yaml{form}; every run's plan, "
        "captures, settings and verdict are in its directory under runs/.",
    ]


def _number(mean: Mean | None) -> str:
    if mean is None:
        return "–"
    if mean.halfwidth == mean.halfwidth:
        return f"{mean.value:.3f} ± {mean.halfwidth:.3f}"
    return f"{mean.value:.3f}"
