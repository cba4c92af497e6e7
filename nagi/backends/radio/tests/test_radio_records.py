# SPDX-License-Identifier: Apache-2.0
"""Records of transmissions: the model must repeat what a radio did, or the run is invalid."""

from __future__ import annotations

import math
import shutil

import numpy as np
import pandas as pd
import pytest
from nagi.backends.radio.evidence import RADIO_LIMITS
from nagi.backends.radio.replaying import make_replay_settings
from nagi.campaign.collection import collect
from nagi.campaign.retention import retain
from nagi.records.direction_numbers import get_direction_number
from nagi.records.packets import (
    CHANNEL_LOSS,
    DELIVERED,
    QUEUE_OVERFLOW,
    RECORD,
    from_table,
    get_fates,
    make_configuration,
    replay,
    sort_records,
    write_records,
)
from nagi.records.transmissions import (
    HEADER,
    HEADER_ERROR,
    LOST,
    NOT_DETECTED,
    PAYLOAD_ERROR,
    RECEIVED,
    SNR_UNKNOWN,
    TRANSMISSION,
    UNANSWERED,
    read_transmissions,
    to_table,
    write_transmissions,
)
from nagi.verdict.limits import LIMITS
from nagi.verdict.losses import describe_arq_losses
from nagi.verdict.rates import measure_arq_rate_error
from nagi_contracts.errors import InputError
from nagi_contracts.impairments.losses.bernoulli import BernoulliLossPlan
from nagi_contracts.impairments.losses.radio import RadioLossPlan
from nagi_contracts.links import Links, TransmissionCounts
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.plan import DIRECTIONS, ArqPlan, RadioChannelPlan, RadioPlan, RunPlan
from nagi_contracts.records import Keep, Manifest, TransmissionRow
from radio_specs import ARQ, PLAIN, change_lines, plan_points

(RUN,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())
CHANNEL = RadioChannelPlan(snr_db=12.0)
RADIO = RadioPlan(
    by="simulated",
    modem="ofdm",
    modulation="qpsk",
    sample_rate_hz=2_000_000,
    code_rate="none",
    forward=CHANNEL,
    backward=CHANNEL,
)


def make_transmissions(*columns):
    """Make transmissions, one per ms.

    Each column is (number, index, direction, outcome, SNR in 0.01 dB, attempt).
    """
    sent = np.zeros(len(columns), TRANSMISSION)
    for position, (number, index, direction, outcome, snr, attempt) in enumerate(columns):
        sent[position] = (
            position * 10**6, (position + 1) * 10**6, number, index, direction, outcome,
            snr, attempt, 0, 0, 0,
        )  # fmt: skip
    return sent


SOME = make_transmissions(
    (0, 0, 2, RECEIVED, 1234, 1),
    (0, 0, 3, RECEIVED, 3001, 1),
    (1, 1, 2, NOT_DETECTED, SNR_UNKNOWN, 1),
    (2, 1, 2, HEADER_ERROR, -150, 2),
    (3, 3, 2, PAYLOAD_ERROR, 1166, 1),
    (4, 4, 2, UNANSWERED, SNR_UNKNOWN, 1),
    (0, 0, 0, LOST, SNR_UNKNOWN, 1),
)


def test_the_record_becomes_a_table(tmp_path):
    plan = plan_points(tmp_path)[0]
    write_transmissions(SOME, tmp_path / "transmissions.bin")
    result = read_transmissions(tmp_path / "transmissions.bin", plan)
    assert np.array_equal(result, SOME)
    table = to_table(result, plan)
    assert list(table.columns) == list(TransmissionRow.model_fields)
    assert list(table["link"]) == ["wireless"] * 6 + ["wired"]
    assert list(table["direction"]) == ["forward", "backward", *["forward"] * 5]
    assert list(table["outcome"]) == [
        "received", "received", "not detected", "header error", "payload error", "unanswered",
        "lost",
    ]  # fmt: skip
    assert table["snr_db"].tolist()[:2] == [12.34, 30.01] and table["snr_db"][3] == -1.5
    assert table["snr_db"].isna().tolist() == [False, False, True, False, False, True, True]
    for row in table.to_dict("records"):
        snr = None if math.isnan(row["snr_db"]) else row["snr_db"]
        TransmissionRow.model_validate(row | {"snr_db": snr})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        HEADER[:-1],
        HEADER + SOME.tobytes()[:-1],
        b"nagi-pkt" + HEADER[8:] + SOME.tobytes(),
        HEADER + make_transmissions((0, 0, 0, 6, 0, 1)).tobytes(),  # no such outcome
        HEADER + make_transmissions((0, 0, 4, 0, 0, 1)).tobytes(),  # no such link
    ],
)
def test_what_is_no_record_is_refused(tmp_path, content):
    (tmp_path / "transmissions.bin").write_bytes(content)
    with pytest.raises(InputError, match=r"transmissions\.bin: .*; run it again"):
        read_transmissions(tmp_path / "transmissions.bin", plan_points(tmp_path)[0])


