# SPDX-License-Identifier: Apache-2.0
"""Checks in stages whether radios work on this machine: flowgraph, loopback, packets, ip.

A stage that fails ends the check.
"""

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
ROUNDS = 20  # packets of the stage `loopback`
DELAY_NS = 100_000_000
AIR_TIME_NS = 8_000_000
# Cures of failed stages.
SEE = "check the network of this machine with `nagi doctor`"
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
    """The result of a stage. `cure` says what the user can do if the stage failed."""

    stage: str
    ok: bool
    detail: str
    cure: str | None = None


class Failed(Exception):
    """A stage failed. The message describes the problem; `cure` says what the user can do."""

    def __init__(self, detail: str, cure: str) -> None:
        super().__init__(detail)
        self.cure = cure


def _check_flowgraph() -> str:
    with open_carrier(RADIO):
        pass
    return f"GNU Radio {gr.version()}, gr-nagi; a flowgraph starts and stops"


@dataclass
class Carrier:
    """The forward direction of a running radio, reached through the socket for nagi-link."""

    socket: socket.socket
    settings: settings.Settings

    def send(self, number: int, packet: bytes) -> None:
        """Transmit a packet now, with the constant air time AIR_TIME_NS."""
        begin = time.monotonic_ns() - self.settings.epoch_monotonic_ns
        self.socket.send(struct.pack("<IIqq", number, 0, begin, begin + AIR_TIME_NS) + packet)

    def receive(self, number: int) -> tuple[int, bytes]:
        """Wait for the outcome of packet `number`, and return it with the received bytes.

        Raises:
            Failed: No outcome arrived within TIMEOUT_S, or the next one belongs to another packet.
        """
        try:
            answer = self.socket.recv(1 << 16)
        except TimeoutError as error:
            raise Failed(f"no outcome of packet {number} after {TIMEOUT_S:g} s", BUILD) from error
        received_number, outcome = struct.unpack_from("<IB", answer)
        if received_number != number:
            raise Failed(f"the outcome of packet {number} has number {received_number}", BUILD)
        return outcome, answer[8:]


@contextmanager
def open_carrier(radio: dict[str, Any]) -> Iterator[Carrier]:
    """Run a radio, given its configuration (JSON), and yield its forward direction.

    The radio stops when the context is left.
    """
    loss = {"loss": {"model": "radio"}, "delay_ns": DELAY_NS}
    link = {"name": "radio", "id": 1, "a": "a", "b": "b", "forward": loss, "backward": loss}
    document = {"schema_version": 1, "seed": 1, "links": [{**link, "radio": radio}]}
    with ExitStack() as cleanup:
        flowgraph_descriptors = {}
        sockets: dict[str, socket.socket] = {}
        for direction in DIRECTIONS:
            sockets[direction], peer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            cleanup.callback(sockets[direction].close)
            flowgraph_descriptors["radio", direction] = peer.detach()
        configuration = settings.parse_settings(document)
        flowgraph = Flowgraph(configuration, flowgraph_descriptors)
        cleanup.callback(flowgraph.stop)
        flowgraph.start()
        sockets["forward"].settimeout(TIMEOUT_S)
        yield Carrier(sockets["forward"], configuration)


def _exchange(carrier: Carrier, packets: list[bytes]) -> None:
    """Transmit packets one by one; each waits for the outcome of the previous packet.

    Raises:
        Failed: A packet was lost or changed.
    """
    for number, packet in enumerate(packets):
        carrier.send(number, packet)
        outcome, received = carrier.receive(number)
        if outcome != RECEIVED or received != packet:
            raise Failed(
                f"packet {number} of {len(packet)} bytes was lost or changed (outcome {outcome})",
                BUILD,
            )


def _check_loopback() -> str:
    with open_carrier(RADIO) as carrier:
        _exchange(carrier, [b"first"])
        started = time.monotonic()
        _exchange(carrier, [bytes(1000)] * ROUNDS)
        packet_ms = (time.monotonic() - started) / ROUNDS * 1e3
    return f"{ROUNDS} packets through the modem, {packet_ms:.1f} ms each"


