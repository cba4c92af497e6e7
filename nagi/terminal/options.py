# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, with their completion.

nagi_contracts and nagi.spec take long to import, so only completions that need them import them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from nagi_contracts.errors import InputError

from nagi.labs.names import NETNS, PHYSICAL, VIRTUAL

LABS = {
    VIRTUAL: "guests on this machine, in virtual time",
    NETNS: "this machine's kernel, in real time, as root",
    PHYSICAL: "the hosts of an inventory",
}
# Headings of groups of options.
WHAT, WHERE, RESULTS = "What is run", "Where it is run", "Results"

Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIRECTORY",
        help="Directory for results; default: results/NAME-VARIANT",
        rich_help_panel=RESULTS,
    ),
]
Directory = Annotated[
    Path,
    typer.Argument(
        help="Directory of a campaign: the --out of `nagi run`",
        metavar="RESULTS",
        show_default=False,
    ),
]


def _complete_lab(incomplete: str) -> list[tuple[str, str]]:
    return [
        (name, description) for name, description in LABS.items() if name.startswith(incomplete)
    ]


def _complete_switch(incomplete: str) -> list[str]:
    from nagi_contracts.plan import SwitchTarget

    return [name for name in get_args(SwitchTarget) if name.startswith(incomplete)]


def _complete_metric(incomplete: str) -> list[str]:
    from nagi_contracts.results import list_metrics

    return [name for name in list_metrics() if name.startswith(incomplete)]


def _complete_variant(ctx: typer.Context, incomplete: str) -> list[str]:
    return [
        variant for variant in _read_mapping(ctx, "variants") if str(variant).startswith(incomplete)
    ]


def _complete_only(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return completions AXIS=, or AXIS=VALUE if `incomplete` has an "=" already."""
    axes = _read_mapping(ctx, "matrix")
    axis, separator, _ = incomplete.partition("=")
    if not separator:
        return [f"{name}=" for name in axes if str(name).startswith(incomplete)]
    values = axes.get(axis)
    completions = [f"{axis}={value}" for value in values] if isinstance(values, list) else []
    return [completion for completion in completions if completion.startswith(incomplete)]


def get_first_argument(ctx: typer.Context, name: str) -> Path | None:
    """Return the path in the first argument of a command line that is being completed.

    Args:
        ctx: The command line.
        name: The parameter of the command that has this argument.

    Returns:
        The path, or None if the command line has no argument yet.
    """
    arguments = [word for word in ctx.args if not word.startswith("-")]
    argument = ctx.params.get(name) or (arguments[0] if arguments else None)
    return Path(argument).expanduser() if argument else None


def _read_mapping(ctx: typer.Context, key: str) -> dict[str, Any]:
    """Return the mapping under `key` in the experiment file that the command line names.

    Returns:
        The mapping; empty if there is no file, the file is wrong, or `key` has no mapping.
    """
    from nagi.spec.yaml_source import read_yaml

    spec = get_first_argument(ctx, "spec")
    try:
        mapping = read_yaml(spec).data.get(key) if spec is not None else None
    except InputError:
        return {}
    return dict(mapping) if isinstance(mapping, dict) else {}


Spec = Annotated[
    Path,
    typer.Argument(help="Experiment file", metavar="EXPERIMENT.yaml", show_default=False),
]
Inventory = Annotated[
    Path | None,
    typer.Option(
        "-i",
        "--inventory",
        help="Ansible inventory of the physical lab",
        rich_help_panel=WHERE,
    ),
]
Lab = Annotated[
    str | None,
    typer.Option(
        "--lab",
        metavar="LAB",
        help="virtual (default): guests on this machine in virtual time; needs no root, and gives "
        "the same result on an idle and a busy machine. netns: the kernel, processors and clock of "
        "this machine; needs root, takes real time, and on a busy machine runs become invalid. "
        "physical: the hosts of -i INVENTORY.",
        autocompletion=_complete_lab,
        show_default=False,
        rich_help_panel=WHERE,
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Use the workers of a Dask cluster: its scheduler's address, such as "
        "tcp://127.0.0.1:8786, or the file that `dask scheduler --scheduler-file` has written",
        show_default=False,
        rich_help_panel=WHERE,
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Same as --variant quick", rich_help_panel=WHAT)
]
Variant = Annotated[
    str | None,
    typer.Option(
        "--variant",
        metavar="NAME",
        help="A variant that the experiment names under `variants`",
        autocompletion=_complete_variant,
        rich_help_panel=WHAT,
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="AXIS=VALUE",
        help="Only the runs with this value, or repeat=1; may be given several times",
        autocompletion=_complete_only,
        rich_help_panel=WHAT,
    ),
]
Switch = Annotated[
    str,
    typer.Option(
        "--switch",
        metavar="TARGET",
        help="Target of switches: nagi (nagi-switch), bmv2 (simple_switch), or p4runtime (the "
        "switch that the inventory names; on one machine simple_switch_grpc or nagi-switch)",
        autocompletion=_complete_switch,
        rich_help_panel=WHERE,
    ),
]
Metric = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="A column of results.parquet, such as agi or goodput_bps",
        autocompletion=_complete_metric,
    ),
]
