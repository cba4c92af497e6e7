# SPDX-License-Identifier: Apache-2.0
"""The machine on which a test runs nagi, in its own namespaces (PID, network, mount).

Nothing outlives the test, and the test sees all that nagi leaves behind, whatever other processes
do on the real machine.
"""

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

# The first process, which sees the machine's files and one more user. $1: the directory with passwd
# and group.
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
    """A controller, which exists during a `with` block.

    Both users can write to the directory `home`. Temporary files go to `temporary`, which is in it.
    """

    def __init__(self, *, root: bool) -> None:
        """Make a controller on which root or an ordinary user runs nagi."""
        self._root = root

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="nagi-test-"))
            self._directory = Path(directory)
            self._directory.chmod(0o755)
            self.home = self._directory / "home"
            self.temporary = self.home / "tmp"
            for path in (self.home, self.temporary):
                path.mkdir()
                os.chown(path, USER_ID, USER_ID)
            self._firsts: dict[str, int] = {}  # namespace -> its first process
            self._starters: list[subprocess.Popen[str]] = []  # what started them
            stack.callback(self._reap)
            self._keeper = stack.enter_context(Keeper())
            self._make()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def command(self, *command: object, root: bool = False) -> list[str]:
        """Return the command line that executes `command` here, as root if `root` is set."""
        inside = ["--mount", "--pid", "--net", "--uts", f"--wd={self.home}"]
        enter = ["nsenter", "--target", str(self._firsts[NAMESPACE]), *inside, "--"]
        if not self._root and not root:
            user = [f"--reuid={USER_ID}", f"--regid={USER_ID}", "--clear-groups"]
            enter += ["setpriv", *user, "--inh-caps=-all", "--", "env", f"HOME={self.home}"]
        return [*enter, "env", "-C", str(self.home), *map(str, command)]

    def start(
        self, *arguments: object, program: str = "nagi", **variables: str
    ) -> subprocess.Popen[str]:
        """Start nagi, or another program of its environment, with further environment variables.

        The result is the parent of the program: see find_pid(). Its exit status is that of the
        program.
        """
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("SUDO_", "XDG_"))}
        defaults = {"HOME": str(self.home), "TMPDIR": str(self.temporary)}
        if not self._root:
            defaults |= {"USER": USER, "LOGNAME": USER}
        return subprocess.Popen(
            self.command(paths.executable(program), *arguments),
            env=inherited | defaults | variables,
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
        """Run nagi, or another program, to its end, and return its output.

        Args:
            *arguments: the arguments
            program: the name of the program
            status: the required exit status; None permits any
            timeout_s: the time after which the program is killed
            **variables: further environment variables
        """
        with self.start(*arguments, program=program, **variables) as process:
            try:
                output, _ = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                os.kill(self.find_pid(process), signal.SIGKILL)
                output, _ = process.communicate()
                raise AssertionError(f"it did not end within {timeout_s} s: {output}") from None
        assert status is None or process.returncode == status, output
        return output

    def find_pid(self, process: subprocess.Popen[str]) -> int:
        """Return the process ID of the program that `start()` started, for signals.

        Raises:
            ProcessLookupError: the program has ended
        """

        def child() -> int | None:
            if process.poll() is not None:
                raise ProcessLookupError
            return _child(process.pid)

        return wait_for(child, f"the child of process {process.pid}")

    def outside_path(self, path: Path, namespace: str = NAMESPACE) -> Path:
        """Return the path from outside of a file of this machine or of a host.

        Their file systems differ from that of the test.
        """
        return Path(f"/proc/{self._firsts[namespace]}/root{path}")

    def list_processes(self) -> dict[int, str]:
        """Return the command lines of all processes here, by process ID outside.

        Processes that exist permanently are left out.
        """
        permanent = {self._keeper.pid, *self._firsts.values()}
        namespace = Path(f"/proc/{self._keeper.pid}/ns/pid").stat().st_ino
        processes = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) not in permanent:
                command = read_process(int(entry.name), "cmdline").replace("\0", " ").strip()
                if (
                    command
                    and not self._is_permanent(command)
                    and _is_within(int(entry.name), namespace)
                ):
                    processes[int(entry.name)] = command
        return processes

    def _is_permanent(self, command: str) -> bool:
        """Return whether a command line is that of a permanent process."""
        # Parents of the first processes of namespaces, and the processes that these wait for.
        return command == "sleep infinity" or command.startswith("unshare --mount --uts ")

    def _make(self) -> None:
        """Make users, namespaces and first processes inside the keeper."""
        line = f"{USER}:x:{USER_ID}:{USER_ID}:ordinary user:{self.home}:/bin/sh\n"
        (self._directory / "passwd").write_text(Path("/etc/passwd").read_text() + line)
        line = f"{USER}:x:{USER_ID}:\n"
        (self._directory / "group").write_text(Path("/etc/group").read_text() + line)
        self._ip(None, [f"netns add {NAMESPACE}"])
        self._start_first_process(NAMESPACE, _SCRIPT, str(self._directory))

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

    def _start_first_process(
        self, name: str, script: str, *arguments: str, processes: bool = False
    ) -> None:
        """Start the first process in a network namespace, with its own mount and UTS namespaces.

        Args:
            name: the network namespace
            script: what the process executes
            *arguments: the arguments of the script
            processes: whether it has its own PID namespace as well
        """
        options = ["--mount", "--uts"]
        if processes:
            options += ["--pid", "--fork", "--kill-child", "--mount-proc"]
        keeper = ["nsenter", "--target", str(self._keeper.pid), *_AS_KEEPER, "--"]
        network = ["nsenter", f"--net=/run/netns/{name}"]
        log = self._directory / f"{name}.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [*keeper, *network, "unshare", *options, "sh", "-c", script, "sh", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        self._starters.append(process)
        assert process.stdout is not None
        read_log = log.read_text
        assert process.stdout.readline() == "ready\n", f"{name} did not come up: {read_log()}"
        first = _child(process.pid)
        if first is not None and processes:
            first = _child(first)
        assert first is not None, f"{name} has ended: {read_log()}"
        self._firsts[name] = first

    def _reap(self) -> None:
        """Wait for the processes that started the first processes, after the keeper has ended."""
        for process in self._starters:
            process.communicate()


