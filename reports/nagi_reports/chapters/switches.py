# SPDX-License-Identifier: Apache-2.0
"""Switches over all runs: of each port that shapes a link, drops by cause, and by how much packets
left late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from nagi_contracts.plan import LinkDirection, RunPlan
from nagi_contracts.switches import SwitchAccount, Switches, SwitchPortAccount

from nagi_reports.chapters.material import Material
from nagi_reports.content import Block, Column, Paragraph, Table

_NOT_TOLD = "n/a"


def blocks(material: Material) -> list[Block]:
    """Nothing where there are no switches."""
    found = list(_accounts(material))
    if not found:
        return []
    ports: dict[tuple[str, str, str], list[SwitchPortAccount]] = {}
    others: Counter[str] = Counter()
    told: Counter[str] = Counter()
    for run_id, account in found:
        plan = material.plans[run_id]
        others.update(account.drops)
        told.update(account.told)
        for port in account.ports:
            if (
                plan.switch_share(LinkDirection(link=port.link, direction=port.direction))
                is not None
            ):
                ports.setdefault((account.node, port.link, port.direction), []).append(port)
    said = "Packets of all runs that ended, for each direction that a switch shapes."
    if others:
        causes = ", ".join(f"{count:,} {cause}" for cause, count in sorted(others.items()))
        said += f" Switches dropped for other causes: {causes}."
    if told:
        causes = ", ".join(f"{count:,} {cause}" for cause, count in sorted(told.items()))
        said += f" Answered by ICMP errors: {causes}."
    rows = [
        [node, f"{link} {direction}", *_row(mine)]
        for (node, link, direction), mine in ports.items()
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
        Paragraph(said),
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


def _accounts(material: Material) -> Iterator[tuple[str, SwitchAccount]]:
    for run_id, _, found in material.read_all(Switches, "switches.json", RunPlan.switches):
        for account in found.switches:
            yield run_id, account


def _row(ports: list[SwitchPortAccount]) -> list[str]:
    overflows = [port.queue_overflows for port in ports]
    waiting = [port.max_waiting_packets for port in ports]
    late = [port.added_delay_ns for port in ports if port.added_delay_ns is not None]
    return [
        _told([port.sent for port in ports], sum),
        _told(overflows, sum),
        _told([port.lost for port in ports], sum),
        _told([None if port.counters is None else port.counters.marked for port in ports], sum),
        _told(waiting, max),
        _ms([each.median for each in late]),
        _ms([each.p99 for each in late]),
    ]


def _told(values: list[int | None], summary: Callable[[list[int]], int]) -> str:
    known = [value for value in values if value is not None]
    return f"{summary(known):,}" if len(known) == len(values) else _NOT_TOLD


def _ms(values: list[int]) -> str:
    return f"{max(values) / 1e6:.3g} ms" if values else _NOT_TOLD
