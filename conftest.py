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

    Programs that tests start repeatedly find their modules compiled, even if the environment or the
    owner of the packages leaves no directory for compiled modules. The programs react to SIGHUP
    even if pytest ignores it (nohup(1)): a handler that a program installs is not inherited by the
    programs that it starts. The programs write output as they do for any user, whatever Python's
    settings of this user are.
    """
    os.environ.pop("PYTHONUNBUFFERED", None)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    if hasattr(config, "workerinput"):  # a worker of xdist has the environment of its controller
        return
    compiled = tempfile.TemporaryDirectory(prefix="nagi-bytecode-")
    config.add_cleanup(compiled.cleanup)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = compiled.name
    sys.dont_write_bytecode = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests of real time a second try, which is reported, as others may hold up the machine.

    Such a test does its measurement itself or in fixtures of its own. A fixture with a larger scope
    keeps what it has, so that the second try would only look at it again.
    """
    for item in items:
        if item.get_closest_marker("realtime"):
            item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=5))


class Namespaces:
    """Network namespaces that exist during one test, in a keeper of their own."""

    def __init__(self, keeper: Keeper) -> None:
        self.pid = keeper.pid
        self._enter = ["nsenter", "--target", str(keeper.pid), "--mount", "--pid"]

    def command(self, namespace: str | None, *command: str) -> list[str]:
        """Return the command line that runs `command` in a namespace.

        If `namespace` is None, the command runs in the namespace of the keeper process.
        """
        inside = ["ip", "netns", "exec", namespace] if namespace else []
        return [*self._enter, "--wdns=/", "--", *inside, *command]

    def run(self, namespace: str | None, *command: str, text: str = "") -> str:
        """Run a command to its end and return its output."""
        done = self._done(namespace, command, text)
        assert done.returncode == 0, f"{command}: {done.stderr or done.stdout}"
        return done.stdout

    def fail(self, namespace: str | None, *command: str) -> str:
        """Run a command that must fail by itself, and return its error output."""
        done = self._done(namespace, command, "")
        assert done.returncode > 0, f"{command}: status {done.returncode}: {done.stdout}"
        return done.stderr

    def _done(
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
        return subprocess.Popen(
            self.command(namespace, *command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def add(self, *names: str) -> None:
        for name in names:
            self.run(None, "ip", "netns", "add", name)
            self.run(name, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
            self.run(name, "ip", "link", "set", "lo", "up")

    def join(self, first: tuple[str, str], second: tuple[str, str]) -> None:
        """Connect two (namespace, interface) by a veth pair, both up, without offloads."""
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

    The kernel needs two seconds to remove a lab. All labs of a file are removed after the file's
    last test.
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
    """Provide network namespaces for all tests of a file; without root, skip them."""
    if os.geteuid() != 0:
        pytest.skip("needs root for network namespaces: run `sudo make test`")
    with Keeper() as keeper:
        yield Namespaces(keeper)


@pytest.fixture
def nagi(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., SimpleNamespace]:
    """Provide a function that runs nagi in this process.

    The function takes the arguments of the command, and returns the exit status, the output and
    the error output.
    """

    def command(*arguments: object) -> SimpleNamespace:
        monkeypatch.setattr(sys, "argv", ["nagi", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        written = capsys.readouterr()
        return SimpleNamespace(status=exit_.value.code, out=written.out, err=written.err)

    return command
