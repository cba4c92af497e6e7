# SPDX-License-Identifier: Apache-2.0
"""Switches in the report of a campaign: their programs, drops by cause, and delays of packets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from nagi_contracts.errors import InputError
from nagi_contracts.plan import LinkDirection, RunPlan, SwitchTarget
from nagi_contracts.records import Build
from nagi_contracts.switches import SwitchAccount, Switches, SwitchPortAccount
from nagi_reports.chapters.backends import Chapter, Notes
from nagi_reports.chapters.material import Material
from nagi_reports.content import Block, Column, Paragraph, Table

_NOT_REPORTED = "n/a"
_TARGET_PHRASES: dict[SwitchTarget, str] = {
    "nagi": "on nagi-switch",
    "bmv2": "on bmv2's simple_switch",
    "p4runtime": "by P4Runtime on",
}


class _SwitchChapter(Chapter):
    """The parts of a report that describe switches."""

    def compose_setup_rows(self, material: Material) -> list[tuple[str, str]]:
        """Return one row with pipeline, target and notices of each switch; empty without switches.

        The row describes the first run whose switches.json can be read.
        """
        for run_id, plan in material.plans.items():
            if not plan.switches():
                return []
            try:
                accounts = Switches.read(material.run_directory(run_id) / "switches.json").switches
            except InputError:
                continue
            descriptions = []
            for switch in accounts:
                target = _TARGET_PHRASES[switch.target]
                shows_scheduling = switch.scheduling and not material.in_virtual_time
                scheduling = f" ({switch.scheduling})" if shows_scheduling else ""
                notes = "".join(f"; {notice}" for notice in switch.notices)
                planned = plan.node(switch.node).switch
                own_pipeline = None if planned is None else planned.own
                pipeline = "edge.p4" if own_pipeline is None else own_pipeline.name
                descriptions.append(
                    f"{switch.node}: {pipeline} {target} {switch.version}{scheduling}{notes}"
                )
            return [("Switches", ". ".join(descriptions))]
        return []

    def compose_certificate(self, material: Material) -> list[Block]:
        """Return a text on drops, and a table of the directions that switches shape.

        Empty if no run has a record of switches.
        """
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
                    plan.switch_settings(LinkDirection(link=port.link, direction=port.direction))
                    is not None
                ):
                    ports.setdefault((account.node, port.link, port.direction), []).append(port)
        text = "Packets of all completed runs, for each direction that a switch shapes."
        if drops_by_cause:
            causes = ", ".join(
                f"{count:,} {cause}" for cause, count in sorted(drops_by_cause.items())
            )
            text += f" Packets dropped for other causes: {causes}."
        if icmp_errors:
            causes = ", ".join(f"{count:,} {cause}" for cause, count in sorted(icmp_errors.items()))
            text += f" Packets answered by ICMP errors: {causes}."
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
                "Switches. Marked CE: packets marked by ECN. Late: the time from a packet's due "
                "time until it left, in the worst run.",
                [
                    Column("Switch"),
                    Column("Direction", weight=2),
                    *(Column(head, "right") for head in heads),
                ],
                rows,
                small=True,
            ),
        ]

    def compose_notes(self, material: Material) -> Notes:
        if not material.plan.switches():
            return {}
        return {
            "time series": " For the queue of a switch, samples are shown. The switch takes a "
            "sample when a packet leaves the queue: the packets that still wait."
        }

    def list_programs(self, build: Build) -> list[tuple[str, str | None]]:
        return [
            ("nagi-switch", build.nagi_switch),
            ("simple_switch", build.simple_switch),
            ("nagi-p4runtime", build.nagi_p4runtime),
        ]


def _read_accounts(material: Material) -> Iterator[tuple[str, SwitchAccount]]:
    """Yield (run id, counts of a switch) for each switch of each run."""
    for run_id, _, switches in material.read_all(Switches, "switches.json", RunPlan.switches):
        for account in switches.switches:
            yield run_id, account


def _format_row(ports: list[SwitchPortAccount]) -> list[str]:
    """Return the cells of a row: sums, maxima and latenesses of one port over all runs."""
    overflows = [port.queue_overflows for port in ports]
    waiting = [port.max_waiting_packets for port in ports]
    delays = [port.added_delay_ns for port in ports if port.added_delay_ns is not None]
    return [
        _format_summary([port.sent for port in ports], sum),
        _format_summary(overflows, sum),
        _format_summary([port.lost for port in ports], sum),
        _format_summary(
            [None if port.counters is None else port.counters.marked for port in ports], sum
        ),
        _format_summary(waiting, max),
        _format_max_ms([delay.median for delay in delays]),
        _format_max_ms([delay.p99 for delay in delays]),
    ]


def _format_summary(values: list[int | None], summarise: Callable[[list[int]], int]) -> str:
    """Return the sum or maximum of the values of all runs, or n/a if a value is missing."""
    reported = [value for value in values if value is not None]
    return f"{summarise(reported):,}" if len(reported) == len(values) else _NOT_REPORTED


def _format_max_ms(values: list[int]) -> str:
    return f"{max(values) / 1e6:.3g} ms" if values else _NOT_REPORTED


part = _SwitchChapter()
