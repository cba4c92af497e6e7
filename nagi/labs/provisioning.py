# SPDX-License-Identifier: Apache-2.0
"""Provisions real hosts: runs playbooks of the collection nagi.testbed in the user's terminal.

A playbook runs as a user would run it: with the user's Ansible settings, terminal and ssh agent.
The callback nagi.testbed.outcomes records the result of each host.
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
from nagi_contracts.errors import refuse, suggest

from nagi.labs.ansible_runs import kill_workers_on_exit
from nagi.labs.cells import Cell
from nagi.labs.complaints import describe_failure, find_cure
from nagi.labs.errors import Interrupted

COLLECTION = "nagi.testbed"
_CALLBACK, _OUTCOMES = f"{COLLECTION}.outcomes", "NAGI_OUTCOMES"
_TIMEOUT_S = 5.0  # for Ansible to end when it is asked to
# Actions that only check: what they report existed before the playbook.
_CHECKS = ("assert", "fail", "validate_argument_spec")
# The task of playbooks/provision.yml that stops a host because another host was refused.
_STOPS_WITH_OTHERS = "Check that none is refused"
_MAX_REASONS = 3  # per host, in messages
_READ_ABOVE = "read the output of Ansible above"

HostStatus = Literal["ok", "refused", "failed", "unreachable", "stopped"]


@dataclass
class HostOutcome:
    """The result of a playbook on one host.

    `changed` are the tasks that changed the host, or would change it. `kept` are files that stay
    because the host's operator has edited them.
    """

    status: HostStatus = "stopped"
    changed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    what: str = ""
    cure: str = ""


@dataclass(frozen=True)
class Outcome:
    """The results of a playbook on all hosts. `error` concerns no particular host."""

    hosts: dict[str, HostOutcome]
    error: str = ""

    @property
    def ok(self) -> bool:
        return not self.error and all(host.status == "ok" for host in self.hosts.values())


def list_roles() -> list[str]:
    """Return the roles of the collection, which are also the tags of its playbooks."""
    return sorted(path.parents[1].name for path in paths.COLLECTION.glob("roles/*/tasks/main.yml"))


def select_hosts(cells: list[Cell], limit: Iterable[str], inventory: Path) -> list[str]:
    """Return the hosts that `limit` names, by host or by cell; all hosts if it is empty.

    Raises:
        InputError: the inventory has no such host or cell
    """
    by_name = {cell.name: [host.name for host in cell.hosts.values()] for cell in cells}
    all_hosts = [host for hosts in by_name.values() for host in hosts]
    by_name |= {host: [host] for host in all_hosts}
    selected: list[str] = []
    for name in limit:
        if name not in by_name:
            problem = f"--limit {name}: it has neither such a host nor such a cell"
            raise refuse(problem, suggest(name, by_name), file=str(inventory))
        selected += by_name[name]
    return list(dict.fromkeys(selected)) or all_hosts


def make_playbook_command(playbook: str, inventory: Path, *options: str) -> list[str]:
    """Return the command line that runs a playbook of the collection."""
    return ["ansible-playbook", "-i", str(inventory), f"{COLLECTION}.{playbook}", *options]


def format_command(command: list[str]) -> str:
    """Return a command line that a user can enter.

    It has the path of the program if the shell would find another program or none.
    """
    own_program = _find_program(command[0])
    executable = shutil.which(command[0])
    program = (
        command[0]
        if executable and Path(executable).resolve() == own_program.resolve()
        else str(own_program)
    )
    return shlex.join([program, *command[1:]])


def _find_program(program: str) -> Path:
    """Return the path of a program of this Python environment."""
    return Path(sys.prefix) / "bin" / program


def run_playbook(
    command: list[str],
    hosts: list[str],
    scratch: Path,
    interrupted: Callable[[], bool],
    output: IO[str] | None = None,
) -> Outcome:
    """Run a playbook, and return its results.

    Args:
        command: the command line, from make_playbook_command()
        hosts: the hosts on which it runs
        scratch: an empty directory
        interrupted: returns whether the user asked to stop
        output: receives the output; by default, the terminal

    Raises:
        Interrupted: the user asked to stop
    """
    record = scratch / "outcomes.jsonl"
    with kill_workers_on_exit(f"{_OUTCOMES}={record}"):
        process = subprocess.Popen(
            [_find_program(command[0]), *command[1:]], env=_make_environment(record), stdout=output
        )
        status = _wait(process, interrupted)
    if interrupted():
        raise Interrupted
    events = []
    if record.exists():
        events = [json.loads(line) for line in record.read_text().splitlines()]
    return _summarise_events(events, hosts, status)


def _make_environment(record: Path) -> dict[str, str]:
    """Return the environment of ansible-playbook: the user's, with the callback and UTF-8."""
    enabled = [os.environ.get("ANSIBLE_CALLBACKS_ENABLED", ""), _CALLBACK]
    variables = {
        _OUTCOMES: str(record),
        "ANSIBLE_CALLBACKS_ENABLED": ",".join(filter(None, enabled)),
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "LC_ALL": "C.UTF-8",
    }
    defaults = {"ANSIBLE_DISPLAY_SKIPPED_HOSTS": "False", "ANSIBLE_DEPRECATION_WARNINGS": "False"}
    return {**defaults, **os.environ, **variables}


