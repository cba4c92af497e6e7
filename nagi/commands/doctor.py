# SPDX-License-Identifier: Apache-2.0
"""Examines this machine, or the hosts of an inventory: `nagi doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import typer
from nagi_contracts.doctor import Doctor
from nagi_contracts.errors import refuse

from nagi.backends.registry import load_examinations
from nagi.doctor import list_findings
from nagi.doctor.examination import examine_hosts, examine_this_machine
from nagi.doctor.text import print_findings
from nagi.labs.host_pool import make_token
from nagi.scratch import make_scratch
from nagi.terminal.console import out_console, write_line
from nagi.terminal.hosts import open_host_pool
from nagi.terminal.progress import InterruptFlag


def examine(
    subject: str | None,
    inventory: Path | None,
    options: Mapping[str, Mapping[str, Any]],
    json_: bool,
) -> NoReturn:
    """Check whether this machine, or the hosts of an inventory, are fit for runs.

    Args:
        subject: The name of a backend whose examination replaces the general checks, or None.
        inventory: The inventory of the hosts, or None for this machine; None with a subject.
        options: Subject -> option of its examination -> value.
        json_: Whether to print one JSON object, without lines about the progress.

    Raises:
        InputError: The subject or an option is wrong, or the inventory cannot be used.
        typer.Exit: Always, after the findings were printed. The status is 2 if a finding is a
            failure, and 0 if not.
    """
    if subject is not None:
        _require_local(subject, inventory)
    _refuse_other_options(subject, options)
    announce = _say_nothing if json_ else write_line
    if subject is not None:
        examination = load_examinations()[subject]
        _print_and_exit(examination.examine(announce, **options[subject]), json_)
    stop = InterruptFlag()
    with make_scratch() as directory:
        announce(f"checking {f'the hosts of {inventory}' if inventory else 'this machine'}")
        if inventory is None:
            observations = examine_this_machine(directory, stop)
        else:
            token = make_token(directory)
            with open_host_pool(inventory, directory, token, stop) as pool:
                observations = examine_hosts(pool)
    _print_and_exit(list_findings(observations), json_)


def _say_nothing(line: str) -> None:
    """Print nothing, because with --json standard output has the JSON object only."""


def _require_local(subject: str, inventory: Path | None) -> None:
    """Require that `subject` exists, and that no inventory is given with a subject.

    Raises:
        InputError: There is no such subject, or an inventory is given.
    """
    examinations = load_examinations()
    if subject not in examinations:
        raise refuse(
            f"doctor {subject}: there is no such subject",
            f"write {' or '.join(f'`nagi doctor {name}`' for name in examinations)}",
        )
    if inventory is not None:
        raise refuse(
            f"doctor {subject} checks this machine only",
            f"run it on the emulator's host, {examinations[subject].where}",
        )


def _refuse_other_options(subject: str | None, options: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise InputError if an option is given that belongs to another subject than `subject`."""
    for name, examination in load_examinations().items():
        for option in examination.own_options:
            if name != subject and options[name][option]:
                raise refuse(
                    f"--{option} is an option of `nagi doctor {name}`",
                    f"write `nagi doctor {name} --{option} ...`",
                )


def _print_and_exit(findings: Doctor, json_: bool) -> NoReturn:
    """Print findings as text or JSON, and exit with the status of the findings."""
    if json_:
        typer.echo(findings.model_dump_json(indent=1))
    else:
        print_findings(out_console, findings)
    raise typer.Exit(findings.exit_status)
