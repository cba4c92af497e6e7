# SPDX-License-Identifier: Apache-2.0
"""Tests of TCP over modems: nagi-sdr between two namespaces."""

from __future__ import annotations

import hashlib
import json
import pwd
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from emulated import lay_wire
from nagi.plan.air_time import load_air_time
from nagi_contracts.paths import executable
from running_daemon import RunningDaemon

NAGI_SDR = executable("nagi-sdr")
pytestmark = [
    pytest.mark.radio,
    pytest.mark.realtime,
    pytest.mark.skipif(not NAGI_SDR.is_file(), reason="needs nagi-sdr: `make sdr` installs it"),
]
SAMPLE_RATE = 2_000_000
SHAPE = ("ofdm", "qpsk", SAMPLE_RATE, "none")
_SEND = """
import socket, sys
s = socket.create_connection(("10.0.0.2", 9000))
s.sendall(open(sys.argv[1], "rb").read())
s.shutdown(socket.SHUT_WR)
s.recv(1)
"""
_RECEIVE = """
import hashlib, socket
listening = socket.create_server(("10.0.0.2", 9000))
print("ready", flush=True)
s, _ = listening.accept()
seen = hashlib.sha256()
while data := s.recv(1 << 16):
    seen.update(data)
print(seen.hexdigest(), flush=True)
"""


def configuration(directory: Path, by: str, snr_db: float, **more: Any) -> Path:
    """Write a configuration with 2 Mb/s and 20 ms in both directions, and return its path."""
    direction = {
        "rate_bps": load_air_time().compute_rate_bps(*SHAPE),
        "overhead_bytes": load_air_time().compute_overhead_bytes(*SHAPE),
        "delay_ns": 20_000_000,
        "queue": {"packets": 50},
        "loss": {"model": "radio"},
        **more,
    }
    channel = {"snr_db": snr_db}
    radio = {
        "by": by, "modem": "ofdm", "modulation": "qpsk", "sample_rate_hz": SAMPLE_RATE,
        "code_rate": "none", "forward": channel, "backward": channel,
    }  # fmt: skip
    ends = {"name": "radio", "id": 1, "a": "e0", "b": "e1"}
    document = {
        "schema_version": 1,
        "seed": 2008,
        "account": str(directory / "links.json"),
        "control_socket": str(directory / "sock"),
        "links": [{**ends, "forward": direction, "backward": direction, "radio": radio}],
    }
    path = directory / "radio.json"
    path.write_text(json.dumps(document))
    return path


SDR_PROCESS = "^/usr/bin/python3 .*nagi-sdr run"  # the older one is nagi-sdr, the other its keeper


class Sdr(RunningDaemon):
    """A nagi-sdr in the middle of the wire."""

    def __init__(self, wire: Any, config: Path) -> None:
        self._account = config.with_name("links.json")
        super().__init__(wire, str(NAGI_SDR), config)

    def children(self) -> list[tuple[int, str]]:
        """Return nagi-link, stations and channel, in this order: pid and command line."""
        shown = self.wire.run("middle", "ps", "-e", "-o", "pid=,ppid=,args=")
        found = [
            (int(line.split()[0]), line)
            for line in shown.splitlines()
            if "nagi-link run" in line or "gnuradio.nagi.stations" in line
        ]
        return sorted(found, key=lambda child: "gnuradio.nagi.stations" in child[1])

    def stop(self) -> dict[str, Any]:
        """Stop nagi-sdr and return the account of the link."""
        self.wire.run("middle", "pkill", "-TERM", "-o", "-f", SDR_PROCESS)
        assert self.process.wait(15) == 0
        link: dict[str, Any] = json.loads(self._account.read_text())["links"][0]
        return link


@pytest.fixture
def wire(namespaces):
    lay_wire(namespaces)
    return namespaces


def transfer(wire, directory, size: int) -> bool:
    """Transfer a file, and return whether it arrives unchanged."""
    content = random.Random(size).randbytes(size)
    file = directory / "content"
    file.write_bytes(content)
    receiver = wire.start("right", sys.executable, "-c", _RECEIVE)
    assert receiver.stdout.readline() == "ready\n"
    wire.run("left", sys.executable, "-c", _SEND, str(file))
    return receiver.communicate(timeout=10)[0].strip() == hashlib.sha256(content).hexdigest()


def check_causes(direction: dict[str, Any]) -> None:
    """Assert that the account is complete for packets and transmissions."""
    packets, radio = direction["packets"], direction["transmissions"]
    causes = radio["not_detected"] + radio["header_errors"] + radio["payload_errors"]
    assert radio["sent"] == radio["received"] + causes
    assert packets["channel_losses"] == causes
    assert packets["offered"] == (
        packets["delivered"] + packets["queue_overflows"] + causes + packets["held"]
    )
    assert radio["undetected_errors"] == 0


def check_lossy(link: dict[str, Any]) -> None:
    for direction in ("forward", "backward"):
        check_causes(link[direction])
    assert link["forward"]["packets"]["channel_losses"] > 0


