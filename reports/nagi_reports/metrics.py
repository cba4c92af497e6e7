# SPDX-License-Identifier: Apache-2.0
"""The metrics, each with its definition, unit and source.

These functions compute a metric from numbers. `nagi_captures.capture` takes the numbers from
captures.

Abbreviations of sources:

[AG]      Lee, Bae, Koo, Chung: Measuring Achievement of TCP Schemes over Heterogeneous Wireless
          Networks, 2008, section 3
RFC 2647  Benchmarking Terminology for Firewall Performance (goodput)
RFC 4898  TCP Extended Statistics MIB
RFC 5166  Metrics for the Evaluation of Congestion Control Mechanisms
RFC 6349  Framework for TCP Throughput Testing
RFC 7680  A One-Way Loss Metric for IP Performance Metrics
802.11    IEEE 802.11-2020, clause 10 (retry limits: 10.3.4.4)

FLOW_COLUMNS and MATCH_COLUMNS of `nagi_captures.capture` define the quantities that are counted or
timed packet by packet:

- RTT by timestamps (RFC 7323 section 4) and by sequence numbers (Karn's algorithm, RFC 6298
  section 3)
- bytes in flight
- one-way delay (RFC 7679)
- queueing delay: one-way delay minus the smallest one-way delay of this direction, which removes a
  constant offset of the clocks
- losses and their bursts (RFC 3611 section 4.7.2: a burst begins and ends with a lost packet, and
  contains no 16 consecutive packets that arrived)

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

    A byte counts if it first reaches the receiver during the measurement interval (RFC 2647
    section 3.17; [AG] section 1). The bytes are counted in the receiver's capture, whose packets
    before the interval show which bytes are new in the interval.
    """
    return _divide(first_time_bytes * 8, seconds)


def throughput_bps(ip_bytes: float, seconds: float) -> float:
    """Return the throughput in bit/s: IP bytes that arrive during the interval x 8 / interval.

    Headers and retransmissions are included. RFC 5166 section 2.1.1 distinguishes throughput from
    goodput. The bytes are counted in the receiver's capture.
    """
    return _divide(ip_bytes * 8, seconds)


def agi(goodput: float, bottleneck: float) -> float:
    """Return the achieved goodput index a = g / b, both in bit/s ([AG] equation 1).

    Achieved goodput is the pair AG = (g, b) of the goodput and the objective b ([AG] section 3.1).
    The objective is the smallest rate that is configured on the flow's path. The rate of a trace is
    its mean over the time in which the link sends the packets that arrive within the measurement
    interval (nagi_contracts.capacity).
    """
    return _divide(goodput, bottleneck)


def agi_ceiling(payload_bytes: float, packet_bytes: float) -> float:
    """Return the largest AGI that headers permit: payload / IP bytes of a full-size segment.

    Example: 1,000 bytes of payload with timestamps give 1000 / 1052 = 0.951.
    """
    return _divide(payload_bytes, packet_bytes)


def agi_of_ceiling(index: float, ceiling: float) -> float:
    """Return AGI / ceiling, the share of the achievable goodput that was achieved.

    The paper's grades, such as "outstanding" from 0.95 on, are applied to this share.
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

    Sources: RFC 5166 section 2.1.1, RFC 6349 section 4.1.

    Args:
        first_ns: When the receiver captured the flow's first packet (the SYN, unless it was not
            captured).
        last_ns: When the receiver captured the last payload byte delivered for the first time.
    """
    return (last_ns - first_ns) / 1e9


def retransmission_rate(retransmitted: float, sent: float) -> float:
    """Return the share of the sent data segments that contain a byte that was sent before.

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

    The mean RTT is measured during the transfer. The base RTT is the configured propagation delay
    of both directions or, if no delay is configured, the smallest measured RTT. RFC 6349
    section 4.3.
    """
    return _divide(mean_rtt_s - base_rtt_s, base_rtt_s)


def loss_rate(lost: float, sent: float) -> float:
    """Return the share of the packets sent that never arrive.

    RFC 7680: Type-P-One-way-Packet-Loss-Average. The captures at sender and receiver are compared.
    A retransmission counts as another packet.
    """
    return _divide(lost, sent)


