# SPDX-License-Identifier: Apache-2.0
"""The metrics, each with its definition, unit and source. Numbers in, a number out: what is counted
in captures is counted by `nagi_captures.capture`.

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

A metric that cannot be told (nothing was sent, no time passed) is nan.
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
    """Goodput g in bit/s: payload bytes delivered to the receiver for the first time during the
    measurement interval x 8 / interval. RFC 2647 section 3.17; [AG] section 1.

    From the receiver's capture: what came before the interval tells what is new in it.
    """
    return _ratio(first_time_bytes * 8, seconds)


def throughput_bps(ip_bytes: float, seconds: float) -> float:
    """Throughput in bit/s: IP bytes from sender to receiver, headers and retransmissions included,
    that arrive during the interval x 8 / interval. RFC 5166 section 2.1.1 (which tells it from
    goodput). From the receiver's capture."""
    return _ratio(ip_bytes * 8, seconds)


def agi(goodput: float, bottleneck: float) -> float:
    """Achieved goodput index a = g / b, both in bit/s. [AG] equation 1.

    Achieved goodput is the pair AG = (g, b): what was delivered, and the objective, b, the smallest
    configured rate on the flow's path; of a rate trace the mean over what could reach the receiver
    in the same interval (nagi_contracts.capacity). [AG] section 3.1.
    """
    return _ratio(goodput, bottleneck)


def agi_ceiling(payload_bytes: float, packet_bytes: float) -> float:
    """The largest AGI that headers permit: payload / IP bytes of a full-size segment. 1,000 bytes
    of payload with timestamps: 1000 / 1052 = 0.951."""
    return _ratio(payload_bytes, packet_bytes)


def agi_of_ceiling(index: float, ceiling: float) -> float:
    """AGI / ceiling: the share achieved of what could have been achieved; what words like the
    paper's "outstanding" (0.95) are held against."""
    return _ratio(index, ceiling)


def nagi(indices: Iterable[float]) -> float:
    """Normalised achieved goodput index: the mean of the AGI over the topologies of a set.
    [AG] equation 2. Over an empty set, or one with an AGI that is not known (nan), it is nan."""
    known = list(indices)
    return _ratio(sum(known), len(known))


def transfer_time_s(first_ns: int, last_ns: int) -> float:
    """Transfer time of a flow of a given size in s: from its first packet (the SYN, or the first
    captured) to the last payload byte delivered for the first time. RFC 5166 section 2.1.1, RFC
    6349 section 4.1. From the receiver's capture."""
    return (last_ns - first_ns) / 1e9


def retransmission_rate(retransmitted: float, sent: float) -> float:
    """Share of the data segments sent that carry a byte sent before (RFC 4898,
    tcpEStatsPerfSegsRetrans / tcpEStatsPerfDataSegsOut). From the sender's capture."""
    return _ratio(retransmitted, sent)


def tcp_efficiency(sent_bytes: float, retransmitted_bytes: float) -> float:
    """TCP efficiency: (payload bytes sent - payload bytes retransmitted) / payload bytes sent, as a
    share. RFC 6349 section 4.2. From the sender's capture."""
    return _ratio(sent_bytes - retransmitted_bytes, sent_bytes)


def buffer_delay(mean_rtt_s: float, base_rtt_s: float) -> float:
    """Buffer delay: (mean RTT during the transfer - base RTT) / base RTT, as a share of the base
    RTT. RFC 6349 section 4.3. Both in s; the base RTT is the path's propagation delay there and
    back where it is configured, else the smallest RTT seen."""
    return _ratio(mean_rtt_s - base_rtt_s, base_rtt_s)


def loss_rate(lost: float, sent: float) -> float:
    """Share of the packets sent that never arrive (RFC 7680: Type-P-One-way-Packet-Loss-Average).
    From both captures: retransmissions are packets of their own."""
    return _ratio(lost, sent)


def link_drop_probability(given_up: int, tried: int) -> float:
    """Share of the packets that stations of media tried to send, and were over with, that they gave
    up at the retry limit (802.11). A packet counts at each station that tried to send it; one that
    its queue dropped was never tried."""
    return _ratio(given_up, tried)


def retries_per_hop(attempts: Floats) -> float:
    """Attempts beside the first per packet at a station of a medium, mean; `attempts`: of each. An
    attempt is an RTS, or where none is sent the packet (802.11)."""
    return _ratio(float((attempts - 1).sum()), len(attempts))


def airtime_share(
    start_ns: npt.NDArray[np.int64], end_ns: npt.NDArray[np.int64], begin_ns: int, over_ns: int
) -> float:
    """Share of the time in [begin, over) in which at least one of the frames from `start` to `end`
    was on the air. Frames at the same time in different places count once."""
    starts, ends = (np.clip(each, begin_ns, over_ns) for each in (start_ns, end_ns))
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    covered = np.append(begin_ns, ends[:-1])  # up to where the frames before it reach
    on_air = np.maximum(ends - np.maximum(starts, covered), 0).sum()
    return _ratio(float(on_air), over_ns - begin_ns)


