# SPDX-License-Identifier: Apache-2.0
"""Schemes as eBPF objects of this machine's kernel must react to losses as they are defined.

Each event of a loss must follow from its own figures, so it does not matter when packets come.
test_schemes.py tests windows over time, of modules in virtual time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from emulated import Emulator, lay_wire
from held_schemes import PYTHON, hold_scheme, make_kernel_name
from kernels import needs_our_schemes
from nagi.plan.schemes import read_schemes
from tcp_path import estimate_window

pytestmark = needs_our_schemes
SEGMENTS = 600
LOST = range(60, SEGMENTS, 110)
OURS = [name for name, scheme in read_schemes().items() if scheme.object]
SEND = """
import socket, sys
name, total = sys.argv[1], int(sys.argv[2])
with socket.socket() as connection:
    connection.setsockopt(socket.IPPROTO_TCP, 13, name.encode())  # TCP_CONGESTION
    connection.connect(("10.0.0.2", 9000))
    connection.sendall(bytes(total))
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)  # the receiver has all
"""
RECEIVE = """
import socket
listener = socket.create_server(("10.0.0.2", 9000))
print("listens", flush=True)
with listener.accept()[0] as connection:
    while connection.recv(1 << 20):
        pass
"""


@contextmanager
def receive(namespaces: Any) -> Iterator[None]:
    """Have a receiver listen; it ends with the connection."""
    process = namespaces.start("right", PYTHON, "-c", RECEIVE)
    assert process.stdout.readline() == "listens\n"
    yield
    assert process.wait(60) == 0


def check_reaction(scheme: str, event: dict[str, Any]) -> None:
    """Check what a scheme did after three duplicate ACKs against its definition."""
    before = (event["cwnd_before"], event["ssthresh_before"])
    after = (event["cwnd"], event["ssthresh"])
    half = max(min(event["cwnd_before"], event["flight"]) // 2, 2)
    if event["verdict"] != "congestion":
        assert scheme in ("westwoodvt", "newjersey")
        assert after == before
    elif scheme.startswith("westwood"):
        estimate = estimate_window(event)
        assert after == (min(estimate, event["cwnd_before"]), estimate)
    elif scheme == "vegas":
        assert after == (max(event["cwnd_before"] * 3 // 4, 2), 2)
    else:
        assert after == (1 if scheme == "tahoe" else half, half)


@pytest.mark.parametrize("scheme", OURS)
def test_reactions_follow_from_what_the_scheme_knew(namespaces, tmp_path, scheme):
    """Check every fast retransmit. The receiver is the kernel's own, so TCP-Real is Reno."""
    lay_wire(namespaces)
    settings = [f"{key}={value}" for key, value in read_schemes()["tahoe"].sysctls.items()]
    for name in ("left", "right"):
        namespaces.run(name, "sysctl", "-qw", *settings)
    name, events = make_kernel_name(scheme), tmp_path / "events"
    loss = {"model": "trace", "lost": list(LOST), "length": 1_000_000}
    with (
        hold_scheme(str(read_schemes()[scheme].object), name, "--events", str(events)) as holder,
        Emulator(namespaces, tmp_path, forward={"delay_ns": 5_000_000, "loss": loss}),
        receive(namespaces),
    ):
        namespaces.run("left", PYTHON, "-c", SEND, name, str(SEGMENTS * 1448))
        holder.terminate()
        holder.wait(5)
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    reactions = [line for line in lines if line["event"] == "three_duplicates"]
    assert reactions
    for event in reactions:
        check_reaction(scheme, event)
    assert [line["event"] for line in lines].count("fallback") == (scheme == "real")
