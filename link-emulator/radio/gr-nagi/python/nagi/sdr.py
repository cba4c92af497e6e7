# SPDX-License-Identifier: Apache-2.0
"""nagi-sdr: emulates links, some of which are radios.

nagi-link does what it always does: frames, queues, rates, delays, records, the account and the
control socket. For links that are radios it gives each packet that goes on the air to a flowgraph
here, which makes a waveform of it, sends that over a channel, and says what a receiver makes of it.
This process starts both and ends them together.

Exit status: 0 ended in order, 1 something broke, 2 the input was refused.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol, cast

from . import calibrate, device_doctor, doctor, levels, settings
from .calibration import TableError
from .checks import DIRECTIONS, ConfigError
from .flowgraph import Flowgraph
from .json_file import write_json
from .packet_ends import NoOutcome
from .settings import Settings, SettingsError
from .stations import StationError
from .usrp import INSTALL, DeviceError, UsrpMissing, bindings
from .version import VERSION

END_TIMEOUT_S = 5.0


class Broken(Exception):
    """A part of the emulator has ended that should not have."""


def say(text: str) -> None:
    print(f"nagi-sdr: {text}", file=sys.stderr, flush=True)


def nagi_link() -> str:
    """The path of the nagi-link to work with: NAGI_LINK, else the one beside this program,
    else the one on the path. Raises SettingsError."""
    if told := os.environ.get("NAGI_LINK"):
        return told
    beside = Path(sys.argv[0]).resolve().parent / "nagi-link"
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("nagi-link")
    if found is None:
        raise SettingsError(
            "there is no nagi-link beside nagi-sdr, nor on the path; build it with `make`"
        )
    return found


class Process(Protocol):
    """privileges.Child."""

    pid: int
    returncode: int | None

    def start(self, command: list[str], descriptors: list[int]) -> None: ...

    def wait(self) -> int | None: ...

    def end(self, timeout_s: float) -> None: ...


Watched = Process | subprocess.Popen[str]


class Ends:
    """What may end: processes that must not, and signals that ask this one to."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        self._theirs = theirs
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup(1)
                signal.signal(number, lambda *_: None)
        self._selector.register(self._ours, selectors.EVENT_READ, None)

    def watch(self, name: str, process: Watched) -> None:
        self._selector.register(os.pidfd_open(process.pid), selectors.EVENT_READ, (name, process))

    def wait(self) -> tuple[str, Watched] | None:
        """Returns what has ended, or None if a signal has come."""
        for key, _ in self._selector.select():
            if key.data is None:
                return None
            name, process = key.data
            process.wait()
            return name, process
        return None


def status_in_words(status: int) -> str:
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with status {status}"


def run(path: str, emulator: Process) -> int:
    """`emulator`: the child that becomes nagi-link."""
    configuration = settings.read(path)
    program = nagi_link()
    ends = Ends()
    with ExitStack() as cleanup:
        media: dict[str, dict[str, int]] = {}
        sockets: dict[tuple[str, str], int] = {}
        for link in configuration.radios:
            for direction in DIRECTIONS:
                ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                sockets[link.name, direction] = ours.detach()
                media.setdefault(link.name, {})[direction] = theirs.detach()
        flowgraph = Flowgraph(configuration, sockets)
        cleanup.callback(flowgraph.stop)
        for line in flowgraph.statements():
            say(line)
        write_radio_account(configuration, flowgraph, complete=False)
        for name, process in flowgraph.processes():
            ends.watch(name, process)
        start_nagi_link(emulator, program, path, configuration, media)
        cleanup.callback(emulator.end, END_TIMEOUT_S)
        ends.watch("nagi-link", emulator)
        flowgraph.start()
        ended = ends.wait()
        if ended is None:
            emulator.end(END_TIMEOUT_S)
        elif ended[1] is not emulator:
            raise Broken(f"the {ended[0]} {status_in_words(ended[1].returncode or 0)}")
        for line in (*flowgraph.errors(), *flowgraph.counts()):
            say(line)
        write_radio_account(configuration, flowgraph, complete=True)
        status = emulator.returncode or 0
        if status < 0:
            raise Broken(f"nagi-link {status_in_words(status)}")
        return status