both_radios = pytest.mark.parametrize("by", ["simulated", "virtual"])


@both_radios
def test_tcp_crosses_a_lossy_radio_bit_exact(wire, tmp_path, by):
    with Sdr(wire, configuration(tmp_path, by, 12.0)) as sdr:
        assert transfer(wire, tmp_path, 300_000)
        link = sdr.stop()
    check_lossy(link)


@pytest.mark.slow
@both_radios
def test_five_megabytes_cross_a_lossy_radio_bit_exact(wire, tmp_path, by):
    with Sdr(wire, configuration(tmp_path, by, 13.0)) as sdr:
        assert transfer(wire, tmp_path, 5_000_000)
        link = sdr.stop()
    check_lossy(link)


def test_arq_hides_losses_from_tcp(wire, tmp_path):
    arq = {"retries": 5, "feedback_ns": 15_000_000}
    with Sdr(wire, configuration(tmp_path, "simulated", 12.0, arq=arq)) as sdr:
        assert transfer(wire, tmp_path, 300_000)
        link = sdr.stop()
    there = link["forward"]
    assert there["transmissions"]["sent"] > there["packets"]["offered"]
    assert there["packets"]["channel_losses"] == 0


def test_stopped_and_started_again(wire, tmp_path):
    config = configuration(tmp_path, "simulated", 30.0)
    for _ in range(2):
        with Sdr(wire, config) as sdr:
            assert transfer(wire, tmp_path, 20_000)
            sdr.stop()


@pytest.mark.parametrize("user", [None, "nobody"])
def test_only_nagi_link_and_its_keeper_have_capabilities(wire, tmp_path, user):
    """Nagi-link changes to the user, and still ends in order when nagi-sdr is terminated."""
    config = configuration(tmp_path, "virtual", 30.0)
    if user is not None:
        config.write_text(json.dumps(json.loads(config.read_text()) | {"user": user}))
    with Sdr(wire, config) as sdr:
        assert transfer(wire, tmp_path, 20_000)
        link, *radio = (pid for pid, _ in sdr.children())
        own, keeper = wire.run("middle", "pgrep", "-f", SDR_PROCESS).split()
        for pid in [own, *map(str, radio)]:
            assert states(wire, pid)["CapEff"] == 0
        net_admin_and_ipc_lock, kill = 1 << 12 | 1 << 14, 1 << 5
        assert states(wire, link)["CapEff"] == net_admin_and_ipc_lock
        assert states(wire, link)["Uid"] == pwd.getpwnam(user or "root").pw_uid
        assert states(wire, keeper)["CapEff"] == states(wire, keeper)["CapPrm"] == kill
        assert sdr.stop()["forward"]["packets"]["delivered"] > 0
        assert sdr.children() == []


def states(wire, pid: int | str) -> dict[str, int]:
    """Return the sets of capabilities and the user that all threads of a process have."""
    shown = wire.run("middle", "sh", "-c", f"cat /proc/{pid}/task/*/status")
    found = {}
    for name, base in (("CapEff", 16), ("CapPrm", 16), ("Uid", 10)):
        (value,) = set(re.findall(rf"{name}:\s*(\w+)", shown))
        found[name] = int(value, base)
    return found


@pytest.mark.parametrize("which", ["-o", "-n"], ids=["nagi-sdr", "keeper"])
def test_what_a_radio_needs_does_not_outlive_it(wire, tmp_path, which):
    with Sdr(wire, configuration(tmp_path, "virtual", 30.0)) as sdr:
        assert len(sdr.children()) == 4  # nagi-link, two stations, a channel
        wire.run("middle", "pkill", "-KILL", which, "-f", SDR_PROCESS)
        assert sdr.process.wait(10) != 0
        for _ in range(50):
            if not sdr.children():
                break
            wire.run("middle", "sleep", "0.1")
        assert sdr.children() == []


def test_without_its_channel_process_it_ends(wire, tmp_path):
    with Sdr(wire, configuration(tmp_path, "virtual", 30.0)) as sdr:
        *_, channel = (pid for pid, _ in sdr.children())
        wire.run("middle", "kill", "-KILL", str(channel))
        assert sdr.process.wait(15) == 1
        said = sdr.process.stdout.read()
        assert "channel of link radio was ended by SIGKILL" in said
        assert sdr.children() == []


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda link: link["radio"].update(modulation="256qam"), "links.0.radio.modulation"),
        (lambda link: link["radio"].update(power=3), 'links.0.radio: unknown key "power"'),
        (lambda link: link["forward"].update(loss={"model": "none"}), "links.0.forward.loss"),
        (lambda link: link["forward"].update(rate_bps=0), "rate_bps"),
        (lambda link: link.pop("radio"), "none has a radio; start nagi-link"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, spoil, said):
    config = configuration(tmp_path, "simulated", 30.0)
    document = json.loads(config.read_text())
    spoil(document["links"][0])
    config.write_text(json.dumps(document))
    done = subprocess.run(
        [str(NAGI_SDR), "check", str(config)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
