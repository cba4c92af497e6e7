# SPDX-License-Identifier: Apache-2.0
"""Words of a board's address space, read and written over a serial line: LiteX's UARTBone.

    request   1: write, 2: read; words (8 bits); address / 4 (32 bits, big-endian); written words
    answer    to a read: the words; to a write: none

The board forgets a request that stops for 0.1 s. There are no checksums: whoever writes has to read
whether it was taken.
"""

from __future__ import annotations

import os
import select
import struct
import termios
import time
from typing import Sequence

from nagi_fpga.errors import BoardError

BAUD = 1_000_000
MAX_WORDS = 128  # a request
TIMEOUT_S = 0.5
TRIES = 4
_FORGETS_S = 0.15
_WRITE, _READ = 1, 2


class Uart:
    """A board at a serial device. Raises BoardError if it does not answer."""

    def __init__(self, device: str, *, timeout_s: float = TIMEOUT_S, tries: int = TRIES) -> None:
        self.name = device
        self._timeout_s, self._tries = timeout_s, tries
        try:
            self._file = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            cure = (
                "plug in the serial cable, or give its device as `serial`"
                if isinstance(error, FileNotFoundError)
                else "let the agent's user open it, as the role `fpga` does, and nobody else"
            )
            raise BoardError("cable", f"{device}: {error.strerror}", cure) from error
        try:
            self._set_up()
        except termios.error as error:
            os.close(self._file)
            raise BoardError(
                "cable", f"{device} is no serial device", "give the serial cable's as `serial`"
            ) from error

    def _set_up(self) -> None:
        """Raw bytes, eight bits, no parity, no flow control."""
        speed = getattr(termios, f"B{BAUD}")
        characters = termios.tcgetattr(self._file)[6]
        controls = termios.CS8 | termios.CREAD | termios.CLOCAL
        termios.tcsetattr(
            self._file, termios.TCSANOW, [0, 0, controls, 0, speed, speed, characters]
        )
        termios.tcflush(self._file, termios.TCIOFLUSH)

    def close(self) -> None:
        os.close(self._file)

    def write(self, address: int, words: Sequence[int]) -> None:
        """Writes words from a byte address on."""
        for at in range(0, len(words), MAX_WORDS):
            part = words[at : at + MAX_WORDS]
            head = struct.pack(">BBI", _WRITE, len(part), (address >> 2) + at)
            body = struct.pack(f">{len(part)}I", *part)
            # A read of one word says that the write has been taken.
            read = struct.pack(">BBI", _READ, 1, (address >> 2) + at)
            self._ask(head + body + read, 1)

    def read(self, address: int, count: int) -> list[int]:
        """Reads words from a byte address on."""
        found: list[int] = []
        while len(found) < count:
            some = min(count - len(found), MAX_WORDS)
            found += self._ask(struct.pack(">BBI", _READ, some, (address >> 2) + len(found)), some)
        return found

    def _ask(self, asked: bytes, count: int) -> list[int]:
        for attempt in range(self._tries):
            if attempt:
                time.sleep(_FORGETS_S)
                termios.tcflush(self._file, termios.TCIOFLUSH)
            got = self._exchange(asked, 4 * count)
            if len(got) == 4 * count:
                return list(struct.unpack(f">{count}I", got))
        raise BoardError(
            "registers",
            f"the board does not answer at {self.name}",
            "look whether sending and receiving pins are the right way round, and whether the "
            "board is loaded",
        )

    def _exchange(self, asked: bytes, size: int) -> bytes:
        """Sends, and gives what came back within the timeout: `size` bytes or fewer."""
        deadline = time.monotonic() + self._timeout_s
        got = b""
        while len(got) < size and (left := deadline - time.monotonic()) > 0:
            readable, writable, _ = select.select(
                [self._file], [self._file] if asked else [], [], left
            )
            try:
                if writable:
                    asked = asked[os.write(self._file, asked) :]
                if readable:
                    got += os.read(self._file, size - len(got))
            except OSError as error:
                raise BoardError(
                    "cable", f"{self.name}: {error.strerror}", "plug the serial cable in again"
                ) from error
        return got
