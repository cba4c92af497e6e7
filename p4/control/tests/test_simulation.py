# SPDX-License-Identifier: Apache-2.0
"""Tests of nagi_p4.simulation: packets and operations without a network.

A test gets both packets if a packet differs, and the ports with packets if one is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from nagi_contracts.paths import P4, executable
from nagi_p4.operations import NOT_FOUND, Refused
from nagi_p4.simulation import Simulation

BOUNCE = P4 / "examples" / "bounce.json"
NAGI_SWITCH = executable("nagi-switch")
FRAME = bytes.fromhex("020000000002 020000000001 0800 cafe")
BOUNCED = bytes.fromhex("020000000001 020000000002 0800 cafe")


@pytest.fixture
def switch() -> Iterator[Simulation]:
    with Simulation(BOUNCE, [1, {"number": 2, "rate_bps": 8_000}], NAGI_SWITCH) as switch:
        yield switch


def test_what_leaves_is_returned_and_verified(switch: Simulation) -> None:
    assert switch.send_packet(1, FRAME) == [(1, BOUNCED)]
    switch.send_packet(1, FRAME)
    switch.verify_packet(BOUNCED, 1)
    assert switch.pop_packet(1) == BOUNCED
    assert switch.pop_packet(1) is None
    switch.verify_no_other_packets()


def test_time_passes_when_it_is_told_to(switch: Simulation) -> None:
    """2 bytes of IP at 1,000 bytes a second."""
    assert switch.send_packet(2, FRAME) == []
    assert switch.advance(1_999) == []
    assert switch.advance(1) == [(2, BOUNCED)]


@pytest.mark.parametrize("packet", [FRAME, BOUNCED + b"?", b""])
def test_another_packet_is_said_with_both(switch: Simulation, packet: bytes) -> None:
    switch.send_packet(1, FRAME)
    with pytest.raises(AssertionError) as caught:
        switch.verify_packet(packet, 1)
    assert str(caught.value) == f"port 1:\n  expected {packet.hex()}\n  got      {BOUNCED.hex()}"


def test_no_packet_is_said_with_the_ports_that_have_some(switch: Simulation) -> None:
    with pytest.raises(AssertionError, match=r"^port 2: no packet left the switch\n"):
        switch.verify_packet(FRAME, 2)
    switch.send_packet(1, FRAME)
    with pytest.raises(
        AssertionError, match=r"^port 2: no packet left the switch; packets wait at ports \[1\]"
    ):
        switch.verify_packet(FRAME, 2)


def test_a_packet_too_many_is_said(switch: Simulation) -> None:
    switch.send_packet(1, FRAME)
    switch.verify_no_packet(2)
    for verify in (lambda: switch.verify_no_packet(1), switch.verify_no_other_packets):
        switch.send_packet(1, FRAME)
        with pytest.raises(AssertionError, match=f"^port 1: no packet expected\n.*{BOUNCED.hex()}"):
            verify()


def test_a_refusal_has_its_code(switch: Simulation) -> None:
    with pytest.raises(Refused, match="there is no entry") as caught:
        switch.delete_entry("ingress.destinations", 7)
    assert caught.value.code == NOT_FOUND
    switch.send_packet(1, FRAME)  # it goes on
    switch.verify_packet(BOUNCED, 1)


def test_all_or_none(switch: Simulation) -> None:
    add = {"op": "table_add", "table": "ingress.destinations", "action": "ingress.bounce"}
    adds = [{**add, "match": [match]} for match in (1, 2, 1)]
    with pytest.raises(Refused, match="already"):
        switch.perform_all(adds)
    assert len(switch.perform_all(adds[:2])) == 2


def test_a_program_or_setting_that_is_no_good_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(Refused, match=r"no\.json"):
        Simulation(tmp_path / "no.json", [1], NAGI_SWITCH)
    with pytest.raises(Refused, match="two ports have the number 1"):
        Simulation(BOUNCE, [1, 1], NAGI_SWITCH)
    with pytest.raises(Refused, match="seeds"):
        Simulation(BOUNCE, [1], NAGI_SWITCH, seeds=3)


def test_a_switch_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        Simulation(BOUNCE, [1], "/proc/nowhere/nagi-switch")
