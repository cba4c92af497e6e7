# SPDX-License-Identifier: Apache-2.0
"""Prints findings. A stage is one line if all its findings are `ok`. Other stages have details."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from nagi_contracts.doctor import Doctor, Finding, Status
from nagi_contracts.units import format_count
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nagi.backends.registry import load_stages

_TITLES = {
    "ssh": "SSH",
    "mtu": "MTU",
    "processors": "spare CPU",
}
_STYLES: dict[Status, str] = {
    "ok": "green",
    "skipped": "dim",
    "warning": "yellow",
    "failure": "bold red",
}
_MAX_OK_TEXT = 48  # characters; longer texts of findings that are `ok` are left out
_MAX_HOSTS = 4  # names of hosts per line


def print_findings(console: Console, doctor: Doctor) -> None:
    """Print all stages, and a last line that says whether the hosts are ready."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("stage", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("what", overflow="fold")
    titles = dict(_TITLES)
    for stage_of_backend in load_stages().values():
        titles |= stage_of_backend.titles
    for stage, findings in groupby(doctor.findings, key=lambda finding: finding.stage):
        title = titles.get(stage, stage)
        for status, text in _format_stage(list(findings)):
            table.add_row(title, Text(status, _STYLES[status]), text)
            title = ""
    console.print(table)
    console.print()
    console.print(Text(describe_readiness(doctor), _STYLES[doctor.status]))


def describe_readiness(doctor: Doctor) -> str:
    """Return the last line: whether hosts are ready, and the number of failures or warnings."""
    failures, warnings = doctor.count("failure"), doctor.count("warning")
    if failures:
        return f"not ready: {format_count(failures, 'failure')}"
    return f"ready with {format_count(warnings, 'warning')}" if warnings else "ready"


def _format_stage(findings: list[Finding]) -> Iterator[tuple[Status, Text]]:
    """Yield status and text of each line about a stage.

    All findings that are `ok` have one line together; each other finding has a line of its own.
    """
    ok_findings = [finding for finding in findings if finding.status == "ok"]
    other_findings = [finding for finding in findings if finding.status != "ok"]
    if ok_findings:
        hosts = {host for finding in ok_findings for host in finding.hosts}
        texts = list(dict.fromkeys(finding.what for finding in ok_findings))
        joined_texts = ", ".join(texts)
        count = format_count(len(hosts), "host")
        yield (
            "ok",
            Text(
                f"{count}: {joined_texts}"
                if len(texts) == 1 or len(joined_texts) <= _MAX_OK_TEXT
                else count
            ),
        )
    for finding in other_findings:
        line = Text(f"{_join_hosts(finding.hosts)}: ", "bold")
        line.append(finding.what, "not bold")
        if finding.status == "skipped":
            line.append(f"; {finding.cure}", "not bold")
        else:
            line.append("\ncure: ", "not bold dim").append(finding.cure, "not bold")
        yield finding.status, line


def _join_hosts(names: list[str]) -> str:
    """Return the names of hosts as a text; of more than _MAX_HOSTS, the first names and a count."""
    if len(names) <= _MAX_HOSTS:
        return ", ".join(names)
    first = names[: _MAX_HOSTS - 1]
    return f"{', '.join(first)} and {len(names) - len(first)} more"
