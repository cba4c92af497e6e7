# SPDX-License-Identifier: Apache-2.0
"""The machine that nagi is run on, as a test has it for itself: in namespaces of its own (PID,
network, mount), so that nothing outlives the test and whatever nagi leaves behind is seen, however
many others are at work on the real machine."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Self, TypeVar

from nagi.labs.keeper import Keeper
from nagi_contracts import paths

_Found = TypeVar("_Found")

NAMESPACE = "controller"  # the network namespace
USER, USER_ID = "experimenter", 20077  # the ordinary user
_TIMEOUT_S = 20.0
_NS_GET_PARENT = 0xB702  # ioctl(2) of namespaces
_AS_KEEPER = ("--mount", "--pid", "--wd=/")

# Its first process. It sees the machine's files, and one more user. $1 directory with passwd and
# group.
_SCRIPT = """
set -e
mount --bind "$1/passwd" /etc/passwd
mount --bind "$1/group" /etc/group
mount -t sysfs sysfs /sys
ip link set lo up
echo ready
exec >/dev/null
sleep infinity &
wait $!
"""


class Controller:
    """Exists from entry to exit. `home` is a directory that both users can write to, `temporary`
    one in it where temporary files go."""

    def __init__(self, *, root: bool) -> None:
        """`root`: nagi is run by root, otherwise by an ordinary user."""
        self._root = root

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="nagi-test-"))
            self._directory = Path(directory)
            self._directory.chmod(0o755)
            self.home = self._directory / "home"
            self.temporary = self.home / "tmp"
            for place in (self.home, self.temporary):
                place.mkdir()
                os.chown(place, USER_ID, USER_ID)
            self._firsts: dict[str, int] = {}  # namespace -> its first process
            self._beginnings: list[subprocess.Popen[str]] = []  # what started them
            stack.callback(self._bury)
            self._keeper = stack.enter_context(Keeper())
            self._make()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def command(self, *command: object, root: bool = False) -> list[str]:
        """The command line that runs `command` here; `root`: as root in any case."""
        inside = ["--mount", "--pid", "--net", "--uts", f"--wd={self.home}"]
        enter = ["nsenter", "--target", str(self._firsts[NAMESPACE]), *inside, "--"]
        if not self._root and not root:
            user = [f"--reuid={USER_ID}", f"--regid={USER_ID}", "--clear-groups"]
            enter += ["setpriv", *user, "--inh-caps=-all", "--", "env", f"HOME={self.home}"]
        return [*enter, "env", "-C", str(self.home), *map(str, command)]

    def start(
        self, *arguments: object, program: str = "nagi", **variables: str
    ) -> subprocess.Popen[str]:
        """Starts `nagi` (or another program of the environment it is in) with further environment
        variables. What one gets is the process that waits for it, see `pid_of`; its exit status is
        nagi's."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SUDO_", "XDG_"))}
        own = {"HOME": str(self.home), "TMPDIR": str(self.temporary)}
        if not self._root:
            own |= {"USER": USER, "LOGNAME": USER}
        return subprocess.Popen(
            self.command(paths.executable(program), *arguments),
            env=kept | own | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(
        self,
        *arguments: object,
        program: str = "nagi",
        status: int | None = 0,
        timeout_s: float = 400,
        **variables: str,
    ) -> str:
        """Runs `nagi` to its end; what it says. `status` is what it must end with; None: any."""
        with self.start(*arguments, program=program, **variables) as process:
            try:
                said, _ = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                os.kill(self.pid_of(process), signal.SIGKILL)
                said, _ = process.communicate()
                raise AssertionError(f"it did not end within {timeout_s} s: {said}") from None
        assert status is None or process.returncode == status, said
        return said

    def pid_of(self, process: subprocess.Popen[str]) -> int:
        """The process id of what `start` started: signals are to go there. Raises
        ProcessLookupError if it has ended."""

        def child() -> int | None:
            if process.poll() is not None:
                raise ProcessLookupError
            return _child(process.pid)

        return wait_for(child, f"the child of process {process.pid}")

    def seen(self, path: Path, namespace: str = NAMESPACE) -> Path:
        """A file as it is here (or on a host), for who looks from outside: file systems differ."""
        return Path(f"/proc/{self._firsts[namespace]}/root{path}")

    def all_processes(self) -> dict[int, str]:
        """Process id (the machine's) -> command line of all that runs here, but for what has been
        here from the beginning."""
        ours = {self._keeper.pid, *self._firsts.values()}
        namespace = Path(f"/proc/{self._keeper.pid}/ns/pid").stat().st_ino
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) not in ours:
                command = read_process(int(entry.name), "cmdline").replace("\0", " ").strip()
                if (
                    command
                    and not self._is_ours(command)
                    and _is_within(int(entry.name), namespace)
                ):
                    found[int(entry.name)] = command
        return found

    def _is_ours(self, command: str) -> bool:
        """Whether a process is part of what was here from the beginning."""
        # Those that wait for the namespaces' first processes, and what these wait for.
        return command == "sleep infinity" or command.startswith("unshare --mount --uts ")

    def _make(self) -> None:
        """Makes everything inside the keeper."""
        line = f"{USER}:x:{USER_ID}:{USER_ID}:ordinary user:{self.home}:/bin/sh\n"
        (self._directory / "passwd").write_text(Path("/etc/passwd").read_text() + line)
        line = f"{USER}:x:{USER_ID}:\n"
        (self._directory / "group").write_text(Path("/etc/group").read_text() + line)
        self._ip(None, [f"netns add {NAMESPACE}"])
        self._begin(NAMESPACE, _SCRIPT, str(self._directory))

    def _ip(self, namespace: str | None, commands: list[str]) -> None:
        within = ["-netns", namespace] if namespace else []
        subprocess.run(
            [
                *("nsenter", "--target", str(self._keeper.pid), *_AS_KEEPER, "--"),
                *("ip", *within, "-batch", "-"),
            ],
            input="\n".join(commands),
            text=True,
            check=True,
        )

    def _begin(self, name: str, script: str, *arguments: str, processes: bool = False) -> None:
        """Starts the first process in the network namespace `name`, with mount and UTS namespaces
        of its own; `processes`: and a PID namespace."""
        own = ["--mount", "--uts"]
        if processes:
            own += ["--pid", "--fork", "--kill-child", "--mount-proc"]
        keeper = ["nsenter", "--target", str(self._keeper.pid), *_AS_KEEPER, "--"]
        network = ["nsenter", f"--net=/run/netns/{name}"]
        log = self._directory / f"{name}.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [*keeper, *network, "unshare", *own, "sh", "-c", script, "sh", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        self._beginnings.append(process)
        assert process.stdout is not None
        said = log.read_text
        assert process.stdout.readline() == "ready\n", f"{name} did not come up: {said()}"
        first = _child(process.pid)
        if first is not None and processes:
            first = _child(first)
        assert first is not None, f"{name} has ended: {said()}"
        self._firsts[name] = first

    def _bury(self) -> None:
        """The keeper has ended, and with it all that was started in its PID namespace."""
        for process in self._beginnings:
            process.communicate()


def wait_for(
    condition: Callable[[], _Found | None], what: str, timeout_s: float = _TIMEOUT_S
) -> _Found:
    """Waits until `condition` is true, and returns what it returns."""
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not come"
        time.sleep(0.01)
    return found


def read_process(process: int, file: str) -> str:
    """A file of /proc; empty if the process has ended."""
    try:
        return Path(f"/proc/{process}/{file}").read_text(errors="replace")
    except OSError:
        return ""


def _child(parent: int) -> int | None:
    children = read_process(parent, f"task/{parent}/children").split()
    return int(children[0]) if children else None


def _is_within(process: int, namespace: int) -> bool:
    """Whether a process is in a PID namespace (its inode) or in one within it."""
    with ExitStack() as opened:
        try:
            descriptor = os.open(f"/proc/{process}/ns/pid", os.O_RDONLY)
            opened.callback(os.close, descriptor)
            while os.fstat(descriptor).st_ino != namespace:
                descriptor = fcntl.ioctl(descriptor, _NS_GET_PARENT)
                opened.callback(os.close, descriptor)
        except OSError:  # it has ended, or there is no further parent
            return False
    return True
