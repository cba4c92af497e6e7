# SPDX-License-Identifier: Apache-2.0
"""What each scheme does to its window, against its definition: real kernel TCP over a real path.

Each expectation is a function of what was observed, and where the kernel's NewReno differs from the
scheme by definition, the same expectation must fail for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import pytest
from kernels import needs_our_schemes
from nagi.plan.schemes import check_availability, read_schemes
from tcp_path import (
    FIRST_DATA,
    LOSS,
    OPEN,
    RECOVERY,
    SEGMENT,
    Observed,
    TcpPath,
    held,
    unique,
)

pytestmark = [needs_our_schemes, pytest.mark.realtime]
DELAY_NS = 20_000_000
ROUND_TRIP = 0.04
PACKET_BITS = (SEGMENT + 52) * 8
NO_THRESHOLD = 0x7FFFFFFF
OURS = [name for name, scheme in read_schemes().items() if scheme.object]
# Those that need nothing of others: no path here marks, and receivers are the kernel's own.
ALONE = [
    name
    for name in OURS
    if not (read_schemes()[name].needs_marks or read_schemes()[name].both_ends)
]

FAST = {"delay_ns": DELAY_NS}  # no rate, so no queue
SLOW = {"delay_ns": DELAY_NS, "rate_bps": 8_000_000}
# Round trip of a full packet: it takes 1.5 ms to send. What fills the path is 27.7 packets.
BANDWIDTH_DELAY = (ROUND_TRIP + PACKET_BITS / 8e6) * 8e6 / PACKET_BITS

# A segment lost in slow start, when 38 have been acknowledged one by one: the window is 39.
EARLY_LOSS = FIRST_DATA + 38
WINDOW = 39
TAIL = 12


def losing(link: dict[str, Any], *packets: int) -> dict[str, Any]:
    loss = {"model": "trace", "lost": sorted(packets), "length": 1_000_000}
    return {**link, "loss": loss}


SCENARIOS: dict[str, dict[str, Any]] = {
    "one loss": {"forward": losing(FAST, EARLY_LOSS), "segments": 250, "seconds": 5},
    "two losses": {
        "forward": losing(FAST, EARLY_LOSS, EARLY_LOSS + 4),
        "segments": 250,
        "seconds": 5,
    },
    "many losses": {
        "forward": losing(FAST, *range(EARLY_LOSS, EARLY_LOSS + 27)),
        "segments": 250,
        "seconds": 5,
    },
    # The last of a transfer, so that no duplicate ACK comes.
    "timeout": {
        "forward": losing(FAST, *range(FIRST_DATA + 100 - TAIL, FIRST_DATA + 100)),
        "segments": 100,
        "seconds": 5,
    },
    "random loss": {
        "forward": losing(FAST, EARLY_LOSS, 1500),
        "segments": 2500,
        "seconds": 8,
    },
    "full queue": {
        "forward": losing({**SLOW, "queue": {"packets": 10}}, EARLY_LOSS),
        "segments": 100_000,
        "seconds": 5,
    },
    "longer queue": {
        "forward": losing({**SLOW, "queue": {"packets": 20}}, EARLY_LOSS),
        "segments": 100_000,
        "seconds": 5,
    },
}


# Where every duplicate ACK counts: the kernel merges ACKs while the sender's socket is busy.
EXACT = {"one loss", "two losses", "many losses", "timeout"}
# How often the timer expires, unless the machine is held up for half a second.
TIMEOUTS = {"one loss": 0, "two losses": 0, "timeout": 1}
TRIES = 12
# These take seconds each; they are run side by side, once one of them is asked for.
LONG = [
    *((scheme, "random loss") for scheme in [*ALONE, "newreno"]),
    *((scheme, "full queue") for scheme in [*ALONE, "newreno"] if scheme != "westwoodvt"),
    ("westwoodvt", "longer queue"),
]
SIDE_BY_SIDE = 4
LONG_TRIES = 4

Key = tuple[str, ...]


class Runs:
    """Runs of a scheme in a scenario; each is done once."""

    def __init__(
        self,
        new_namespaces: Callable[[], Any],
        workers: ThreadPoolExecutor,
        directory: Path,
    ) -> None:
        self._new_namespaces = new_namespaces
        self._workers = workers
        self._directory = directory
        self._paths: SimpleQueue[TcpPath] = SimpleQueue()
        self._numbers = itertools.count()
        self._done: dict[Key, Future[Observed]] = {}

    def __call__(self, scheme: str, scenario: str, *sets: str) -> Observed:
        asked: Key = (scheme, scenario, *sets)
        for key in [asked] if scenario in EXACT else [asked, *LONG]:
            if key not in self._done:
                self._done[key] = self._workers.submit(self._run, *key)
        return self._done[asked].result()

    def settled(
        self, expectation: Callable[[Observed], None], scheme: str, scenario: str, *sets: str
    ) -> None:
        """A long run must be as expected. The machine may hold it up at any time, which makes
        bursts: then it is run again."""
        for left in reversed(range(LONG_TRIES)):
            try:
                return expectation(self(scheme, scenario, *sets))
            except AssertionError:
                if left == 0:
                    raise
                del self._done[scheme, scenario, *sets]

    def _run(self, scheme: str, scenario: str, *sets: str) -> Observed:
        try:
            path = self._paths.get_nowait()
        except Empty:
            path = TcpPath(self._new_namespaces())
        try:
            for _ in range(TRIES):
                observed = self._once(path, scheme, SCENARIOS[scenario], sets)
                told = scheme in OURS and scenario in TIMEOUTS
                late = told and len(observed.of_kind("timeout")) != TIMEOUTS[scenario]
                if scenario not in EXACT or (observed.merged == 0 and not late):
                    return observed
            raise AssertionError(
                f"ACKs were merged, or the timer expired as it should not, in all of {TRIES} runs"
            )
        finally:
            self._paths.put(path)

    def _once(
        self, path: TcpPath, scheme: str, scenario: dict[str, Any], sets: tuple[str, ...]
    ) -> Observed:
        entry = read_schemes()[scheme]
        if entry.object is None:
            return path.run(str(entry.kernel), **scenario)
        number = next(self._numbers)
        events = self._directory / f"events.{number}.jsonl"
        name = unique(f"{scheme[:5]}{number}")
        with held(entry.object, name, "--events", str(events), sets=sets) as holder:
            observed = path.run(name, **scenario)
            holder.terminate()
            holder.wait(5)
            return observed.with_events(events)


@pytest.fixture(scope="module")
def runs(new_namespaces, tmp_path_factory):
    with ThreadPoolExecutor(SIDE_BY_SIDE) as workers:
        yield Runs(new_namespaces, workers, tmp_path_factory.mktemp("runs"))


def only(observed: Observed, kind: str) -> dict[str, Any]:
    (event,) = observed.of_kind(kind)
    return event


@dataclass(frozen=True)
class Reaction:
    """What the last loss noticed by duplicate ACKs did, as TCP_INFO has it."""

    before: int  # window
    at_once: int  # window, when the segment had been sent again
    threshold: int
    settled: int  # window, when all was repaired


def last_reaction(observed: Observed) -> Reaction:
    episode = observed.episodes(RECOVERY)[-1]
    told = observed.of_kind("three_duplicates")
    seen = observed.before(episode[0].at).window
    before = told[-1]["cwnd_before"] if told else seen
    assert abs(seen - before) <= 1  # TCP_INFO is looked at every millisecond
    row = min(episode, key=lambda row: row.window)
    settled = observed.settled(after=episode[0].at)
    return Reaction(before, row.window, row.threshold, settled.window)


def thresholds(observed: Observed) -> list[int]:
    """Each ssthresh that TCP_INFO has had, in order."""
    found = [row.threshold for row in observed.rows if row.threshold != NO_THRESHOLD]
    return [b for a, b in pairwise([None, *found]) if a != b]


def estimated_window(event: dict[str, Any]) -> int:
    """Rate x RTTmin / segment, at least 2, from the event's own figures."""
    window = event["bandwidth_bytes_per_second"] * event["min_rtt_us"] / 1e6 / SEGMENT
    return max(int(window), 2)


