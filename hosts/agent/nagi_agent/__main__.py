# SPDX-License-Identifier: Apache-2.0
"""The command nagi-agent. It reads a batch and prints its answer as JSON.

A batch contains the runs that one node executes one after the other (nagi_contracts/batch.py).
BATCH is the path of a batch, or `-` for standard input.

    inspect BATCH              describe this host
    check BATCH                list the problems that would prevent this batch from running
    hold BATCH HOLDER          reserve this host for a campaign, or renew the lease
    run BATCH --start-at TIME  execute the batch from TIME on (seconds since the epoch)
    up BATCH                   set up the batch's first run without its flows, until SIGTERM
    paths BATCH                ping the neighbours at the other ends of this node's links
    end BATCH                  end the agent that runs on this host, if there is one
    restore BATCH              restore the settings that an interrupted agent changed
    release BATCH              end the reservation of this host and restore all settings
    guest JOB                  run as the first process of a guest of the virtual lab

Backends add commands (HostPart.commands), such as `bmv2 CONFIGURATION`, which runs bmv2's
simple_switch until SIGTERM.

Exit status: 0 if the command was executed (also if runs failed: the record of each run has its
result), 2 if the command failed or was refused, 3 if a signal stopped `run`.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import shutil
import sys
from typing import Optional

from nagi_agent import guest, hold, journal, live
from nagi_agent.backends import load_parts
from nagi_agent.batches import remove_collected, run_batch
from nagi_agent.contracts import Batch, Json
from nagi_agent.inspection import find_problems, inspect
from nagi_agent.job import Job
from nagi_agent.run import Stopped, stop_on_signals

_SCHEMA_VERSION = 1


def _read_batch(path: str) -> Batch:
    """Return the batch in a file, or on standard input if `path` is `-`.

    Raises:
        RuntimeError: The batch has another schema version.
    """
    if path == "-":
        batch: Json = json.load(sys.stdin)
    else:
        with open(path, encoding="utf-8") as file:
            batch = json.load(file)
    if batch.get("schema_version") != _SCHEMA_VERSION:
        version = batch.get("schema_version")
        raise RuntimeError(f"{path}: this agent cannot read version {version} of batches")
    return Batch.from_json(batch)


def _print_json(answer: object) -> int:
    print(json.dumps(answer))
    return 0


def _keep_up(batch: Batch) -> int:
    """Set up the batch's first run until a signal stops this agent, and return the exit status 0.

    Settings that an earlier agent left are restored first.
    """
    stop_on_signals()
    job = Job(batch)
    try:
        with hold.register_agent(job.state):
            journal.restore(job.settings_journal)
            live.stay_up(job, batch.runs[0].plan)
    except Stopped:
        return 0
    return 0


def _report_holder(error: hold.HeldError) -> int:
    """Print the holder of the host, to stderr as text and to stdout as JSON; return status 2."""
    print(f"nagi-agent: {error}", file=sys.stderr)
    print(json.dumps({"holder": error.holder.to_json() if error.holder else {}}))
    return 2


def _hold(batch: Batch, holder: str) -> int:
    """Reserve the host, and return the exit status: 2 if another holder has reserved it, else 0.

    Print as JSON whether settings of an earlier holder were restored, or who has reserved the host.
    `holder` is the JSON of the request, with owner, campaign, token and end of the lease.
    """
    try:
        restored = hold.hold(batch.state, hold.parse_request(json.loads(holder)))
    except hold.HeldError as error:
        return _report_holder(error)
    return _print_json({"restored": restored})


def _release(batch: Batch, token: Optional[str], home: Optional[str]) -> int:
    """Release the host, remove the directory `home`, and return the exit status.

    Print as JSON whether the host was reserved (status 0), or who has reserved it with another
    token (status 2).

    Args:
        batch: the batch of this host. The records of its collected runs are removed.
        token: token of the holder; None releases any holder's reservation.
        home: directory to remove, or None. It stays if the batch's spool still has records that
            were not collected.
    """
    remove_collected(batch)
    try:
        was_held = hold.release(batch.state, token)
    except hold.HeldError as error:
        return _report_holder(error)
    finally:
        if home and not glob.glob(os.path.join(batch.spool, "*", "node.json")):
            shutil.rmtree(home, ignore_errors=True)
    return _print_json({"held": was_held})


def main() -> int:
    """Run the command that the command line names, and return the exit status: see the module."""
    parser = argparse.ArgumentParser(
        prog="nagi-agent", description="Execute one host's part of nagi's runs."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    backend_commands = {
        name: function for part in load_parts().values() for name, function in part.commands.items()
    }
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
        *backend_commands,
    ):
        command = commands.add_parser(name)
        command.add_argument("batch")
        if name == "run":
            command.add_argument("--start-at", type=float, required=True)
        elif name == "hold":
            command.add_argument("holder")
        elif name == "release":
            command.add_argument("--token", help="release only if this token holds the host")
            command.add_argument(
                "--tidy",
                metavar="DIRECTORY",
                help="remove this directory unless it has uncollected records",
            )
    options = parser.parse_args()
    if options.command == "guest":
        guest.main(options.batch)
    if options.command in backend_commands:
        return backend_commands[options.command](options.batch)
    try:
        batch = _read_batch(options.batch)
        if options.command == "inspect":
            return _print_json(inspect(batch).to_json())
        if options.command == "check":
            return _print_json({"node": batch.node, "problems": find_problems(batch)})
        if options.command == "hold":
            return _hold(batch, options.holder)
        if options.command == "run":
            return run_batch(batch, options.start_at)
        if options.command == "up":
            return _keep_up(batch)
        if options.command == "paths":
            readings = live.measure_paths(Job(batch), batch.runs[0].plan)
            return _print_json([reading.to_json() for reading in readings])
        if options.command == "end":
            hold.end_agent(batch.state)
            return _print_json({})
        if options.command == "restore":
            return _print_json({"restored": journal.restore(Job(batch).settings_journal)})
        return _release(batch, options.token, options.tidy)
    except (OSError, ValueError, RuntimeError) as error:
        print(f"nagi-agent: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
