# SPDX-License-Identifier: Apache-2.0
"""Flows: the applications at their ends, as an ordinary user. Of traffic `command` the plan says
what to start (commands.py). nagi-traffic sends all other traffic (traffic.py), or iperf 2 bulk
traffic if the plan says so.

A flow has no control connection, and ends when the plan says, by force on both sides: the
receiver's kernel then resets the connection, so that nothing of it is left for the next run.
"""

from __future__ import annotations

import signal
import socket
import time
from types import MappingProxyType
from typing import Literal, Mapping, Optional

from nagi_agent import commands, traffic
from nagi_agent.contracts import ClientEnd, FlowPlan
from nagi_agent.processes import end, log_of, start, unprivileged
from nagi_agent.tcp_info import LISTEN, SockDiag

_START_TIMEOUT_S = 2.0
_END_TIMEOUT_S = 2.0
# iperf's own end must never come before the plan's.
_SPARE_SECONDS = 60
# In virtual time a receiver runs before agents and tcpdump: their readings of the clock would delay
# packets that arrive for it.
_REAL_TIME = ("chrt", "--rr", "1")

Role = Literal["server", "client"]


def has_server(flow: FlowPlan) -> bool:
    """Whether an application is to be started that listens."""
    return flow.command is None or flow.command.server is not None


def check_port(flow: FlowPlan) -> None:
    """Raise RuntimeError if a server of the flow could not listen here: on TCP, and on UDP, too, if
    it is not bulk traffic."""
    port = flow.port
    address = flow.sender_address if flow.listens == "sender" else flow.receiver_address
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)[: 1 if flow.traffic == "bulk" else 2]:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, kind) as probe:
            if kind == socket.SOCK_STREAM:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError as error:
                raise RuntimeError(
                    f"port {port} of {address} cannot be used: {error.strerror}; "
                    "end the program that has it, or give the flow another `port:`"
                ) from None


class Application:
    """The application at one end of a flow: its server or its client."""

    def __init__(
        self,
        flow: FlowPlan,
        role: Role,
        log: str,
        user: str,
        seed: int = 0,
        files: Mapping[str, str] = MappingProxyType({}),
        *,
        virtual: bool = False,
    ) -> None:
        """`seed`: of what applications of nagi-traffic draw; they leave their results beside `log`,
        named .json. `files`: where the files of commands are. `virtual`: in virtual time."""
        self._flow = flow
        self._log = log
        self._who = f"the {role} of flow {flow.name}"
        self._is_command = flow.command is not None
        self._is_bulk = flow.traffic == "bulk"
        self._result: Optional[str] = None  # nagi-traffic's
        self.waits_for_packets = role == "server" and traffic.waits_for_packets(flow)
        self.ended_s: Optional[float] = None  # when it was seen to have ended by itself
        if role == "server":
            check_port(flow)
        with open(log, "wb") as file:
            if flow.command is not None:
                line = flow.command.server if role == "server" else flow.command.client
                assert line is not None  # has_server()
                self._process = start(
                    commands.contained(line, user, files=commands.files_of(flow.command, files)),
                    stdout=file,
                    stderr=file,
                    env=commands.environment(user),
                )
            elif flow.application is not None:
                line, descriptor = traffic.command(flow, role, user, seed)
                self._result = f"{log[: -len('.log')]}.json"
                with open(self._result, "wb") as result:
                    self._process = start(line, stdout=result, stderr=file, pass_fds=(descriptor,))
            else:
                line, descriptors = _bulk(flow, role, user)
                if virtual and role == "server":
                    line = [*_REAL_TIME, *line]
                self._process = start(line, stdout=file, stderr=file, pass_fds=descriptors)

    def wait_until_listening(self, diag: SockDiag) -> None:
        port = self._flow.port
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            if diag.connections(local_port=port, states=1 << LISTEN):
                return
            if not self._is_bulk and _has_udp(port):
                return
            if self._process.poll() is not None:
                hint = " (it has to stay in the foreground)" if self._is_command else ""
                raise RuntimeError(
                    f"{self._who} {self._end_in_words()} before it listened on port {port}{hint}: "
                    f"{log_of(self._log)}"
                )
            time.sleep(0.01)
        raise RuntimeError(
            f"{self._who} does not listen on port {port} after {_START_TIMEOUT_S:g} s: "
            f"{log_of(self._log)}"
        )

    def check(self, at: float) -> None:
        """Raise RuntimeError if it ended too early: an end of a bulk flow always, others if they
        failed."""
        status = self._process.poll()
        if status is None or self.ended_s is not None:
            return
        if self._is_bulk or status != 0:
            raise RuntimeError(f"{self._who} {self._end_in_words()}: {log_of(self._log)}")
        self.ended_s = round(at, 6)

    def require_running(self) -> None:
        """Raises RuntimeError if it has ended. Others may, servers of bulk flows do not."""
        if self._is_bulk:
            self.check(0)

    def record(self) -> Optional[ClientEnd]:
        """How it ended, if it was by itself."""
        if self.ended_s is None:
            return None
        return ClientEnd(
            flow=self._flow.name, ended_s=self.ended_s, status=self._process.returncode
        )

    def kill(self) -> None:
        if self._is_command:
            commands.end_all(self._process, _END_TIMEOUT_S)
        elif self._result is not None:
            end(self._process, signal.SIGTERM, _END_TIMEOUT_S)
        else:
            end(self._process, signal.SIGKILL, _END_TIMEOUT_S)

    def require_result(self) -> None:
        """Raises RuntimeError if it has left no result and should have, once it is over."""
        if self._result is None:
            return
        if self._process.returncode != 0:
            raise RuntimeError(f"{self._who} {self._end_in_words()}: {log_of(self._log)}")
        traffic.check_result(self._result, self._who)

    def _end_in_words(self) -> str:
        return commands.status_in_words(self._process.returncode)


