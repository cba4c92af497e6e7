# SPDX-License-Identifier: Apache-2.0
"""bmv2's simple_switch as a process whose control, a Thrift server, only this host reaches."""

from __future__ import annotations

import os
import signal
import time
from typing import Optional, Sequence

from nagi_p4.operations import Refused
from nagi_p4.simple_switch import SimpleSwitch
from nagi_p4.simple_switch_client import DEFAULT_PORT, find_client_directory, find_problem

from nagi_agent.commands import status_in_words
from nagi_agent.daemons import END_TIMEOUT_S, START_TIMEOUT_S
from nagi_agent.loopback import OnLoopback
from nagi_agent.processes import end, log_of, output_of, start

NAME = "simple_switch"
_NOTIFICATIONS = "bmv2.ipc"
_IFF_UP = 1


def rights() -> list[str]:
    """Return the start of a command line that runs bmv2 with the one capability that it needs. Who
    is not root may not make the set of those smaller that programs can have, and need not."""
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


def problem(program: Optional[str], client: Optional[str], alone: bool) -> Optional[str]:
    """Why simple_switch cannot be run and controlled here, with the cure; None: it can."""
    said = find_problem(program or NAME, client or find_client_directory())
    if said is None and not alone:
        try:
            OnLoopback(DEFAULT_PORT).close()
        except RuntimeError as error:
            said = f"{error}; boot a kernel with CONFIG_CGROUP_BPF, or use --switch nagi"
    return said


def bring_loopback_up() -> None:
    """A namespace of the netns lab has it down, and goes with the lab."""
    with open("/sys/class/net/lo/flags", encoding="ascii") as file:
        if not int(file.read(), 16) & _IFF_UP:
            output_of(["ip", "link", "set", "lo", "up"])


class SimpleSwitchProcess:
    """Runs in `directory`, where its log goes, too. `ports`: (number, interface). `alone`: there
    is nothing outside, as in a guest of the virtual lab, that its control would have to be kept
    from. Raises RuntimeError."""

    def __init__(
        self,
        program: str,
        client: Optional[str],
        switched: str,
        ports: Sequence[tuple[int, str]],
        directory: str,
        *,
        alone: bool = False,
    ) -> None:
        self._client = client or find_client_directory()
        self._directory = directory
        self._log = os.path.join(directory, f"{NAME}.log")
        bring_loopback_up()
        self._guard = None if alone else OnLoopback(DEFAULT_PORT)
        with open(self._log, "wb") as log:
            self._process = start(
                [
                    *rights(),
                    program,
                    *(word for number, name in ports for word in ("-i", f"{number}@{name}")),
                    *("--thrift-port", str(DEFAULT_PORT)),
                    *("--notifications-addr", f"ipc://{_NOTIFICATIONS}"),
                    switched,
                ],
                stdout=log,
                stderr=log,
                cwd=directory,
            )

    def wait_until_ready(self, cpu_interface: Optional[str] = None) -> SimpleSwitch:
        """Its control; `cpu_interface`: the other end of its CPU port's. Raises RuntimeError."""
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
                self._release()
                return switch

    def check(self) -> None:
        """Raises RuntimeError if it no longer runs."""
        if self._process.poll() is not None:
            ended = status_in_words(self._process.returncode)
            raise RuntimeError(f"{NAME} {ended}: {log_of(self._log)}")

    def stop(self) -> None:
        self._release()
        # It does not end in order: SIGTERM is as good as SIGKILL to it.
        end(self._process, signal.SIGTERM, END_TIMEOUT_S)

    def kill(self) -> None:
        self._release()
        end(self._process, signal.SIGKILL, END_TIMEOUT_S)

    def _release(self) -> None:
        """What it listens at is bound by now, or never will be."""
        if self._guard is not None:
            self._guard.close()
            self._guard = None
