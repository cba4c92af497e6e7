# SPDX-License-Identifier: Apache-2.0
"""Provisions real hosts: runs playbooks of the collection nagi.testbed in the user's terminal.

A playbook runs as a user would run it: with the user's Ansible settings, terminal and ssh agent.
The callback nagi.testbed.outcomes records the result of each host.
"""

from __future__ import annotations

import configparser
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
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
# Ansible's default of ssh_args, and options that end ssh when a host does not answer for 12 s.
_SSH_OPTIONS = "-C -o ControlMaster=auto -o ControlPersist=60s"
_KEEP_ALIVE = "-o ServerAliveInterval=3 -o ServerAliveCountMax=3"
_TIMEOUT_S = 5.0  # time for Ansible to end after a signal
# Actions that only check a host. If one fails, the cause existed before the playbook.
_CHECKS = ("assert", "fail", "validate_argument_spec")
# The task of playbooks/provision.yml that stops a host because another host was refused.
_STOP_TASK = "Check that no host is refused"
# Tasks that check what a playbook did. Task -> cure if it fails.
_CURES_OF_TASKS = {
    "Check that the key works": "the key is authorised there, but its sshd refuses it: look at "
    "PermitRootLogin, AllowUsers, PubkeyAuthentication and AuthorizedKeysFile in its sshd_config, "
    "and whether others may write to the account's home directory; `journalctl -u ssh` there has "
    "the reason",
}
_MAX_REASONS = 3  # per host, in messages
_READ_ABOVE = "read the output of Ansible above"

HostStatus = Literal["ok", "refused", "failed", "unreachable", "stopped"]


@dataclass
class HostOutcome:
    """The result of a playbook on one host.

    Attributes:
        status: `ok`; `refused` by a check of the host; `failed` or `unreachable`; or `stopped`
            because another host was refused or failed.
        changed: The tasks that changed the host or, with --check, would change it.
        kept: What was not restored, or was copied before a change, each with the reason.
        what: The problem, or "".
        cure: The cure of the problem, or "" if the problem's text has it.
    """

    status: HostStatus = "stopped"
    changed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    what: str = ""
    cure: str = ""


@dataclass(frozen=True)
class Outcome:
    """The results of a playbook.

    Attributes:
        hosts: Host -> result.
        error: A problem that concerns no particular host, or "".
    """

    hosts: dict[str, HostOutcome]
    error: str = ""

    @property
    def ok(self) -> bool:
        """True if the playbook succeeded on all hosts, and no other problem occurred."""
        return not self.error and all(host.status == "ok" for host in self.hosts.values())


def list_roles() -> list[str]:
    """Return the sorted names of the collection's roles, which are also tags of its playbooks."""
    return sorted(path.parents[1].name for path in paths.COLLECTION.glob("roles/*/tasks/main.yml"))


def select_hosts(cells: list[Cell], limit: Iterable[str], inventory: Path) -> list[str]:
    """Return the names of the hosts that `limit` selects, each once, in the order of `limit`.

    Args:
        cells: The cells of the inventory.
        limit: Names of hosts and cells; empty selects all hosts.
        inventory: The file of the inventory, for messages.

    Raises:
        InputError: The inventory has no such host or cell.
    """
    hosts_by_name = {cell.name: [host.name for host in cell.hosts.values()] for cell in cells}
    all_hosts = [host for hosts in hosts_by_name.values() for host in hosts]
    hosts_by_name |= {host: [host] for host in all_hosts}
    selected: list[str] = []
    for name in limit:
        if name not in hosts_by_name:
            problem = f"--limit {name}: there is no such host or cell"
            raise refuse(problem, suggest(name, hosts_by_name), file=str(inventory))
        selected += hosts_by_name[name]
    return list(dict.fromkeys(selected)) or all_hosts


def make_playbook_command(playbook: str, inventory: Path, *options: str) -> list[str]:
    """Return the command line that runs a playbook of the collection, such as "provision"."""
    return ["ansible-playbook", "-i", str(inventory), f"{COLLECTION}.{playbook}", *options]


