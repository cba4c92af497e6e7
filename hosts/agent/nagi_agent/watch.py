# SPDX-License-Identifier: Apache-2.0
"""The TCP connections of a flow at one of its ends: what TCP_INFO says of them, and whether they
run what the plan says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional

from nagi_agent.contracts import FlowPlan, FlowRecord, TcpInfoSample
from nagi_agent.flows import uses_iperf
from nagi_agent.processes import log_of
from nagi_agent.tcp_info import SAMPLED, Connection
from nagi_agent.window_cap import WindowCap

_OPEN = 0  # TCP_CA_Open: nothing is missing
_CLOSE_WAIT = 8  # TCP_CLOSE_WAIT: the other end has closed


class Watch:
    """A flow's connections on `node`. From the beginning the plan's window cap holds for them.

    `log`: what the flow's program here says, for complaints.
    """

    def __init__(self, flow: FlowPlan, node: str, log: str) -> None:
        self._flow = flow
        self._log = log
        self._listens = flow.listener == node
        self.sends = flow.sender == node  # the data comes from here
        self._far_address = flow.receiver_address if self.sends else flow.sender_address
        self._max_window = flow.max_window if self.sends else None
        self._cap: Optional[WindowCap] = None
        if self._max_window:
            self._cap = WindowCap(flow.port, self._max_window, listening=self._listens)
        # As last seen, by their identity, in the order in which they were first seen.
        self._connections: dict[bytes, Connection] = {}
        self._numbers: dict[bytes, int] = {}

    def sample(self, connections: Iterable[Connection], at: float) -> list[TcpInfoSample]:
        """One a connection of this flow's, of all that the node has; none where the data does not
        come from."""
        samples = []
        for connection in connections:
            port = connection.local_port if self._listens else connection.remote_port
            if port != self._flow.port:
                continue
            # Of what is not yet a socket, or no more, the kernel does not say the control.
            if connection.remote_address != self._far_address or not connection.congestion_control:
                continue
            self._check(connection)
            self._connections[connection.identity] = connection
            number = self._numbers.setdefault(connection.identity, len(self._numbers))
            if self.sends:
                info = {field: connection.info.get(field) for field in SAMPLED}
                name = self._flow.name
                samples.append(
                    TcpInfoSample(t_s=round(at, 6), flow=name, connection=number, **info)
                )
        return samples

    def _check(self, connection: Connection) -> None:
        name, wanted = self._flow.name, self._flow.congestion_control
        if not self.sends and self._flow.receiver_control is not None:
            wanted = self._flow.receiver_control
        if connection.congestion_control != wanted:
            raise RuntimeError(
                f"flow {name} runs {connection.congestion_control} instead of {wanted}: "
                f"{log_of(self._log)}"
            )
        if self.sends and self._flow.traffic == "bulk" and connection.state == _CLOSE_WAIT:
            cure = ""
            if uses_iperf(self._flow):
                cure = "; iperf's server does if nothing comes for 4 s: use program nagi-traffic"
            raise RuntimeError(f"the receiver of flow {name} closed its connection{cure}")
        window = connection.info.get("snd_cwnd", 0)
        # While losses are mended, PRR (RFC 6937) sets snd_cwnd to what it takes to be in flight,
        # new segments sent for duplicate ACKs included. Without SACK it forgets those at a partial
        # ACK, and snd_cwnd may pass the cap until the losses are mended.
        mending = connection.info.get("ca_state", 0) != _OPEN
        if self._max_window and window > self._max_window and not mending:
            raise RuntimeError(
                f"flow {name} has a window of {window} packets in spite of its cap "
                f"of {self._max_window}"
            )

    def report(self) -> FlowRecord:
        """What flows.json says of this flow. Raises RuntimeError if a bulk flow never was one."""
        found = list(self._connections.values())
        if self._flow.traffic == "bulk":
            if not found:
                raise RuntimeError(
                    f"flow {self._flow.name} never connected to "
                    f"{self._flow.receiver_address}:{self._flow.port}: {log_of(self._log)}"
                )
            return self._record(found[-1], None)
        largest = max(found, key=lambda each: each.info.get("bytes_acked", 0), default=None)
        return self._record(largest, len(found))

    def _record(self, last: Optional[Connection], connections: Optional[int]) -> FlowRecord:
        return FlowRecord(
            flow=self._flow.name,
            congestion_control=last.congestion_control if last else None,
            tcp_info=last.info if last else {},
            connections=connections,
            ended_s=None,  # the client's end is in the record of its own host
            status=None,
        )

    def close(self) -> None:
        if self._cap is not None:
            self._cap.close()
