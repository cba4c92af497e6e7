# SPDX-License-Identifier: Apache-2.0
"""Tests of bounce.p4: an example of tests of one's own program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from nagi_contracts.paths import executable
from nagi_p4.simulation import Simulation
from scapy.layers.l2 import Ether
from scapy.packet import Raw

COMPILED = Path(__file__).resolve().parents[1] / "bounce.json"
HERE, THERE = "02:00:00:00:00:01", "02:00:00:00:00:02"


@pytest.fixture
def switch() -> Iterator[Simulation]:
    with Simulation(COMPILED, ports=[1, 2], executable=executable("nagi-switch")) as switch:
        yield switch


def test_a_frame_comes_back(switch: Simulation) -> None:
    switch.send_packet(1, Ether(dst=THERE, src=HERE) / Raw(b"hello"))
    switch.verify_packet(Ether(dst=HERE, src=THERE) / Raw(b"hello"), 1)
    switch.verify_no_other_packets()
    assert switch.read_counter("ingress.frames", 1) == (1, 19)


def test_a_known_destination_has_its_port(switch: Simulation) -> None:
    packet = Ether(dst=THERE, src=HERE) / Raw(b"hello")
    entry = switch.add_entry("ingress.destinations", [THERE], "ingress.forward", [2])
    switch.send_packet(1, packet)
    switch.verify_packet(packet, 2)
    switch.delete_entry("ingress.destinations", entry)
    switch.send_packet(1, packet)
    switch.verify_no_packet(2)
    switch.verify_packet(Ether(dst=HERE, src=THERE) / Raw(b"hello"), 1)


def test_what_is_no_frame_is_dropped(switch: Simulation) -> None:
    switch.send_packet(1, b"short")
    switch.verify_no_other_packets()
