# SPDX-License-Identifier: Apache-2.0
"""The needs of switches: nagi-switch, bmv2's simple_switch, or a switch with P4Runtime."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from nagi_contracts import paths
from nagi_contracts.errors import refuse
from nagi_contracts.plan import RunPlan, SwitchTarget
from nagi_contracts.records import compute_sha256
from nagi_p4.simple_switch_client import find_client_directory
from nagi_p4.simple_switch_client import find_problem as find_simple_switch_problem

from nagi.backends.interface import Needs
from nagi.spec.experiment import Experiment


class SwitchNeeds(Needs):
    """The needs of nodes that are switches: the programs of their target.

    There are no users, because runs cannot be planned if such a program is missing.
    """

    def is_needed_by(self, experiment: Experiment) -> bool:
        return bool(experiment.list_nodes("switch"))

    def hash_programs(self, is_local: bool, switch: SwitchTarget) -> dict[str, str | None]:
        if switch == "nagi":
            return {"nagi_switch": compute_sha256(_find_nagi_switch())}
        if switch == "bmv2":  # real hosts have their own simple_switch
            return {"simple_switch": compute_sha256(_find_simple_switch()) if is_local else None}
        return _hash_p4runtime_programs(is_local)

    def classify_run(self, plan: RunPlan) -> str:
        return "switches" if plan.switches() else ""


def _hash_p4runtime_programs(is_local: bool) -> dict[str, str | None]:
    """Return the checksums of the P4Runtime server and, if `is_local`, of this machine's switch.

    The switch is bmv2's simple_switch_grpc if it is installed, and nagi-switch if not.
    """
    sources = sorted((paths.P4_CONTROL / "nagi_p4runtime").rglob("*.py"))
    joined = b"".join(source.read_bytes() for source in sources)
    server = hashlib.sha256(joined).hexdigest()
    if not is_local:
        return {"nagi_p4runtime": server}
    simple_switch_grpc = shutil.which("simple_switch_grpc")
    # The switch comes first: the id of a build depends on the order.
    if simple_switch_grpc is None:
        return {"nagi_switch": compute_sha256(_find_nagi_switch()), "nagi_p4runtime": server}
    return {"simple_switch": compute_sha256(Path(simple_switch_grpc)), "nagi_p4runtime": server}


def _find_nagi_switch() -> Path:
    program = paths.executable("nagi-switch")
    if not program.exists():
        raise refuse(f"there is no {program}", "build it: `make setup`")
    return program


def _find_simple_switch() -> Path:
    problem = find_simple_switch_problem(client=find_client_directory())
    if problem is not None:
        reason, _, cure = problem.partition("; ")
        raise refuse(f"--switch bmv2: {reason}", cure)
    executable = shutil.which("simple_switch")
    assert executable is not None
    return Path(executable)


part = SwitchNeeds()
