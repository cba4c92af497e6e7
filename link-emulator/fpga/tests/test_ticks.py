# SPDX-License-Identifier: Apache-2.0
"""Tests that instants between a port and the core are exact to the tick in both directions.

The core's clock has two ticks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("migen", reason="the extra `fpga-gateware` is not installed")

from boards.crossing import Crossing
from boards.ports import HOLD_CLOCKS, TIMED, FrameHold, SecondTick
from litex.gen import ClockDomainsRenamer, LiteXModule
from migen import run_simulation

# Periods in ns; rising edges of `core` are also rising edges of `link`.
CLOCKS = {"port": 8, "link": 8, "core": (16, 4)}
TICKS_A_CLOCK = 2


def draw_gaps(number: int) -> list[int]:
    """Draw ticks between words, at least those between words of a frame."""
    generator = random.Random(1)
    return [8 + generator.randrange(20) for _ in range(number)]


def test_words_that_come_in_are_seen_in_their_tick() -> None:
    dut = Crossing([("data", 8)], "port", "core", via="link")
    put: list[int] = []
    seen: list[int] = []

    def send() -> Iterator[Any]:
        tick = 0
        for gap in draw_gaps(40):
            for _ in range(gap):
                yield
            yield dut.sink.valid.eq(1)
            yield
            put.append(tick := tick + gap + 1)
            yield dut.sink.valid.eq(0)

    def receive() -> Iterator[Any]:
        yield dut.source.ready.eq(1)
        for clock in range(500):
            yield
            if (yield dut.source.valid):
                seen.append(clock * TICKS_A_CLOCK + (yield dut.is_second))

    run_simulation(dut, {"port": send(), "core": receive()}, clocks=CLOCKS)
    assert len(seen) == len(put)
    assert {tick % TICKS_A_CLOCK for tick in put} == {0, 1}
    assert len({after - before for before, after in zip(put, seen, strict=True)}) == 1


class Outgoing(LiteXModule):
    """The modules between the core and the bytes of a port's MAC."""

    def __init__(self) -> None:
        self.hold = hold = ClockDomainsRenamer({"sys": "core"})(FrameHold())
        self.crossing = crossing = Crossing(TIMED, "core", "port")
        self.second = second = ClockDomainsRenamer({"sys": "port"})(SecondTick())
        self.comb += [hold.source.connect(crossing.sink), crossing.source.connect(second.sink)]
        self.sink, self.source = hold.sink, second.source


def test_frames_leave_in_their_tick() -> None:
    dut = Outgoing()
    released: list[int] = []
    left: list[int] = []
    words = 3

    def release() -> Iterator[Any]:
        yield
        clock = 1
        generator = random.Random(2)
        for _ in range(20):
            second = generator.randrange(2)
            for word in range(words):
                yield dut.sink.valid.eq(1)
                yield dut.sink.last.eq(word == words - 1)
                yield dut.sink.is_second.eq(second if word == 0 else 0)
                yield
                clock += 1
                if word == 0:
                    released.append(clock * TICKS_A_CLOCK + second)
            yield dut.sink.valid.eq(0)
            for _ in range(wait := 10 + generator.randrange(10)):
                yield
            clock += wait

    def receive() -> Iterator[Any]:
        yield dut.source.ready.eq(1)
        is_first = True
        for tick in range(1500):
            yield
            if (yield dut.source.valid):
                if is_first:
                    left.append(tick)
                is_first = yield dut.source.last

    run_simulation(dut, {"core": release(), "port": receive()}, clocks=CLOCKS)
    assert len(left) == len(released)
    delays = {after - before for before, after in zip(released, left, strict=True)}
    assert len(delays) == 1
    assert delays.pop() > HOLD_CLOCKS * TICKS_A_CLOCK
