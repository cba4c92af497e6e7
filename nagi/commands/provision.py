# SPDX-License-Identifier: Apache-2.0
"""Prepares the hosts of an inventory permanently, with Ansible: `nagi lab`."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import NoReturn

import typer
from nagi_contracts.errors import refuse, suggest
from nagi_contracts.units import format_count
from rich.table import Table
from rich.text import Text

from nagi.labs.ansible_variables import to_yaml
from nagi.labs.cells import read_cells
from nagi.labs.errors import Interrupted
from nagi.labs.provisioning import (
    HostOutcome,
    HostStatus,
    Outcome,
    format_command,
    list_roles,
    make_playbook_command,
    run_playbook,
    select_hosts,
)
from nagi.scratch import make_scratch
from nagi.terminal.console import (
    complain,
    error_console,
    get_text_console,
    write_json,
    write_line,
)
from nagi.terminal.progress import InterruptFlag

_ANSIBLE_FORKS, _MAX_FORKS = 5, 32  # hosts at once: Ansible's default, and nagi's limit
_STYLES: dict[HostStatus, str] = {
    "ok": "green",
    "stopped": "yellow",
    "refused": "bold red",
    "failed": "bold red",
    "unreachable": "bold red",
}


def bootstrap(
    inventory: Path,
    user: str | None,
    account: str | None,
    key: Path | None,
    become_method: str | None,
    *,
    sudo: bool,
    accept_new: bool,
    remove: bool,
    limit: list[str] | None,
    ask_pass: bool,
    ask_become_pass: bool,
    json_: bool,
) -> None:
    """Give this machine access to hosts by an SSH key; with `remove`, remove this access.

    The arguments are the options of `nagi lab bootstrap`.

    Raises:
        InputError: The inventory or an option is wrong.
        typer.Exit: Always: after the outcome was printed, with status 0 if all hosts succeeded and
            1 if not; or with status 130 if the user interrupted the playbook.
    """
    hosts = _select_hosts(inventory, limit)
    variables = {
        "nagi_login": user,
        "nagi_account": account,
        "nagi_sudo": sudo or None,
        "nagi_access_key": key and str(key.expanduser().absolute()),
        "nagi_access": "absent" if remove else None,
    }
    extra_variables = {name: value for name, value in variables.items() if value is not None}
    options = [
        *(["--ask-pass"] if ask_pass else []),
        *(["--become-method", become_method] if become_method else []),
        *(["--ssh-extra-args=-oStrictHostKeyChecking=accept-new"] if accept_new else []),
        *(["-e", to_yaml(extra_variables, in_one_line=True).strip()] if extra_variables else []),
        *_make_options(limit, hosts, None, ask_become_pass),
    ]
    outcome = _run_playbook("bootstrap", inventory, hosts, options, json_)
    next_step = "" if remove else f"next: nagi lab check -i {inventory}"
    _print_and_exit(
        outcome, json_, "without this access" if remove else "reached by the key", next_step
    )


def provision(
    inventory: Path,
    limit: list[str] | None,
    tags: list[str] | None,
    ask_become_pass: bool,
    json_: bool,
    *,
    is_check: bool = False,
) -> None:
    """Install and configure what hosts need for runs.

    With `is_check`, show what this would change, without changing anything. The other arguments are
    the options of `nagi lab provision` and `nagi lab check`.

    Raises:
        InputError: The inventory or an option is wrong.
        typer.Exit: Always, with the status that bootstrap() describes.
    """
    hosts = _select_hosts(inventory, limit)
    options = _make_options(limit, hosts, tags, ask_become_pass)
    if is_check:
        options = ["--check", "--diff", *options]
    outcome = _run_playbook("provision", inventory, hosts, options, json_)
    if not is_check:
        next_step = f"next: nagi doctor -i {inventory}"
    elif any(host.changed for host in outcome.hosts.values()):
        next_step = f"next: nagi lab provision -i {inventory}"
    else:
        next_step = ""
    result = "checked" if is_check else "provisioned"
    _print_and_exit(outcome, json_, result, next_step, is_check=is_check)


def deprovision(
    inventory: Path, limit: list[str] | None, ask_become_pass: bool, *, yes: bool, json_: bool
) -> None:
    """Remove the programs that nagi installed on hosts, and restore the settings that it changed.

    Without `yes`, ask the user first. The arguments are the options of `nagi lab deprovision`.

    Raises:
        InputError: The inventory or an option is wrong, or the user cannot be asked.
        typer.Exit: Always: with status 0 if the user declined, or with the status that bootstrap()
            describes.
    """
    hosts = _select_hosts(inventory, limit)
    if not yes:
        _confirm(f"remove what nagi installed on {', '.join(hosts)}, and restore what it changed?")
    options = _make_options(limit, hosts, None, ask_become_pass)
    outcome = _run_playbook("deprovision", inventory, hosts, options, json_)
    hosts_with_remains = sum(bool(host.kept) for host in outcome.hosts.values())
    result = "as they were before nagi"
    if hosts_with_remains:
        result = f"restored, except what stays on {hosts_with_remains} of them"
    _print_and_exit(outcome, json_, result)


def graph(inventory: Path, out: Path) -> None:
    """Draw the cables of an inventory, and print the path of the picture.

    Raises:
        InputError: The inventory is wrong, or the picture cannot be written.
    """
    from nagi.labs.cabling import draw_cabling  # imports matplotlib

    cells = read_cells(inventory)
    try:
        draw_cabling(cells, out)
    except ValueError:
        raise refuse(
            f"--out {out}: pictures have no such format", "give a name such as lab.svg or lab.png"
        ) from None
    except OSError as error:
        raise refuse(f"--out {out}: {error.strerror}", "give another path") from None
    write_line(str(out))


def _select_hosts(inventory: Path, limit: list[str] | None) -> list[str]:
    """Return the names of the hosts that --limit selects, or of all hosts without --limit.

    Raises:
        InputError: The inventory is wrong, or has no host or cell that --limit names.
    """
    return select_hosts(read_cells(inventory), limit or (), inventory)


def _make_options(
    limit: list[str] | None, hosts: list[str], tags: list[str] | None, ask_become_pass: bool
) -> list[str]:
    """Return the options of ansible-playbook for --limit, --tags and --ask-become-pass.

    Raises:
        InputError: A tag is not the name of a role.
    """
    for tag in tags or ():
        if tag not in list_roles():
            raise refuse(f"--tags {tag}: there is no such role", suggest(tag, list_roles()))
    return [
        *(["--limit", ",".join(hosts)] if limit else []),
        *(["--forks", str(min(len(hosts), _MAX_FORKS))] if len(hosts) > _ANSIBLE_FORKS else []),
        *(["--tags", ",".join(tags)] if tags else []),
        *(["--ask-become-pass"] if ask_become_pass else []),
    ]


def _confirm(question: str) -> None:
    """Ask a question on the terminal.

    Raises:
        InputError: Standard input is not a terminal.
        typer.Exit: The answer is not yes; the status is 0.
    """
    if not sys.stdin.isatty():
        raise refuse("cannot ask: standard input is not a terminal", "give --yes")
    if not typer.confirm(question, err=True):
        raise typer.Exit(0)


def _run_playbook(
    playbook: str, inventory: Path, hosts: list[str], options: list[str], json_: bool
) -> Outcome:
    """Print the command line of ansible-playbook for a playbook, and run the command line.

    With --json, the command line and Ansible's output go to standard error.

    Raises:
        typer.Exit: The user interrupted the playbook; the status is 130.
    """
    stop = InterruptFlag()
    command = make_playbook_command(playbook, inventory, *options)
    write_line(f"$ {format_command(command)}", get_text_console(json_))
    with make_scratch() as directory:
        try:
            output = sys.stderr if json_ else None
            return run_playbook(command, hosts, directory, stop, output)
        except Interrupted:
            error_console.print("stopped; the same command continues")
            raise typer.Exit(130) from None


def _print_and_exit(
    outcome: Outcome, json_: bool, success: str, next_step: str = "", *, is_check: bool = False
) -> NoReturn:
    """Print the outcome of each host and the next step, or one JSON object, and exit.

    The exit status is 0 if the playbook succeeded on all hosts, and 1 if not.

    Args:
        outcome: The outcome of the playbook.
        json_: Whether to print JSON.
        success: The words after the number of hosts if all hosts succeeded, such as "provisioned".
        next_step: The line to print if all hosts succeeded, or an empty text.
        is_check: Whether the playbook ran with --check, which changes nothing on hosts.
    """
    if json_:
        hosts = [{"host": name, **dataclasses.asdict(host)} for name, host in outcome.hosts.items()]
        write_json({"ok": outcome.ok, "error": outcome.error or None, "hosts": hosts})
    else:
        console = get_text_console(json_)
        console.print(_make_table(outcome, is_check))
        console.print()
        failed_hosts = [host for host in outcome.hosts.values() if host.status != "ok"]
        if failed_hosts:
            hosts_text = format_count(len(outcome.hosts), "host")
            summary = f"not done on {len(failed_hosts)} of {hosts_text}"
        else:
            summary = f"{format_count(len(outcome.hosts), 'host')} {success}"
        console.print(Text(summary, _STYLES["ok" if outcome.ok else "failed"]))
        if outcome.ok and next_step:
            write_line(next_step)
    if outcome.error:
        complain(outcome.error)
    raise typer.Exit(0 if outcome.ok else 1)


def _make_table(outcome: Outcome, is_check: bool) -> Table:
    """Make a table with one row per host: name, status and message."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("host", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("message", overflow="fold")
    for name, host in outcome.hosts.items():
        table.add_row(
            name, Text(host.status, _STYLES[host.status]), _describe_outcome(host, is_check)
        )
    return table


def _describe_outcome(host: HostOutcome, is_check: bool) -> Text:
    """Return the problem of a host, the number of changes, the files that stay, and the cure."""
    changes_text = format_count(len(host.changed), "change")
    if is_check:
        changes_text = f"{changes_text} to make"
    if not host.changed:
        changes_text = "" if host.status != "ok" else "nothing to change"
    text = Text("; ".join(filter(None, (host.what, changes_text))))
    for kept_item in host.kept:
        text.append("\nstays: ", "dim").append(kept_item)
    if host.cure:
        text.append("\ncure: ", "dim").append(host.cure)
    return text
