# SPDX-License-Identifier: Apache-2.0
"""Tests of the whole core, in cocotb.

They cover known schedules, frames of all kinds, back-pressure, enabling and disabling. Time stands
still while the core works, and jumps to the next event.
"""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Sequence
from typing import Any

import cocotb
import numpy as np
import schedules
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from nagi_fpga.configuration import list_register_writes
from nagi_fpga.register_map import COUNTERS, DIRECTIONS, MAGIC, REGISTERS, VERSION
from replaying_core import RECORD, TICK_NS

NEVER = (1 << 64) - 1
CLOCKS = 20_000  # after which the core must have finished any work
ETHERNET_BYTES = 14
# A case with more packets is for the Verilated replay.
MAX_PACKETS = 10


class Core:
    """nagi_link_top with sources and sinks of frames; a to b is forward."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        clock, reset = dut.clk, dut.rst
        self.sources = [
            AxiStreamSource(AxiStreamBus.from_prefix(dut, f"s_axis_{port}"), clock, reset)
            for port in "ab"
        ]
        self.sinks = [
            AxiStreamSink(AxiStreamBus.from_prefix(dut, f"m_axis_{port}"), clock, reset)
            for port in "ba"
        ]
        self.records: list[np.void] = []
        self.now = 0

    async def start(self) -> None:
        """Start the clock and reset the core."""
        dut = self.dut
        for name in ("reg_addr", "reg_wr_en", "reg_wr_data", "reg_rd_en", "time_ns"):
            getattr(dut, name).value = 0
        dut.m_axis_record_tready.value = 1
        dut.rst.value = 1
        Clock(dut.clk, 8, unit="ns").start()
        await self.wait_clocks(4)
        dut.rst.value = 0
        cocotb.start_soon(self._take_records())
        await self.wait_clocks(2)

    async def wait_clocks(self, number: int) -> None:
        for _ in range(number):
            await FallingEdge(self.dut.clk)

    async def _take_records(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            if self.dut.m_axis_record_tvalid.value and self.dut.m_axis_record_tready.value:
                self.records.append(decode_record(int(self.dut.m_axis_record_tdata.value)))

    async def write(self, address: int, value: int) -> None:
        dut = self.dut
        dut.reg_addr.value, dut.reg_wr_data.value, dut.reg_wr_en.value = address, value, 1
        while not dut.reg_ack.value:
            await FallingEdge(dut.clk)
        dut.reg_wr_en.value = 0
        await self.wait_clocks(2)

    async def read(self, address: int) -> int:
        dut = self.dut
        dut.reg_addr.value, dut.reg_rd_en.value = address, 1
        while not dut.reg_ack.value:
            await FallingEdge(dut.clk)
        dut.reg_rd_en.value = 0
        value = int(dut.reg_rd_data.value)
        await self.wait_clocks(2)
        return value

    async def read_register(self, name: str) -> int:
        address, bits = REGISTERS[name]
        words = [await self.read(address + 4 * word) for word in range(bits // 32)]
        return sum(word << 32 * index for index, word in enumerate(words))

    async def enable(self, link: dict[str, Any], seed: int = 1) -> None:
        for address, value in list_register_writes(seed, 0, link):
            await self.write(address, value)
        await self.write(REGISTERS["control"][0], 1)
        await self.settle()

    async def disable(self) -> None:
        await self.write(REGISTERS["control"][0], 0)
        for _ in range(CLOCKS):
            if not await self.read(REGISTERS["status"][0]) & 1:
                return
        raise AssertionError("the core stays active")

    async def read_counters(self, direction: str = "forward") -> dict[str, int]:
        await self.write(REGISTERS["command"][0], 1)
        values = {}
        for name, offset in COUNTERS.items():
            address = DIRECTIONS[direction] + offset
            values[name] = await self.read(address) | await self.read(address + 4) << 32
        return values

    async def settle(self) -> None:
        """Wait until the core is idle."""
        await self.wait_clocks(2)
        for _ in range(CLOCKS):
            if self.dut.idle.value:
                return
            await FallingEdge(self.dut.clk)
        raise AssertionError("the core does not become idle")

    async def advance(self, to: int = NEVER - TICK_NS) -> None:
        """Advance time to `to`, or until no event is due."""
        while True:
            await self.settle()
            due = int(self.dut.next_due_ns.value)
            due += -due % TICK_NS
            if due > to:
                break
            self.now = max(self.now, due)
            self.dut.time_ns.value = self.now
        if to < NEVER - TICK_NS:
            self.now = max(self.now, to)
            self.dut.time_ns.value = self.now
            await self.settle()

    async def offer(self, frame: bytes, direction: int = 0, bad: bool = False) -> None:
        """Let a frame arrive now."""
        user = self.now << 1 | int(bad)
        await self.sources[direction].send(AxiStreamFrame(frame, tuser=user))
        await self.sources[direction].wait()

    def take_frames(self, direction: int = 0) -> list[bytes]:
        """Return the frames that were output since the last call."""
        frames = []
        while not self.sinks[direction].empty():
            frames.append(bytes(self.sinks[direction].recv_nowait().tdata))
        return frames


def decode_record(raw: int) -> np.void:
    record = np.zeros((), RECORD)
    fields = {
        "arrived_ns": (0, 64),
        "left_ns": (64, 64),
        "index": (128, 32),
        "identity": (160, 32),
        "bytes": (192, 16),
        "fate": (208, 4),
        "ecn": (212, 2),
        "flags": (214, 1),
        "direction": (215, 1),
        "late_ns": (216, 32),
    }
    for name, (low, bits) in fields.items():
        record[name] = raw >> low & (1 << bits) - 1
    return record[()]


def compute_checksum(header: bytes) -> int:
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def make_ipv4(size: int, ecn: int, number: int = 0, options: int = 0, protocol: int = 17) -> bytes:
    """Make an IPv4 packet with `options` words of options; its payload depends on `number`."""
    words = 5 + options
    fixed = struct.pack(">BBHHHBBH", 0x40 | words, ecn, size, number, 0, 64, protocol, 0)
    header = bytearray(fixed + bytes(8) + bytes(4 * options))
    struct.pack_into(">H", header, 10, compute_checksum(bytes(header)))
    return bytes(header) + random.Random(number).randbytes(size - 4 * words)


def make_ethernet(packet: bytes, kind: int = 0x0800, tags: Sequence[int] = ()) -> bytes:
    tagged = b"".join(struct.pack(">HH", tag, 5) for tag in tags)
    return bytes(range(12)) + tagged + struct.pack(">H", kind) + packet


@cocotb.test()
async def schedules_are_kept(dut: Any) -> None:
    """Check the schedules of the C++ model, as far as they have few packets."""
    core = Core(dut)
    await core.start()
    few = [
        case
        for case in schedules.CASES
        if len(schedules.make_arrivals_of_case(case)) <= MAX_PACKETS
    ]
    assert len(few) > 10
    for case in few:
        core.now = 0
        dut.time_ns.value = 0
        core.records.clear()
        await core.enable({"forward": case["direction"]}, case["seed"])
        for number, packet in enumerate(schedules.make_arrivals_of_case(case)):
            await core.advance(int(packet["arrived_ns"]))
            size, ecn = int(packet["bytes"]), int(packet["ecn"])
            await core.offer(make_ethernet(make_ipv4(size, ecn, number)))
        await core.advance()
        schedules.assert_schedule(case, np.array(core.records), await core.read_counters())
        delivered = sum(int(record["fate"]) == 0 for record in core.records)
        assert len(core.take_frames()) == delivered, case["name"]
        await core.disable()


@cocotb.test()
async def says_what_it_is(dut: Any) -> None:
    core = Core(dut)
    await core.start()
    assert await core.read_register("magic") == MAGIC
    assert await core.read_register("map_version") == VERSION
    assert await core.read_register("widths") == 64 << 16 | 64
    assert await core.read_register("clock_period_ps") == 8000


@cocotb.test()
async def configuration_is_fixed_while_enabled(dut: Any) -> None:
    core = Core(dut)
    await core.start()
    await core.enable({}, seed=0x123456789ABCDEF0)
    address, _ = REGISTERS["seed"]
    await core.write(address, 7)
    assert await core.read_register("seed") == 0x123456789ABCDEF0
    await core.disable()
    await core.write(address, 7)
    assert await core.read_register("seed") == 0x1234567800000007


@cocotb.test()
async def bad_short_and_long_frames_are_counted(dut: Any) -> None:
    core = Core(dut)
    await core.start()
    await core.enable({})
    good = [
        make_ethernet(make_ipv4(46, 0, 1)),
        make_ethernet(make_ipv4(1522, 0, 2)),
        bytes(range(ETHERNET_BYTES)),
    ]
    bad = [bytes(13), bytes(1), bytes(1537), bytes(4000)]
    for frame in [good[0], bad[0], bad[1], good[1], bad[2], bad[3], good[2]]:
        await core.offer(frame)
    await core.offer(make_ethernet(make_ipv4(100, 0)), bad=True)
    await core.advance()
    assert core.take_frames() == good
    counters = await core.read_counters()
    assert counters["bad_frames"] == len(bad) + 1
    assert counters["offered"] == counters["delivered"] == len(good)
    assert [int(record["bytes"]) for record in core.records] == [46, 1522, 0]


@cocotb.test()
async def headers_are_found(dut: Any) -> None:
    """VLAN tags, IPv4's options and fragments, IPv6: ECN field, identity and mark."""
    core = Core(dut)
    await core.start()
    marking = {"mark": {"threshold_packets": 0, "weight": 1}, "rate_bps": 1_000_000}
    await core.enable({"forward": marking})
    fragment = bytearray(make_ipv4(200, 1, 0x77))
    struct.pack_into(">H", fragment, 6, 100)
    struct.pack_into(">H", fragment, 10, 0)
    struct.pack_into(">H", fragment, 10, compute_checksum(bytes(fragment[:20])))
    tcp = random.Random(6).randbytes(60)
    ipv6 = struct.pack(">IHBB", 6 << 28 | 2 << 20, len(tcp), 6, 64) + bytes(32) + tcp
    udp_over_ipv6 = struct.pack(">IHBB", 6 << 28 | 1 << 20, 8, 17, 64) + bytes(32) + tcp[:8]
    sequence, acknowledgement = struct.unpack(">II", tcp[4:12])
    numbers = (sequence + acknowledgement & 0xFFFF) << 16
    plain, tagged, with_options = (
        make_ipv4(100, 2, 5),
        make_ipv4(101, 1, 6),
        make_ipv4(140, 2, 7, 3, protocol=6),
    )
    cut = make_ipv4(30, 2, 9, protocol=6)  # ends before TCP's checksum
    cases = [
        (make_ethernet(make_ipv4(100, 2, 4)), 2, 4 << 16 | word(make_ipv4(100, 2, 4), 26), False),
        (make_ethernet(plain), 2, 5 << 16 | word(plain, 26), False),  # nothing waits yet
        (make_ethernet(plain), 2, 5 << 16 | word(plain, 26), True),
        (make_ethernet(tagged, tags=[0x88A8, 0x8100]), 1, 6 << 16 | word(tagged, 26), True),
        (make_ethernet(with_options), 2, 7 << 16 | word(with_options, 32 + 16), True),
        (make_ethernet(bytes(fragment)), 1, 0x77 << 16, True),
        (make_ethernet(ipv6, 0x86DD), 2, numbers | word(tcp, 16), True),
        (make_ethernet(udp_over_ipv6, 0x86DD), 1, word(tcp, 6), True),
        (make_ethernet(cut), 2, 9 << 16, True),
        (make_ethernet(make_ipv4(60, 3, 8)), 3, 8 << 16 | word(make_ipv4(60, 3, 8), 26), False),
        (make_ethernet(bytes(46), 0x0806), 0, 0, False),
        (make_ethernet(bytes([0x44]) + bytes(45)), 0, 0, False),
    ]
    for frame, *_ in cases:
        await core.offer(frame)
    await core.advance()
    out = core.take_frames()
    assert len(out) == len(cases)
    for record, sent, (frame, ecn, identity, marked) in zip(core.records, out, cases, strict=True):
        found = (int(record["ecn"]), int(record["identity"]), bool(record["flags"] & 1))
        assert found == (ecn, identity, marked), frame.hex()
        assert sent == (with_mark(frame) if marked else frame)


