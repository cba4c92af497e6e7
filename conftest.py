# SPDX-License-Identifier: Apache-2.0
"""Provide network namespaces and the command nagi to the tests of several components."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from nagi.agent_contracts import read_offloads
from nagi.cli import main as cli
from nagi.labs.keeper import Keeper


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the environment of the programs that tests start.

    Tests start some programs often. To make each start quick, compiled Python modules are stored in
    a temporary directory, even if the directories of packages cannot be written. The user's
    PYTHONUNBUFFERED and PYTHONDONTWRITEBYTECODE are removed.

    If pytest ignores SIGHUP, because of nohup(1), the programs would ignore SIGHUP too. So pytest
    installs a handler for SIGHUP, which programs do not inherit.
    """
    os.environ.pop("PYTHONUNBUFFERED", None)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    if hasattr(config, "workerinput"):  # a worker of xdist has the environment of its controller
        return
    bytecode = tempfile.TemporaryDirectory(prefix="nagi-bytecode-")
    config.add_cleanup(bytecode.cleanup)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = bytecode.name
    sys.dont_write_bytecode = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Repeat a failed test of real time once, because other programs may delay it.

    The repetition is reported. A test of real time must measure in the test itself or in fixtures
    of scope "function", because fixtures of larger scopes keep their values for the second try.
    """
    for item in items:
        if item.get_closest_marker("realtime"):
            item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=5))


class Namespaces:
    """Network namespaces for tests, which exist as long as a keeper process runs."""

    def __init__(self, keeper: Keeper) -> None:
        self.pid = keeper.pid
        self._enter = ["nsenter", "--target", str(keeper.pid), "--mount", "--pid"]

    def command(self, namespace: str | None, *command: str) -> list[str]:
        """Return the command line that runs `command` in a network namespace.

        If `namespace` is None, the command runs in the namespace of the keeper process.
        """
        entry = ["ip", "netns", "exec", namespace] if namespace else []
        return [*self._enter, "--wdns=/", "--", *entry, *command]

    def run(self, namespace: str | None, *command: str, text: str = "") -> str:
        """Run a command that must succeed, with the input `text`, and return its output."""
        done = self._run_command(namespace, command, text)
        assert done.returncode == 0, f"{command}: {done.stderr or done.stdout}"
        return done.stdout

    def fail(self, namespace: str | None, *command: str) -> str:
        """Run a command that must fail, but not by a signal, and return its error output."""
        done = self._run_command(namespace, command, "")
        assert done.returncode > 0, f"{command}: status {done.returncode}: {done.stdout}"
        return done.stderr

    def _run_command(
        self, namespace: str | None, command: tuple[str, ...], text: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(namespace, *command),
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )

    def start(self, namespace: str | None, *command: str) -> subprocess.Popen[str]:
        """Start a command and return its process, whose stdout also has the error output."""
        return subprocess.Popen(
            self.command(namespace, *command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def add(self, *names: str) -> None:
        """Add namespaces without IPv6, with their loopback interface up."""
        for name in names:
            self.run(None, "ip", "netns", "add", name)
            self.run(name, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
            self.run(name, "ip", "link", "set", "lo", "up")

    def join(self, first: tuple[str, str], second: tuple[str, str]) -> None:
        """Connect two namespaces by a veth pair; both interfaces are up and have no offloads.

        Args:
            first: Namespace, and name of the interface to create in it.
            second: Namespace and interface of the other end.
        """
        (a, left), (b, right) = first, second
        peer = f"type veth peer name {right} netns {b}".split()
        self.run(None, "ip", "link", "add", left, "netns", a, *peer)
        for namespace, interface in (first, second):
            self.run(namespace, "ip", "link", "set", interface, "up")
            off = [word for name in read_offloads().values() for word in (name, "off")]
            self.run(namespace, "ethtool", "-K", interface, *off)


@pytest.fixture(scope="module")
def teardown_pool() -> Iterator[ThreadPoolExecutor]:
    """Provide threads that remove labs while the next tests run.

    The kernel needs two seconds to remove a lab. When the last test of a file has ended, the pool
    waits until all labs of the file are removed.
    """
    with ThreadPoolExecutor(32) as pool:
        yield pool


@pytest.fixture
def namespaces(teardown_pool: ThreadPoolExecutor) -> Iterator[Namespaces]:
    """Provide network namespaces for one test; without root, skip the test."""
    if os.geteuid() != 0:
        pytest.skip("needs root for network namespaces: run `sudo make test`")
    keeper = Keeper()
    yield Namespaces(keeper.__enter__())
    teardown_pool.submit(keeper.__exit__)


@pytest.fixture(scope="module")
def lasting_namespaces() -> Iterator[Namespaces]:
    """Provide network namespaces for all tests of a file; without root, skip the tests."""
    if os.geteuid() != 0:
        pytest.skip("needs root for network namespaces: run `sudo make test`")
    with Keeper() as keeper:
        yield Namespaces(keeper)


@pytest.fixture
def nagi(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., SimpleNamespace]:
    """Provide a function that runs nagi in this process.

    The function takes the arguments of the command, and returns a namespace with `status` (exit
    status), `out` (standard output) and `err` (standard error).
    """

    def command(*arguments: object) -> SimpleNamespace:
        monkeypatch.setattr(sys, "argv", ["nagi", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        written = capsys.readouterr()
        return SimpleNamespace(status=exit_.value.code, out=written.out, err=written.err)

    return command
