# SPDX-License-Identifier: Apache-2.0
"""Loss differentiation: made drop logs and reactions, compared with the definition."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nagi_captures.drops import read_drops
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.records import Manifest
from nagi_contracts.results import Metrics
from nagi_reports.analysis import analyse_run
from nagi_reports.attribution import (
    NOT_NOTICED,
    OUTCOMES,
    UNDECIDED,
    classify_by_events,
    classify_by_tcp_info,
    compute_columns,
    name_column,
    sum_classified,
)

SEGMENT = 1000
(RECORDED,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())


def losses(*rows: tuple[float, int], cause: str = "channel loss") -> pd.DataFrame:
    """Return a table of losses, given as (time, sequence number)."""
    table = pd.DataFrame(rows, columns=["t_s", "sequence"])
    return table.assign(payload=SEGMENT, cause=cause)


def events(*rows: tuple[float, str, int, int, str | None]) -> pd.DataFrame:
    """Return a table of events, given as (time, event, una, next, verdict)."""
    return pd.DataFrame(rows, columns=["t_s", "event", "una", "next", "verdict"])


def classify(lost: pd.DataFrame, told_by: pd.DataFrame) -> list[str]:
    return [OUTCOMES[code] for code in classify_by_events(lost, told_by)]


STARTED = (0.0, "started", 0, 0, None)


def test_the_first_verdict_after_a_loss_classifies_it():
    happened = events(
        STARTED,
        (1.0, "three_duplicates", 5000, 20000, "congestion"),
        (2.0, "three_duplicates", 30000, 50000, "channel"),
        (3.0, "three_duplicates", 60000, 80000, "undecided"),
    )
    lost = losses((0.9, 5000), (1.5, 30000), (2.5, 60000))
    assert classify(lost, happened) == ["congestion", "channel", "undecided"]


def test_two_losses_in_one_window_share_its_verdict():
    happened = events(STARTED, (1.0, "three_duplicates", 5000, 20000, "channel"))
    assert classify(losses((0.8, 5000), (0.81, 9000), (0.82, 19000)), happened) == ["channel"] * 3
    # One segment further had not been sent yet.
    assert classify(losses((0.9, 20000)), happened) == ["not noticed"]


def test_a_retransmission_lost_again_is_what_the_timeout_says():
    happened = events(
        STARTED,
        (1.0, "three_duplicates", 5000, 20000, "channel"),
        (2.0, "timeout", 5000, 26000, "congestion"),
    )
    assert classify(losses((0.9, 5000), (1.1, 5000)), happened) == ["channel", "congestion"]


def test_a_loss_within_a_repair_counts_with_it_once_it_has_been_acknowledged():
    repair = [STARTED, (1.0, "timeout", 5000, 26000, "congestion")]
    lost = losses((1.2, 8000))  # sent again after the timeout, and lost again
    assert classify(lost, events(*repair)) == ["not noticed"]
    assert classify(lost, events(*repair, (2.0, "sample", 8000, 26000, None))) == ["not noticed"]
    assert classify(lost, events(*repair, (2.0, "sample", 9000, 26000, None))) == ["congestion"]
    beyond = losses((1.2, 26000))  # not part of what is repaired
    assert classify(beyond, events(*repair, (2.0, "sample", 90000, 95000, None))) == ["not noticed"]


def test_a_partial_ack_belongs_to_its_repair_and_shows_one_segment():
    happened = events(
        STARTED,
        (1.0, "three_duplicates", 5000, 20000, "channel"),
        (1.2, "partial_ack", 18000, 30000, None),
        (2.0, "three_duplicates", 25000, 40000, "congestion"),
    )
    # 18000 was under way at the verdict and lost then; 25000 is no part of that repair.
    assert classify(losses((1.05, 18000), (1.1, 25000)), happened) == ["channel", "congestion"]


def test_an_event_without_a_verdict_belongs_to_the_mark_before_it():
    happened = events(
        STARTED,
        (0.5, "three_duplicates", 1000, 3000, "channel"),
        (0.9, "congestion_mark", 5000, 20000, "congestion"),
        (1.0, "three_duplicates", 5000, 20000, None),
    )
    assert classify(losses((0.8, 5000)), happened) == ["congestion"]


def test_sequence_numbers_wrap():
    near = 2**32 - 3000
    happened = events(
        (0.0, "started", near - 10000, near - 10000, None),
        (1.0, "three_duplicates", near, 5000, "channel"),
        (2.0, "three_duplicates", 6000, 9000, "congestion"),
    )
    lost = losses((0.9, near), (0.9, 2**32 - 1000), (0.9, 4000), (1.5, 7000), (1.5, near - 5000))
    expected = ["channel", "channel", "channel", "congestion", "not noticed"]
    assert classify(lost, happened) == expected


def test_without_events_no_loss_is_noticed():
    assert classify(losses((0.1, 5000)), events(STARTED)) == ["not noticed"]
    assert classify(losses((0.1, 5000)), events()) == ["not noticed"]
    assert classify(losses(), events(STARTED)) == []
    # Before the connection began, as far as the scheme knows.
    later = events((1.0, "started", 0, 0, None), (2.0, "timeout", 0, 1000, "congestion"))
    assert classify(losses((0.5, 0)), later) == ["congestion"]


def classify_one_by_one(loss: tuple[float, int], happened: pd.DataFrame) -> int:
    """Return what classify_by_events() must return, by one event after the other."""
    at, sequence = loss
    wrap = 2**32
    verdict, found, repair = UNDECIDED, None, None
    for row in happened.itertuples():
        if isinstance(row.verdict, str):
            verdict = OUTCOMES.index(row.verdict)
        covers = (sequence - row.una) % wrap < (row.next - row.una) % wrap
        noticing = row.event in ("three_duplicates", "timeout")
        if row.t_s <= at:
            if noticing:
                repair = verdict if covers else None
        elif (noticing and covers) or (
            row.event == "partial_ack" and (row.una - sequence) % wrap < SEGMENT
        ):
            found = verdict
            break
    if found is None and repair is not None:
        last = int(happened["una"].iloc[-1])
        if 0 < (last - sequence) % wrap < wrap // 2:
            found = repair
    return NOT_NOTICED if found is None else found


@st.composite
def connections(draw):
    """Draw a connection's events and losses; sequence numbers begin anywhere and never decrease."""
    una = draw(st.integers(0, 2**32 - 1))
    beyond = una
    rows = [(0.0, "started", una, una, None)]
    for step in range(draw(st.integers(0, 25))):
        kind = draw(st.sampled_from(["three_duplicates", "timeout", "partial_ack", "sample"]))
        kinds = ["congestion", "channel", "undecided", None]
        verdict = draw(st.sampled_from(kinds)) if kind in ("three_duplicates", "timeout") else None
        una += SEGMENT * draw(st.integers(0, 8))
        beyond = max(beyond, una) + SEGMENT * draw(st.integers(0, 8))
        rows.append((step + 1.0, kind, una % 2**32, beyond % 2**32, verdict))
    begin = rows[0][2]
    lost = draw(st.lists(st.tuples(st.integers(0, 54).map(lambda n: n / 2), st.integers(0, 250))))
    return rows, [(at, (begin + number * SEGMENT) % 2**32) for at, number in lost]


