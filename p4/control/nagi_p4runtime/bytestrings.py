# SPDX-License-Identifier: Apache-2.0
"""Conversion of numbers between bytestrings of P4Runtime, integers, and values of operations.

The server sends bytestrings that are big endian and as short as possible (P4Runtime specification,
"Bytestrings"). From clients it accepts bytestrings with leading zeros, but refuses numbers that do
not fit the width of their field.
"""

from __future__ import annotations

from typing import Any

from nagi_p4.operations import Number

from nagi_p4runtime.errors import Code, P4Error

_MIN_HEXADECIMAL = 1 << 64  # from this number on, operations have "0x..." instead of an integer


def decode_unsigned(value: bytes, bits: int, name: str) -> int:
    """Decode the bytestring of a field of type bit<`bits`>.

    Args:
        value: The bytestring.
        bits: Width of the field.
        name: Name of the field, for error messages.

    Raises:
        P4Error: `value` is empty, or does not fit the field.
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
    """Decode the bytestring of a field of type int<`bits`>.

    Arguments and errors are as in decode_unsigned().

    Returns:
        The two's complement of the number as an integer from 0 to 2^`bits` - 1.
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
    """Encode a number >= 0 as the shortest bytestring."""
    return number.to_bytes((number.bit_length() + 7) // 8 or 1, "big")


def encode_signed(number: int, bits: int) -> bytes:
    """Encode a number of type int<`bits`> as the shortest bytestring.

    Args:
        number: The two's complement of the number, as decode_signed() returns it.
        bits: Width of the type.
    """
    if number >> (bits - 1):
        number -= 1 << bits
    shortest = ((number if number >= 0 else ~number).bit_length() + 8) // 8
    return number.to_bytes(shortest, "big", signed=True)


def to_operation_number(number: int) -> Number:
    """Convert a number to the form in operations: an integer, or "0x..." from 2^64 on."""
    return number if number < _MIN_HEXADECIMAL else hex(number)


def parse_answer_number(value: Any) -> int:
    """Convert a number in the answer of a switch, an integer or "0x...", to an integer."""
    return value if isinstance(value, int) else int(value, 16)
