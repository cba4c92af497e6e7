# SPDX-License-Identifier: Apache-2.0
"""The report on switches, from campaigns with known counts."""

from __future__ import annotations

import pytest
from nagi.backends.registry import load_chapters
from nagi_contracts.links import Lateness
from nagi_contracts.plan import DirectionPlan, NodePlan, RunPlan
from nagi_contracts.plan.switch import OwnPipelinePlan, SwitchPlan, SwitchPortPlan
from nagi_contracts.switches import PortCounters, SwitchAccount, Switches, SwitchPortAccount
from nagi_reports.chapters import compose, read_material
from nagi_reports.content import Facts, Figure, Paragraph, Table
from nagi_reports.summary import summarise

LATE = Lateness(count=10, median=20_000, p99=1_500_000, max=2_000_000, histogram=[])


def make_switch(node: NodePlan, shaped: DirectionPlan, own: OwnPipelinePlan | None) -> NodePlan:
    """Return a router as a switch that shapes the link `wireless` forward."""
    switch = SwitchPlan(
        pipeline="edge" if own is None else "own",
        sha256="3" * 64,
        ports=[
            SwitchPortPlan(number=1, link="wired"),
            SwitchPortPlan(number=2, link="wireless", imposes=shaped, sample_every=4),
        ],
        own=own,
    )
    return node.model_copy(update={"kind": "switch", "switch": switch})


def make_account(target: str, *, has_counters: bool, scheduling: str | None) -> SwitchAccount:
    """Return the account of a switch; targets without counters report no queue either."""
    counters = PortCounters(number=2, received=1000, sent=990, lost=10, marked=4)
    ports = [
        SwitchPortAccount(
            number=number,
            link=link,
            direction=direction,
            counters=counters if has_counters else None,
            queue_overflows=7 if has_counters else None,
            waiting=0,
            max_waiting_packets=30 if has_counters else None,
            backlogged=None,
            added_delay_ns=LATE if has_counters else None,
            arrival_lateness_ns=None,
            changes=None,
            interface=None,
        )
        for number, link, direction in ((1, "wired", "backward"), (2, "wireless", "forward"))
    ]
    return SwitchAccount(
        node="N",
        target=target,
        version="1.0",
        scheduling=scheduling,
        complete=True,
        records_lost=0,
        drops={"no route": 2, "bad checksum": 1} if has_counters else {},
        told={"TTL 0": 3} if has_counters else {},
        notices=["rates are in packets"] if target == "bmv2" else [],
        ports=ports,
    )


@pytest.fixture
def make_report(synthetic):
    """Return a function that composes the report of a campaign with a switch."""

    def make(target="nagi", own=None, has_counters=True, scheduling="SCHED_FIFO"):
        out, campaign, table = synthetic(capacities=(10,), schemes=("newreno",), repeats=2)
        account = make_account(target, has_counters=has_counters, scheduling=scheduling)
        for run in campaign.runs:
            directory = out / "runs" / run.run_id
            plan = RunPlan.read(directory / "plan.json")
            shaped = plan.link("wireless").forward
            nodes = [
                make_switch(node, shaped, own) if node.name == "N" else node for node in plan.nodes
            ]
            plan.model_copy(update={"nodes": nodes, "switch_target": target}).write(
                directory / "plan.json"
            )
            Switches(switches=[account]).write(directory / "switches.json")
        return compose(
            read_material(out, campaign, table, summarise(campaign, table)), load_chapters()
        )

    return make


def blocks_of(report, name, kind):
    section = next(section for section in report.sections if section.name == name)
    return [block for block in section.blocks if isinstance(block, kind)]


def test_the_certificate_has_the_ports_that_shape_links(make_report):
    report = make_report()
    *_, text = blocks_of(report, "certificate", Paragraph)
    assert text.text == (
        "Packets of all completed runs, for each direction that a switch shapes. Packets dropped "
        "for other causes: 4 bad checksum, 8 no route. Packets answered by ICMP errors: 12 TTL 0."
    )
    *_, table = blocks_of(report, "certificate", Table)
    assert table.rows == [
        ["N", "wireless forward", "3,960", "28", "40", "16", "30", "0.02 ms", "1.5 ms"]
    ]


def test_the_setup_has_the_program_of_the_switch(make_report):
    report = make_report()
    (facts,) = blocks_of(report, "setting", Facts)
    names = [name for name, _ in facts.items]
    assert names[:3] == ["Lab", "Switches", "Machine"]
    assert dict(facts.items)["Switches"] == "N: edge.p4 on nagi-switch 1.0 (SCHED_FIFO)"
    (topology,) = blocks_of(report, "setting", Figure)
    assert "round boxes routers and switches" in topology.caption
    (links,) = blocks_of(report, "setting", Table)
    assert [row[2].endswith("; shaped by the switch") for row in links.rows] == [False, True, False]


@pytest.mark.parametrize(
    ("target", "phrase"),
    [
        ("bmv2", "N: mine.p4 on bmv2's simple_switch 1.0; rates are in packets"),
        ("p4runtime", "N: mine.p4 by P4Runtime on 1.0"),
    ],
)
def test_values_that_a_target_does_not_report_are_not_available(make_report, target, phrase):
    own = OwnPipelinePlan(name="mine.p4", program="{}")
    report = make_report(target, own, has_counters=False, scheduling=None)
    assert dict(blocks_of(report, "setting", Facts)[0].items)["Switches"] == phrase
    *_, table = blocks_of(report, "certificate", Table)
    assert table.rows == [["N", "wireless forward", *["n/a"] * 7]]
