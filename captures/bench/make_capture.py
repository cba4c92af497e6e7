# SPDX-License-Identifier: Apache-2.0
"""Long captures for the benchmark: one TCP connection, headers only, made by NumPy.

A sender of 1,448-byte segments at 100,000 a second, an acknowledgement every second segment,
timestamps in milliseconds. 0.1 % of the segments are lost behind the place of capture (the
sender's): the acknowledgements stand still with SACK blocks for a round trip of 2 ms, and the
segment is sent once more. pcap, nanoseconds, Ethernet, each packet cut to its headers.
"""

from __future__ import annotations

import argparse
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

PAYLOAD = 1448
HEADERS = 14 + 20 + 32
SACK_HEADERS = HEADERS + 12
INTERVAL_NS = 10_000
RTT_NS = 2_000_000
LOSS = 0.001
CHUNK = 500_000  # segments made at once
START_NS = 1_700_000_000_000_000_000


def write(path: Path, packets: int, seed: int = 1) -> int:
    """Writes a capture of about `packets` packets; returns their number."""
    random = np.random.default_rng(seed)
    segments = packets * 2 // 3
    in_flight = RTT_NS // INTERVAL_NS
    written = 0
    tail: npt.NDArray[np.int64] = np.empty((0, 7), np.int64)
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 128, 1))
        file.write(_records(_handshake()))
        written += 3
        for first in range(0, segments, CHUNK):
            number = np.arange(first, min(first + CHUNK, segments), dtype=np.int64)
            rows = np.concatenate([tail, _chunk(number, random, in_flight)])
            rows = rows[np.argsort(rows[:, 0], kind="stable")]
            # What is sent later than the chunk's end goes with the next one.
            ready = rows[:, 0] < START_NS + (number[-1] + 1) * INTERVAL_NS
            file.write(_records(rows[ready]))
            written += int(ready.sum())
            tail = rows[~ready]
        file.write(_records(tail))
        written += len(tail)
    return written


# A row: time, direction, sequence, acknowledgement, payload, flags, SACK's left edge (0: none).


def _handshake() -> npt.NDArray[np.int64]:
    first = START_NS - 2 * RTT_NS
    return np.array(
        [
            (first, 0, -1, -1, 0, 0x02, 0),
            (first + RTT_NS, 1, -1, 0, 0, 0x12, 0),
            (first + RTT_NS + 1000, 0, 0, 0, 0, 0x10, 0),
        ],
        np.int64,
    )


def _chunk(
    number: npt.NDArray[np.int64], random: np.random.Generator, in_flight: int
) -> npt.NDArray[np.int64]:
    """Segments, what acknowledges them, and retransmissions."""
    time = START_NS + number * INTERVAL_NS
    zero = np.zeros_like(number)
    data = np.stack([time, zero, number * PAYLOAD, zero, zero + PAYLOAD, zero + 0x10, zero], axis=1)
    # Losses so far apart that each is mended before the next, and not where chunks meet.
    candidates = number[random.random(len(number)) < 2 * LOSS]
    keep: list[int] = []
    for each in candidates.tolist():
        apart = not keep or each - keep[-1] > 4 * in_flight
        if apart and number[0] < each < number[-1] - 4 * in_flight:
            keep.append(each)
    lost = np.array(keep, np.int64)
    mended = lost + in_flight + 4
    again = np.stack(
        [
            START_NS + mended * INTERVAL_NS + 300,
            np.zeros_like(lost),
            lost * PAYLOAD,
            np.zeros_like(lost),
            np.zeros_like(lost) + PAYLOAD,
            np.zeros_like(lost) + 0x10,
            np.zeros_like(lost),
        ],
        axis=1,
    )
    odd = number[1::2]
    acknowledged = odd + 1
    sack = np.zeros_like(odd)
    for hole, until in zip(lost.tolist(), (mended + in_flight).tolist(), strict=True):
        begin, end = np.searchsorted(odd, [hole, until - in_flight])
        acknowledged[begin:end] = hole
        sack[begin:end] = (hole + 1) * PAYLOAD
    jitter = random.integers(0, 2_000, len(odd))
    answers = np.stack(
        [
            START_NS + odd * INTERVAL_NS + RTT_NS + jitter,
            np.ones_like(odd),
            np.zeros_like(odd),
            acknowledged * PAYLOAD,
            np.zeros_like(odd),
            np.zeros_like(odd) + 0x10,
            sack,
        ],
        axis=1,
    )
    return np.concatenate([data, again, answers])