def test_the_model_is_told_what_radios_lost_by_the_numbers_of_transmissions(tmp_path):
    plan = plan_points(tmp_path)[0]
    result = make_replay_settings(plan, SOME)
    assert set(result) == {("wireless", "forward"), ("wireless", "backward")}
    assert result["wireless", "forward"]["loss"]["lost"] == [1, 2, 3, 4]
    assert result["wireless", "backward"]["loss"]["lost"] == []
    assert result["wireless", "forward"]["loss"]["length"] > max(SOME["number"])
    links = make_configuration(plan, result)["links"]
    assert links[1]["forward"]["loss"] == result["wireless", "forward"]["loss"]
    assert "radio" not in links[1]
    assert links[0]["forward"]["loss"] == {"model": "none", "at": "egress"}
    assert links[1]["forward"]["rate_bps"] == plan.link("wireless").forward.rate_bps


def test_the_model_is_told_the_snrs_that_rate_adaptation_saw(tmp_path):
    adapting = "      sample_rate: 2 MHz\n      rate_adaptation: {kind: minstrel}\n"
    pairs = (
        ("      modulation: qpsk\n      rate: 2 Mbit\n", adapting),
        ("queue: 20 packets", ARQ),
    )
    plan = plan_points(tmp_path, change_lines(*pairs))[0]
    number = get_direction_number(plan, "wireless", "forward")
    result = make_replay_settings(plan, SOME[SOME["direction"] == number])
    forward, backward = (
        result["wireless", name]["rate_adaptation"]["recorded_snr"] for name in DIRECTIONS
    )
    assert forward == [1234, SNR_UNKNOWN, -150, 1166, SNR_UNKNOWN]
    assert backward == []  # nothing was sent back


