# SPDX-License-Identifier: Apache-2.0
"""Drop logs as tables: TCP segments that links or switches dropped, with time and cause.

Format: draft-ietf-opsawg-pcapng as nagi-link writes it (runtime/io/pcapng_file.hpp): little endian,
nanoseconds, Ethernet, the cause as the packet's comment. The capture reader turns packets into
flows and gives neither comments nor sequence numbers as on the wire, which are needed here.
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
CHANNEL_LOSSES = ("channel loss", "given up")  # given up: at the retry limit of a medium
# A switch's log has two interfaces per port: one for received packets, one for packets to be sent.
# Of packets to be sent, edge.p4 drops only those that its loss model selects. Other drops of a
# switch are not those of a link, and make runs invalid.
SWITCH_LOSS = "egress"

# One row per TCP segment in the file's order, without segments of IPv6 with extension headers.
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
_HEADER_BYTES = _BLOCK.size + _PACKET.size  # before the frame
_ETHERNET, _IPV4, _IPV6, _TCP = 14, 0x0800, 0x86DD, 6
_IPV6_HEADER = 40
_MIN_FRAME = _ETHERNET + 20 + 20


def read_drops(path: Path, *, of_switch: bool = False) -> pd.DataFrame:
    """Return the TCP segments in a drop log (DROP_COLUMNS).

    Args:
        path: The drop log.
        of_switch: Whether it is the log of a switch, not of the emulator.

    Raises:
        InputError: The file is missing or damaged; the message names the byte.
    """
    data = read_run_file(path)
    return _parse_segments(np.frombuffer(data, np.uint8), _read_packets(data, path, of_switch))


def egress_interface(port: int) -> int:
    """Return the interface in a switch's log that stands for packets to be sent at a port.

    Args:
        port: The port's position among the ports of the switch.
    """
    return 2 * port + 1


def _read_packets(data: bytes, path: Path, of_switch: bool) -> npt.NDArray[np.int64]:
    """Return one row per packet: frame's begin and end, time in ns, cause, interface."""
    if not data.startswith(_SECTION):
        raise _make_damage_error(path, 0)
    rows = []
    codes = {cause.encode(): code for code, cause in enumerate(CAUSES)}
    if of_switch:
        codes[SWITCH_LOSS.encode()] = CAUSES.index("channel loss")
    offset = 0
    while offset < len(data):
        try:
            kind, length = _BLOCK.unpack_from(data, offset)
            if length < 12 or offset + length > len(data):
                raise _make_damage_error(path, offset)
            if kind == _ENHANCED_PACKET:
                interface, high, low, captured, _ = _PACKET.unpack_from(data, offset + _BLOCK.size)
                frame = offset + _HEADER_BYTES
                option = frame + (captured + 3) // 4 * 4
                code, size = _OPTION.unpack_from(data, option)
                cause = data[option + _OPTION.size : option + _OPTION.size + size]
                if code != _COMMENT or (cause not in codes and not of_switch):
                    raise _make_damage_error(path, offset)
                if not of_switch or (interface % 2 and cause in codes):
                    rows.append(
                        (frame, frame + captured, high << 32 | low, codes[cause], interface)
                    )
        except struct.error:
            raise _make_damage_error(path, offset) from None
        offset += length
    return np.array(rows, np.int64).reshape(-1, 5)


def _make_damage_error(path: Path, offset: int) -> InputError:
    return refuse(f"no whole drop log: byte {offset}", "run it again", file=str(path))


def _parse_segments(octets: npt.NDArray[np.uint8], packets: npt.NDArray[np.int64]) -> pd.DataFrame:
    """Return the TCP segments in the frames, as a table with DROP_COLUMNS."""

    def number(begin: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
        """Return the big-endian number of `count` bytes at each index; 8 bytes give an int64."""
        value = np.zeros(len(begin), np.int64)
        for index in range(count):
            value = value << 8 | octets[begin + index]
        return value

    frame, end, time_ns, cause, interface = packets[packets[:, 1] - packets[:, 0] >= _MIN_FRAME].T
    ip = frame + _ETHERNET
    is_ipv4, is_ipv6 = (number(frame + 12, 2) == ethertype for ethertype in (_IPV4, _IPV6))
    tcp = ip + np.where(is_ipv6, _IPV6_HEADER, (number(ip, 1) & 15) * 4)
    protocol = number(ip + np.where(is_ipv6, 6, 9), 1)
    is_whole = (is_ipv4 | is_ipv6) & (protocol == _TCP) & (tcp + 20 <= end)
    ip, tcp, is_ipv6 = ip[is_whole], tcp[is_whole], is_ipv6[is_whole]

    def addresses(begin: npt.NDArray[np.int64]) -> Any:
        halves = (
            np.where(is_ipv6, number(begin, 8), number(begin, 4)),
            number(begin + 8, 8) * is_ipv6,
        )
        distinct, codes = np.unique(
            np.stack([is_ipv6, *halves], axis=1), axis=0, return_inverse=True
        )
        texts = [_format_address(*row) for row in distinct.tolist()]
        return pd.Categorical.from_codes(codes.reshape(-1), pd.Index(texts))

    # IPv4's length includes the header, IPv6's does not.
    ip_bytes = np.where(is_ipv6, number(ip + 4, 2) + _IPV6_HEADER, number(ip + 2, 2))
    numbers = (number(tcp + 6, 2) + number(tcp + 10, 2)) & 0xFFFF
    return pd.DataFrame(
        {
            "time_ns": time_ns[is_whole],
            "cause": pd.Categorical.from_codes(cause[is_whole], pd.Index(CAUSES)),
            "interface": interface[is_whole],
            "source": addresses(np.where(is_ipv6, ip + 8, ip + 12)),
            "source_port": number(tcp, 2),
            "destination": addresses(np.where(is_ipv6, ip + 24, ip + 16)),
            "destination_port": number(tcp + 2, 2),
            "sequence": number(tcp + 4, 4),
            "payload": ip_bytes - (tcp - ip) - (number(tcp + 12, 1) >> 4) * 4,
            "identity": np.where(is_ipv6, numbers, number(ip + 4, 2)) << 16 | number(tcp + 16, 2),
        }
    )


def _format_address(is_six: int, first: int, second: int) -> str:
    """Return an address of 4 bytes, or of two halves of 8 bytes, as text."""
    if not is_six:
        return str(IPv4Address(first))
    high, low = (half & (1 << 64) - 1 for half in (first, second))
    return str(IPv6Address(high << 64 | low))
