# SPDX-License-Identifier: Apache-2.0
"""Child processes that never outlive the agent, and have no more rights than they need."""

from __future__ import annotations

import ctypes
import os
import pwd
import signal
import subprocess
from typing import IO, Optional, Union

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)

Output = Union[int, IO[bytes]]


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def unprivileged(user: str, *capabilities: str) -> list[str]:
    """The start of a command line that runs the rest as `user`, with `capabilities` alone.

    The signal is set again because changing the user clears it.
    """
    account = pwd.getpwnam(user)
    caps = ",".join(f"+{name}" for name in capabilities) or "-all"
    return [
        "setpriv",
        f"--reuid={account.pw_uid}",
        f"--regid={account.pw_gid}",
        "--clear-groups",
        f"--inh-caps=-all,{caps}" if capabilities else "--inh-caps=-all",
        f"--ambient-caps=-all,{caps}" if capabilities else "--ambient-caps=-all",
        "--no-new-privs",
        "--pdeathsig=KILL",
        "--",
    ]


def service_user() -> str:
    """As whom traffic programs and captures run: `nagi`, which provisioning makes, else nobody."""
    try:
        return pwd.getpwnam("nagi").pw_name
    except KeyError:
        return "nobody"


def start(
    command: list[str],
    *,
    stdout: Output = subprocess.DEVNULL,
    stderr: Output = subprocess.DEVNULL,
    cwd: Optional[str] = None,
    env: Optional[dict[str, str]] = None,
    pass_fds: tuple[int, ...] = (),
    executable: Optional[str] = None,
) -> subprocess.Popen[bytes]:
    """Starts `command`, its program in `executable` if that is given; it is killed if the agent
    dies."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        cwd=cwd,
        env=env,
        pass_fds=pass_fds,
        executable=executable,
        preexec_fn=_die_with_parent,
    )


def end(process: subprocess.Popen[bytes], how: signal.Signals, timeout_s: float) -> int:
    """Ends `process` with a signal, by force if it takes longer than `timeout_s` seconds.

    Returns its exit status.
    """
    if process.poll() is None:
        process.send_signal(how)
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def children(pid: int) -> list[int]:
    """The processes whose parent is `pid`."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    # The name, in brackets, may hold anything; then come state and parent.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:  # it has ended
                continue
            if parent == pid:
                found.append(int(entry))
    return found


def output_of(command: list[str]) -> str:
    """What a short command prints. Raises RuntimeError with its complaint if it fails."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        complaint = (done.stderr or done.stdout).strip() or f"exit status {done.returncode}"
        raise RuntimeError(f"{' '.join(command)}: {complaint}")
    return done.stdout


def log_of(path: str, lines: int = 3) -> str:
    """The last lines of a log, as one line; empty if there is none."""
    try:
        with open(path, "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - 2000))
            text = log.read().decode(errors="replace")
    except OSError:
        return ""
    return " / ".join(line.strip() for line in text.splitlines()[-lines:] if line.strip())
