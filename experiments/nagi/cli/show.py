# SPDX-License-Identifier: Apache-2.0
"""The command `nagi show`: how far a campaign has come, or what became of a run. It only reads."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from nagi_contracts import noise
from nagi_contracts.errors import refuse
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Campaign, Check, Manifest, Verdict
from nagi_contracts.results import Metrics, ResultRow
from nagi_contracts.units import count_of, in_bytes
from nagi_reports import analysis, summary, text
from nagi_reports.applications import MEASURED
from rich.table import Table

from nagi.campaign.collection import MANIFEST, PLAN, VERDICT
from nagi.campaign.status import CampaignStatus, RunStatus
from nagi.campaign.stray import describe_stray
from nagi.terminal.campaigns import existing_campaign
from nagi.terminal.console import Json, out_console, write_json, write_line
from nagi.terminal.options import Directory, first_argument

_SHOWN = 10  # runs that are not valid, if not all are asked for; places of a check
_WITNESSES = 20  # packets of a check


def _complete_run(ctx: typer.Context, incomplete: str) -> list[str]:
    results = first_argument(ctx, "directory")
    if results is None or not (results / "runs").is_dir():
        return []
    names = [path.name for path in (results / "runs").iterdir() if path.suffix != ".partial"]
    return sorted(name for name in names if name.startswith(incomplete))


def show(
    directory: Directory,
    run: Annotated[
        str | None,
        typer.Argument(
            help="A run: its id, or enough of its start",
            metavar="RUN",
            show_default=False,
            autocompletion=_complete_run,
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="List all runs with their ids")] = False,
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="NAME",
            help="What this check of the run measured: where, and of which packets",
            show_default=False,
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """Print state and results of a campaign, or everything about one run; change nothing.

    The directory of a run takes the place of both arguments.
    """
    here = directory.resolve()
    if run is None and here.parent.name == "runs" and (here / PLAN).exists():
        directory, run = here.parent.parent, here.name
    held = existing_campaign(directory)
    status = CampaignStatus.read(held, Campaign.read(held.campaign))
    if check is not None:
        _show_check(status, run, check, json_)
        return
    if run is not None:
        _show_run(status, run, json_)
        return
    results = analysis.read_table(held.out, status.campaign)
    found = summary.summarise(status.campaign, results)
    report = held.out / "report.pdf"
    if json_:
        path = str(report) if report.exists() else None
        write_json({**status.as_data(), **text.as_data(found), "report": path})
        return
    _show_state(status)
    _show_runs(status, all_)
    if found.valid:
        fared = text.application_tables(status.campaign, results)
        for each in (*text.tables(found), *fared):
            out_console.print()
            out_console.print(each)
    if stray := describe_stray(held, status.campaign):
        write_line(f"\n{stray}")
    if report.exists():
        write_line(f"\nreport: {report}")


def _show_state(status: CampaignStatus) -> None:
    campaign, counts = status.campaign, status.counts
    build = campaign.build
    states = ", ".join(f"{number} {state}" for state, number in counts.items())
    facts = {
        "experiment": f"{status.name}: {campaign.title}",
        "results": str(status.directory.out),
        "lab": campaign.lab,
        "build": f"{build.id} (nagi {build.version}{f', {build.commit}' if build.commit else ''})",
        "runs": f"{len(status.runs)}: {states}",
    }
    if campaign.until is not None:
        facts["repeats"] = (
            f"until {campaign.until.metric} is known to ±{campaign.until.halfwidth:g}, at most "
            f"{campaign.until.at_most} a point"
        )
    if (ended := status.ended()) is not None:
        first, last = (f"{each:%Y-%m-%d %H:%M:%S}" for each in ended)
        facts["runs ended"] = first if first == last else f"{first} to {last}"
    if status.worker is not None:
        facts["now"] = f"nagi is at work on it, process {status.worker}"
    elif counts["missing"]:
        facts["now"] = "stopped; the same `nagi run` continues"
    for name, why in campaign.left_out.items():
        facts[f"left out: {name}"] = why
    _show_facts(facts)


def _show_facts(facts: dict[str, str]) -> None:
    width = max(map(len, facts))
    for name, what in facts.items():
        write_line(f"{name:{width}}  {what}")


def _show_runs(status: CampaignStatus, all_: bool) -> None:
    """All runs, or those that are invalid or failed; a line each."""
    bad = [run for run in status.runs if run.state in ("invalid", "failed")]
    shown = status.runs if all_ else bad[:_SHOWN]
    if not shown:
        return
    write_line("")
    for run in shown:
        repeat = f", repeat {run.run.repeat + 1}" if run.run.repeat else ""
        tries = f" after {run.attempts} tries" if run.attempts > 1 else ""
        reasons = f": {'; '.join(run.reasons)}" if run.reasons else ""
        point = ", ".join(run.run.point.values())
        write_line(f"{run.run.run_id}  {run.state:7}  {point}{repeat}{tries}{reasons}")
    if (further := len(bad) - len(shown)) > 0:
        write_line(f"and {further} more: --all")


def _show_run(status: CampaignStatus, wanted: str, json_: bool) -> None:
    name, run = _find(status, wanted)
    directory = status.directory.runs / name
    verdict = _read(Verdict, directory / VERDICT)
    manifest = _read(Manifest, directory / MANIFEST)
    metrics = _read(Metrics, directory / "metrics.json")
    plan = _read(RunPlan, directory / PLAN)
    files = _files(directory)
    if json_:
        write_json(
            {
                "results": str(status.directory.out),
                "directory": str(directory),
                **run.as_data(),
                "lab": manifest.lab if manifest else status.campaign.lab,
                "cell": manifest and manifest.cell,
                "seed": plan and plan.seed,
                "checks": [each.model_dump(mode="json") for each in verdict.checks]
                if verdict
                else [],
                "information": [each.model_dump(mode="json") for each in verdict.information]
                if verdict
                else [],
                "flows": [each.model_dump(mode="json") for each in metrics.rows] if metrics else [],
                "files": [{"name": name, "bytes": size} for name, size in files.items()],
            }
        )
        return
    facts = {
        "run": f"{name} of {status.name}",
        **run.run.point,
        "repeat": str(run.run.repeat + 1),
    }
    if plan is not None:
        facts["seed"] = str(plan.seed)
    if manifest is not None:
        facts |= {"lab": f"{manifest.lab}, {manifest.cell}", "build": manifest.build.id}
    if run.attempts > 1:
        facts["tries"] = str(run.attempts)
    reasons = f": {'; '.join(run.reasons)}" if run.reasons else ""
    facts["verdict"] = f"{run.state}{reasons}"
    if verdict is not None and (why := noise.describe_explanations(verdict)):
        facts["why late"] = "; ".join(why)
    _show_facts(facts)
    if verdict is not None and verdict.checks:
        out_console.print()
        out_console.print(_checks_table(verdict.checks))
    if verdict is not None and verdict.information:
        table = _table("for information", "value", "unit", "at")
        for info in verdict.information:
            table.add_row(info.name, f"{info.value:.4g}", info.unit, info.subject)
        out_console.print()
        out_console.print(table)
    if metrics is not None:
        out_console.print()
        out_console.print(_flows_table(metrics.rows[:_MOST_FLOWS]))
        if len(metrics.rows) > _MOST_FLOWS:
            write_line(f"and {len(metrics.rows) - _MOST_FLOWS} flows more: --json")
        for notice in metrics.notices:
            write_line(notice)
    if files:
        write_line(f"\nfiles in {directory}:")
        for file, size in files.items():
            write_line(f"  {file}  {in_bytes(size)}")


def _show_check(status: CampaignStatus, wanted: str | None, name: str, json_: bool) -> None:
    """Print what a check measured, by place, and packets and instants behind it, worst first."""
    from nagi.campaign.rechecking import recheck

    if wanted is None:
        raise refuse(
            "--check is of one run",
            f"name it: nagi show {status.directory.out} RUN --check {name}",
        )
    run, _ = _find(status, wanted)
    found = recheck(status.directory.runs / run, name)
    check, rows = found.check, found.witnesses
    if json_:
        write_json(
            {
                "run": run,
                "check": check.model_dump(mode="json"),
                "places": [{"at": at, "value": value} for value, at in found.values],
                "witnesses": None if rows is None else json.loads(rows.to_json(orient="records")),
            }
        )
        return
    value = "n/a" if check.value is None else f"{check.value:g} {check.unit}"
    _show_facts(
        {
            "run": f"{run} of {status.name}",
            "check": f"{name}: {check.description}",
            "measured": f"{value}, limit {check.limit:g}: {'ok' if check.ok else 'not ok'}",
        }
    )
    places = _table("at", "value", "unit")
    for value_there, at in found.values[:_SHOWN]:
        places.add_row(at, f"{value_there:.6g}", check.unit)
    out_console.print()
    out_console.print(places)
    _say_more(len(found.values))
    out_console.print()
    if rows is None:
        write_line("No packet is kept for this check: these numbers are all there is.")
        return
    if rows.empty:
        write_line("No packet is behind it.")
        return
    table = Table(show_edge=False, pad_edge=False)
    for column in rows.columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows.head(_WITNESSES).itertuples(index=False):
        table.add_row(*(f"{each:.6f}" if isinstance(each, float) else str(each) for each in row))
    out_console.print(table)
    _say_more(len(rows), _WITNESSES)


def _say_more(count: int, shown: int = _SHOWN) -> None:
    if count > shown:
        write_line(f"and {count - shown:,} more: --json")


def _find(status: CampaignStatus, wanted: str) -> tuple[str, RunStatus]:
    """The directory's name of the run that is meant, and the run: `ID.invalid-1` is an earlier try.
    Raises InputError."""
    # An earlier try is named in full.
    start, dot, _ = wanted.partition(".invalid-")
    matching = [each for each in status.runs if each.run.run_id.startswith(start)]
    exact = [each for each in matching if each.run.run_id == start]
    matching = exact or matching
    where = str(status.directory.out)
    if not wanted or not matching:
        raise refuse(
            f"there is no run {wanted!r}", f"list them: nagi show {where} --all", file=where
        )
    if len(matching) > 1:
        known = ", ".join(each.run.run_id for each in matching[:4])
        more = ", ..." if len(matching) > 4 else ""
        raise refuse(
            f"{count_of(len(matching), 'run')} begin with {wanted!r}",
            f"give more of the id: {known}{more}",
            file=where,
        )
    (found,) = matching
    if not dot:
        return found.run.run_id, found
    name = found.run.run_id + wanted[len(start) :]
    directory = status.directory.runs / name
    verdict = _read(Verdict, directory / VERDICT)
    if verdict is None or "/" in name:
        raise refuse(
            f"there is no run {wanted!r}", f"list them: nagi show {where} --all", file=where
        )
    return name, RunStatus(found.run, verdict.status, verdict.reasons, int(name.rsplit("-")[-1]))


def _read(kind: type[Any], path: Path) -> Any:
    """A file of a run; None if the run has none."""
    return kind.read(path) if path.exists() else None


def _files(directory: Path) -> dict[str, int]:
    """File -> bytes."""
    return {
        str(path.relative_to(directory)): path.stat().st_size
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def _checks_table(checks: list[Check]) -> Table:
    table = _table("check", "value", "limit", "unit", "", "at")
    for check in checks:
        table.add_row(
            check.name,
            "n/a" if check.value is None else f"{check.value:.4g}",
            f"{check.limit:g}",
            check.unit,
            "ok" if check.ok else "not ok",
            check.subject,
            style=None if check.ok else "bold red",
        )
    return table


# What people look at first; --json has all. Column of results.parquet -> what it is called, scale.
_METRICS: dict[str, tuple[str, float]] = {
    "bottleneck_bps": ("bottleneck (Mb/s)", 1e-6),
    "goodput_bps": ("goodput (Mb/s)", 1e-6),
    "agi": ("AGI", 1),
    "agi_ceiling": ("AGI that headers permit", 1),
    "base_rtt_s": ("base RTT (ms)", 1e3),
    "rtt_mean_s": ("mean RTT (ms)", 1e3),
    "queueing_delay_mean_s": ("mean queueing delay (ms)", 1e3),
    "cwnd_mean_packets": ("mean cwnd (packets)", 1),
    "segments_sent": ("segments sent", 1),
    "segments_retransmitted": ("segments retransmitted", 1),
    "queue_overflows": ("dropped by queues of its path", 1),
    "channel_losses": ("channel losses", 1),
}
_MOST_FLOWS = 8  # a column each
# Shown where they are known.
_OF_MEDIA = {
    "link_drop_probability": ("given up on media (%)", 1e2),
    "retries_per_hop": ("retries per hop", 1),
    "airtime_share": ("airtime (%)", 1e2),
}
_OF_APPLICATIONS = {
    name: (
        f"{measured.in_words} ({measured.unit})" if measured.unit else measured.in_words,
        measured.scale,
    )
    for name, measured in MEASURED.items()
}


def _flows_table(rows: list[ResultRow]) -> Table:
    """A column a flow."""
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("flow", no_wrap=True)
    for row in rows:
        table.add_column(
            f"{row.flow} (background)" if row.background else row.flow, justify="right"
        )
    table.add_row("scheme", *(row.scheme for row in rows))
    others = {**_OF_MEDIA, **_OF_APPLICATIONS}
    known = {name: shown for name, shown in others.items() if _is_known(rows, name)}
    for name, (what, scale) in {**_METRICS, **known}.items():
        table.add_row(what, *(_number(getattr(row, name), scale) for row in rows))
    return table


def _is_known(rows: list[ResultRow], name: str) -> bool:
    return any(getattr(row, name) is not None for row in rows)


def _table(first: str, *heads: str) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for head in heads:
        justify: Literal["left", "right"] = "right" if head in ("value", "limit") else "left"
        table.add_column(head, justify=justify, overflow="fold")
    return table


def _number(value: float | None, scale: float) -> str:
    if value is None or math.isnan(value):
        return "-"
    return f"{value:,}" if isinstance(value, int) and scale == 1 else f"{value * scale:.4g}"
