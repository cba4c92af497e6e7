# SPDX-License-Identifier: Apache-2.0
"""Input for the agent's tests: plans, flows and batches, made from the worked example."""

from __future__ import annotations

import copy
import json
from pathlib import Path

from nagi_contracts.paths import SCHEMAS

(_RUN,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())
_PLAN = json.loads((_RUN / "plan.json").read_text())


def make_plan_json(**changes) -> dict:
    """Return the plan of the worked example with changes."""
    return {**copy.deepcopy(_PLAN), **changes}


def make_flow_json(**changes) -> dict:
    """Return the flow `app` from S to D, whose addresses are this host's, with changes."""
    ends = {"sender": "S", "receiver": "D"}
    addresses = {"sender_address": "127.0.0.1", "receiver_address": "127.0.0.1"}
    fields = {"name": "app", "port": 5001, "congestion_control": "cubic", "max_window": None}
    return {**copy.deepcopy(_PLAN["flows"][0]), **ends, **addresses, **fields, **changes}


def make_batch_json(directory: Path, *plans: dict, **changes) -> dict:
    """Return a batch of plans whose files are in `directory`, with changes."""
    return {
        "schema_version": 1,
        "node": "client",
        "is_emulator": False,
        "interfaces": {},
        "spool": str(directory / "spool"),
        "state": str(directory / "state"),
        "user": "nobody",
        "token": None,
        "nagi_link": "/proc/nowhere/nagi-link",
        "nagi_switch": None,
        "simple_switch": None,
        "simple_switch_client": None,
        "virtual": False,
        "runs": [{"offset_s": 0.0, "plan": plan} for plan in plans],
        "collected": [],
        **changes,
    }
