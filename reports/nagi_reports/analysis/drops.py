# SPDX-License-Identifier: Apache-2.0
"""Counts of packets dropped on a flow's path, from the counters in links.json and switches.json."""

from __future__ import annotations

from nagi_contracts.plan import TARGETS_WITHOUT_DROP_LOG, FlowPlan

from nagi_reports.analysis.recorded import (
    RecordedRun,
)


def has_full_drop_log(flow: FlowPlan, recorded: RecordedRun) -> bool:
    """Return whether the drop logs of emulator and switches have every drop on the flow's path."""
    plan = recorded.plan
    if plan.switch_target not in TARGETS_WITHOUT_DROP_LOG:
        return True
    return all(plan.switch_settings(direction) is None for direction in flow.path)


def count_drops(flow: FlowPlan, recorded: RecordedRun) -> tuple[int | None, int, int]:
    """Return the queue drops, channel losses and transmitted packets along a flow's path.

    Queue drops are None if a switch does not report them. At a station of a shared medium, packets
    to all destinations count, and channel losses are the packets that the station gave up.
    """
    overflows: int | None = 0
    losses = transmitted = 0
    for direction in flow.path:
        if direction.sender is not None:
            packets = recorded.links.medium(direction.link).station(direction.sender).packets
            losses += packets.given_up
            transmitted += packets.delivered + packets.given_up
            overflows = None if overflows is None else overflows + packets.dropped_by_queue
            continue
        link = next(link for link in recorded.links.links if link.name == direction.link)
        account = link.forward if direction.direction == "forward" else link.backward
        losses += account.packets.channel_losses
        port = None
        if recorded.plan.switch_settings(direction) is not None and recorded.switches is not None:
            port = recorded.switches.port(direction.link, direction.direction)
        if port is None:
            transmitted += account.server.packets
            dropped: int | None = account.packets.dropped_by_queue
        else:
            lost_packets = (
                port.lost or 0
            )  # None if the switch cannot count the losses of a user's pipeline
            sent = account.packets.offered if port.sent is None else port.sent
            losses += lost_packets
            transmitted += sent + lost_packets
            dropped = port.queue_overflows
        overflows = None if overflows is None or dropped is None else overflows + dropped
    return overflows, losses, transmitted
