# SPDX-License-Identifier: Apache-2.0
"""Reads and writes words of a board's address space over UDP, by Etherbone.

LiteEth implements a subset of Etherbone: addresses and words of 32 bits, big-endian, and one record
per datagram.

    packet   0x4e6f, version 1 << 4 | flags (bit 0: probe), 0x44 (addresses and ports), 0 0 0 0
    record   flags, byte enable, words written, words read
    written  the first address, then the words
    read     an address that the answer repeats, then the addresses to read

An answer is a record that writes to the address that the request gave. As this address, the client
gives the number of the request. So the client can assign each answer to its request, even if an
earlier request was repeated. Writes are not answered. LiteEth 2024.12 fails on a record that both
writes and reads, so a writer reads the words back in a separate request. Every request may be
repeated, because a read changes no register, and a second write of a value has no effect.
"""

from __future__ import annotations

import itertools
import socket
import struct
import time
from typing import Iterator, Sequence

from nagi_fpga.errors import BoardError

PORT = 1234  # of host and board: LiteEth sends answers to the port at which it listens
MAX_WORDS = 120  # per datagram; the board can buffer 128
TIMEOUT_S = 0.1  # a request without an answer is repeated after this time
ATTEMPTS = 8

_MAGIC = b"\x4e\x6f"
_HEADER = struct.Struct(">2sBB4x")
_RECORD = struct.Struct(">BBBB")
_VERSION, _SIZES = 0x10, 0x44
_ALL_BYTES = 0x0F


def encode_request(number: int, first: int, words: Sequence[int], reads: Sequence[int]) -> bytes:
    """Encode a datagram that writes words or reads words.

    Args:
        number: Number of the request, which the answer repeats.
        first: Byte address of the first word to write.
        words: Words to write from `first` on.
        reads: Byte addresses to read.
    """
    parts = [
        _HEADER.pack(_MAGIC, _VERSION, _SIZES),
        _RECORD.pack(0, _ALL_BYTES, len(words), len(reads)),
    ]
    if words:
        parts.append(struct.pack(f">{1 + len(words)}I", first, *words))
    if reads:
        parts.append(struct.pack(f">{1 + len(reads)}I", number, *reads))
    return b"".join(parts)


def decode_answer(datagram: bytes) -> tuple[int, list[int]]:
    """Decode an answer into the number of its request and the words read.

    Raises:
        ValueError: The datagram is not an answer.
    """
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
    """The connection to a board at an IPv4 address.

    The constructor raises BoardError if the local port is in use. Other methods raise BoardError if
    the board does not answer.
    """

    def __init__(
        self,
        address: str,
        *,
        port: int = PORT,
        local_port: int = PORT,
        timeout_s: float = TIMEOUT_S,
        attempts: int = ATTEMPTS,
    ) -> None:
        self.name = address
        self._destination = (address, port)
        self._timeout_s, self._attempts = timeout_s, attempts
        self._numbers: Iterator[int] = itertools.count(1)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.bind(("", local_port))
        except OSError as error:
            self._socket.close()
            raise BoardError(
                "registers",
                f"UDP port {local_port} of this host cannot be used: {error.strerror}",
                "stop the other program that controls a board, such as LiteX's litex_server",
            ) from error

    def close(self) -> None:
        self._socket.close()

    def write(self, address: int, words: Sequence[int]) -> None:
        """Write consecutive words from a byte address on; the board does not confirm them."""
        for start in range(0, len(words), MAX_WORDS):
            part = words[start : start + MAX_WORDS]
            self._send(encode_request(0, address + 4 * start, part, []))

    def read(self, address: int, count: int) -> list[int]:
        """Read `count` consecutive words from a byte address on."""
        words: list[int] = []
        while len(words) < count:
            first = address + 4 * len(words)
            part = min(count - len(words), MAX_WORDS)
            words += self._request_words([first + 4 * i for i in range(part)])
        return words

    def _send(self, datagram: bytes) -> None:
        try:
            self._socket.sendto(datagram, self._destination)
        except OSError as error:
            raise self._unreachable_error(str(error.strerror)) from error

    def _request_words(self, reads: Sequence[int]) -> list[int]:
        """Return the words at the addresses `reads`; repeat the request after a timeout."""
        number = next(self._numbers) & 0xFFFF_FFFF
        datagram = encode_request(number, 0, [], reads)
        has_invalid_answer = False
        for _ in range(self._attempts):
            self._send(datagram)
            deadline = time.monotonic() + self._timeout_s
            while (left := deadline - time.monotonic()) > 0:
                self._socket.settimeout(left)
                try:
                    received, sender = self._socket.recvfrom(2048)
                except socket.timeout:
                    break
                except OSError as error:  # an ICMP error was received
                    raise self._unreachable_error(str(error.strerror)) from error
                if sender[0] != self._destination[0]:
                    continue
                try:
                    answered_number, words = decode_answer(received)
                except ValueError:
                    has_invalid_answer = True
                    continue
                if answered_number == number and len(words) == len(reads):
                    return words
        if has_invalid_answer:
            raise BoardError(
                "registers",
                f"the device at {self.name} does not speak Etherbone",
                "give the board's own address as `address`",
            )
        raise self._unreachable_error(f"no answer to {self._attempts} requests")

    def _unreachable_error(self, reason: str) -> BoardError:
        return BoardError(
            "registers",
            f"the board at {self.name} cannot be reached: {reason}",
            "give the interface that is connected to the board's first port an address in the "
            f"network of {self.name}, and check that the port's lights are on",
        )
