# SPDX-License-Identifier: Apache-2.0
"""Tests of nagi-link's links that are radios.

A double replaces the radio. gr-nagi's own tests and the labs test real modems.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from emulated import NAGI_LINK, configuration, lay_wire
from nagi.records.packets import read_records
from nagi.records.transmissions import HEADER, TRANSMISSION
from numbered import Numbered

realtime = pytest.mark.realtime
DOUBLE = Path(__file__).with_name("radio_double.py")
RADIO = {"rate_bps": 8_000_000, "delay_ns": 20_000_000, "loss": {"model": "radio"}}


@pytest.fixture
def wire(namespaces):
    lay_wire(namespaces)
    return namespaces


class Radio:
    """nagi-link with a radio in the forward direction and a wire in the backward direction."""

    def __init__(self, wire, directory, rules, **forward):
        self.directory = directory
        self.wire = wire
        self.config = configuration(
            directory,
            forward={**RADIO, **forward},
            packets=str(directory / "packets.bin"),
            transmissions=str(directory / "transmissions.bin"),
        )
        self.process = wire.start(
            "middle", sys.executable, str(DOUBLE), NAGI_LINK, str(self.config), json.dumps(rules)
        )
        self.output = ""
        while "ready" not in self.output:
            line = self.process.stdout.readline()
            assert line, f"nagi-link did not start: {self.output}"
            self.output += line

    def stop(self):
        """Stop nagi-link and return the account of the forward direction."""
        self.wire.run("middle", "pkill", "-TERM", "-x", "nagi-link")
        assert self.process.wait(10) == 0
        return json.loads((self.directory / "links.json").read_text())["links"][0]["forward"]

    def transmissions(self):
        content = (self.directory / "transmissions.bin").read_bytes()
        assert content.startswith(HEADER) and content[:8] == b"nagi-trn"
        return np.frombuffer(content, TRANSMISSION, offset=len(HEADER))


@realtime
def test_what_the_radio_loses_is_lost_by_its_cause(wire, tmp_path):
    radio = Radio(wire, tmp_path, {"outcomes": {3: 1, 4: 2, 17: 3}})
    got = Numbered(wire, "10.0.0.2").exchange(100, 0.002)
    there = radio.stop()
    assert [number for number, _ in got] == [i for i in range(100) if i not in (3, 4, 17)]
    assert there["packets"]["channel_losses"] == 3
    assert there["transmissions"] == {
        "sent": 100, "received": 97, "not_detected": 1, "header_errors": 1, "payload_errors": 1,
        "receiver_busy": 0, "not_sent": 0, "not_received": 0, "lost": 0, "undetected_errors": 0,
    }  # fmt: skip
    transmissions = radio.transmissions()
    assert list(transmissions["number"]) == list(transmissions["index"]) == list(range(100))
    assert {i: int(transmissions["outcome"][i]) for i in (2, 3, 4, 17)} == {2: 0, 3: 1, 4: 2, 17: 3}
    assert set(transmissions["snr"]) == {1234}
    assert set(transmissions["end_ns"] - transmissions["start_ns"]) == {1_000_000}


@realtime
def test_the_same_losses_as_a_trace_give_the_same_again(wire, tmp_path):
    lost = dict.fromkeys(range(0, 60, 7), 3)
    arq = {"retries": 1, "feedback_ns": 5_000_000}
    radio = Radio(wire, tmp_path, {"outcomes": lost}, arq=arq)
    Numbered(wire, "10.0.0.2").exchange(50, 0.001)
    radio.stop()
    config = json.loads(radio.config.read_text())
    del config["links"][0]["sockets"]
    trace = {"model": "trace", "lost": sorted(lost), "length": 1000}
    config["links"][0]["forward"]["loss"] = trace
    (tmp_path / "trace.json").write_text(json.dumps(config))
    again = tmp_path / "again.bin"
    recorded = tmp_path / "packets.bin"
    wire.run("middle", NAGI_LINK, "replay", str(tmp_path / "trace.json"), str(recorded), str(again))
    first = np.sort(read_records(recorded), order=["direction", "index"])
    second = np.sort(read_records(again), order=["direction", "index"])
    assert len(first) == 50
    for column in ("arrived_ns", "left_ns", "index", "fate"):
        assert list(first[column]) == list(second[column])


@realtime
def test_arq_hides_losses_and_keeps_the_order(wire, tmp_path):
    lost = dict.fromkeys(range(0, 40, 5), 1)
    arq = {"retries": 3, "feedback_ns": 5_000_000}
    radio = Radio(wire, tmp_path, {"outcomes": lost}, arq=arq)
    got = Numbered(wire, "10.0.0.2").exchange(60, 0.002)
    there = radio.stop()
    assert [number for number, _ in got] == list(range(60))
    assert there["packets"]["channel_losses"] == 0
    assert there["transmissions"]["sent"] == 60 + len(lost)
    attempts = radio.transmissions()["attempt"]
    assert sorted(set(attempts)) == [1, 2]
    assert sum(attempts == 2) == len(lost)


@realtime
def test_a_radio_that_answers_too_late_delays_and_loses_nothing(wire, tmp_path):
    radio = Radio(wire, tmp_path, {"late_s": 0.05})
    got = Numbered(wire, "10.0.0.2").exchange(40, 0.002)
    there = radio.stop()
    assert [number for number, _ in got] == list(range(40))
    assert there["late_events"] == 40
    assert there["transit_error_ns"]["median"] > 20_000_000
    assert there["arrival_lateness_ns"]["max"] == 0


@realtime
def test_an_error_that_the_radio_does_not_see_reaches_the_host(wire, tmp_path):
    radio = Radio(wire, tmp_path, {"altered": [5]})
    got = Numbered(wire, "10.0.0.2").exchange(20, 0.002)
    there = radio.stop()
    assert [number for number, _ in got] == [i for i in range(20) if i != 5]  # UDP's checksum
    assert there["transmissions"]["undetected_errors"] == 1
    assert there["packets"]["delivered"] == 20


@pytest.mark.parametrize("gap", [0.002, 0.0], ids=["with nothing unread", "with packets unread"])
def test_with_its_radio_ends_nagi_link(wire, tmp_path, gap):
    radio = Radio(wire, tmp_path, {"ends_after": 3})
    Numbered(wire, "10.0.0.2").send(20, gap)
    output, _ = radio.process.communicate(timeout=10)
    assert radio.process.returncode == 1
    assert "link link, forward: the radio's process has ended" in output


def test_a_radio_without_a_medium_is_refused(wire, tmp_path):
    config = configuration(tmp_path, forward=RADIO)
    process = wire.start("middle", NAGI_LINK, "run", str(config))
    output, _ = process.communicate(timeout=10)
    assert process.returncode == 2
    assert "link link, forward: descriptor -1 is no socket to a radio; start nagi-sdr" in output


def test_a_radio_stays_one(wire, tmp_path):
    radio = Radio(wire, tmp_path, {})
    change = ["set", str(tmp_path / "sock"), "link", "forward"]
    refused = wire.start("middle", NAGI_LINK, *change, '{"loss": {"model": "none"}}')
    assert "this direction is a radio" in refused.communicate(timeout=10)[0]
    assert refused.returncode == 2
    wire.run("middle", NAGI_LINK, *change, '{"delay_ns": 30000000}')
    radio.stop()
