# SPDX-License-Identifier: Apache-2.0
"""Drop logs as tables: the TCP segments that links, or switches for them, dropped, with when and
why.

Format: draft-ietf-opsawg-pcapng as nagi-link writes it (runtime/io/pcapng_file.hpp):
little endian, nanoseconds, Ethernet, the cause as the packet's comment. The capture reader makes
flows of packets, and knows neither comments nor sequence numbers as on the wire; both are needed
here.
"""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_contracts.base import read_run_file
from nagi_contracts.errors import InputError, refuse

CAUSES = ("channel loss", "queue overflow", "AQM drop", "given up")
QUEUE_DROPS = ("queue overflow", "AQM drop")
CHANNEL_LOSSES = ("channel loss", "given up")  # on a medium after as many attempts as it permits
# A switch's log has two interfaces a port, what came in by it and what was to leave. All that
# edge.p4 drops of what is to leave, its loss model does; what else switches drop is of no link's
# doing, and makes runs invalid.
SWITCH_LOSS = "egress"

# A row a TCP segment, in the file's order; of IPv6 without extension headers.
DROP_COLUMNS: dict[str, str] = {
    "time_ns": "int64, when it was dropped, since the Unix epoch by the emulator's clock",
    "cause": "categorical: channel loss, queue overflow, AQM drop, given up",
    "interface": "int64, of the log, in its order",
    "source": "categorical: address (text)",
    "source_port": "",
    "destination": "categorical: address (text)",
    "destination_port": "",
    "sequence": "int64, as on the wire: below 2^32",
    "payload": "int64, bytes of TCP payload, from the lengths in the headers",
    "identity": "int64, as nagi-link records it (runtime/io/ip_header.hpp)",
}

_SECTION = bytes.fromhex("0a0d0d0a")
_ENHANCED_PACKET, _COMMENT = 6, 1
_BLOCK = struct.Struct("<II")
_PACKET = struct.Struct("<IIIII")  # interface, time (high, low), bytes in the file, on the wire
_OPTION = struct.Struct("<HH")
_HEADER_BYTES = _BLOCK.size + _PACKET.size  # in front of the frame
_ETHERNET, _IPV4, _IPV6, _TCP = 14, 0x0800, 0x86DD, 6
_IPV6_HEADER = 40
_MIN_FRAME = _ETHERNET + 20 + 20


def read_drops(path: Path, *, of_switch: bool = False) -> pd.DataFrame:
    """The TCP segments in a drop log (DROP_COLUMNS), of the emulator's or of a switch's. Raises
    InputError if it is missing or damaged, naming the byte."""
    data = read_run_file(path)
    return _segments(np.frombuffer(data, np.uint8), _packets(data, path, of_switch))


def interface_of(port: int) -> int:
    """In a switch's log, that of what was to leave by a port, by its place among the ports."""
    return 2 * port + 1


def _packets(data: bytes, path: Path, of_switch: bool) -> npt.NDArray[np.int64]:
    """A row a packet: where its frame begins and ends, its time in ns, its cause (of CAUSES), its
    interface."""
    if not data.startswith(_SECTION):
        raise _damaged(path, 0)
    rows = []
    code_of = {cause.encode(): code for code, cause in enumerate(CAUSES)}
    if of_switch:
        code_of[SWITCH_LOSS.encode()] = CAUSES.index("channel loss")
    at = 0
    while at < len(data):
        try:
            kind, length = _BLOCK.unpack_from(data, at)
            if length < 12 or at + length > len(data):
                raise _damaged(path, at)
            if kind == _ENHANCED_PACKET:
                interface, high, low, kept, _ = _PACKET.unpack_from(data, at + _BLOCK.size)
                frame = at + _HEADER_BYTES
                option = frame + (kept + 3) // 4 * 4
                code, size = _OPTION.unpack_from(data, option)
                cause = data[option + _OPTION.size : option + _OPTION.size + size]
                if code != _COMMENT or (cause not in code_of and not of_switch):
                    raise _damaged(path, at)
                if not of_switch or (interface % 2 and cause in code_of):
                    rows.append((frame, frame + kept, high << 32 | low, code_of[cause], interface))
        except struct.error:
            raise _damaged(path, at) from None
        at += length
    return np.array(rows, np.int64).reshape(-1, 5)


def _damaged(path: Path, at: int) -> InputError:
    return refuse(f"no whole drop log: byte {at}", "run it again", file=str(path))


def _segments(octets: npt.NDArray[np.uint8], packets: npt.NDArray[np.int64]) -> pd.DataFrame:
    def number(begin: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
        """The big-endian number of `count` bytes at each place; of 8 bytes as int64 has it."""
        value = np.zeros(len(begin), np.int64)
        for place in range(count):
            value = value << 8 | octets[begin + place]
        return value

    frame, end, time_ns, cause, interface = packets[packets[:, 1] - packets[:, 0] >= _MIN_FRAME].T
    ip = frame + _ETHERNET
    four, six = (number(frame + 12, 2) == each for each in (_IPV4, _IPV6))
    tcp = ip + np.where(six, _IPV6_HEADER, (number(ip, 1) & 15) * 4)
    protocol = number(ip + np.where(six, 6, 9), 1)
    whole = (four | six) & (protocol == _TCP) & (tcp + 20 <= end)
    ip, tcp, six = ip[whole], tcp[whole], six[whole]

    def addresses(begin: npt.NDArray[np.int64]) -> Any:
        halves = np.where(six, number(begin, 8), number(begin, 4)), number(begin + 8, 8) * six
        known, codes = np.unique(np.stack([six, *halves], axis=1), axis=0, return_inverse=True)
        texts = [_address(*row) for row in known.tolist()]
        return pd.Categorical.from_codes(codes.reshape(-1), pd.Index(texts))

    # IPv4's length is of the whole packet, IPv6's of what follows the header.
    ip_bytes = np.where(six, number(ip + 4, 2) + _IPV6_HEADER, number(ip + 2, 2))
    numbers = (number(tcp + 6, 2) + number(tcp + 10, 2)) & 0xFFFF
    return pd.DataFrame(
        {
            "time_ns": time_ns[whole],
            "cause": pd.Categorical.from_codes(cause[whole], pd.Index(CAUSES)),
            "interface": interface[whole],
            "source": addresses(np.where(six, ip + 8, ip + 12)),
            "source_port": number(tcp, 2),
            "destination": addresses(np.where(six, ip + 24, ip + 16)),
            "destination_port": number(tcp + 2, 2),
            "sequence": number(tcp + 4, 4),
            "payload": ip_bytes - (tcp - ip) - (number(tcp + 12, 1) >> 4) * 4,
            "identity": np.where(six, numbers, number(ip + 4, 2)) << 16 | number(tcp + 16, 2),
        }
    )


def _address(is_six: int, first: int, second: int) -> str:
    """From 4 bytes, or two halves of 8."""
    if not is_six:
        return str(IPv4Address(first))
    high, low = (half & (1 << 64) - 1 for half in (first, second))
    return str(IPv6Address(high << 64 | low))
