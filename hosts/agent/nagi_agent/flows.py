# SPDX-License-Identifier: Apache-2.0
"""Run the applications at the ends of flows, as an ordinary user.

For `traffic: command` the plan has the command lines of the user's own programs (commands.py).
nagi-traffic sends all other traffic (traffic.py), except bulk traffic if the plan selects iperf 2.

A flow has no control connection. The agents kill both applications at the planned end of the flow.
The receiver's kernel then resets the connection, so that none is open when the next run begins.
"""

from __future__ import annotations

import signal
import socket
import time
from types import MappingProxyType
from typing import Literal, Mapping, Optional

from nagi_agent import commands, traffic
from nagi_agent.contracts import ClientEnd, FlowPlan
from nagi_agent.processes import build_setpriv_prefix, end_process, read_log_tail, start_process
from nagi_agent.tcp_info import LISTEN, SockDiag

_START_TIMEOUT_S = 2.0
_END_TIMEOUT_S = 2.0
# iperf gets this much more time than planned, so that it never ends before the agent kills it.
_SPARE_SECONDS = 60
# In virtual time the receiver has priority over agents and tcpdump. These read the clock, which
# takes virtual time, and would delay the packets for the receiver.
_REAL_TIME = ("chrt", "--rr", "1")

Role = Literal["server", "client"]


def has_server(flow: FlowPlan) -> bool:
    """Return whether the agent starts a server for a flow. A command may have only a client."""
    return flow.command is None or flow.command.server is not None


def check_port(flow: FlowPlan) -> None:
    """Raise RuntimeError if a server of the flow could not listen on this host.

    The TCP port must be free. The UDP port must be free as well, except for bulk traffic.
    """
    port = flow.port
    address = flow.sender_address if flow.listening_end == "sender" else flow.receiver_address
    is_bulk = flow.traffic == "bulk"
    for socket_type in (socket.SOCK_STREAM, socket.SOCK_DGRAM)[: 1 if is_bulk else 2]:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket_type) as probe:
            if socket_type == socket.SOCK_STREAM:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError as error:
                raise RuntimeError(
                    f"port {port} of {address} cannot be used: {error.strerror}; "
                    "end the program that uses it, or give the flow another `port:`"
                ) from None


