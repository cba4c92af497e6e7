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
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_contracts.base import file_of_run
from nagi_contracts.errors import InputError, refuse

CAUSES = ("channel loss", "queue overflow", "AQM drop", "given up")
QUEUE_DROPS = ("queue overflow", "AQM drop")
CHANNEL_LOSSES = ("channel loss", "given up")  # on a medium after as many attempts as it permits
# A switch's log has two interfaces a port, what came in by it and what was to leave. All that
# edge.p4 drops of what is to leave, its loss model does; what else switches drop is of no link's
# doing, and makes runs invalid.
SWITCH_LOSS = "egress"

# A row a TCP segment over IPv4, in the file's order.
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
    "identity": "int64, IPv4 identification << 16 | TCP checksum",
}

_SECTION = bytes.fromhex("0a0d0d0a")
_ENHANCED_PACKET, _COMMENT = 6, 1
_BLOCK = struct.Struct("<II")
_PACKET = struct.Struct("<IIIII")  # interface, time (high, low), bytes in the file, on the wire
_OPTION = struct.Struct("<HH")
_HEADER_BYTES = _BLOCK.size + _PACKET.size  # in front of the frame
_ETHERNET, _IPV4, _TCP = 14, 0x0800, 6
_MIN_FRAME = _ETHERNET + 20 + 20


def read_drops(path: Path, *, of_switch: bool = False) -> pd.DataFrame:
    """The TCP segments in a drop log (DROP_COLUMNS), of the emulator's or of a switch's. Raises
    InputError if it is missing or damaged, naming the byte."""
    data = file_of_run(path)
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
        """The big-endian number of `count` bytes at each place."""
        value = np.zeros(len(begin), np.int64)
        for place in range(count):
            value = value << 8 | octets[begin + place]
        return value

    frame, end, time_ns, cause, interface = packets[packets[:, 1] - packets[:, 0] >= _MIN_FRAME].T
    ip = frame + _ETHERNET
    tcp = ip + (number(ip, 1) & 15) * 4
    whole = (number(frame + 12, 2) == _IPV4) & (number(ip + 9, 1) == _TCP) & (tcp + 20 <= end)
    ip, tcp = ip[whole], tcp[whole]
    return pd.DataFrame(
        {
            "time_ns": time_ns[whole],
            "cause": pd.Categorical.from_codes(cause[whole], pd.Index(CAUSES)),
            "interface": interface[whole],
            "source": _addresses(number(ip + 12, 4)),
            "source_port": number(tcp, 2),
            "destination": _addresses(number(ip + 16, 4)),
            "destination_port": number(tcp + 2, 2),
            "sequence": number(tcp + 4, 4),
            "payload": number(ip + 2, 2) - (tcp - ip) - (number(tcp + 12, 1) >> 4) * 4,
            "identity": number(ip + 4, 2) << 16 | number(tcp + 16, 2),
        }
    )


def _addresses(numbers: npt.NDArray[np.int64]) -> Any:
    known, codes = np.unique(numbers, return_inverse=True)
    return pd.Categorical.from_codes(codes, pd.Index([str(IPv4Address(int(n))) for n in known]))
