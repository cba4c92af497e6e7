# SPDX-License-Identifier: Apache-2.0
"""Conversions of numbers between P4Runtime's bytestrings, integers and operations.

A bytestring is big endian and as short as possible (P4Runtime specification, "Bytestrings"). Longer
ones are accepted; numbers that do not fit the width of their field are not.
"""

from __future__ import annotations

from typing import Any

from nagi_p4.operations import Number

from nagi_p4runtime.errors import Code, P4Error

_MAX_PLAIN = 1 << 64  # in operations, larger numbers are "0x..."


def decode_unsigned(value: bytes, bits: int, name: str) -> int:
    """Decode a bytestring of a field bit<`bits`>.

    Args:
        value: The bytestring.
        bits: Width of the field.
        name: How error messages name the field.

    Raises:
        P4Error: `value` is empty, or does not fit.
    """
    number = int.from_bytes(value, "big")
    if not value:
        raise P4Error(Code.OUT_OF_RANGE, f"{name}: an empty value; give at least one byte")
    if number >> bits:
        raise P4Error(
            Code.OUT_OF_RANGE, f"{name}: 0x{value.hex()} does not fit its {bits} bits; give less"
        )
    return number


def decode_signed(value: bytes, bits: int, name: str) -> int:
    """Decode a bytestring of a field int<`bits`>, and return its two's complement, unsigned.

    The arguments and errors are those of decode_unsigned().
    """
    number = int.from_bytes(value, "big", signed=True)
    if not value:
        raise P4Error(Code.OUT_OF_RANGE, f"{name}: an empty value; give at least one byte")
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise P4Error(
            Code.OUT_OF_RANGE, f"{name}: {number} does not fit its {bits} bits with a sign"
        )
    return number & ((1 << bits) - 1)


def encode_unsigned(number: int) -> bytes:
    """Encode a number that is not negative as the shortest bytestring."""
    return number.to_bytes((number.bit_length() + 7) // 8 or 1, "big")


def encode_signed(number: int, bits: int) -> bytes:
    """Encode the two's complement of an int<`bits`>, given unsigned, as the shortest bytestring."""
    if number >> (bits - 1):
        number -= 1 << bits
    shortest = ((number if number >= 0 else ~number).bit_length() + 8) // 8
    return number.to_bytes(shortest, "big", signed=True)


def to_operation_number(number: int) -> Number:
    """Return a number as an operation of a switch has it."""
    return number if number < _MAX_PLAIN else hex(number)


def parse_answer_number(value: Any) -> int:
    """Return the number that an answer of a switch has as an integer or "0x..."."""
    return value if isinstance(value, int) else int(value, 16)
