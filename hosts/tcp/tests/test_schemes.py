# SPDX-License-Identifier: Apache-2.0
"""Each scheme must change its window as it is defined: the kernel's TCP in virtual time.

Each expectation is a function of what was observed. Where the kernel's NewReno differs from the
scheme by definition, the same expectation must fail for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pytest
from marks import in_virtual_time
from nagi.plan.schemes import read_schemes
from tcp_path import (
    FIRST_DATA,
    LOSS,
    NO_THRESHOLD,
    OPEN,
    RECOVERY,
    SEGMENT,
    Observed,
    Scenario,
    estimate_window,
    run_scenario,
)

pytestmark = in_virtual_time
ROUND_TRIP_S = 0.04
RATE_BPS = 8_000_000  # of the slow path
PACKET_BITS = (SEGMENT + 52) * 8
OURS = [name for name, scheme in read_schemes().items() if scheme.object]
# Those that need nothing of others: no path here marks, and receivers are the kernel's own.
ALONE = [
    name
    for name in OURS
    if not (read_schemes()[name].needs_marks or read_schemes()[name].both_ends)
]

FAST = "rate: 1 Gb/s, queue: 1000 packets"  # so fast that there is no queue
SLOW = "rate: 8 Mb/s, queue: {} packets"
# New Jersey wants a link that marks. This one never does, as nobody asks for ECN.
MARKING = f"{FAST}, mark: {{threshold: 10000 packets}}"
# Round trip of a full packet: it takes 1.5 ms to send. What fills the path is 27.7 packets.
BANDWIDTH_DELAY = (ROUND_TRIP_S + PACKET_BITS / RATE_BPS) * RATE_BPS / PACKET_BITS

# A segment lost in slow start, when 38 have been acknowledged one by one: the window is 39.
EARLY_LOSS = FIRST_DATA + 38
WINDOW = 39
TAIL = 12


def make_slow_scenario(*names: str, queue: int, **parameters: dict[str, int]) -> Scenario:
    """Return a scenario on the slow path, with `queue` packets at most in the queue."""
    forward = SLOW.format(queue)
    return Scenario(names, forward, [EARLY_LOSS], segments=100_000, parameters=parameters)


SCENARIOS = {
    "one loss": Scenario([*ALONE, "real", "newreno"], FAST, [EARLY_LOSS], segments=250),
    "one loss, restart with 2": Scenario(
        ["tahoe"],
        FAST,
        [EARLY_LOSS],
        segments=250,
        parameters={"tahoe": {"cwnd_after_loss": 2}},
    ),
    "two losses": Scenario(
        ["tahoe", "reno", "westwoodnr", "westwoodvt", "newreno"],
        FAST,
        [EARLY_LOSS, EARLY_LOSS + 4],
        segments=250,
    ),
    "many losses": Scenario(
        ["tahoe", "reno"], FAST, range(EARLY_LOSS, EARLY_LOSS + 27), segments=250
    ),
    # The last of a transfer, so that no duplicate ACK comes.
    "timeout": Scenario(
        [*OURS, "newreno"],
        MARKING,
        range(FIRST_DATA + 100 - TAIL, FIRST_DATA + 100),
        segments=100,
    ),
    "random loss": Scenario(
        [*ALONE, "newreno"], FAST, [EARLY_LOSS, 1500], segments=2500, seconds=8
    ),
    "full queue": make_slow_scenario(
        *(scheme for scheme in ALONE if scheme != "westwoodvt"), "newreno", "vegas-linux", queue=10
    ),
    "longer queue": make_slow_scenario("westwood", "westwoodvt", "westwood+", "newreno", queue=20),
    "longer queue, alpha 0, beta 0": make_slow_scenario(
        "westwoodvt", queue=20, westwoodvt={"alpha": 0, "beta": 0}
    ),
    "longer queue, alpha 0, beta 1000": make_slow_scenario(
        "westwoodvt", queue=20, westwoodvt={"alpha": 0, "beta": 1000}
    ),
}

Runs = Callable[[str, str], Observed]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Return a function that finds what was observed of a scheme in a scenario.

    Each scenario is run once, when a test first asks for it. A second run would be the same.
    """
    observed: dict[str, dict[str, Observed]] = {}

    def find(scheme: str, scenario: str) -> Observed:
        if scenario not in observed:
            directory = tmp_path_factory.mktemp("scenario")
            observed[scenario] = run_scenario(SCENARIOS[scenario], directory)
        return observed[scenario][scheme]

    return find


