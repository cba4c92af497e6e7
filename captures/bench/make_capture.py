# SPDX-License-Identifier: Apache-2.0
"""Make captures for the benchmark: one long TCP connection, or many short connections.

A sender sends 100,000 segments of 1,448 bytes per second. Every second segment is acknowledged.
Timestamps are in milliseconds. 0.1 % of the segments are lost after the capture point, which is at
the sender. After a loss, acknowledgements repeat the same number, with SACK blocks, for one round
trip of 2 ms, and the segment is retransmitted once. Format: pcap, nanoseconds, Ethernet, each
packet truncated to its headers or (write_bulk) complete.
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
CHUNK = 100_000  # number of segments that are computed at once
START_NS = 1_700_000_000_000_000_000


def write(path: Path, packets: int, seed: int = 1, *, whole: bool = False) -> int:
    """Write a capture of one long connection, and return the exact number of packets.

    Args:
        path: The file to write.
        packets: The approximate number of packets.
        seed: The seed of the random losses and times.
        whole: Whether packets include their payload.
    """
    random = np.random.default_rng(seed)
    segments = packets * 2 // 3
    in_flight = RTT_NS // INTERVAL_NS
    written = 0
    tail: npt.NDArray[np.int64] = np.empty((0, 7), np.int64)
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        file.write(_records(_handshake()))
        written += 3
        for first in range(0, segments, CHUNK):
            numbers = np.arange(first, min(first + CHUNK, segments), dtype=np.int64)
            rows = np.concatenate([tail, _make_rows(numbers, random, in_flight)])
            rows = rows[np.argsort(rows[:, 0], kind="stable")]
            # Packets that are sent after the chunk's end are written with the next chunk.
            is_ready = rows[:, 0] < START_NS + (numbers[-1] + 1) * INTERVAL_NS
            file.write(_records(rows[is_ready], whole=whole))
            written += int(is_ready.sum())
            tail = rows[~is_ready]
        file.write(_records(tail, whole=whole))
        written += len(tail)
    return written


def write_connections(path: Path, connections: int, seed: int = 1) -> int:
    """Write a capture of short connections, and return the number of packets.

    200 connections begin per second. Each connection has 12 packets: handshake, a request, an
    answer of 3 segments, FINs.
    """
    random = np.random.default_rng(seed)
    answer = [
        (3, 1, 0, PAYLOAD, 0x10),
        (4, 1, PAYLOAD, PAYLOAD, 0x10),
        (5, 1, 2 * PAYLOAD, 300, 0x18),
    ]
    end = 2 * PAYLOAD + 300
    # Time (in half round trips), direction, sequence, acknowledgement, payload, flags.
    script = [
        (0, 0, -1, -1, 0, 0x02),
        (1, 1, -1, 0, 0, 0x12),
        (2, 0, 0, 0, 0, 0x10),
        (2, 0, 0, 0, 200, 0x18),
        (3, 1, 0, 200, 0, 0x10),
        *(
            (when, direction, sequence, 200, length, flags)
            for when, direction, sequence, length, flags in answer
        ),
        (6, 0, 200, end, 0, 0x10),
        (7, 0, 200, end, 0, 0x11),
        (8, 1, end, 201, 0, 0x11),
        (9, 0, 201, end + 1, 0, 0x10),
    ]
    packets = 0
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 128, 1))
        # Chunks of a second. Connections end before the next chunk begins.
        for first in range(0, connections, 200):
            number = np.arange(first, min(first + 200, connections), dtype=np.int64)
            begins = START_NS + first * 5_000_000 + random.integers(0, 500_000_000, len(number))
            rows = np.concatenate(
                [
                    np.stack(
                        [begins + when * RTT_NS // 2 + index * 1000]
                        + [np.full_like(number, value) for value in values]
                        + [np.zeros_like(number), number],
                        axis=1,
                    )
                    for index, (when, *values) in enumerate(script)
                ]
            )
            rows = rows[np.argsort(rows[:, 0], kind="stable")]
            file.write(_records(rows[:, :7], rows[:, 7]))
            packets += len(rows)
    return packets


def write_bulk(path: Path, size: int) -> int:
    """Write a capture of one connection with complete packets, of about `size` bytes.

    Return the number of packets.
    """
    return write(path, size // 1000, whole=True)


# One row per packet: time, direction, sequence, acknowledgement, payload, flags, left edge of the
# SACK block (0: no SACK block).


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


def _make_rows(
    numbers: npt.NDArray[np.int64], random: np.random.Generator, in_flight: int
) -> npt.NDArray[np.int64]:
    """Return the rows of segments, then those of retransmissions and of acknowledgements.

    Args:
        numbers: The numbers of the segments, without gaps.
        random: The source of random losses and times.
        in_flight: The number of segments that are sent in a round trip.
    """
    time = START_NS + numbers * INTERVAL_NS
    zero = np.zeros_like(numbers)
    data = np.stack(
        [time, zero, numbers * PAYLOAD, zero, zero + PAYLOAD, zero + 0x10, zero], axis=1
    )
    # Select losses that are so far apart that each is repaired before the next one, and that are
    # not near the ends of the chunk.
    candidates = numbers[random.random(len(numbers)) < 2 * LOSS]
    lost_numbers: list[int] = []
    for candidate in candidates.tolist():
        is_apart = not lost_numbers or candidate - lost_numbers[-1] > 4 * in_flight
        if is_apart and numbers[0] < candidate < numbers[-1] - 4 * in_flight:
            lost_numbers.append(candidate)
    lost = np.array(lost_numbers, np.int64)
    repaired = lost + in_flight + 4  # number of the segment that is sent just before the repair
    retransmissions = np.stack(
        [
            START_NS + repaired * INTERVAL_NS + 300,
            np.zeros_like(lost),
            lost * PAYLOAD,
            np.zeros_like(lost),
            np.zeros_like(lost) + PAYLOAD,
            np.zeros_like(lost) + 0x10,
            np.zeros_like(lost),
        ],
        axis=1,
    )
    odd = numbers[1::2]  # segments whose arrival causes an acknowledgement
    acknowledged = odd + 1
    sack = np.zeros_like(odd)
    for hole, last in zip(lost.tolist(), repaired.tolist(), strict=True):
        begin, end = np.searchsorted(odd, [hole, last])
        acknowledged[begin:end] = hole
        sack[begin:end] = (hole + 1) * PAYLOAD
    jitter = random.integers(0, 2_000, len(odd))
    acknowledgements = np.stack(
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
    return np.concatenate([data, retransmissions, acknowledgements])


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


def _records(
    rows: npt.NDArray[np.int64],
    connection: npt.NDArray[np.int64] | None = None,
    *,
    whole: bool = False,
) -> bytes:
    """Return rows as records of a pcap file.

    Args:
        rows: The rows.
        connection: For each row, the number of the connection, which decides the client's address
            and port. None stands for the long connection.
        whole: Whether packets include their payload.
    """
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
    if connection is not None:
        client = 0x0A000001 + (connection // 50_000 << 8)
        port = 10_000 + connection % 50_000
        record["source"] = np.where(forward, client, 0x0A000002)
        record["destination"] = np.where(forward, 0x0A000002, client)
        record["source_port"] = np.where(forward, port, 5001)
        record["destination_port"] = np.where(forward, 5001, port)
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
    if whole:
        record["captured"] += payload.astype(np.uint32)
        raw = np.concatenate([raw, np.zeros((len(rows), PAYLOAD), np.uint8)], axis=1)
        keep = np.concatenate(
            [keep, np.broadcast_to((payload != 0)[:, None], (len(rows), PAYLOAD))], 1
        )
    return raw[keep].tobytes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--packets", type=int, default=5_000_000)
    arguments = parser.parse_args()
    print(write(arguments.path, arguments.packets), "packets")


if __name__ == "__main__":
    main()