class Application:
    """The running application at one end of a flow: its server or its client.

    Args:
        flow: the flow.
        role: "server", the application that listens, or "client".
        log: path of the log, NAME.log. nagi-traffic writes its result to NAME.json.
        user: the user that runs the application.
        seed: seed of the random numbers that nagi-traffic draws.
        files: this host's copies of the files of commands, "sha256/name" -> path.
        virtual: whether the run is in virtual time.

    Attributes:
        waits_for_packets: whether this is a server that must continue after its client has ended.
        ended_s: time of the run, in seconds, at which check() found that the application had ended
            by itself; None before.

    Raises:
        RuntimeError: The server's port is in use, or a file is missing.
    """

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
        self._flow = flow
        self._log = log
        self._name = f"the {role} of flow {flow.name}"
        self._is_command = flow.command is not None
        self._is_bulk = flow.traffic == "bulk"
        self._result: Optional[str] = None  # path of nagi-traffic's result
        self.waits_for_packets = role == "server" and traffic.waits_for_packets(flow)
        self.ended_s: Optional[float] = None
        if role == "server":
            check_port(flow)
        with open(log, "wb") as file:
            if flow.command is not None:
                line = flow.command.server if role == "server" else flow.command.client
                assert line is not None  # has_server()
                self._process = start_process(
                    commands.build_contained_command(
                        line, user, files=commands.resolve_files(flow.command, files)
                    ),
                    stdout=file,
                    stderr=file,
                    env=commands.build_environment(user),
                )
            elif flow.application is not None:
                line, descriptor = traffic.build_command(flow, role, user, seed)
                self._result = f"{log[: -len('.log')]}.json"
                with open(self._result, "wb") as result:
                    self._process = start_process(
                        line, stdout=result, stderr=file, pass_fds=(descriptor,)
                    )
            else:
                line, descriptors = _build_bulk_command(flow, role, user)
                if virtual and role == "server":
                    line = [*_REAL_TIME, *line]
                self._process = start_process(line, stdout=file, stderr=file, pass_fds=descriptors)

    def wait_until_listening(self, diag: SockDiag) -> None:
        """Wait until the server listens on the flow's port.

        Raises:
            RuntimeError: The server ended, or does not listen in time.
        """
        port = self._flow.port
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            if diag.list_connections(local_port=port, states=1 << LISTEN):
                return
            if not self._is_bulk and _has_udp_socket(port):
                return
            if self._process.poll() is not None:
                hint = " (the program must stay in the foreground)" if self._is_command else ""
                raise RuntimeError(
                    f"{self._name} {self._describe_end()} before it listened on port {port}{hint}: "
                    f"{read_log_tail(self._log)}"
                )
            time.sleep(0.01)
        raise RuntimeError(
            f"{self._name} does not listen on port {port} after {_START_TIMEOUT_S:g} s: "
            f"{read_log_tail(self._log)}"
        )

    def check(self, run_time_s: float) -> None:
        """Raise RuntimeError if the application has failed; store `ended_s` if it has ended.

        An application of bulk traffic must not end by itself. Other applications may end with
        status 0.

        Args:
            run_time_s: seconds since the run began.
        """
        status = self._process.poll()
        if status is None or self.ended_s is not None:
            return
        if self._is_bulk or status != 0:
            raise RuntimeError(f"{self._name} {self._describe_end()}: {read_log_tail(self._log)}")
        self.ended_s = round(run_time_s, 6)

    def require_running(self) -> None:
        """Raise RuntimeError if this is an application of bulk traffic and has ended."""
        if self._is_bulk:
            self.check(0)

    def make_end_record(self) -> Optional[ClientEnd]:
        """Return how the application ended, or None if it still ran at the last check()."""
        if self.ended_s is None:
            return None
        return ClientEnd(
            flow=self._flow.name, ended_s=self.ended_s, status=self._process.returncode
        )

    def kill(self) -> None:
        """End the application. nagi-traffic gets SIGTERM and writes its result, others SIGKILL."""
        if self._is_command:
            commands.end_contained(self._process, _END_TIMEOUT_S)
        elif self._result is not None:
            end_process(self._process, signal.SIGTERM, _END_TIMEOUT_S)
        else:
            end_process(self._process, signal.SIGKILL, _END_TIMEOUT_S)

    def require_result(self) -> None:
        """Raise RuntimeError if nagi-traffic failed or wrote no result.

        The results of bulk flows and of commands are not checked.
        """
        if self._result is None:
            return
        if self._process.returncode != 0:
            raise RuntimeError(f"{self._name} {self._describe_end()}: {read_log_tail(self._log)}")
        traffic.check_result(self._result, self._name)

    def _describe_end(self) -> str:
        return commands.describe_exit_status(self._process.returncode)


def uses_iperf(flow: FlowPlan) -> bool:
    """Return whether iperf sends and receives the flow's data."""
    return flow.traffic == "bulk" and flow.program is None


def _build_bulk_command(flow: FlowPlan, role: Role, user: str) -> tuple[list[str], tuple[int, ...]]:
    """Return the command line of a bulk flow's server or client, and the descriptors to inherit."""
    if uses_iperf(flow):
        return (_build_iperf_server if role == "server" else _build_iperf_client)(flow, user), ()
    line, descriptor = traffic.build_command(flow, role, user)
    return line, (descriptor,)


def _choose_ip_version(flow: FlowPlan) -> list[str]:
    """Return iperf 2's option for IPv6 if the flow uses IPv6, otherwise []."""
    return ["-V"] if ":" in flow.receiver_address else []


def _build_iperf_server(flow: FlowPlan, user: str) -> list[str]:
    listen = ["-B", flow.receiver_address, "-p", str(flow.port)]
    return [*build_setpriv_prefix(user), "iperf", *_choose_ip_version(flow), "-s", *listen]


def _build_iperf_client(flow: FlowPlan, user: str) -> list[str]:
    """Return the command line of iperf's client, which sends until it is killed."""
    seconds = flow.end_s - flow.start_s + _SPARE_SECONDS
    return [
        # CAP_NET_ADMIN permits restricted congestion controls as well.
        *build_setpriv_prefix(user, "net_admin"),
        "iperf",
        *_choose_ip_version(flow),
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


def _has_udp_socket(port: int) -> bool:
    """Return whether a UDP socket in this network namespace is bound to the local port `port`."""
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
    """Reset the connections that flows have left open on a node.

    Args:
        flows: the flows that the node sends or receives.
        node: this host's node.
        diag: the kernel's socket monitor.

    Returns:
        The number of connections that could not be reset.
    """
    failures = 0
    for flow in flows:
        if flow.listener == node:
            connections = diag.list_connections(local_port=flow.port)
        else:
            connections = diag.list_connections(remote_port=flow.port)
        for connection in connections:
            try:
                diag.destroy(connection)
            except OSError:
                failures += 1
    return failures
