# SPDX-License-Identifier: Apache-2.0
"""Tests of the simulated gateware of a board, with real interfaces at its ports.

The kernel's ARP, ICMP and UDP and nagi's client reach the control plane, packets cross the core,
and the core records them. Verilator runs the MACs, LiteEth's stack, Etherbone, the core and
LiteDRAM's controller with a model of the memory. Only the pins of a real board are missing.

Two network namespaces are used: `ctl` is at port a, `far` at port b.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from nagi.records import packets
from nagi_contracts import paths
from nagi_contracts.links import Links
from nagi_contracts.paths import executable
from nagi_contracts.plan import RunPlan

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root"),
    pytest.mark.timeout(1800),
]
FPGA = Path(__file__).resolve().parents[1]
BUILD = FPGA.parents[1] / "build" / "fpga" / "simulated"
ADDRESS, NEAR, FAR = "192.168.251.50", "192.168.251.1", "192.168.251.2"
# Timeouts are long because the simulated board is much slower than real time.
CLIENT = """
import json, sys, time
from nagi_fpga.board import Board
from nagi_fpga.etherbone import Etherbone
from nagi_fpga.uart import Uart
def open_board(where):
    if where.startswith("/"):
        return Board(Uart(where, timeout_s=20, attempts=2))
    return Board(Etherbone(where, timeout_s=5, attempts=6))
"""


class Simulation:
    """A running simulated board and its namespaces."""

    def __init__(self, process: subprocess.Popen[str], uart: str, build_id: int) -> None:
        self.process, self.uart, self.build_id = process, uart, build_id

    def run(self, namespace: str, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["ip", "netns", "exec", namespace, *command],
            cwd=FPGA,
            capture_output=True,
            text=True,
            check=False,
        )

    def run_client(self, program: str, namespace: str = "nagi-fpga-ctl") -> object:
        """Run a client in a separate process and return its output, parsed as JSON."""
        process = self.run(namespace, sys.executable, "-c", CLIENT + program)
        assert process.returncode == 0, process.stderr[-1500:]
        return json.loads(process.stdout)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def simulation() -> Iterator[Simulation]:
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "boards.simulate", str(BUILD)],
        cwd=FPGA,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-2000:]
    program = BUILD / "nagi-board-simulation"
    number = int((BUILD / "build-id").read_text(), 16)
    names = ("nagi-fpga-ctl", "nagi-fpga-far")
    for name in names:
        subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
        ip("netns", "add", name)
    board = subprocess.Popen(
        ["ip", "netns", "exec", names[0], program, "port-a", "port-b"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert board.stdout is not None
    uart = board.stdout.readline().strip()
    ip("-n", names[0], "link", "set", "port-b", "netns", names[1])
    for name, interface, address in ((names[0], "port-a", NEAR), (names[1], "port-b", FAR)):
        in_it = ["ip", "netns", "exec", name]
        off = [*in_it, "sysctl", "-qw", f"net.ipv6.conf.{interface}.disable_ipv6=1"]
        subprocess.run(off, check=True)
        ip("-n", name, "address", "add", f"{address}/24", "dev", interface)
        ip("-n", name, "link", "set", interface, "up")
    try:
        yield Simulation(board, uart, number)
    finally:
        board.send_signal(signal.SIGTERM)
        said = board.stdout.read()
        board.wait()
        print(said)
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)
        assert board.returncode == 0
        assert "0 bad frames" in said, said


def test_the_kernel_finds_it_by_arp_and_ping(simulation: Simulation) -> None:
    process = simulation.run("nagi-fpga-ctl", "ping", "-c", "2", "-W", "20", ADDRESS)
    assert process.returncode == 0, process.stdout


def test_the_client_reaches_its_registers_over_udp(simulation: Simulation) -> None:
    found = simulation.run_client(
        f"""
board = open_board("{ADDRESS}")
identity = board.identify()
board.check_registers()
board.wait_for_memory()
print(json.dumps([identity.build_id, identity.memory_bytes, identity.max_packets]))
"""
    )
    assert found == [simulation.build_id, 4 << 20, 1024]


def test_and_over_the_serial_line(simulation: Simulation) -> None:
    found = simulation.run_client(
        f"""
