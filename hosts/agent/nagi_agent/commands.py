# SPDX-License-Identifier: Apache-2.0
"""Run a user's own programs (`traffic: command`), isolated from the host.

Each program runs as an ordinary user without capabilities, in its own PID namespace. Its working
directory is a file system in memory that no other process sees. When the program or the agent ends
or is killed, the kernel kills all processes that the program has started, including those in other
sessions and process groups, and removes the directory. The program must therefore stay in the
foreground. See pid_namespaces(7), unshare(1).

The first process of the namespace is a shell that waits for the program. If the program were the
first process, signals without a handler would not end it, because the kernel does not deliver them
to the first process of a PID namespace.
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
from nagi_agent.processes import build_setpriv_prefix, end_process, list_children

REQUIRED_PROGRAMS = ("unshare", "mount", "sh")  # build_contained_command() uses them
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
WORK = "/run/nagi"  # the working directory; each program's own file system is mounted there
# Make the working directory. Arguments: uid, gid, path of the working directory, number of files to
# mount, name and path of each file, command.
_ENTER = """\
mount -t tmpfs -o "mode=0700,uid=$1,gid=$2" nagi "$3" && cd "$3" && unset OLDPWD || exit
remaining=$4; shift 4
while test "$remaining" -gt 0; do
    if test -d "$2"; then mkdir "./$1"; else : >"./$1"; fi &&
    mount -o bind,ro "$2" "./$1" || exit; shift 2; remaining=$((remaining - 1))
done
exec "$@"
"""
# Fill the working directory. Arguments: number of sockets, directory to copy, path of each socket,
# command.
_BRING = """\
remaining=$1; cp -r "$2/." . && chmod -R a+rX . || exit; shift 2
while test "$remaining" -gt 0; do
    : >"${1##*/}" && mount --bind "$1" "${1##*/}" || exit; shift; remaining=$((remaining - 1))
done
exec "$@"
"""
_WAIT = '"$@"; exit "$?"'


def build_contained_command(
    command: list[str],
    user: str,
    bring: Optional[Sequence[str]] = None,
    work: str = WORK,
    files: Optional[Mapping[str, str]] = None,
) -> list[str]:
    """Return the command line that runs `command` as `user`, isolated from the host.

    Args:
        command: the program and its arguments.
        user: name of the user.
        bring: first the path of a directory whose files are copied into the program's working
            directory, then the paths of Unix sockets that are mounted there; None for neither.
        work: path of the working directory, as the program sees it.
        files: files and directories to mount read-only in the working directory, name -> path.
    """
    file_arguments = [word for pair in (files or {}).items() for word in pair]
    account = pwd.getpwnam(user)
    os.makedirs(work, mode=0o755, exist_ok=True)
    identity = [str(account.pw_uid), str(account.pw_gid)]
    return [
        *("unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--"),
        *(
            "sh",
            "-c",
            _ENTER,
            "sh",
            *identity,
            work,
            str(len(file_arguments) // 2),
            *file_arguments,
        ),
        *(("sh", "-c", _BRING, "sh", str(len(bring) - 1), *bring) if bring else ()),
        *build_setpriv_prefix(user),
        *("sh", "-c", _WAIT, "sh", *command),
    ]


def resolve_files(command: CommandPlan, paths: Mapping[str, str]) -> dict[str, str]:
    """Return the files that a command needs, as name -> path on this host.

    Args:
        command: the plan of the command.
        paths: this host's copies of the batch's files, "sha256/name" -> path.

    Raises:
        RuntimeError: This host has no copy of a file.
    """
    files = {}
    for file in command.files:
        path = paths.get(f"{file.sha256}/{file.name}")
        if path is None:
            raise RuntimeError(f"`files` lists {file.name}, but this host has no copy of it")
        files[file.name] = path
    return files


def end_contained(process: subprocess.Popen[bytes], timeout_s: float) -> None:
    """End a program that build_contained_command() runs, and everything that it has started.

    Args:
        process: the process that was started with the command line of build_contained_command().
        timeout_s: longest time to wait for each process.
    """
    if process.poll() is None:
        # When unshare is killed, the kernel also kills the first process of the namespace. The
        # first process ends after all other processes of the namespace, so wait for it.
        descriptors = [os.pidfd_open(child) for child in list_children(process.pid)]
        end_process(process, signal.SIGKILL, timeout_s)
        for descriptor in descriptors:
            select.select([descriptor], [], [], timeout_s)
            os.close(descriptor)


def build_environment(user: str, work: str = WORK) -> dict[str, str]:
    """Return the environment of a contained program. No variable of the agent is inherited."""
    return {
        "PATH": PATH,
        "HOME": work,
        "TMPDIR": work,
        "USER": user,
        "LOGNAME": user,
        "LANG": "C.UTF-8",
    }


def describe_exit_status(status: int) -> str:
    """Describe how a program ended.

    Args:
        status: the exit status; -N (subprocess) and 128 + N (shells) stand for signal N.
    """
    number = -status if status < 0 else status - 128
    if number > 0:
        try:
            return f"was ended by {signal.Signals(number).name}"
        except ValueError:
            pass
    return f"ended with status {status}"


def find_problem(command: list[str], user: str) -> Optional[str]:
    """Return why `user` cannot run a command on this host, with the cure, or None.

    A program that the experiment ships in `files` (./NAME) is not checked here, because the planner
    checks such programs.
    """
    program = command[0]
    if program.startswith("./"):
        return None
    path = shutil.which(program, path=PATH)
    if path is None:
        if os.path.exists(program):
            return f"{program} is not executable; run `chmod a+rx {program}`"
        if "/" in program:
            return f"{program} does not exist; install it, or in the virtual lab list it in `files`"
        return f"{program} is not in {PATH}; install it, or write its absolute path"
    try:
        test = subprocess.run([*build_setpriv_prefix(user), "test", "-x", path], check=False)
    except KeyError:
        return f"there is no user {user} to run {program}; run `useradd --system {user}`"
    if test.returncode != 0:
        return (
            f"user {user} cannot run {path}; permit all users to read and execute {path}, and to "
            "enter its parent directories"
        )
    return None


def list_commands(plan: RunPlan, node: str) -> list[tuple[str, list[str]]]:
    """Return (name of the flow, command line) of each command that a plan starts on a node."""
    commands = []
    for flow in plan.flows:
        if flow.command is None or node not in (flow.sender, flow.receiver):
            continue
        line = flow.command.server if flow.listener == node else flow.command.client
        if line is not None:
            commands.append((flow.name, line))
    return commands