def word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "big")


def with_mark(frame: bytes) -> bytes:
    """Return the frame with Congestion Experienced and an updated IPv4 checksum."""
    at = ETHERNET_BYTES
    while word(frame, at - 2) in (0x8100, 0x88A8):
        at += 4
    marked = bytearray(frame)
    if frame[at] >> 4 == 6:
        marked[at + 1] |= 0x30
        return bytes(marked)
    marked[at + 1] |= 3
    marked[at + 10 : at + 12] = bytes(2)
    header = bytes(marked[at : at + 4 * (marked[at] & 15)])
    struct.pack_into(">H", marked, at + 10, compute_checksum(header))
    return bytes(marked)


@cocotb.test()
async def back_pressure_loses_nothing(dut: Any) -> None:
    """Send frames with gaps in both directions to sinks that are often not ready."""
    core = Core(dut)
    await core.start()
    await core.enable({"forward": {"delay_ns": 1000}, "backward": {"delay_ns": 3000}})
    generator = random.Random(1)
    for stream in [*core.sources, *core.sinks]:
        pauses = [generator.random() < 0.5 for _ in range(997)]
        stream.set_pause_generator(itertools.cycle(pauses))
    frames = [
        [make_ethernet(make_ipv4(generator.randint(46, 900), 0, n)) for n in range(30)]
        for _ in range(2)
    ]
    for forward, backward in zip(*frames, strict=True):
        await core.sources[0].send(AxiStreamFrame(forward, tuser=0))
        await core.sources[1].send(AxiStreamFrame(backward, tuser=0))
    for source in core.sources:
        await source.wait()
    await core.advance()
    assert [core.take_frames(direction) for direction in range(2)] == frames