board = open_board("{simulation.uart}")
board.check_registers()
print(json.dumps(board.identify().build_id))
"""
    )
    assert found == simulation.build_id


def test_a_phy_that_runs_at_its_speed_is_seen(simulation: Simulation) -> None:
    found = simulation.run_client(
        f"""
board = open_board("{ADDRESS}")
deadline = time.monotonic() + 60
while time.monotonic() < deadline:  # it is measured for a millisecond of the board
    ports = board.read_ports()
    if all(port.clock_hz for port in ports):
        break
print(json.dumps([port.speed for port in board.read_ports()]))
"""
    )
    assert found == ["1 Gb/s", "1 Gb/s"]


def test_packets_cross_the_core_as_configured(simulation: Simulation) -> None:
    """Pings over 100 Mb/s and 50 us per direction have records with the link's instants."""
    direction = {"rate_bps": 100_000_000, "delay_ns": 50_000, "queue": {"packets": 20}}
    simulation.run_client(
        f"""
board = open_board("{ADDRESS}")
direction = {direction!r}
board.start(1, 7, {{"forward": direction, "backward": direction}}, 0)
print(1)
"""
    )
    # The link's packets are not for the board, and the board answers none of them.
    process = simulation.run("nagi-fpga-ctl", "ping", "-c", "5", "-s", "972", "-W", "20", FAR)
    assert " 0% packet loss" in process.stdout, process.stdout
    records, counters, ports = simulation.run_client(
        f"""
from dataclasses import asdict
board = open_board("{ADDRESS}")
board._records_taken = board._read_board_register("records_taken")
records = [asdict(each) for each in board.take_records()]
counters = board.read_counters()
ports = [asdict(each) for each in board.read_ports()]
board.stop()
print(json.dumps([records, counters, ports]))
"""
    )
    pings = [each for each in records if each["bytes"] == 1000]
    assert [each["is_backward"] for each in pings] == [False, True] * 5
    assert all(each["fate"] == 0 and each["late_ns"] == 0 for each in pings)
    # 1,000 bytes at 100 Mb/s are 80 us.
    assert all(each["left_ns"] - each["arrived_ns"] == 80_000 + 50_000 for each in pings)
    assert all(each["arrived_ns"] % 8 == pings[0]["arrived_ns"] % 8 for each in pings)
    for name in ("forward", "backward"):
        mine = [each for each in records if each["is_backward"] == (name == "backward")]
        assert counters[name]["offered"] == counters[name]["delivered"] == len(mine)
        assert [each["index"] for each in mine] == list(range(len(mine)))
        assert counters[name]["lost_records"] == counters[name]["memory_overflows"] == 0
    assert all(port["overflows"] == port["underruns"] == 0 for port in ports)


def test_losses_are_those_of_the_model(simulation: Simulation, tmp_path: Path) -> None:
    """Compare the losses among 40 packets with the model of the same seed and link."""
    direction = {"rate_bps": 1_000_000_000, "loss": {"model": "bernoulli", "probability": 0.3}}
    simulation.run_client(
        f"""
import socket
board = open_board("{ADDRESS}")
board.start(3, 2026, {{"forward": {direction!r}, "backward": {{}}}}, 0)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(40):
    sender.sendto(b"x" * 200, ("{FAR}", 9))
    time.sleep(0.02)
print(1)
"""
    )
    found = simulation.run_client(
        f"""
board = open_board("{ADDRESS}")
board._records_taken = board._read_board_register("records_taken")
print(json.dumps([each.fate for each in board.take_records() if not each.is_backward]))
board.stop()
"""
    )
    assert isinstance(found, list) and len(found) >= 40
    expected = expected_losses(tmp_path, len(found), seed=2026, link=3)
    assert [fate == packets.CHANNEL_LOSS for fate in found] == expected
    assert any(expected) and not all(expected)


