# SPDX-License-Identifier: Apache-2.0
"""Print who answers UDP datagrams with which ICMP error, as traceroute(8) and tracepath(8) do.

The output has one line per error.

    probe.py ADDRESS PORT BYTES...

    TTL ADDRESS TYPE CODE          of datagrams with a TTL (hop limit) of 1, 2, ... to the address
    mtu ADDRESS TYPE CODE MTU      of IP packets of so many bytes
"""

from __future__ import annotations

import socket
import struct
import sys
import time

# <linux/in.h>, <linux/in6.h>, <linux/errqueue.h>
IP_RECVERR, IP_MTU_DISCOVER, IPV6_RECVERR, IPV6_MTU_DISCOVER = 11, 10, 25, 23
PROBE = 3  # do not fragment, whatever is known of the path
ERROR = struct.Struct("=IBBBBII")  # struct sock_extended_err
TIMEOUT_S = 20.0  # where nobody answers, the test has failed
MAX_HOPS = 8


def error_after(address: str, port: int, hops: int, size: int) -> tuple[str, int, int, int] | None:
    """Send a datagram and return who answered, with the ICMP type, code and MTU.

    Returns None if nobody answered.
    """
    is_six = ":" in address
    with socket.socket(socket.AF_INET6 if is_six else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        if is_six:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, hops)
            probe.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVERR, 1)
            probe.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, PROBE)
        else:
            probe.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, hops)
            probe.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
            probe.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, PROBE)
        probe.connect((address, port))
        probe.send(bytes(size))
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                _, controls, _, _ = probe.recvmsg(0, 512, socket.MSG_ERRQUEUE)
            except BlockingIOError:
                time.sleep(0.01)
                continue
            for _, _, data in controls:
                if len(data) < ERROR.size + 8:
                    continue
                _, _, kind, code, _, info, _ = ERROR.unpack_from(data)
                place = ERROR.size + (8 if is_six else 4)  # in struct sockaddr
                family = socket.AF_INET6 if is_six else socket.AF_INET
                who = data[place : place + (16 if is_six else 4)]
                return socket.inet_ntop(family, who), kind, code, info
    return None


def main() -> None:
    address, port = sys.argv[1], int(sys.argv[2])
    headers = 48 if ":" in address else 28
    for hops in range(1, MAX_HOPS + 1):
        found = error_after(address, port, hops, 40)
        print(hops, *(found[:3] if found else ["nobody"]), flush=True)
        if found and found[0] == address:
            break
    for size in map(int, sys.argv[3:]):
        found = error_after(address, port, MAX_HOPS, size - headers)
        print("mtu", *(found or ["nobody"]), flush=True)


if __name__ == "__main__":
    main()
