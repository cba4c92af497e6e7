# SPDX-License-Identifier: Apache-2.0
"""Sample and check the TCP connections of a flow, at the sender or at the receiver."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional

from nagi_agent.contracts import FlowPlan, FlowRecord, TcpInfoSample
from nagi_agent.flows import uses_iperf
from nagi_agent.processes import read_log_tail
from nagi_agent.tcp_info import SAMPLED, Connection
from nagi_agent.window_cap import WindowCap

_OPEN = 0  # TCP_CA_Open: no loss is being recovered
_CLOSE_WAIT = 8  # TCP_CLOSE_WAIT: the other end has closed


class Watch:
    """The TCP connections of a flow on one node.

    On the sender, the plan's cap on the congestion window applies until close().

    Args:
        flow: the flow, with the registered name of its congestion control.
        node: this host's node.
        log: path of the log of the flow's application on this node, for messages.

    Raises:
        RuntimeError: The kernel does not support the window cap.
    """

    def __init__(self, flow: FlowPlan, node: str, log: str) -> None:
        self._flow = flow
        self._log = log
        self._listens = flow.listener == node
        self.sends = flow.sender == node  # whether this node sends the data
        self._remote_address = flow.receiver_address if self.sends else flow.sender_address
        self._max_window = flow.max_window if self.sends else None
        self._cap: Optional[WindowCap] = None
        if self._max_window:
            self._cap = WindowCap(flow.port, self._max_window, listening=self._listens)
        # The latest sample of each connection, by identity, in the order of their first samples.
        self._connections: dict[bytes, Connection] = {}
        self._numbers: dict[bytes, int] = {}

    def sample(self, connections: Iterable[Connection], run_time_s: float) -> list[TcpInfoSample]:
        """Check this flow's connections, and return one sample per open connection.

        On the node that receives the data, only check the connections, and return [].

        Args:
            connections: all connections of the node.
            run_time_s: seconds since the run began.

        Raises:
            RuntimeError: A connection does not run as planned.
        """
        samples = []
        for connection in connections:
            port = connection.local_port if self._listens else connection.remote_port
            if port != self._flow.port:
                continue
            # In SYN_RECV and TIME_WAIT a connection has no full socket. The kernel then reports no
            # congestion control.
            if (
                connection.remote_address != self._remote_address
                or not connection.congestion_control
            ):
                continue
            self._check_connection(connection)
            self._connections[connection.identity] = connection
            number = self._numbers.setdefault(connection.identity, len(self._numbers))
            if self.sends:
                info = {field: connection.info.get(field) for field in SAMPLED}
                name = self._flow.name
                samples.append(
                    TcpInfoSample(t_s=round(run_time_s, 6), flow=name, connection=number, **info)
                )
        return samples

    def _check_connection(self, connection: Connection) -> None:
        """Raise RuntimeError if a connection does not run as planned."""
        name, planned_control = self._flow.name, self._flow.congestion_control
        if not self.sends and self._flow.receiver_control is not None:
            planned_control = self._flow.receiver_control
        if connection.congestion_control != planned_control:
            raise RuntimeError(
                f"flow {name} runs {connection.congestion_control} instead of {planned_control}: "
                f"{read_log_tail(self._log)}"
            )
        if self.sends and self._flow.traffic == "bulk" and connection.state == _CLOSE_WAIT:
            cure = ""
            if uses_iperf(self._flow):
                cure = (
                    "; iperf's server closes a connection after 4 s without data, so use "
                    "`program: nagi-traffic`"
                )
            raise RuntimeError(f"the receiver of flow {name} closed its connection{cure}")
        window = connection.info.get("snd_cwnd", 0)
        # During recovery, PRR (RFC 6937) sets snd_cwnd to an estimate of the data in flight plus
        # the new segments sent for duplicate ACKs. Without SACK, PRR loses count of these segments
        # at a partial ACK, so snd_cwnd may exceed the cap until the recovery ends.
        is_recovering = connection.info.get("ca_state", 0) != _OPEN
        if self._max_window and window > self._max_window and not is_recovering:
            raise RuntimeError(
                f"flow {name} has a window of {window} packets, although its cap is "
                f"{self._max_window}"
            )

    def make_record(self) -> FlowRecord:
        """Return the record of this flow for node.json.

        The record has the last TCP_INFO of one connection: of a bulk flow the newest connection, of
        other flows the connection with the most acknowledged bytes.

        Raises:
            RuntimeError: A bulk flow has never connected.
        """
        connections = list(self._connections.values())
        if self._flow.traffic == "bulk":
            if not connections:
                raise RuntimeError(
                    f"flow {self._flow.name} never connected to "
                    f"{self._flow.receiver_address}:{self._flow.port}: {read_log_tail(self._log)}"
                )
            return self._fill_record(connections[-1], None)
        largest = max(connections, key=_count_acknowledged, default=None)
        return self._fill_record(largest, len(connections))

    def _fill_record(
        self, connection: Optional[Connection], connection_count: Optional[int]
    ) -> FlowRecord:
        """Make the flow's record from one connection.

        Args:
            connection: the connection; None if the flow had no connection.
            connection_count: number of the flow's connections; None for bulk flows.
        """
        return FlowRecord(
            flow=self._flow.name,
            congestion_control=connection.congestion_control if connection else None,
            tcp_info=connection.info if connection else {},
            connections=connection_count,
            ended_s=None,  # recorded on the client's host
            status=None,
        )

    def close(self) -> None:
        if self._cap is not None:
            self._cap.close()


def _count_acknowledged(connection: Connection) -> int:
    return connection.info.get("bytes_acked", 0)