_RECORD = np.dtype(
    [
        ("seconds", "<u4"),
        ("nanoseconds", "<u4"),
        ("captured", "<u4"),
        ("length", "<u4"),
        ("macs", "V12"),
        ("ethertype", ">u2"),
        ("version", "u1"),
        ("service", "u1"),
        ("total", ">u2"),
        ("identification", ">u2"),
        ("fragment", ">u2"),
        ("ttl", "u1"),
        ("protocol", "u1"),
        ("ip_checksum", ">u2"),
        ("source", ">u4"),
        ("destination", ">u4"),
        ("source_port", ">u2"),
        ("destination_port", ">u2"),
        ("sequence", ">u4"),
        ("acknowledgement", ">u4"),
        ("offset", "u1"),
        ("flags", "u1"),
        ("window", ">u2"),
        ("checksum", ">u2"),
        ("urgent", ">u2"),
        ("padding", ">u2"),
        ("stamp_kind", ">u2"),
        ("tsval", ">u4"),
        ("tsecr", ">u4"),
        ("sack_padding", ">u2"),
        ("sack_kind", ">u2"),
        ("sack_left", ">u4"),
        ("sack_right", ">u4"),
    ]
)
_WITHOUT_SACK = _RECORD.itemsize - 12


def _records(rows: npt.NDArray[np.int64]) -> bytes:
    """Rows as the records of a pcap file."""
    record = np.zeros(len(rows), _RECORD)
    time, direction, sequence, acknowledgement, payload, flags, sack = rows.T
    with_sack = sack != 0
    captured = np.where(with_sack, SACK_HEADERS, HEADERS)
    record["seconds"], record["nanoseconds"] = np.divmod(time, 10**9)
    record["captured"] = captured
    record["length"] = captured + payload
    record["ethertype"] = 0x0800
    record["version"] = 0x45
    record["total"] = captured - 14 + payload
    record["identification"] = np.arange(len(rows)) % 65536
    record["fragment"] = 0x4000
    record["ttl"] = 64
    record["protocol"] = 6
    forward = direction == 0
    record["source"] = np.where(forward, 0x0A000001, 0x0A000002)
    record["destination"] = np.where(forward, 0x0A000002, 0x0A000001)
    record["source_port"] = np.where(forward, 40000, 5001)
    record["destination_port"] = np.where(forward, 5001, 40000)
    initial = np.where(forward, 1_000_000_000, 3_000_000_000)
    other = np.where(forward, 3_000_000_000, 1_000_000_000)
    record["sequence"] = (initial + sequence) % 2**32
    record["acknowledgement"] = np.where(flags & 0x10, (other + acknowledgement) % 2**32, 0)
    record["offset"] = np.where(with_sack, 11 << 4, 8 << 4)
    record["flags"] = flags
    record["window"] = 65535
    record["padding"] = 0x0101
    record["stamp_kind"] = 0x080A
    record["tsval"] = (time // 1_000_000) % 2**32
    record["tsecr"] = (time - RTT_NS) // 1_000_000 % 2**32
    record["sack_padding"] = 0x0101
    record["sack_kind"] = 0x050A
    record["sack_left"] = (other + sack) % 2**32
    record["sack_right"] = (other + sack + PAYLOAD * 1000) % 2**32
    # Records without SACK are 12 bytes shorter.
    raw = record.view(np.uint8).reshape(len(rows), _RECORD.itemsize)
    keep = np.ones(raw.shape, bool)
    keep[~with_sack, _WITHOUT_SACK:] = False
    return raw[keep].tobytes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--packets", type=int, default=5_000_000)
    arguments = parser.parse_args()
    print(write(arguments.path, arguments.packets), "packets")


if __name__ == "__main__":
    main()
