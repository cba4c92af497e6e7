# SPDX-License-Identifier: Apache-2.0
"""Find the switch targets that this host supports, and start a node's switch.

A target is a program or device that executes the pipeline: nagi-switch, bmv2, or P4Runtime.
"""

from __future__ import annotations

import os
import shutil
from typing import Optional

from nagi_agent import host
from nagi_agent.contracts import Batch, NodePlan, RunPlan, SwitchFacts
from nagi_agent.job import Job
from nagi_agent.processes import find_service_user, run_command

from nagi.backends.switch.host import bmv2, controllers, p4runtime
from nagi.backends.switch.host.running_switches import (
    RunningNagiSwitch,
    RunningP4RuntimeSwitch,
    RunningSimpleSwitch,
    RunningSwitch,
    Target,
    read_programs,
)
from nagi.backends.switch.host.switch_settings import NAGI_SWITCH


def find_switch(plan: RunPlan, name: str) -> Optional[NodePlan]:
    """Return the plan of the node `name`, or None if the node is not a switch."""
    matches = (node for node in plan.switches() if node.name == name)
    return next(matches, None)


def find_problem(batch: Batch) -> Optional[str]:
    """Return why this host cannot run its switch in the runs of a batch, with the cure.

    The target and users' controllers are checked. Return None if there is no problem, or if the
    node of this host is not a switch.
    """
    programs = read_programs(batch.backends)
    nodes = [(run, find_switch(run.plan, batch.node)) for run in batch.runs]
    for _, node in nodes:
        if node is not None:
            problem = controllers.find_problem(node, batch.user or find_service_user())
            if problem is not None:
                return problem
    for run, node in nodes:
        if node is None:
            continue
        if run.plan.switch_target == "p4runtime":
            return p4runtime.find_problem(programs)
        if run.plan.switch_target == "bmv2":
            return bmv2.find_problem(
                programs.simple_switch, programs.simple_switch_client, batch.virtual
            )
        return find_nagi_switch_problem(programs.nagi_switch)
    return None


def find_nagi_switch_problem(program: Optional[str]) -> Optional[str]:
    """Return why nagi-switch does not run on this host, with the cure, or None if it runs.

    Args:
        program: path of nagi-switch, or None if the batch does not name it.
    """
    if not program or shutil.which(program) is None:
        return f"there is no {program or NAGI_SWITCH}; build it with `make`"
    try:
        run_command([program, "--version"])
    except (OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        return (
            f"{NAGI_SWITCH} does not run: {reason}; provision this host with nagi_switch_target: "
            f"nagi, or set nagi_switch to the path of a {NAGI_SWITCH} that was built on this host"
        )
    return None


def list_installed(job: Job) -> dict[Target, SwitchFacts]:
    """Return the targets that are installed on this host or reachable from it by P4Runtime.

    Returns:
        Target -> its version, and the problem that prevents its use, or None.
    """
    # Only root can test whether bmv2's Thrift server can be restricted to this host.
    is_root = os.geteuid() == 0
    switches: dict[Target, SwitchFacts] = {}
    programs = read_programs(job.backends)
    program = programs.nagi_switch or shutil.which(NAGI_SWITCH)
    if program:
        switches["nagi"] = SwitchFacts(
            version=host.read_version(program, "--version"),
            problem=find_nagi_switch_problem(program),
        )
    program = programs.simple_switch or shutil.which(bmv2.NAME)
    if program:
        switches["bmv2"] = SwitchFacts(
            version=host.read_version(program, "--version"),
            problem=bmv2.find_problem(program, programs.simple_switch_client, not is_root),
        )
    if programs.p4runtime is not None:
        switches["p4runtime"] = p4runtime.describe_switch(programs.p4runtime)
    return switches


def start_switch(
    job: Job,
    plan: RunPlan,
    directory: str,
    epoch_s: float,
    *,
    live: bool = False,
) -> RunningSwitch:
    """Start the switch of this node, which must be a switch.

    Args:
        job: this host's settings.
        plan: the run.
        directory: the run's directory, in which the switch's files are written.
        epoch_s: the instant 0 of the switch's clock, in seconds since the Unix epoch.
        live: whether the topology is live, so that any program may use it.

    Raises:
        RuntimeError: The switch cannot be started.
    """
    node = plan.node(job.node)
    if plan.switch_target == "p4runtime":
        return RunningP4RuntimeSwitch(job, plan, node, directory, epoch_s, live)
    if plan.switch_target == "bmv2":
        return RunningSimpleSwitch(job, plan, node, directory, live)
    return RunningNagiSwitch(job, plan, node, directory, epoch_s, live)
