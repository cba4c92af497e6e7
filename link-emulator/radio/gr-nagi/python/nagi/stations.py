# SPDX-License-Identifier: Apache-2.0
"""The virtual radio: two stations and a channel, each a process, exchanging samples over ZeroMQ.

`python3 -m gnuradio.nagi.stations` is one of these processes. Its task is one line of JSON on
standard input: {"role": "station", "station": "a" | "b", ...} or {"role": "channel", ...}, with
"directory" (of the sockets, mode 0700), "radio" (as in a link's configuration), "seed" and
"directions" ({"forward": 0, "backward": 1}). It says "ready" on standard output, and ends when its
standard input is closed, so also when whoever started it dies. Status 2: the task is wrong.

Each direction has four sockets in the directory, over which PDUs go from PUSH to PULL; of forward:
  forward.packets   to the sending station
  forward.sent      its bursts, to the channel
  forward.received  what the channel made of them, to the receiving station
  forward.outcomes  from there
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from gnuradio import gr, zeromq

from .checks import DIRECTIONS, ConfigError
from .privileges import end_with_parent
from .radio import Receiver, Transmitter, make_channel, parse_radio

STATIONS = ("a", "b")
_LONGEST_SOCKET_PATH = 107  # sockaddr_un
_POLL_MS = 100  # after which ZeroMQ's threads see that they should end


class StationError(RuntimeError):
    """A station or the channel did not start, or has died."""


def _address(directory: Path, direction: str, stage: str) -> str:
    return f"ipc://{directory / f'{direction}.{stage}'}"


def _sink(directory: Path, direction: str, stage: str) -> zeromq.push_msg_sink:
    return zeromq.push_msg_sink(_address(directory, direction, stage), _POLL_MS, False)


def _source(directory: Path, direction: str, stage: str) -> zeromq.pull_msg_source:
    return zeromq.pull_msg_source(_address(directory, direction, stage), _POLL_MS, True)


def check_directory(directory: Path) -> None:
    """Raises ConfigError if sockets would not be safe or not possible in there."""
    try:
        status = directory.stat()
    except OSError as error:
        raise ConfigError(f"directory {directory}: {error.strerror}; make it first") from error
    if not stat.S_ISDIR(status.st_mode):
        raise ConfigError(f"directory {directory} is none")
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise ConfigError(f"directory {directory} must be the caller's own, with mode 0700")
    longest = max(len(os.fsencode(directory / f"{direction}.received")) for direction in DIRECTIONS)
    if longest > _LONGEST_SOCKET_PATH:
        raise ConfigError(
            f"directory {directory} has too long a path for sockets: {longest} bytes with their"
            f" names, at most {_LONGEST_SOCKET_PATH}"
        )


class VirtualRadio(gr.hier_block2):
    """One direction of a link through stations: message ports in `packets`, out `outcomes`.

    As SimulatedRadio, while the processes of `Stations` run in the same directory.
    """

    def __init__(self, directory: Path, direction: str) -> None:
        gr.hier_block2.__init__(
            self, "virtual_radio", gr.io_signature(0, 0, 0), gr.io_signature(0, 0, 0)
        )
        self.message_port_register_hier_in("packets")
        self.message_port_register_hier_out("outcomes")
        sink = _sink(directory, direction, "packets")
        source = _source(directory, direction, "outcomes")
        self.msg_connect(self, "packets", sink, "in")
        self.msg_connect(source, "out", self, "outcomes")


def _build_station(top: gr.top_block, task: Mapping[str, Any], directory: Path) -> None:
    """The sending end of one direction and the receiving end of the other."""
    config = parse_radio(task["radio"])
    station = task.get("station")
    if station not in STATIONS:
        raise ConfigError(f'station is {station!r}; it must be "a" or "b"')
    out, back = DIRECTIONS if station == "a" else DIRECTIONS[::-1]
    transmitter = Transmitter(config)
    top.msg_connect(_source(directory, out, "packets"), "out", transmitter, "packets")
    top.msg_connect(transmitter, "bursts", _sink(directory, out, "sent"), "in")
    receiver = Receiver(config)
    top.msg_connect(_source(directory, back, "received"), "out", receiver, "bursts")
    top.msg_connect(receiver, "outcomes", _sink(directory, back, "outcomes"), "in")


def _build_channel(top: gr.top_block, task: Mapping[str, Any], directory: Path) -> None:
    config = parse_radio(task["radio"])
    for direction in DIRECTIONS:
        channel = make_channel(
            config, direction, int(task["seed"]), int(task["directions"][direction])
        )
        top.msg_connect(_source(directory, direction, "sent"), "out", channel, "bursts")
        top.msg_connect(channel, "bursts", _sink(directory, direction, "received"), "in")


def _check_directions(directions: Any) -> None:
    if not isinstance(directions, dict) or set(directions) != set(DIRECTIONS):
        raise ConfigError(f"directions must be an object with {' and '.join(DIRECTIONS)}")


_ROLES = {"station": _build_station, "channel": _build_channel}


def build(task: Mapping[str, Any]) -> gr.top_block:
    """The flowgraph of a process. Raises ConfigError, naming the key."""
    for key in ("role", "directory", "radio", "seed", "directions"):
        if key not in task:
            raise ConfigError(f'"{key}" is missing')
    if task["role"] not in _ROLES:
        raise ConfigError(f"role is {task['role']!r}; it must be one of {', '.join(_ROLES)}")
    directory = Path(task["directory"])
    check_directory(directory)
    _check_directions(task["directions"])
    # An exception in a block must end the process: whoever started it sees that.
    top = gr.top_block(f"nagi {task['role']}", catch_exceptions=False)
    _ROLES[task["role"]](top, task, directory)
    return top


def _read_task() -> dict[str, Any]:
    try:
        task = json.loads(sys.stdin.readline())
    except json.JSONDecodeError as error:
        raise ConfigError(f"the task is no line of JSON: {error}") from error
    if not isinstance(task, dict):
        raise ConfigError("the task must be a JSON object")
    return task


def main() -> int:
    """One process: its task from standard input, until that is closed."""
    end_with_parent(signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # GNU Radio logs to standard output
    try:
        top = build(_read_task())
    except ValueError as error:
        print(f"stations: {error}", file=sys.stderr)
        return 2
    top.start()
    print("ready", file=answers, flush=True)
    sys.stdin.read()
    top.stop()
    top.wait()
    return 0


class Stations:
    """The three processes of a virtual radio; a context manager.

    `directory`: empty, the caller's own, with mode 0700. Raises ConfigError for a wrong
    configuration and StationError if a process does not start.
    """

    def __init__(
        self, radio: Mapping[str, Any], directory: Path, seed: int, directions: Mapping[str, int]
    ) -> None:
        parse_radio(dict(radio))
        check_directory(directory)
        common = {
            "directory": str(directory),
            "radio": radio,
            "seed": seed,
            "directions": dict(directions),
        }
        self._tasks = {
            "station a": {"role": "station", "station": "a", **common},
            "station b": {"role": "station", "station": "b", **common},
            "channel": {"role": "channel", **common},
        }
        self.processes: dict[str, subprocess.Popen[str]] = {}
        """By name. One that has ended has ended wrongly."""

    def __enter__(self) -> Self:
        try:
            for name, task in self._tasks.items():
                self.processes[name] = self._start(task)
            for name, process in self.processes.items():
                self._await_ready(name, process)
        except BaseException:
            self.close()
            raise
        return self

    @staticmethod
    def _start(task: Mapping[str, Any]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-B", "-m", "gnuradio.nagi.stations"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # an interrupt at the terminal is for whoever started it
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(task) + "\n")
        process.stdin.flush()
        return process

    @staticmethod
    def _await_ready(name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == "ready":
                return
        raise StationError(f"{name} ended with status {process.wait()} before it was ready")

    def dead(self) -> list[str]:
        """Names of processes that have ended, with their status."""
        return [
            f"{name} (status {process.returncode})"
            for name, process in self.processes.items()
            if process.poll() is not None
        ]

    def close(self) -> None:
        """Ends all, at the latest after 5 s each."""
        for process in self.processes.values():
            assert process.stdin is not None
            process.stdin.close()
        for process in self.processes.values():
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()

    def __exit__(self, *exc: object) -> None:
        self.close()


if __name__ == "__main__":
    sys.exit(main())
