# SPDX-License-Identifier: Apache-2.0
"""results.parquet: a row a flow a run. A field here is a column there, with the same name."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from nagi_contracts.base import Contract, PlainNameOrEmpty, is_none
from nagi_contracts.records import FileFate, Status


class ResultRow(Contract):
    """One flow of one run."""

    run_id: PlainNameOrEmpty
    point_id: str = Field(description="the same point in other labs and builds has the same id")
    lab: str
    build: str = Field(description="id of the build that ran it")
    status: Status = Field(description="only valid rows enter a mean")
    repeat: int
    seed: int
    point: dict[str, str] = Field(
        description="axis -> value; in the table a column `point.AXIS` for every axis"
    )
    flow: str
    background: bool = Field(False, description="cross traffic: in no mean")
    scheme: str
    congestion_control: str
    bottleneck_bps: int = Field(
        description="smallest configured rate on the path; of a trace of rates the mean over what "
        "could reach the receiver in the measurement interval, bit/s"
    )
    base_rtt_s: float = Field(description="propagation there and back, s")
    measured_s: float = Field(
        description="length of the measurement interval, of a transfer that was completed before "
        "its end until the last of its data arrived, s"
    )
    goodput_bps: float | None = Field(
        description="payload bytes delivered for the first time x 8 / interval, bit/s"
    )
    agi: float | None = Field(description="achieved goodput index: goodput / bottleneck")
    agi_ceiling: float = Field(description="the largest AGI that headers permit")
    segments_sent: int | None = Field(description="data segments in the sender's capture")
    segments_retransmitted: int | None = Field(
        description="of these, segments with bytes that had been sent before"
    )
    queue_overflows: int | None = Field(description="packets dropped by queues on the path")
    channel_losses: int | None = Field(description="packets lost on channels of the path")
    channel_packets: int | None = Field(
        description="packets transmitted on channels of the path, lost or not"
    )
    throughput_bps: float | None = Field(
        None, description="IP bytes that reach the receiver x 8 / interval, bit/s (RFC 5166)"
    )
    tcp_efficiency: float | None = Field(
        None, description="share of the payload bytes sent that were no retransmission (RFC 6349)"
    )
    rtt_min_s: float | None = Field(
        None, description="smallest RTT by timestamps, else by sequence numbers, at the sender, s"
    )
    rtt_mean_s: float | None = Field(None, description="mean of the same, s")
    rtt_median_s: float | None = Field(None, description="median of the same, s")
    rtt_p95_s: float | None = Field(None, description="95th percentile of the same, s")
    rtt_p99_s: float | None = Field(None, description="99th percentile of the same, s")
    buffer_delay: float | None = Field(
        None,
        description="(mean RTT - base RTT) / base RTT (RFC 6349); null where a trace changes the "
        "path's delay",
    )
    one_way_delay_mean_s: float | None = Field(
        None, description="from the sender's capture to the receiver's, mean, s (RFC 7679)"
    )
    one_way_delay_p99_s: float | None = Field(None, description="99th percentile of the same, s")
    queueing_delay_mean_s: float | None = Field(
        None,
        description="one-way delay less the flow's smallest, mean, s; null where a trace changes "
        "the path's delay",
    )
    queueing_delay_p99_s: float | None = Field(None, description="99th percentile of the same, s")
    loss_rate: float | None = Field(
        None, description="share of the data packets sent that never arrive (RFC 7680)"
    )
    loss_bursts: int | None = Field(
        None, description="bursts of losses, Gmin 16 (RFC 3611 section 4.7.2)"
    )
    loss_burst_packets: float | None = Field(
        None, description="mean length of such a burst, lost or not, packets"
    )
    loss_burst_density: float | None = Field(
        None, description="share of packets lost within bursts"
    )
    loss_gap_density: float | None = Field(None, description="share of packets lost outside bursts")
    completed_share: float | None = Field(
        None,
        description="share of the transfers begun that were completed; like all that applications "
        "tell over the whole run",
    )
    completion_time_s: float | None = Field(
        None,
        description="of a transfer of a given size: from connect() until its last byte was "
        "acknowledged, s",
    )
    transfer_goodput_bps: float | None = Field(
        None,
        description="of the same: its size over its completion time; of one that was given up what "
        "had come over the time until then, bit/s",
    )
    fct_median_s: float | None = Field(
        None, description="flow completion time of transfers or requests completed, median, s"
    )
    fct_p95_s: float | None = Field(None, description="95th percentile of the same, s")
    fct_p99_s: float | None = Field(None, description="99th percentile of the same, s")
    tokens_per_rtt: float | None = Field(
        None, description="tokens that a sender limited by a token bucket uses in an RTT, mean"
    )
    tokens_permitted_per_rtt: float | None = Field(
        None, description="tokens that come in an RTT, mean"
    )
    playback_success: float | None = Field(
        None, description="share of a player's attempts that found the bytes to play"
    )
    datagram_loss_rate: float | None = Field(
        None, description="share of an application's datagrams that did not arrive"
    )
    datagram_delay_mean_s: float | None = Field(
        None, description="their one-way delay, mean, s; null where hosts' clocks differ"
    )
    datagram_delay_p99_s: float | None = Field(None, description="99th percentile of the same, s")
    datagram_jitter_s: float | None = Field(
        None, description="their interarrival jitter after the last one, s (RFC 3550)"
    )
    r_factor: float | None = Field(
        None, description="of a voice call (ITU-T G.107); null where hosts' clocks differ"
    )
    mos: float | None = Field(None, description="mean opinion score of the same, 1 to 4.5")
    in_flight_mean_bytes: float | None = Field(
        None, description="sent and not acknowledged, at the sender, mean over data packets, bytes"
    )
    in_flight_max_bytes: float | None = Field(None, description="the most of the same, bytes")
    cwnd_mean_packets: float | None = Field(
        None, description="the sender's congestion window, mean over the interval, packets"
    )
    receive_window_mean_bytes: float | None = Field(
        None, description="the window the receiver advertises, mean over its packets, bytes"
    )
    jain_index: float | None = Field(
        None,
        description="fairness of the goodputs of flows that share a bottleneck: "
        "(sum x)^2 / (n sum x^2); like all measures of fairness the same in every row of these "
        "flows, without cross traffic, null for a flow that shares its bottleneck with none",
    )
    max_min_ratio: float | None = Field(None, description="smallest goodput / largest")
    product_measure: float | None = Field(
        None, description="product of the flows' goodputs, each in Mb/s (RFC 5166)"
    )
    proportional_fairness: float | None = Field(
        None, description="sum of ln of the flows' goodputs, each in Mb/s; null if one is 0"
    )
    potential_delay_s: float | None = Field(
        None,
        description="sum of 1 / goodput, the goodputs in Mb/s: s for 1 Mb each; null if one is 0",
    )
    convergence_time_s: float | None = Field(
        None,
        description="from the last flow's start until every flow's share of goodput, in windows "
        "of 1 s or 10 RTTs, stays within 20 % of equal for 5 s, s (RFC 5166); null without",
    )
    reactions: Literal["told", "inferred"] | None = Field(
        None,
        description="how it is known what the sender took its losses for: told by the scheme, or "
        "inferred from TCP_INFO; null: not known. What follows is over the whole run and counts "
        "data segments of the flow, retransmissions included",
    )
    channel_taken_for_congestion: int | None = Field(
        None, description="segments lost on channels that the sender took for congestion"
    )
    channel_taken_for_channel: int | None = Field(
        None, description="segments lost on channels that it took for lost on channels"
    )
    channel_undecided: int | None = Field(
        None, description="segments lost on channels for whose cause it did not decide"
    )
    channel_not_noticed: int | None = Field(
        None, description="segments lost on channels that it did not notice"
    )
    channel_mistaken: float | None = Field(
        None, description="share of the segments lost on channels that it took for congestion"
    )
    queue_taken_for_congestion: int | None = Field(
        None, description="segments dropped by queues that the sender took for congestion"
    )
    queue_taken_for_channel: int | None = Field(
        None, description="segments dropped by queues that it took for lost on channels"
    )
    queue_undecided: int | None = Field(
        None, description="segments dropped by queues for whose cause it did not decide"
    )
    queue_not_noticed: int | None = Field(
        None, description="segments dropped by queues that it did not notice"
    )
    queue_mistaken: float | None = Field(
        None, description="share of the segments dropped by queues that it took for channel loss"
    )
    mark_reactions: int | None = Field(
        None, description="times it reduced for a congestion mark (ECN), as far as it told"
    )
    sharing_flows: int | None = Field(
        None,
        exclude_if=is_none,
        description="number of the flows that share this flow's bottleneck, itself included",
    )
    share: float | None = Field(
        None, exclude_if=is_none, description="goodput / the sum of the goodputs of these flows"
    )
    jain_index_windows: float | None = Field(
        None,
        exclude_if=is_none,
        description="mean of Jain's index in windows of 1 s or 10 RTTs: fairness over short times",
    )
    convergence: Literal["converged", "never", "too short"] | None = Field(
        None,
        exclude_if=is_none,
        description="whether there is a convergence time; too short: less than 5 s of traffic "
        "after the last flow's start",
    )
    harm_goodput: float | None = Field(
        None,
        exclude_if=is_none,
        description="harm that competitors do to the goodput: (alone - beside) / alone, of all "
        "flows together that are in the run without competitors, too (Ware et al., HotNets 2019); "
        "in the table only, null without `report: competitor` and for other flows",
    )
    harm_rtt: float | None = Field(
        None,
        exclude_if=is_none,
        description="the same of the mean RTT: (beside - alone) / beside",
    )

    link_drop_probability: float | None = Field(
        None,
        exclude_if=is_none,
        description="of media: share of the flow's packets, ACKs included, that stations tried to "
        "send during the interval and gave up at the retry limit; a packet counts at each station "
        "that tried to send it. Null, as what follows, for flows that cross no medium",
    )
    retries_per_hop: float | None = Field(
        None,
        exclude_if=is_none,
        description="attempts beside the first of such a packet at a station, mean",
    )
    airtime_share: float | None = Field(
        None,
        exclude_if=is_none,
        description="share of the interval in which RTS, CTS, DATA or ACK frames of the flow's "
        "packets were on the air; frames at the same time count once",
    )


OF_TWO_RUNS = ("harm_goodput", "harm_rtt")  # columns that need another run, too


def metrics_of_results() -> dict[str, str]:
    """The columns that are measured numbers, of which there are means, and what they are."""
    kinds: tuple[Any, ...] = (int, float, int | None, float | None)
    return {
        name: field.description or ""
        for name, field in ResultRow.model_fields.items()
        if field.annotation in kinds and name not in ("repeat", "seed")
    }


class GoodputWindow(Contract):
    """A row of goodput.parquet: the goodput of a flow that shares its bottleneck with others, in a
    window of 1 s or of 10 times the longest base RTT of the run."""

    end_s: float = Field(description="the window's end, seconds since the traffic began")
    flow: str
    goodput_bps: float = Field(
        description="payload bytes delivered for the first time x 8 / width of the window, bit/s"
    )


class Metrics(Contract):
    """metrics.json: the rows of one run."""

    damage_cure: ClassVar[str] = "remove it, and compute it again: `nagi analyze RESULTS`"

    schema_version: Literal[1] = 1
    rows: list[ResultRow]
    files: dict[str, FileFate] = Field(
        {}, description="what became of captures and packets.parquet: the experiment's `keep`"
    )
    notices: list[str] = Field(description="damage found in captures")
