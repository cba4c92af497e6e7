# SPDX-License-Identifier: Apache-2.0
"""Reads and writes words of a board's address space over a serial line, by LiteX's UARTBone.

    request   1 (write) or 2 (read); number of words (8 bits); address / 4 (32 bits, big-endian);
              for a write, the words
    answer    the words of a read; a write has no answer

The board discards a request that pauses for 0.1 s. There are no checksums, so a writer must read
the words back.
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
MAX_WORDS = 128  # per request
TIMEOUT_S = 0.5
ATTEMPTS = 4
_RESET_S = 0.15  # pause after which the board has discarded an incomplete request
_WRITE, _READ = 1, 2


class Uart:
    """The connection to a board at a serial device.

    The constructor raises BoardError if the device cannot be opened or is not a serial device.
    Other methods raise BoardError if the board does not answer.
    """

    def __init__(
        self, device: str, *, timeout_s: float = TIMEOUT_S, attempts: int = ATTEMPTS
    ) -> None:
        self.name = device
        self._timeout_s, self._attempts = timeout_s, attempts
        try:
            self._file = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            cure = (
                "plug in the serial cable, or give its device as `serial`"
                if isinstance(error, FileNotFoundError)
                else "let only the agent's user open it, as the role `fpga` does"
            )
            raise BoardError("cable", f"{device}: {error.strerror}", cure) from error
        try:
            self._set_up()
        except termios.error as error:
            os.close(self._file)
            raise BoardError(
                "cable",
                f"{device} is not a serial device",
                "give the serial cable's device as `serial`",
            ) from error

    def _set_up(self) -> None:
        """Set the line to raw bytes, eight bits, no parity, no flow control."""
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
        """Write consecutive words from a byte address on; wait until the board processed them."""
        for start in range(0, len(words), MAX_WORDS):
            part = words[start : start + MAX_WORDS]
            head = struct.pack(">BBI", _WRITE, len(part), (address >> 2) + start)
            body = struct.pack(f">{len(part)}I", *part)
            # The answer to a read of one word confirms that the board has processed the write.
            read = struct.pack(">BBI", _READ, 1, (address >> 2) + start)
            self._exchange_words(head + body + read, 1)

    def read(self, address: int, count: int) -> list[int]:
        """Read `count` consecutive words from a byte address on."""
        words: list[int] = []
        while len(words) < count:
            part = min(count - len(words), MAX_WORDS)
            request = struct.pack(">BBI", _READ, part, (address >> 2) + len(words))
            words += self._exchange_words(request, part)
        return words

    def _exchange_words(self, request: bytes, count: int) -> list[int]:
        """Send a request and return the `count` words of the answer; repeat it after a timeout."""
        for attempt in range(self._attempts):
            if attempt:
                time.sleep(_RESET_S)
                termios.tcflush(self._file, termios.TCIOFLUSH)
            answer = self._exchange(request, 4 * count)
            if len(answer) == 4 * count:
                return list(struct.unpack(f">{count}I", answer))
        raise BoardError(
            "registers",
            f"the board does not answer at {self.name}",
            "check that its transmit and receive pins are not swapped, and that the board is "
            "loaded",
        )

    def _exchange(self, request: bytes, size: int) -> bytes:
        """Send a request and return the bytes that arrive within the timeout, at most `size`."""
        deadline = time.monotonic() + self._timeout_s
        answer = b""
        while len(answer) < size and (left := deadline - time.monotonic()) > 0:
            readable, writable, _ = select.select(
                [self._file], [self._file] if request else [], [], left
            )
            try:
                if writable:
                    request = request[os.write(self._file, request) :]
                if readable:
                    answer += os.read(self._file, size - len(answer))
            except OSError as error:
                raise BoardError(
                    "cable", f"{self.name}: {error.strerror}", "plug the serial cable in again"
                ) from error
        return answer
