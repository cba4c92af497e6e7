# SPDX-License-Identifier: Apache-2.0
"""The certificate: a run can miss each limit."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from changed_captures import read_captured, write_captured
from nagi.backends.radio.evidence import RADIO_LIMITS
from nagi.backends.switch.evidence import LIMITS as SWITCH_LIMITS
from nagi.campaign.collection import list_nodes_with_own_clock
from nagi.records.direction_numbers import get_direction_number
from nagi.records.packets import Records, from_table, get_fates, replay, sort_records, to_table
from nagi.records.run import RunRecords
from nagi.records.scheme_events import SCHEME_EVENTS
from nagi.verdict.certificate import certify
from nagi.verdict.limits import LIMITS
from nagi.verdict.measure import measure_run
from nagi_contracts.links import Links
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Manifest, Verdict

(RUN,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())


@dataclass
class Case:
    """The data from which a verdict follows, to tamper with."""

    plan: RunPlan
    links: dict[str, Any]
    nodes: dict[str, dict[str, Any]]
    records: Records
    run: Path

    def judge(self) -> Verdict:
        manifest = Manifest.read(RUN / "manifest.json")
        manifest_data = manifest.model_dump(mode="json") | {"nodes": self.nodes}
        nodes = Manifest.model_validate(manifest_data).nodes
        run = RunRecords(
            plan=self.plan,
            directory=self.run,
            began_s=manifest.began_realtime_s,
            nodes=nodes,
            links=Links.model_validate(self.links),
            packets=sort_records(self.records),
            own_clocks=list_nodes_with_own_clock(nodes),
        )
        return certify(run, measure_run(run))

    def delay_captured(self, file: str, delay_ns: int, every: int = 1) -> None:
        """Delay every n-th packet of a capture, including the middle one."""
        packets = read_captured(self.run / file)
        for packet in packets[len(packets) // 2 % every :: every]:
            packet.time_ns += delay_ns
        write_captured(self.run / file, packets)


@pytest.fixture
def case(tmp_path):
    nodes = Manifest.read(RUN / "manifest.json").nodes
    plan = RunPlan.read(RUN / "plan.json")
    return Case(
        plan,
        Links.read(RUN / "links.json").model_dump(mode="json"),
        # Memory pressures were not counted when the example was recorded.
        {
            name: node.model_dump(mode="json") | {"memory_pressures": 0}
            for name, node in nodes.items()
        },
        from_table(pd.read_parquet(RUN / "packets.parquet"), plan),
        Path(shutil.copytree(RUN, tmp_path / "run")),
    )


def test_a_good_run_is_valid(case):
    verdict = case.judge()
    assert verdict.status == "valid"
    assert verdict.reasons == []
    assert [check.name for check in verdict.checks] == list(LIMITS)
    assert all(check.value is not None for check in verdict.checks)


def test_a_verdict_says_how_likely_the_losses_were(case):
    values = {(item.name, item.subject): item.value for item in case.judge().information}
    forward = get_direction_number(case.plan, "radio", "forward")
    fates = get_fates(case.records[case.records["direction"] == forward])
    lost, kept = (fates == 2).sum(), (fates == 0).sum()
    assert values["loss_rate", "radio forward"] == pytest.approx(lost / (lost + kept) * 100)
    assert 0 < values["loss_p_value", "radio forward"] <= 1


def test_the_record_of_packets_survives_its_table(case):
    assert np.array_equal(from_table(to_table(case.records, case.plan), case.plan), case.records)


def test_the_model_does_the_same_again(case):
    recorded, again = sort_records(case.records), replay(case.plan, case.records)
    over = get_fates(recorded) != 3
    assert over.sum() > 900
    for column in ("direction", "index", "arrived_ns", "left_ns", "fate"):
        assert np.array_equal(recorded[column][over], again[column][over])


def get_forward_account(links):
    return links["links"][0]["forward"]


def _late(case):
    get_forward_account(case.links)["transit_error_ns"]["median"] = 150_000


def _sometimes_late(case):
    get_forward_account(case.links)["transit_error_ns"]["p99"] = 1_500_000


def _behind(case):
    get_forward_account(case.links)["arrival_lateness_ns"]["p99"] = 600_000


def _once_behind(case):
    get_forward_account(case.links)["arrival_lateness_ns"]["max"] = 26_000_000


def _leak(case):
    get_forward_account(case.links)["packets"]["delivered"] -= 1


def _socket(case):
    case.links["links"][1]["b"]["socket_drops"] = 1


def _merged(case):
    case.links["links"][1]["b"]["oversized"] = 1


def _checksum(case):
    case.links["links"][0]["a"]["checksum_missing"] = 1


def _unsent(case):
    case.links["links"][0]["a"]["send_failures"] = 1


def _capture(case):
    case.nodes["server"]["captures"][0]["dropped"] = 1


def _offload(case):
    case.nodes["server"]["offloads"]["core"] = ["generic-receive-offload"]


def _pressed(case):
    case.nodes["server"]["memory_pressures"] = 2


def _asleep(case):
    case.nodes["client"]["late_s"] = 0.2


def _acks_one_behind(case):
    """Let the server acknowledge each time what it should have acknowledged the time before."""
    file, flow = case.run / "server.core.pcap", case.plan.flows[0]
    packets = read_captured(file)
    acks = [item for item in packets if item.ports[0] == flow.port and not item.payload]
    numbers = [item.acknowledgement for item in acks]
    for packet, number in zip(acks[3:], numbers[2:-1], strict=True):
        packet.acknowledge(number)
    write_captured(file, packets)


def _echo_earlier(case, by_ms, chosen):
    """Let the client send data as if it had not seen the ACKs of the last `by_ms`."""
    file, flow = case.run / "client.radio.pcap", case.plan.flows[0]
    packets = read_captured(file)
    data = [item for item in packets if item.ports[1] == flow.port and item.payload]
    for packet in data[chosen]:
        packet.echo(by_ms)
    write_captured(file, packets)


def _sometimes_echoes_behind(case):
    _echo_earlier(case, 30, slice(20, None, 25))


def _one_echo_behind(case):
    _echo_earlier(case, 60, slice(150, 151))


def _stalled(case):
    get_forward_account(case.links)["transit_error_ns"]["max"] = 26_000_000


def _changed(case):
    config = get_forward_account(case.links)["config"]
    get_forward_account(case.links)["changes"].append({"at_ns": 1_000_000_000, "config": config})


def _disk_full(case):
    case.links["records_lost"] = 1


def _slower_links(case):
    case.delay_captured("server.core.pcap", 300_000)


def _sometimes_slower_links(case):
    case.delay_captured("server.core.pcap", 3_000_000, every=50)


def _one_packet_astray(case):
    case.delay_captured("server.core.pcap", 30_000_000, every=10_000)


def _unknown_packets(case):
    case.records["identity"][::20] ^= 0x5A5A5A5A


def _biased_loss(case):
    """Let the channel lose a packet that it delivered."""
    delivered = (case.records["direction"] == 0) & (get_fates(case.records) == 0)
    case.records["fate"][np.flatnonzero(delivered)[100]] = 2


def _slower_server(case):
    """Hand packets over at a rate that is 0.2 % too low."""
    is_forward = case.records["direction"] == 0
    case.records["late_ns"][is_forward] = case.records["left_ns"][is_forward] // 500


def _more_than_possible(case):
    """Let the plan permit a payload of 1 byte per packet."""
    up, down = case.plan.flows
    up = up.model_copy(update={"payload_bytes": 1})
    case.plan = case.plan.model_copy(update={"flows": [up, down]})


@pytest.mark.parametrize(
    ("sabotage", "check", "subject"),
    [
        (_late, "transit_error_median", "radio forward"),
        (_sometimes_late, "transit_error_p99", "radio forward"),
        (_stalled, "transit_error_max", "radio forward"),
        (_slower_links, "capture_transit_median", ""),
        (_sometimes_slower_links, "capture_transit_p99", ""),
        (_one_packet_astray, "capture_transit_max", ""),
        (_unknown_packets, "capture_unmatched", ""),
        (_more_than_possible, "goodput_surplus", "up"),
        (_slower_server, "rate_error", "radio forward, as handed to the kernel"),
        (_biased_loss, "replay_differences", "radio forward"),
        (_changed, "changes", "radio forward"),
        (_disk_full, "records_lost", "nagi-link"),
        (_behind, "arrival_lateness_p99", "radio forward"),
        (_once_behind, "arrival_lateness_max", "radio forward"),
        (_leak, "unaccounted", "radio forward"),
        (_socket, "emulator_drops", "core.b"),
        (_merged, "merged_segments", "core.b"),
        (_checksum, "missing_checksums", "radio.a"),
        (_unsent, "send_failures", "radio.a"),
        (_capture, "capture_drops", "server.core.pcap"),
        (_offload, "offloads", "server core: generic-receive-offload"),
        (_pressed, "memory_pressures", "server"),
        (_asleep, "agent_lateness", "client"),
        (_acks_one_behind, "host_response_median", "server, up"),
        (_sometimes_echoes_behind, "host_response_p99", "client, up"),
        (_one_echo_behind, "host_response_max", "client, up"),
    ],
)
def test_a_run_that_misses_a_limit_is_invalid_and_says_where(case, sabotage, check, subject):
    sabotage(case)
    verdict = case.judge()
    assert verdict.status == "invalid"
    missed = {item.name: item.subject for item in verdict.checks if not item.ok}
    assert missed.pop(check) in (subject, "up, data", "up, ACKs", "down, data", "down, ACKs")
    # A packet that is late is also seen to be, and its host seems slow; nothing else is missed.
    late = ("capture_transit_p99", "capture_transit_max", "host_response_p99", "host_response_max")
    assert set(missed) <= set(late)
    reason = next(item for item in verdict.reasons if item.startswith(check))
    assert subject in reason


def test_limits_are_tighter_in_virtual_time(case):
    get_forward_account(case.links)["arrival_lateness_ns"]["max"] = 2_000
    assert "arrival_lateness_max" not in {e.name for e in case.judge().checks if not e.ok}
    case.links["virtual_time"] = True
    checks = {item.name: item for item in case.judge().checks}
    assert not checks["arrival_lateness_max"].ok and checks["arrival_lateness_max"].limit == 0.001
    assert checks["transit_error_max"].limit == 0.05 and checks["offloads"].limit == 0


def test_a_run_whose_scheme_fell_back_is_invalid(case):
    """Check a sender of `real` that becomes Reno without the receiver's option."""
    up, down = case.plan.flows
    both = up.model_copy(update={"receiver_control": up.congestion_control})
    case.plan = case.plan.model_copy(update={"flows": [both, down]})
    events = pd.DataFrame({"flow": ["up"] * 3, "connection": [0, 0, 1]})
    kinds = ["started", "sample", "sample"], ["started", "fallback", "fallback"]
    for event_names, reasons in zip(kinds, (0, 1), strict=True):
        events.assign(event=event_names).to_parquet(case.run / SCHEME_EVENTS)
        verdict = case.judge()
        assert len(verdict.reasons) == reasons, verdict.reasons
    assert verdict.reasons[0].startswith("scheme_fallbacks: 2 connections at up (limit 0)")


def test_every_limit_has_a_sabotage():
    (marker,) = test_a_run_that_misses_a_limit_is_invalid_and_says_where.pytestmark
    assert {case[1] for case in marker.args[1]} == set(LIMITS)
    # Those of switches and radios have theirs in test_switches.py and test_radio_records.py.
    assert set(SWITCH_LIMITS) == {"switch_drops"}
    assert set(RADIO_LIMITS) == {"radio_unanswered"}


def test_an_emulator_that_died_certifies_nothing(case):
    case.links["complete"] = False
    assert case.judge().status == "invalid"
