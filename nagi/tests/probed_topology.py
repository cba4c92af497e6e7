# SPDX-License-Identifier: Apache-2.0
"""Define a topology whose links have smaller and smaller MTUs, and its expected probes.

A router and a switch are in a row. probe.py must find both of them.
"""

from __future__ import annotations

from pathlib import Path

PROBE = Path(__file__).with_name("probe.py")
SIZES = (1500, 1400, 1301, 1300)
# The kernel routes at R, in front of the switch N: both must send the same ICMP errors.
SPEC = f"""\
schema_version: 1
name: icmp
title: Probes through a switch
seed: 6
ip_version: $ip
nodes: {{S: host, R: router, N: switch, D: host}}
links:
  near: {{between: [S, R], rate: 100 Mb/s, delay: 5 ms, queue: 100 packets}}
  middle: {{between: [R, N], rate: 100 Mb/s, delay: 5 ms, queue: 100 packets, mtu: 1400 bytes}}
  far:
    between: [N, D]
    rate: 10 Mb/s
    delay: 5 ms
    queue: 60 packets
    mtu: 1300 bytes
    forward: {{shaped_by: switch}}
flows:
  probe:
    from: S
    to: D
    scheme: cubic
    payload: 1208 bytes
    traffic: command
    files: [{PROBE}]
    client: [python3, {PROBE.name}, '{{receiver}}', '{{port}}', {", ".join(map(str, SIZES))}]
duration: 5 s
matrix: {{ip: [4, 6]}}
report: {{x: ip, series: ip}}
"""
ADDRESSES = {
    "4": ["198.18.0.2", "198.18.1.2", "198.18.2.2"],
    "6": ["fd6e:6167:6900::2", "fd6e:6167:6900:1::2", "fd6e:6167:6900:2::2"],
}
# Types and codes: time exceeded, port unreachable, too big.
EXCEEDED, UNREACHABLE = {"4": "11 0", "6": "3 0"}, {"4": "3 3", "6": "1 4"}
TOO_BIG = {"4": "3 4", "6": "2 0"}


def expected(ip: str) -> list[str]:
    """Return the output of probe.py for SIZES at host S."""
    router, switch, host = ADDRESSES[ip]
    return [
        f"1 {router} {EXCEEDED[ip]}",
        f"2 {switch} {EXCEEDED[ip]}",
        f"3 {host} {UNREACHABLE[ip]}",
        f"mtu {router} {TOO_BIG[ip]} 1400",
        f"mtu {switch} {TOO_BIG[ip]} 1300",
        f"mtu {switch} {TOO_BIG[ip]} 1300",
        f"mtu {host} {UNREACHABLE[ip]} 0",
    ]
