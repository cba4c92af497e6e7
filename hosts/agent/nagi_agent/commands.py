# SPDX-License-Identifier: Apache-2.0
"""Programs of the user's own (`traffic: command`), kept apart from the host.

Each runs as an ordinary user without any right, in a PID namespace and a working directory of its
own: a file system in memory that nobody else sees. Both end with the program that was started,
whoever ends it, and with the agent, even if it is killed: the kernel then kills everything that the
program started, in whatever session or group, and forgets the directory. So it has to stay in the
foreground. See pid_namespaces(7), unshare(1).

The namespace's first process is a shell that waits for the program: the kernel spares the first
process the signals it does not handle, and the program is to end by its own as anywhere else.
"""

from __future__ import annotations

import os
import pwd
import select
import shutil
import signal
import subprocess
from typing import Mapping, Optional, Sequence

from nagi_agent.contracts import CommandPlan, RunPlan
from nagi_agent.processes import children, end, unprivileged

NEEDED = ("unshare", "mount", "sh")  # to run them
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
WORK = "/run/nagi"  # where each program sees its own directory in the place of the agent's
_ENTER = """\
mount -t tmpfs -o "mode=0700,uid=$1,gid=$2" nagi "$3" && cd "$3" && unset OLDPWD || exit
left=$4; shift 4
while test "$left" -gt 0; do
    if test -d "$2"; then mkdir "./$1"; else : >"./$1"; fi &&
    mount -o bind,ro "$2" "./$1" || exit; shift 2; left=$((left - 1))
done
exec "$@"
"""
_BRING = """\
left=$1; cp -r "$2/." . && chmod -R a+rX . || exit; shift 2
while test "$left" -gt 0; do
    : >"${1##*/}" && mount --bind "$1" "${1##*/}" || exit; shift; left=$((left - 1))
done
exec "$@"
"""
_WAIT = '"$@"; exit "$?"'


def contained(
    command: list[str],
    user: str,
    bring: Optional[Sequence[str]] = None,
    work: str = WORK,
    files: Optional[Mapping[str, str]] = None,
) -> list[str]:
    """Return the command line that runs `command` as `user`, kept apart.

    `bring`: a directory whose files it is to find in its own, and paths of its host's Unix sockets
    that it is to find there, too. `work`: where it sees its own directory. `files`: files and
    directories that it is to find there, too, read-only: name there -> path.
    """
    named = [word for pair in (files or {}).items() for word in pair]
    account = pwd.getpwnam(user)
    os.makedirs(work, mode=0o755, exist_ok=True)
    identity = [str(account.pw_uid), str(account.pw_gid)]
    return [
        *("unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--"),
        *("sh", "-c", _ENTER, "sh", *identity, work, str(len(named) // 2), *named),
        *(("sh", "-c", _BRING, "sh", str(len(bring) - 1), *bring) if bring else ()),
        *unprivileged(user),
        *("sh", "-c", _WAIT, "sh", *command),
    ]


def files_of(command: CommandPlan, paths: Mapping[str, str]) -> dict[str, str]:
    """Return a command's files, name -> path. `paths`: the batch's, where this host has them.

    Raises:
        RuntimeError: this host has not been given one.
    """
    found = {}
    for file in command.files:
        path = paths.get(f"{file.sha256}/{file.name}")
        if path is None:
            raise RuntimeError(f"`files` has {file.name}, which this host has not been given")
        found[file.name] = path
    return found


def end_all(process: subprocess.Popen[bytes], timeout_s: float) -> None:
    """Ends what contained() started; on return nothing of it is left."""
    if process.poll() is None:
        # The namespace's first process is killed with unshare, and has not ended before all others.
        first = [os.pidfd_open(child) for child in children(process.pid)]
        end(process, signal.SIGKILL, timeout_s)
        for descriptor in first:
            select.select([descriptor], [], [], timeout_s)
            os.close(descriptor)


def environment(user: str, work: str = WORK) -> dict[str, str]:
    """What the programs find in their environment: nothing of the agent's."""
    return {
        "PATH": PATH,
        "HOME": work,
        "TMPDIR": work,
        "USER": user,
        "LOGNAME": user,
        "LANG": "C.UTF-8",
    }


def status_in_words(status: int) -> str:
    """How a program ended: from its own status, or from the shell's of it."""
    number = -status if status < 0 else status - 128
    if number > 0:
        try:
            return f"was ended by {signal.Signals(number).name}"
        except ValueError:
            pass
    return f"ended with status {status}"


def missing(command: list[str], user: str) -> Optional[str]:
    """Return why `user` cannot run a command here, with the cure; None if he can. The planner has
    checked that everybody can run a program of the command's own `files`."""
    program = command[0]
    if program.startswith("./"):
        return None
    found = shutil.which(program, path=PATH)
    if found is None:
        if os.path.exists(program):
            return f"{program} is no program; make it executable: `chmod a+rx {program}`"
        if "/" in program:
            return f"{program} is not there; install it, or in the virtual lab name it in `files`"
        return f"{program} is not there in {PATH}; install it, or give its path from / on"
    try:
        allowed = subprocess.run([*unprivileged(user), "test", "-x", found], check=False)
    except KeyError:
        return f"there is no user {user} to run {program}; make it: `useradd --system {user}`"
    if allowed.returncode != 0:
        return (
            f"{found} cannot be run by user {user}; let everybody read and execute it, and enter "
            "the directories above it"
        )
    return None


def commands_on(plan: RunPlan, node: str) -> list[tuple[str, list[str]]]:
    """(flow, command line) of everything that a plan starts on a node."""
    found = []
    for flow in plan.flows:
        if flow.command is None or node not in (flow.sender, flow.receiver):
            continue
        line = flow.command.server if flow.listener == node else flow.command.client
        if line is not None:
            found.append((flow.name, line))
    return found
