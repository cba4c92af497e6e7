# SPDX-License-Identifier: Apache-2.0
"""The command in a process of its own that need not load it: a fork of this one. Loading it takes a
second or two, and some tests run it sixty times."""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import NoReturn, TextIO

from nagi.cli.main import main
from nagi.terminal.console import error_console, out_console

_TIMEOUT_S = 60.0
_COLUMNS = 200


def nagi(
    *arguments: str,
    cwd: Path | None = None,
    user: int | None = None,
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs `nagi ARGUMENTS` for a terminal of 200 columns, to its end; as `user`, by number."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if child == 0:
            _run(list(arguments), cwd, user, environment or {}, out, err)
        status = _status(child, err)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, status, out.read(), err.read())


def _run(
    arguments: list[str],
    cwd: Path | None,
    user: int | None,
    environment: dict[str, str],
    out: TextIO,
    err: TextIO,
) -> NoReturn:
    status = 1
    try:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        faulthandler.dump_traceback_later(_TIMEOUT_S - 2, file=2)
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        os.environ.update({"COLUMNS": str(_COLUMNS), **environment})
        for console in (out_console, error_console):
            console.width = _COLUMNS  # they have looked at theirs
        sys.argv = ["nagi", *arguments]
        sys.modules["__main__"].__package__ = None  # it is no `python -m pytest`
        if cwd is not None:
            os.chdir(cwd)
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        main()
    except SystemExit as leave:
        status = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _status(child: int, err: TextIO) -> int:
    """Return its exit status, as subprocess gives it. Raises AssertionError with where it was, if
    it takes too long."""
    until = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < until:
        ended, how = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(how)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    err.seek(0)
    raise AssertionError(f"nagi was not done after {_TIMEOUT_S:g} s: {err.read()}")
