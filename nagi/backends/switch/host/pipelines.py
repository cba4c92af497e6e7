# SPDX-License-Identifier: Apache-2.0
"""Install the P4 pipeline of a switch, edge.p4 or a user's own, and read its counters."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from importlib import resources
from typing import Mapping, Optional

from nagi_agent.contracts import Counters, Json, NodePlan, OwnPipelinePlan, SwitchPlan
from nagi_p4 import edge
from nagi_p4.operations import Operation, Refused
from nagi_p4.switch import Switch

ENTRIES = "entries.jsonl"
_EDGE_P4INFO = "edge.p4info.txtpb"


def require_switch(node: NodePlan) -> SwitchPlan:
    """Return the switch of a node. The node must be a switch."""
    assert node.switch is not None
    return node.switch


class Pipeline(ABC):
    """The P4 pipeline of one switch: its files, its table entries and its counters.

    Attributes:
        file: name of the pipeline's JSON in the run's directory.
        settings: keys that the pipeline adds to nagi-switch's configuration.
    """

    file: str
    settings: Json

    @abstractmethod
    def write_files(self, directory: str) -> None:
        """Write the pipeline's files to the run's directory.

        Raises:
            RuntimeError: The edge.p4 of this agent is not the edge.p4 of the plan.
        """

    @abstractmethod
    def install_entries(
        self,
        switch: Switch,
        macs: Mapping[str, edge.Macs],
        mtus: Mapping[str, int],
        first_operations: list[Operation],
    ) -> None:
        """Perform `first_operations`, then install the pipeline's entries.

        The switch must already run the pipeline.

        Args:
            switch: a client of the switch.
            macs: link -> MAC addresses of the interface and of its neighbour.
            mtus: link -> MTU of the interface, in bytes.
            first_operations: operations to perform before the entries are installed.

        Raises:
            RuntimeError: The switch refuses an operation.
        """

    @abstractmethod
    def read_p4info(self) -> bytes:
        """Return the pipeline's P4Info in protobuf's text format."""

    @abstractmethod
    def read_counter_values(self, switch: Switch) -> Optional[Json]:
        """Read the pipeline's counters, as JSON of the contract Counters.

        Return None for a user's pipeline, because nagi does not know the counters of its program.

        Raises:
            RuntimeError: The switch does not answer.
        """

    def read_counters(self, switch: Switch) -> Optional[Counters]:
        """Read the pipeline's counters as an object of the contract. See read_counter_values()."""
        values = self.read_counter_values(switch)
        return None if values is None else Counters.from_json(values)


class EdgePipeline(Pipeline):
    """The pipeline edge.p4, which is shipped with the agent."""

    file = "edge.json"

    def __init__(self, node: NodePlan) -> None:
        self._node = node
        self.settings: Json = {"cpu_port": edge.CPU_PORT}

    def write_files(self, directory: str) -> None:
        program = edge.read_pipeline()
        if hashlib.sha256(program).hexdigest() != require_switch(self._node).sha256:
            raise RuntimeError(
                "the plan was made with another version of edge.p4 than this agent has; build nagi "
                "again"
            )
        with open(f"{directory}/{self.file}", "wb") as file:
            file.write(program)

    def install_entries(
        self,
        switch: Switch,
        macs: Mapping[str, edge.Macs],
        mtus: Mapping[str, int],
        first_operations: list[Operation],
    ) -> None:
        routes, ports = self._node.routes, require_switch(self._node).ports
        try:
            switch.perform_all(
                [*first_operations, *edge.build_operations(routes, ports, macs, mtus)]
            )
        except Refused as refused:
            raise RuntimeError(str(refused)) from None

    def read_p4info(self) -> bytes:
        shipped = resources.files("nagi_p4").joinpath(_EDGE_P4INFO)
        if shipped.is_file():
            return shipped.read_bytes()
        # In a checkout the file is in p4/.
        package = os.path.dirname(edge.__file__)
        with open(os.path.join(package, "..", "..", _EDGE_P4INFO), "rb") as file:
            return file.read()

    def read_counter_values(self, switch: Switch) -> Optional[Json]:
        try:
            return edge.read_counters(switch, require_switch(self._node).ports)
        except (Refused, OSError) as error:
            raise RuntimeError(str(error)) from None


class OwnPipeline(Pipeline):
    """A user's own pipeline, which is part of the plan."""

    file = "pipeline.json"

    def __init__(self, plan: OwnPipelinePlan) -> None:
        self._plan = plan
        self.settings: Json = {}
        if plan.cpu_port is not None:
            self.settings["cpu_port"] = plan.cpu_port
        if plan.entries is not None:
            self.settings["entries"] = ENTRIES

    def write_files(self, directory: str) -> None:
        _write_text(f"{directory}/{self.file}", self._plan.program)
        if self._plan.entries is not None:
            _write_text(f"{directory}/{ENTRIES}", self._plan.entries)

    def install_entries(
        self,
        switch: Switch,
        macs: Mapping[str, edge.Macs],
        mtus: Mapping[str, int],
        first_operations: list[Operation],
    ) -> None:
        try:
            switch.perform_all(first_operations)
        except Refused as refused:
            raise RuntimeError(str(refused)) from None
        if switch.target == "nagi":
            return  # nagi-switch has read the entries from the file that its configuration names
        for number, line in enumerate((self._plan.entries or "").splitlines(), 1):
            if not line.strip():
                continue
            try:
                switch.perform(json.loads(line))
            except Refused as refused:
                raise RuntimeError(f"{ENTRIES}:{number}: {refused}") from None

    def read_p4info(self) -> bytes:
        assert self._plan.p4info is not None  # the planner refuses P4Runtime without P4Info
        return self._plan.p4info.encode()

    def read_counter_values(self, switch: Switch) -> Optional[Json]:
        return None


def make_pipeline(node: NodePlan) -> Pipeline:
    """Return the pipeline of a node that is a switch."""
    plan = require_switch(node).own
    return EdgePipeline(node) if plan is None else OwnPipeline(plan)


def _write_text(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
