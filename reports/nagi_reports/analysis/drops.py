# SPDX-License-Identifier: Apache-2.0
"""Counts of packets dropped on a flow's path, from the counters in links.json and switches.json."""

from __future__ import annotations

from nagi_contracts.plan import TARGETS_WITHOUT_DROP_LOG, FlowPlan

from nagi_reports.analysis.recorded import (
    RecordedRun,
)


def has_full_drop_log(flow: FlowPlan, recorded: RecordedRun) -> bool:
    """Return whether every drop on the flow's path is in the log of the emulator or of a switch."""
    plan = recorded.plan
    if plan.switch_target not in TARGETS_WITHOUT_DROP_LOG:
        return True
    return all(plan.switch_settings(direction) is None for direction in flow.path)


def count_drops(flow: FlowPlan, recorded: RecordedRun) -> tuple[int | None, int, int]:
    """Return the queue drops, channel losses and transmitted packets along a flow's path.

    Queue drops are None if a switch on the path does not report them. On a shared medium, all
    packets of the sending station count, also packets to other destinations; the channel losses of
    a medium are the packets that this station gave up.
    """
    queue_drops: int | None = 0
    channel_losses = transmitted = 0
    for direction in flow.path:
        if direction.sender is not None:
            packets = recorded.links.medium(direction.link).station(direction.sender).packets
            channel_losses += packets.given_up
            transmitted += packets.delivered + packets.given_up
            if queue_drops is not None:
                queue_drops += packets.dropped_by_queue
            continue
        link = next(link for link in recorded.links.links if link.name == direction.link)
        counters = link.forward if direction.direction == "forward" else link.backward
        channel_losses += counters.packets.channel_losses
        port = None
        if recorded.plan.switch_settings(direction) is not None and recorded.switches is not None:
            port = recorded.switches.port(direction.link, direction.direction)
        if port is None:
            transmitted += counters.server.packets
            dropped: int | None = counters.packets.dropped_by_queue
        else:
            # port.lost is None if the switch cannot count the losses of a user's pipeline.
            lost_packets = port.lost or 0
            sent = counters.packets.offered if port.sent is None else port.sent
            channel_losses += lost_packets
            transmitted += sent + lost_packets
            dropped = port.queue_overflows
        queue_drops = None if queue_drops is None or dropped is None else queue_drops + dropped
    return queue_drops, channel_losses, transmitted