def wait_for(
    condition: Callable[[], _Found | None], event: str, timeout_s: float = _TIMEOUT_S
) -> _Found:
    """Wait until `condition()` is true, and return its result."""
    deadline = time.monotonic() + timeout_s
    while not (result := condition()):
        assert time.monotonic() < deadline, f"{event} did not come"
        time.sleep(0.01)
    return result


def wait_while_running(
    condition: Callable[[], object], process: subprocess.Popen[str], timeout_s: float
) -> None:
    """Wait until `condition()` is true. Fail with a process's output if it ends before."""

    def check() -> object:
        if result := condition():
            return result
        assert process.stdout is not None
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.1)  # a condition may start a program
        return None

    wait_for(check, "it", timeout_s)


def read_process(process: int, file: str) -> str:
    """Return a file of a process in /proc; empty if the process has ended."""
    try:
        return Path(f"/proc/{process}/{file}").read_text(errors="replace")
    except OSError:
        return ""


def _child(parent: int) -> int | None:
    children = read_process(parent, f"task/{parent}/children").split()
    return int(children[0]) if children else None


def _is_within(process: int, namespace: int) -> bool:
    """Return whether a process is in a PID namespace (its inode) or in a descendant of it."""
    with ExitStack() as opened:
        try:
            descriptor = os.open(f"/proc/{process}/ns/pid", os.O_RDONLY)
            opened.callback(os.close, descriptor)
            while os.fstat(descriptor).st_ino != namespace:
                descriptor = fcntl.ioctl(descriptor, _NS_GET_PARENT)
                opened.callback(os.close, descriptor)
        except OSError:  # the process has ended, or the namespace has no parent
            return False
    return True
