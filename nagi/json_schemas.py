# SPDX-License-Identifier: Apache-2.0
"""Make the published JSON Schemas (experiments/schemas).

`python -m nagi.json_schemas` replaces the schemas and the agent's module contracts.py, and prints
nothing.
"""

from __future__ import annotations

import json
from typing import Any

from nagi_contracts import paths
from nagi_contracts.applications import Applications
from nagi_contracts.base import Contract
from nagi_contracts.batch import Batch
from nagi_contracts.doctor import Doctor
from nagi_contracts.inspection import Holder, Inspection
from nagi_contracts.links import Links
from nagi_contracts.live import Live
from nagi_contracts.plan import RunPlan
from nagi_contracts.radios import Radios
from nagi_contracts.records import (
    Campaign,
    Flows,
    FrameRow,
    Manifest,
    NodeRecord,
    PacketRow,
    SchemeEvent,
    TcpInfoSample,
    TransmissionRow,
    Verdict,
)
from nagi_contracts.results import GoodputWindow, Metrics, ResultRow
from nagi_contracts.switches import ControllerFacts, QueueSample, Switches, SwitchRecord

from nagi import agent_contracts
from nagi.spec.schema import make_experiment_schema

CONTRACTS: dict[str, type[Contract]] = {
    "plan": RunPlan,
    "batch": Batch,
    "inspection": Inspection,
    "holder": Holder,
    "live": Live,
    "doctor": Doctor,
    "node": NodeRecord,
    "manifest": Manifest,
    "links": Links,
    "radios": Radios,
    "switch": SwitchRecord,
    "switches": Switches,
    "controller": ControllerFacts,
    "queue_samples": QueueSample,
    "flows": Flows,
    "applications": Applications,
    "tcp_info": TcpInfoSample,
    "packets": PacketRow,
    "transmissions": TransmissionRow,
    "frames": FrameRow,
    "scheme_events": SchemeEvent,
    "verdict": Verdict,
    "goodput": GoodputWindow,
    "metrics": Metrics,
    "results": ResultRow,
    "campaign": Campaign,
}
TABLES = (
    "tcp_info",
    "packets",
    "transmissions",
    "frames",
    "queue_samples",
    "scheme_events",
    "goodput",
    "results",
)  # the schema of a table describes one row


def make_schemas() -> dict[str, dict[str, Any]]:
    """Return file name, such as plan.schema.json -> schema; write no files."""
    schemas_by_name = {"experiment": make_experiment_schema()}
    for name, contract in CONTRACTS.items():
        schema = contract.model_json_schema(by_alias=True, mode="serialization")
        schemas_by_name[name] = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **schema,
        }
    return {f"{name}.schema.json": schema for name, schema in schemas_by_name.items()}


def format_schema(schema: dict[str, Any]) -> str:
    """Return a schema as the text of its file."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name, schema in make_schemas().items():
        (paths.SCHEMAS / name).write_text(format_schema(schema), encoding="utf-8")
    agent_contracts.TARGET.write_text(agent_contracts.render(), encoding="utf-8")