@settings(deadline=None)
@given(connections(), st.data())
def test_classification_by_events_agrees_with_its_definition(connection, data):
    rows, lost = connection
    happened, table = events(*rows), losses(*lost)
    causes = ["channel loss", "queue overflow"]
    table["cause"] = [data.draw(st.sampled_from(causes)) for _ in lost]
    found = classify_by_events(table, happened)
    assert found.tolist() == [classify_one_by_one(loss, happened) for loss in lost]
    values = compute_columns(table, found)
    for cause, name in (("channel", "channel loss"), ("queue", "queue overflow")):
        counts = [values[name_column(cause, outcome)] for outcome in OUTCOMES]
        assert sum(counts) == (table["cause"] == name).sum()


def samples(*rows: tuple[float, int, int, int]) -> pd.DataFrame:
    """Return samples at an RTT of 40 ms, given as (time, ca_state, snd_ssthresh, snd_cwnd)."""
    table = pd.DataFrame(rows, columns=["t_s", "ca_state", "snd_ssthresh", "snd_cwnd"])
    return table.assign(rtt=40_000)


def retransmissions(*rows: tuple[float, int]) -> pd.DataFrame:
    """Return a table of retransmissions, given as (time, sequence number)."""
    return pd.DataFrame(rows, columns=["t_s", "sequence"]).assign(payload=SEGMENT)


