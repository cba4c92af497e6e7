# SPDX-License-Identifier: Apache-2.0
"""Run nagi in a process of its own without loading its modules each time.

Loading takes one to two seconds, and some tests run nagi sixty times. Therefore each command is a
fork of a process that has loaded the modules and does nothing else.

That is this file, run as a program. A fork of pytest itself would have what pytest's other threads
were at: locks that nobody unlocks, and libraries that cannot stand it (gRPC).
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

_TIMEOUT_S = 60.0
_COLUMNS = 200


def nagi(
    *arguments: str,
    cwd: Path | None = None,
    user: int | None = None,
    environment: dict[str, str] | None = None,
    constants: dict[str, float] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `nagi ARGUMENTS` to its end, for a terminal of 200 columns.

    Args:
        arguments: The arguments of the command.
        cwd: The working directory.
        user: The number of the user that runs the command.
        environment: The environment of the command.
        constants: New values of constants in nagi's modules, by names such as
            "nagi.labs.guest.STUCK_S".
    """
    with tempfile.TemporaryDirectory() as directory:
        out, err = Path(directory, "out"), Path(directory, "err")
        request = {
            "arguments": [str(each) for each in arguments],
            "cwd": str(cwd or Path.cwd()),
            "user": user,
            "environment": {**os.environ, "COLUMNS": str(_COLUMNS), **(environment or {})},
            "constants": constants or {},
            "out": str(out),
            "err": str(err),
        }
        loaded = _loaded()
        assert loaded.stdin is not None and loaded.stdout is not None
        loaded.stdin.write(json.dumps(request) + "\n")
        loaded.stdin.flush()
        status = int(loaded.stdout.readline())
        return subprocess.CompletedProcess(arguments, status, out.read_text(), err.read_text())


@cache
def _loaded() -> subprocess.Popen[str]:
    """Start the process that has loaded the command. It ends with this one, as its input does."""
    return subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _serve() -> None:
    """Run the command of each input line, and answer with its exit status."""
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(request)
        print(_status(child, Path(request["err"])), flush=True)


def _run(request: dict[str, Any]) -> NoReturn:
    status = 1
    try:
        for descriptor, place in enumerate((os.devnull, request["out"], request["err"])):
            flags = os.O_RDWR | os.O_CREAT
            os.dup2(os.open(place, flags, 0o666), descriptor)
        faulthandler.dump_traceback_later(_TIMEOUT_S - 2, file=2)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        os.environ.clear()
        os.environ.update(request["environment"])
        for console in (out_console, error_console):
            console.width = _COLUMNS  # they have looked at theirs
        for name, value in request["constants"].items():
            module, _, constant = name.rpartition(".")
            setattr(importlib.import_module(module), constant, value)
        sys.argv = ["nagi", *request["arguments"]]
        os.chdir(request["cwd"])
        if request["user"] is not None:
            os.setgroups([])
            os.setgid(request["user"])
            os.setuid(request["user"])
        main()
    except SystemExit as leave:
        status = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _status(child: int, err: Path) -> int:
    """Return the exit status of `child`, as subprocess reports it.

    A child that exceeds the time limit is killed; it writes its stack to `err`.
    """
    until = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < until:
        ended, how = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(how)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    _, how = os.waitpid(child, 0)
    with err.open("a") as file:
        file.write(f"nagi was not done after {_TIMEOUT_S:g} s\n")
    return os.waitstatus_to_exitcode(how)


if __name__ == "__main__":
    from nagi.cli.main import main
    from nagi.terminal.console import error_console, out_console

    _serve()