@cocotb.test()
async def records_that_are_not_taken_are_lost_and_counted(dut: Any) -> None:
    core = Core(dut)
    await core.start()
    await core.enable({})
    dut.m_axis_record_tready.value = 0
    for number in range(20):
        await core.offer(make_ethernet(make_ipv4(46, 0, number)))
        await core.wait_clocks(500)
    assert len(core.take_frames()) == 20
    assert (await core.read_counters())["lost_records"] == 4
    dut.m_axis_record_tready.value = 1
    await core.settle()
    assert [int(record["index"]) for record in core.records] == list(range(16))


@cocotb.test()
async def disabling_ends_the_frame_that_is_sent(dut: Any) -> None:
    """Check that disabling completes the frame in transmission and discards waiting frames."""
    core = Core(dut)
    await core.start()
    await core.enable({"forward": {"delay_ns": 100}})
    first, second = make_ethernet(make_ipv4(1000, 0, 1)), make_ethernet(make_ipv4(400, 0, 2))
    core.sinks[0].pause = True
    await core.offer(first)
    await core.offer(second)
    await core.settle()
    core.now = 104
    dut.time_ns.value = core.now
    await core.wait_clocks(20)
    await core.write(REGISTERS["control"][0], 0)
    assert await core.read(REGISTERS["status"][0]) & 1
    core.sinks[0].pause = False
    await core.disable()
    assert core.take_frames() == [first]
    await core.offer(second)  # discarded
    await core.enable({"forward": {}})
    await core.offer(second)
    await core.advance()
    assert core.take_frames() == [second]
    assert (await core.read_counters())["offered"] == 1
    assert [int(record["index"]) for record in core.records] == [0, 0]