def read_off(lost, resent, seen, threshold=True) -> list[str]:
    return [
        OUTCOMES[code]
        for code in classify_by_tcp_info(lost, resent, seen, sets_threshold=threshold)
    ]


def test_a_threshold_that_changes_around_the_retransmission_is_congestion():
    seen = samples((0.9, 0, 40, 60), (1.0, 3, 30, 55), (1.1, 0, 30, 30), (1.2, 0, 30, 31))
    assert read_off(losses((0.93, 5000)), retransmissions((0.98, 5000)), seen) == ["congestion"]
    assert read_off(losses((1.05, 5000)), retransmissions((1.15, 5000)), seen) == ["channel"]


def test_a_window_that_falls_without_a_threshold_is_congestion():
    fallen = samples((0.9, 0, 2, 3), (1.0, 3, 2, 2), (1.1, 0, 2, 2))
    assert read_off(losses((0.9, 0)), retransmissions((0.95, 0)), fallen) == ["congestion"]


def test_a_scheme_that_sets_no_threshold_is_judged_by_its_window_after_the_repair():
    # In the repair the window is what is in flight, then it is given back.
    back = samples((0.9, 0, 40, 60), (1.0, 3, 35, 20), (1.1, 0, 35, 59))
    lost, resent = losses((0.92, 0)), retransmissions((0.97, 0))
    assert read_off(lost, resent, back, threshold=False) == ["channel"]
    less = samples((0.9, 0, 40, 60), (1.0, 3, 35, 20), (1.1, 0, 35, 40), (1.5, 0, 35, 60))
    assert read_off(lost, resent, less, threshold=False) == ["congestion"]
    # Always in recovery; the last has no sample an RTT later.
    always = samples((0.9, 3, 40, 60), (1.0, 3, 40, 59), (1.1, 3, 40, 40), (1.2, 3, 40, 40))
    lost = losses((0.92, 0), (1.0, 1000), (1.15, 2000))
    resent = retransmissions((0.95, 0), (1.05, 1000), (1.19, 2000))
    classify = ["channel", "congestion", "undecided"]
    assert read_off(lost, resent, always, threshold=False) == classify


def test_all_of_an_episode_is_judged_by_what_was_before_and_after_it():
    seen = samples((0.9, 0, 40, 60), (1.0, 3, 30, 50), (1.1, 3, 30, 40), (1.2, 0, 30, 30))
    lost = losses((0.92, 5000), (1.05, 9000))
    assert read_off(lost, retransmissions((0.98, 5000), (1.15, 9000)), seen) == ["congestion"] * 2


def test_in_lasting_recovery_what_counts_is_whether_the_threshold_ever_changes():
    lost, resent = losses((0.92, 5000)), retransmissions((0.95, 5000))
    same = samples((0.9, 3, 40, 60), (1.0, 3, 40, 50), (1.1, 3, 40, 40))
    assert read_off(lost, resent, same) == ["channel"]
    changed = samples((0.9, 3, 40, 60), (1.0, 3, 40, 50), (1.1, 3, 30, 40))
    assert read_off(lost, resent, changed) == ["congestion"]


def test_without_samples_around_it_a_loss_is_undecided_and_without_being_sent_again_not_noticed():
    seen = samples((1.0, 0, 40, 60), (1.1, 0, 40, 61), (1.2, 0, 40, 62))
    lost = losses((0.5, 0), (1.11, 1000), (1.12, 2000))
    resent = retransmissions((0.6, 0), (1.21, 1000), (0.1, 2000))  # the last one before it was lost
    assert read_off(lost, resent, seen) == ["undecided", "undecided", "not noticed"]
    assert read_off(lost, resent, samples()) == ["undecided", "undecided", "not noticed"]
    assert read_off(losses(), retransmissions(), seen) == []