def write_radio_account(configuration: Settings, flowgraph: Flowgraph, *, complete: bool) -> None:
    """radios.json (nagi_contracts/radios.py), if it is asked for and there are devices."""
    links = flowgraph.account()
    if configuration.radio_account is None or not links:
        return
    account = {
        "schema_version": 1,
        "version": VERSION,
        "uhd": bindings().uhd_version(),
        "complete": complete,
        "links": links,
    }
    write_json(Path(configuration.radio_account), account)


def start_nagi_link(
    emulator: Process,
    program: str,
    path: str,
    configuration: Settings,
    media: dict[str, dict[str, int]],
) -> None:
    """Starts it with its own configuration, which stands beside the one of this program."""
    descriptors = [number for directions in media.values() for number in directions.values()]
    own = Path(f"{path}.nagi-link")
    own.write_text(json.dumps(configuration.for_nagi_link(media)), encoding="utf-8")
    # Its working directory stays this one's: paths in the configuration are relative to that.
    emulator.start([program, "run", str(own)], descriptors)
    for number in descriptors:
        os.close(number)


def check(path: str) -> int:
    configuration = settings.read(path)
    document = json.dumps(configuration.for_nagi_link({}))
    done = subprocess.run(
        [nagi_link(), "check", "/dev/stdin"],
        input=document,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        return done.returncode
    print(json.dumps(configuration.document, indent=1))
    return 0


def examine(arguments: argparse.Namespace) -> int:
    if not arguments.device:
        return doctor.main(as_json=arguments.json)
    stages = device_doctor.DeviceStages(device_doctor.radio_of(arguments))
    return doctor.main(as_json=arguments.json, stages=stages.all())


def passed_on(arguments: list[str]) -> int:
    """What nagi-link answers over the same socket."""
    return subprocess.run([nagi_link(), *arguments], check=False).returncode


def main(child: Process | None) -> int:
    """`child`: of command `run`, becomes nagi-link."""
    # What this starts finds the same blocks.
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
    parser = argparse.ArgumentParser(
        prog="nagi-sdr", description="emulates links, some of which are radios of GNU Radio"
    )
    parser.add_argument("--version", action="version", version=f"nagi-sdr {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, what in (
        ("run", "emulate until SIGTERM, SIGINT, SIGHUP or a stop command"),
        ("check", "read a configuration, say what is wrong, or print it"),
    ):
        commands.add_parser(name, help=what).add_argument("config", help="configuration (JSON)")
    show = commands.add_parser("show", help="print the account of a running nagi-sdr")
    show.add_argument("socket", help="its control socket")
    change = commands.add_parser("set", help="change a direction of a running link")
    for argument in ("socket", "link", "direction", "changes"):
        change.add_argument(argument)
    calibrate.add_arguments(
        commands.add_parser(
            "calibrate", help="measure how often the receiver loses packets, over SNR and length"
        )
    )
    levels.add_arguments(
        commands.add_parser("levels", help="measure noise, and SNR over gain, of radio hardware")
    )
    stages = commands.add_parser("doctor", help="check stage by stage whether radios work here")
    device_doctor.add_arguments(stages)
    stages.add_argument("--json", action="store_true", help="one JSON object a stage")
    arguments = parser.parse_args()
    performed: dict[str, Callable[[], int]] = {
        "run": lambda: run(arguments.config, cast(Process, child)),
        "check": lambda: check(arguments.config),
        "show": lambda: passed_on(["show", arguments.socket]),
        "set": lambda: passed_on(
            ["set", arguments.socket, arguments.link, arguments.direction, arguments.changes]
        ),
        "calibrate": lambda: calibrate.main(arguments, say),
        "doctor": lambda: examine(arguments),
        "levels": lambda: levels.main(arguments),
    }
    try:
        return performed[arguments.command]()
    except UsrpMissing as error:
        say(f"{error}; {INSTALL}")
        return 2
    except DeviceError as error:
        say(f"{error}; {error.cure}")
        return 2
    except (ConfigError, SettingsError, TableError) as error:
        say(str(error))
        return 2
    except (Broken, NoOutcome, StationError, OSError) as error:
        say(str(error))
        return 1
