# SPDX-License-Identifier: Apache-2.0
"""Drop logs as tables: TCP segments that links or switches dropped, with time and cause.

Format: draft-ietf-opsawg-pcapng as nagi-link writes it (runtime/io/pcapng_file.hpp): little endian,
nanoseconds, Ethernet, the cause as the packet's comment. The capture reader (reading.py) cannot
read them, because it returns neither comments nor the sequence numbers in packets.
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
# Drops of packets to be sent have the cause `egress` if edge.p4's loss model selected the packet.
# All other drops of a switch do not belong to a link, and make the run invalid.
SWITCH_LOSS = "egress"

# One row per TCP segment in the file's order, without segments of IPv6 with extension headers.
DROP_COLUMNS: dict[str, str] = {
    "time_ns": "int64, when it was dropped, since the Unix epoch by the emulator's clock",
    "cause": "categorical: channel loss, queue overflow, AQM drop, given up",
    "interface": "int64, number of the interface in the log",
    "source": "categorical: address (text)",
    "source_port": "",
    "destination": "categorical: address (text)",
    "destination_port": "",
    "sequence": "int64, the number in the packet, below 2^32",
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
    """Return the dropped TCP segments in a drop log, in its order, as a table with DROP_COLUMNS.

    Packets of other protocols are left out. For a switch, drops that do not belong to a link are
    left out, too.

    Args:
        path: The drop log.
        of_switch: Whether a switch wrote the log, and not the emulator.

    Raises:
        InputError: The file is missing or damaged.
    """
    data = read_run_file(path)
    return _parse_segments(np.frombuffer(data, np.uint8), _read_packets(data, path, of_switch))


def egress_interface(port: int) -> int:
    """Return the number by which a switch's log names the interface for packets sent at a port.

    Args:
        port: The index of the port in the list of the switch's ports.
    """
    return 2 * port + 1


def _read_packets(data: bytes, path: Path, of_switch: bool) -> npt.NDArray[np.int64]:
    """Return one row per packet: begin and end of its frame in `data`, time, cause, interface.

    The time is in ns. The cause is an index in CAUSES. For a switch, packets whose drop does not
    belong to a link have no row.

    Raises:
        InputError: The log is damaged.
    """
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
    return refuse(f"damaged drop log: byte {offset}", "execute the run again", file=str(path))


def _parse_segments(octets: npt.NDArray[np.uint8], packets: npt.NDArray[np.int64]) -> pd.DataFrame:
    """Return the TCP segments among packets, as a table with DROP_COLUMNS.

    Args:
        octets: The bytes of the drop log.
        packets: The rows of _read_packets().
    """

    def number(offsets: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
        """Return, for each offset, the big-endian number in `count` (at most 8) bytes there."""
        value = np.zeros(len(offsets), np.int64)
        for index in range(count):
            value = value << 8 | octets[offsets + index]
        return value

    frame, end, time_ns, cause, interface = packets[packets[:, 1] - packets[:, 0] >= _MIN_FRAME].T
    ip = frame + _ETHERNET
    is_ipv4, is_ipv6 = (number(frame + 12, 2) == ethertype for ethertype in (_IPV4, _IPV6))
    tcp = ip + np.where(is_ipv6, _IPV6_HEADER, (number(ip, 1) & 15) * 4)
    protocol = number(ip + np.where(is_ipv6, 6, 9), 1)
    is_segment = (is_ipv4 | is_ipv6) & (protocol == _TCP) & (tcp + 20 <= end)
    ip, tcp, is_ipv6 = ip[is_segment], tcp[is_segment], is_ipv6[is_segment]

    def addresses(offsets: npt.NDArray[np.int64]) -> Any:
        """Return the addresses at the offsets as texts, in a Categorical."""
        halves = (
            np.where(is_ipv6, number(offsets, 8), number(offsets, 4)),
            number(offsets + 8, 8) * is_ipv6,
        )
        distinct, codes = np.unique(
            np.stack([is_ipv6, *halves], axis=1), axis=0, return_inverse=True
        )
        texts = [_format_address(*row) for row in distinct.tolist()]
        return pd.Categorical.from_codes(codes.reshape(-1), pd.Index(texts))

    # The length in the header includes the header in IPv4, but not in IPv6.
    ip_bytes = np.where(is_ipv6, number(ip + 4, 2) + _IPV6_HEADER, number(ip + 2, 2))
    # In an identity, these bits replace the identification, which IPv6 does not have.
    ipv6_identification = (number(tcp + 6, 2) + number(tcp + 10, 2)) & 0xFFFF
    return pd.DataFrame(
        {
            "time_ns": time_ns[is_segment],
            "cause": pd.Categorical.from_codes(cause[is_segment], pd.Index(CAUSES)),
            "interface": interface[is_segment],
            "source": addresses(np.where(is_ipv6, ip + 8, ip + 12)),
            "source_port": number(tcp, 2),
            "destination": addresses(np.where(is_ipv6, ip + 24, ip + 16)),
            "destination_port": number(tcp + 2, 2),
            "sequence": number(tcp + 4, 4),
            "payload": ip_bytes - (tcp - ip) - (number(tcp + 12, 1) >> 4) * 4,
            "identity": np.where(is_ipv6, ipv6_identification, number(ip + 4, 2)) << 16
            | number(tcp + 16, 2),
        }
    )


def _format_address(is_ipv6: int, first: int, second: int) -> str:
    """Return an address as text.

    An IPv4 address is `first`. An IPv6 address has the halves `first` and `second`, of 8 bytes.
    """
    if not is_ipv6:
        return str(IPv4Address(first))
    high, low = (half & (1 << 64) - 1 for half in (first, second))
    return str(IPv6Address(high << 64 | low))
