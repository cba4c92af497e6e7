# SPDX-License-Identifier: Apache-2.0
"""Flows: bulk transfers by iperf 2, as an ordinary user.

The transfer has no control connection, and ends when the plan says, by force on both sides: the
receiver's kernel then resets the connection, so that nothing of it is left for the next run.
"""

from __future__ import annotations

import signal
import socket
import time
from typing import Any, Optional

from nagi_agent.processes import end, log_of, start, unprivileged
from nagi_agent.tcp_info import LISTEN, SAMPLED, Connection, SockDiag
from nagi_agent.window_cap import WindowCap

_START_PATIENCE = 2.0
_END_PATIENCE = 2.0
# iperf's own end must never come before the plan's.
_SPARE_SECONDS = 60


def check_port(address: str, port: int) -> None:
    """Raises RuntimeError if a server could not listen there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise RuntimeError(
                f"port {port} of {address} cannot be used: {error.strerror}; "
                "end the program that has it, or give the flow another `port:`"
            ) from None


class Server:
    """The receiving end of a flow."""

    def __init__(self, flow: dict[str, Any], log: str, user: str) -> None:
        check_port(flow["receiver_address"], flow["port"])
        self._flow = flow
        self._log = log
        command = ["iperf", "-s", "-B", flow["receiver_address"], "-p", str(flow["port"])]
        with open(log, "wb") as file:
            self._process = start(unprivileged(user) + command, stdout=file, stderr=file)

    def wait_until_listening(self, diag: SockDiag) -> None:
        deadline = time.monotonic() + _START_PATIENCE
        while time.monotonic() < deadline:
            if diag.connections(local_port=self._flow["port"], states=1 << LISTEN):
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.01)
        raise RuntimeError(f"the server of flow {self._flow['name']} failed: {log_of(self._log)}")

    def kill(self) -> None:
        end(self._process, signal.SIGKILL, _END_PATIENCE)


class Client:
    """The sending end of a flow, and what TCP_INFO says of it."""

    def __init__(self, flow: dict[str, Any], log: str, user: str) -> None:
        self._flow = flow
        self._log = log
        self._last: Optional[Connection] = None
        self._cap = WindowCap(flow["port"], flow["max_window"]) if flow["max_window"] else None
        seconds = flow["end_s"] - flow["start_s"] + _SPARE_SECONDS
        command = [
            "iperf",
            "-c",
            flow["receiver_address"],
            "-B",
            flow["sender_address"],
            "-p",
            str(flow["port"]),
            "-t",
            str(int(seconds)),
            "-Z",
            flow["congestion_control"],
        ]
        # CAP_NET_ADMIN lets it choose any congestion control the kernel has.
        with open(log, "wb") as file:
            self._process = start(
                unprivileged(user, "net_admin") + command, stdout=file, stderr=file
            )

    def sample(self, diag: SockDiag, at: float) -> Optional[dict[str, Any]]:
        """One line for tcp_info.jsonl; None while there is no connection."""
        if self._process.poll() is not None:
            raise RuntimeError(
                f"the client of flow {self._flow['name']} ended: {log_of(self._log)}"
            )
        found = diag.connections(remote_port=self._flow["port"])
        if not found:
            return None
        self._last = found[0]
        wanted = self._flow["congestion_control"]
        if self._last.congestion_control != wanted:
            raise RuntimeError(
                f"flow {self._flow['name']} runs {self._last.congestion_control} instead of "
                f"{wanted}: {log_of(self._log)}"
            )
        window = self._last.info.get("snd_cwnd", 0)
        if self._cap is not None and window > self._flow["max_window"]:
            raise RuntimeError(
                f"flow {self._flow['name']} has a window of {window} packets in spite of its cap "
                f"of {self._flow['max_window']}"
            )
        line: dict[str, Any] = {"t_s": round(at, 6), "flow": self._flow["name"]}
        line.update({field: self._last.info.get(field) for field in SAMPLED})
        return line

    def kill(self) -> None:
        end(self._process, signal.SIGKILL, _END_PATIENCE)
        if self._cap is not None:
            self._cap.close()

    def report(self) -> dict[str, Any]:
        """What flows.json says of this flow. Raises RuntimeError if it never was a flow."""
        if self._last is None:
            raise RuntimeError(
                f"flow {self._flow['name']} never connected to "
                f"{self._flow['receiver_address']}:{self._flow['port']}: {log_of(self._log)}"
            )
        return {
            "flow": self._flow["name"],
            "congestion_control": self._last.congestion_control,
            "tcp_info": self._last.info,
        }


def reset_leftovers(flows: list[dict[str, Any]], node: str, diag: SockDiag) -> int:
    """Resets connections of `flows` that still live on `node`; returns how many would not go."""
    left = 0
    for flow in flows:
        found = []
        if flow["sender"] == node:
            found += diag.connections(remote_port=flow["port"])
        if flow["receiver"] == node:
            found += diag.connections(local_port=flow["port"])
        for connection in found:
            try:
                diag.destroy(connection)
            except OSError:
                left += 1
    return left
