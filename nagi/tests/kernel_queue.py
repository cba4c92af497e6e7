# SPDX-License-Identifier: Apache-2.0
"""Send frames through a queue discipline of a guest's kernel, and record their arrivals.

`kernel_queue.py JOB` runs in a guest of the virtual lab, as its first process. It sends the frames
at given instants and writes when each frame arrived.

job.json   qdisc: arguments of `tc qdisc add ... handle 10:`, or a kind alone; rate_bps: of the
           token bucket above it; full: bytes of the longest frame; drain_ns: how long to wait for
           the last packets; packets: [instant in ns, bytes of the frame, flow, ECN field]
seen.json  start_ns: what the clock said at instant 0; packets: [number, instant in ns, ECN field]
           of each frame that arrived

The bucket takes a packet out of the discipline as soon as the one before has left, and then holds
it until it has its tokens. Two frames of full size empty the bucket: from then on packets
leave the discipline as they would be taken by a link of that rate that is always busy.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
import struct
import subprocess
import sys
import time
import traceback
from pathlib import Path

ALL, IPV4, UDP = 3, 0x0800, 17
CLOCK, ABSOLUTE, PR_SET_TIMERSLACK = time.CLOCK_MONOTONIC, 1, 29
HEADERS = 14 + 20 + 8
POWER_OFF = 0x4321FEDC
libc = ctypes.CDLL(None, use_errno=True)


class Instant(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def sleep_until(ns: int) -> None:
    instant = Instant(*divmod(ns, 10**9))
    libc.clock_nanosleep(CLOCK, ABSOLUTE, ctypes.byref(instant), None)


def frame(number: int, size: int, flow: int, ecn: int, ends: bytes) -> bytes:
    """Return an Ethernet frame of `size` bytes with a UDP datagram, its number in the payload."""
    length = size - 14
    addresses = socket.inet_aton("10.0.0.1") + socket.inet_aton("10.0.0.2")
    ip = struct.pack("!BBHHHBBH", 0x45, ecn, length, number & 0xFFFF, 0, 64, UDP, 0) + addresses
    udp = struct.pack("!HHHH", 1000 + flow, 9, length - 20, 0)
    return (ends + struct.pack("!H", IPV4) + ip + udp + struct.pack("!I", number)).ljust(
        size, b"\0"
    )


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def add_by_default(kind: str) -> None:
    """Add the discipline `kind` with its defaults under the bucket.

    This function does not use tc, because tc may not support the discipline.
    """
    create, attribute = 0x1 | 0x4 | 0x200 | 0x400, kind.encode() + b"\0"
    attributes = struct.pack("HH", 4 + len(attribute), 1) + attribute
    attributes += b"\0" * (-len(attributes) % 4)
    queue = struct.pack("BxxxiIII", 0, socket.if_nametoindex("out"), 0x100000, 0x10001, 0)
    header = struct.pack("IHHII", 16 + len(queue) + len(attributes), 36, create, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as route:
        route.send(header + queue + attributes)
        (error,) = struct.unpack_from("i", route.recv(4096), 16)
    if error:
        raise OSError(-error, f"cannot add {kind}")


def main(job: Path) -> None:
    for kind, target in (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")):
        # mount(8) has the set-user-ID bit, by which it would become whoever /usr belongs to here.
        if libc.mount(kind.encode(), target.encode(), kind.encode(), 0, None) != 0:
            raise OSError(ctypes.get_errno(), f"cannot mount {kind}")
    # No packets of the kernel's own in the queue.
    for which in ("all", "default"):
        Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6").write_text("1")
    libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    asked = json.loads(job.read_text())
    run("ip", "link", "add", "out", "numtxqueues", "1", "type", "veth", "peer", "name", "in")
    for end in ("out", "in"):
        run("ip", "link", "set", "dev", end, "up")
    bucket = (
        "rate",
        f"{asked['rate_bps']}bit",
        "burst",
        str(2 * asked["full"]),
        "limit",
        "100000000",
    )
    run("tc", "qdisc", "add", "dev", "out", "root", "handle", "1:", "tbf", *bucket)
    if len(asked["qdisc"]) == 1:
        add_by_default(*asked["qdisc"])
    else:
        run("tc", "qdisc", "add", "dev", "out", "parent", "1:1", "handle", "10:", *asked["qdisc"])

    receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))
    receiver.setsockopt(socket.SOL_SOCKET, 33, 1 << 30)  # SO_RCVBUFFORCE
    receiver.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
    receiver.bind(("in", ALL))
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sender.setsockopt(socket.SOL_SOCKET, 32, 1 << 30)  # SO_SNDBUFFORCE
    sender.bind(("out", 0))
    ends = b"\2\0\0\0\0\2\2\0\0\0\0\1"

    start = time.monotonic_ns() + 10**9
    to_realtime = time.time_ns() - time.monotonic_ns()
    sleep_until(start + asked["packets"][0][0])
    for _ in range(2):
        sender.send(frame(0xFFFFFFFF, asked["full"], 0, 0, ends))
    for number, (at, size, flow, ecn) in enumerate(asked["packets"]):
        sleep_until(start + at)
        try:
            sender.send(frame(number, size, flow, ecn, ends))
        except OSError as error:
            if error.errno != errno.ENOBUFS:  # the discipline has dropped it
                raise
    sleep_until(time.monotonic_ns() + asked["drain_ns"])

    receiver.setblocking(False)
    seen = []
    while True:
        try:
            data, extra, _, _ = receiver.recvmsg(2048, 256)
        except BlockingIOError:
            break
        if len(data) < HEADERS + 4 or data[12:14] != b"\x08\x00":
            continue
        (number,) = struct.unpack_from("!I", data, HEADERS)
        seconds, ns = struct.unpack("ll", extra[0][2])
        if number != 0xFFFFFFFF:
            seen.append((number, seconds * 10**9 + ns - to_realtime - start, data[15] & 3))
    job.with_name("seen.json").write_text(json.dumps({"start_ns": start, "packets": seen}))
    run("tc", "-s", "qdisc", "show", "dev", "out")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.sync()
        libc.reboot(POWER_OFF)
