# SPDX-License-Identifier: Apache-2.0
"""What a sender took its losses for: the drop log joined with its reactions.

The unit is a lost segment: a row of the drop log with payload of the flow's, be it sent for the
first time or again. Its cause is known (the emulator dropped it); what the sender took it for is
one of OUTCOMES. Congestion marks (ECN) are no losses.

*Told* (`told`), by a scheme of ours, in scheme_events.parquet. An event covers a loss that came
before it if una <= sequence < next, modulo 2^32. The loss is taken for what the first event says
that covers it: three duplicate ACKs, a timeout, or a partial ACK (which covers the segment at `una`
alone, since that is all it shows to be lost). An event without a verdict has that of the last one
before it: it belongs to its repair, or to the congestion mark for which the window was reduced.
A segment lost again, while the last event before it covers it and none after it does, counts with
the repair under way if a later event shows it to have been acknowledged. What remains was not
noticed: the flow ended before, or the segment had come in another copy.

*Inferred* (`inferred`), for the kernel's own schemes, which tell nothing, from samples of TCP_INFO
around the first retransmission of the segment after its loss. Before: the last sample outside of
recovery until then; after: the first one outside of recovery afterwards (else the first and the
last sample at all). If the slow start threshold changed in between, or the window fell below KEPT
of what it was, the sender reduced: congestion. Else it changed nothing: channel. Schemes that set
no threshold on a loss (NO_THRESHOLD) are judged by the window alone, in whatever state, for they
may be in recovery for minutes: whether a sample from one to RESTORED_RTTS round trips after the
retransmission, the first one at least, has KEPT of the window of the last sample before it. BBR
holds its window back for a round trip of each recovery and then gives it back. Without a sample
before or after, it is undecided; without a retransmission, not noticed.

Errors: a reduction for one loss counts for all losses between the same two samples; a threshold
that is set to what it was, and a window that has grown again before the next sample, are missed; a
threshold or window that changes for another reason at that time (HyStart, Vegas, the end of BBR's
start) passes for a reaction. All grow with sampling interval / RTT.

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
KEPT = 0.9  # of the window, below which it was reduced
RESTORED_RTTS = 10  # within which a scheme without a threshold gives back what it held back
# BBR gives back the threshold it finds (bbr_ssthresh in the kernel's net/ipv4/tcp_bbr.c), and sets
# it at the end of its start phase for no loss.
NO_THRESHOLD = ("bbr",)

Cause = Literal["channel", "queue"]
CAUSES: dict[Cause, tuple[str, ...]] = {"channel": CHANNEL_LOSSES, "queue": QUEUE_DROPS}
MISTAKE: dict[Cause, int] = {"channel": CONGESTION, "queue": CHANNEL}

Codes = npt.NDArray[np.int8]  # places in OUTCOMES
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_OPEN_STATES = (0, 1)  # TCP_CA_Open, TCP_CA_Disorder
_REACTIONS = ("three_duplicates", "timeout", "partial_ack", "congestion_mark")


def classify_by_events(losses: pd.DataFrame, events: pd.DataFrame) -> Codes:
    """What each loss was taken for, as the scheme told it.

    losses: t_s, sequence (on the wire), payload (bytes), a row a lost segment of one connection.
    events: rows of scheme_events.parquet of that connection (contracts.records.SchemeEvent).
    """
    found = np.full(len(losses), NOT_NOTICED, np.int8)
    if events.empty:
        return found
    events = events.sort_values("t_s", kind="stable")
    time, kind = events["t_s"].to_numpy(np.float64), events["event"].to_numpy(object)
    una, beyond = _unwrapped(events)
    lost_s, sequence = losses["t_s"].to_numpy(np.float64), _placed(losses, time, una)

    noticing = np.flatnonzero((kind == "three_duplicates") | (kind == "timeout"))
    # una and next never fall, so the events that cover a segment follow each other.
    first = _first(noticing, time, beyond, lost_s, sequence + 1, len(time))
    covered = _at(una, first, 2**62) <= sequence
    first[~covered] = len(time)
    partial = np.flatnonzero(kind == "partial_ack")
    shown = _first(partial, time, una, lost_s, sequence, len(time))
    alone = _at(una, shown, 2**62) < sequence + losses["payload"].to_numpy(np.int64)
    shown[~alone] = len(time)
    first = np.minimum(first, shown)

    # Lost again during a repair that no later event speaks of.
    last = np.searchsorted(time[noticing], lost_s, side="right") - 1
    repair = np.append(noticing, len(time))[last]
    under_repair = (last >= 0) & (_at(una, repair, 2**62) <= sequence)
    under_repair &= _at(beyond, repair, -1) > sequence
    acknowledged = una[-1] > sequence
    again = (first == len(time)) & under_repair & acknowledged
    first[again] = repair[again]

    noticed = first < len(time)
    found[noticed] = _verdicts(events)[first[noticed]]
    return found


def classify_by_tcp_info(
    losses: pd.DataFrame, retransmissions: pd.DataFrame, samples: pd.DataFrame, *, threshold: bool
) -> Codes:
    """What each loss was taken for, as far as samples of the sender's state show it.

    losses: as told(). retransmissions: t_s, sequence (on the wire), payload of the same connection
    at its sender. samples: t_s, ca_state, snd_ssthresh, snd_cwnd, rtt (us) of tcp_info.parquet.
    threshold: whether the scheme sets the slow start threshold on a loss.
    """
    needed = ["ca_state", "snd_ssthresh", "snd_cwnd", "rtt"]
    samples = samples.dropna(subset=needed).sort_values("t_s", kind="stable")
    sent_s = _sent_again(losses, retransmissions)
    noticed = np.isfinite(sent_s)
    found = np.where(noticed, UNDECIDED, NOT_NOTICED).astype(np.int8)
    time, window = samples["t_s"].to_numpy(np.float64), samples["snd_cwnd"].to_numpy(np.float64)
    before = np.searchsorted(time, sent_s, side="right") - 1
    known = noticed & (before >= 0) & (before + 1 < len(time))
    begin = before[known]
    if threshold:
        is_open = samples["ca_state"].isin(_OPEN_STATES).to_numpy()
        changes = np.append(0, np.cumsum(np.diff(samples["snd_ssthresh"].to_numpy(np.int64)) != 0))
        begin, end = _open_before(is_open)[begin], _open_after(is_open)[begin + 1]
        reduced = is_open[begin] & is_open[end] & (window[end] < KEPT * window[begin])
        reduced |= changes[end] > changes[begin]
    else:
        rtt_s = samples["rtt"].to_numpy(np.float64) / 1e6
        first = np.searchsorted(time, sent_s[known] + rtt_s[begin])
        beyond = np.searchsorted(time, sent_s[known] + RESTORED_RTTS * rtt_s[begin], side="right")
        inside = first < len(time)
        known[known] = inside
        begin, first, beyond = begin[inside], first[inside], beyond[inside]
        ranges = np.column_stack([first, np.maximum(beyond, first + 1)]).ravel()
        maximum = np.maximum.reduceat(np.append(window, 0), ranges)[::2] if len(ranges) else first
        reduced = maximum < KEPT * window[begin]
    found[known] = np.where(reduced, CONGESTION, CHANNEL)
    return found


def _open_before(is_open: npt.NDArray[np.bool_]) -> Ints:
    """For each sample the last one until then that is open, else the first."""
    return np.maximum.accumulate(np.where(is_open, np.arange(len(is_open)), 0))


def _open_after(is_open: npt.NDArray[np.bool_]) -> Ints:
    """For each sample the first one from then on that is open, else the last."""
    return len(is_open) - 1 - _open_before(is_open[::-1])[::-1]


def compute_columns(losses: pd.DataFrame, found: Codes) -> dict[str, Any]:
    """Outcomes as columns of the results. losses: cause."""
    values: dict[str, Any] = {}
    for cause, names in CAUSES.items():
        of_cause = losses["cause"].isin(names).to_numpy()
        counts = np.bincount(found[of_cause], minlength=len(OUTCOMES))
        for outcome, count in zip(OUTCOMES, counts.tolist(), strict=True):
            values[name_column(cause, outcome)] = count
        total = counts.sum()
        values[f"{cause}_mistaken"] = counts[MISTAKE[cause]] / total if total else None
    return values


def name_column(cause: Cause, outcome: str) -> str:
    """The column of the results with the losses of a cause and an outcome."""
    taken = "taken_for_" if outcome in ("congestion", "channel") else ""
    return f"{cause}_{taken}{outcome.replace(' ', '_')}"


@dataclass(frozen=True)
class Classified:
    """What the losses of one cause were taken for, over flows and runs."""

    counts: tuple[int, ...]  # as OUTCOMES
    shares: tuple[Mean, ...]  # the same as shares, with intervals over runs; empty without a loss

    @property
    def total(self) -> int:
        return sum(self.counts)


def sum_classified(rows: pd.DataFrame, cause: Cause) -> Classified:
    """Of rows of the results that have reactions."""
    names = [name_column(cause, outcome) for outcome in OUTCOMES]
    runs = rows.groupby("run_id", sort=False)[names].sum().to_numpy(np.float64)
    shares = [ratio(part, runs.sum(axis=1)) for part in runs.T]
    return Classified(
        tuple(int(count) for count in runs.sum(axis=0)),
        tuple(share for share in shares if share is not None),
    )


def _verdicts(events: pd.DataFrame) -> Codes:
    """What each event says or, without a verdict, the last reaction before it."""
    codes = {name: float(code) for code, name in enumerate(OUTCOMES)}
    said = events["verdict"].map(codes).where(events["event"].isin(_REACTIONS))
    return said.ffill().fillna(UNDECIDED).to_numpy(np.float64).astype(np.int8)


def _unwrapped(events: pd.DataFrame) -> tuple[Ints, Ints]:
    """una and next without their wraps; una begins as it is on the wire."""
    una = events["una"].to_numpy(np.int64)
    steps = _signed(np.diff(una, prepend=una[:1]))
    unwrapped = una[:1].sum() + np.cumsum(steps)
    return unwrapped, unwrapped + (events["next"].to_numpy(np.int64) - una) % 2**32


def _placed(losses: pd.DataFrame, time: Floats, una: Ints) -> Ints:
    """Sequence numbers of losses without wraps: beside what was not acknowledged at that time."""
    sequence = losses["sequence"].to_numpy(np.int64)
    near = una[np.maximum(np.searchsorted(time, losses["t_s"].to_numpy(), side="right") - 1, 0)]
    return near + _signed(sequence - near)


def _signed(difference: Ints) -> Ints:
    """A difference of sequence numbers modulo 2^32, between -2^31 and 2^31."""
    return (difference + 2**31) % 2**32 - 2**31


def _first(among: Ints, time: Floats, edge: Ints, lost_s: Floats, minimum: Ints, none: int) -> Ints:
    """Of the events `among`, the first after each loss whose `edge`, which never falls, is at least
    `least`; `none` if there is none."""
    later = np.searchsorted(time[among], lost_s, side="right")
    far = np.searchsorted(edge[among], minimum, side="left")
    return np.append(among, none)[np.maximum(later, far)]


def _at(values: Ints, places: Ints, beyond: int) -> Ints:
    """Values at places; `beyond` at the place after the last."""
    return np.append(values, beyond)[places]


def _sent_again(losses: pd.DataFrame, retransmissions: pd.DataFrame) -> Floats:
    """When each lost segment was sent again first, in s; inf if it was not."""
    lost = np.unique(losses["sequence"].to_numpy(np.int64))
    begin = retransmissions["sequence"].to_numpy(np.int64)
    # A retransmission may join segments, so it is taken once for each lost one that begins in it
    # (what it holds beyond 2^32 aside).
    low = np.searchsorted(lost, begin, side="left")
    high = np.searchsorted(lost, begin + retransmissions["payload"].to_numpy(np.int64), side="left")
    count = high - low
    which = np.repeat(np.arange(len(count)), count)
    place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    held = pd.DataFrame(
        {
            "sequence": lost[np.repeat(low, count) + place],
            "t_s": retransmissions["t_s"].to_numpy(np.float64)[which],
        }
    )
    held["sent_s"] = held["t_s"]
    wanted = losses[["sequence", "t_s"]].astype({"sequence": "int64", "t_s": "float64"})
    wanted = wanted.assign(row=np.arange(len(wanted))).sort_values("t_s", kind="stable")
    joined = pd.merge_asof(
        wanted,
        held.sort_values("t_s", kind="stable"),
        on="t_s",
        by="sequence",
        direction="forward",
        allow_exact_matches=False,
    )
    found: Floats = joined.sort_values("row")["sent_s"].fillna(np.inf).to_numpy(np.float64)
    return found
