# SPDX-License-Identifier: Apache-2.0
"""Words of a board's address space, read and written over UDP: Etherbone, as LiteEth has it.

LiteEth's part of Etherbone: addresses and words of 32 bits, big-endian, one record a datagram.

    packet   0x4e6f, version 1 << 4 | flags (bit 0: probe), 0x44 (addresses and ports), 0 0 0 0
    record   flags, byte enable, words written, words read
    written  the first address, then the words
    read     an address that comes back with the answer, then the addresses

Answers are records that write, from the address that came with the request, which is a number of
the request here: so an answer to a request that was repeated is told from one to the next. Writes
are not answered, and a record that writes and reads confuses LiteEth 2024.12: whoever writes has to
read whether it was taken. All requests may be repeated, since no register changes by being read,
and writing the same twice is writing it once.
"""

from __future__ import annotations

import itertools
import socket
import struct
import time
from typing import Iterator, Sequence

from nagi_fpga.errors import BoardError

PORT = 1234  # of both ends: LiteEth answers to its own port's number
MAX_WORDS = 120  # a datagram; the board keeps 128
TIMEOUT_S = 0.1  # until a request is repeated
TRIES = 8

_MAGIC = b"\x4e\x6f"
_HEADER = struct.Struct(">2sBB4x")
_RECORD = struct.Struct(">BBBB")
_VERSION, _SIZES = 0x10, 0x44
_ALL_BYTES = 0x0F


def request(number: int, first: int, words: Sequence[int], reads: Sequence[int]) -> bytes:
    """A datagram that writes `words` from address `first` on, then reads `reads`. `number`: comes
    back with the answer."""
    parts = [
        _HEADER.pack(_MAGIC, _VERSION, _SIZES),
        _RECORD.pack(0, _ALL_BYTES, len(words), len(reads)),
    ]
    if words:
        parts.append(struct.pack(f">{1 + len(words)}I", first, *words))
    if reads:
        parts.append(struct.pack(f">{1 + len(reads)}I", number, *reads))
    return b"".join(parts)


def answer(datagram: bytes) -> tuple[int, list[int]]:
    """The number of the request, and the words. Raises ValueError if it is no answer."""
    if len(datagram) < _HEADER.size + _RECORD.size + 4:
        raise ValueError("too short")
    magic, version, sizes = _HEADER.unpack_from(datagram)
    if magic != _MAGIC or version & 0xF0 != _VERSION or sizes != _SIZES:
        raise ValueError("not Etherbone with words of 32 bits")
    _, _, count, reads = _RECORD.unpack_from(datagram, _HEADER.size)
    start = _HEADER.size + _RECORD.size
    if reads or not count or len(datagram) < start + 4 * (1 + count):
        raise ValueError("cut short")
    number, *words = struct.unpack_from(f">{1 + count}I", datagram, start)
    return number, words


class Etherbone:
    """A board at an IPv4 address. Raises BoardError if it does not answer."""

    def __init__(
        self,
        address: str,
        *,
        port: int = PORT,
        local_port: int = PORT,
        timeout_s: float = TIMEOUT_S,
        tries: int = TRIES,
    ) -> None:
        self.name = address
        self._to = (address, port)
        self._timeout_s, self._tries = timeout_s, tries
        self._numbers: Iterator[int] = itertools.count(1)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.bind(("", local_port))
        except OSError as error:
            self._socket.close()
            raise BoardError(
                "registers",
                f"UDP port {local_port} of this host is taken: {error.strerror}",
                "end the other program that controls a board, as LiteX's litex_server",
            ) from error

    def close(self) -> None:
        self._socket.close()

    def write(self, address: int, words: Sequence[int]) -> None:
        """Writes words from a byte address on; what becomes of it is not said."""
        for at in range(0, len(words), MAX_WORDS):
            self._send(request(0, address + 4 * at, words[at : at + MAX_WORDS], []))

    def read(self, address: int, count: int) -> list[int]:
        """Reads words from a byte address on."""
        found: list[int] = []
        while len(found) < count:
            first = address + 4 * len(found)
            some = min(count - len(found), MAX_WORDS)
            found += self._ask([first + 4 * i for i in range(some)])
        return found

    def _send(self, datagram: bytes) -> None:
        try:
            self._socket.sendto(datagram, self._to)
        except OSError as error:
            raise self._unreachable(str(error.strerror)) from error

    def _ask(self, reads: Sequence[int]) -> list[int]:
        number = next(self._numbers) & 0xFFFF_FFFF
        datagram = request(number, 0, [], reads)
        nonsense = False
        for _ in range(self._tries):
            self._send(datagram)
            deadline = time.monotonic() + self._timeout_s
            while (left := deadline - time.monotonic()) > 0:
                self._socket.settimeout(left)
                try:
                    got, sender = self._socket.recvfrom(2048)
                except socket.timeout:
                    break
                except OSError as error:  # as ICMP has it
                    raise self._unreachable(str(error.strerror)) from error
                if sender[0] != self._to[0]:
                    continue
                try:
                    answers, found = answer(got)
                except ValueError:
                    nonsense = True
                    continue
                if answers == number and len(found) == len(reads):
                    return found
        if nonsense:
            raise BoardError(
                "registers",
                f"what answers at {self.name} does not speak Etherbone",
                "give the board's own address as `address`",
            )
        raise self._unreachable(f"no answer to {self._tries} requests")

    def _unreachable(self, why: str) -> BoardError:
        return BoardError(
            "registers",
            f"the board at {self.name} cannot be reached: {why}",
            f"give an interface on the cable of its first port an address of {self.name}'s "
            "network, and look whether the port's lights are on",
        )
