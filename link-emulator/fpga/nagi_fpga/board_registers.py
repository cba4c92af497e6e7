# SPDX-License-Identifier: Apache-2.0
"""Registers of a board outside the core: byte offsets, widths and meanings.

boards/ builds the registers from this description, and board.py reads the registers by it.

    offset              contents
    0x0000 to 0x0fff    the core's registers, see registers.yaml
    0x1000 to 0x10ff    the board's registers, described here
    0x8000 to 0xffff    a ring of the latest records, 32 bytes each
"""

from __future__ import annotations

from typing import NamedTuple

BASE = 0x3000_0000  # address of offset 0 in the board's address space
CORE, BOARD, RECORDS, SIZE = 0x0000, 0x1000, 0x8000, 0x1_0000
RECORD_BYTES = 32

MAGIC = 0x4E42_5244  # "NBRD"

# A port's clock is counted for this time, in ticks of 8 ns.
METER_TICKS = 1 << 17


class BoardRegister(NamedTuple):
    """A register of 32 bits."""

    offset: int  # bytes, from BOARD
    is_writable: bool
    meaning: str


REGISTERS = {
    "magic": BoardRegister(0x00, False, "0x4e425244 on all boards of nagi"),
    "board": BoardRegister(0x04, False, "CRC-32 of the board's name"),
    "memory_ready": BoardRegister(0x08, False, "1 if packet memory has been initialised"),
    "memory_words": BoardRegister(0x0C, False, "packet memory per direction, in words of 64 bits"),
    "scratch": BoardRegister(0x10, True, "any value, to test reading and writing"),
    "records_depth": BoardRegister(0x14, False, "records that the ring holds"),
    "records_written": BoardRegister(0x18, False, "records written, modulo 2^32"),
    "records_taken": BoardRegister(0x1C, True, "records that the client has read, modulo 2^32"),
    "a_clock": BoardRegister(0x20, False, "receive clocks of the PHY in 1.048576 ms, first port"),
    "b_clock": BoardRegister(0x24, False, "receive clocks of the PHY in 1.048576 ms, second port"),
    "a_status": BoardRegister(
        0x28, False, "bit 0 link, 2:1 speed, 3 full duplex; PHY of the first port"
    ),
    "b_status": BoardRegister(0x2C, False, "as a_status; PHY of the second port"),
    "a_overflows": BoardRegister(0x30, False, "bytes that the core did not accept, first port"),
    "b_overflows": BoardRegister(0x34, False, "bytes that the core did not accept, second port"),
    "a_underruns": BoardRegister(0x38, False, "frames cut because memory was late, first port"),
    "b_underruns": BoardRegister(0x3C, False, "frames cut because memory was late, second port"),
    "a_received": BoardRegister(0x40, False, "frames received at the first port"),
    "b_received": BoardRegister(0x44, False, "frames received at the second port"),
    "control_dropped": BoardRegister(
        0x48, False, "frames for the board itself, dropped for lack of room"
    ),
}