def link_drop_probability(given_up: int, tried: int) -> float:
    """Return the share of the tried packets that stations of shared media gave up.

    A station gives a packet up at the retry limit (802.11). A packet counts at each station that
    tried to send it.

    Args:
        given_up: Number of packets given up.
        tried: Number of packets delivered or given up. Packets that the station's queue dropped
            were not tried.
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
    frame_start_ns: npt.NDArray[np.int64],
    frame_end_ns: npt.NDArray[np.int64],
    start_ns: int,
    end_ns: int,
) -> float:
    """Return the share of the interval in which at least one frame was on the air.

    The time of frames that overlap, such as frames of stations far apart, counts once.

    Args:
        frame_start_ns: Start of each frame.
        frame_end_ns: End of each frame.
        start_ns: Begin of the interval.
        end_ns: End of the interval.
    """
    starts, ends = (
        np.clip(instants, start_ns, end_ns) for instants in (frame_start_ns, frame_end_ns)
    )
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    covered_until = np.append(start_ns, ends[:-1])  # the end of all earlier frames
    on_air_ns = np.maximum(ends - np.maximum(starts, covered_until), 0).sum()
    return _divide(float(on_air_ns), end_ns - start_ns)


def time_mean(time_ns: npt.NDArray[np.int64], value: Floats, start_ns: int, end_ns: int) -> float:
    """Return the mean over time, in [start_ns, end_ns), of a quantity that changes in steps.

    Examples are bytes in flight (RFC 4898, tcpEStatsAppSndNxt - tcpEStatsAppSndUna), congestion
    window (tcpEStatsPerfCurCwnd) and the receiver's window (tcpEStatsPerfCurRwinRcvd). Time before
    the first instant is left out, because the quantity has no value there. Return nan if the
    quantity has no value in the interval.

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

    The index is 1/n if one flow has everything, and 1 for equal shares. Jain, Chiu, Hawe, 1984;
    RFC 5166 section 2.3.1.
    """
    x = _to_array(rates)
    return _divide(float(x.sum()) ** 2, len(x) * float((x * x).sum()))


def product_measure(rates: Rates) -> float:
    """Return the product of the flows' rates, in (unit of `rates`)^n.

    For a given sum of rates, the product is largest if all rates are equal. Give rates in Mb/s or
    as shares of the bottleneck. RFC 5166 section 2.3.1.
    """
    x = _to_array(rates)
    return float(x.prod()) if len(x) else math.nan


def max_min_ratio(rates: Rates) -> float:
    """Return the ratio of the smallest to the largest rate, from 0 to 1.

    Flows are epsilon-fair (RFC 5166 section 2.3.1) if the ratio is at least 1 - epsilon. If all
    flows share one bottleneck, only the max-min fair allocation (section 2.3.2) has the ratio 1.
    """
    x = _to_array(rates)
    return _divide(float(x.min()), float(x.max())) if len(x) else math.nan


def proportional_fairness(rates: Rates) -> float:
    """Return the sum of ln x, which the proportionally fair allocation maximises.

    A rate of 0 makes the sum -inf. Sums can be compared only if `rates` have the same unit. Kelly,
    Maulloo, Tan, 1998; RFC 5166 section 2.3.2.
    """
    x = _to_array(rates)
    if len(x) == 0:
        return math.nan
    return float(np.log(x).sum()) if x.all() else -math.inf


def potential_delay(rates: Rates) -> float:
    """Return the sum of 1 / x, which the allocation of minimum potential delay minimises.

    With rates in bit/s, the sum is the total time in s that the flows take for one bit each. A rate
    of 0 makes the sum inf. Massoulié, Roberts, 1999; RFC 5166 section 2.3.2.
    """
    x = _to_array(rates)
    if len(x) == 0:
        return math.nan
    return float((1 / x).sum()) if x.all() else math.inf


def shares(rates: Rates) -> npt.NDArray[np.float64]:
    """Return each flow's rate divided by the sum of all rates; nan if the sum is 0."""
    x = _to_array(rates)
    return x / x.sum() if x.sum() else np.full(len(x), math.nan)


def harm(alone: float, competing: float, *, more_is_better: bool = True) -> float:
    """Return the harm that competitors do to a flow, from 0 (none) to 1 (the largest).

    If more of the metric is better (goodput), harm is (alone - competing) / alone. If less is
    better (RTT), harm is (competing - alone) / competing. Harm is negative if the metric is better
    with competitors. R. Ware, M. K. Mukerjee, S. Seshan, J. Sherry: Beyond Jain's Fairness Index:
    Setting the Bar for the Deployment of Congestion Control Algorithms, HotNets 2019.

    Args:
        alone: The metric without competitors.
        competing: The metric with competitors, in the same unit.
        more_is_better: Whether a larger value is better.
    """
    if more_is_better:
        return _divide(alone - competing, alone)
    return _divide(competing - alone, competing)


def convergence_time_s(
    time_s: Floats,
    rates: Floats,
    start_s: float,
    delta: float = 0.1,
    hold_s: float | None = None,
) -> float:
    """Return the time in s that flows take to share fairly, counted from `start_s`.

    Flows share fairly while the rate of each of n flows is between (1 - delta) / n and (1 + delta)
    / n of the sum of rates. The time ends when they begin to share fairly for `hold_s`. It is the
    delta-fair convergence time of RFC 5166 section 2.3.3 (Bansal, Balakrishnan, Floyd, Shenker,
    2001), extended to n flows and any initial shares. The intervals must be longer than a few RTTs,
    because rates over short intervals vary with the congestion windows and never converge.

    Args:
        time_s: The end of each interval; all intervals have the same length.
        rates: The flows' rates in any common unit: one row per interval, one column per flow.
        start_s: Start of the last flow.
        delta: Permitted deviation from the fair share, relative to the fair share.
        hold_s: How long the shares must stay fair; None means until the last interval.

    Returns:
        The time; inf if the flows do not converge; nan if all intervals end before `start_s`, or
            less than `hold_s` after it.
    """
    is_after_start = time_s > start_s
    rates, ends = rates[is_after_start], time_s[is_after_start]
    if len(rates) == 0 or (hold_s is not None and ends[-1] - start_s < hold_s):
        return math.nan
    total = rates.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation = np.abs(rates / total * rates.shape[1] - 1)
    fair = (deviation <= delta).all(axis=1)  # False for nan, where no flow sent anything
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
