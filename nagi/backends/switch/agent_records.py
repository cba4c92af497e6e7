# SPDX-License-Identifier: Apache-2.0
"""Read the records of agents of switches, for switches.json and queue_samples.parquet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
from nagi_contracts.errors import refuse
from nagi_contracts.links import Lateness, PortAccount
from nagi_contracts.plan import DirectionName, NodePlan, RunPlan
from nagi_contracts.switches import (
    Backlogged,
    QueueSample,
    SwitchAccount,
    SwitchPortAccount,
    SwitchRecord,
)
from nagi_p4.edge import LINK_SCOPE, parse_sample

RECORD, DIGESTS, DROPS = "switch.json", "digests.jsonl", "switch_drops.pcapng"
CONTROLLER = "controller.log"


def read_account(plan: RunPlan, node: NodePlan, directory: Path) -> SwitchAccount:
    """Read the record of a switch's agent, and return the account of the switch.

    Raises:
        InputError: The record is missing, damaged, or not of this plan.
    """
    file = directory / RECORD
    record = SwitchRecord.read(file)
    try:
        return _make_account(plan, node, record)
    except (KeyError, ValueError, StopIteration) as error:
        raise refuse(
            f"not a record of nagi-switch: {error!r}", "build nagi-switch again", file=str(file)
        ) from None


def _make_account(plan: RunPlan, node: NodePlan, record: SwitchRecord) -> SwitchAccount:
    """Make the account of a switch: drops by cause, and its ports."""
    assert node.switch is not None
    account = record.account
    counters = record.counters
    drops: dict[str, int] = {}
    reported_drops: dict[str, int] = {}
    if counters is not None:
        drops = {cause: count for cause, count in counters.drops.items() if count}
        reported_drops = {cause: count for cause, count in counters.told.items() if count}
    if account is not None:
        by_program = ("ingress", "malformed", "checksum")
        dropped = account["p4"]["dropped"]
        other_drops = {cause: n for cause, n in dropped.items() if cause not in by_program}
        del other_drops["recirculated"]  # edge.p4 drops its samples of queues on purpose
        if counters is None:  # the user's own program drops on purpose
            del other_drops["egress"]
        else:
            # edge.p4 counts the causes of its drops at ingress. What remains has no known cause.
            other_drops["ingress"] = sum(dropped[cause] for cause in by_program) - sum(
                drops.values()
            )
            other_drops["egress"] -= sum(port.lost for port in counters.ports)
        for port in account["ports"]:
            other_drops["no such port"] = (
                other_drops.get("no such port", 0) + port["in"]["no_such_port"]
            )
            other_drops["no such priority"] = (
                other_drops.get("no such priority", 0) + port["out"]["no_such_priority"]
            )
        drops |= {cause: count for cause, count in other_drops.items() if count}
    # ICMP errors are sent only in runs with users' own programs. In other runs, packets for which
    # edge.p4 reports an error are plain drops.
    if not any(flow.command for flow in plan.flows):
        for cause, count in reported_drops.items():
            drops[cause] = drops.get(cause, 0) + count
        reported_drops = {}
    link_scope = drops.pop(LINK_SCOPE, 0)
    return SwitchAccount(
        node=node.name,
        target=record.target,
        version=record.version,
        scheduling=account["scheduling"] if account else None,
        complete=account["complete"] if account else True,
        records_lost=account["records_lost"] + account["p4"]["digests_lost"] if account else 0,
        drops=drops,
        told=reported_drops,
        from_controller=0 if counters is None else counters.from_controller,
        link_scope=link_scope,
        notices=record.notices,
        ports=[_make_port_account(plan, node, port.number, record) for port in node.switch.ports],
    )


def _make_port_account(
    plan: RunPlan, node: NodePlan, number: int, record: SwitchRecord
) -> SwitchPortAccount:
    """Make the account of a port from its counters and its queue."""
    assert node.switch is not None
    planned = next(port for port in node.switch.ports if port.number == number)
    counters = None
    if record.counters is not None:
        counters = next(port for port in record.counters.ports if port.number == number)
    account: dict[str, Any] | None = None
    if record.account is not None:
        account = next(port for port in record.account["ports"] if port["number"] == number)
    backlogged = None
    if account is not None and account["backlogged"]["intervals"]:
        sums = account["backlogged"]
        backlogged = Backlogged(
            packets=sums["packets"], bytes=sums["bytes"], length_ns=sums["length_ns"]
        )
    return SwitchPortAccount(
        number=number,
        link=planned.link,
        direction=_get_outgoing_direction(plan, node.name, planned.link),
        counters=counters,
        dropped_by_program=account["out"]["dropped_by_program"]
        if account is not None and counters is None
        else None,
        queue_overflows=account and account["out"]["queue_overflows"],
        waiting=account and account["out"]["waiting"] + account["out"]["sending"],
        max_waiting_packets=account and account["depth"]["max_packets"],
        backlogged=backlogged,
        added_delay_ns=account and Lateness.model_validate(account["added_delay_ns"]),
        arrival_lateness_ns=account and Lateness.model_validate(account["arrival_lateness_ns"]),
        changes=account and len(account["changes"]),
        interface=account and PortAccount.model_validate(account["interface"]),
    )


def _get_outgoing_direction(plan: RunPlan, node: str, link: str) -> DirectionName:
    return "forward" if plan.link(link).ends[0].node == node else "backward"


def read_samples(plan: RunPlan, node: NodePlan, directory: Path, began_s: float) -> pd.DataFrame:
    """Read the samples of queues that edge.p4 reported, ordered by time (contract QueueSample).

    Raises:
        InputError: The file is damaged. The message does not name the directory.
    """
    assert node.switch is not None
    record = SwitchRecord.read(directory / RECORD)
    links = {port.number: port.link for port in node.switch.ports}
    rows = []
    try:
        for line in (directory / DIGESTS).read_bytes().splitlines():
            sample = parse_sample(json.loads(line))
            realtime_ns = record.epoch_realtime_ns + sample.left_us * 1000
            rows.append(
                {
                    "t_s": round(realtime_ns / 1e9 - began_s, 6),
                    "link": links[sample.port],
                    "direction": _get_outgoing_direction(plan, node.name, links[sample.port]),
                    "depth_at_enqueue": sample.depth_at_enqueue,
                    "depth_at_dequeue": sample.depth_at_dequeue,
                    "in_queue_us": sample.in_queue_us,
                }
            )
    except (OSError, ValueError, KeyError, TypeError):
        raise refuse(f"{node.name}: {DIGESTS}: it is damaged", "run it again") from None
    return pd.DataFrame(rows, columns=list(QueueSample.model_fields)).sort_values("t_s")