# --- three duplicate ACKs


def tahoe_starts_over(observed: Observed) -> None:
    row = observed.in_recovery()
    assert (row.window, row.threshold) == (1, WINDOW // 2)
    # On the wire: the lost segment alone, then slow start up to ssthresh.
    again = row.at - ROUND_TRIP / 8
    assert observed.rounds(again + ROUND_TRIP, ROUND_TRIP, 5) == [2, 4, 8, 16, WINDOW // 2]


def reno_halves(observed: Observed) -> None:
    row = observed.in_recovery()
    assert (row.window, row.threshold) == (WINDOW // 2, WINDOW // 2)
    settled = observed.settled(after=row.at)
    assert settled.threshold == WINDOW // 2 <= settled.window <= WINDOW // 2 + 1


def vegas_keeps_three_quarters(observed: Observed) -> None:
    event = only(observed, "three_duplicates")
    row = observed.in_recovery()
    assert row.window == max(event["cwnd_before"] * 3 // 4, 2)
    assert row.threshold == 2


def westwood_takes_its_estimate(observed: Observed) -> None:
    event = only(observed, "three_duplicates")
    row = observed.in_recovery()
    assert row.threshold == estimated_window(event)
    assert row.window == min(row.threshold, event["cwnd_before"])


@pytest.mark.parametrize(
    ("scheme", "expectation"),
    [
        ("tahoe", tahoe_starts_over),
        ("reno", reno_halves),
        ("vegas", vegas_keeps_three_quarters),
        ("westwood", westwood_takes_its_estimate),
        ("westwoodnr", westwood_takes_its_estimate),
        ("westwoodvt", westwood_takes_its_estimate),  # in slow start nothing is asked
    ],
)
def test_after_three_duplicate_acks(runs, scheme, expectation):
    observed = runs(scheme, "one loss")
    event = only(observed, "three_duplicates")
    assert event["verdict"] == "congestion"
    assert observed.rows[-1].retransmissions == 1
    if scheme != "vegas":  # whose slow start is slower
        assert event["cwnd_before"] == WINDOW
    expectation(observed)


def test_tahoe_restarts_with_the_window_it_is_given(runs):
    """TCP-Real's Tahoe restarts with two segments."""
    row = runs("tahoe", "one loss", "cwnd_after_loss=2").in_recovery()
    assert (row.window, row.threshold) == (2, WINDOW // 2)


def test_newreno_halves_at_three_duplicate_acks(runs):
    """Gradually (RFC 6937), so its window comes down to half and never to one segment."""
    observed = runs("newreno", "one loss")
    row = observed.in_recovery()
    assert row.threshold == WINDOW // 2 <= row.window
    assert observed.rows[-1].retransmissions == 1
    settled = observed.settled(after=row.at)
    assert settled.threshold == WINDOW // 2 <= settled.window <= WINDOW // 2 + 1


# --- another loss in the same window


def halves_again(observed: Observed) -> None:
    assert thresholds(observed) == [WINDOW // 2, WINDOW // 4]
    assert observed.rows[-1].retransmissions == 2


def test_reno_halves_for_each_loss_in_a_window(runs):
    observed = runs("reno", "two losses")
    halves_again(observed)
    first, second = observed.of_kind("three_duplicates")
    assert (second["cwnd_before"], second["cwnd"]) == (WINDOW // 2, WINDOW // 4)
    # It does not retransmit at the partial ACK, but three duplicate ACKs later.
    partial = only(observed, "partial_ack")
    assert first["una"] < partial["una"] == second["una"]
    assert second["t_ns"] > partial["t_ns"]


def test_newreno_halves_once_for_two_losses_in_a_window(runs):
    observed = runs("newreno", "two losses")
    assert thresholds(observed) == [WINDOW // 2]
    assert observed.rows[-1].retransmissions == 2
    assert len(observed.episodes(RECOVERY)) == 1


@pytest.mark.parametrize("scheme", ["tahoe", "westwoodnr", "westwoodvt"])
def test_others_repair_two_losses_at_once(runs, scheme):
    observed = runs(scheme, "two losses")
    only(observed, "three_duplicates")
    only(observed, "partial_ack")
    assert observed.rows[-1].retransmissions == 2
    assert not observed.of_kind("timeout")


def test_tahoe_goes_back_n_after_many_losses(runs):
    observed = runs("tahoe", "many losses")
    only(observed, "three_duplicates")
    timeout = only(observed, "timeout")
    assert timeout["verdict"] is None  # the loss has been judged
    assert timeout["ssthresh"] == WINDOW // 2
    row = observed.episodes(LOSS)[0][0]
    assert (row.window, row.threshold) == (1, WINDOW // 2)
    assert observed.rows[-1].retransmissions > 27


def test_reno_waits_for_the_timer_after_many_losses(runs):
    timeout = only(runs("reno", "many losses"), "timeout")
    assert timeout["verdict"] == "congestion"
    assert timeout["ssthresh"] < WINDOW // 2


# --- a timeout


@pytest.mark.parametrize("scheme", OURS)
def test_after_a_timeout(runs, scheme):
    observed = runs(scheme, "timeout")
    row = observed.episodes(LOSS)[0][0]
    event = only(observed, "timeout")
    assert not observed.of_kind("three_duplicates")
    assert event["verdict"] == "congestion"
    assert event["flight"] == TAIL < event["cwnd_before"]
    if scheme == "vegas":
        assert (row.window, row.threshold) == (2, TAIL // 2)
    elif scheme == "newjersey" or scheme.startswith("westwood"):
        assert (row.window, row.threshold) == (1, estimated_window(event))
        assert row.threshold != TAIL // 2
    else:
        assert (row.window, row.threshold) == (1, TAIL // 2)
    # Slow start follows, and the threshold stays as it is.
    assert observed.rows[-1].state in (OPEN, LOSS)
    assert observed.rows[-1].threshold == row.threshold
    assert observed.rows[-1].window > row.window


def test_newreno_takes_its_window_and_not_what_is_outstanding_at_a_timeout(runs):
    """Where the kernel's own differs from RFC 5681: it halves the window."""
    observed = runs("newreno", "timeout")
    row = observed.episodes(LOSS)[0][0]
    assert row.window == 1
    assert row.threshold == observed.before(row.at).window // 2 > TAIL // 2


# --- a random loss, no queue anywhere, in congestion avoidance


def keeps_most(observed: Observed) -> None:
    seen = last_reaction(observed)
    assert seen.before > 30
    assert seen.settled >= 0.7 * seen.before


def changes_nothing(observed: Observed) -> None:
    seen = last_reaction(observed)
    assert seen.before > 30
    assert seen.before <= seen.settled <= seen.before + 1
    assert thresholds(observed) == [seen.threshold]  # the one of the early loss


def halves(observed: Observed) -> None:
    seen = last_reaction(observed)
    assert seen.before > 30
    assert seen.threshold == seen.at_once == seen.before // 2
    assert seen.threshold <= seen.settled <= seen.threshold + 1


def starts_over(observed: Observed) -> None:
    seen = last_reaction(observed)
    assert seen.before > 30
    assert (seen.at_once, seen.threshold) == (1, seen.before // 2)


def keeps_three_quarters(observed: Observed) -> None:
    seen = last_reaction(observed)
    assert seen.before > 30
    assert seen.at_once == seen.before * 3 // 4


@pytest.mark.parametrize(
    ("scheme", "expectation", "verdict"),
    [
        ("tahoe", starts_over, "congestion"),
        ("reno", halves, "congestion"),
        ("vegas", keeps_three_quarters, "congestion"),
        ("westwood", keeps_most, "congestion"),
        ("westwoodnr", keeps_most, "congestion"),
        ("westwoodvt", changes_nothing, "channel"),
    ],
)
def test_after_a_random_loss_without_a_queue(runs, scheme, expectation, verdict):
    observed = runs(scheme, "random loss")
    expectation(observed)
    last = observed.of_kind("three_duplicates")[-1]
    assert last["verdict"] == verdict
    if scheme.startswith("westwood") and verdict == "congestion":
        assert last["ssthresh"] == estimated_window(last)
    if scheme == "westwoodvt":
        assert last["backlog_segments"] < 14


def test_newreno_halves_at_a_random_loss(runs):
    """Gradually (RFC 6937), so what its window is at once depends on which ACKs had come."""
    seen = last_reaction(runs("newreno", "random loss"))
    assert seen.before > 30
    assert seen.threshold == seen.before // 2
    assert seen.threshold <= seen.settled <= seen.threshold + 1


@pytest.mark.parametrize(
    ("sets", "verdict"), [(("beta=1000",), "undecided"), (("alpha=0", "beta=0"), "congestion")]
)
def test_westwoodvt_decides_by_its_thresholds(runs, sets, verdict):
    """With a queue of one segment or more, thresholds of 0 make every loss one of congestion; with
    alpha at 0 and beta out of reach, none is decided."""
    sets = ("alpha=0", *sets) if "alpha=0" not in sets else sets
    observed = runs("westwoodvt", "longer queue", *sets)
    judged = [
        event
        for event in observed.of_kind("three_duplicates")
        if event["cwnd_before"] >= (event["ssthresh_before"] or NO_THRESHOLD)
        and event["backlog_segments"] > 0
    ]
    assert judged
    assert {event["verdict"] for event in judged} == {verdict}
    for event in judged:
        if verdict == "undecided":
            assert event["cwnd"] == event["cwnd_before"]
            assert event["ssthresh"] == event["ssthresh_before"]
        else:
            assert event["ssthresh"] == estimated_window(event)


# --- a full queue


def keeps_a_few_segments_in_the_queue(observed: Observed) -> None:
    assert observed.overflows == 0
    # The last row is the last change: the window has settled.
    assert BANDWIDTH_DELAY + 1 <= observed.rows[-1].window <= BANDWIDTH_DELAY + 6
    sample = observed.of_kind("sample")[-1]
    assert 2 <= sample["backlog_segments"] <= 4


def test_vegas_keeps_a_few_segments_in_the_queue(runs):
    runs.settled(keeps_a_few_segments_in_the_queue, "vegas", "full queue")


def comes_back_to_what_fills_the_path(observed: Observed) -> None:
    """In the end, when the filter has seen a few time constants."""
    assert observed.overflows > 0
    last = thresholds(observed)[-1]
    assert abs(last - BANDWIDTH_DELAY) < 0.1 * BANDWIDTH_DELAY


@pytest.mark.parametrize("scheme", ["westwood", "westwoodnr"])
def test_westwood_comes_back_to_what_fills_the_path(runs, scheme):
    runs.settled(comes_back_to_what_fills_the_path, scheme, "full queue")


def test_newreno_comes_back_to_half_of_what_fills_path_and_queue(runs):
    observed = runs("newreno", "full queue")
    assert observed.overflows > 0
    # Slow start overruns path and queue before the first. A busy machine has losses of its own.
    episodes = [
        (observed.before(each[0].at).window, each[-1]) for each in observed.episodes(RECOVERY)
    ]
    filled = [(before, end) for before, end in episodes[1:] if before > BANDWIDTH_DELAY + 8]
    assert filled
    for before, end in filled:
        # TCP_INFO is looked at every millisecond, in which the window may have grown by one.
        assert end.threshold in (before // 2, (before + 1) // 2)
        assert end.threshold < 0.8 * BANDWIDTH_DELAY


def test_newreno_fills_the_queue_where_vegas_does_not(runs):
    assert runs("newreno", "full queue").overflows > 0


@pytest.mark.parametrize("scheme", ["tahoe", "reno"])
def test_the_classics_at_a_full_queue(runs, scheme):
    observed = runs(scheme, "full queue")
    assert observed.overflows > 0
    reactions = observed.of_kind("three_duplicates")
    # The path is full when it holds what it carries, and ten packets in the queue.
    assert any(each["cwnd_before"] > BANDWIDTH_DELAY + 8 for each in reactions)
    for each in reactions:
        assert each["ssthresh"] == max(min(each["cwnd_before"], each["flight"]) // 2, 2)
        assert each["cwnd"] == (1 if scheme == "tahoe" else each["ssthresh"])
    told = [each["ssthresh"] for each in observed.of_kind("three_duplicates", "timeout")]
    assert thresholds(observed) == [b for a, b in pairwise([None, *told]) if a != b]


def test_westwoodvt_takes_a_full_queue_for_congestion(runs):
    runs.settled(takes_a_full_queue_for_congestion, "westwoodvt", "longer queue")


def takes_a_full_queue_for_congestion(observed: Observed) -> None:
    assert observed.overflows > 0
    last = observed.of_kind("three_duplicates")[-1]
    assert last["verdict"] == "congestion"
    assert last["backlog_segments"] > 16
    comes_back_to_what_fills_the_path(observed)


# --- ours beside the kernel's own


def test_reno_and_the_kernel_s_newreno_do_the_same_with_one_loss(runs):
    """They differ only where a window has lost more than one segment."""
    ours, kernels = (runs(scheme, "one loss") for scheme in ("reno", "newreno"))
    assert ours.in_recovery().threshold == kernels.in_recovery().threshold == WINDOW // 2
    settled = [each.settled(after=each.in_recovery().at).window for each in (ours, kernels)]
    assert abs(settled[0] - settled[1]) <= 1


@pytest.mark.parametrize(
    ("scheme", "kernels"), [("vegas", "vegas-linux"), ("westwood", "westwood+")]
)
def test_ours_and_the_kernel_s_version_come_to_the_same_window(runs, scheme, kernels):
    """Vegas: the kernel takes the smallest RTT of a round trip where ours takes the mean, and falls
    back to Reno at few samples; westwood+ takes one sample of the bandwidth a round trip. On a path
    whose queue fills slowly that makes no difference in the end."""
    entry = read_schemes()[kernels]
    if not check_availability(entry).available:
        pytest.skip(f"this kernel has no tcp_{entry.kernel}: run on one that has, such as Debian's")
    ours, theirs = runs(scheme, "full queue"), runs(kernels, "full queue")
    if scheme == "vegas":
        assert theirs.overflows == ours.overflows == 0
        assert abs(theirs.rows[-1].window - ours.rows[-1].window) <= 4
    else:
        last = [thresholds(each)[-1] for each in (ours, theirs)]
        assert abs(last[0] - last[1]) <= 0.15 * BANDWIDTH_DELAY


# --- a receiver that does not know the scheme


def test_real_is_reno_where_the_receiver_sends_no_option_and_says_so(runs):
    observed = runs("real", "one loss")
    assert only(observed, "fallback")["una"] < only(observed, "three_duplicates")["una"]
    assert only(observed, "three_duplicates")["verdict"] == "congestion"
    reno_halves(observed)
    assert not runs("reno", "one loss").of_kind("fallback")
