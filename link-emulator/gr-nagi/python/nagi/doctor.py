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

from gnuradio import gr

from . import settings
from .checks import DIRECTIONS
from .flowgraph import Flowgraph

RECEIVED = 0
TIMEOUT_S = 20.0
ROUNDS = 20
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
    with _carried():
        pass
    return f"GNU Radio {gr.version()}, gr-nagi; a flowgraph starts and stops"


@contextmanager
def _carried() -> Iterator[socket.socket]:
    """A radio that runs; yields the socket over which packets of one way are carried."""
    loss = {"loss": {"model": "radio"}}
    link = {"name": "radio", "id": 1, "a": "a", "b": "b", "forward": loss, "backward": loss}
    document = {"schema_version": 1, "seed": 1, "links": [{**link, "radio": RADIO}]}
    with ExitStack() as cleanup:
        ends = {}
        ours: dict[str, socket.socket] = {}
        for direction in DIRECTIONS:
            ours[direction], theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            cleanup.callback(ours[direction].close)
            ends["radio", direction] = theirs.detach()
        flowgraph = Flowgraph(settings.parse(document), ends)
        cleanup.callback(flowgraph.stop)
        flowgraph.start()
        ours["forward"].settimeout(TIMEOUT_S)
        yield ours["forward"]


def _exchange(carrier: socket.socket, packets: list[bytes]) -> None:
    """Has packets carried one after the other. Raises Failed unless all come back as they were."""
    for number, packet in enumerate(packets):
        begin = number * 10_000_000
        carrier.send(struct.pack("<IIqq", number, 0, begin, begin + 8_000_000) + packet)
        try:
            answer = carrier.recv(1 << 16)
        except TimeoutError as error:
            raise Failed(f"packet {number} did not come out in {TIMEOUT_S:g} s", BUILD) from error
        told, outcome = struct.unpack_from("<IB", answer)
        if told != number or outcome != RECEIVED or answer[8:] != packet:
            raise Failed(
                f"packet {number} of {len(packet)} bytes came back otherwise (outcome {outcome})",
                BUILD,
            )


def _loopback() -> str:
    with _carried() as carrier:
        _exchange(carrier, [b"first"])
        begun = time.monotonic()
        _exchange(carrier, [bytes(1000)] * ROUNDS)
        each_ms = (time.monotonic() - begun) / ROUNDS * 1e3
    return f"{ROUNDS} packets through the modem, {each_ms:.1f} ms each"


def _packets() -> str:
    draw = random.Random(1)
    packets = [draw.randbytes(draw.randint(20, 1500)) for _ in range(50)]
    with _carried() as carrier:
        _exchange(carrier, packets)
    return f"{len(packets)} packets of 20 to 1,500 bytes, bit-exact"


def _ip() -> str:
    if os.geteuid() != 0:
        raise Failed("not tried: network namespaces need root", "run it as root")
    with ExitStack() as cleanup:
        directory = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="nagi-sdr-"))
        pids = [cleanup.enter_context(_namespace()) for _ in range(3)]
        left, middle, right = pids
        for end, pid, address in (("left", left, "10.0.0.1"), ("right", right, "10.0.0.2")):
            _ip_command(f"link add eth0 netns {pid} type veth peer name {end} netns {middle}")
            _inside(pid, f"ip address add {address}/24 dev eth0")
            _inside(pid, "ip link set eth0 up")
            _inside(middle, f"ip link set {end} up")
        direction = {"rate_bps": 2_000_000, "overhead_bytes": 60, "delay_ns": 30_000_000,
               "loss": {"model": "radio"}}  # fmt: skip
        link = {
            "name": "radio",
            "id": 1,
            "a": "left",
            "b": "right",
            "forward": direction,
            "backward": direction,
        }
        document = {"schema_version": 1, "seed": 1, "links": [{**link, "radio": RADIO}]}
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


def examine() -> Iterator[Stage]:
    for name, performed in STAGES:
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


def main(*, as_json: bool) -> int:
    status = 0
    for stage in examine():
        if as_json:
            print(json.dumps(asdict(stage)), flush=True)
        else:
            print(f"{stage.stage}: {'ok' if stage.ok else 'failed'}: {stage.detail}", flush=True)
            if stage.cure:
                print(f"  {stage.cure}", flush=True)
        status = status or int(not stage.ok)
    return status
