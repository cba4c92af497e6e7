# SPDX-License-Identifier: Apache-2.0
"""The virtual radio: two station processes and a channel process, which exchange samples by ZeroMQ.

`python3 -m gnuradio.nagi.stations` is one of these processes. It reads its task as one line of JSON
with "role" ("station" or "channel"), for a station also "station" ("a" or "b"), "directory" (of the
sockets, mode 0700), "radio" (as in a link's configuration), "seed" and "directions" ({"forward": 0,
"backward": 1}). It prints "ready" to standard output. It ends when its standard input is closed,
thus also when its parent process ends. Exit status 2: the task is wrong.

Each direction has four sockets in the directory, which carry PDUs from PUSH to PULL. For forward:

  forward.packets   packets to the sending station
  forward.sent      bursts from the sending station to the channel
  forward.received  bursts from the channel to the receiving station
  forward.outcomes  outcomes from the receiving station
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
_POLL_MS = 100  # interval at which ZeroMQ's threads check whether to end


class StationError(RuntimeError):
    """The process of a station or the channel did not start, or has ended."""


def _make_address(directory: Path, direction: str, stage: str) -> str:
    return f"ipc://{directory / f'{direction}.{stage}'}"


def _open_sink(directory: Path, direction: str, stage: str) -> zeromq.push_msg_sink:
    return zeromq.push_msg_sink(_make_address(directory, direction, stage), _POLL_MS, False)


def _open_source(directory: Path, direction: str, stage: str) -> zeromq.pull_msg_source:
    return zeromq.pull_msg_source(_make_address(directory, direction, stage), _POLL_MS, True)


def check_directory(directory: Path) -> None:
    """Raise ConfigError if the directory is not private, or its path is too long for sockets."""
    try:
        status = directory.stat()
    except OSError as error:
        raise ConfigError(f"directory {directory}: {error.strerror}; create it first") from error
    if not stat.S_ISDIR(status.st_mode):
        raise ConfigError(f"directory {directory} is not a directory")
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise ConfigError(f"directory {directory} must belong to the caller and have mode 0700")
    longest = max(len(os.fsencode(directory / f"{direction}.received")) for direction in DIRECTIONS)
    if longest > _LONGEST_SOCKET_PATH:
        raise ConfigError(
            f"directory {directory}: the path is too long for sockets: {longest} bytes with the"
            f" sockets' names; the limit is {_LONGEST_SOCKET_PATH}"
        )


class VirtualRadio(gr.hier_block2):
    """One direction of a link through station processes.

    Message ports: in `packets`, out `outcomes`, as in SimulatedRadio. The processes of
    `Stations` must run in the same directory.
    """

    def __init__(self, directory: Path, direction: str) -> None:
        gr.hier_block2.__init__(
            self, "virtual_radio", gr.io_signature(0, 0, 0), gr.io_signature(0, 0, 0)
        )
        self.message_port_register_hier_in("packets")
        self.message_port_register_hier_out("outcomes")
        sink = _open_sink(directory, direction, "packets")
        source = _open_source(directory, direction, "outcomes")
        self.msg_connect(self, "packets", sink, "in")
        self.msg_connect(source, "out", self, "outcomes")


def _build_station(top: gr.top_block, task: Mapping[str, Any], directory: Path) -> None:
    """Add a station's transmitter, and its receiver for the other direction, to the flowgraph."""
    config = parse_radio(task["radio"])
    station = task.get("station")
    if station not in STATIONS:
        raise ConfigError(f'station is {station!r}; it must be "a" or "b"')
    sent, received = DIRECTIONS if station == "a" else DIRECTIONS[::-1]
    transmitter = Transmitter(config)
    top.msg_connect(_open_source(directory, sent, "packets"), "out", transmitter, "packets")
    top.msg_connect(transmitter, "bursts", _open_sink(directory, sent, "sent"), "in")
    receiver = Receiver(config)
    top.msg_connect(_open_source(directory, received, "received"), "out", receiver, "bursts")
    top.msg_connect(receiver, "outcomes", _open_sink(directory, received, "outcomes"), "in")


def _build_channel(top: gr.top_block, task: Mapping[str, Any], directory: Path) -> None:
    config = parse_radio(task["radio"])
    for direction in DIRECTIONS:
        channel = make_channel(
            config, direction, int(task["seed"]), int(task["directions"][direction])
        )
        top.msg_connect(_open_source(directory, direction, "sent"), "out", channel, "bursts")
        top.msg_connect(channel, "bursts", _open_sink(directory, direction, "received"), "in")


def _check_directions(directions: Any) -> None:
    if not isinstance(directions, dict) or set(directions) != set(DIRECTIONS):
        raise ConfigError(f"directions must be an object with {' and '.join(DIRECTIONS)}")


_ROLES = {"station": _build_station, "channel": _build_channel}


def build_flowgraph(task: Mapping[str, Any]) -> gr.top_block:
    """Build the flowgraph of a station's or the channel's process.

    Raises:
        ConfigError: The task is wrong; the message names the key.
    """
    for key in ("role", "directory", "radio", "seed", "directions"):
        if key not in task:
            raise ConfigError(f'"{key}" is missing')
    if task["role"] not in _ROLES:
        raise ConfigError(f"role is {task['role']!r}; it must be one of {', '.join(_ROLES)}")
    directory = Path(task["directory"])
    check_directory(directory)
    _check_directions(task["directions"])
    # An exception in a block must end the process, so that its parent notices.
    top = gr.top_block(f"nagi {task['role']}", catch_exceptions=False)
    _ROLES[task["role"]](top, task, directory)
    return top


def _read_task() -> dict[str, Any]:
    try:
        task = json.loads(sys.stdin.readline())
    except json.JSONDecodeError as error:
        raise ConfigError(f"the task is not a line of JSON: {error}") from error
    if not isinstance(task, dict):
        raise ConfigError("the task must be a JSON object")
    return task


def main() -> int:
    """Run a process that this module describes, until standard input is closed.

    Returns:
        The exit status: 0, or 2 if the task is wrong.
    """
    end_with_parent(signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # GNU Radio logs to standard output
    try:
        top = build_flowgraph(_read_task())
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

    The constructor raises ConfigError for a wrong configuration. Entering the context raises
    StationError if a process does not start.

    Args:
        radio: A radio's configuration (JSON).
        directory: An empty directory of the caller, with mode 0700.
        seed: Seed of all random draws.
        directions: Number of the channel, by direction (see make_channel).
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
        """Processes by name. None of them should end before `close`."""

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
        """Start a process and send it its task."""
        process = subprocess.Popen(
            [sys.executable, "-B", "-m", "gnuradio.nagi.stations"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # an interrupt at the terminal is for the parent only
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(task) + "\n")
        process.stdin.flush()
        return process

    @staticmethod
    def _await_ready(name: str, process: subprocess.Popen[str]) -> None:
        """Wait until a process is ready; raise StationError if it ends before."""
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == "ready":
                return
        raise StationError(f"{name} ended with status {process.wait()} before it was ready")

    def list_ended(self) -> list[str]:
        """Return a text with name and exit status for each process that has ended."""
        return [
            f"{name} (status {process.returncode})"
            for name, process in self.processes.items()
            if process.poll() is not None
        ]

    def close(self) -> None:
        """End all processes; each has 5 s before it is killed."""
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