def expected_losses(directory: Path, count: int, seed: int, link: int) -> list[bool]:
    """Return which of `count` packets the C++ model loses, by nagi-link's replay."""
    arrivals = np.zeros(count, packets.RECORD)
    arrivals["arrived_ns"] = np.arange(count) * 1_000_000
    arrivals["index"] = np.arange(count)
    arrivals["bytes"] = 228
    configuration = {
        "schema_version": 1,
        "seed": seed,
        "links": [
            {
                "name": "l",
                "id": link,
                "a": "l.a",
                "b": "l.b",
                "forward": {
                    "rate_bps": 1_000_000_000,
                    "loss": {"model": "bernoulli", "probability": 0.3},
                },
                "backward": {},
            }
        ],
    }
    config, recorded, output = (directory / name for name in ("link.json", "packets", "replayed"))
    config.write_text(json.dumps(configuration))
    packets.write_records(arrivals, recorded)
    subprocess.run([executable("nagi-link"), "replay", config, recorded, output], check=True)
    return [bool(each) for each in packets.read_records(output)["fate"] == packets.CHANNEL_LOSS]


AGENT_RUN = """
import hashlib, json, subprocess, sys, time
from pathlib import Path
from nagi.backends.fpga.host import board_links
from nagi_agent.contracts import RunPlan
from nagi_fpga import loading
from nagi_fpga.etherbone import Etherbone
from nagi_fpga.kinds import KINDS, Kind
directory, build_id, far = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
KINDS["simulated"] = Kind(4 << 20, 1_000_000_000, "none", True)
loading.open_transport = lambda place: Etherbone(place.address, timeout_s=5, attempts=6)
board_links._DRAIN_S = 60
image = directory / "simulated"
image.mkdir()
(image / "nagi.bit").write_bytes(b"")
told = {"build_id": build_id, "sha256": hashlib.sha256(b"").hexdigest()}
(image / "image.json").write_text(json.dumps(told))
plan = RunPlan.from_json(json.loads((directory / "plan.json").read_text()))
assert board_links.find_problems([plan], str(directory)) == []
running = board_links.BoardLinks(str(directory), plan, time.time(), str(directory))
running.begin()
subprocess.run(["ping", "-f", "-c", "60", "-s", "472", "-w", "60", far], check=False)
running.check()
running.finish()
"""


def test_the_agent_s_records_are_those_of_the_model(simulation: Simulation, tmp_path: Path) -> None:
    """Replay the recorded arrivals; the model gives the recorded fates and instants."""
    example = paths.SCHEMAS / "example" / "campaign" / "runs"
    written = json.loads(next(example.glob("*/plan.json")).read_text())
    (link, *_) = written["links"]
    losing = {"model": "gilbert_elliott", "good_to_bad": 0.1, "bad_to_good": 0.4,
              "loss_in_good": 0.0, "loss_in_bad": 0.7, "at": "egress"}  # fmt: skip
    direction = {"rate_bps": 50_000_000, "delay_ns": 100_000, "queue": {"packets": 10}}
    link["forward"] = direction | {"loss": losing}
    link["backward"] = direction | {"loss": {"model": "none", "at": "egress"}}
    link["fpga"] = {"by": "board", "board": "simulated", "address": ADDRESS}
    written["links"] = [link]
    (tmp_path / "plan.json").write_text(json.dumps(written))
    environment = f"PYTHONPATH={paths.AGENT}:{paths.P4_CONTROL}:{FPGA}:{paths.ROOT}"
    process = simulation.run(
        "nagi-fpga-ctl", "env", environment, sys.executable, "-c", AGENT_RUN,
        str(tmp_path), f"{simulation.build_id:08x}", FAR,
    )  # fmt: skip
    assert process.returncode == 0, process.stdout[-500:] + process.stderr[-1500:]
    plan = RunPlan.model_validate(written)
    recorded = packets.sort_records(packets.read_records(tmp_path / "packets.bin"))
    assert len(recorded) >= 60
    modelled = packets.replay(plan, recorded)
    for column in ("arrived_ns", "left_ns", "index", "fate", "direction"):
        assert (recorded[column] == modelled[column]).all(), column
    assert set(recorded["fate"]) >= {packets.DELIVERED, packets.CHANNEL_LOSS}
    (account,) = Links.read(tmp_path / "links.json").links
    for name in ("forward", "backward"):
        counts = account.direction(name).packets
        assert counts.offered == counts.accounted and counts.held == 0
