# SPDX-License-Identifier: Apache-2.0
"""Whether radios work on this machine, stage by stage: flowgraph, loopback, packets, ip. What comes
after a stage that failed is not tried."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gnuradio import gr

from . import settings
from .checks import DIRECTIONS
from .flowgraph import Flowgraph

RECEIVED = 0
TIMEOUT_S = 20.0
ROUNDS = 20
DELAY_NS = 100_000_000
AIR_TIME_NS = 8_000_000
SEE = "run `nagi doctor` for the network of this machine"
BUILD = "build and install gr-nagi again: `make sdr`"

RADIO = {
    "by": "simulated",
    "modem": "ofdm",
    "modulation": "qpsk",
    "sample_rate_hz": 2_000_000,
    "code_rate": "none",
    "forward": {"snr_db": 30.0},
    "backward": {"snr_db": 30.0},
}


@dataclass
class Stage:
    stage: str
    ok: bool
    detail: str
    cure: str | None = None


class Failed(Exception):
    """A stage that failed: what is so, and the cure."""

    def __init__(self, detail: str, cure: str) -> None:
        super().__init__(detail)
        self.cure = cure


def _flowgraph() -> str:
    with carried(RADIO):
        pass
    return f"GNU Radio {gr.version()}, gr-nagi; a flowgraph starts and stops"


@dataclass
class Carrier:
    """One direction of a radio that runs."""

    socket: socket.socket
    settings: settings.Settings

    def send(self, number: int, packet: bytes) -> None:
        """Has a packet carried, now."""
        begin = time.monotonic_ns() - self.settings.epoch_monotonic_ns
        self.socket.send(struct.pack("<IIqq", number, 0, begin, begin + AIR_TIME_NS) + packet)

    def receive(self, number: int) -> tuple[int, bytes]:
        """Outcome and packet. Raises Failed if there is none in time."""
        try:
            answer = self.socket.recv(1 << 16)
        except TimeoutError as error:
            raise Failed(f"packet {number} did not come out in {TIMEOUT_S:g} s", BUILD) from error
        told, outcome = struct.unpack_from("<IB", answer)
        if told != number:
            raise Failed(f"packet {number} came back as packet {told}", BUILD)
        return outcome, answer[8:]


@contextmanager
def carried(radio: dict[str, Any]) -> Iterator[Carrier]:
    """A radio that runs; yields what carries packets of one way."""
    loss = {"loss": {"model": "radio"}, "delay_ns": DELAY_NS}
    link = {"name": "radio", "id": 1, "a": "a", "b": "b", "forward": loss, "backward": loss}
    document = {"schema_version": 1, "seed": 1, "links": [{**link, "radio": radio}]}
    with ExitStack() as cleanup:
        ends = {}
        ours: dict[str, socket.socket] = {}
        for direction in DIRECTIONS:
            ours[direction], theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            cleanup.callback(ours[direction].close)
            ends["radio", direction] = theirs.detach()
        configuration = settings.parse(document)
        flowgraph = Flowgraph(configuration, ends)
        cleanup.callback(flowgraph.stop)
        flowgraph.start()
        ours["forward"].settimeout(TIMEOUT_S)
        yield Carrier(ours["forward"], configuration)


def _exchange(carrier: Carrier, packets: list[bytes]) -> None:
    """Has packets carried one after the other. Raises Failed unless all come back as they were."""
    for number, packet in enumerate(packets):
        carrier.send(number, packet)
        outcome, received = carrier.receive(number)
        if outcome != RECEIVED or received != packet:
            raise Failed(
                f"packet {number} of {len(packet)} bytes came back otherwise (outcome {outcome})",
                BUILD,
            )


def _loopback() -> str:
    with carried(RADIO) as carrier:
        _exchange(carrier, [b"first"])
        begun = time.monotonic()
        _exchange(carrier, [bytes(1000)] * ROUNDS)
        each_ms = (time.monotonic() - begun) / ROUNDS * 1e3
    return f"{ROUNDS} packets through the modem, {each_ms:.1f} ms each"


def some_packets() -> list[bytes]:
    """50, of the sizes that IP packets have."""
    draw = random.Random(1)
    return [draw.randbytes(draw.randint(20, 1500)) for _ in range(50)]


def _packets() -> str:
    packets = some_packets()
    with carried(RADIO) as carrier:
        _exchange(carrier, packets)
    return f"{len(packets)} packets of 20 to 1,500 bytes, bit-exact"


def _ip() -> str:
    return ping(RADIO)


def ping(radio: dict[str, Any]) -> str:
    """Pings over a radio between two network namespaces. Raises Failed."""
    if os.geteuid() != 0:
        raise Failed("not tried: network namespaces need root", "run it as root")
    with ExitStack() as cleanup:
        directory = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="nagi-sdr-"))
        left, right = (cleanup.enter_context(_namespace()) for _ in range(2))
        # Hardware may be on a network of this namespace.
        is_hardware = radio["by"] == "uhd"
        middle = os.getpid() if is_hardware else cleanup.enter_context(_namespace())
        for end, pid, address in (
            ("nagi-left", left, "10.0.0.1"),
            ("nagi-right", right, "10.0.0.2"),
        ):
            _ip_command(f"link add eth0 netns {pid} type veth peer name {end} netns {middle}")
            _inside(pid, f"ip address add {address}/24 dev eth0")
            _inside(pid, "ip link set eth0 up")
            _inside(middle, f"ip link set {end} up")
        direction = {"rate_bps": 2_000_000, "overhead_bytes": 60, "delay_ns": DELAY_NS,
               "loss": {"model": "radio"}}  # fmt: skip
        link = {
            "name": "radio",
            "id": 1,
            "a": "nagi-left",
            "b": "nagi-right",
            "forward": direction,
            "backward": direction,
        }
        document = {"schema_version": 1, "seed": 1, "links": [{**link, "radio": radio}]}
        path = Path(directory, "radio.json")
        path.write_text(json.dumps(document), encoding="utf-8")
        command = [
            "nsenter",
            "-t",
            str(middle),
            "-n",
            sys.executable,
            sys.argv[0],
            "run",
            str(path),
        ]
        emulator = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        cleanup.callback(emulator.wait)
        cleanup.callback(emulator.terminate)
        assert emulator.stderr is not None
        said = ""
        while "ready" not in said:
            line = emulator.stderr.readline()
            if not line:
                raise Failed(
                    f"nagi-sdr does not start: {' '.join(said.split())}", "see what it says"
                )
            said += line
        try:
            return _inside(left, "ping -c 5 -i 0.2 -W 2 10.0.0.2").splitlines()[-1]
        except subprocess.CalledProcessError as error:
            raise Failed(
                f"no ping crosses a radio: {' '.join(error.output.split())}",
                SEE,
            ) from error


@contextmanager
def _namespace() -> Iterator[int]:
    """A network namespace that is gone with its one process, which ends with this one."""
    holder = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo; exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        yield holder.pid
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        for pipe in (holder.stdin, holder.stdout):
            if pipe is not None:
                pipe.close()


def _ip_command(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True, capture_output=True, text=True)


def _inside(pid: int, command: str) -> str:
    return subprocess.run(
        ["nsenter", "-t", str(pid), "-n", *command.split()],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip


STAGES: tuple[tuple[str, Callable[[], str]], ...] = (
    ("flowgraph", _flowgraph),
    ("loopback", _loopback),
    ("packets", _packets),
    ("ip", _ip),
)


Stages = tuple[tuple[str, Callable[[], str]], ...]


def examine(stages: Stages = STAGES) -> Iterator[Stage]:
    for name, performed in stages:
        try:
            yield Stage(name, True, performed())
        except Failed as failure:
            yield Stage(name, False, str(failure), failure.cure)
            return
        except subprocess.CalledProcessError as error:
            said = " ".join((error.stderr or error.output).split())
            yield Stage(name, False, f"{' '.join(error.cmd)}: {said}", SEE)
            return
        except (OSError, RuntimeError) as error:
            yield Stage(name, False, f"{type(error).__name__}: {error}", BUILD)
            return


def main(*, as_json: bool, stages: Stages = STAGES) -> int:
    status = 0
    for stage in examine(stages):
        if as_json:
            print(json.dumps(asdict(stage)), flush=True)
        else:
            print(f"{stage.stage}: {'ok' if stage.ok else 'failed'}: {stage.detail}", flush=True)
            if stage.cure:
                print(f"  {stage.cure}", flush=True)
        status = status or int(not stage.ok)
    return status