def make_packets() -> list[bytes]:
    """Return 50 packets of pseudorandom contents, of 20 to 1,500 bytes.

    All calls return equal packets, because the seed is fixed.
    """
    generator = random.Random(1)
    return [generator.randbytes(generator.randint(20, 1500)) for _ in range(50)]


def _check_packets() -> str:
    packets = make_packets()
    with open_carrier(RADIO) as carrier:
        _exchange(carrier, packets)
    return f"{len(packets)} packets of 20 to 1,500 bytes, bit-exact"


def _check_ip() -> str:
    return ping(RADIO)


def ping(radio: dict[str, Any]) -> str:
    """Ping over a radio between two network namespaces and return the last line of ping's output.

    nagi-sdr runs in a third namespace. For radio hardware, which may be reached over a network, it
    runs in the namespace of this process.

    Raises:
        Failed: The process is not root, nagi-sdr does not start, or no ping is answered.
        CalledProcessError: A namespace or an interface cannot be set up.
    """
    if os.geteuid() != 0:
        raise Failed("not tried: network namespaces need root", "run it as root")
    with ExitStack() as cleanup:
        directory = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="nagi-sdr-"))
        left, right = (cleanup.enter_context(_create_namespace()) for _ in range(2))
        # A device may be reached over a network, which only this namespace can access.
        is_hardware = radio["by"] == "uhd"
        middle = os.getpid() if is_hardware else cleanup.enter_context(_create_namespace())
        for interface, pid, address in (
            ("nagi-left", left, "10.0.0.1"),
            ("nagi-right", right, "10.0.0.2"),
        ):
            _run_ip(f"link add eth0 netns {pid} type veth peer name {interface} netns {middle}")
            _run_inside(pid, f"ip address add {address}/24 dev eth0")
            _run_inside(pid, "ip link set eth0 up")
            _run_inside(middle, f"ip link set {interface} up")
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
        output = ""
        while "ready" not in output:
            line = emulator.stderr.readline()
            if not line:
                raise Failed(
                    f"nagi-sdr does not start: {' '.join(output.split())}", "see its message"
                )
            output += line
        try:
            return _run_inside(left, "ping -c 5 -i 0.2 -W 2 10.0.0.2").splitlines()[-1]
        except subprocess.CalledProcessError as error:
            raise Failed(
                f"no ping was answered over the radio: {' '.join(error.output.split())}",
                SEE,
            ) from error


@contextmanager
def _create_namespace() -> Iterator[int]:
    """Create a network namespace and yield the id of its only process.

    The kernel removes the namespace when the process ends. The process ends when the context
    is left or its parent process ends.
    """
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


def _run_ip(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True, capture_output=True, text=True)


def _run_inside(pid: int, command: str) -> str:
    return subprocess.run(
        ["nsenter", "-t", str(pid), "-n", *command.split()],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip


STAGES: tuple[tuple[str, Callable[[], str]], ...] = (
    ("flowgraph", _check_flowgraph),
    ("loopback", _check_loopback),
    ("packets", _check_packets),
    ("ip", _check_ip),
)


Stages = tuple[tuple[str, Callable[[], str]], ...]


def examine(stages: Stages = STAGES) -> Iterator[Stage]:
    """Run stages in order and yield the result of each, up to the first that fails."""
    for name, check in stages:
        try:
            yield Stage(name, True, check())
        except Failed as failure:
            yield Stage(name, False, str(failure), failure.cure)
            return
        except subprocess.CalledProcessError as error:
            message = " ".join((error.stderr or error.output).split())
            yield Stage(name, False, f"{' '.join(error.cmd)}: {message}", SEE)
            return
        except (OSError, RuntimeError) as error:
            yield Stage(name, False, f"{type(error).__name__}: {error}", BUILD)
            return


def main(*, as_json: bool, stages: Stages = STAGES) -> int:
    """Print the results of stages to standard output: as text, or as one JSON object per stage.

    Returns:
        The exit status: 0 if all stages passed, 1 if a stage failed.
    """
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