def format_command(command: list[str]) -> str:
    """Return the text of a command line, which a user can enter in a shell.

    The path of the program is added if the shell would find another program or none.
    """
    program_of_environment = _find_program(command[0])
    executable = shutil.which(command[0])
    program = (
        command[0]
        if executable and Path(executable).resolve() == program_of_environment.resolve()
        else str(program_of_environment)
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
        command: The command line, from make_playbook_command().
        hosts: The hosts on which the playbook runs.
        scratch: An empty directory for temporary files.
        interrupted: A function that returns whether the user asked to stop.
        output: The file for the output of Ansible; by default, standard output.

    Raises:
        Interrupted: The user asked to stop.
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
    """Return the user's environment with the variables that the callback and Ansible need.

    `record` is the file to which the callback writes events.
    """
    enabled = [os.environ.get("ANSIBLE_CALLBACKS_ENABLED", ""), _CALLBACK]
    variables = {
        _OUTCOMES: str(record),
        "ANSIBLE_CALLBACKS_ENABLED": ",".join(filter(None, enabled)),
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "LC_ALL": "C.UTF-8",
    }
    defaults = {
        "ANSIBLE_DISPLAY_SKIPPED_HOSTS": "False",
        "ANSIBLE_DEPRECATION_WARNINGS": "False",
        "ANSIBLE_SSH_ARGS": f"{_read_ssh_options()} {_KEEP_ALIVE}",
    }
    return {**defaults, **os.environ, **variables}


def _read_ssh_options() -> str:
    """Return `ssh_args` of the user's Ansible configuration, or else Ansible's default."""
    candidates = [
        os.environ.get("ANSIBLE_CONFIG", ""),
        "ansible.cfg",
        str(Path.home() / ".ansible.cfg"),
        "/etc/ansible/ansible.cfg",
    ]
    configuration = configparser.ConfigParser(interpolation=None, strict=False)
    for path in filter(os.path.isfile, candidates):  # Ansible reads the first that exists
        with suppress(configparser.Error, OSError, UnicodeDecodeError):
            configuration.read(path)
        break
    return configuration.get("ssh_connection", "ssh_args", fallback=_SSH_OPTIONS)


def _wait(process: subprocess.Popen[bytes], interrupted: Callable[[], bool]) -> int:
    """Wait for a process, and return its exit status.

    If the user asks to stop, give the process _TIMEOUT_S to end by itself, because Ctrl-C sends
    SIGINT to both processes. Then send SIGTERM, and after a further _TIMEOUT_S SIGKILL.
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
        events: The events, in the order of time.
        hosts: The hosts on which the playbook ran.
        status: The exit status of ansible-playbook.
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
            _record_failure(host, event)  # a later failure replaces this one, which was rescued
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
    """Set status, problem and cure of a host from an event `failed` or `unreachable`."""
    reasons = list(dict.fromkeys(describe_failure(reason) for reason in event["reasons"]))
    message = "; ".join(
        reason_text.removeprefix(f"{event['host']}: ") for reason_text in reasons[:_MAX_REASONS]
    )
    if len(reasons) > _MAX_REASONS:
        message += f"; and {len(reasons) - _MAX_REASONS} more"
    task = event["task"].rpartition(" : ")[2]
    if event["event"] == "unreachable":
        host.status, host.what = "unreachable", message
        host.cure = find_cure(message, "try `ssh` by hand, with the settings of the inventory")
    elif task == _STOP_TASK:
        host.status, host.what = "stopped", message
    elif task in _CURES_OF_TASKS:
        host.status, host.what, host.cure = "failed", message, _CURES_OF_TASKS[task]
    elif _is_refusal(event):
        # The message of a check contains the cure.
        host.status, host.what = "refused", message
    else:
        host.status, host.what = "failed", f"{task}: {message}"
        host.cure = find_cure(message, _READ_ABOVE)


def _is_refusal(event: dict[str, Any]) -> bool:
    """Return whether a check refused the host. A check with an error of its own does not count."""
    is_broken = any(
        str(reason.get("msg", "")).startswith("Task failed") for reason in event["reasons"]
    )
    return event.get("action", "").rpartition(".")[2] in _CHECKS and not is_broken