def uses_iperf(flow: FlowPlan) -> bool:
    """Return whether a flow's ends are iperf's."""
    return flow.traffic == "bulk" and flow.program is None


def _bulk(flow: FlowPlan, role: Role, user: str) -> tuple[list[str], tuple[int, ...]]:
    """Return the command line of an end of a bulk flow, and the descriptors that it needs."""
    if uses_iperf(flow):
        return (_iperf_server if role == "server" else _iperf_client)(flow, user), ()
    line, descriptor = traffic.command(flow, role, user)
    return line, (descriptor,)


def _version(flow: FlowPlan) -> list[str]:
    """Return iperf 2's option for IPv6."""
    return ["-V"] if ":" in flow.receiver_address else []


def _iperf_server(flow: FlowPlan, user: str) -> list[str]:
    listen = ["-B", flow.receiver_address, "-p", str(flow.port)]
    return [*unprivileged(user), "iperf", *_version(flow), "-s", *listen]


def _iperf_client(flow: FlowPlan, user: str) -> list[str]:
    seconds = flow.end_s - flow.start_s + _SPARE_SECONDS
    return [
        # Any congestion control that the kernel has, also one that is restricted.
        *unprivileged(user, "net_admin"),
        "iperf",
        *_version(flow),
        "-c",
        flow.receiver_address,
        "-B",
        flow.sender_address,
        "-p",
        str(flow.port),
        "-t",
        str(int(seconds)),
        "-Z",
        flow.congestion_control,
    ]


def _has_udp(port: int) -> bool:
    """Whether a UDP socket of this network namespace has a port: proc_net_udp(5)."""
    for table in ("udp", "udp6"):
        try:
            with open(f"/proc/self/net/{table}", encoding="ascii") as file:
                lines = file.readlines()[1:]
        except OSError:  # a kernel without IPv6
            continue
        if any(line.split()[1].endswith(f":{port:04X}") for line in lines):
            return True
    return False


def reset_leftovers(flows: list[FlowPlan], node: str, diag: SockDiag) -> int:
    """Resets connections of `flows` that still live on `node`; returns how many would not go."""
    left = 0
    for flow in flows:
        if flow.listener == node:
            found = diag.connections(local_port=flow.port)
        else:
            found = diag.connections(remote_port=flow.port)
        for connection in found:
            try:
                diag.destroy(connection)
            except OSError:
                left += 1
    return left
