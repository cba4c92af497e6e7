# SPDX-License-Identifier: Apache-2.0
"""A sandbox (bubblewrap), for guests of the virtual lab and for compilers of users' schemes.

A program in the sandbox sees, read-only, the system's programs and libraries, a few files of /etc,
and the files that the caller lists. The caller also lists the directories to which the program may
write. The program has no network, no capabilities, no supplementary groups, and sees no process
outside the sandbox. A guest also gets a seccomp filter (hosts/guest/sandbox_filter.cpp), which
permits only the system calls of User-mode Linux. docs/virtual-lab.md lists the files and devices
that a guest can see.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from nagi_contracts.errors import refuse

FILTER = "sandbox.bpf"  # file with the seccomp filter, in the directory of the guest kernel
# Programs and libraries. If /bin and others are links into /usr, the sandbox has the same links.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Files of /etc: the cache of libraries, targets of links in /usr, names of ports and protocols,
# names that ip(8) prints, and GNU Radio's settings. None of them has a secret.
_ETC = ("alternatives", "gnuradio", "iproute2", "ld.so.cache", "protocols", "services")
# The rest of the sandbox's /etc, equal on every machine. User nobody is not 65534, because the
# kernel shows 65534 as owner and group of files whose real owner is not mapped in the sandbox.
_OWN_ETC = {
    "passwd": "root:x:0:0:root:/run:/bin/sh\nnobody:x:65533:65533:nobody:/run:/usr/sbin/nologin\n",
    "group": "root:x:0:\nnogroup:x:65533:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\n",
}
# Directories that exist in the sandbox, but are empty.
_EMPTY = ("/home", "/mnt", "/root", "/run", "/sys", "/tmp", "/var/tmp")
_HOST_NAME = "guest"


@dataclass(frozen=True)
class Sandbox:
    """A sandbox that shows a program some files of the machine, and nothing else.

    Attributes:
        filter: The file with the seccomp filter; None permits all system calls.
        writable: Files and directories that programs may write: path in the sandbox -> path on
            this machine.
        readable: Files and directories that programs may only read: path in the sandbox -> path on
            this machine.
    """

    filter: Path | None = None
    writable: Mapping[Path, Path] = field(default_factory=dict)
    readable: Mapping[Path, Path] = field(default_factory=dict)

    def start(
        self,
        command: Iterable[str],
        environment: Mapping[str, str],
        output: int | IO[bytes],
        *,
        processor: int | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a command in the sandbox, in a new session, and return without waiting for its end.

        The command's standard input is empty. The command is killed when this process ends.

        Args:
            command: The command.
            environment: Its environment variables, in addition to PATH.
            output: The file for its standard output and standard error, or subprocess.PIPE.
            processor: The only processor that the command may use; None permits all.

        Raises:
            OSError: bubblewrap or the filter does not exist.
        """
        affinity = () if processor is None else ("taskset", "--cpu-list", str(processor))
        with ExitStack() as stack:
            filters = []
            if self.filter is not None:
                filters.append(stack.enter_context(self.filter.open("rb")).fileno())
            etc_files = {
                name: stack.enter_context(_make_memory_file(text)).fileno()
                for name, text in _OWN_ETC.items()
            }
            sandbox = self._make_command(filters, etc_files, environment)
            return subprocess.Popen(
                [*affinity, *sandbox, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(*filters, *etc_files.values()),
                extra_groups=[] if _can_drop_groups() else None,
                # The program gets no terminal, so it cannot inject input, and Ctrl-C goes to nagi,
                # which then ends the program. bubblewrap's own --new-session would take effect
                # before --die-with-parent. If nagi ended in between, the sandbox would survive it.
                start_new_session=True,
            )

    def run(
        self, command: Iterable[str], environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the sandbox, and wait for its end.

        `stdout` of the result has standard output and standard error. The exit status is not
        checked.

        Raises:
            InputError: This machine cannot make a sandbox.
        """
        require_sandbox()
        process = self.start(command, environment, subprocess.PIPE)
        output, _ = process.communicate()
        text = output.decode(errors="replace")
        return subprocess.CompletedProcess(process.args, process.returncode, text)

    def _make_command(
        self, filters: Iterable[int], etc_files: Mapping[str, int], environment: Mapping[str, str]
    ) -> list[str]:
        """Return the command line of bubblewrap, without the command to run in the sandbox.

        Args:
            filters: File descriptors of files with seccomp filters.
            etc_files: Name of a file in /etc -> file descriptor of its content.
            environment: Environment variables of the command, in addition to PATH.
        """
        variables = {"PATH": os.defpath, **environment}
        return [
            *("bwrap", "--unshare-all", "--hostname", _HOST_NAME, "--as-pid-1"),
            *("--die-with-parent", "--clearenv", "--cap-drop", "ALL"),
            *(word for descriptor in filters for word in ("--seccomp", str(descriptor))),
            *(word for name, value in variables.items() for word in ("--setenv", name, value)),
            *_bind_system(),
            *(word for path in _EMPTY for word in ("--perms", "0755", "--dir", path)),
            *(
                word
                for name, descriptor in etc_files.items()
                for word in ("--perms", "0644", "--file", str(descriptor), f"/etc/{name}")
            ),
            *("--dev", "/dev", "--tmpfs", "/dev/shm"),
            # Read-only, because /proc/sys changes settings of this machine, and root may write to
            # /proc/sys without a capability.
            *("--proc", "/proc", "--remount-ro", "/proc"),
            *_bind_paths("--ro-bind", self.readable),
            *_bind_paths("--bind", self.writable),
            *("--remount-ro", "/", "--chdir", "/"),
        ]


def require_sandbox(filter_: Path | None = None) -> None:
    """Check that this machine can make a sandbox, by running `true` in a sandbox.

    Args:
        filter_: The file with the seccomp filter to try; None tries without a filter.

    Raises:
        InputError: The sandbox cannot be made; the message has the cure.
    """
    if shutil.which("bwrap") is None:
        raise refuse("the sandbox needs bwrap", "install it: `apt-get install bubblewrap`")
    process = Sandbox(filter_).start(["true"], {}, subprocess.PIPE)
    output, _ = process.communicate()
    if process.returncode != 0:
        raise refuse(
            f"the sandbox cannot be made: {output.decode(errors='replace').strip()}",
            "allow user namespaces (sysctl user.max_user_namespaces, "
            "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), "
            "or run it as root",
        )


def _bind_system() -> list[str]:
    """Return bubblewrap's arguments that show the files of _SYSTEM and _ETC that exist."""
    arguments = []
    for path in map(Path, _SYSTEM):
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    etc = [Path("/etc") / name for name in _ETC]
    existing = {path: path for path in etc if path.exists()}
    return [*arguments, "--perms", "0755", "--dir", "/etc", *_bind_paths("--ro-bind", existing)]


def _make_memory_file(text: str) -> IO[bytes]:
    """Return a file in memory with `text`, positioned at its beginning."""
    file = os.fdopen(os.memfd_create("etc"), "w+b")
    file.write(text.encode())
    file.seek(0)
    return file


def _bind_paths(option: str, bindings: Mapping[Path, Path]) -> list[str]:
    """Return bubblewrap's arguments that show paths of this machine in the sandbox.

    bubblewrap makes missing parent directories with mode 0700, so the arguments make the parent
    directories first, with mode 0755.

    Args:
        option: The option that shows one path: --bind, or --ro-bind to permit only reading.
        bindings: Path in the sandbox -> path on this machine.
    """
    arguments = []
    for inside, outside in bindings.items():
        for parent in reversed(inside.parents):
            arguments += ["--perms", "0755", "--dir", str(parent)]
        arguments += [option, str(outside.resolve()), str(inside)]
    return arguments


def _can_drop_groups() -> bool:
    """Return whether this process may drop its supplementary groups.

    Only root may, and only if the user namespace permits setgroups(2).
    """
    return os.geteuid() == 0 and Path("/proc/self/setgroups").read_text().strip() == "allow"
