# SPDX-License-Identifier: Apache-2.0
"""Tests that any datagram from a board's address is decoded as an answer or ignored."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st
from nagi_fpga.etherbone import MAX_WORDS, decode_answer

GOOD = bytes.fromhex("4e6f104400000000000f0200000000070000002a0000002b")


def is_answer(datagram: bytes) -> bool:
    """Return whether `decode_answer` accepts a datagram; it may raise no error but ValueError."""
    try:
        number, words = decode_answer(datagram)
    except ValueError:
        return False
    # This follows the format, not the code: header, record, number, words.
    count = datagram[10]
    assert (number, *words) == struct.unpack_from(f">{1 + count}I", datagram, 12)
    return True


@given(st.binary(max_size=16 + 4 * MAX_WORDS))
def test_any_bytes_are_an_answer_or_none(datagram: bytes) -> None:
    is_answer(datagram)


@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255), st.integers(0, len(GOOD)))
def test_a_changed_answer_is_an_answer_or_none(index: int, value: int, length: int) -> None:
    changed = bytearray(GOOD)
    changed[index] = value
    is_answer(bytes(changed[:length]))
    assert is_answer(GOOD)
