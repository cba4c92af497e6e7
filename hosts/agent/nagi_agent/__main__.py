# SPDX-License-Identifier: Apache-2.0
"""The command nagi-agent.

    nagi-agent check BATCH                 what would keep this batch from running? (JSON)
    nagi-agent run BATCH --start-at TIME   runs it, beginning at TIME (seconds since the epoch)
    nagi-agent restore BATCH               puts back what an agent that died had set

Exit status: 0 the batch was run (its records say how each run went), 2 it was refused, 3 stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from typing import Any

from nagi_agent import flows
from nagi_agent.run import SCHEMA_VERSION, Job, NodeRun, Stopped, stop_on_signals
from nagi_agent.settings import restore


def _read(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        batch: dict[str, Any] = json.load(file)
    if batch.get("schema_version") != SCHEMA_VERSION:
        raise RuntimeError(
            f"{path}: this agent cannot read version {batch.get('schema_version')} of a batch"
        )
    return batch


def _problems(batch: dict[str, Any]) -> list[str]:
    """What would keep the batch from running on this host."""
    problems = []
    if os.geteuid() != 0:
        problems.append("the agent is not root; connect as a user who is, or with `become`")
    programs = ["ip", "ethtool", "tcpdump", "iperf", "setpriv"]
    if batch["is_emulator"]:
        programs = ["ip", batch["nagi_link"]]
    for program in programs:
        if shutil.which(program) is None:
            problems.append(f"{program} is not installed; install it")
    if not batch["is_emulator"] and not problems:
        for port, address in sorted(
            {
                (flow["port"], flow["receiver_address"])
                for run in batch["runs"]
                for flow in run["plan"]["flows"]
                if flow["receiver"] == batch["node"]
            }
        ):
            try:
                flows.check_port(address, port)
            except RuntimeError as error:
                problems.append(str(error))
    return problems


def _run(batch: dict[str, Any], start_at: float) -> None:
    job = Job(batch)
    os.makedirs(job.spool, exist_ok=True)
    restore(job.journal)
    for run in batch["runs"]:
        NodeRun(job, run["plan"], start_at + run["offset_s"]).execute()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="nagi-agent", description="Runs a host's part of nagi's runs."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("check", "run", "restore"):
        command = commands.add_parser(name)
        command.add_argument("batch")
        if name == "run":
            command.add_argument("--start-at", type=float, required=True)
    arguments = parser.parse_args()
    try:
        batch = _read(arguments.batch)
    except (OSError, ValueError, RuntimeError) as error:
        print(f"nagi-agent: {error}", file=sys.stderr)
        return 2
    if arguments.command == "check":
        problems = _problems(batch)
        print(json.dumps({"node": batch["node"], "problems": problems}))
        return 0
    if arguments.command == "restore":
        restore(Job(batch).journal)
        return 0
    stop_on_signals()
    try:
        _run(batch, arguments.start_at)
    except Stopped:
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