def test_a_segment_lost_twice_has_two_retransmissions():
    seen = samples((0.9, 0, 40, 60), (1.0, 0, 40, 61), (1.5, 4, 30, 1), (1.7, 0, 30, 4))
    lost = losses((0.9, 5000), (0.97, 5000))
    assert read_off(lost, retransmissions((0.95, 5000), (1.4, 5000)), seen) == [
        "channel",
        "congestion",
    ]


def test_a_retransmission_may_join_segments():
    seen = samples((0.9, 0, 40, 60), (1.0, 0, 40, 61))
    joined = retransmissions((0.95, 4000)).assign(payload=3 * SEGMENT)
    lost = losses((0.9, 4000), (0.9, 6000), (0.9, 7000))
    assert read_off(lost, joined, seen) == ["channel", "channel", "not noticed"]


def test_shares_are_of_all_losses_with_intervals_over_runs():
    names = [name_column(cause, outcome) for cause in ("channel", "queue") for outcome in OUTCOMES]
    rows = pd.DataFrame(
        [["a", 1, 9, 0, 0, 0, 0, 0, 0], ["b", 10, 20, 0, 0, 0, 0, 0, 0], ["c", *[0] * 8]],
        columns=["run_id", *names],
    )
    channel = sum_classified(rows, "channel")
    assert channel.counts == (11, 29, 0, 0)
    share = channel.shares[0]
    assert (share.value, share.runs) == (pytest.approx(11 / 40), 2)
    # Residuals 1 - 2.75 and 10 - 8.25: s = 1.75 sqrt 2, t = 12.706, mean 20.
    assert share.halfwidth == pytest.approx(12.706 * 1.75 / 20, rel=1e-4)
    assert sum_classified(rows, "queue").shares == ()


@pytest.fixture
def run(tmp_path):
    return shutil.copytree(RECORDED, tmp_path / RECORDED.name)


def counts_of(row, cause: str) -> list[int]:
    return [getattr(row, name_column(cause, outcome)) for outcome in OUTCOMES]


def test_every_lost_segment_of_a_recorded_run_is_counted_once_with_its_own_flow(run):
    drops = read_drops(run / "drops.pcapng")
    data = drops[drops["payload"] > 0]
    rows = analyse_run(run).rows
    for row, port in zip(rows, (5001, 6001), strict=True):
        mine = data[data["destination_port"] == port]
        assert row.reactions == "inferred" and row.mark_reactions is None
        for cause, name in (("channel", "channel loss"), ("queue", "queue overflow")):
            assert sum(counts_of(row, cause)) == (mine["cause"] == name).sum()
    assert sum(sum(counts_of(row, "queue")) for row in rows) > 0
    # cubic, whose threshold follows from the window alone, reduces for whatever is lost.
    found = np.sum([counts_of(row, "queue") for row in rows], axis=0)
    assert found[0] >= 0.9 * found.sum()


def test_events_of_a_flow_take_precedence_over_samples(run):
    drops = read_drops(run / "drops.pcapng")
    mine = drops[(drops["destination_port"] == 5001) & (drops["payload"] > 0)]
    minimum, maximum = int(mine["sequence"].min()), int(mine["sequence"].max())
    late = (mine["time_ns"].max() / 1e9) - Manifest.read(run / "manifest.json").began_realtime_s
    rows = [(late + 0.01, "three_duplicates", minimum, maximum + 1, "undecided")]
    rows.append((late + 0.02, "congestion_mark", maximum + 1, maximum + 1, "congestion"))
    events(*rows).assign(flow="up", connection=0).to_parquet(run / "scheme_events.parquet")
    up, down = analyse_run(run).rows
    assert (up.reactions, up.mark_reactions, down.reactions) == ("told", 1, "inferred")
    assert up.queue_undecided == (mine["cause"] == "queue overflow").sum() > 0
    assert counts_of(up, "queue") == [0, 0, up.queue_undecided, 0]
    before = Metrics.read(RECORDED / "metrics.json").rows[1]
    assert before.goodput_bps == down.goodput_bps


def test_a_run_without_a_drop_log_is_refused_by_name(run):
    from nagi_contracts.errors import InputError

    (run / "drops.pcapng").unlink()
    with pytest.raises(InputError, match=r"drops\.pcapng: it is missing"):
        analyse_run(run)
