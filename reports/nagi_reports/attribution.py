# SPDX-License-Identifier: Apache-2.0
"""Loss differentiation: how the sender classified each lost segment of a connection.

The unit is a lost segment: a row of the drop log with payload of the flow. A retransmission that is
lost counts again. The cause of each loss is known, because the emulator dropped the segment. The
sender's classification is one of OUTCOMES. Congestion marks (ECN) are not losses.

Classification by events (`classify_by_events`) is for nagi's own schemes, which report events in
scheme_events.parquet. An event has two sequence numbers: `una`, the first that is not acknowledged,
and `next`, the first that was not sent. An event covers an earlier loss if una <= sequence < next,
modulo 2^32. The first event that covers a loss classifies the loss. This event is three duplicate
ACKs, a timeout, or a partial ACK (which covers only the segment at `una`, because it shows no other
loss). An event without a verdict has the verdict of the event before it, because it belongs to the
recovery of that event, or to the congestion mark for which the window was reduced. A segment may be
lost again during recovery: the last event before this loss covers the segment, and no later event
does. If a later event shows that the segment was acknowledged, the loss has the verdict of the
recovery. All other losses were not noticed, because the flow ended earlier, or another copy of the
segment had arrived.

Classification by TCP_INFO (`classify_by_tcp_info`) is for the kernel's own schemes, which report no
events. It compares samples of TCP_INFO around the first retransmission of the segment after its
loss: the last sample outside of recovery before the retransmission, and the first sample outside of
recovery after it. Without such samples, it compares the first and the last sample of the flow. If
the slow start threshold changed between the two samples, or the window of the second one is below
the share REDUCED_BELOW of the first one's, the loss was classified as congestion; otherwise, as
channel loss.

Schemes that set no threshold on a loss (NO_THRESHOLD) may stay in recovery for minutes. For them,
samples count in any state, and the window alone decides. The window was reduced if all samples from
one to RESTORED_RTTS round trips after the retransmission are below the share REDUCED_BELOW of the
last sample before it; at least one sample counts. BBR reduces its window for one round trip of each
recovery and then restores it.

Without a sample before or after the retransmission, a loss is undecided; without a retransmission,
it was not noticed.

Errors: a reduction for one loss counts for all losses between the same two samples. Two reactions
are missed: a threshold that is set to its old value, and a window that has grown again before the
next sample. A threshold or window that changes for another reason at that time (HyStart, Vegas, the
end of BBR's startup) counts as a reaction. All errors grow with sampling interval / RTT.

All times are seconds on one clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_captures.drops import CHANNEL_LOSSES, QUEUE_DROPS

from nagi_reports.statistics import Mean, ratio

OUTCOMES = ("congestion", "channel", "undecided", "not noticed")
CONGESTION, CHANNEL, UNDECIDED, NOT_NOTICED = range(4)
REDUCED_BELOW = 0.9  # share of the window; below it, the window was reduced
RESTORED_RTTS = 10  # number of RTTs within which a scheme without a threshold restores its window
# BBR leaves the threshold unchanged on a loss (bbr_ssthresh in the kernel's net/ipv4/tcp_bbr.c);
# at the end of its startup, it sets the threshold without a loss.
NO_THRESHOLD = ("bbr",)

Cause = Literal["channel", "queue"]
CAUSES: dict[Cause, tuple[str, ...]] = {"channel": CHANNEL_LOSSES, "queue": QUEUE_DROPS}
MISTAKE: dict[Cause, int] = {"channel": CONGESTION, "queue": CHANNEL}  # cause -> wrong outcome

Codes = npt.NDArray[np.int8]  # positions in OUTCOMES
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_OPEN_STATES = (0, 1)  # values of ca_state outside of recovery: TCP_CA_Open, TCP_CA_Disorder
_REACTIONS = ("three_duplicates", "timeout", "partial_ack", "congestion_mark")


def classify_by_events(losses: pd.DataFrame, events: pd.DataFrame) -> Codes:
    """Classify each loss by the events that the scheme reported.

    Args:
        losses: One row per lost segment of one connection, with t_s, sequence (as on the wire) and
            payload (bytes).
        events: The connection's rows of scheme_events.parquet (contracts.records.SchemeEvent).

    Returns:
        A position in OUTCOMES for each loss.
    """
    codes = np.full(len(losses), NOT_NOTICED, np.int8)
    if events.empty:
        return codes
    events = events.sort_values("t_s", kind="stable")
    event_s, kind = events["t_s"].to_numpy(np.float64), events["event"].to_numpy(object)
    una, next_ = _unwrap_events(events)
    lost_s, sequence = losses["t_s"].to_numpy(np.float64), _unwrap_losses(losses, event_s, una)

    detections = np.flatnonzero((kind == "three_duplicates") | (kind == "timeout"))
    # una and next never fall, so the events that cover a segment are consecutive.
    first = _find_first_event(detections, event_s, next_, lost_s, sequence + 1, len(event_s))
    is_covered = _take_values(una, first, 2**62) <= sequence
    first[~is_covered] = len(event_s)
    partial = np.flatnonzero(kind == "partial_ack")
    first_partial = _find_first_event(partial, event_s, una, lost_s, sequence, len(event_s))
    is_covered_by_partial = _take_values(una, first_partial, 2**62) < sequence + losses[
        "payload"
    ].to_numpy(np.int64)
    first_partial[~is_covered_by_partial] = len(event_s)
    first = np.minimum(first, first_partial)

    # Segments that were lost again during a recovery, and that no later event covers.
    last_before = np.searchsorted(event_s[detections], lost_s, side="right") - 1
    recovery = np.append(detections, len(event_s))[last_before]
    is_in_recovery = (last_before >= 0) & (_take_values(una, recovery, 2**62) <= sequence)
    is_in_recovery &= _take_values(next_, recovery, -1) > sequence
    is_acknowledged = una[-1] > sequence
    counts_with_recovery = (first == len(event_s)) & is_in_recovery & is_acknowledged
    first[counts_with_recovery] = recovery[counts_with_recovery]

    is_noticed = first < len(event_s)
    codes[is_noticed] = _collect_verdicts(events)[first[is_noticed]]
    return codes


def classify_by_tcp_info(
    losses: pd.DataFrame,
    retransmissions: pd.DataFrame,
    samples: pd.DataFrame,
    *,
    sets_threshold: bool,
) -> Codes:
    """Classify each loss by samples of TCP_INFO around its retransmission.

    Args:
        losses: One row per lost segment, as in classify_by_events().
        retransmissions: Retransmissions of the connection at its sender, with t_s, sequence (as on
            the wire) and payload.
        samples: Rows of tcp_info.parquet with t_s, ca_state, snd_ssthresh, snd_cwnd and rtt (us).
        sets_threshold: Whether the scheme sets the slow start threshold on a loss.

    Returns:
        A position in OUTCOMES for each loss.
    """
    columns = ["ca_state", "snd_ssthresh", "snd_cwnd", "rtt"]
    samples = samples.dropna(subset=columns).sort_values("t_s", kind="stable")
    retransmitted_s = _find_retransmission_s(losses, retransmissions)
    is_noticed = np.isfinite(retransmitted_s)
    codes = np.where(is_noticed, UNDECIDED, NOT_NOTICED).astype(np.int8)
    sample_s, window = samples["t_s"].to_numpy(np.float64), samples["snd_cwnd"].to_numpy(np.float64)
    index_before = np.searchsorted(sample_s, retransmitted_s, side="right") - 1
    has_samples = is_noticed & (index_before >= 0) & (index_before + 1 < len(sample_s))
    sample_before = index_before[has_samples]
    if sets_threshold:
        is_open = samples["ca_state"].isin(_OPEN_STATES).to_numpy()
        threshold = samples["snd_ssthresh"].to_numpy(np.int64)
        threshold_changes = np.append(0, np.cumsum(np.diff(threshold) != 0))
        sample_before, sample_after = (
            _find_open_before(is_open)[sample_before],
            _find_open_after(is_open)[sample_before + 1],
        )
        is_reduced = (
            is_open[sample_before]
            & is_open[sample_after]
            & (window[sample_after] < REDUCED_BELOW * window[sample_before])
        )
        is_reduced |= threshold_changes[sample_after] > threshold_changes[sample_before]
    else:
        rtt_s = samples["rtt"].to_numpy(np.float64) / 1e6
        first_after = np.searchsorted(sample_s, retransmitted_s[has_samples] + rtt_s[sample_before])
        end_of_samples = np.searchsorted(
            sample_s,
            retransmitted_s[has_samples] + RESTORED_RTTS * rtt_s[sample_before],
            side="right",
        )
        has_later_sample = first_after < len(sample_s)
        has_samples[has_samples] = has_later_sample
        sample_before, first_after, end_of_samples = (
            sample_before[has_later_sample],
            first_after[has_later_sample],
            end_of_samples[has_later_sample],
        )
        ranges = np.column_stack([first_after, np.maximum(end_of_samples, first_after + 1)]).ravel()
        max_window = (
            np.maximum.reduceat(np.append(window, 0), ranges)[::2] if len(ranges) else first_after
        )
        is_reduced = max_window < REDUCED_BELOW * window[sample_before]
    codes[has_samples] = np.where(is_reduced, CONGESTION, CHANNEL)
    return codes


def _find_open_before(is_open: npt.NDArray[np.bool_]) -> Ints:
    """Return, for each sample, the position of the last open sample at or before it.

    Return 0 if there is no open sample.
    """
    return np.maximum.accumulate(np.where(is_open, np.arange(len(is_open)), 0))


def _find_open_after(is_open: npt.NDArray[np.bool_]) -> Ints:
    """Return, for each sample, the position of the first open sample at or after it.

    Return the position of the last sample if there is no open sample.
    """
    return len(is_open) - 1 - _find_open_before(is_open[::-1])[::-1]


def compute_columns(losses: pd.DataFrame, codes: Codes) -> dict[str, Any]:
    """Return the number of losses per cause and outcome, as columns of results.

    Further columns have the share of wrong classifications per cause; None if the cause has no
    losses.

    Args:
        losses: The lost segments, with `cause`.
        codes: The classification of each loss, as a position in OUTCOMES.
    """
    values: dict[str, Any] = {}
    for cause, names in CAUSES.items():
        has_cause = losses["cause"].isin(names).to_numpy()
        counts = np.bincount(codes[has_cause], minlength=len(OUTCOMES))
        for outcome, count in zip(OUTCOMES, counts.tolist(), strict=True):
            values[name_column(cause, outcome)] = count
        total = counts.sum()
        values[f"{cause}_mistaken"] = counts[MISTAKE[cause]] / total if total else None
    return values


def name_column(cause: Cause, outcome: str) -> str:
    """Return the column of results that counts the losses of a cause with an outcome."""
    prefix = "taken_for_" if outcome in ("congestion", "channel") else ""
    return f"{cause}_{prefix}{outcome.replace(' ', '_')}"


@dataclass(frozen=True)
class Classified:
    """Number and share of the losses of one cause per outcome, over flows and runs."""

    counts: tuple[int, ...]  # one per outcome, in the order of OUTCOMES
    shares: tuple[Mean, ...]  # one per outcome, with its interval over runs; empty without a loss

    @property
    def total(self) -> int:
        return sum(self.counts)


def sum_classified(rows: pd.DataFrame, cause: Cause) -> Classified:
    """Return how the losses of a cause were classified.

    Args:
        rows: Rows of results whose losses were classified (`reactions` has a value).
        cause: The cause of the losses.
    """
    names = [name_column(cause, outcome) for outcome in OUTCOMES]
    runs = rows.groupby("run_id", sort=False)[names].sum().to_numpy(np.float64)
    shares = [ratio(part, runs.sum(axis=1)) for part in runs.T]
    return Classified(
        tuple(int(count) for count in runs.sum(axis=0)),
        tuple(share for share in shares if share is not None),
    )


def _collect_verdicts(events: pd.DataFrame) -> Codes:
    """Return the verdict of each event.

    An event without a verdict has the verdict of the last event of _REACTIONS before it. If there
    is no such event, its verdict is UNDECIDED.
    """
    codes = {name: float(code) for code, name in enumerate(OUTCOMES)}
    verdicts = events["verdict"].map(codes).where(events["event"].isin(_REACTIONS))
    return verdicts.ffill().fillna(UNDECIDED).to_numpy(np.float64).astype(np.int8)


def _unwrap_events(events: pd.DataFrame) -> tuple[Ints, Ints]:
    """Return una and next as numbers that do not wrap at 2^32.

    The first una is the number on the wire.
    """
    una = events["una"].to_numpy(np.int64)
    steps = _to_signed_difference(np.diff(una, prepend=una[:1]))
    unwrapped = una[:1].sum() + np.cumsum(steps)
    return unwrapped, unwrapped + (events["next"].to_numpy(np.int64) - una) % 2**32


def _unwrap_losses(losses: pd.DataFrame, event_s: Floats, una: Ints) -> Ints:
    """Return the sequence numbers of losses, unwrapped to be near una at the time of the loss."""
    sequence = losses["sequence"].to_numpy(np.int64)
    una_before = una[
        np.maximum(np.searchsorted(event_s, losses["t_s"].to_numpy(), side="right") - 1, 0)
    ]
    return una_before + _to_signed_difference(sequence - una_before)


def _to_signed_difference(difference: Ints) -> Ints:
    """Return a difference of sequence numbers modulo 2^32 as a number from -2^31 to 2^31 - 1."""
    return (difference + 2**31) % 2**32 - 2**31


def _find_first_event(
    candidates: Ints, event_s: Floats, edge: Ints, lost_s: Floats, minimum: Ints, missing: int
) -> Ints:
    """Return, for each loss, the first candidate event after it whose `edge` reaches `minimum`.

    Args:
        candidates: Positions of the events to search, in ascending order.
        event_s: Time of each event.
        edge: A sequence number of each event, which never falls.
        lost_s: Time of each loss.
        minimum: The sequence number that `edge` must reach, per loss.
        missing: The result for a loss without such an event.
    """
    later = np.searchsorted(event_s[candidates], lost_s, side="right")
    reaching = np.searchsorted(edge[candidates], minimum, side="left")
    return np.append(candidates, missing)[np.maximum(later, reaching)]


def _take_values(values: Ints, indices: Ints, missing: int) -> Ints:
    """Return the values at `indices`, and `missing` for the index after the last value."""
    return np.append(values, missing)[indices]


def _find_retransmission_s(losses: pd.DataFrame, retransmissions: pd.DataFrame) -> Floats:
    """Return when each lost segment was first retransmitted after its loss, in s.

    Return inf for a segment that was not retransmitted.
    """
    lost_sequences = np.unique(losses["sequence"].to_numpy(np.int64))
    begin = retransmissions["sequence"].to_numpy(np.int64)
    # A retransmission may contain several segments, so it counts for each lost segment that begins
    # in it, unless the sequence number wraps at 2^32 before this segment.
    first_segment = np.searchsorted(lost_sequences, begin, side="left")
    end_segment = np.searchsorted(
        lost_sequences, begin + retransmissions["payload"].to_numpy(np.int64), side="left"
    )
    count = end_segment - first_segment  # lost segments per retransmission
    retransmission = np.repeat(np.arange(len(count)), count)
    offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    sent_segments = pd.DataFrame(
        {
            "sequence": lost_sequences[np.repeat(first_segment, count) + offset],
            "t_s": retransmissions["t_s"].to_numpy(np.float64)[retransmission],
        }
    )
    sent_segments["sent_s"] = sent_segments["t_s"]
    lost_segments = losses[["sequence", "t_s"]].astype({"sequence": "int64", "t_s": "float64"})
    lost_segments = lost_segments.assign(row=np.arange(len(lost_segments))).sort_values(
        "t_s", kind="stable"
    )
    joined = pd.merge_asof(
        lost_segments,
        sent_segments.sort_values("t_s", kind="stable"),
        on="t_s",
        by="sequence",
        direction="forward",
        allow_exact_matches=False,
    )
    sent_s: Floats = joined.sort_values("row")["sent_s"].fillna(np.inf).to_numpy(np.float64)
    return sent_s
