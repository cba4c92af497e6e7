# SPDX-License-Identifier: Apache-2.0
"""The command nagi-agent. What it is told is in a batch (nagi_contracts/batch.py): a file or, for
`-`, its standard input. It answers in JSON.

    inspect BATCH              what is this host like?
    check BATCH                what would keep this batch from running?
    hold BATCH HOLDER          holds this host for a campaign, or renews its lease
    run BATCH --start-at TIME  runs the batch, beginning at TIME (seconds since the epoch)
    up BATCH                   sets the batch's first run up, without its flows, until SIGTERM
    paths BATCH                do the far ends of this node's links answer?
    end BATCH                  ends the agent that is at work, if there is one
    restore BATCH              puts back what an agent that died had set
    release BATCH              lets this host go and puts everything back
    guest JOB                  is the first process of a guest of the virtual lab
    bmv2 CONFIGURATION         runs bmv2's simple_switch until SIGTERM (standing.py)

Exit status: 0 done (a batch's records say how each run went), 2 refused, 3 stopped.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import shutil
import sys
from typing import Optional

from nagi_agent import guest, hold, journal, live, standing
from nagi_agent.batches import remove_collected, run_batch
from nagi_agent.contracts import Batch, Json
from nagi_agent.inspection import inspect, problems
from nagi_agent.job import Job
from nagi_agent.run import Stopped, stop_on_signals

_SCHEMA_VERSION = 1


def _read(path: str) -> Batch:
    if path == "-":
        batch: Json = json.load(sys.stdin)
    else:
        with open(path, encoding="utf-8") as file:
            batch = json.load(file)
    if batch.get("schema_version") != _SCHEMA_VERSION:
        raise RuntimeError(f"{path}: this agent cannot read version {batch.get('schema_version')}")
    return Batch.from_json(batch)


def _say(answer: object) -> int:
    print(json.dumps(answer))
    return 0


def _up(batch: Batch) -> int:
    stop_on_signals()
    job = Job(batch)
    try:
        with hold.at_work(job.state):
            journal.restore(job.settings_journal)
            live.stay_up(job, batch.runs[0].plan)
    except Stopped:
        return 0
    return 0


def _refused(held: hold.Held) -> int:
    print(f"nagi-agent: {held}", file=sys.stderr)
    print(json.dumps({"holder": held.holder.to_json() if held.holder else {}}))
    return 2


def _hold(batch: Batch, holder: str) -> int:
    """Prints whether an earlier holder's settings were put back; who holds the host if refused."""
    try:
        restored = hold.hold(batch.state, hold.read_request(json.loads(holder)))
    except hold.Held as held:
        return _refused(held)
    return _say({"restored": restored})


def _release(batch: Batch, token: Optional[str], home: Optional[str]) -> int:
    remove_collected(batch)
    try:
        held = hold.release(batch.state, token)
    except hold.Held as other:
        return _refused(other)
    finally:
        if home and not glob.glob(os.path.join(batch.spool, "*", "node.json")):
            shutil.rmtree(home, ignore_errors=True)
    return _say({"held": held})


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="nagi-agent", description="Runs a host's part of nagi's runs."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in (
        "inspect",
        "check",
        "hold",
        "run",
        "up",
        "paths",
        "end",
        "restore",
        "release",
        "guest",
        "bmv2",
    ):
        command = commands.add_parser(name)
        command.add_argument("batch")
        if name == "run":
            command.add_argument("--start-at", type=float, required=True)
        elif name == "hold":
            command.add_argument("holder")
        elif name == "release":
            command.add_argument("--token", help="only if it is held for this one")
            command.add_argument(
                "--tidy", metavar="DIRECTORY", help="removes it, if no records are left to fetch"
            )
    given = parser.parse_args()
    if given.command == "guest":
        guest.main(given.batch)
    if given.command == "bmv2":
        return standing.main(given.batch)
    try:
        batch = _read(given.batch)
        if given.command == "inspect":
            return _say(inspect(batch).to_json())
        if given.command == "check":
            return _say({"node": batch.node, "problems": problems(batch)})
        if given.command == "hold":
            return _hold(batch, given.holder)
        if given.command == "run":
            return run_batch(batch, given.start_at)
        if given.command == "up":
            return _up(batch)
        if given.command == "paths":
            readings = live.paths(Job(batch), batch.runs[0].plan)
            return _say([reading.to_json() for reading in readings])
        if given.command == "end":
            hold.end_agent(batch.state)
            return _say({})
        if given.command == "restore":
            return _say({"restored": journal.restore(Job(batch).settings_journal)})
        return _release(batch, given.token, given.tidy)
    except (OSError, ValueError, RuntimeError) as error:
        print(f"nagi-agent: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
