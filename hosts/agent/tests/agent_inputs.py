# SPDX-License-Identifier: Apache-2.0
"""What the agent's tests give it: the worked example's plan, and a batch, both with changes."""

from __future__ import annotations

import copy
import json
from pathlib import Path

from nagi_contracts.paths import SCHEMAS

(_RUN,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())
_PLAN = json.loads((_RUN / "plan.json").read_text())


def plan_json(**changes) -> dict:
    return {**copy.deepcopy(_PLAN), **changes}


def flow_json(**changes) -> dict:
    """A flow between S and D of this host, as records call it `app`."""
    ends = {"sender": "S", "receiver": "D"}
    addresses = {"sender_address": "127.0.0.1", "receiver_address": "127.0.0.1"}
    own = {"name": "app", "port": 5001, "congestion_control": "cubic", "max_window": None}
    return {**copy.deepcopy(_PLAN["flows"][0]), **ends, **addresses, **own, **changes}


def batch_json(directory: Path, *plans: dict, **changes) -> dict:
    """A batch of these runs, whose files are in `directory`."""
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
