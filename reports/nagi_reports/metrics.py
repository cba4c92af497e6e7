# SPDX-License-Identifier: Apache-2.0
"""The metrics, each with its definition, unit and source.

These functions map numbers to a number; `nagi_captures.capture` counts what captures contain.

Sources, by the names used below:

[AG]      Lee, Bae, Koo, Chung: Measuring Achievement of TCP Schemes over Heterogeneous Wireless
          Networks, 2008, section 3
RFC 2647  Benchmarking Terminology for Firewall Performance (goodput)
RFC 4898  TCP Extended Statistics MIB
RFC 5166  Metrics for the Evaluation of Congestion Control Mechanisms
RFC 6349  Framework for TCP Throughput Testing
RFC 7680  A One-Way Loss Metric for IP Performance Metrics
802.11    IEEE 802.11-2020, clause 10 (retry limits: 10.3.4.4)

What is counted and timed packet by packet is defined where it is counted (FLOW_COLUMNS and
MATCH_COLUMNS there): RTT by timestamps (RFC 7323 section 4) and by sequence numbers (Karn's
algorithm, RFC 6298 section 3); bytes in flight; one-way delay (RFC 7679) and queueing delay, which
is one-way delay less the smallest of the same direction, so that a constant offset of the clocks
falls out; losses and their bursts (RFC 3611 section 4.7.2: a burst begins and ends with a lost
packet and has no 16 packets received one after the other).

A metric that cannot be computed (nothing was sent, no time passed) is nan.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]
Rates = Sequence[float] | Floats


def goodput_bps(first_time_bytes: float, seconds: float) -> float:
    """Return the goodput g in bit/s: payload bytes delivered for the first time x 8 / interval.

    A byte counts when it first reaches the receiver during the measurement interval (RFC 2647
    section 3.17; [AG] section 1). The number follows from the receiver's capture: packets before
    the interval show which bytes are new in it.
    """
    return _divide(first_time_bytes * 8, seconds)


def throughput_bps(ip_bytes: float, seconds: float) -> float:
    """Return the throughput in bit/s: IP bytes that arrive during the interval x 8 / interval.

    Headers and retransmissions are included. RFC 5166 section 2.1.1 distinguishes throughput from
    goodput. The number follows from the receiver's capture.
    """
    return _divide(ip_bytes * 8, seconds)


def agi(goodput: float, bottleneck: float) -> float:
    """Return the achieved goodput index a = g / b, both in bit/s ([AG] equation 1).

    Achieved goodput is the pair AG = (g, b) of the goodput and the objective b ([AG] section 3.1).
    The objective is the smallest rate configured on the flow's path; for a rate trace, it is the
    mean over the instants from which data can reach the receiver in the interval
    (nagi_contracts.capacity).
    """
    return _divide(goodput, bottleneck)


def agi_ceiling(payload_bytes: float, packet_bytes: float) -> float:
    """Return the largest AGI that headers permit: payload / IP bytes of a full-size segment.

    Example: 1,000 bytes of payload with timestamps give 1000 / 1052 = 0.951.
    """
    return _divide(payload_bytes, packet_bytes)


def agi_of_ceiling(index: float, ceiling: float) -> float:
    """Return AGI / ceiling, the share of the achievable goodput that was achieved.

    Words such as the paper's "outstanding" (0.95) are compared with this share.
    """
    return _divide(index, ceiling)


def nagi(indices: Iterable[float]) -> float:
    """Return the normalised achieved goodput index, the mean AGI over topologies ([AG] equation 2).

    Return nan for an empty set, or if an AGI is nan.
    """
    values = list(indices)
    return _divide(sum(values), len(values))


def transfer_time_s(first_ns: int, last_ns: int) -> float:
    """Return the transfer time of a flow of a given size, in s.

    It lasts from the flow's first packet (the SYN, or the first that was captured) to the last
    payload byte delivered for the first time, by the receiver's capture. RFC 5166 section 2.1.1,
    RFC 6349 section 4.1.
    """
    return (last_ns - first_ns) / 1e9


def retransmission_rate(retransmitted: float, sent: float) -> float:
    """Return the share of the data segments sent that carry a byte sent before.

    RFC 4898: tcpEStatsPerfSegsRetrans / tcpEStatsPerfDataSegsOut, by the sender's capture.
    """
    return _divide(retransmitted, sent)


def tcp_efficiency(sent_bytes: float, retransmitted_bytes: float) -> float:
    """Return the TCP efficiency: (bytes sent - bytes retransmitted) / bytes sent, as a share.

    Bytes are payload, by the sender's capture. RFC 6349 section 4.2.
    """
    return _divide(sent_bytes - retransmitted_bytes, sent_bytes)


def buffer_delay(mean_rtt_s: float, base_rtt_s: float) -> float:
    """Return the buffer delay: (mean RTT - base RTT) / base RTT, as a share of the base RTT.

    The mean RTT is that during the transfer. The base RTT is the propagation delay of the path in
    both directions if that is configured, else the smallest RTT seen. Both are in s. RFC 6349
    section 4.3.
    """
    return _divide(mean_rtt_s - base_rtt_s, base_rtt_s)


def loss_rate(lost: float, sent: float) -> float:
    """Return the share of the packets sent that never arrive.

    RFC 7680: Type-P-One-way-Packet-Loss-Average. It follows from both captures; a retransmission is
    a packet of its own.
    """
    return _divide(lost, sent)


def link_drop_probability(given_up: int, tried: int) -> float:
    """Return the share of packets that stations of media gave up, of those delivered or given up.

    A station gives a packet up at the retry limit (802.11). A packet counts at each station that
    tried to send it; a packet that the station's queue dropped was not tried.
    """
    return _divide(given_up, tried)


def retries_per_hop(attempts: Floats) -> float:
    """Return the mean number of retries per packet at a station of a medium.

    An attempt is an RTS or, without RTS, the packet itself (802.11).

    Args:
        attempts: Number of attempts of each packet, the first included.
    """
    return _divide(float((attempts - 1).sum()), len(attempts))


def airtime_share(
    start_ns: npt.NDArray[np.int64], end_ns: npt.NDArray[np.int64], begin_ns: int, over_ns: int
) -> float:
    """Return the share of the interval in which at least one frame was on the air.

    Frames at the same time in different places count once.

    Args:
        start_ns: Start of each frame.
        end_ns: End of each frame.
        begin_ns: Begin of the interval.
        over_ns: End of the interval.
    """
    starts, ends = (np.clip(instants, begin_ns, over_ns) for instants in (start_ns, end_ns))
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    covered_until = np.append(begin_ns, ends[:-1])  # the end of all earlier frames
    on_air = np.maximum(ends - np.maximum(starts, covered_until), 0).sum()
    return _divide(float(on_air), over_ns - begin_ns)


def time_mean(time_ns: npt.NDArray[np.int64], value: Floats, start_ns: int, end_ns: int) -> float:
    """Return the mean over time, in [start, end), of a quantity that changes in steps.

    Examples are bytes in flight (RFC 4898, tcpEStatsAppSndNxt - tcpEStatsAppSndUna), congestion
    window (tcpEStatsPerfCurCwnd) and the receiver's window (tcpEStatsPerfCurRwinRcvd). Before the
    first instant there is no value: the mean is over the rest.

    Args:
        time_ns: Nondecreasing instants at which the quantity changes.
        value: The value from each of these instants on.
        start_ns: Begin of the interval.
        end_ns: End of the interval.
    """
    if len(time_ns) == 0:
        return math.nan
    begins = np.clip(time_ns, start_ns, end_ns)
    ends = np.clip(np.append(time_ns[1:], max(end_ns, int(time_ns[-1]))), start_ns, end_ns)
    weights = (ends - begins).astype(np.float64)
    return _divide(float((value * weights).sum()), float(weights.sum()))


def jain_index(rates: Rates) -> float:
    """Return Jain's fairness index (sum x)^2 / (n sum x^2) of rates in any common unit.

    It is 1/n if one flow has everything, and 1 for equal shares. Jain, Chiu, Hawe, 1984; RFC 5166
    section 2.3.1.
    """
    x = _to_array(rates)
    return _divide(float(x.sum()) ** 2, len(x) * float((x * x).sum()))


def product_measure(rates: Rates) -> float:
    """Return the product of the flows' rates, in (unit of `rates`)^n.

    For a given sum it is largest if all rates are equal. Give rates in Mb/s or as shares of the
    bottleneck. RFC 5166 section 2.3.1.
    """
    x = _to_array(rates)
    return float(x.prod()) if len(x) else math.nan


def max_min_ratio(rates: Rates) -> float:
    """Return the ratio of the smallest to the largest rate, from 0 to 1.

    Flows are epsilon-fair (RFC 5166 section 2.3.1) if it is at least 1 - epsilon. Over one
    bottleneck it is 1 for the max-min fair allocation (section 2.3.2) only.
    """
    x = _to_array(rates)
    return _divide(float(x.min()), float(x.max())) if len(x) else math.nan


def proportional_fairness(rates: Rates) -> float:
    """Return the sum of ln x, which the proportionally fair allocation maximises.

    A rate of 0 makes it -inf. Compare allocations in one unit of `rates` only. Kelly, Maulloo, Tan,
    1998; RFC 5166 section 2.3.2.
    """
    x = _to_array(rates)
    if len(x) == 0:
        return math.nan
    return float(np.log(x).sum()) if x.all() else -math.inf


def potential_delay(rates: Rates) -> float:
    """Return the sum of 1 / x, which the allocation of minimum potential delay minimises.

    With rates in bit/s, it is the total time in s that the flows take for one bit each. A rate of 0
    makes it inf. Massoulié, Roberts, 1999; RFC 5166 section 2.3.2.
    """
    x = _to_array(rates)
    if len(x) == 0:
        return math.nan
    return float((1 / x).sum()) if x.all() else math.inf


def shares(rates: Rates) -> npt.NDArray[np.float64]:
    """Return each flow's rate divided by the sum of all rates; nan if the sum is 0."""
    x = _to_array(rates)
    return x / x.sum() if x.sum() else np.full(len(x), math.nan)


