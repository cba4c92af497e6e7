# SPDX-License-Identifier: Apache-2.0
"""A sandbox (bubblewrap): for guests of the virtual lab, and for compilers of users' schemes.

It begins empty. A program in it sees the system's programs and libraries, a few files of /etc, and
what it is given, all read-only, and writes to the directories that it is given for that. It has no
network, no capability, no other process and no supplementary group. A guest's has a seccomp filter
(hosts/guest/sandbox_filter.cpp), too, which permits only the system calls of User-mode Linux.
docs/virtual-lab.md lists what a guest can see.
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

FILTER = "sandbox.bpf"  # in the directory of the guest kernel
# Programs and libraries. Where /bin and its like are links into /usr, they are links inside, too.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Of /etc: where libraries are, what links of /usr lead to, names of ports and protocols, names that
# ip(8) prints, and GNU Radio's settings. None of them has a secret.
_ETC = ("alternatives", "gnuradio", "iproute2", "ld.so.cache", "protocols", "services")
# The rest of a guest's /etc, the same on every machine. Its nobody is not 65534: that is the owner
# and the group of every file outside whose own is not known inside.
_OWN_ETC = {
    "passwd": "root:x:0:0:root:/run:/bin/sh\nnobody:x:65533:65533:nobody:/run:/usr/sbin/nologin\n",
    "group": "root:x:0:\nnogroup:x:65533:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\n",
}
_EMPTY = ("/home", "/mnt", "/root", "/run", "/sys", "/tmp", "/var/tmp")
_HOST_NAME = "guest"


@dataclass(frozen=True)
class Sandbox:
    """A sandbox that shows a program some files of the machine, and nothing else.

    `filter`: the file with the seccomp filter; None: all system calls are allowed. `writable`,
    `readable`: path inside -> path outside."""

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
        """Start a command in the sandbox, in a session of its own. `output`: where its standard
        output and error go. `processor`: the only one that it may use, None: any.

        Raises OSError if bubblewrap or the filter is not there.
        """
        affinity = () if processor is None else ("taskset", "--cpu-list", str(processor))
        with ExitStack() as stack:
            rules = [] if self.filter is None else [stack.enter_context(self.filter.open("rb"))]
            texts = {
                name: stack.enter_context(_memory_file(text)) for name, text in _OWN_ETC.items()
            }
            descriptors = {name: text.fileno() for name, text in texts.items()}
            filters = [each.fileno() for each in rules]
            sandbox = self._bubblewrap(filters, descriptors, environment)
            return subprocess.Popen(
                [*affinity, *sandbox, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(*filters, *descriptors.values()),
                extra_groups=[] if _can_drop_groups() else None,
                # It has no terminal, so none can be typed into, and Ctrl-C is for nagi, which then
                # ends it. bubblewrap's own --new-session would come before the sandbox is to die
                # with its parent: between the two it could be left behind.
                start_new_session=True,
            )

    def run(
        self, command: Iterable[str], environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the sandbox to its end. Its `stdout` is what it wrote, errors included.

        Raises:
            InputError: there can be no sandbox on this machine.
        """
        require_sandbox()
        process = self.start(command, environment, subprocess.PIPE)
        said, _ = process.communicate()
        text = said.decode(errors="replace")
        return subprocess.CompletedProcess(process.args, process.returncode, text)

    def _bubblewrap(
        self, filters: Iterable[int], etc: Mapping[str, int], environment: Mapping[str, str]
    ) -> list[str]:
        variables = {"PATH": os.defpath, **environment}
        return [
            *("bwrap", "--unshare-all", "--hostname", _HOST_NAME, "--as-pid-1"),
            *("--die-with-parent", "--clearenv", "--cap-drop", "ALL"),
            *(word for rules in filters for word in ("--seccomp", str(rules))),
            *(word for name, value in variables.items() for word in ("--setenv", name, value)),
            *_system(),
            *(word for path in _EMPTY for word in ("--perms", "0755", "--dir", path)),
            *(
                word
                for name, text in etc.items()
                for word in ("--perms", "0644", "--file", str(text), f"/etc/{name}")
            ),
            *("--dev", "/dev", "--tmpfs", "/dev/shm"),
            # Read-only, as /proc/sys is this machine's: root may write there without a capability.
            *("--proc", "/proc", "--remount-ro", "/proc"),
            *_binds("--ro-bind", self.readable),
            *_binds("--bind", self.writable),
            *("--remount-ro", "/", "--chdir", "/"),
        ]


def require_sandbox(filter_: Path | None = None) -> None:
    """Raise InputError if there can be no sandbox on this machine, with what would help. `filter_`:
    the seccomp filter to try."""
    if shutil.which("bwrap") is None:
        raise refuse("the sandbox needs bwrap", "install it: `apt-get install bubblewrap`")
    tried = Sandbox(filter_).start(["true"], {}, subprocess.PIPE)
    said, _ = tried.communicate()
    if tried.returncode != 0:
        raise refuse(
            f"the sandbox cannot be made: {said.decode(errors='replace').strip()}",
            "allow user namespaces (sysctl user.max_user_namespaces, "
            "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), "
            "or run it as root",
        )


def _system() -> list[str]:
    words = []
    for path in map(Path, _SYSTEM):
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            words += ["--ro-bind", str(path), str(path)]
    etc = [Path("/etc") / name for name in _ETC]
    there = {path: path for path in etc if path.exists()}
    return [*words, "--perms", "0755", "--dir", "/etc", *_binds("--ro-bind", there)]


def _memory_file(text: str) -> IO[bytes]:
    """Return a file in memory that has `text`, to be read from its beginning."""
    file = os.fdopen(os.memfd_create("etc"), "w+b")
    file.write(text.encode())
    file.seek(0)
    return file


def _binds(how: str, paths_inside: Mapping[Path, Path]) -> list[str]:
    """Return the arguments that bind paths. Directories on the way, which bubblewrap would make for
    their owner alone, are open to all inside."""
    words = []
    for inside, outside in paths_inside.items():
        for parent in reversed(inside.parents):
            words += ["--perms", "0755", "--dir", str(parent)]
        words += [how, str(outside.resolve()), str(inside)]
    return words


def _can_drop_groups() -> bool:
    """Return whether this process may leave its supplementary groups: root may, unless it is root
    of a user namespace that forbids it."""
    return os.geteuid() == 0 and Path("/proc/self/setgroups").read_text().strip() == "allow"
