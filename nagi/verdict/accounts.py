# SPDX-License-Identifier: Apache-2.0
"""Measure checks from links.json, which the emulator writes when it ends, and from node records."""

from __future__ import annotations

from collections import defaultdict

from nagi_contracts.links import DirectionAccount, Lateness, PortAccount, StationAccount

from nagi.records.run import RunRecords
from nagi.verdict.values import Evidence, Value

Values = defaultdict[str, list[Value]]  # check -> values


def measure_accounts(run: RunRecords) -> Evidence:
    """Measure the checks whose values are in links.json and in the records of nodes.

    If the emulator did not end properly, the result has a reason why the run is invalid.
    """
    values: Values = defaultdict(list)
    links = run.links
    values["records_lost"].append((links.records_lost, links.executable))
    for link in links.links:
        for name, direction in (("forward", link.forward), ("backward", link.backward)):
            subject = f"{link.name} {name}"
            add_packets(values, direction, subject)
            values["changes"].append((len(direction.changes), subject))
        for port in (link.a, link.b):
            add_interface(values, port, port.interface)
    for node in run.nodes.values():
        values["agent_lateness"].append((node.late_s, node.node))
        if node.memory_pressures is not None:
            values["memory_pressures"].append((node.memory_pressures, node.node))
        for capture in node.captures:
            missing_packets = capture.dropped + max(0, capture.received - capture.captured)
            values["capture_drops"].append((missing_packets, capture.file))
        for interface, offloads in node.offloads.items():
            subject = f"{node.node} {interface}: {', '.join(offloads)}"
            values["offloads"].append((len(offloads), subject))
    return Evidence(
        values=values,
        reasons=[]
        if links.complete
        else ["the emulator did not end properly, so its counts are preliminary"],
    )


def add_packets(values: Values, account: DirectionAccount | StationAccount, subject: str) -> None:
    """Add quantiles of the lateness of packets in ms, and the number of unaccounted packets.

    Without packets, only the number of unaccounted packets is added.

    Args:
        values: The values of all checks, to which values are added.
        account: The counters that the emulator wrote for a direction or station.
        subject: The name of the direction or station.
    """
    add_transit_error(values, account.transit_error_ns, subject)
    packets = account.packets
    if packets.offered:
        add_arrival_lateness(values, account.arrival_lateness_ns, subject)
    values["unaccounted"].append((abs(packets.offered - packets.accounted), subject))


def add_transit_error(values: Values, lateness: Lateness, subject: str) -> None:
    """Add quantiles of the lateness of packets in ms: time of sending minus due time.

    Nothing is added if no packet was sent.
    """
    if lateness.count:
        values["transit_error_median"].append((lateness.median / 1e6, subject))
        values["transit_error_p99"].append((lateness.p99 / 1e6, subject))
        values["transit_error_max"].append((lateness.max / 1e6, subject))


def add_arrival_lateness(values: Values, lateness: Lateness, subject: str) -> None:
    """Add quantiles, in ms, of the time from a packet's arrival until the emulator read it."""
    values["arrival_lateness_p99"].append((lateness.p99 / 1e6, subject))
    values["arrival_lateness_max"].append((lateness.max / 1e6, subject))


def add_interface(values: Values, port: PortAccount, subject: str) -> None:
    """Add the numbers of packets that an interface lost, did not send, or changed by an offload."""
    values["emulator_drops"].append((port.socket_drops, subject))
    values["merged_segments"].append((port.oversized, subject))
    values["missing_checksums"].append((port.checksum_missing, subject))
    values["send_failures"].append((port.send_failures, subject))