def make_bursts(plan, sizes=(1052, 40, 600), count=400):
    """Make packets that arrive in bursts at a radio, whose queue cannot hold them.

    Every seventh transmission is lost. The fates follow from Lindley's recursion, computed by hand.
    """
    direction = plan.link("wireless").forward
    number = get_direction_number(plan, "wireless", "forward")
    records = np.zeros(count, RECORD)
    sent = []
    waiting: list[tuple[int, int]] = []  # when each of those in the system begins, and ends
    remainder = 0  # of a nanosecond, times the rate: what rounding left over
    free = 0
    for index in range(count):
        arrived = 10**9 * (index // 40) + 300_000 * (index % 40)
        size = sizes[index % len(sizes)]
        records[index] = (arrived, 0, index, index + 1, 0, 0, size, number, 0, 0, 0, 0)
        waiting = [service for service in waiting if service[0] > arrived]
        if len(waiting) >= direction.queue.packets and free > arrived:
            records["fate"][index], records["left_ns"][index] = QUEUE_OVERFLOW, arrived
            continue
        begin = max(arrived, free)
        if begin > free:
            remainder = 0
        scaled_ns = (size + direction.overhead_bytes) * 8 * 10**9 + remainder
        begin, free, remainder = (
            begin,
            begin + scaled_ns // direction.rate_bps,
            scaled_ns % direction.rate_bps,
        )
        waiting.append((begin, free))
        lost = len(sent) % 7 == 3
        sent.append((begin, free, len(sent), index, number, PAYLOAD_ERROR if lost else RECEIVED,
                     1200, 1, 0, 0, 0))  # fmt: skip
        records["fate"][index] = CHANNEL_LOSS if lost else DELIVERED
        records["left_ns"][index] = free if lost else free + direction.delay_ns
    return records, np.array(sent, TRANSMISSION)


def test_the_model_does_what_the_radio_did(tmp_path):
    plan = plan_points(tmp_path)[0]
    records, sent = make_bursts(plan)
    assert {DELIVERED, QUEUE_OVERFLOW, CHANNEL_LOSS} == set(get_fates(records))
    again = replay(plan, records, make_replay_settings(plan, sent))
    for column in ("index", "left_ns", "fate"):
        assert np.array_equal(again[column], sort_records(records)[column]), column
    # Another outcome is another fate.
    assert sent["outcome"][10] == PAYLOAD_ERROR
    sent["outcome"][10] = RECEIVED
    assert (
        replay(plan, records, make_replay_settings(plan, sent))["fate"]
        != sort_records(records)["fate"]
    ).sum() == 1


def make_repeated(plan, slower=1.0):
    """Make a thousand packets that wait for a radio with ARQ.

    Every tenth transmission is lost and repeated at once. Packets are seen when they are due by a
    clock that runs at `slower` times the rate.
    """
    direction = plan.link("wireless").forward
    size = 1052
    transmission_ns = (size + direction.overhead_bytes) * 8 * 10**9 // direction.rate_bps
    due = np.zeros(1000, RECORD)
    due["index"], due["bytes"], due["fate"] = np.arange(1000), size, DELIVERED
    sent, now_ns = [], 0
    for index in range(1000):
        for attempt in (1, 2):
            lost = len(sent) % 10 == 5
            sent.append((now_ns, now_ns + transmission_ns, len(sent), index, 2,
                         NOT_DETECTED if lost else RECEIVED, 900, attempt, 0, 0, 0))  # fmt: skip
            now_ns += transmission_ns
            if not lost:
                break
        due["left_ns"][index] = now_ns + direction.delay_ns
    # Some were kept waiting afterwards, and say nothing of the rate.
    due["left_ns"][50::100] += 5_000_000
    seen_ns = np.rint(due["left_ns"] * slower).astype(np.int64)
    return due, seen_ns, np.array(sent, TRANSMISSION)


def test_transmissions_that_are_repeated_count_for_the_rate(tmp_path):
    plan = plan_points(tmp_path, change_lines(("queue: 20 packets", ARQ)))[0]
    direction = plan.link("wireless").forward
    due, seen_ns, sent = make_repeated(plan)
    assert len(sent) > 1100 and set(sent["attempt"]) == {1, 2}
    # What is left is rounding to nanoseconds.
    assert measure_arq_rate_error(due, seen_ns, direction, sent) < 1e-6
    due, seen_ns, sent = make_repeated(plan, slower=1.002)
    assert measure_arq_rate_error(due, seen_ns, direction, sent) == pytest.approx(0.002, rel=0.01)
    # Without the repeated ones the rate would seem a tenth too small.
    assert measure_arq_rate_error(due, seen_ns, direction, sent[:0]) is None
    with pytest.raises(InputError, match="the packets of some transmissions were not recorded"):
        measure_arq_rate_error(due[:500], seen_ns[:500], direction, sent)


def test_with_arq_each_transmission_may_be_lost(tmp_path):
    """Lose 20 % of about 3,000 transmissions.

    The draws are seeded: one seed in a thousand gives a p-value below 0.001, this one does not.
    """
    plan = plan_points(tmp_path, change_lines(("queue: 20 packets", ARQ), text=PLAIN))[0]
    loss = BernoulliLossPlan(probability=0.2)
    direction = plan.link("wireless").forward.model_copy(update={"loss": loss})
    draws = np.random.default_rng(9).random(10_000) < 0.2
    sent = []
    for index in range(2400):
        for attempt in range(1, 5):
            lost = draws[len(sent)]
            outcome = LOST if lost else RECEIVED
            sent.append((0, 1, len(sent), index, 2, outcome, SNR_UNKNOWN, attempt, 0, 0, 0))
            if not lost:
                break
    packets = np.zeros(2400, RECORD)
    packets["index"], packets["bytes"] = np.arange(2400), 1052
    transmissions = np.array(sent, TRANSMISSION)
    information = {
        item.name: item for item in describe_arq_losses(packets, direction, transmissions, "there")
    }
    assert information["loss_rate"].value == pytest.approx(100 * draws[: len(sent)].mean())
    assert information["loss_rate"].description == (
        "transmissions lost on the channel; 20.0000% was planned"
    )
    assert information["loss_p_value"].value > 0.001
    # Packets are lost far more rarely, as ARQ is for.
    transmissions["outcome"][transmissions["outcome"] == LOST] = RECEIVED
    information = list(describe_arq_losses(packets, direction, transmissions, "there"))
    assert information[1].value < 1e-9
    assert list(describe_arq_losses(packets[:0], direction, transmissions[:0], "there")) == []


def put_radio(plan: RunPlan, **forward) -> RunPlan:
    """Return the example's plan with a radio that carries the link `radio`."""
    links = [
        link.model_copy(
            update={
                "radio": RADIO,
                "forward": link.forward.model_copy(update={"loss": RadioLossPlan(), **forward}),
                "backward": link.backward.model_copy(update={"loss": RadioLossPlan()}),
            }
        )
        if link.name == "radio"
        else link
        for link in plan.links
    ]
    return plan.model_copy(update={"links": links})


PLAN = put_radio(RunPlan.read(RUN / "plan.json"))
FORWARD, BACKWARD = (
    get_direction_number(PLAN, "radio", "forward"),
    get_direction_number(PLAN, "radio", "backward"),
)


@pytest.fixture
def records(tmp_path):
    """Return the records of the example as if a radio had caused its forward losses."""
    manifest = Manifest.read(RUN / "manifest.json")
    spool = tmp_path / ".records"
    for node, record in manifest.nodes.items():
        source = spool / f"cell0_{node}" / PLAN.run_id
        source.mkdir(parents=True)
        record.write(source / "node.json")
        for capture in PLAN.captures:
            if capture.node == node:
                shutil.copy(RUN / capture.file, source)
    samples = pd.read_parquet(RUN / "tcp_info.parquet")
    for flow in PLAN.flows:
        source = spool / f"cell0_{flow.sender}" / PLAN.run_id
        flow_samples = samples[samples["flow"] == flow.name]
        flow_samples.to_json(source / "tcp_info.jsonl", orient="records", lines=True)
    emulator = spool / "cell0_emulator" / PLAN.run_id
    shutil.copy(RUN / "links.json", emulator)
    packets = sort_records(from_table(pd.read_parquet(RUN / "packets.parquet"), PLAN))
    # Backward it lost packets before the queue: they never came to the radio.
    lost_before = (packets["direction"] == BACKWARD) & (get_fates(packets) == CHANNEL_LOSS)
    packets = packets[~lost_before]
    write_records(packets, emulator / "packets.bin")
    write_transmissions(_make_transmissions_of(packets), emulator / "transmissions.bin")
    return spool


def _make_transmissions_of(packets):
    """Make one transmission per packet that the queue did not drop.

    Links must not reorder packets.
    """
    parts = []
    for number in (FORWARD, BACKWARD):
        carried = packets[(packets["direction"] == number) & (get_fates(packets) != QUEUE_OVERFLOW)]
        direction = PLAN.link("radio").forward
        sent = np.zeros(len(carried), TRANSMISSION)
        delay = np.where(get_fates(carried) == CHANNEL_LOSS, 0, direction.delay_ns)
        sent["end_ns"] = carried["left_ns"] - delay
        bits = carried["bytes"].astype(np.int64) * 8
        sent["start_ns"] = sent["end_ns"] - bits * 10**9 // direction.rate_bps
        sent["number"], sent["index"] = np.arange(len(carried)), carried["index"]
        sent["direction"], sent["attempt"] = number, 1
        sent["outcome"] = np.where(get_fates(carried) == CHANNEL_LOSS, HEADER_ERROR, RECEIVED)
        sent["snr"] = np.where(get_fates(carried) == CHANNEL_LOSS, SNR_UNKNOWN, 1210)
        parts.append(sent)
    return np.concatenate(parts)


def collect_run(records, runs, plan=PLAN):
    build = Manifest.read(RUN / "manifest.json").build
    return collect(records, runs, plan, "cell0", "netns", build)


def spoil_transmissions(records, change):
    path = records / "cell0_emulator" / PLAN.run_id / "transmissions.bin"
    transmissions = read_transmissions(path, PLAN).copy()
    change(transmissions)
    write_transmissions(transmissions, path)


def test_a_run_over_a_radio_is_judged(records, tmp_path):
    path = records / "cell0_emulator" / PLAN.run_id / "transmissions.bin"
    sent = read_transmissions(path, PLAN)
    verdict = collect_run(records, tmp_path / "runs")
    assert verdict.status == "valid", verdict.reasons
    assert [check.name for check in verdict.checks] == [*LIMITS, *RADIO_LIMITS]
    values = {check.name: check.value for check in verdict.checks}
    assert values["radio_unanswered"] == values["replay_differences"] == 0
    table = pd.read_parquet(tmp_path / "runs" / PLAN.run_id / "transmissions.parquet")
    pd.testing.assert_frame_equal(table, to_table(sent, PLAN))
    information = {(item.name, item.subject): item for item in verdict.information}
    forward_sent = sent[sent["direction"] == FORWARD]
    assert information["radio_transmissions", "radio forward"].value == len(forward_sent) > 200
    lost = int((forward_sent["outcome"] == HEADER_ERROR).sum())
    assert information["radio_header_errors", "radio forward"].value == lost > 0
    assert information["radio_payload_errors", "radio forward"].value == 0
    snr = information["radio_snr", "radio backward"]
    assert snr.value == pytest.approx(12.1)
    assert "configured: 12 dB" in snr.description
    # What a radio loses was not drawn, so there is no chance of it.
    assert ("loss_p_value", "radio forward") not in information


def test_the_mean_snr_is_that_of_powers(records, tmp_path):
    def two_levels(sent):
        positions = np.flatnonzero(sent["direction"] == BACKWARD)
        sent["snr"][positions[::2]], sent["snr"][positions[1::2]] = 1000, 2000
        if len(positions) % 2:
            sent["snr"][positions[-1]] = SNR_UNKNOWN

    spoil_transmissions(records, two_levels)
    verdict = collect_run(records, tmp_path / "runs")
    values = {(item.name, item.subject): item.value for item in verdict.information}
    expected = 10 * math.log10((10 + 100) / 2)
    assert values["radio_snr", "radio backward"] == pytest.approx(expected, abs=1e-4)


def test_a_transmission_without_an_answer_makes_a_run_invalid(records, tmp_path):
    def unanswered(sent):
        first = np.flatnonzero((sent["direction"] == FORWARD) & (sent["outcome"] == HEADER_ERROR))[
            0
        ]
        sent["outcome"][first] = UNANSWERED

    spoil_transmissions(records, unanswered)
    verdict = collect_run(records, tmp_path / "runs")
    assert verdict.status == "invalid"
    assert verdict.reasons == ["radio_unanswered: 1 transmissions at radio forward (limit 0)"]


def test_what_is_on_the_air_when_the_emulator_stops_has_no_answer_yet(records, tmp_path):
    path = records / "cell0_emulator" / PLAN.run_id / "transmissions.bin"
    sent = read_transmissions(path, PLAN)
    number = sent["number"][sent["direction"] == FORWARD].max() + 1
    ended_ns = round(PLAN.timeline.capture_end_s * 1e9)
    late = np.zeros(1, TRANSMISSION)
    late[0] = (ended_ns - 10**6, ended_ns, number, 0, FORWARD, UNANSWERED, SNR_UNKNOWN, 1, 0, 0, 0)
    write_transmissions(np.concatenate([sent, late]), path)
    verdict = collect_run(records, tmp_path / "runs")
    assert verdict.status == "valid", verdict.reasons


def test_a_loss_that_the_radio_did_not_have_is_found(records, tmp_path):
    def lose(sent):
        first = np.flatnonzero((sent["direction"] == FORWARD) & (sent["outcome"] == RECEIVED))[20]
        sent["outcome"][first] = NOT_DETECTED

    spoil_transmissions(records, lose)
    verdict = collect_run(records, tmp_path / "runs")
    assert verdict.status == "invalid"
    assert any(reason.startswith("replay_differences: 1 packets") for reason in verdict.reasons)


@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_a_damaged_record_makes_a_failed_run(records, tmp_path, damage):
    path = records / "cell0_emulator" / PLAN.run_id / "transmissions.bin"
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-3])
    else:
        path.unlink()
    verdict = collect_run(records, tmp_path / "runs")
    assert verdict.status == "failed"
    assert "emulator: transmissions.bin: " in verdict.reasons[0]


