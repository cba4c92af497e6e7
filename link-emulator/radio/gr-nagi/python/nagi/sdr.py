# SPDX-License-Identifier: Apache-2.0
"""nagi-sdr: emulates links, some of which are radios.

nagi-link handles frames, queues, rates, delays, records, the account (a file with counters) and the
control socket, as it does without radios. For links that are radios, nagi-link passes
each transmitted packet to a flowgraph of this process. The flowgraph modulates the packet, sends
the waveform over a channel, and reports the receiver's outcome. This process starts nagi-link and
the flowgraph. If one of them ends, this process ends the other.

Exit status: 0 normal end, 1 failure while running, 2 invalid input.
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
from .usrp import INSTALL, DeviceError, UsrpMissing, load_bindings
from .version import VERSION

END_TIMEOUT_S = 5.0


class Broken(Exception):
    """A process of the emulator has ended unexpectedly."""


def say(text: str) -> None:
    print(f"nagi-sdr: {text}", file=sys.stderr, flush=True)


def find_nagi_link() -> str:
    """Return the path of nagi-link.

    The function looks at $NAGI_LINK, in nagi-sdr's directory, and in $PATH, in this order.

    Raises:
        SettingsError: nagi-link was not found.
    """
    if path := os.environ.get("NAGI_LINK"):
        return path
    neighbour = Path(sys.argv[0]).resolve().parent / "nagi-link"
    program = str(neighbour) if os.access(neighbour, os.X_OK) else shutil.which("nagi-link")
    if program is None:
        raise SettingsError(
            "there is no nagi-link in the directory of nagi-sdr or in $PATH; build it with `make`"
        )
    return program


class Process(Protocol):
    """The interface of privileges.Child."""

    pid: int
    returncode: int | None

    def start(self, command: list[str], descriptors: list[int]) -> None: ...

    def wait(self) -> int | None: ...

    def terminate(self, timeout_s: float) -> None: ...


Watched = Process | subprocess.Popen[str]


class EndWatcher:
    """Waits until a watched process ends or a signal asks this process to end.

    The constructor replaces the handlers of SIGTERM, SIGINT and, unless it is ignored, SIGHUP.
    """

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
        """Wait for an event; return name and process if a process ended, None after a signal.

        If several processes ended, only one of them is returned.
        """
        for key, _ in self._selector.select():
            if key.data is None:
                return None
            name, process = key.data
            process.wait()
            return name, process
        return None


def describe_exit_status(status: int) -> str:
    """Describe how a process ended, given its exit status or the negative number of a signal."""
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with status {status}"


def run(path: str, emulator: Process) -> int:
    """Emulate the links of a configuration until nagi-link ends or a signal arrives.

    Args:
        path: The configuration's file.
        emulator: The child process that becomes nagi-link.

    Returns:
        nagi-link's exit status.

    Raises:
        Broken: Another process ended before nagi-link, or a signal ended nagi-link.
    """
    configuration = settings.read_settings(path)
    program = find_nagi_link()
    ends = EndWatcher()
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
        for line in flowgraph.describe_devices():
            say(line)
        write_radio_account(configuration, flowgraph, complete=False)
        for name, process in flowgraph.list_processes():
            ends.watch(name, process)
        start_nagi_link(emulator, program, path, configuration, media)
        cleanup.callback(emulator.terminate, END_TIMEOUT_S)
        ends.watch("nagi-link", emulator)
        flowgraph.start()
        ended = ends.wait()
        if ended is None:
            emulator.terminate(END_TIMEOUT_S)
        elif ended[1] is not emulator:
            raise Broken(f"the {ended[0]} {describe_exit_status(ended[1].returncode or 0)}")
        for line in (*flowgraph.list_errors(), *flowgraph.describe_counts()):
            say(line)
        write_radio_account(configuration, flowgraph, complete=True)
        status = emulator.returncode or 0
        if status < 0:
            raise Broken(f"nagi-link {describe_exit_status(status)}")
        return status


def write_radio_account(configuration: Settings, flowgraph: Flowgraph, *, complete: bool) -> None:
    """Write radios.json (nagi_contracts/radios.py), unless it has no path or there are no devices.

    Args:
        configuration: The configuration, which has the path.
        flowgraph: The source of the counts.
        complete: False at the start, True when the links have ended.
    """
    links = flowgraph.list_accounts()
    if configuration.radio_account is None or not links:
        return
    account = {
        "schema_version": 1,
        "version": VERSION,
        "uhd": load_bindings().uhd_version(),
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
    """Write nagi-link's configuration to the file PATH.nagi-link, and start nagi-link with it.

    The descriptors in `media`, which nagi-link inherits, are closed in this process.
    """
    descriptors = [number for directions in media.values() for number in directions.values()]
    nagi_link_config = Path(f"{path}.nagi-link")
    nagi_link_config.write_text(json.dumps(configuration.to_nagi_link(media)), encoding="utf-8")
    # nagi-link inherits the working directory, to which paths in the configuration are relative.
    emulator.start([program, "run", str(nagi_link_config)], descriptors)
    for number in descriptors:
        os.close(number)


def check(path: str) -> int:
    """Check a configuration and return the exit status, which is 0 if the configuration is valid.

    A valid configuration is printed to standard output. Otherwise, nagi-link's message goes to
    standard error, and the exit status is nagi-link's.
    """
    configuration = settings.read_settings(path)
    document = json.dumps(configuration.to_nagi_link({}))
    process = subprocess.run(
        [find_nagi_link(), "check", "/dev/stdin"],
        input=document,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode != 0:
        sys.stderr.write(process.stderr)
        return process.returncode
    print(json.dumps(configuration.document, indent=1))
    return 0


def examine(arguments: argparse.Namespace) -> int:
    """Run the stages of `nagi-sdr doctor` and return the exit status: 1 if a stage failed, else 0.

    With `--device`, the stages check radio hardware; without it, simulated radios.
    """
    if not arguments.device:
        return doctor.main(as_json=arguments.json)
    stages = device_doctor.DeviceStages(device_doctor.build_radio(arguments))
    return doctor.main(as_json=arguments.json, stages=stages.list_stages())


def run_nagi_link(arguments: list[str]) -> int:
    """Run `nagi-link ARGUMENTS` and return its exit status."""
    return subprocess.run([find_nagi_link(), *arguments], check=False).returncode


def main(child: Process | None) -> int:
    """Run nagi-sdr and return its exit status (see the module).

    Args:
        child: For the command `run`, the process that becomes nagi-link. None for other commands.
    """
    # Processes that this one starts import the same packages.
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
    parser = argparse.ArgumentParser(
        prog="nagi-sdr", description="emulates links, some of which are radios of GNU Radio"
    )
    parser.add_argument("--version", action="version", version=f"nagi-sdr {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, description in (
        ("run", "emulate until SIGTERM, SIGINT, SIGHUP or a stop command"),
        ("check", "check a configuration and print it, or report what is wrong"),
    ):
        command = commands.add_parser(name, help=description)
        command.add_argument("config", help="configuration (JSON)")
    show = commands.add_parser("show", help="print the account of a running nagi-sdr")
    show.add_argument("socket", help="control socket of the running nagi-sdr")
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
    stages.add_argument("--json", action="store_true", help="print one JSON object per stage")
    arguments = parser.parse_args()
    functions: dict[str, Callable[[], int]] = {
        "run": lambda: run(arguments.config, cast(Process, child)),
        "check": lambda: check(arguments.config),
        "show": lambda: run_nagi_link(["show", arguments.socket]),
        "set": lambda: run_nagi_link(
            ["set", arguments.socket, arguments.link, arguments.direction, arguments.changes]
        ),
        "calibrate": lambda: calibrate.main(arguments, say),
        "doctor": lambda: examine(arguments),
        "levels": lambda: levels.main(arguments),
    }
    try:
        return functions[arguments.command]()
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
