# SPDX-License-Identifier: Apache-2.0
"""A program on nagi-switch without a network and without a clock: packets in, packets out, and all
operations in between (`nagi-switch simulate`). For tests of P4 programs: its methods are those that
tests of PTF call, and raise AssertionError with both packets.

    with Simulation("mine.json", ports=[1, 2]) as switch:
        switch.add_entry("ingress.routes", ["10.0.0.0/8"], "ingress.forward", [2])
        switch.send_packet(1, packet)
        switch.verify_packet(expected, 2)
        switch.verify_no_other_packets()

A packet is bytes, or what bytes() makes bytes of, as scapy's packets.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections import deque
from typing import Any, Deque, Iterable, Mapping, Optional, Sequence, SupportsBytes, Union

from nagi_p4.operations import Answer, Operation, Refused, refusal
from nagi_p4.switch import Switch

Packet = Union[bytes, SupportsBytes]
Port = Union[int, Mapping[str, Any]]


class Simulation(Switch):
    """`program`: p4c's JSON. `ports`: numbers, or what nagi-switch's configuration says of a port
    ({"number": 1, "rate_bps": 1000000}). `executable`: the program nagi-switch; on PATH if it is
    no path. `settings`: other keys of its configuration, as `seed` and `cpu_port`.

    Raises Refused, with nagi-switch's message, if it does not take program or settings, and OSError
    if there is no such executable."""

    target = "nagi"
    takes_back = True

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
            "ports": [{"number": each} if isinstance(each, int) else dict(each) for each in ports],
            **settings,
        }
        self._sent: dict[int, Deque[bytes]] = {}
        self._directory = tempfile.TemporaryDirectory(prefix="nagi-simulation-")
        file = os.path.join(self._directory.name, "switch.json")
        with open(file, "w") as stream:
            json.dump(config, stream, indent=1)
        self._said = os.path.join(self._directory.name, "errors")
        try:
            with open(self._said, "w") as errors:
                self._process = subprocess.Popen(
                    [executable, "simulate", file],
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
        answer = self.ask(operation)
        if not answer["ok"]:
            raise refusal(operation, answer)
        return answer

    def perform_all(self, operations: Sequence[Operation]) -> list[Answer]:
        answers: list[Answer] = self.perform({"op": "batch", "operations": list(operations)})[
            "answers"
        ]
        return answers

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it may have ended without reading all
            self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._directory.cleanup()

    def send_packet(self, port: int, packet: Packet) -> list[tuple[int, bytes]]:
        """A packet comes in. Returns what has left by now: port and bytes."""
        operation = {"op": "packet", "port": port, "bytes": bytes(packet).hex()}
        return self._collect(self.perform(operation))

    def advance(self, us: int) -> list[tuple[int, bytes]]:
        """Time goes on by so many microseconds. Returns what has left by now."""
        return self._collect(self.perform({"op": "advance", "us": us}))

    def send_from_controller(self, packet: Packet) -> list[tuple[int, bytes]]:
        """A packet comes in at the CPU port, with the header that the program expects there.
        Returns what has left by now."""
        self.packet_out(bytes(packet))
        return self.advance(0)

    def next_packet(self, port: int) -> Optional[bytes]:
        """The first packet of a port that nobody has asked for yet; None if there is none."""
        waiting = self._sent.get(port)
        return waiting.popleft() if waiting else None

    def verify_packet(self, packet: Packet, port: int) -> None:
        """The next packet that left by `port` is this one."""
        expected, got = bytes(packet), self.next_packet(port)
        if got is None:
            others = sorted(each for each, waiting in self._sent.items() if waiting)
            beside = f"; packets wait at ports {others}" if others else ""
            raise AssertionError(f"port {port}: nothing left{beside}\n  expected {expected.hex()}")
        if got != expected:
            raise AssertionError(
                f"port {port}:\n  expected {expected.hex()}\n  got      {got.hex()}"
            )

    def verify_no_packet(self, port: int) -> None:
        """Nothing left by `port` that was not verified."""
        if got := self.next_packet(port):
            raise AssertionError(f"port {port}: nothing expected\n  got      {got.hex()}")

    def verify_no_other_packets(self) -> None:
        """Nothing left by any port that was not verified."""
        for port in sorted(self._sent):
            self.verify_no_packet(port)

    def _collect(self, answer: Answer) -> list[tuple[int, bytes]]:
        sent = [(each["port"], bytes.fromhex(each["bytes"])) for each in answer.get("sent", [])]
        for port, data in sent:
            self._sent.setdefault(port, deque()).append(data)
        return sent

    def ask(self, request: Operation) -> Answer:
        """The answer to an operation, whether it is done or refused."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise OSError(self._last_words()) from None
        line = self._process.stdout.readline()
        if not line:
            raise OSError(self._last_words())
        answer: Answer = json.loads(line)
        return answer

    def _last_words(self) -> str:
        self._process.wait()
        with open(self._said) as errors:
            return errors.read().strip() or "nagi-switch ended without an answer"
