# SPDX-License-Identifier: Apache-2.0
"""Real hosts, prepared for good: playbooks of the collection nagi.testbed in the user's terminal,
and what became of each host.

The playbook is run as a user would run it: with the user's Ansible settings, terminal and agent.
What became of hosts comes from the callback nagi.testbed.outcomes.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from nagi_contracts import paths
from nagi_contracts.errors import choices, refuse

from nagi.labs.ansible_runs import kill_workers_on_exit
from nagi.labs.cells import Cell
from nagi.labs.complaints import describe_failure, find_cure
from nagi.labs.errors import Interrupted

COLLECTION = "nagi.testbed"
_CALLBACK, _OUTCOMES = f"{COLLECTION}.outcomes", "NAGI_OUTCOMES"
_TIMEOUT_S = 5.0  # for Ansible to end when it is asked to
# Actions that look, and refuse: what they complain of was there before.
_CHECKS = ("assert", "fail", "validate_argument_spec")
# The task of playbooks/provision.yml in which a host stops that nothing is wrong with.
_STOPS_WITH_OTHERS = "Check that none is refused"
_MAX_REASONS = 3  # of one host that are shown
_READ_ABOVE = "read what Ansible says above"

HostStatus = Literal["ok", "refused", "failed", "unreachable", "stopped"]


@dataclass
class HostOutcome:
    """What became of a host. `changed`: the tasks that changed it, or would; `kept`: what stays,
    because its operator has edited it."""

    status: HostStatus = "stopped"
    changed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    what: str = ""
    cure: str = ""


@dataclass(frozen=True)
class Outcome:
    """What became of all hosts. `error`: what is wrong with none of them."""

    hosts: dict[str, HostOutcome]
    error: str = ""

    @property
    def ok(self) -> bool:
        return not self.error and all(host.status == "ok" for host in self.hosts.values())


def list_roles() -> list[str]:
    """The roles of the collection, which are also the tags of its playbooks."""
    return sorted(path.parents[1].name for path in paths.COLLECTION.glob("roles/*/tasks/main.yml"))


def select_hosts(cells: list[Cell], limit: Iterable[str], inventory: Path) -> list[str]:
    """The hosts that are named: by themselves, or by their cell; all if none is. Raises
    InputError."""
    by_name = {cell.name: [host.name for host in cell.hosts.values()] for cell in cells}
    every = [host for hosts in by_name.values() for host in hosts]
    by_name |= {host: [host] for host in every}
    found: list[str] = []
    for name in limit:
        if name not in by_name:
            what = f"--limit {name}: it has no such host, nor cell"
            raise refuse(what, choices(name, by_name), file=str(inventory))
        found += by_name[name]
    return list(dict.fromkeys(found)) or every


def make_playbook_command(playbook: str, inventory: Path, *options: str) -> list[str]:
    """The command line that runs a playbook of the collection."""
    return ["ansible-playbook", "-i", str(inventory), f"{COLLECTION}.{playbook}", *options]


def format_command(command: list[str]) -> str:
    """A command line as a user can give it: with the path of a program that the shell would not
    find, or find elsewhere."""
    own = _program_path(command[0])
    found = shutil.which(command[0])
    program = command[0] if found and Path(found).resolve() == own.resolve() else str(own)
    return shlex.join([program, *command[1:]])


def _program_path(program: str) -> Path:
    return Path(sys.prefix) / "bin" / program


def run_playbook(
    command: list[str],
    hosts: list[str],
    scratch: Path,
    interrupted: Callable[[], bool],
    output: IO[str] | None = None,
) -> Outcome:
    """Runs `command`, whose output goes to the terminal (or to `output`); what became of `hosts`.
    `scratch` is a directory of this call's own. Raises Interrupted."""
    record = scratch / "outcomes.jsonl"
    with kill_workers_on_exit(f"{_OUTCOMES}={record}"):
        process = subprocess.Popen(
            [_program_path(command[0]), *command[1:]], env=_make_environment(record), stdout=output
        )
        status = _wait(process, interrupted)
    if interrupted():
        raise Interrupted
    events = []
    if record.exists():
        events = [json.loads(line) for line in record.read_text().splitlines()]
    return _summarise_events(events, hosts, status)


