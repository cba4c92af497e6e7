# SPDX-License-Identifier: Apache-2.0
"""The P4 pipeline of a node that is a switch: edge.p4, or a program of the user's. What the switch
is given of it, and what it has counted."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from importlib import resources
from typing import Mapping, Optional

from nagi_p4 import edge
from nagi_p4.operations import Operation, Refused
from nagi_p4.switch import Switch

from nagi_agent.contracts import Counters, Json, NodePlan, OwnPipelinePlan, SwitchPlan

ENTRIES = "entries.jsonl"
_EDGE_P4INFO = "edge.p4info.txtpb"


def switch_of(node: NodePlan) -> SwitchPlan:
    """How a node forwards that is a switch."""
    assert node.switch is not None
    return node.switch


class Pipeline(ABC):
    """`file`: what its JSON is called in the run's directory; `settings`: what nagi-switch's
    configuration has besides."""

    file: str
    settings: Json

    @abstractmethod
    def write(self, directory: str) -> None:
        """Leaves its files in the run's directory. Raises RuntimeError."""

    @abstractmethod
    def fill(
        self,
        switch: Switch,
        macs: Mapping[str, edge.Macs],
        mtus: Mapping[str, int],
        before: list[Operation],
    ) -> None:
        """Gives a switch that has it the entries that go with it, after other operations. Raises
        RuntimeError."""

    @abstractmethod
    def p4info(self) -> bytes:
        """Its P4Info, as text."""

    @abstractmethod
    def counted(self, switch: Switch) -> Optional[Json]:
        """What it has counted (contract Counters). None: nothing that a plan could know of.
        Raises RuntimeError."""

    def counters(self, switch: Switch) -> Optional[Counters]:
        """The same, read."""
        found = self.counted(switch)
        return None if found is None else Counters.from_json(found)


class EdgePipeline(Pipeline):
    """edge.p4, which came with the agent."""

    file = "edge.json"

    def __init__(self, node: NodePlan) -> None:
        self._node = node
        self.settings: Json = {"cpu_port": edge.CPU_PORT}

    def write(self, directory: str) -> None:
        program = edge.read_pipeline()
        if hashlib.sha256(program).hexdigest() != switch_of(self._node).sha256:
            raise RuntimeError("the plan is for another edge.p4 than came with the agent")
        with open(f"{directory}/{self.file}", "wb") as file:
            file.write(program)

    def fill(
        self,
        switch: Switch,
        macs: Mapping[str, edge.Macs],
        mtus: Mapping[str, int],
        before: list[Operation],
    ) -> None:
        routes, ports = self._node.routes, switch_of(self._node).ports
        try:
            switch.perform_all([*before, *edge.build_operations(routes, ports, macs, mtus)])
        except Refused as refused:
            raise RuntimeError(str(refused)) from None

    def p4info(self) -> bytes:
        own = resources.files("nagi_p4").joinpath(_EDGE_P4INFO)
        if own.is_file():
            return own.read_bytes()
        # In a checkout.
        beside = os.path.dirname(edge.__file__)
        with open(os.path.join(beside, "..", "..", _EDGE_P4INFO), "rb") as file:
            return file.read()

    def counted(self, switch: Switch) -> Optional[Json]:
        try:
            return edge.read_counters(switch, switch_of(self._node).ports)
        except (Refused, OSError) as error:
            raise RuntimeError(str(error)) from None


class OwnPipeline(Pipeline):
    """A program of the user's, which came with the plan."""

    file = "pipeline.json"

    def __init__(self, own: OwnPipelinePlan) -> None:
        self._own = own
        self.settings: Json = {}
        if own.cpu_port is not None:
            self.settings["cpu_port"] = own.cpu_port
        if own.entries is not None:
            self.settings["entries"] = ENTRIES

    def write(self, directory: str) -> None:
        _write(f"{directory}/{self.file}", self._own.program)
        if self._own.entries is not None:
            _write(f"{directory}/{ENTRIES}", self._own.entries)

    def fill(
        self,
        switch: Switch,
        macs: Mapping[str, edge.Macs],
        mtus: Mapping[str, int],
        before: list[Operation],
    ) -> None:
        try:
            switch.perform_all(before)
        except Refused as refused:
            raise RuntimeError(str(refused)) from None
        if switch.target == "nagi":
            return  # its configuration named them
        for number, line in enumerate((self._own.entries or "").splitlines(), 1):
            if not line.strip():
                continue
            try:
                switch.perform(json.loads(line))
            except Refused as refused:
                raise RuntimeError(f"{ENTRIES}:{number}: {refused}") from None

    def p4info(self) -> bytes:
        assert self._own.p4info is not None  # the plan was refused
        return self._own.p4info.encode()

    def counted(self, switch: Switch) -> Optional[Json]:
        return None


def pipeline_of(node: NodePlan) -> Pipeline:
    """That of a switch."""
    own = switch_of(node).own
    return EdgePipeline(node) if own is None else OwnPipeline(own)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
