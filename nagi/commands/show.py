# SPDX-License-Identifier: Apache-2.0
"""Prints the state of a campaign, or details of a run: `nagi show`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Literal

from nagi_contracts import noise
from nagi_contracts.errors import refuse
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Campaign, Check, Manifest, Verdict
from nagi_contracts.results import Metrics, ResultRow
from nagi_contracts.units import format_bytes, format_count
from nagi_reports import analysis, summary, text
from nagi_reports.applications import APPLICATION_METRICS
from rich.table import Table

from nagi.campaign.run_directory import MANIFEST, PLAN, VERDICT
from nagi.campaign.status import CampaignStatus, RunStatus
from nagi.campaign.stray import describe_stray
from nagi.terminal.campaigns import find_campaign
from nagi.terminal.console import out_console, write_json, write_line

_SHOWN = 10  # invalid and failed runs without --all; also values of a check
_WITNESSES = 20  # packets of a check that are shown


def show(directory: Path, run: str | None, *, all_: bool, check: str | None, json_: bool) -> None:
    """Print state and results of a campaign, or everything about one run.

    Args:
        directory: The directory of the campaign, or of a run.
        run: The id of a run, or its first characters. None for the campaign, or for the run whose
            directory is given.
        all_: Whether to list all runs of the campaign, and not only the first invalid and failed
            ones.
        check: The name of a check of the run. If given, only the values and packets of this check
            are printed.
        json_: Whether to print JSON.

    Raises:
        InputError: There is no such campaign, run or check, or `check` is given without a run.
    """
    run_directory = directory.resolve()
    if run is None and run_directory.parent.name == "runs" and (run_directory / PLAN).exists():
        directory, run = run_directory.parent.parent, run_directory.name
    campaign_directory = find_campaign(directory)
    status = CampaignStatus.read(
        campaign_directory, Campaign.read(campaign_directory.campaign_file)
    )
    if check is not None:
        _print_check(status, run, check, json_)
        return
    if run is not None:
        _print_run(status, run, json_)
        return
    results_table = analysis.read_table(campaign_directory.out, status.campaign)
    results_summary = summary.summarise(status.campaign, results_table)
    report = campaign_directory.out / "report.pdf"
    if json_:
        path = str(report) if report.exists() else None
        write_json({**status.to_dict(), **text.to_data(results_summary), "report": path})
        return
    _print_state(status)
    _print_runs(status, all_)
    if results_summary.valid:
        applications = text.make_application_tables(status.campaign, results_table)
        for result_table in (*text.make_tables(results_summary), *applications):
            out_console.print()
            out_console.print(result_table)
    if stray := describe_stray(campaign_directory, status.campaign):
        write_line(f"\n{stray}")
    if report.exists():
        write_line(f"\nreport: {report}")


def _print_state(status: CampaignStatus) -> None:
    """Print the state of a campaign."""
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
            f"{campaign.until.at_most} per point"
        )
    if (ended := status.find_end_times()) is not None:
        first, last = (f"{time:%Y-%m-%d %H:%M:%S}" for time in ended)
        facts["runs ended"] = first if first == last else f"{first} to {last}"
    if status.process_id is not None:
        facts["now"] = f"nagi is executing it, process {status.process_id}"
    elif counts["missing"]:
        facts["now"] = "stopped; the same `nagi run` continues"
    for name, reason in campaign.left_out.items():
        facts[f"left out: {name}"] = reason
    _print_facts(facts)


def _print_facts(facts: dict[str, str]) -> None:
    width = max(map(len, facts))
    for name, value in facts.items():
        write_line(f"{name:{width}}  {value}")


def _print_runs(status: CampaignStatus, all_: bool) -> None:
    """Print one line for each run; without `all_`, for the first invalid and failed runs only."""
    not_valid = [run for run in status.runs if run.state in ("invalid", "failed")]
    shown_runs = status.runs if all_ else not_valid[:_SHOWN]
    if not shown_runs:
        return
    write_line("")
    for run in shown_runs:
        repeat = f", repeat {run.run.repeat + 1}" if run.run.repeat else ""
        tries = f" after {run.attempts} tries" if run.attempts > 1 else ""
        reasons = f": {'; '.join(run.reasons)}" if run.reasons else ""
        point = ", ".join(run.run.point.values())
        write_line(f"{run.run.run_id}  {run.state:7}  {point}{repeat}{tries}{reasons}")
    if (further := len(not_valid) - len(shown_runs)) > 0:
        write_line(f"and {further} more: --all")


def _print_run(status: CampaignStatus, run_name: str, json_: bool) -> None:
    """Print everything about one run, or about an earlier try of the run.

    `run_name` names the run as for _find_run().
    """
    directory_name, run = _find_run(status, run_name)
    directory = status.directory.runs / directory_name
    verdict = _read_if_present(Verdict, directory / VERDICT)
    manifest = _read_if_present(Manifest, directory / MANIFEST)
    metrics = _read_if_present(Metrics, directory / "metrics.json")
    plan = _read_if_present(RunPlan, directory / PLAN)
    files = _list_files(directory)
    if json_:
        write_json(
            {
                "results": str(status.directory.out),
                "directory": str(directory),
                **run.to_dict(),
                "lab": manifest.lab if manifest else status.campaign.lab,
                "cell": manifest and manifest.cell,
                "seed": plan and plan.seed,
                "checks": [check.model_dump(mode="json") for check in verdict.checks]
                if verdict
                else [],
                "information": [item.model_dump(mode="json") for item in verdict.information]
                if verdict
                else [],
                "flows": [row.model_dump(mode="json") for row in metrics.rows] if metrics else [],
                "files": [{"name": name, "bytes": size} for name, size in files.items()],
            }
        )
        return
    facts = {
        "run": f"{directory_name} of {status.name}",
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
    if verdict is not None and (noise_sentences := noise.describe_explanations(verdict)):
        facts["why late"] = "; ".join(noise_sentences)
    _print_facts(facts)
    if verdict is not None and verdict.checks:
        out_console.print()
        out_console.print(_make_checks_table(verdict.checks))
    if verdict is not None and verdict.information:
        table = _make_table("for information", "value", "unit", "at")
        for info in verdict.information:
            table.add_row(info.name, f"{info.value:.4g}", info.unit, info.subject)
        out_console.print()
        out_console.print(table)
    if metrics is not None:
        out_console.print()
        out_console.print(_make_flows_table(metrics.rows[:_MAX_FLOWS]))
        if len(metrics.rows) > _MAX_FLOWS:
            write_line(f"and {len(metrics.rows) - _MAX_FLOWS} flows more: --json")
        for notice in metrics.notices:
            write_line(notice)
    if files:
        write_line(f"\nfiles in {directory}:")
        for file, size in files.items():
            write_line(f"  {file}  {format_bytes(size)}")


def _print_check(
    status: CampaignStatus, run_name: str | None, check_name: str, json_: bool
) -> None:
    """Print the values that a check measured on links, nodes or flows, and its witnesses.

    Witnesses are the packets that contributed to the check. The worst values and packets are first.

    Args:
        status: The campaign.
        run_name: The name of the run, as for _find_run(), or None if the user gave none.
        check_name: The name of the check.
        json_: Whether to print JSON.

    Raises:
        InputError: The user gave no run, there is no such run or check, or the records that the
            check needs were removed.
    """
    from nagi.campaign.rechecking import recheck

    if run_name is None:
        raise refuse(
            "--check needs the id of a run",
            f"give it: nagi show {status.directory.out} RUN --check {check_name}",
        )
    directory_name, _ = _find_run(status, run_name)
    rechecked = recheck(status.directory.runs / directory_name, check_name)
    check, witnesses = rechecked.check, rechecked.witnesses
    if json_:
        write_json(
            {
                "run": directory_name,
                "check": check.model_dump(mode="json"),
                "places": [{"at": subject, "value": value} for value, subject in rechecked.values],
                "witnesses": None
                if witnesses is None
                else json.loads(witnesses.to_json(orient="records")),
            }
        )
        return
    value = "n/a" if check.value is None else f"{check.value:g} {check.unit}"
    _print_facts(
        {
            "run": f"{directory_name} of {status.name}",
            "check": f"{check_name}: {check.description}",
            "measured": f"{value}, limit {check.limit:g}: {'ok' if check.ok else 'not ok'}",
        }
    )
    values_table = _make_table("at", "value", "unit")
    for measured_value, subject in rechecked.values[:_SHOWN]:
        values_table.add_row(subject, f"{measured_value:.6g}", check.unit)
    out_console.print()
    out_console.print(values_table)
    _print_more(len(rechecked.values))
    out_console.print()
    if witnesses is None:
        write_line("Only these values were recorded for this check, and no packets.")
        return
    if witnesses.empty:
        write_line("No packet contributed to this check.")
        return
    table = Table(show_edge=False, pad_edge=False)
    for column in witnesses.columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in witnesses.head(_WITNESSES).itertuples(index=False):
        table.add_row(*(f"{cell:.6f}" if isinstance(cell, float) else str(cell) for cell in row))
    out_console.print(table)
    _print_more(len(witnesses), _WITNESSES)


def _print_more(count: int, shown: int = _SHOWN) -> None:
    if count > shown:
        write_line(f"and {count - shown:,} more: --json")


def _find_run(status: CampaignStatus, run_name: str) -> tuple[str, RunStatus]:
    """Return the name of a run's directory, and the status of the run.

    Args:
        status: The campaign.
        run_name: The beginning of the run's id, or `ID.invalid-1` for an earlier try.

    Raises:
        InputError: There is no such run, or several.
    """
    # An id may be shortened, but not the suffix `.invalid-N` of an earlier try.
    id_prefix, suffix, _ = run_name.partition(".invalid-")
    matching = [run for run in status.runs if run.run.run_id.startswith(id_prefix)]
    exact = [run for run in matching if run.run.run_id == id_prefix]
    matching = exact or matching
    directory_text = str(status.directory.out)
    if not run_name or not matching:
        raise refuse(
            f"there is no run {run_name!r}",
            f"list them: nagi show {directory_text} --all",
            file=directory_text,
        )
    if len(matching) > 1:
        ids = ", ".join(run.run.run_id for run in matching[:4])
        more = ", ..." if len(matching) > 4 else ""
        raise refuse(
            f"the ids of {format_count(len(matching), 'run')} begin with {run_name!r}",
            f"give more of the id: {ids}{more}",
            file=directory_text,
        )
    (run_status,) = matching
    if not suffix:
        return run_status.run.run_id, run_status
    name = run_status.run.run_id + run_name[len(id_prefix) :]
    directory = status.directory.runs / name
    verdict = _read_if_present(Verdict, directory / VERDICT)
    if verdict is None or "/" in name:
        raise refuse(
            f"there is no run {run_name!r}",
            f"list them: nagi show {directory_text} --all",
            file=directory_text,
        )
    return name, RunStatus(
        run_status.run, verdict.status, verdict.reasons, int(name.rsplit("-")[-1])
    )


def _read_if_present(kind: type[Any], path: Path) -> Any:
    """Read a file of a run as the model `kind`. Return None if the file does not exist."""
    return kind.read(path) if path.exists() else None


def _list_files(directory: Path) -> dict[str, int]:
    """Return relative path -> size in bytes, for all files below a directory."""
    return {
        str(path.relative_to(directory)): path.stat().st_size
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def _make_checks_table(checks: list[Check]) -> Table:
    """Make a table with one row per check. The rows of checks that failed are red."""
    table = _make_table("check", "value", "limit", "unit", "", "at")
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


# The most important metrics; --json prints all. Column of results.parquet -> title and factor.
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
    "queue_overflows": ("dropped by queues on the path", 1),
    "channel_losses": ("channel losses", 1),
}
_MAX_FLOWS = 8  # one column per flow
# The following metrics are shown if at least one flow has a value.
_MEDIA_METRICS = {
    "link_drop_probability": ("given up on media (%)", 1e2),
    "retries_per_hop": ("retries per hop", 1),
    "airtime_share": ("airtime (%)", 1e2),
}
_APPLICATION_METRICS = {
    name: (
        f"{measured.phrase} ({measured.unit})" if measured.unit else measured.phrase,
        measured.scale,
    )
    for name, measured in APPLICATION_METRICS.items()
}


def _make_flows_table(rows: list[ResultRow]) -> Table:
    """Make a table with one column per flow and one row per metric.

    Metrics of media and of applications have a row only if a flow has a value.
    """
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("flow", no_wrap=True)
    for row in rows:
        table.add_column(
            f"{row.flow} (background)" if row.background else row.flow, justify="right"
        )
    table.add_row("scheme", *(row.scheme for row in rows))
    optional = {**_MEDIA_METRICS, **_APPLICATION_METRICS}
    with_values = {name: metric for name, metric in optional.items() if _has_value(rows, name)}
    for name, (title, scale) in {**_METRICS, **with_values}.items():
        table.add_row(title, *(_format_number(getattr(row, name), scale) for row in rows))
    return table


def _has_value(rows: list[ResultRow], name: str) -> bool:
    return any(getattr(row, name) is not None for row in rows)


def _make_table(first: str, *heads: str) -> Table:
    """Make a table with these heads of columns and no rows. The first column never wraps."""
    table = Table(show_edge=False, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for head in heads:
        justify: Literal["left", "right"] = "right" if head in ("value", "limit") else "left"
        table.add_column(head, justify=justify, overflow="fold")
    return table


def _format_number(value: float | None, scale: float) -> str:
    if value is None or math.isnan(value):
        return "-"
    return f"{value:,}" if isinstance(value, int) and scale == 1 else f"{value * scale:.4g}"
