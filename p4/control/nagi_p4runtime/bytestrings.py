# SPDX-License-Identifier: Apache-2.0
"""Numbers as P4Runtime has them: big-endian bytes, the shortest that hold the number (P4Runtime
specification, "Bytestrings"). Longer ones are taken; ones that do not fit a width are not."""

from __future__ import annotations

from typing import Any

from nagi_p4.operations import Number

from nagi_p4runtime.errors import Code, P4Error

_MAX_PLAIN = 1 << 64  # operations have larger numbers as "0x..."


def unsigned(value: bytes, bits: int, what: str) -> int:
    """The number in `value`, which must fit bit<`bits`>. `what`: of whom an error speaks."""
    number = int.from_bytes(value, "big")
    if not value:
        raise P4Error(Code.OUT_OF_RANGE, f"{what}: an empty value; give at least one byte")
    if number >> bits:
        raise P4Error(
            Code.OUT_OF_RANGE, f"{what}: 0x{value.hex()} does not fit its {bits} bits; give less"
        )
    return number


def signed(value: bytes, bits: int, what: str) -> int:
    """The number in `value`, which must fit int<`bits`>, as its `bits` bits without sign."""
    number = int.from_bytes(value, "big", signed=True)
    if not value:
        raise P4Error(Code.OUT_OF_RANGE, f"{what}: an empty value; give at least one byte")
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise P4Error(
            Code.OUT_OF_RANGE, f"{what}: {number} does not fit its {bits} bits with a sign"
        )
    return number & ((1 << bits) - 1)


def encoded(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8 or 1, "big")


def encoded_signed(number: int, bits: int) -> bytes:
    """`number`: the bits of an int<`bits`>, without sign."""
    if number >> (bits - 1):
        number -= 1 << bits
    shortest = ((number if number >= 0 else ~number).bit_length() + 8) // 8
    return number.to_bytes(shortest, "big", signed=True)


def for_operation(number: int) -> Number:
    """As an operation takes it."""
    return number if number < _MAX_PLAIN else hex(number)


def of_answer(value: Any) -> int:
    """A number of an answer: an integer or "0x..."."""
    return value if isinstance(value, int) else int(value, 16)
