# SPDX-License-Identifier: Apache-2.0
"""Run child processes that end with the agent and have no more privileges than they need."""

from __future__ import annotations

import ctypes
import os
import pwd
import signal
import subprocess
from typing import IO, Optional, Union

_PR_SET_PDEATHSIG = 1
_SETPRIV = "setpriv"
_libc = ctypes.CDLL(None, use_errno=True)

Output = Union[int, IO[bytes]]


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def build_setpriv_prefix(user: str, *capabilities: str) -> list[str]:
    """Return a prefix for a command line, with which the command runs as `user`.

    setpriv also sets the signal that kills the process when the agent dies, because a change of the
    user clears this setting.

    Args:
        user: name of the user.
        capabilities: the only capabilities that the process gets, such as "net_raw".

    Raises:
        KeyError: There is no such user.
    """
    account = pwd.getpwnam(user)
    caps = ",".join(f"+{name}" for name in capabilities) or "-all"
    return [
        _SETPRIV,
        f"--reuid={account.pw_uid}",
        f"--regid={account.pw_gid}",
        "--clear-groups",
        f"--inh-caps=-all,{caps}" if capabilities else "--inh-caps=-all",
        f"--ambient-caps=-all,{caps}" if capabilities else "--ambient-caps=-all",
        "--no-new-privs",
        "--pdeathsig=KILL",
        "--",
    ]


def find_service_user() -> str:
    """Return the user for traffic and captures: `nagi` if provisioning created it, else nobody."""
    try:
        return pwd.getpwnam("nagi").pw_name
    except KeyError:
        return "nobody"


def start_process(
    command: list[str],
    *,
    stdout: Output = subprocess.DEVNULL,
    stderr: Output = subprocess.DEVNULL,
    cwd: Optional[str] = None,
    env: Optional[dict[str, str]] = None,
    pass_fds: tuple[int, ...] = (),
    executable: Optional[str] = None,
) -> subprocess.Popen[bytes]:
    """Start a process that is killed when the agent dies.

    The process has no standard input. By default its output is discarded. The arguments are those
    of subprocess.Popen.
    """
    # The prefix has the same setting. Without a function to call in the child, Popen lets the child
    # share this process's memory until it executes its program: in a guest, 13 ms faster.
    has_prefix = command[0] == _SETPRIV
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        cwd=cwd,
        env=env,
        pass_fds=pass_fds,
        executable=executable,
        preexec_fn=None if has_prefix else _die_with_parent,
    )


def end_process(process: subprocess.Popen[bytes], number: signal.Signals, timeout_s: float) -> int:
    """End a process by a signal, and kill it if it still runs after `timeout_s` seconds.

    Returns:
        The exit status as in subprocess: -N if signal N ended the process.
    """
    if process.poll() is None:
        process.send_signal(number)
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def list_children(pid: int) -> list[int]:
    """Return the process ids of a process's children."""
    children = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    # The name of the process, in parentheses, may contain any character. State and
                    # parent follow it.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:  # the process has ended
                continue
            if parent == pid:
                children.append(int(entry))
    return children


def run_command(command: list[str]) -> str:
    """Run a command, and return what it prints to standard output.

    Raises:
        OSError: The program does not exist, or cannot be executed.
        RuntimeError: The command failed. The message has what the command printed.
    """
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        reason = (result.stderr or result.stdout).strip() or f"exit status {result.returncode}"
        raise RuntimeError(f"{' '.join(command)}: {reason}")
    return result.stdout


def read_log_tail(path: str, lines: int = 3) -> str:
    """Return the last lines of a log as one line, for messages; "" if the log does not exist."""
    try:
        with open(path, "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - 2000))
            text = log.read().decode(errors="replace")
    except OSError:
        return ""
    return " / ".join(line.strip() for line in text.splitlines()[-lines:] if line.strip())
