# SPDX-License-Identifier: Apache-2.0
"""Read the files that agents record about switches, for switches.json and queue_samples.parquet."""

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
    """Read switch.json of an agent, and return the counts of the switch for switches.json.

    Args:
        plan: The plan of the run.
        node: The switch.
        directory: The directory of the agent's records.

    Raises:
        InputError: The file is missing or damaged, or its ports are not the ports of this plan.
    """
    file = directory / RECORD
    record = SwitchRecord.read(file)
    try:
        return _make_account(plan, node, record)
    except (KeyError, ValueError, StopIteration) as error:
        raise refuse(
            f"the counts do not have the format of this version of nagi: {error!r}",
            "build nagi-switch again",
            file=str(file),
        ) from None


def _make_account(plan: RunPlan, node: NodePlan, record: SwitchRecord) -> SwitchAccount:
    """Return the counts of a switch: drops by cause, and the counts of its ports.

    `account` in the record is what nagi-switch wrote itself, or None for other targets. `counters`
    are the counters of edge.p4, or None for a user's program.
    """
    assert node.switch is not None
    account = record.account
    counters = record.counters
    drops: dict[str, int] = {}
    reported_drops: dict[str, int] = {}
    if counters is not None:
        drops = {cause: count for cause, count in counters.drops.items() if count}
        reported_drops = {cause: count for cause, count in counters.told.items() if count}
    if account is not None:
        ingress_causes = ("ingress", "malformed", "checksum")
        dropped = account["p4"]["dropped"]
        other_drops = {
            cause: count for cause, count in dropped.items() if cause not in ingress_causes
        }
        del other_drops["recirculated"]  # edge.p4 drops its samples of queues on purpose
        if counters is None:  # a user's program drops on purpose
            del other_drops["egress"]
        else:
            # edge.p4 counts its drops at ingress by cause. The remaining drops at ingress have no
            # known cause.
            other_drops["ingress"] = sum(dropped[cause] for cause in ingress_causes) - sum(
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
    # ICMP errors are sent only in runs with flows of `traffic: command`. In other runs, packets
    # that edge.p4 reports for an ICMP error count as drops.
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
    """Return the counts of the port with this number. Values that are not reported are None."""
    assert node.switch is not None
    port_plan = next(port for port in node.switch.ports if port.number == number)
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
        link=port_plan.link,
        direction=_get_outgoing_direction(plan, node.name, port_plan.link),
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

    Args:
        plan: The plan of the run.
        node: The switch.
        directory: The directory of the agent's records.
        began_s: When the run began, in seconds since the Unix epoch.

    Raises:
        InputError: The file is missing or damaged. The message does not contain the directory.
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
        raise refuse(f"{node.name}: {DIGESTS} is damaged", "repeat the run") from None
    return pd.DataFrame(rows, columns=list(QueueSample.model_fields)).sort_values("t_s")
