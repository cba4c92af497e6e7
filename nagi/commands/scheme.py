# SPDX-License-Identifier: Apache-2.0
"""Lists schemes, and the reasons why some are not available: `nagi schemes`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nagi_contracts.errors import refuse
from rich.table import Table

from nagi.backends.availability import Availability
from nagi.labs import guest_modules
from nagi.labs.host_pool import make_token
from nagi.labs.names import NETNS, VIRTUAL
from nagi.plan import schemes
from nagi.plan.schemes import Scheme
from nagi.scratch import make_scratch
from nagi.terminal.console import complain, out_console, write_json, write_line
from nagi.terminal.hosts import open_host_pool
from nagi.terminal.progress import InterruptFlag
from nagi.terminal.selecting import choose_lab
from nagi.terminal.site import get_scheme_availability


def list_schemes(lab: str | None, inventory: Path | None, json_: bool) -> None:
    """List TCP schemes with their parameters, and why the lab cannot run some.

    Args:
        lab: The option --lab.
        inventory: The option -i. The hosts of the inventory are inspected.
        json_: Whether to print JSON.

    Raises:
        InputError: Options contradict each other, or a host could not be inspected.
    """
    # A receiver's part of TCP can be combined with the scheme of any sender. Experiment files name
    # the combination SCHEME-RECEIVER.
    combined = {f"SCHEME-{name}": receiver for name, receiver in schemes.read_receivers().items()}
    all_schemes = schemes.read_schemes() | combined
    choice = choose_lab(lab, inventory, has_root=True)  # listing needs no root
    if choice.why_not_virtual:
        complain(f"in the netns lab, as the virtual lab cannot be used: {choice.why_not_virtual}")
    if choice.name == NETNS:
        availabilities = {
            name: schemes.check_availability(scheme) for name, scheme in all_schemes.items()
        }
    elif choice.name == VIRTUAL:
        availabilities = {
            name: guest_modules.check_availability(scheme) for name, scheme in all_schemes.items()
        }
    else:
        assert inventory is not None
        availabilities = _check_on_hosts(inventory, all_schemes)
    if json_:
        write_json(
            {
                "lab": choice.name,
                "schemes": {
                    name: _to_data(all_schemes[name], availabilities[name]) for name in all_schemes
                },
            }
        )
        return
    table = Table(show_edge=False, pad_edge=False)
    for head in ("scheme", "available", "description / reason and cure", "parameters"):
        table.add_column(head)
    for name, scheme in all_schemes.items():
        availability = availabilities[name]
        description = (
            scheme.summary
            if availability.available
            else f"{availability.reason}; {availability.cure}"
        )
        if availability.available and availability.reason:
            description += f" ({availability.reason}; {availability.cure})"
        defaults = ", ".join(
            f"{key} {parameter['default']}" for key, parameter in _list_parameters(scheme).items()
        )
        table.add_row(name, "yes" if availability.available else "no", description, defaults)
    write_line(f"TCP schemes in the {choice.name} lab\n")
    out_console.print(table)


def _check_on_hosts(inventory: Path, all_schemes: dict[str, Scheme]) -> dict[str, Availability]:
    """Inspect the hosts of an inventory, and return the availability of each scheme on them.

    Raises:
        InputError: A host could not be inspected.
    """
    with make_scratch() as directory:
        token = make_token(directory)
        with open_host_pool(inventory, directory, token, InterruptFlag()) as pool:
            survey = pool.survey()
    if survey.failures:
        hosts = ", ".join(sorted({failure.host for failure in survey.failures}))
        raise refuse(
            f"{hosts} could not be inspected",
            f"see `nagi doctor -i {inventory}`",
            file=str(inventory),
        )
    return {name: get_scheme_availability(scheme, survey) for name, scheme in all_schemes.items()}


def _list_parameters(scheme: Scheme) -> dict[str, Any]:
    """Return parameter -> its fields, such as the default."""
    return {key: parameter.model_dump() for key, parameter in scheme.parameters.items()}


def _to_data(scheme: Scheme, availability: Availability) -> dict[str, Any]:
    """Return the object that `nagi schemes --json` prints for a scheme."""
    return {
        "available": availability.available,
        "reason": availability.reason,
        "cure": availability.cure,
        "summary": scheme.summary,
        "reference": scheme.reference,
        "parameters": _list_parameters(scheme),
    }
