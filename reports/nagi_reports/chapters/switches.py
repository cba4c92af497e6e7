# SPDX-License-Identifier: Apache-2.0
"""Switches over all runs: drops by cause and delay of packets, at each port that shapes a link."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from nagi_contracts.plan import LinkDirection, RunPlan
from nagi_contracts.switches import SwitchAccount, Switches, SwitchPortAccount

from nagi_reports.chapters.material import Material
from nagi_reports.content import Block, Column, Paragraph, Table

_NOT_REPORTED = "n/a"


def compose_blocks(material: Material) -> list[Block]:
    """Return the blocks; empty if there are no switches."""
    accounts = list(_read_accounts(material))
    if not accounts:
        return []
    ports: dict[tuple[str, str, str], list[SwitchPortAccount]] = {}
    drops_by_cause: Counter[str] = Counter()
    icmp_errors: Counter[str] = Counter()
    for run_id, account in accounts:
        plan = material.plans[run_id]
        drops_by_cause.update(account.drops)
        icmp_errors.update(account.told)
        for port in account.ports:
            if (
                plan.switch_share(LinkDirection(link=port.link, direction=port.direction))
                is not None
            ):
                ports.setdefault((account.node, port.link, port.direction), []).append(port)
    text = "Packets of all runs that ended, for each direction that a switch shapes."
    if drops_by_cause:
        causes = ", ".join(f"{count:,} {cause}" for cause, count in sorted(drops_by_cause.items()))
        text += f" Switches dropped for other causes: {causes}."
    if icmp_errors:
        causes = ", ".join(f"{count:,} {cause}" for cause, count in sorted(icmp_errors.items()))
        text += f" Answered by ICMP errors: {causes}."
    rows = [
        [node, f"{link} {direction}", *_format_row(port_accounts)]
        for (node, link, direction), port_accounts in ports.items()
    ]
    heads = (
        "Sent",
        "Queue full",
        "Lost",
        "Marked CE",
        "Most waiting",
        "Late, median",
        "Late, 99 %",
    )
    return [
        Paragraph(text),
        Table(
            "Switches. Marked CE: by ECN. Late: how long after they were due packets left, in the "
            "worst run.",
            [
                Column("Switch"),
                Column("Direction", weight=2),
                *(Column(head, "right") for head in heads),
            ],
            rows,
            small=True,
        ),
    ]


def _read_accounts(material: Material) -> Iterator[tuple[str, SwitchAccount]]:
    for run_id, _, switches in material.read_all(Switches, "switches.json", RunPlan.switches):
        for account in switches.switches:
            yield run_id, account


def _format_row(ports: list[SwitchPortAccount]) -> list[str]:
    """Return the cells of a port, over all runs."""
    overflows = [port.queue_overflows for port in ports]
    waiting = [port.max_waiting_packets for port in ports]
    delays = [port.added_delay_ns for port in ports if port.added_delay_ns is not None]
    return [
        _format_sum([port.sent for port in ports], sum),
        _format_sum(overflows, sum),
        _format_sum([port.lost for port in ports], sum),
        _format_sum(
            [None if port.counters is None else port.counters.marked for port in ports], sum
        ),
        _format_sum(waiting, max),
        _format_max_ms([delay.median for delay in delays]),
        _format_max_ms([delay.p99 for delay in delays]),
    ]


def _format_sum(values: list[int | None], summary: Callable[[list[int]], int]) -> str:
    reported = [value for value in values if value is not None]
    return f"{summary(reported):,}" if len(reported) == len(values) else _NOT_REPORTED


def _format_max_ms(values: list[int]) -> str:
    return f"{max(values) / 1e6:.3g} ms" if values else _NOT_REPORTED
