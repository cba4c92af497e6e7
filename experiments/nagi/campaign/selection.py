# SPDX-License-Identifier: Apache-2.0
"""Selects the runs of a campaign, and the runs among them that this machine can execute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from nagi_contracts.errors import choices, excerpt, refuse
from nagi_contracts.memo import Memo
from nagi_contracts.plan import RunPlan, SwitchTarget
from nagi_contracts.records import Build

from nagi.plan import fpga, radio, schemes
from nagi.plan.planner import plan_runs
from nagi.spec.experiment import Experiment
from nagi.spec.points import Point

REPEAT = "repeat"  # a pseudo-axis: `--only repeat=1,2` selects repeats


@dataclass(frozen=True)
class Selection:
    """The runs of a campaign, and what was left out."""

    variant: str | None
    points: list[Point]
    plans: list[RunPlan]
    unavailable: dict[str, schemes.Availability]  # scheme -> why this machine cannot run it
    build: Build
    switch: SwitchTarget = "nagi"
    no_radios: schemes.Availability | None = None  # why links cannot be radios; None: they can
    no_fpgas: schemes.Availability | None = None  # why no FPGA can be simulated; None: it can
    only: dict[str, list[str]] = field(default_factory=dict)  # axis, or repeat -> chosen values

    @property
    def experiment(self) -> Experiment:
        """The experiment at its first point: what holds for the whole campaign."""
        return self.points[0].experiment

    def list_available(self) -> list[RunPlan]:
        return [plan for plan in self.plans if not self.list_missing(plan)]

    def group_by_point(self) -> list[list[RunPlan]]:
        """The plans, a list a point."""
        found: dict[tuple[str, ...], list[RunPlan]] = {
            tuple(point.values.values()): [] for point in self.points
        }
        for plan in self.plans:
            found[tuple(plan.point.values())].append(plan)
        return list(found.values())

    def list_missing(self, plan: RunPlan) -> list[str]:
        """What a run needs and cannot have: schemes, and links that are radios or FPGAs."""
        links = radio.names([plan]) if self.no_radios is not None else []
        links += fpga.names([plan]) if self.no_fpgas is not None else []
        schemes_ = [flow.scheme for flow in plan.flows if flow.scheme in self.unavailable]
        return [*schemes_, *(f"link {name}" for name in links)]

    def list_missing_radios(self) -> list[str]:
        """The links of any run that are radios, and cannot be."""
        return radio.names(self.plans) if self.no_radios is not None else []

    def list_missing_fpgas(self) -> list[str]:
        """The links of any run whose FPGA is to be simulated, and cannot be."""
        return fpga.names(self.plans) if self.no_fpgas is not None else []


def select_runs(
    points: list[Point],
    variant: str | None,
    only: dict[str, list[str]],
    build: Build,
    available: Callable[[schemes.Scheme], schemes.Availability] = schemes.availability,
    switch: SwitchTarget = "nagi",
    radios: Callable[[], schemes.Availability] = radio.availability,
    fpgas: Callable[[], schemes.Availability] = fpga.availability,
) -> Selection:
    """Plans the points that have, of each axis in `only`, one of its values; of their repeats,
    which are counted from 1, those under "repeat". `available` says whether a scheme can run where
    the runs are to take place, `switch` what switches run, `radios` whether links can be radios
    there, `fpgas` whether FPGAs can be simulated; they are asked if any is. Raises InputError."""
    is_axis = any(REPEAT in point.values for point in points)
    repeats = [] if is_axis else only.get(REPEAT, [])
    of_axes = {axis: values for axis, values in only.items() if axis != REPEAT or is_axis}
    for axis, values in of_axes.items():
        known = sorted({point.values[axis] for point in points if axis in point.values})
        if not known:
            what = f"--only {excerpt(axis)}=...: there is no such axis"
            raise refuse(what, choices(axis, [*points[0].values, REPEAT], "axes"))
        _require_known(axis, values, known)
    chosen = [
        p for p in points if all(p.values[axis] in values for axis, values in of_axes.items())
    ]
    if not chosen:
        raise refuse("--only leaves no runs", "give fewer values, or others")
    memo = Memo()
    plans = [
        plan.with_ids(build.id, memo)
        for point in chosen
        for plan in plan_runs(point, variant, switch=switch, memo=memo)
    ]
    if repeats:
        if chosen[0].experiment.until is not None:
            what = f"--only {REPEAT}=...: the experiment's `until` decides how many there are"
            raise refuse(what, "choose points, or remove `until`")
        _require_known(REPEAT, repeats, sorted({_repeat_number(plan) for plan in plans}, key=int))
        plans = [plan for plan in plans if _repeat_number(plan) in repeats]
    found = {name: available(scheme) for name, scheme in sorted(find_schemes(chosen).items())}
    unavailable = {name: each for name, each in found.items() if not each.available}
    can_be = radios() if radio.names(plans) else None
    no_radios = None if can_be is None or can_be.available else can_be
    can_simulate = fpgas() if fpga.names(plans) else None
    no_fpgas = None if can_simulate is None or can_simulate.available else can_simulate
    return Selection(variant, chosen, plans, unavailable, build, switch, no_radios, no_fpgas, only)


def _require_known(axis: str, values: list[str], known: list[str]) -> None:
    for value in values:
        if value not in known:
            what = f"--only {axis}={excerpt(value)}: there is no such value"
            raise refuse(what, choices(value, known, "values"))


def _repeat_number(plan: RunPlan) -> str:
    """Of a repeat, as people count."""
    return str(plan.repeat + 1)


def has_switches(points: list[Point]) -> bool:
    """Whether a node of any of them is a switch."""
    return any(point.experiment.nodes_of("switch") for point in points)


def has_radios(points: list[Point]) -> bool:
    """Whether a link of any of them is a radio."""
    links = [link for point in points for link in point.experiment.links.values()]
    return any(link.emulator == "sdr" for link in links)


def has_simulated_fpgas(points: list[Point]) -> bool:
    """Whether an FPGA that any of them has is simulated."""
    links = [link for point in points for link in point.experiment.links.values()]
    return any(link.simulates_fpga for link in links)


def find_schemes(points: list[Point]) -> dict[str, schemes.Scheme]:
    """The schemes that flows of `points` use, by their names there; unknown ones are left out."""
    found = {
        flow.scheme: schemes.find(flow.scheme, point.document.beside)
        for point in points
        for flow in point.experiment.flows.values()
        if not flow.is_absent
    }
    return {name: scheme for name, scheme in found.items() if scheme is not None}
