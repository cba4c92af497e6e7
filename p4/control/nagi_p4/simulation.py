# SPDX-License-Identifier: Apache-2.0
"""Tests of a P4 pipeline on nagi-switch, without network and clock (`nagi-switch simulate`).

A test sends packets, performs operations, and checks the packets that leave. The methods are those
that PTF tests use. They raise AssertionError with the expected and the actual packet.

    with Simulation("mine.json", ports=[1, 2]) as switch:
        switch.add_entry("ingress.routes", ["10.0.0.0/8"], "ingress.forward", [2])
        switch.send_packet(1, packet)
        switch.verify_packet(expected, 2)
        switch.verify_no_other_packets()

A packet is bytes, or an object that bytes() accepts, such as a packet of scapy.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections import deque
from typing import Any, Deque, Iterable, Mapping, Optional, Sequence, SupportsBytes, Union

from nagi_p4.operations import Answer, Operation, Refused
from nagi_p4.switch import Switch

Packet = Union[bytes, SupportsBytes]
Port = Union[int, Mapping[str, Any]]


class Simulation(Switch):
    """A switch whose packets the test sends and receives, and whose clock the test advances.

    A packet that has left the switch is unread until pop_packet() or verify_packet() takes it.

    Args:
        program: Path of the pipeline's JSON, which p4c makes.
        ports: The ports. Each is a port number, or a dict with the settings of a port as in the
            configuration of nagi-switch, such as {"number": 1, "rate_bps": 1000000}.
        executable: The program nagi-switch: a path, or a name on PATH.
        **settings: Other keys of the configuration of nagi-switch, such as `seed` (default: 1) and
            `cpu_port`.

    Raises:
        Refused: nagi-switch does not accept the pipeline or a setting.
        OSError: There is no such executable.
    """

    target = "nagi"
    is_atomic = True

    def __init__(
        self,
        program: Union[str, os.PathLike[str]],
        ports: Iterable[Port] = range(8),
        executable: Union[str, os.PathLike[str]] = "nagi-switch",
        **settings: Any,
    ) -> None:
        config = {
            "schema_version": 1,
            "seed": 1,
            "pipeline": os.path.abspath(program),
            "ports": [{"number": port} if isinstance(port, int) else dict(port) for port in ports],
            **settings,
        }
        self._unread: dict[int, Deque[bytes]] = {}  # packets that left, by port
        self._directory = tempfile.TemporaryDirectory(prefix="nagi-simulation-")
        config_path = os.path.join(self._directory.name, "switch.json")
        with open(config_path, "w") as stream:
            json.dump(config, stream, indent=1)
        self._errors_path = os.path.join(self._directory.name, "errors")
        try:
            with open(self._errors_path, "w") as errors:
                self._process = subprocess.Popen(
                    [executable, "simulate", config_path],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                )
        except OSError:
            self._directory.cleanup()
            raise
        try:
            self.advance(0)
        except OSError as error:
            self.close()
            raise Refused(str(error)) from None

    def __enter__(self) -> Simulation:
        return self

    def perform(self, operation: Operation) -> Answer:
        answer = self.request(operation)
        if not answer["ok"]:
            raise Refused.from_answer(operation, answer)
        return answer

    def perform_all(self, operations: Sequence[Operation]) -> list[Answer]:
        answers: list[Answer] = self.perform({"op": "batch", "operations": list(operations)})[
            "answers"
        ]
        return answers

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # nagi-switch may have ended already
            self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._directory.cleanup()

    def send_packet(self, port: int, packet: Packet) -> list[tuple[int, bytes]]:
        """Send a packet into the switch by `port`.

        Returns:
            Port and bytes of each packet that has left the switch since the previous call of
            send_packet() or advance(). The packets are also stored as unread.
        """
        operation = {"op": "packet", "port": port, "bytes": bytes(packet).hex()}
        return self._store_sent(self.perform(operation))

    def advance(self, us: int) -> list[tuple[int, bytes]]:
        """Advance the switch's clock by `us` microseconds.

        Returns:
            The packets that have left the switch, as send_packet() returns them.
        """
        return self._store_sent(self.perform({"op": "advance", "us": us}))

    def send_from_controller(self, packet: Packet) -> list[tuple[int, bytes]]:
        """Send a packet into the switch by its CPU port.

        Args:
            packet: The packet, with the header that the pipeline expects at the CPU port.

        Returns:
            The packets that have left the switch, as send_packet() returns them.
        """
        self.send_packet_out(bytes(packet))
        return self.advance(0)

    def pop_packet(self, port: int) -> Optional[bytes]:
        """Return and remove the first unread packet that left by `port`; None if there is none."""
        unread = self._unread.get(port)
        return unread.popleft() if unread else None

    def verify_packet(self, packet: Packet, port: int) -> None:
        """Raise AssertionError unless the first unread packet that left by `port` is `packet`.

        The packet that left is marked as read.
        """
        expected, got = bytes(packet), self.pop_packet(port)
        if got is None:
            others = sorted(other for other, unread in self._unread.items() if unread)
            hint = f"; packets wait at ports {others}" if others else ""
            raise AssertionError(
                f"port {port}: no packet left the switch{hint}\n  expected {expected.hex()}"
            )
        if got != expected:
            raise AssertionError(
                f"port {port}:\n  expected {expected.hex()}\n  got      {got.hex()}"
            )

    def verify_no_packet(self, port: int) -> None:
        """Raise AssertionError if a packet that left by `port` is unread."""
        if got := self.pop_packet(port):
            raise AssertionError(f"port {port}: no packet expected\n  got      {got.hex()}")

    def verify_no_other_packets(self) -> None:
        """Raise AssertionError if a packet that left the switch by any port is unread."""
        for port in sorted(self._unread):
            self.verify_no_packet(port)

    def request(self, operation: Operation) -> Answer:
        """Send an operation, and return its answer. "ok" is false if the operation was refused."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(operation) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise OSError(self._read_error_text()) from None
        line = self._process.stdout.readline()
        if not line:
            raise OSError(self._read_error_text())
        answer: Answer = json.loads(line)
        return answer

    def _store_sent(self, answer: Answer) -> list[tuple[int, bytes]]:
        """Store the packets of an answer as unread, and return them."""
        sent = [
            (packet["port"], bytes.fromhex(packet["bytes"])) for packet in answer.get("sent", [])
        ]
        for port, data in sent:
            self._unread.setdefault(port, deque()).append(data)
        return sent

    def _read_error_text(self) -> str:
        """Wait until nagi-switch has ended, and return its error message."""
        self._process.wait()
        with open(self._errors_path) as errors:
            return errors.read().strip() or "nagi-switch ended without an answer"
