# SPDX-License-Identifier: Apache-2.0
"""The command `nagi schemes`: which schemes a lab can run, why not the others, their parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nagi_contracts.errors import refuse
from rich.table import Table

from nagi.labs import netns, virtual
from nagi.labs.physical import token_for
from nagi.plan import schemes
from nagi.plan.schemes import Availability, Scheme
from nagi.scratch import scratch
from nagi.terminal.console import Json, complain, out_console, write_json, write_line
from nagi.terminal.hosts import open_host_pool
from nagi.terminal.options import Inventory, Lab
from nagi.terminal.progress import InterruptFlag
from nagi.terminal.selecting import choose_lab
from nagi.terminal.site import get_scheme_availability


def list_schemes(
    lab: Lab = None,
    inventory: Inventory = None,
    json_: Json = False,
) -> None:
    """List TCP schemes with their parameters, and why the lab cannot run some."""
    # What goes with any scheme is listed as it is written.
    combined = {f"SCHEME-{name}": each for name, each in schemes.receivers().items()}
    known = schemes.schemes() | combined
    choice = choose_lab(lab, inventory, has_root=True)  # to list them needs no root
    if choice.why_not_virtual:
        complain(f"in the netns lab, as the virtual lab cannot be used: {choice.why_not_virtual}")
    if choice.name == netns.NAME:
        found = {name: schemes.availability(scheme) for name, scheme in known.items()}
    elif choice.name == virtual.NAME:
        found = {name: virtual.availability(scheme) for name, scheme in known.items()}
    else:
        assert inventory is not None
        found = _on_hosts(inventory, known)
    if json_:
        write_json(
            {
                "lab": choice.name,
                "schemes": {name: _as_data(known[name], found[name]) for name in known},
            }
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
    write_line(f"TCP schemes in the {choice.name} lab\n")
    out_console.print(table)


def _on_hosts(inventory: Path, known: dict[str, Scheme]) -> dict[str, Availability]:
    with scratch() as directory:
        token = token_for(directory)
        with open_host_pool(inventory, directory, token, InterruptFlag()) as bench:
            survey = bench.survey()
    if survey.failures:
        hosts = ", ".join(sorted({failure.host for failure in survey.failures}))
        raise refuse(
            f"{hosts} could not be looked at",
            f"see `nagi doctor -i {inventory}`",
            file=str(inventory),
        )
    return {name: get_scheme_availability(scheme, survey) for name, scheme in known.items()}


def _parameters(scheme: Scheme) -> dict[str, Any]:
    return {key: each.model_dump() for key, each in scheme.parameters.items()}


def _as_data(scheme: Scheme, found: Availability) -> dict[str, Any]:
    return {
        "available": found.available,
        "reason": found.reason,
        "cure": found.cure,
        "summary": scheme.summary,
        "reference": scheme.reference,
        "parameters": _parameters(scheme),
    }