def _wait(process: subprocess.Popen[bytes], interrupted: Callable[[], bool]) -> int:
    """Wait for a process, and return its exit status.

    If the user asks to stop, the process gets SIGTERM, then SIGKILL. After Ctrl-C the terminal has
    signalled it already, but not if only nagi was signalled.
    """
    signals = iter((signal.SIGTERM, signal.SIGKILL))
    while True:
        try:
            return process.wait(_TIMEOUT_S if interrupted() else 0.1)
        except subprocess.TimeoutExpired:
            if interrupted():
                process.send_signal(next(signals, signal.SIGKILL))


def _summarise_events(events: list[dict[str, Any]], hosts: list[str], status: int) -> Outcome:
    """Return the results of hosts, from the events that the callback recorded.

    Args:
        events: the events
        hosts: the hosts on which the playbook ran
        status: the exit status of ansible-playbook
    """
    outcomes = {host: HostOutcome() for host in hosts}
    controller = HostOutcome()  # tasks that run on this machine
    end_event = next((event for event in events if event["event"] == "ended"), None)
    is_aborted = False
    for event in events:
        host = outcomes.get(event.get("host", ""), controller)
        if event["event"] == "changed":
            host.changed.append(event["task"])
        elif event["event"] == "kept":
            host.kept += event["kept"]
        elif event["event"] in ("failed", "unreachable") and not (
            end_event is not None and event["host"] in end_event["rescued"]
        ):
            _record_failure(host, event)  # the last failure counts: earlier ones were rescued
            is_aborted = is_aborted or event["ends_for_all"]
    for name, outcome in outcomes.items():
        if outcome.status == "stopped" and not outcome.what:
            if end_event is not None and not is_aborted and name in end_event["hosts"]:
                outcome.status = "ok"
            else:
                outcome.what = "not finished"
    error = controller.what
    failed = [host for host in outcomes.values() if host.status != "ok"]
    if status != 0 and not failed and not error:
        error = f"ansible-playbook ended with {status}; {_READ_ABOVE}"
    return Outcome(outcomes, error)


def _record_failure(host: HostOutcome, event: dict[str, Any]) -> None:
    """Set status, problem and cure of a host from an event."""
    reasons = list(dict.fromkeys(describe_failure(reason) for reason in event["reasons"]))
    message = "; ".join(
        reason_text.removeprefix(f"{event['host']}: ") for reason_text in reasons[:_MAX_REASONS]
    )
    if len(reasons) > _MAX_REASONS:
        message += f"; and {len(reasons) - _MAX_REASONS} more"
    task = event["task"].rpartition(" : ")[2]
    if event["event"] == "unreachable":
        host.status, host.what = "unreachable", message
        host.cure = find_cure(
            message, "try `ssh` to it by hand, with the settings of the inventory"
        )
    elif task == _STOPS_WITH_OTHERS:
        host.status, host.what = "stopped", message
    elif _is_refusal(event):
        # The message of a check has the cure.
        host.status, host.what = "refused", message
    else:
        host.status, host.what = "failed", f"{task}: {message}"
        host.cure = find_cure(message, _READ_ABOVE)


def _is_refusal(event: dict[str, Any]) -> bool:
    """Return whether a check failed because of the host, and not because the check is broken."""
    is_broken = any(
        str(reason.get("msg", "")).startswith("Task failed") for reason in event["reasons"]
    )
    return event.get("action", "").rpartition(".")[2] in _CHECKS and not is_broken
