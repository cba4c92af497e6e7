# SPDX-License-Identifier: Apache-2.0
"""The command `nagi schemes`: which schemes a lab can run, why not the others, their parameters."""

from __future__ import annotations

import json
from typing import Any

import typer
from rich.table import Table

from nagi import schemes
from nagi.ansible_runs import Interrupted, LabError
from nagi.errors import refuse
from nagi.lab_cli import bench_for
from nagi.labs import virtual
from nagi.labs.physical import token_for
from nagi.labs.site import available_on_hosts
from nagi.options import Inventory, Lab, chosen_lab
from nagi.programs import describe
from nagi.progress import InterruptFlag
from nagi.results_cli import Json, error_console, out_console
from nagi.schemes import Availability, Scheme
from nagi.scratch import scratch


def list_schemes(
    lab: Lab = None,
    inventory: Inventory = None,
    json_: Json = False,
) -> None:
    """Say which TCP schemes this machine, or the hosts of an inventory, can run, and why not the
    others; and what parameters they have."""
    known = schemes.schemes()
    where = chosen_lab(lab, inventory)
    if where == "netns":
        found = {name: schemes.availability(scheme) for name, scheme in known.items()}
    elif where == "virtual":
        found = {name: virtual.availability(scheme) for name, scheme in known.items()}
    else:
        found = _on_hosts(inventory, known)
    if json_:
        typer.echo(
            json.dumps({name: _as_data(known[name], found[name]) for name in known}, indent=1)
        )
        return
    table = Table(show_edge=False, pad_edge=False)
    for head in ("scheme", "available", "what it is / why not, and what helps", "parameters"):
        table.add_column(head)
    for name, scheme in known.items():
        here = found[name]
        what = scheme.summary if here.available else f"{here.reason}; {here.cure}"
        if here.available and here.reason:
            what += f" ({here.reason}; {here.cure})"
        given = _parameters(scheme)
        parameters = ", ".join(f"{key} {each['default']}" for key, each in given.items())
        table.add_row(name, "yes" if here.available else "no", what, parameters)
    out_console.print(table)


def _on_hosts(inventory: Inventory, known: dict[str, Scheme]) -> dict[str, Availability]:
    assert inventory is not None
    with scratch() as directory:
        try:
            token = token_for(directory)
            with bench_for(inventory, directory, token, InterruptFlag()) as bench:
                survey = bench.survey()
        except LabError as error:
            error_console.print(f"nagi: {error}", markup=False, soft_wrap=True)
            raise typer.Exit(1) from None
        except Interrupted:
            raise typer.Exit(130) from None
    if survey.failures:
        hosts = ", ".join(sorted({failure.host for failure in survey.failures}))
        raise refuse(
            f"{hosts} could not be looked at",
            f"see `nagi doctor -i {inventory}`",
            file=str(inventory),
        )
    return {name: available_on_hosts(scheme, survey) for name, scheme in known.items()}


def _parameters(scheme: Scheme) -> dict[str, Any]:
    if scheme.object is None:
        return {}
    return {key: each.model_dump() for key, each in describe(scheme.object).parameters.items()}


def _as_data(scheme: Scheme, found: Availability) -> dict[str, Any]:
    return {
        "available": found.available,
        "reason": found.reason,
        "cure": found.cure,
        "summary": scheme.summary,
        "reference": scheme.reference,
        "parameters": _parameters(scheme),
    }
