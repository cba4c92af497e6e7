# SPDX-License-Identifier: Apache-2.0
"""Findings for people: a line a stage where all is well, everything else in full."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from nagi_contracts.doctor import Doctor, Finding, Stage, Status
from nagi_contracts.units import count_of
from rich.console import Console
from rich.table import Table
from rich.text import Text

TITLES: dict[Stage, str] = {
    "ssh": "SSH",
    "versions": "versions",
    "kernel": "kernel",
    "schemes": "schemes",
    "interfaces": "interfaces",
    "clocks": "clocks",
    "paths": "paths",
    "mtu": "MTU",
    "capture": "capture",
    "emulator": "emulator",
    "radio": "radio",
    "fpga": "FPGA",
    "switch": "switch",
    "processors": "spare CPU",
    "disk": "disk",
    "lock": "lock",
    "leftovers": "leftovers",
    "library": "GNU Radio",
    "flowgraph": "flowgraph",
    "images": "images",
    "device": "device",
    "rate": "rate",
    "loopback": "loopback",
    "packets": "packets",
    "ip": "IP",
    "tools": "tools",
    "cable": "cable",
    "board": "board",
    "bitstream": "bitstream",
    "build": "build",
    "registers": "registers",
    "link": "link",
}
_STYLES: dict[Status, str] = {
    "ok": "green",
    "skipped": "dim",
    "warning": "yellow",
    "failure": "bold red",
}
_SHOWN = 48  # letters: different things said of hosts that are well are shown if no longer
_HOSTS_SHOWN = 4


def show(console: Console, doctor: Doctor) -> None:
    """Prints all stages, and a last line that says whether the hosts are ready."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("stage", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("what", overflow="fold")
    for stage, found in groupby(doctor.findings, key=lambda finding: finding.stage):
        title = TITLES[stage]
        for status, what in _lines(list(found)):
            table.add_row(title, Text(status, _STYLES[status]), what)
            title = ""
    console.print(table)
    console.print()
    console.print(Text(last_line(doctor), _STYLES[doctor.status]))


def last_line(doctor: Doctor) -> str:
    failures, warnings = doctor.count("failure"), doctor.count("warning")
    if failures:
        return f"not ready: {count_of(failures, 'failure')}"
    return f"ready with {count_of(warnings, 'warning')}" if warnings else "ready"


def _lines(found: list[Finding]) -> Iterator[tuple[Status, Text]]:
    """What is said of a stage: status and words."""
    bad = [finding for finding in found if finding.status != "ok"]
    well = [finding for finding in found if finding.status == "ok"]
    if well:
        hosts = {host for finding in well for host in finding.hosts}
        said = list(dict.fromkeys(finding.what for finding in well))
        all_said = ", ".join(said)
        count = count_of(len(hosts), "host")
        yield (
            "ok",
            Text(f"{count}: {all_said}" if len(said) == 1 or len(all_said) <= _SHOWN else count),
        )
    for finding in bad:
        words = Text(f"{_hosts(finding.hosts)}: ", "bold")
        words.append(finding.what, "not bold")
        if finding.status == "skipped":
            words.append(f"; {finding.cure}", "not bold")
        else:
            words.append("\ncure: ", "not bold dim").append(finding.cure, "not bold")
        yield finding.status, words


def _hosts(names: list[str]) -> str:
    if len(names) <= _HOSTS_SHOWN:
        return ", ".join(names)
    first = names[: _HOSTS_SHOWN - 1]
    return f"{', '.join(first)} and {len(names) - len(first)} more"
