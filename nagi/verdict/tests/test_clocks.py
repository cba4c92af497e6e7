# SPDX-License-Identifier: Apache-2.0
"""Clocks of hosts, estimated from made-up packets whose clocks are known."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from changed_captures import read_captured, write_captured
from nagi.campaign.collection import list_nodes_with_own_clock
from nagi.records.packets import from_table, sort_records
from nagi.records.run import RunRecords
from nagi.verdict.certificate import certify
from nagi.verdict.measure import measure_run
from nagi_captures.clocks import Passages, clock_offset_ns, drift_ppm, estimate_clock, to_host_clock
from nagi_contracts.links import Links
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Manifest
from nagi_contracts.results import Metrics
from nagi_reports.analysis import analyse_run
from recorded import record_again

MS, US, SECOND = 1_000_000, 1_000, 10**9
CLOSE = 20 * US
(RUN,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())
CAPTURES = {"client": "client.radio.pcap", "server": "server.core.pcap"}
CLOCKS = {"client": (5 * MS, 20e-6), "server": (-3 * MS, -20e-6)}  # ns ahead, and by the second


def passages(ahead, seconds, seed, extra_ns=(0, 0), rate=200) -> tuple[Passages, Passages]:
    """Return the packets that a host sent and received.

    Its clock is `ahead(true_ns)` ahead. Each packet takes 8 us, on average 15 us more, and
    `extra_ns`.
    """
    random = np.random.default_rng(seed)
    both = []
    for sends, extra in zip((True, False), extra_ns, strict=True):
        begins = np.sort(random.integers(0, seconds * SECOND, seconds * rate))
        ends = begins + 8 * US + random.exponential(15 * US, len(begins)).astype(np.int64) + extra
        host, emulator = (begins, ends) if sends else (ends, begins)
        both.append(Passages(host + np.rint(ahead(host)).astype(np.int64), emulator))
    return both[0], both[1]


def line(offset_ns, drift):
    return lambda true_ns: offset_ns + drift * true_ns


@pytest.mark.parametrize("seconds", [2, 10, 95])
@pytest.mark.parametrize("offset_ns", [5 * MS, -3 * MS])
@pytest.mark.parametrize("drift", [20e-6, -20e-6])
def test_offset_and_drift_are_found(seconds, offset_ns, drift):
    clock = estimate_clock(*passages(line(offset_ns, drift), seconds, 1), seconds * SECOND)
    at = np.arange(0, seconds * SECOND, SECOND // 10)
    assert np.abs(clock_offset_ns(clock, at) - line(offset_ns, drift)(at)).max() < CLOSE
    assert drift_ppm(clock) == pytest.approx(drift * 1e6, abs=CLOSE / seconds / 1000)
    # Packets take 8 us at least, and no estimate can be further off.
    assert clock.bound_ns == pytest.approx(8 * US, abs=5 * US)


def test_a_clock_that_bends_is_followed():
    """Check a clock that was 1 ms ahead and is corrected at 20 ppm."""

    def ahead(true_ns):
        return MS - 20e-6 * np.minimum(true_ns, 50 * SECOND)

    clock = estimate_clock(*passages(ahead, 100, 2), 100 * SECOND)
    at = np.arange(0, 100 * SECOND, SECOND)
    errors = np.abs(clock_offset_ns(clock, at) - ahead(at))
    assert np.median(errors) < CLOSE and errors.max() < 5 * CLOSE


def test_of_a_constant_delay_one_way_half_passes_for_the_clock():
    clock = estimate_clock(*passages(line(5 * MS, 0), 10, 3, extra_ns=(0, MS)), 10 * SECOND)
    assert clock_offset_ns(clock, np.array([0]))[0] == pytest.approx(5.5 * MS, abs=CLOSE)
    assert clock.bound_ns == pytest.approx(MS / 2, abs=CLOSE)


@pytest.mark.parametrize(("seconds", "begin", "end"), [(10, 3, 7), (100, 20, 60), (30, 20, 30)])
def test_a_delay_for_a_part_of_the_time_does_not(seconds, begin, end):
    sent, received = passages(line(5 * MS, 20e-6), seconds, 4)
    at = received.emulator_ns
    slow = (at > begin * SECOND) & (at < end * SECOND)
    clock = estimate_clock(sent, Passages(received.host_ns + slow * MS, at), seconds * SECOND)
    instants = np.arange(0, seconds * SECOND, SECOND)
    assert np.abs(clock_offset_ns(clock, instants) - line(5 * MS, 20e-6)(instants)).max() < CLOSE


def test_a_second_with_few_packets_that_waited_counts_for_little():
    sent, received = passages(line(-3 * MS, 20e-6), 20, 5)
    in_the_last = received.emulator_ns > 18 * SECOND
    kept = ~in_the_last | (np.arange(len(in_the_last)) % 50 == 0)
    late = received.host_ns + in_the_last * 400 * US
    received = Passages(late[kept], received.emulator_ns[kept])
    clock = estimate_clock(sent, received, 20 * SECOND)
    at = np.arange(0, 20 * SECOND, SECOND)
    assert np.abs(clock_offset_ns(clock, at) - line(-3 * MS, 20e-6)(at)).max() < CLOSE


def test_packets_of_one_way_say_nothing():
    sent, received = passages(line(MS, 0), 5, 6)
    none = Passages(received.host_ns[:0], received.emulator_ns[:0])
    assert estimate_clock(sent, none, 5 * SECOND) is None
    assert estimate_clock(none, received, 5 * SECOND) is None
    later = Passages(received.host_ns + 10 * SECOND, received.emulator_ns + 10 * SECOND)
    assert estimate_clock(sent, later, 20 * SECOND) is None


def test_from_the_emulator_s_time_to_the_host_s_and_back():
    clock = estimate_clock(*passages(line(-3 * MS, 20e-6), 10, 7), 10 * SECOND)
    for at in (0, 3 * SECOND, 10 * SECOND):
        here = to_host_clock(clock, at)
        assert here - clock_offset_ns(clock, np.array([here]))[0] == pytest.approx(at, abs=2)
    assert to_host_clock(None, 7) == 7


# ------------------------------------------------------------------------ a recorded run, by others


@pytest.fixture
def case(tmp_path):
    """Return a recorded run whose hosts share the emulator's clock."""
    return Case(shutil.copytree(RUN, tmp_path / "run"))


