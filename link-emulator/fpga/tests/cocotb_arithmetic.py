# SPDX-License-Identifier: Apache-2.0
"""Tests of the arithmetic modules, in cocotb.

Results are compared with the model's (link-emulator/model/tests/random_test.cpp) and with Python's
integers.
"""

from __future__ import annotations

import random
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge

SEED = 2008
ONES_16 = (1 << 16) - 1
ONES_32 = (1 << 32) - 1
ONES_64 = (1 << 64) - 1
LN2_Q64 = 0xB17217F7D1CF79AB


async def start(dut: Any) -> None:
    """Start the clock and reset the modules."""
    for name in ("philox", "exponential", "divider", "multiplier"):
        getattr(dut, f"{name}_start").value = 0
    dut.rst.value = 1
    Clock(dut.clk, 8, unit="ns").start()
    await ClockCycles(dut.clk, 3)
    await FallingEdge(dut.clk)
    dut.rst.value = 0


async def calculate(dut: Any, name: str, **inputs: int) -> int:
    """Start a calculation, wait until it is done, and return the number of clocks."""
    for port, value in inputs.items():
        getattr(dut, f"{name}_{port}").value = value
    getattr(dut, f"{name}_start").value = 1
    clocks = 0
    while not clocks or not getattr(dut, f"{name}_done").value:
        await FallingEdge(dut.clk)
        getattr(dut, f"{name}_start").value = 0
        clocks += 1
    return clocks


def compute_philox(counter: int, seed: int) -> int:
    """Compute a draw of Philox4x32-10 in the way of random.hpp."""
    words = [counter >> 32 * n & ONES_32 for n in range(4)]
    keys = [seed & ONES_32, seed >> 32]
    for _ in range(10):
        low, high = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [
            high >> 32 ^ words[1] ^ keys[0],
            high & ONES_32,
            low >> 32 ^ words[3] ^ keys[1],
            low & ONES_32,
        ]
        keys = [keys[0] + 0x9E3779B9 & ONES_32, keys[1] + 0xBB67AE85 & ONES_32]
    return words[1] << 32 | words[0]


def compute_exponential_q40(draw: int) -> int:
    """Compute exponential_q40() of link-emulator/model/random.cpp."""
    if draw == ONES_64:
        return 0
    whole = (draw + 1).bit_length() - 1
    mantissa = (draw + 1) << 63 - whole
    fraction = 0
    for _ in range(40):
        square = mantissa * mantissa
        bit = square >> 127
        mantissa = square >> (64 if bit else 63)
        fraction = fraction << 1 | bit
    return ((64 << 40) - (whole << 40 | fraction)) * LN2_Q64 >> 64


@cocotb.test()
async def philox_gives_known_answers(dut: Any) -> None:
    """Check the known answers of Random123: counter and key all zero, and all one."""
    await start(dut)
    zeros = {"index": 0, "link": 0, "part": 0, "purpose_0": 0, "purpose_1": 1, "seed": 0}
    await calculate(dut, "philox", **zeros)
    assert dut.philox_draw_0.value == 0xE169C58D6627E8D5
    ones = {"index": ONES_64, "link": ONES_32, "part": ONES_16, "purpose_0": 0}
    clocks = await calculate(dut, "philox", **ones, purpose_1=ONES_16, seed=ONES_64)
    assert dut.philox_draw_1.value == 0x41C83B0E408F276D
    assert clocks == 31


@cocotb.test()
async def philox_gives_any_draw(dut: Any) -> None:
    await start(dut)
    generator = random.Random(SEED)
    for _ in range(20):
        index, link, part = (
            generator.getrandbits(64),
            generator.getrandbits(32),
            generator.getrandbits(16),
        )
        purposes, seed = (
            [generator.getrandbits(16), generator.getrandbits(16)],
            generator.getrandbits(64),
        )
        values = {"index": index, "link": link, "part": part, "seed": seed}
        await calculate(dut, "philox", **values, purpose_0=purposes[0], purpose_1=purposes[1])
        for name, purpose in zip(("philox_draw_0", "philox_draw_1"), purposes, strict=True):
            counter = part << 112 | purpose << 96 | link << 64 | index
            assert getattr(dut, name).value == compute_philox(counter, seed)


@cocotb.test()
async def exponential_gives_known_answers(dut: Any) -> None:
    """Check values that all implementations must return."""
    await start(dut)
    known = {
        0: 48_775_896_626_291,
        0x8000000000000000: 762_123_384_785,
        0x123456789ABCDEF0: 2_906_571_830_283,
        ONES_64: 0,
    }
    for draw, value in known.items():
        await calculate(dut, "exponential", draw=draw)
        assert dut.exponential_value.value == value


@cocotb.test()
async def exponential_gives_any_logarithm(dut: Any) -> None:
    await start(dut)
    generator = random.Random(SEED)
    for bits in (1, 20, 40, 63, 64, 64, 64):
        draw = generator.getrandbits(bits)
        clocks = await calculate(dut, "exponential", draw=draw)
        assert dut.exponential_value.value == compute_exponential_q40(draw)
        assert clocks < 400 + 64


@cocotb.test()
async def divider_divides(dut: Any) -> None:
    await start(dut)
    generator = random.Random(SEED)
    cases = [(0, 1), ((1 << 51) - 1, 1), ((1 << 51) - 1, (1 << 40) - 1), (7, 1 << 39)]
    for _ in range(20):
        cases.append(
            (generator.getrandbits(51), generator.getrandbits(generator.randint(1, 40)) | 1)
        )
    for dividend, divisor in cases:
        clocks = await calculate(dut, "divider", dividend=dividend, divisor=divisor)
        for name in ("divider", "fast_divider"):
            found = (
                int(getattr(dut, f"{name}_quotient").value),
                int(getattr(dut, f"{name}_remainder").value),
            )
            assert found == divmod(dividend, divisor)
        assert clocks == (27 if dividend // divisor < 1 << 26 else 52)


@cocotb.test()
async def multiplier_multiplies(dut: Any) -> None:
    await start(dut)
    generator = random.Random(SEED)
    cases = [(0, 0), (ONES_64, ONES_64), (ONES_32, ONES_64)]
    cases += [(generator.getrandbits(64), generator.getrandbits(64)) for _ in range(20)]
    for a, b in cases:
        await calculate(dut, "multiplier", a=a, b=b)
        assert dut.multiplier_product.value == a * b