def test_a_run_keeps_transmissions_where_it_keeps_packets(records, tmp_path):
    collect_run(records, tmp_path / "runs")
    run = tmp_path / "runs" / PLAN.run_id
    shutil.copy(RUN / "metrics.json", run)
    retain(run, Keep(packets="drop"))
    assert not (run / "transmissions.parquet").exists()
    manifest = Manifest.read(run / "manifest.json")
    assert manifest.fates(PLAN)["transmissions.parquet"] == "removed"
    assert "transmissions.parquet" in manifest.removed


def test_links_that_repeat_are_replayed_with_their_arq(tmp_path):
    plan = put_radio(RunPlan.read(RUN / "plan.json"), arq=ArqPlan(retries=2, feedback_ns=10**6))
    (radio, core) = make_configuration(plan, make_replay_settings(plan, SOME[:0]))["links"]
    assert radio["forward"]["arq"] == {"retries": 2, "feedback_ns": 1_000_000}
    assert "arq" not in radio["backward"] and "arq" not in core["forward"]


def test_the_emulator_s_account_may_tell_of_transmissions():
    account = Links.read(RUN / "links.json")
    direction = account.links[0].forward
    assert "transmissions" not in direction.model_dump(mode="json")
    counts = TransmissionCounts(
        sent=5, received=1, not_detected=1, header_errors=1, payload_errors=1, lost=0,
        undetected_errors=0,
    )  # fmt: skip
    with_counts = direction.model_copy(update={"transmissions": counts})
    assert with_counts.model_dump(mode="json")["transmissions"]["sent"] == 5
