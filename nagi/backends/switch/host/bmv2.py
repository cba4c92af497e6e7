# SPDX-License-Identifier: Apache-2.0
"""Run bmv2's simple_switch, whose Thrift server must not be reachable from other hosts."""

from __future__ import annotations

import os
import signal
import time
from typing import Optional, Sequence

from nagi_agent.commands import describe_exit_status
from nagi_agent.daemons import END_TIMEOUT_S, START_TIMEOUT_S
from nagi_agent.processes import end_process, read_log_tail, run_command, start_process
from nagi_p4 import simple_switch_client
from nagi_p4.operations import Refused
from nagi_p4.simple_switch import SimpleSwitch
from nagi_p4.simple_switch_client import DEFAULT_PORT, find_client_directory

from nagi.backends.switch.host.loopback import LoopbackGuard

NAME = "simple_switch"
_NOTIFICATIONS = "bmv2.ipc"
_IFF_UP = 1


def build_setpriv_prefix() -> list[str]:
    """Return the start of a command line that runs bmv2 with CAP_NET_RAW as its only capability.

    Only root may reduce the capability bounding set. For other users, the command line does not
    change it.
    """
    is_root = os.geteuid() == 0
    return [
        "setpriv",
        "--inh-caps=-all,+net_raw",
        "--ambient-caps=-all,+net_raw",
        *(["--bounding-set=-all,+net_raw"] if is_root else []),
        "--no-new-privs",
        "--pdeathsig=KILL",
        "--",
    ]


def find_problem(program: Optional[str], client: Optional[str], is_isolated: bool) -> Optional[str]:
    """Return why simple_switch cannot run or cannot be controlled on this host, with the cure.

    Return None if there is no problem.

    Args:
        program: the executable, or None for simple_switch on the PATH.
        client: directory of bmv2's Python modules, or None for the default directory.
        is_isolated: whether no other host can reach the Thrift server. If so, no LoopbackGuard is
            needed.
    """
    problem = simple_switch_client.find_problem(program or NAME, client or find_client_directory())
    if problem is None and not is_isolated:
        try:
            LoopbackGuard(DEFAULT_PORT).close()
        except RuntimeError as error:
            problem = f"{error}; boot a kernel with CONFIG_CGROUP_BPF, or use --switch nagi"
    return problem


def bring_loopback_up() -> None:
    """Set the loopback interface up if it is down, as in a new namespace of the netns lab."""
    with open("/sys/class/net/lo/flags", encoding="ascii") as file:
        if not int(file.read(), 16) & _IFF_UP:
            run_command(["ip", "link", "set", "lo", "up"])


class SimpleSwitchProcess:
    """A process of simple_switch.

    Args:
        program: the executable.
        client: directory of bmv2's Python modules, or None for the default directory.
        pipeline: path of the JSON to which p4c compiled the P4 program.
        ports: (port number, interface) of each port.
        directory: working directory of the process, in which its log is written.
        is_isolated: whether no other host can reach the Thrift server, as in a guest of the virtual
            lab. If not, the server is made to listen on 127.0.0.1 only.

    Raises:
        RuntimeError: The kernel does not support the BPF program that restricts the server to
            127.0.0.1.
    """

    def __init__(
        self,
        program: str,
        client: Optional[str],
        pipeline: str,
        ports: Sequence[tuple[int, str]],
        directory: str,
        *,
        is_isolated: bool = False,
    ) -> None:
        self._client = client or find_client_directory()
        self._directory = directory
        self._log = os.path.join(directory, f"{NAME}.log")
        bring_loopback_up()
        self._guard = None if is_isolated else LoopbackGuard(DEFAULT_PORT)
        with open(self._log, "wb") as log:
            self._process = start_process(
                [
                    *build_setpriv_prefix(),
                    program,
                    *(word for number, name in ports for word in ("-i", f"{number}@{name}")),
                    *("--thrift-port", str(DEFAULT_PORT)),
                    *("--notifications-addr", f"ipc://{_NOTIFICATIONS}"),
                    pipeline,
                ],
                stdout=log,
                stderr=log,
                cwd=directory,
            )

    def wait_until_ready(self, cpu_interface: Optional[str] = None) -> SimpleSwitch:
        """Wait until the switch answers, and return a client that controls it.

        Args:
            cpu_interface: the agent's interface of the veth pair at the switch's CPU port, or None
                without a CPU port.

        Raises:
            RuntimeError: The switch ended, refused the client, or did not start in time.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        notifications = os.path.join(self._directory, _NOTIFICATIONS)
        while True:
            self.check()
            try:
                switch = SimpleSwitch(
                    notifications, client=self._client, cpu_interface=cpu_interface
                )
            except OSError as error:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{NAME} did not start: {error}") from None
                time.sleep(0.02)
            except Refused as refused:
                raise RuntimeError(str(refused)) from None
            else:
                self._close_guard()
                return switch

    def check(self) -> None:
        """Raise RuntimeError if the switch has ended."""
        if self._process.poll() is not None:
            status = describe_exit_status(self._process.returncode)
            raise RuntimeError(f"{NAME} {status}: {read_log_tail(self._log)}")

    def stop(self) -> None:
        self._close_guard()
        # simple_switch does not handle SIGTERM, so the signal ends the process at once.
        end_process(self._process, signal.SIGTERM, END_TIMEOUT_S)

    def kill(self) -> None:
        self._close_guard()
        end_process(self._process, signal.SIGKILL, END_TIMEOUT_S)

    def _close_guard(self) -> None:
        """Detach the guard, which is not needed after the server has bound its port."""
        if self._guard is not None:
            self._guard.close()
            self._guard = None
