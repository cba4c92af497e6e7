# SPDX-License-Identifier: Apache-2.0
"""A double of a board behind UDP; its Etherbone code is independent of nagi's."""

from __future__ import annotations

import socket
import threading
import zlib
from collections.abc import Callable

BASE = 0x30000000
NAGI, NBRD = 0x6E616769, 0x4E425244
LATCH = 1


class Words:
    """The address space of a board that carries no packets.

    Registers keep written words, except read-only ones. `time_ns` increases by a microsecond with
    each latch.
    """

    def __init__(self, board: str = "colorlight-5a-75b", build_id: int = 0x12345678) -> None:
        self.at: dict[int, int] = {
            0x000: NAGI,
            0x004: 1,
            0x008: build_id,
            0x00C: 64 << 16 | 64,
            0x010: 1536 << 16 | 10 << 8 | 19,
            0x014: 8000,
            0x1000: NBRD,
            0x1004: zlib.crc32(board.encode()),
            0x1008: 1,
            0x100C: 1 << 19,
            0x1014: 1024,
            0x1020: 131072,  # 125 MHz
            0x1024: 131072,
        }
        self.fixed = set(self.at)
        self.writes: list[tuple[int, int]] = []
        self.time_ns = 5_000_000_000

    def read(self, address: int) -> int:
        return self.at.get(address - BASE, 0)

    def write(self, address: int, word: int) -> None:
        offset = address - BASE
        self.writes.append((offset, word))
        if offset == 0x020 and word & LATCH:
            self.time_ns += 1000
            epoch = self.at.get(0x030, 0) | self.at.get(0x034, 0) << 32
            shown = (self.time_ns - epoch) % (1 << 64)
            self.at[0x038], self.at[0x03C] = shown & 0xFFFFFFFF, shown >> 32
        elif offset not in self.fixed and offset != 0x020:
            self.at[offset] = word

    def put_record(self, words: list[int]) -> None:
        """Write a record of eight words into the ring, as the core does."""
        written = self.at.get(0x1018, 0)
        for i, word in enumerate(words):
            self.at[0x8000 + (written % 1024) * 32 + 4 * i] = word
        self.at[0x1018] = (written + 1) % (1 << 32)


def answer_datagram(words: Words, datagram: bytes) -> bytes | None:
    """Return the answer of LiteEth's Etherbone, or None if a request only writes."""
    assert datagram[:4] == bytes.fromhex("4e6f1044"), datagram[:4].hex()
    assert datagram[4:8] == bytes(4)
    assert datagram[9] == 0x0F, "byte enable"
    writes, reads = datagram[10], datagram[11]
    assert not (writes and reads), "LiteEth takes the one or the other"
    numbers = [int.from_bytes(datagram[i : i + 4], "big") for i in range(12, len(datagram), 4)]
    if writes:
        first, *numbers = numbers
        for i in range(writes):
            words.write(first + 4 * i, numbers.pop(0))
    if not reads:
        return None
    back, *addresses = numbers
    assert len(addresses) == reads
    found = b"".join(words.read(address).to_bytes(4, "big") for address in addresses)
    head = bytes.fromhex("4e6f1044") + bytes(4) + bytes([0, 0x0F, reads, 0])
    return head + back.to_bytes(4, "big") + found


class Endpoint:
    """Serves `words` on a UDP port of this host until it is closed.

    `mangle` returns the datagrams to send instead of an answer, given its number and the answer.
    """

    def __init__(
        self, words: Words, mangle: Callable[[int, bytes], list[bytes]] | None = None
    ) -> None:
        self._words = words
        self._mangle = mangle or (lambda _, answer: [answer])
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        count = 0
        while True:
            datagram, sender = self._socket.recvfrom(4096)
            if datagram == b"end":
                return
            answer = answer_datagram(self._words, datagram)
            if answer is None:
                continue
            for mangled in self._mangle(count, answer):
                self._socket.sendto(mangled, sender)
            count += 1

    def close(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.sendto(b"end", ("127.0.0.1", self.port))
        self._thread.join()
        self._socket.close()
