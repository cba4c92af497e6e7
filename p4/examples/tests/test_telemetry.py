# SPDX-License-Identifier: Apache-2.0
"""Tests of telemetry.p4 in the style of PTF, on three switches in a row.

Packets go in, packets are expected, and entries are added in between.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import pytest
from nagi_contracts.paths import executable
from nagi_p4.simulation import Simulation
from scapy.fields import BitField, ByteField, Field, IntField, MACField, XShortField
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

EXAMPLES = Path(__file__).resolve().parents[1]
COMPILED = EXAMPLES / "telemetry.json"
ENTRIES = EXAMPLES / "telemetry.entries.jsonl"

TELEMETRY = 0x88B5
CPU_PORT = 255
LEFT, RIGHT = 1, 2  # ports
SENDER, RECEIVER = "02:00:00:00:00:01", "02:00:00:00:00:02"
RATE = 1_000_000  # bits of IP a second, of the ports to the right


class Shim(Packet):
    name = "Shim"
    fields_desc: ClassVar[list[Field[Any, Any]]] = [
        ByteField("hops", 0),
        ByteField("reserved", 0),
        XShortField("ethertype", 0x800),
    ]


class Hop(Packet):
    name = "Hop"
    fields_desc: ClassVar[list[Field[Any, Any]]] = [
        IntField("switch_id", 0),
        IntField("queue_packets", 0),
        IntField("queue_us", 0),
    ]


class Report(Packet):
    name = "Report"
    fields_desc: ClassVar[list[Field[Any, Any]]] = [
        BitField("egress_port", 0, 9),
        BitField("padding", 0, 7),
        MACField("destination", RECEIVER),
        MACField("source", SENDER),
        ByteField("hops", 0),
    ]


def make_frame(size: int = 1000) -> Packet:
    """Make a frame with `size` bytes of IP."""
    packet = Ether(dst=RECEIVER, src=SENDER) / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(dport=5001)
    return packet / Raw(bytes(size - 28))


def add_records(packet: Packet, *hops: Hop) -> bytes:
    """Return the frame with the records of `hops`, the latest first."""
    ether = Ether(dst=packet.dst, src=packet.src, type=TELEMETRY)
    records = b"".join(bytes(hop) for hop in hops)
    return bytes(ether / Shim(hops=len(hops))) + records + bytes(packet.payload)


def make_report(*hops: Hop) -> bytes:
    return bytes(Report(egress_port=RIGHT, hops=len(hops))) + b"".join(bytes(hop) for hop in hops)


def read_reports(switch: Simulation) -> list[bytes]:
    return [bytes.fromhex(each["bytes"]) for each in switch.read_events()["packets"]]


@pytest.fixture
def row() -> Iterator[list[Simulation]]:
    """Switches 1, 2 and 3: a host sends to the first, another receives from the last."""
    with ExitStack() as stack:
        switches = []
        for number in (1, 2, 3):
            ports = [{"number": LEFT}, {"number": RIGHT, "rate_bps": RATE}]
            switch = stack.enter_context(
                Simulation(COMPILED, ports, executable("nagi-switch"), cpu_port=CPU_PORT)
            )
            switch.add_entry("ingress.destinations", [RECEIVER], "ingress.forward", [RIGHT])
            switch.set_default("egress.identity", "egress.record", [number])
            switches.append(switch)
        switches[0].add_entry("ingress.sources", [LEFT], "ingress.watch")
        switches[2].add_entry("egress.sinks", [RIGHT], "egress.report")
        switches[2].add_mirror(1, port=CPU_PORT)
        yield switches


def test_the_receiver_gets_the_frame_that_was_sent(row: list[Simulation]) -> None:
    first, second, third = row
    packet = make_frame()
    first.send_packet(LEFT, packet)
    first.advance(10_000)
    record = Hop(switch_id=1)
    first.verify_packet(add_records(packet, record), RIGHT)

    second.send_packet(LEFT, add_records(packet, record))
    second.advance(10_000)
    records = (Hop(switch_id=2), record)
    second.verify_packet(add_records(packet, *records), RIGHT)

    third.send_packet(LEFT, add_records(packet, *records))
    third.advance(10_000)
    third.verify_packet(packet, RIGHT)
    assert read_reports(third) == [make_report(Hop(switch_id=3), *records)]
    for switch in row:
        switch.verify_no_other_packets()


def test_records_say_who_waited_where_and_how_long(row: list[Simulation]) -> None:
    """Check the times in the records: of frames that arrive at once, the n-th waits for n others.

    At 1 Mb/s a byte takes 8 us. Meanwhile a frame on the line has 16 bytes more: its shim and one
    record.
    """
    third = row[2]
    packet = make_frame()
    arriving = add_records(packet, Hop(switch_id=2))
    for _ in range(3):
        third.send_packet(LEFT, arriving)
    third.advance(1_000_000)
    seen = read_reports(third)
    assert len(seen) == 3
    own = [Hop(data[15:27]) for data in seen]
    assert [hop.switch_id for hop in own] == [3, 3, 3]
    waited = [hop.queue_us for hop in own]
    assert waited[0] == 0
    # The sink removes the records before the frame leaves.
    assert waited[1:] == [1000 * 8, 2000 * 8]
    assert [hop.queue_packets for hop in own] == sorted(hop.queue_packets for hop in own)
    assert own[2].queue_packets > own[0].queue_packets
    for _ in range(3):
        third.verify_packet(packet, RIGHT)


def test_a_switch_that_is_source_and_sink_reports_itself(row: list[Simulation]) -> None:
    third = row[2]
    third.add_entry("ingress.sources", [LEFT], "ingress.watch")
    third.send_packet(LEFT, make_frame())
    third.advance(10_000)
    third.verify_packet(make_frame(), RIGHT)
    assert read_reports(third) == [make_report(Hop(switch_id=3))]


def test_a_fifth_record_is_not_taken(row: list[Simulation]) -> None:
    second = row[1]
    hops = [Hop(switch_id=number) for number in (14, 13, 12, 11)]
    second.send_packet(LEFT, add_records(make_frame(), *hops))
    second.advance(20_000)
    second.verify_packet(add_records(make_frame(), *hops), RIGHT)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(add_records(make_frame(), *[Hop()] * 5), id="five records"),
        pytest.param(add_records(make_frame(), Hop())[:20], id="cut off in a record"),
        pytest.param(bytes(Ether(dst="02:00:00:00:00:99") / Raw(b"?")), id="unknown destination"),
    ],
)
def test_what_is_no_telemetry_of_ours_is_dropped(row: list[Simulation], data: bytes) -> None:
    second = row[1]
    second.send_packet(LEFT, data)
    second.advance(20_000)
    second.verify_no_other_packets()
    assert read_reports(second) == []


def test_the_entries_of_the_example_make_one_switch_source_and_sink() -> None:
    ports = [LEFT, RIGHT]
    with Simulation(COMPILED, ports, executable("nagi-switch"), cpu_port=CPU_PORT) as switch:
        switch.perform_all([json.loads(line) for line in ENTRIES.read_text().splitlines()])
        switch.send_packet(LEFT, make_frame())
        switch.verify_packet(make_frame(), RIGHT)
        answer = make_frame()
        answer.dst, answer.src = SENDER, RECEIVER
        switch.send_packet(RIGHT, answer)
        switch.verify_packet(answer, LEFT)
        switch.verify_no_other_packets()
        assert [Report(data[:15]).egress_port for data in read_reports(switch)] == [RIGHT, LEFT]