def harm(alone: float, beside: float, *, more_is_better: bool = True) -> float:
    """Return the harm that competitors do to a flow, from 0 (none) to 1 (the largest).

    If more is better (goodput), it is (alone - beside) / alone; if less is better (RTT), it is
    (beside - alone) / beside. It is negative if the flow does better with competitors. R. Ware, M.
    K. Mukerjee, S. Seshan, J. Sherry: Beyond Jain's Fairness Index: Setting the Bar for the
    Deployment of Congestion Control Algorithms, HotNets 2019.

    Args:
        alone: The metric without competitors.
        beside: The metric with competitors, in the same unit.
        more_is_better: Whether a larger value is better.
    """
    if more_is_better:
        return _divide(alone - beside, alone)
    return _divide(beside - alone, beside)


def convergence_time_s(
    time_s: Floats,
    shares: Floats,
    start_s: float,
    delta: float = 0.1,
    hold_s: float | None = None,
) -> float:
    """Return the time in s that flows take to share fairly, counted from `start_s`.

    It ends at the first instant from which on the rate of each of n flows stays within `delta` of
    the fair share, that is between (1 - delta) / n and (1 + delta) / n of the sum. It is the
    delta-fair convergence time of RFC 5166 section 2.3.3 (Bansal, Balakrishnan, Floyd, Shenker,
    2001), for n flows and any initial shares. Rates over intervals of only a few RTTs vary with the
    windows and never converge.

    Args:
        time_s: When each interval ends; all intervals have the same length.
        shares: One row per interval, one column per flow; rates in any common unit.
        start_s: Start of the last flow.
        delta: Permitted relative deviation from the fair share.
        hold_s: How long the shares must stay fair; None means to the end.

    Returns:
        The time; inf if the flows do not converge; nan if less than `hold_s` remains after
            `start_s`.
    """
    inside = time_s > start_s
    rates, ends = shares[inside], time_s[inside]
    if len(rates) == 0 or (hold_s is not None and ends[-1] - start_s < hold_s):
        return math.nan
    total = rates.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation = np.abs(rates / total * rates.shape[1] - 1)
    fair = (deviation <= delta).all(axis=1)  # False for nan: nothing was sent
    begins = np.append(start_s, ends[:-1])
    begin: float | None = None
    for index, (is_fair, window_begin) in enumerate(zip(fair, begins, strict=True)):
        if not is_fair:
            begin = None
            continue
        begin = float(window_begin) if begin is None else begin
        has_converged = (
            ends[index] - begin + 1e-9 >= hold_s if hold_s is not None else index == len(fair) - 1
        )
        if has_converged:
            return begin - start_s
    return math.inf


def _to_array(rates: Rates) -> npt.NDArray[np.float64]:
    return np.asarray(rates, np.float64)


def _divide(part: float, whole: float) -> float:
    return part / whole if whole else math.nan
