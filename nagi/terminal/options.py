# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, what they mean, and how shells complete them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
from nagi_contracts.errors import InputError, refuse
from nagi_contracts.plan import SwitchTarget
from nagi_contracts.results import metrics_of_results

from nagi.campaign.selection import has_switches
from nagi.labs import cells, netns, physical, virtual
from nagi.spec.points import Point
from nagi.spec.yaml_source import read_yaml

LABS = {
    virtual.NAME: "guests on this machine, in virtual time",
    netns.NAME: "this machine's kernel, in real time, as root",
    physical.NAME: "the hosts of an inventory",
}
# Headings of groups of options.
WHAT, WHERE, RESULTS = "What is run", "Where it is run", "Results"

Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIRECTORY",
        help="Directory for results; results/NAME-VARIANT if not given",
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
    return [(name, what) for name, what in LABS.items() if name.startswith(incomplete)]


def _complete_switch(incomplete: str) -> list[str]:
    return [name for name in get_args(SwitchTarget) if name.startswith(incomplete)]


def _complete_metric(incomplete: str) -> list[str]:
    return [name for name in metrics_of_results() if name.startswith(incomplete)]


def _complete_variant(ctx: typer.Context, incomplete: str) -> list[str]:
    return [name for name in _of_spec(ctx, "variants") if str(name).startswith(incomplete)]


def _complete_only(ctx: typer.Context, incomplete: str) -> list[str]:
    """AXIS= first, then the values of that axis."""
    axes = _of_spec(ctx, "matrix")
    axis, sign, _ = incomplete.partition("=")
    if not sign:
        return [f"{name}=" for name in axes if str(name).startswith(incomplete)]
    values = axes.get(axis)
    found = [f"{axis}={value}" for value in values] if isinstance(values, list) else []
    return [each for each in found if each.startswith(incomplete)]


def first_argument(ctx: typer.Context, name: str) -> Path | None:
    """The file or directory `name` that is on a command line to be completed."""
    words = [word for word in ctx.args if not word.startswith("-")]
    found = ctx.params.get(name) or (words[0] if words else None)
    return Path(found).expanduser() if found else None


def _of_spec(ctx: typer.Context, key: str) -> dict[str, Any]:
    """A mapping of the experiment file on the command line; empty if there is none."""
    spec = first_argument(ctx, "spec")
    try:
        found = read_yaml(spec).data.get(key) if spec is not None else None
    except InputError:
        return {}
    return dict(found) if isinstance(found, dict) else {}


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
        help="virtual (default): guests on this machine in virtual time; no root, and the same "
        "result on an idle and on a busy machine. netns: the kernel, processors and clock of this "
        "machine; needs root, takes real time, and on a busy machine runs become invalid. "
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
        help="What switches are: nagi (nagi-switch), bmv2 (simple_switch), or p4runtime (what an "
        "inventory names; on one machine simple_switch_grpc, or nagi-switch)",
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


def chosen_variant(quick: bool, variant: str | None) -> str | None:
    """The variant that is meant. Raises InputError."""
    if quick and variant not in (None, "quick"):
        raise refuse("--quick and --variant contradict each other", "give one of them")
    return "quick" if quick else variant


def chosen_switch(name: str, points: list[Point]) -> SwitchTarget | None:
    """What switches are to run; None: there are none. Raises InputError."""
    if name not in get_args(SwitchTarget):
        known = ", ".join(get_args(SwitchTarget))
        raise refuse(f"--switch {name}: there is no such switch", f"one of: {known}")
    if not has_switches(points):
        return None
    return cast(SwitchTarget, name)


def chosen_values(only: list[str] | None) -> dict[str, list[str]]:
    """Axis -> values. Raises InputError."""
    chosen: dict[str, list[str]] = {}
    for text in only or []:
        axis, sign, value = text.partition("=")
        if not sign:
            raise refuse(f"--only {text}: not AXIS=VALUE", "write --only scheme=newreno")
        chosen.setdefault(axis, []).append(value)
    return chosen


def chosen_lab(lab: str | None, inventory: Path | None) -> str:
    """The lab that is meant: with an inventory physical, else virtual. Raises InputError."""
    name = lab or (physical.NAME if inventory else virtual.NAME)
    if name not in LABS:
        raise refuse(f"--lab {name}: there is no such lab", f"one of: {', '.join(LABS)}")
    if name == physical.NAME and inventory is None:
        raise refuse(
            "--lab physical needs an inventory", f"give it with -i, as {cells.EXAMPLE} has it"
        )
    if name != physical.NAME and inventory is not None:
        raise refuse(f"the {name} lab has no inventory", "leave -i out, or --lab")
    return name