class Case:
    def __init__(self, run):
        self.run = run
        self.plan = RunPlan.read(run / "plan.json")
        self.manifest = Manifest.read(run / "manifest.json")
        self.epoch_ns = int(self.manifest.began_realtime_s * 1e9)
        self.records = from_table(pd.read_parquet(run / "packets.parquet"), self.plan)

    def change(self, node, change):
        """Change the capture of a node.

        Args:
            node: the node
            change: called with each packet, the ns since the run began, and whether the node sent
                it
        """
        ends = [end for link in self.plan.links for end in link.ends]
        own = {end.address.split("/")[0] for end in ends if end.node == node}
        packets = read_captured(self.run / CAPTURES[node])
        for packet in packets:
            change(packet, packet.time_ns - self.epoch_ns, packet.source_address in own)
        write_captured(self.run / CAPTURES[node], [p for p in packets if p.time_ns])

    def give_clocks(self):
        """Give the hosts their own clocks, which are those of CLOCKS."""
        nodes = dict(self.manifest.nodes)
        for node, (offset_ns, drift) in CLOCKS.items():
            facts = nodes[node].facts.model_copy(update={"boot_id": node})
            nodes[node] = nodes[node].model_copy(update={"facts": facts})

            def shift(packet, since_ns, _, offset_ns=offset_ns, drift=drift):
                packet.time_ns += round(offset_ns + drift * since_ns)

            self.change(node, shift)
        self.manifest = self.manifest.model_copy(update={"nodes": nodes})
        self.manifest.write(self.run / "manifest.json")

    def certify(self):
        nodes = self.manifest.nodes
        run = RunRecords(
            plan=self.plan,
            directory=self.run,
            began_s=self.manifest.began_realtime_s,
            nodes=nodes,
            links=Links.read(self.run / "links.json"),
            packets=sort_records(self.records),
            own_clocks=list_nodes_with_own_clock(nodes),
        )
        verdict = certify(run, measure_run(run))
        verdict.write(self.run / "verdict.json")
        return verdict


def checks(verdict):
    return {check.name: check for check in verdict.checks}


def information(verdict):
    return {(entry.name, entry.subject): entry.value for entry in verdict.information}


def test_hosts_that_share_the_clock_are_judged_as_ever(case):
    assert list_nodes_with_own_clock(case.manifest.nodes) == []
    verdict = case.certify()
    assert not any(name.startswith("clock_") for name, _ in information(verdict))
    assert "clocks" not in json.loads((case.run / "verdict.json").read_text())