def take_only(observed: Observed, kind: str) -> dict[str, Any]:
    """Return the event of a kind, which must be the only one of its kind."""
    (event,) = observed.find_events(kind)
    return event


@dataclass(frozen=True)
class Reaction:
    """Windows around the last recovery, as TCP_INFO has them."""

    before: int  # window
    at_once: int  # window, when the segment had been sent again
    threshold: int
    settled: int  # window, when all was repaired

    @classmethod
    def of_last_loss(cls, observed: Observed) -> Reaction:
        """Find the last recovery, and the rows of TCP_INFO around it."""
        episode = observed.find_episodes(RECOVERY)[-1]
        before = observed.find_row_before(episode[0].time_s).cwnd
        if events := observed.find_events("three_duplicates"):
            # In the millisecond since TCP_INFO was read the window may have grown by one.
            assert before <= events[-1]["cwnd_before"] <= before + 1
            before = events[-1]["cwnd_before"]
        row = min(episode, key=lambda row: row.cwnd)
        settled = observed.find_settled(after_s=episode[0].time_s)
        return cls(before, row.cwnd, row.ssthresh, settled.cwnd)


# --- three duplicate ACKs


def check_tahoe_starts_over(observed: Observed) -> None:
    row = observed.find_recovery()
    assert (row.cwnd, row.ssthresh) == (1, WINDOW // 2)
    # On the wire: the lost segment alone, then slow start up to ssthresh.
    again_s = take_only(observed, "three_duplicates")["t_s"]
    begin_s = again_s + ROUND_TRIP_S * 7 / 8
    assert observed.count_sent(begin_s, ROUND_TRIP_S, 5) == [2, 4, 8, 16, WINDOW // 2]


def check_reno_halves(observed: Observed) -> None:
    row = observed.find_recovery()
    assert (row.cwnd, row.ssthresh) == (WINDOW // 2, WINDOW // 2)
    settled = observed.find_settled(after_s=row.time_s)
    assert settled.ssthresh == settled.cwnd == WINDOW // 2


def check_vegas_keeps_three_quarters(observed: Observed) -> None:
    event = take_only(observed, "three_duplicates")
    row = observed.find_recovery()
    assert row.cwnd == max(event["cwnd_before"] * 3 // 4, 2)
    assert row.ssthresh == 2


def check_westwood_takes_its_estimate(observed: Observed) -> None:
    event = take_only(observed, "three_duplicates")
    row = observed.find_recovery()
    assert row.ssthresh == estimate_window(event)
    assert row.cwnd == min(row.ssthresh, event["cwnd_before"])


@pytest.mark.parametrize(
    ("scheme", "check"),
    [
        ("tahoe", check_tahoe_starts_over),
        ("reno", check_reno_halves),
        ("vegas", check_vegas_keeps_three_quarters),
        ("westwood", check_westwood_takes_its_estimate),
        ("westwoodnr", check_westwood_takes_its_estimate),
        ("westwoodvt", check_westwood_takes_its_estimate),  # in slow start nothing is asked
    ],
)
def test_after_three_duplicate_acks(runs, scheme, check):
    observed = runs(scheme, "one loss")
    event = take_only(observed, "three_duplicates")
    assert event["verdict"] == "congestion"
    assert observed.rows[-1].total_retrans == 1
    if scheme != "vegas":  # whose slow start is slower
        assert event["cwnd_before"] == WINDOW
    check(observed)


def test_tahoe_restarts_with_the_window_it_is_given(runs):
    """Check the two segments of the paper on TCP-Real."""
    row = runs("tahoe", "one loss, restart with 2").find_recovery()
    assert (row.cwnd, row.ssthresh) == (2, WINDOW // 2)


def test_newreno_halves_at_three_duplicate_acks(runs):
    """Check a gradual halving (RFC 6937): the window comes down to half, never to one segment."""
    observed = runs("newreno", "one loss")
    row = observed.find_recovery()
    assert row.ssthresh == WINDOW // 2 <= row.cwnd
    assert observed.rows[-1].total_retrans == 1
    settled = observed.find_settled(after_s=row.time_s)
    assert settled.ssthresh == settled.cwnd == WINDOW // 2


# --- another loss in the same window


def test_reno_halves_for_each_loss_in_a_window(runs):
    observed = runs("reno", "two losses")
    assert observed.list_thresholds() == [WINDOW // 2, WINDOW // 4]
    assert observed.rows[-1].total_retrans == 2
    first, second = observed.find_events("three_duplicates")
    assert (second["cwnd_before"], second["cwnd"]) == (WINDOW // 2, WINDOW // 4)
    # It does not retransmit at the partial ACK, but three duplicate ACKs later.
    partial = take_only(observed, "partial_ack")
    assert first["una"] < partial["una"] == second["una"]
    assert second["t_s"] > partial["t_s"]


def test_newreno_halves_once_for_two_losses_in_a_window(runs):
    observed = runs("newreno", "two losses")
    assert observed.list_thresholds() == [WINDOW // 2]
    assert observed.rows[-1].total_retrans == 2
    assert len(observed.find_episodes(RECOVERY)) == 1


@pytest.mark.parametrize("scheme", ["tahoe", "westwoodnr", "westwoodvt"])
def test_others_repair_two_losses_at_once(runs, scheme):
    observed = runs(scheme, "two losses")
    take_only(observed, "three_duplicates")
    take_only(observed, "partial_ack")
    assert observed.rows[-1].total_retrans == 2
    assert not observed.find_events("timeout")


def test_tahoe_goes_back_n_after_many_losses(runs):
    observed = runs("tahoe", "many losses")
    take_only(observed, "three_duplicates")
    timeout = take_only(observed, "timeout")
    assert timeout["verdict"] is None  # the loss has been judged
    assert timeout["ssthresh"] == WINDOW // 2
    row = observed.find_episodes(LOSS)[0][0]
    assert (row.cwnd, row.ssthresh) == (1, WINDOW // 2)
    assert observed.rows[-1].total_retrans > 27


def test_reno_waits_for_the_timer_after_many_losses(runs):
    timeout = take_only(runs("reno", "many losses"), "timeout")
    assert timeout["verdict"] == "congestion"
    assert timeout["ssthresh"] == WINDOW // 4


# --- a timeout


@pytest.mark.parametrize("scheme", OURS)
def test_after_a_timeout(runs, scheme):
    observed = runs(scheme, "timeout")
    row = observed.find_episodes(LOSS)[0][0]
    event = take_only(observed, "timeout")
    assert not observed.find_events("three_duplicates")
    assert event["verdict"] == "congestion"
    assert event["flight"] == TAIL < event["cwnd_before"]
    if scheme == "vegas":
        assert (row.cwnd, row.ssthresh) == (2, TAIL // 2)
    elif scheme == "newjersey" or scheme.startswith("westwood"):
        assert (row.cwnd, row.ssthresh) == (1, estimate_window(event))
        assert row.ssthresh != TAIL // 2
    else:
        assert (row.cwnd, row.ssthresh) == (1, TAIL // 2)
    # Slow start follows, and the threshold stays as it is.
    assert observed.rows[-1].state in (OPEN, LOSS)
    assert observed.rows[-1].ssthresh == row.ssthresh
    assert observed.rows[-1].cwnd > row.cwnd
    assert observed.rows[-1].total_retrans == TAIL


def test_newreno_takes_its_window_and_not_what_is_outstanding_at_a_timeout(runs):
    """Check where the kernel's own differs from RFC 5681: it halves the window."""
    observed = runs("newreno", "timeout")
    row = observed.find_episodes(LOSS)[0][0]
    assert row.cwnd == 1
    assert row.ssthresh == observed.find_row_before(row.time_s).cwnd // 2 > TAIL // 2


# --- a random loss, no queue anywhere, in congestion avoidance


def check_most_is_kept(observed: Observed) -> None:
    reaction = Reaction.of_last_loss(observed)
    assert reaction.before > 30
    assert reaction.settled >= 0.7 * reaction.before


def check_nothing_changes(observed: Observed) -> None:
    reaction = Reaction.of_last_loss(observed)
    assert reaction.before > 30
    assert reaction.before <= reaction.settled <= reaction.before + 1
    assert observed.list_thresholds() == [reaction.threshold]  # the one of the early loss


def check_half_is_left(observed: Observed) -> None:
    reaction = Reaction.of_last_loss(observed)
    assert reaction.before > 30
    assert reaction.threshold == reaction.at_once == reaction.before // 2
    assert reaction.threshold <= reaction.settled <= reaction.threshold + 1


def check_start_over(observed: Observed) -> None:
    reaction = Reaction.of_last_loss(observed)
    assert reaction.before > 30
    assert (reaction.at_once, reaction.threshold) == (1, reaction.before // 2)


def check_three_quarters_are_left(observed: Observed) -> None:
    reaction = Reaction.of_last_loss(observed)
    assert reaction.before > 30
    assert reaction.at_once == reaction.before * 3 // 4


@pytest.mark.parametrize(
    ("scheme", "check", "verdict"),
    [
        ("tahoe", check_start_over, "congestion"),
        ("reno", check_half_is_left, "congestion"),
        ("vegas", check_three_quarters_are_left, "congestion"),
        ("westwood", check_most_is_kept, "congestion"),
        ("westwoodnr", check_most_is_kept, "congestion"),
        ("westwoodvt", check_nothing_changes, "channel"),
    ],
)
def test_after_a_random_loss_without_a_queue(runs, scheme, check, verdict):
    observed = runs(scheme, "random loss")
    check(observed)
    _early, last = observed.find_events("three_duplicates")
    assert last["verdict"] == verdict
    if scheme.startswith("westwood") and verdict == "congestion":
        assert last["ssthresh"] == estimate_window(last)
    if scheme == "westwoodvt":
        assert last["backlog_segments"] < 14


@pytest.mark.parametrize("check", [check_most_is_kept, check_nothing_changes, check_start_over])
def test_newreno_does_not_do_what_others_do_at_a_random_loss(runs, check):
    with pytest.raises(AssertionError):
        check(runs("newreno", "random loss"))


def test_newreno_halves_at_a_random_loss(runs):
    """Check a gradual halving (RFC 6937): the window at once depends on which ACKs had come."""
    reaction = Reaction.of_last_loss(runs("newreno", "random loss"))
    assert reaction.before > 30
    assert reaction.threshold == reaction.before // 2
    assert reaction.threshold <= reaction.settled <= reaction.threshold + 1


@pytest.mark.parametrize(("beta", "verdict"), [(1000, "undecided"), (0, "congestion")])
def test_westwoodvt_decides_by_its_thresholds(runs, beta, verdict):
    """Check losses with a queue of more than one segment.

    Thresholds of 0 make every loss one of congestion. With alpha at 0 and beta out of reach, none
    is decided.
    """
    observed = runs("westwoodvt", f"longer queue, alpha 0, beta {beta}")
    judged = [
        event
        for event in observed.find_events("three_duplicates")
        if event["cwnd_before"] >= (event["ssthresh_before"] or NO_THRESHOLD)
    ]
    assert judged
    for event in judged:
        assert event["backlog_segments"] > 1
        assert event["verdict"] == verdict
        if verdict == "undecided":
            assert event["cwnd"] == event["cwnd_before"]
            assert event["ssthresh"] == event["ssthresh_before"]
        else:
            assert event["ssthresh"] == estimate_window(event)


# --- a full queue


def check_few_segments_are_queued(observed: Observed) -> None:
    # The last row is the last change: the window has settled at alpha to beta segments above the
    # bandwidth-delay product.
    assert BANDWIDTH_DELAY + 2 <= observed.rows[-1].cwnd <= BANDWIDTH_DELAY + 4


def test_vegas_keeps_a_few_segments_in_the_queue(runs):
    observed = runs("vegas", "full queue")
    check_few_segments_are_queued(observed)
    assert observed.overflows == 0
    sample = observed.find_events("sample")[-1]
    assert 2 <= sample["backlog_segments"] <= 4


def check_window_is_what_fills_the_path(observed: Observed) -> None:
    """Check the last threshold, when the filter has seen a few time constants."""
    assert observed.overflows > 0
    assert observed.list_thresholds()[-1] == int(BANDWIDTH_DELAY)


@pytest.mark.parametrize("scheme", ["westwood", "westwoodnr"])
def test_westwood_comes_back_to_what_fills_the_path(runs, scheme):
    check_window_is_what_fills_the_path(runs(scheme, "full queue"))


def test_newreno_comes_back_to_half_of_what_fills_path_and_queue(runs):
    observed = runs("newreno", "full queue")
    assert observed.overflows > 0
    # The first is the loss of slow start.
    _first, *episodes = observed.find_episodes(RECOVERY)
    assert len(episodes) > 2
    for episode in episodes:
        before = observed.find_row_before(episode[0].time_s).cwnd
        assert before == int(BANDWIDTH_DELAY + 11)
        assert episode[-1].ssthresh == before // 2 < 0.8 * BANDWIDTH_DELAY


def test_newreno_fills_the_queue_where_vegas_does_not(runs):
    assert runs("newreno", "full queue").overflows > 0


@pytest.mark.parametrize("scheme", ["tahoe", "reno"])
def test_the_classics_at_a_full_queue(runs, scheme):
    observed = runs(scheme, "full queue")
    assert observed.overflows > 0
    reactions = observed.find_events("three_duplicates")
    # A full path holds the bandwidth-delay product, ten queued packets and one in transmission.
    assert [event["cwnd_before"] for event in reactions[-3:]] == [int(BANDWIDTH_DELAY + 11)] * 3
    for event in reactions:
        assert event["ssthresh"] == max(min(event["cwnd_before"], event["flight"]) // 2, 2)
        assert event["cwnd"] == (1 if scheme == "tahoe" else event["ssthresh"])
    told = [event["ssthresh"] for event in observed.find_events("three_duplicates", "timeout")]
    assert observed.list_thresholds() == [ssthresh for ssthresh, _ in groupby(told)]


def test_westwoodvt_takes_a_full_queue_for_congestion(runs):
    observed = runs("westwoodvt", "longer queue")
    last = observed.find_events("three_duplicates")[-1]
    assert last["verdict"] == "congestion"
    assert last["backlog_segments"] > 16
    check_window_is_what_fills_the_path(observed)


# --- ours and the kernel's own


def test_reno_and_the_kernel_s_newreno_do_the_same_with_one_loss(runs):
    """Check one loss in a window: the two differ only where more are lost."""
    for scheme in ("reno", "newreno"):
        observed = runs(scheme, "one loss")
        row = observed.find_recovery()
        settled = observed.find_settled(after_s=row.time_s)
        assert row.ssthresh == settled.ssthresh == settled.cwnd == WINDOW // 2


def test_vegas_and_the_kernel_s_come_to_the_same_window(runs):
    """Check the last window: in the end it makes no difference how the two take RTTs.

    The kernel takes the smallest RTT of a round trip where ours takes the mean, and falls back to
    Reno at few samples. So it overruns the path in slow start.
    """
    kernels = runs("vegas-linux", "full queue")
    check_few_segments_are_queued(kernels)
    assert kernels.rows[-1].cwnd == runs("vegas", "full queue").rows[-1].cwnd
    assert len(kernels.find_episodes(RECOVERY)) == 1
    # Neither of them behaves like NewReno.
    with pytest.raises(AssertionError):
        check_few_segments_are_queued(runs("newreno", "full queue"))


def test_westwood_and_the_kernel_s_both_fill_the_path(runs):
    """Check the last thresholds: NewReno's half of path and queue is less than the path.

    The kernel takes one sample of the bandwidth per round trip. Its estimate is larger than ours,
    by a fifth at most.
    """
    ours, kernels, newreno = (
        runs(scheme, "longer queue").list_thresholds()[-1]
        for scheme in ("westwood", "westwood+", "newreno")
    )
    assert newreno < ours == int(BANDWIDTH_DELAY) <= kernels <= 1.2 * BANDWIDTH_DELAY


# --- a receiver that does not know the scheme


def test_real_is_reno_where_the_receiver_sends_no_option_and_says_so(runs):
    observed = runs("real", "one loss")
    event = take_only(observed, "three_duplicates")
    assert take_only(observed, "fallback")["una"] < event["una"]
    assert event["verdict"] == "congestion"
    check_reno_halves(observed)
    assert not runs("reno", "one loss").find_events("fallback")
