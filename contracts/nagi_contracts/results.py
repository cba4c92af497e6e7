# SPDX-License-Identifier: Apache-2.0
"""results.parquet: one row per flow and run. Each field here is a column of the same name."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from nagi_contracts.base import Contract, PlainNameOrEmpty, is_none
from nagi_contracts.records import FileFate, Status


class ResultRow(Contract):
    """The results of one flow of one run."""

    run_id: PlainNameOrEmpty
    point_id: str = Field(description="id of the point, equal in all labs and builds")
    lab: str
    build: str = Field(description="id of the build that executed the run")
    status: Status = Field(description="status of the run; means are over valid runs only")
    repeat: int
    seed: int
    point: dict[str, str] = Field(
        description="axis -> value; the table has one column `point.AXIS` per axis"
    )
    flow: str
    background: bool = Field(
        False, description="whether the flow is cross traffic, which is left out of mean values"
    )
    scheme: str
    congestion_control: str
    bottleneck_bps: int = Field(
        description="smallest configured rate on the path, bit/s; a rate trace counts with its "
        "mean over the time in which it sends what arrives in the measurement interval"
    )
    base_rtt_s: float = Field(description="propagation delay of both directions, s")
    measured_s: float = Field(
        description="length of the measurement interval, s; for a transfer that was completed "
        "earlier, the time until its last data arrived"
    )
    goodput_bps: float | None = Field(
        description="payload bytes delivered for the first time x 8 / interval, bit/s"
    )
    agi: float | None = Field(description="achieved goodput index (AGI): goodput / bottleneck")
    agi_ceiling: float = Field(description="largest AGI possible with the size of headers")
    segments_sent: int | None = Field(description="data segments in the sender's capture")
    segments_retransmitted: int | None = Field(
        description="data segments with bytes that had been sent before"
    )
    queue_overflows: int | None = Field(description="packets dropped by queues on the path")
    channel_losses: int | None = Field(description="packets lost on channels of the path")
    channel_packets: int | None = Field(
        description="packets transmitted on channels of the path, lost or not"
    )
    throughput_bps: float | None = Field(
        None, description="IP bytes that reached the receiver x 8 / interval, bit/s (RFC 5166)"
    )
    tcp_efficiency: float | None = Field(
        None, description="payload bytes sent for the first time / all payload bytes (RFC 6349)"
    )
    rtt_min_s: float | None = Field(
        None,
        description="smallest RTT at the sender, s; by TCP timestamps, or by sequence numbers if "
        "there are no timestamps",
    )
    rtt_mean_s: float | None = Field(None, description="mean RTT, s")
    rtt_median_s: float | None = Field(None, description="median RTT, s")
    rtt_p95_s: float | None = Field(None, description="95th percentile of the RTT, s")
    rtt_p99_s: float | None = Field(None, description="99th percentile of the RTT, s")
    buffer_delay: float | None = Field(
        None,
        description="(mean RTT - base RTT) / base RTT (RFC 6349); null if a trace changes the "
        "path's delay",
    )
    one_way_delay_mean_s: float | None = Field(
        None,
        description="mean one-way delay from the sender's capture to the receiver's, s (RFC 7679)",
    )
    one_way_delay_p99_s: float | None = Field(
        None, description="99th percentile of the one-way delay, s"
    )
    queueing_delay_mean_s: float | None = Field(
        None,
        description="mean of the one-way delay minus the flow's smallest one-way delay, s; null if "
        "a trace changes the path's delay",
    )
    queueing_delay_p99_s: float | None = Field(
        None, description="99th percentile of the queueing delay, s"
    )
    loss_rate: float | None = Field(
        None, description="data packets that never arrived / data packets sent (RFC 7680)"
    )
    loss_bursts: int | None = Field(
        None, description="number of bursts of losses, Gmin 16 (RFC 3611, section 4.7.2)"
    )
    loss_burst_packets: float | None = Field(
        None, description="mean length of a burst of losses, in packets, lost or not"
    )
    loss_burst_density: float | None = Field(
        None, description="packets lost / packets sent, within bursts of losses"
    )
    loss_gap_density: float | None = Field(
        None, description="packets lost / packets sent, outside bursts of losses"
    )
    completed_share: float | None = Field(
        None,
        description="completed transfers / begun transfers; like all metrics of applications, over "
        "the whole run",
    )
    completion_time_s: float | None = Field(
        None,
        description="for a transfer of a given size: time from connect() until its last byte was "
        "acknowledged, s",
    )
    transfer_goodput_bps: float | None = Field(
        None,
        description="for a transfer of a given size: size / completion time, bit/s; for a transfer "
        "that was given up: received size / time until it was given up",
    )
    fct_median_s: float | None = Field(
        None, description="median flow completion time of completed transfers or requests, s"
    )
    fct_p95_s: float | None = Field(
        None, description="95th percentile of the flow completion time, s"
    )
    fct_p99_s: float | None = Field(
        None, description="99th percentile of the flow completion time, s"
    )
    tokens_per_rtt: float | None = Field(
        None, description="mean number of tokens that a sender with a token bucket uses per RTT"
    )
    tokens_permitted_per_rtt: float | None = Field(
        None, description="mean number of tokens that arrive per RTT"
    )
    playback_success: float | None = Field(
        None, description="share of a player's attempts to read that found enough data to play"
    )
    datagram_loss_rate: float | None = Field(
        None, description="share of an application's datagrams that did not arrive"
    )
    datagram_delay_mean_s: float | None = Field(
        None, description="mean one-way delay of datagrams, s; null if the hosts' clocks differ"
    )
    datagram_delay_p99_s: float | None = Field(
        None, description="99th percentile of the one-way delay of datagrams, s"
    )
    datagram_jitter_s: float | None = Field(
        None, description="interarrival jitter after the last datagram, s (RFC 3550)"
    )
    r_factor: float | None = Field(
        None, description="R factor of a voice call (ITU-T G.107); null if the hosts' clocks differ"
    )
    mos: float | None = Field(None, description="mean opinion score of a voice call, 1 to 4.5")
    in_flight_mean_bytes: float | None = Field(
        None,
        description="bytes sent but not acknowledged: mean over the sender's data packets",
    )
    in_flight_max_bytes: float | None = Field(
        None, description="bytes sent but not acknowledged: maximum"
    )
    cwnd_mean_packets: float | None = Field(
        None, description="mean congestion window of the sender over the interval, packets"
    )
    receive_window_mean_bytes: float | None = Field(
        None, description="window that the receiver advertised: mean over its packets, bytes"
    )
    jain_index: float | None = Field(
        None,
        description="fairness of the goodputs x of n flows that share a bottleneck: "
        "(sum x)^2 / (n sum x^2). For all measures of fairness: the rows of these flows have the "
        "same value, cross traffic is left out, and the value is null if only one flow uses the "
        "bottleneck",
    )
    max_min_ratio: float | None = Field(
        None, description="smallest goodput / largest goodput of the flows at the bottleneck"
    )
    product_measure: float | None = Field(
        None,
        description="product of the goodputs, in Mb/s, of the flows at the bottleneck (RFC 5166)",
    )
    proportional_fairness: float | None = Field(
        None,
        description="sum of ln(goodput in Mb/s) over the flows at the bottleneck; null if one "
        "goodput is 0",
    )
    potential_delay_s: float | None = Field(
        None,
        description="sum of 1 / (goodput in Mb/s) over the flows at the bottleneck: sum of the "
        "times, in s, that the flows need for 1 Mb; null if a goodput is 0",
    )
    convergence_time_s: float | None = Field(
        None,
        description="time from the last flow's start until every flow's share of the goodput, in "
        "windows of 1 s or 10 RTTs, stays within 20 % of the equal share for 5 s, in s (RFC 5166); "
        "null if that never happens",
    )
    reactions: Literal["told", "inferred"] | None = Field(
        None,
        description="source of the loss differentiation. told: events that the scheme reported; "
        "inferred: TCP_INFO; null: unknown. The counts channel_* and queue_* cover the whole run, "
        "and include retransmitted data segments of the flow",
    )
    channel_taken_for_congestion: int | None = Field(
        None,
        description="segments that a channel lost; the sender classified the loss as congestion",
    )
    channel_taken_for_channel: int | None = Field(
        None,
        description="segments that a channel lost; the sender classified the loss as channel loss",
    )
    channel_undecided: int | None = Field(
        None, description="segments that a channel lost; the sender did not classify the loss"
    )
    channel_not_noticed: int | None = Field(
        None, description="segments that a channel lost; the sender did not notice the loss"
    )
    channel_mistaken: float | None = Field(
        None,
        description="channel_taken_for_congestion / number of all segments that a channel lost",
    )
    queue_taken_for_congestion: int | None = Field(
        None,
        description="segments that a queue dropped; the sender classified the loss as congestion",
    )
    queue_taken_for_channel: int | None = Field(
        None,
        description="segments that a queue dropped; the sender classified the loss as channel loss",
    )
    queue_undecided: int | None = Field(
        None, description="segments that a queue dropped; the sender did not classify the loss"
    )
    queue_not_noticed: int | None = Field(
        None, description="segments that a queue dropped; the sender did not notice the loss"
    )
    queue_mistaken: float | None = Field(
        None,
        description="queue_taken_for_channel / number of all segments that a queue dropped",
    )
    mark_reactions: int | None = Field(
        None,
        description="number of window reductions after a congestion mark (ECN) that the scheme "
        "reported",
    )
    sharing_flows: int | None = Field(
        None,
        exclude_if=is_none,
        description="number of flows that share this flow's bottleneck, this flow included",
    )
    share: float | None = Field(
        None,
        exclude_if=is_none,
        description="goodput / sum of the goodputs of the flows that share the bottleneck",
    )
    jain_index_windows: float | None = Field(
        None,
        exclude_if=is_none,
        description="mean of Jain's index in windows of 1 s or 10 RTTs: short-term fairness",
    )
    convergence: Literal["converged", "never", "too short"] | None = Field(
        None,
        exclude_if=is_none,
        description="whether the flows converged; too short: less than 5 s of traffic after the "
        "last flow's start",
    )
    harm_goodput: float | None = Field(
        None,
        exclude_if=is_none,
        description="harm of competing flows to the goodput: (alone - competing) / alone, where "
        "alone is the goodput in the run without competitors, summed over the flows that both runs "
        "have (Ware et al., HotNets 2019). Only in the campaign's table, if the experiment has "
        "`report: competitor`; null for other flows",
    )
    harm_rtt: float | None = Field(
        None,
        exclude_if=is_none,
        description="harm of competing flows to the mean RTT: (competing - alone) / competing",
    )

    link_drop_probability: float | None = Field(
        None,
        exclude_if=is_none,
        description="for media: share of the flow's packets, ACKs included, that stations tried to "
        "send during the interval and gave up at the retry limit; a packet counts once at each "
        "station that tried to send it. For flows that cross no medium, link_drop_probability, "
        "retries_per_hop and airtime_share are null",
    )
    retries_per_hop: float | None = Field(
        None,
        exclude_if=is_none,
        description="for media: mean number of retries of a packet of the flow at a station",
    )
    airtime_share: float | None = Field(
        None,
        exclude_if=is_none,
        description="share of the interval in which RTS, CTS, DATA or ACK frames of the flow's "
        "packets were on the air; simultaneous frames count once",
    )


OF_TWO_RUNS = ("harm_goodput", "harm_rtt")  # columns that compare two runs


def list_metrics() -> dict[str, str]:
    """Return name -> description of the metrics: all columns of numbers except repeat and seed."""
    kinds: tuple[Any, ...] = (int, float, int | None, float | None)
    return {
        name: field.description or ""
        for name, field in ResultRow.model_fields.items()
        if field.annotation in kinds and name not in ("repeat", "seed")
    }


class GoodputWindow(Contract):
    """A row of goodput.parquet: the goodput of a flow in a window of time.

    The file has the flows that share a bottleneck with other flows. A window is 1 s long, or 10
    times the longest base RTT of the run if that is longer.
    """

    end_s: float = Field(description="end of the window, seconds since the traffic began")
    flow: str
    goodput_bps: float = Field(
        description="payload bytes delivered for the first time x 8 / width of the window, bit/s"
    )


class Metrics(Contract):
    """metrics.json: the rows of results.parquet of one run, one per flow."""

    damage_cure: ClassVar[str] = "remove it, and compute it again: `nagi analyze RESULTS`"

    schema_version: Literal[1] = 1
    rows: list[ResultRow]
    files: dict[str, FileFate] = Field(
        {},
        description="what the experiment's `keep` did with captures and packets.parquet, by name",
    )
    notices: list[str] = Field(description="damage found in captures")
