# SPDX-License-Identifier: Apache-2.0
"""The row of results of one flow, and its goodput over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from nagi_captures.capture import match, scan
from nagi_captures.flow_rows import matches_flow, merge_match_rows, merge_scan_rows
from nagi_contracts.capacity import compute_bottleneck_bps
from nagi_contracts.plan import FlowPlan, LinkDirection, RunPlan

from nagi_reports import applications
from nagi_reports.analysis.drops import count_drops
from nagi_reports.analysis.losses import compute_loss_columns
from nagi_reports.analysis.recorded import (
    RecordedRun,
    list_clock_samples,
    locate_receiver_capture,
    locate_sender_capture,
    to_epoch_ns,
)
from nagi_reports.connections import extract_rtt_s, to_json_value
from nagi_reports.fairness import GoodputWindows, choose_window_s, group_by_bottleneck
from nagi_reports.metrics import (
    agi,
    agi_ceiling,
    buffer_delay,
    loss_rate,
    tcp_efficiency,
    throughput_bps,
    time_mean,
)

_RTT_STATISTICS = ("min", "mean", "median", "p95", "p99")


def compute_flow_row(recorded: RecordedRun, flow: FlowPlan) -> dict[str, Any]:
    """Return the values of a flow's row of results, by column.

    Columns are left out if their source does not exist: packets of the flow in a capture, hops over
    shared media, or records of an application.
    """
    sent = merge_scan_rows(recorded.scans[locate_sender_capture(flow)].flows, flow)
    received = merge_scan_rows(recorded.scans[locate_receiver_capture(flow)].flows, flow)
    queue_drops, channel_losses, transmitted = count_drops(flow, recorded)
    goodput, measured_s = recorded.compute_goodput_bps(flow), recorded.find_duration_s(flow)
    throughput = throughput_bps(received.ip_bytes_inside if received else 0, measured_s)
    bottleneck = compute_bottleneck_bps(
        recorded.plan, flow, recorded.plan.measure.start_s, recorded.find_end_s(flow)
    )
    values = {
        "flow": flow.name,
        "background": flow.background,
        "scheme": flow.scheme,
        "congestion_control": flow.congestion_control,
        "bottleneck_bps": bottleneck,
        "base_rtt_s": flow.base_rtt_s,
        "measured_s": measured_s,
        "goodput_bps": goodput,
        "agi": agi(goodput, bottleneck),
        "agi_ceiling": agi_ceiling(
            flow.full_payload(sends_datagrams=_sends_datagrams(recorded, flow)), flow.packet_bytes
        ),
        "segments_sent": sent.data_packets if sent else 0,
        "segments_retransmitted": sent.retransmitted_packets if sent else 0,
        "queue_overflows": queue_drops,
        "channel_losses": channel_losses,
        "channel_packets": transmitted,
        "throughput_bps": throughput,
        "cwnd_mean_packets": _compute_mean_cwnd(recorded, flow),
    }
    if sent:
        values |= _measure_at_sender(recorded, flow, sent)
        values |= compute_loss_columns(recorded, flow, sent)
    if sent and received:
        values |= compare_captures(recorded, flow)
    medium_hops = [hop for hop in (*flow.path, *flow.path_back()) if hop.is_hop]
    if medium_hops:
        measure = recorded.plan.measure
        values |= recorded.air.compute_columns(
            recorded.air.select_flow_packets(recorded.read_identities(flow).unique(), medium_hops),
            round(measure.start_s * 1e9),
            round(recorded.find_end_s(flow) * 1e9),
        )
    application = recorded.applications.get(flow.name)
    if application is not None:
        # The verdict lists the hosts that do not share the emulator's clock.
        has_one_clock = not {flow.sender, flow.receiver} & recorded.verdict.clocks.keys()
        values |= applications.compute_columns(application, has_one_clock=has_one_clock)
    return {name: to_json_value(value) for name, value in values.items()}


def _sends_datagrams(recorded: RecordedRun, flow: FlowPlan) -> bool:
    """Return whether the receiver's capture has UDP datagrams of the flow."""
    flows = recorded.scans[locate_receiver_capture(flow)].flows
    return "udp" in set(flows["protocol"][matches_flow(flows, flow)])


def _measure_at_sender(recorded: RecordedRun, flow: FlowPlan, sent: Any) -> dict[str, Any]:
    """Return the columns that follow from the capture at the sender.

    The buffer delay is None if a trace changes the propagation delay, or no RTT was measured.

    Args:
        recorded: The records of the run.
        flow: The flow.
        sent: The flow's row in the scan of the capture.
    """
    acknowledgements = merge_scan_rows(
        recorded.scans[locate_sender_capture(flow)].flows, flow, data=False
    )
    rtt = extract_rtt_s(sent)
    mean_rtt_s = rtt["rtt_mean_s"]
    round_trip = [*flow.path, *flow.path_back()]
    has_fixed_delay = not _has_delay_trace(recorded.plan, round_trip)
    return {
        "tcp_efficiency": tcp_efficiency(
            sent.payload_bytes_inside, sent.retransmitted_bytes_inside
        ),
        **{f"rtt_{name}_s": rtt[f"rtt_{name}_s"] for name in _RTT_STATISTICS},
        "buffer_delay": buffer_delay(mean_rtt_s, flow.base_rtt_s)
        if mean_rtt_s is not None and has_fixed_delay
        else None,
        "in_flight_mean_bytes": sent.in_flight_mean_bytes,
        "in_flight_max_bytes": sent.in_flight_max_bytes,
        "receive_window_mean_bytes": acknowledgements.window_mean_bytes,
    }


