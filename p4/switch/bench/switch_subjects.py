# SPDX-License-Identifier: Apache-2.0
"""The switches that benchmarks measure: nagi-switch and simple_switch, both with edge.p4."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "link-emulator" / "bench"))

from bench_lab import MEASURED_CPU, BenchError, Lab, Trials  # noqa: E402
from bench_report import Row  # noqa: E402
from bench_subjects import Subject  # noqa: E402

ROUTES = 1000
_START_S = 20.0
# After AF_XDP sockets are closed, the kernel needs some time until their interfaces are free again.
_RELEASE_S = 0.5
_PINNED = ("taskset", "-c", str(MEASURED_CPU))
_QUEUE_PACKETS = 1000  # simple_switch's default of 64 is shorter than a burst of the source


@dataclass
class Bench(Trials):
    """The settings of the measurements, and the results that measurements add.

    Attributes:
        lab: The namespaces in which programs run.
        nagi_switch: The program nagi-switch.
        program: The pipeline, edge.json.
        tables: The program bench-tables.
        simple_switch: The program simple_switch; None to leave it out.
        rows: Rows of the report so far.
        details: Results for the JSON file so far, by measurement.
    """

    lab: Lab
    nagi_switch: Path
    program: Path
    tables: Path
    simple_switch: Path | None
    rows: list[Row]
    details: dict[str, Any]


def list_prefixes(count: int) -> list[str]:
    """Return `count` prefixes to route.

    The first prefix is for frames of the source, the second for frames that the kernel generates,
    whose destination is 0.0.0.0.
    """
    first = ["10.0.0.0/24", "0.0.0.0/8"]
    others = [f"{10 + i // 65536}.{i // 256 % 256}.{i % 256}.0/24" for i in range(2, count)]
    return [*first, *others][:count]


class NagiSwitch(Subject):
    """nagi-switch with edge.p4, which forwards from port 1 (e0) to port 2 (e1).

    Args:
        bench: The settings of the measurements.
        routes: Number of routes.
        io: How frames are received and sent: "af_xdp" or "af_packet".

    Attributes:
        ready_s: Duration of the last start, in seconds.
    """

    def __init__(self, bench: Bench, routes: int, io: str) -> None:
        self.name = f"nagi-switch ({io})"
        self._bench = bench
        self._routes = routes
        self._io = io
        self.ready_s = 0.0

    def build_operations(self, count: int) -> list[str]:
        """Return the operations, as JSON, that add `count` routes."""
        mac = self._bench.lab.right_mac
        data = [2, "02:00:00:00:00:fe", mac, 1500]
        return [
            json.dumps(
                {
                    "op": "table_add",
                    "table": "ingress.ipv4_routes",
                    "match": [prefix],
                    "action": "ingress.forward",
                    "data": data,
                }
            )
            for prefix in list_prefixes(count)
        ]

    def load(self, requests: list[str]) -> float:
        """Send requests to the control socket, and return the seconds until the last answer.

        Raises:
            BenchError: nagi-switch refused a request.
        """
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("".join(request + "\n" for request in requests))
            file.flush()
            command = [str(self._bench.nagi_switch), "control", str(self.socket), file.name]
            started = time.monotonic()
            result = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
            duration_s = time.monotonic() - started
        if result.returncode != 0:
            raise BenchError("nagi-switch refused an entry")
        return duration_s

    def __enter__(self) -> NagiSwitch:
        self._directory = Path(tempfile.mkdtemp(prefix="nagi-bench-"))
        self.socket = self._directory / "sock"
        entries = self._directory / "entries.jsonl"
        entries.write_text("".join(line + "\n" for line in self.build_operations(self._routes)))
        config = {
            "schema_version": 1,
            "seed": 2008,
            "pipeline": str(self._bench.program),
            "entries": str(entries),
            "io": self._io,
            "account": str(self._directory / "switch.json"),
            "control_socket": str(self.socket),
            "ports": [{"number": 1, "interface": "e0"}, {"number": 2, "interface": "e1"}],
        }
        path = self._directory / "config.json"
        path.write_text(json.dumps(config))
        try:
            started = time.monotonic()
            self._running = self._bench.lab.start_measured(
                str(self._bench.nagi_switch), "run", str(path)
            )
            self._running.wait_until_ready()
            self.ready_s = time.monotonic() - started
        except BaseException:
            shutil.rmtree(self._directory)
            raise
        self.pid = self._running.pid
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._running.stop()
            time.sleep(_RELEASE_S)
            account = json.loads((self._directory / "switch.json").read_text())
            for port in account["ports"]:
                for key in ("arrival_lateness_ns", "added_delay_ns"):
                    port[key].pop("histogram")
            self.account = account
        finally:
            shutil.rmtree(self._directory)


class SimpleSwitch(Subject):
    """bmv2's simple_switch with edge.p4 and ROUTES routes, which simple_switch_CLI adds."""

    name = "simple_switch"

    def __init__(self, bench: Bench, program: Path) -> None:
        self._bench = bench
        self._program = program

    def __enter__(self) -> SimpleSwitch:
        lab = self._bench.lab
        self._directory = Path(tempfile.mkdtemp(prefix="nagi-bench-"))
        commands = self._directory / "commands"
        data = f"2 02:00:00:00:00:fe {lab.right_mac} 1500"
        commands.write_text(
            "".join(
                f"table_add ingress.ipv4_routes ingress.forward {prefix} => {data}\n"
                for prefix in list_prefixes(ROUTES)
            )
            + f"set_queue_depth {_QUEUE_PACKETS}\n"
        )
        ports = ["-i", "1@e0", "-i", "2@e1"]
        # simple_switch runs at ordinary priority. At a real-time priority, one of its threads,
        # which never sleeps, would prevent its other threads from running.
        self._running = lab.start(
            "middle", *_PINNED, str(self._program), *ports, str(self._bench.program)
        )
        self.pid = self._running.pid
        cli = self._program.with_name("simple_switch_CLI")
        deadline = time.monotonic() + _START_S
        while True:
            client = lab.start("middle", "sh", "-c", f"{cli} <{commands}")
            try:
                output = client.finish(_START_S)
            except BenchError as error:  # simple_switch does not listen yet
                output = str(error)
            if output.count("handle") >= ROUTES:
                return self
            if time.monotonic() > deadline:
                self.__exit__()
                raise BenchError(f"simple_switch did not accept its routes: {output[-300:]}")
            time.sleep(0.5)

    def __exit__(self, *_: object) -> None:
        self._running.kill()
        shutil.rmtree(self._directory)