def test_other_clocks_are_removed_before_anything_is_compared(case):
    before = checks(case.certify())
    case.give_clocks()
    assert list_nodes_with_own_clock(case.manifest.nodes) == ["client", "server"]
    verdict = case.certify()
    assert verdict.status == "valid", verdict.reasons
    after = checks(verdict)
    for name in ("capture_transit_median", "capture_transit_p99", "capture_transit_max"):
        assert after[name].value == pytest.approx(before[name].value, abs=CLOSE / MS)
    assert after["rate_error"].value == pytest.approx(before["rate_error"].value, abs=0.002)
    output = information(verdict)
    middle_ns = case.plan.timeline.end_s * 1e9 / 2
    for node, (offset_ns, drift) in CLOCKS.items():
        expected = (offset_ns + drift * middle_ns) / MS
        assert output["clock_offset", node] == pytest.approx(expected, abs=CLOSE / MS)
        assert output["clock_drift", node] == pytest.approx(drift * 1e6, abs=5)
        assert abs(output["clock_bound", node]) < CLOSE / MS


def test_metrics_are_by_the_same_clocks(case):
    case.give_clocks()
    case.certify()
    for now, then in zip(
        analyse_run(record_again(case.run)).rows,
        Metrics.read(RUN / "metrics.json").rows,
        strict=True,
    ):
        for name in ("one_way_delay_mean_s", "one_way_delay_p99_s", "queueing_delay_mean_s"):
            assert getattr(now, name) == pytest.approx(getattr(then, name), abs=CLOSE / SECOND)
        assert now.goodput_bps == then.goodput_bps
        assert now.convergence_time_s == then.convergence_time_s


def test_a_delay_behind_the_emulator_s_back_is_seen_both_ways(case):
    """Add 1 ms to the path to the server: half of it is attributed to the server's clock."""
    case.give_clocks()

    def later(packet, _, own):
        packet.time_ns += 0 if own else MS

    case.change("server", later)
    verdict = case.certify()
    assert verdict.status == "invalid"
    median = checks(verdict)["capture_transit_median"]
    assert not median.ok and median.value == pytest.approx(0.5, abs=0.05)
    assert information(verdict)["clock_bound", "server"] == pytest.approx(0.5, abs=0.02)
    assert abs(information(verdict)["clock_bound", "client"]) < CLOSE / MS


def test_a_delay_that_the_emulator_admits_is_no_clock_s(case):
    """Add 1 ms to the path to the server, which the emulator records as its own lateness."""
    case.give_clocks()

    def later(packet, _, own):
        packet.time_ns += 0 if own else MS

    case.change("server", later)
    forward = [number for number, link in enumerate(case.plan.links) if link.name == "core"]
    case.records["late_ns"][case.records["direction"] == forward[0] * 2] += MS
    verdict = case.certify()
    median = checks(verdict)["capture_transit_median"]
    assert not median.ok and median.value == pytest.approx(1, abs=0.1)
    assert abs(information(verdict)["clock_bound", "server"]) < CLOSE / MS


def test_a_stalled_emulator_cannot_certify_itself_by_other_clocks(case):
    """Check a run whose emulator forwards nothing for 0.2 s and records that."""
    case.give_clocks()
    begin_ns = 17 * SECOND // 10
    end_ns = begin_ns + SECOND // 5

    def stall(packet, since_ns, own):
        if not own and begin_ns < since_ns < end_ns:
            packet.time_ns += end_ns - since_ns

    case.change("server", stall)
    verdict = case.certify()
    assert verdict.status == "invalid"
    result = checks(verdict)["capture_transit_max"]
    assert not result.ok and result.value > 100
    assert checks(verdict)["transit_error_max"].ok  # by its own account all is well


def test_without_packets_of_both_ways_the_clock_is_not_known_and_that_is_said(case):
    case.give_clocks()

    def drop(packet, _, own):
        packet.time_ns *= not own

    case.change("server", drop)
    verdict = case.certify()
    result = checks(verdict)
    for name in ("capture_transit_median", "capture_transit_p99", "capture_transit_max"):
        assert result[name].value is None
        assert (
            result[name].subject
            == "n/a: the clock of server is not known, because no second of the run has packets "
            "in both directions"
        )
    assert result["capture_unmatched"].value is not None
    assert ("clock_offset", "client") in information(verdict)
    assert ("clock_offset", "server") not in information(verdict)
    assert all(row.one_way_delay_mean_s is None for row in analyse_run(record_again(case.run)).rows)