def compare_captures(recorded: RecordedRun, flow: FlowPlan) -> dict[str, Any]:
    """Return the columns of delays and losses, from the captures at sender and receiver.

    Return {} if the captures have no packet of the flow in common, or if the clock of the sender or
    of the receiver is not known, because packets can then not be matched. The columns of queueing
    delay are left out if a trace changes the propagation delay.
    """
    clocks = recorded.verdict.clocks
    if any(node in clocks and clocks[node] is None for node in (flow.sender, flow.receiver)):
        return {}
    manifest, measure = recorded.manifest, recorded.plan.measure
    comparison = match(
        recorded.captures[locate_sender_capture(flow)],
        recorded.captures[locate_receiver_capture(flow)],
        start_ns=to_epoch_ns(manifest, measure.start_s),
        end_ns=to_epoch_ns(manifest, measure.end_s),
        complete=True,  # captures begin before the traffic, and end when all packets have arrived
        clocks=(
            list_clock_samples(manifest, clocks.get(flow.sender)),
            list_clock_samples(manifest, clocks.get(flow.receiver)),
        ),
    )
    row = merge_match_rows(comparison.flows, flow)
    if row is None:
        return {}
    queueing = {
        "queueing_delay_mean_s": row.queueing_mean_ns / 1e9,
        "queueing_delay_p99_s": row.queueing_p99_ns / 1e9,
    }
    return {
        "one_way_delay_mean_s": row.delay_mean_ns / 1e9,
        "one_way_delay_p99_s": row.delay_p99_ns / 1e9,
        **({} if _has_delay_trace(recorded.plan, flow.path) else queueing),
        "loss_rate": loss_rate(row.data_lost, row.data_sent),
        "loss_bursts": row.bursts,
        "loss_burst_packets": row.burst_packets,
        "loss_burst_density": row.burst_density,
        "loss_gap_density": row.gap_density,
    }


def _has_delay_trace(plan: RunPlan, path: Sequence[LinkDirection]) -> bool:
    """Return whether a trace changes the path's propagation delay.

    The propagation delay of each packet is then not known, and so is its queueing delay.
    """
    return any(plan.channel(direction).delay_trace is not None for direction in path)


def _compute_mean_cwnd(recorded: RecordedRun, flow: FlowPlan) -> float:
    """Return the mean over time of the sum of all connections' congestion windows, in packets.

    Return nan if the congestion window was not sampled.
    """
    samples = recorded.tcp_info[recorded.tcp_info["flow"] == flow.name].dropna(subset="snd_cwnd")
    windows = samples.groupby("t_s")["snd_cwnd"].sum()
    return time_mean(
        (windows.index.to_numpy(np.float64) * 1e9).astype(np.int64),
        windows.to_numpy(np.float64),
        round(recorded.plan.measure.start_s * 1e9),
        round(recorded.find_end_s(flow) * 1e9),
    )


def measure_goodput_over_time(recorded: RecordedRun) -> GoodputWindows | None:
    """Return the goodput over time of each flow that shares its bottleneck with another flow.

    The first window begins when the traffic starts. An incomplete last window is left out.

    Return None if no flows share a bottleneck, or the traffic is shorter than a window.
    """
    plan = recorded.plan
    flows = [flow for group in group_by_bottleneck(plan) for flow in group.flows]
    width_s = choose_window_s(plan)
    begin_s, end_s = plan.timeline.traffic_s, plan.timeline.traffic_end_s
    window_count = math.floor((end_s - begin_s) / width_s + 1e-9)
    if not flows or not window_count:
        return None
    width_ns = round(width_s * 1e9)
    begins_ns = {
        node: to_epoch_ns(recorded.manifest, begin_s, recorded.verdict.clocks.get(node))
        for node, _ in recorded.captures
    }
    # The windows begin when the traffic starts, but recorded.scans when the measurement starts. So
    # each capture is scanned again, once for all flows in it.
    scans = {
        capture: scan(
            recorded.captures[capture], start_ns=begins_ns[capture[0]], interval_ns=width_ns
        )
        for capture in {locate_receiver_capture(flow) for flow in flows}
    }
    rates = {}
    for flow in flows:
        received_bytes = np.zeros(window_count)
        scan_of_receiver, begin_ns = scans[locate_receiver_capture(flow)], begins_ns[flow.receiver]
        rows = scan_of_receiver.flows.index[matches_flow(scan_of_receiver.flows, flow)]
        if scan_of_receiver.series is not None:
            intervals = scan_of_receiver.series[scan_of_receiver.series["flow"].isin(rows)]
            index = ((intervals["start_ns"] - begin_ns) // width_ns).to_numpy()
            is_inside = (index >= 0) & (index < window_count)
            first_time_bytes = intervals["first_time_bytes"].to_numpy()
            np.add.at(received_bytes, index[is_inside], first_time_bytes[is_inside])
        rates[flow.name] = received_bytes * 8 / width_s
    return GoodputWindows(width_s, begin_s + width_s * np.arange(1, window_count + 1), rates)