def time_mean(time_ns: npt.NDArray[np.int64], value: Floats, start_ns: int, end_ns: int) -> float:
    """The mean over time, in [start, end), of what is `value` from each instant to the next: bytes
    in flight (sent and not yet acknowledged; RFC 4898, tcpEStatsAppSndNxt - tcpEStatsAppSndUna),
    congestion window (tcpEStatsPerfCurCwnd), receiver's window (tcpEStatsPerfCurRwinRcvd).

    Instants in ns, nondecreasing. Before the first there is no value: the mean is over the rest.
    """
    if len(time_ns) == 0:
        return math.nan
    begins = np.clip(time_ns, start_ns, end_ns)
    ends = np.clip(np.append(time_ns[1:], max(end_ns, int(time_ns[-1]))), start_ns, end_ns)
    weights = (ends - begins).astype(np.float64)
    return _ratio(float((value * weights).sum()), float(weights.sum()))


def jain_index(rates: Rates) -> float:
    """Jain's fairness index (sum x)^2 / (n sum x^2), from 1/n (one has everything) to 1 (all have
    the same). Jain, Chiu, Hawe, 1984; RFC 5166 section 2.3.1. `rates` in one unit, any."""
    x = _rates(rates)
    return _ratio(float(x.sum()) ** 2, len(x) * float((x * x).sum()))


def product_measure(rates: Rates) -> float:
    """The product of the flows' rates, largest for equal ones if their sum is given. RFC 5166
    section 2.3.1. In (unit of `rates`)^n: give rates in Mb/s or as shares of the bottleneck."""
    x = _rates(rates)
    return float(x.prod()) if len(x) else math.nan


def max_min_ratio(rates: Rates) -> float:
    """Max-min fairness as the ratio of the smallest to the largest rate, from 0 to 1: RFC 5166's
    epsilon-fairness (section 2.3.1), where flows are epsilon-fair if it is at least 1 - epsilon.
    Over one bottleneck it is 1 for the max-min fair allocation (section 2.3.2) and no other."""
    x = _rates(rates)
    return _ratio(float(x.min()), float(x.max())) if len(x) else math.nan


def proportional_fairness(rates: Rates) -> float:
    """The sum of ln x, which the proportionally fair allocation has as large as possible (Kelly,
    Maulloo, Tan, 1998; RFC 5166 section 2.3.2). A flow without any rate makes it -inf. Allocations
    compare in one unit of `rates` only."""
    x = _rates(rates)
    if len(x) == 0:
        return math.nan
    return float(np.log(x).sum()) if x.all() else -math.inf


def potential_delay(rates: Rates) -> float:
    """The sum of 1 / x, which the allocation of minimum potential delay has as small as possible
    (Massoulié, Roberts, 1999; RFC 5166 section 2.3.2): in s, the total time the flows take for one
    bit each with `rates` in bit/s. A flow without any rate makes it inf."""
    x = _rates(rates)
    if len(x) == 0:
        return math.nan
    return float((1 / x).sum()) if x.all() else math.inf


def shares(rates: Rates) -> npt.NDArray[np.float64]:
    """Each flow's rate / the sum of all: 1 / n each if they share equally; nan if the sum is 0."""
    x = _rates(rates)
    return x / x.sum() if x.sum() else np.full(len(x), math.nan)


def harm(alone: float, beside: float, *, more_is_better: bool = True) -> float:
    """Harm that competitors do to a flow: of a metric of which more is better (goodput)
    (alone - beside) / alone, of which less is better (RTT) (beside - alone) / beside. 0: none; 1:
    the largest; less than 0: the flow does better beside them.

    R. Ware, M. K. Mukerjee, S. Seshan, J. Sherry: Beyond Jain's Fairness Index: Setting the Bar for
    the Deployment of Congestion Control Algorithms, HotNets 2019. `alone`: the metric
    without competitors; `beside`: with them; in one unit, any.
    """
    if more_is_better:
        return _ratio(alone - beside, alone)
    return _ratio(beside - alone, beside)


def convergence_time_s(
    time_s: Floats,
    shares: Floats,
    start_s: float,
    delta: float = 0.1,
    hold_s: float | None = None,
) -> float:
    """Time in s that flows take to share fairly: from `start` (the last flow's start) to the first
    instant from which on every flow's rate stays within `delta` of the fair share, that is between
    (1 - delta) / n and (1 + delta) / n of the sum, for `hold_s` (None: to the end).

    It is the delta-fair convergence time of RFC 5166 section 2.3.3 (Bansal, Balakrishnan, Floyd,
    Shenker, 2001), for n flows and from wherever they begin. inf: they do not come to it before the
    end; nan: less than `hold_s` is left from `start` to the end. `shares`: a row an interval, a
    column a flow, rates in one unit, any; `time_s`: when each interval ends, all of one length.
    Rates over intervals shorter than some RTTs swing with the windows and never converge.
    """
    inside = time_s > start_s
    rates, ends = shares[inside], time_s[inside]
    if len(rates) == 0 or (hold_s is not None and ends[-1] - start_s < hold_s):
        return math.nan
    total = rates.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        off = np.abs(rates / total * rates.shape[1] - 1)
    fair = (off <= delta).all(axis=1)  # nan, nothing sent, is not
    begins = np.append(start_s, ends[:-1])
    begin: float | None = None
    for at, (is_fair, left) in enumerate(zip(fair, begins, strict=True)):
        if not is_fair:
            begin = None
            continue
        begin = float(left) if begin is None else begin
        held = ends[at] - begin + 1e-9 >= hold_s if hold_s is not None else at == len(fair) - 1
        if held:
            return begin - start_s
    return math.inf


def _rates(rates: Rates) -> npt.NDArray[np.float64]:
    return np.asarray(rates, np.float64)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan
