# SPDX-License-Identifier: Apache-2.0
"""Input for the agent's tests: plans, flows and batches, made from the worked example."""

from __future__ import annotations

import copy
import json
from pathlib import Path

from nagi_agent.contracts import Batch
from nagi_agent.job import Job
from nagi_contracts.paths import AGENT, FPGA, P4_CONTROL, ROOT, SCHEMAS

# Where a Python that does not have nagi finds the agent and its backends.
AGENT_PATH = [str(path) for path in (AGENT, P4_CONTROL, FPGA, ROOT)]
WITH_AGENT = f"PYTHONPATH={':'.join(AGENT_PATH)}"
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
        "virtual": False,
        "runs": [{"offset_s": 0.0, "plan": plan} for plan in plans],
        "collected": [],
        **changes,
    }


def make_emulator_job(directory: Path, ends: dict[str, tuple[str, ...]], **changes) -> Job:
    """Return the settings of an emulator in virtual time that has the interfaces `ends`."""
    settings = {"node": "emulator", "is_emulator": True, "interfaces": ends, "virtual": True}
    return Job(Batch.from_json(make_batch_json(directory, **(settings | changes))))