def _make_environment(record: Path) -> dict[str, str]:
    """The user's environment, with the callback, and a locale without which Ansible refuses to
    work."""
    enabled = [os.environ.get("ANSIBLE_CALLBACKS_ENABLED", ""), _CALLBACK]
    own = {
        _OUTCOMES: str(record),
        "ANSIBLE_CALLBACKS_ENABLED": ",".join(filter(None, enabled)),
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "LC_ALL": "C.UTF-8",
    }
    shown_less = {"ANSIBLE_DISPLAY_SKIPPED_HOSTS": "False", "ANSIBLE_DEPRECATION_WARNINGS": "False"}
    return {**shown_less, **os.environ, **own}


def _wait(process: subprocess.Popen[bytes], interrupted: Callable[[], bool]) -> int:
    """Waits for a process. One that does not end when the user asks to stop is asked, then
    killed: a terminal has told it, too, but not who signals nagi alone."""
    signals = iter((signal.SIGTERM, signal.SIGKILL))
    while True:
        try:
            return process.wait(_TIMEOUT_S if interrupted() else 0.1)
        except subprocess.TimeoutExpired:
            if interrupted():
                process.send_signal(next(signals, signal.SIGKILL))


def _summarise_events(events: list[dict[str, Any]], hosts: list[str], status: int) -> Outcome:
    """What became of hosts, of the lines that the callback wrote."""
    found = {host: HostOutcome() for host in hosts}
    elsewhere = HostOutcome()  # the controller's part
    ended = next((event for event in events if event["event"] == "ended"), None)
    broken_off = False
    for event in events:
        host = found.get(event.get("host", ""), elsewhere)
        if event["event"] == "changed":
            host.changed.append(event["task"])
        elif event["event"] == "kept":
            host.kept += event["kept"]
        elif event["event"] in ("failed", "unreachable") and not (
            ended is not None and event["host"] in ended["rescued"]
        ):
            _record_failure(host, event)  # the last one counts: those before were mended
            broken_off = broken_off or event["ends_for_all"]
    for name, outcome in found.items():
        if outcome.status == "stopped" and not outcome.what:
            if ended is not None and not broken_off and name in ended["hosts"]:
                outcome.status = "ok"
            else:
                outcome.what = "not finished"
    error = elsewhere.what
    failed = [host for host in found.values() if host.status != "ok"]
    if status != 0 and not failed and not error:
        error = f"ansible-playbook ended with {status}; {_READ_ABOVE}"
    return Outcome(found, error)


def _record_failure(host: HostOutcome, event: dict[str, Any]) -> None:
    reasons = list(dict.fromkeys(describe_failure(reason) for reason in event["reasons"]))
    said = "; ".join(each.removeprefix(f"{event['host']}: ") for each in reasons[:_MAX_REASONS])
    if len(reasons) > _MAX_REASONS:
        said += f"; and {len(reasons) - _MAX_REASONS} more"
    task = event["task"].rpartition(" : ")[2]
    if event["event"] == "unreachable":
        host.status, host.what = "unreachable", said
        host.cure = find_cure(said, "try `ssh` to it by hand, as the inventory has it")
    elif task == _STOPS_WITH_OTHERS:
        host.status, host.what = "stopped", said
    elif _is_refusal(event):
        # The complaint says what would be right.
        host.status, host.what = "refused", said
    else:
        host.status, host.what = "failed", f"{task}: {said}"
        host.cure = find_cure(said, _READ_ABOVE)


def _is_refusal(event: dict[str, Any]) -> bool:
    """Whether a check failed, and not what it checks by."""
    broken = any(str(each.get("msg", "")).startswith("Task failed") for each in event["reasons"])
    return event.get("action", "").rpartition(".")[2] in _CHECKS and not broken
