# SPDX-License-Identifier: Apache-2.0
"""Selects the runs of a campaign, and the runs among them that this machine can execute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from nagi_contracts.errors import excerpt, refuse, suggest
from nagi_contracts.memo import Memo
from nagi_contracts.plan import RunPlan, SwitchTarget
from nagi_contracts.records import Build

from nagi.backends.availability import Availability
from nagi.backends.interface import Needs
from nagi.backends.registry import load_needs
from nagi.plan import schemes
from nagi.plan.planner import plan_runs
from nagi.spec.experiment import Experiment
from nagi.spec.points import Point

REPEAT = "repeat"  # a pseudo-axis: `--only repeat=1,2` selects repeats


@dataclass(frozen=True)
class Selection:
    """The plans of a campaign, and the schemes and backends that this machine lacks."""

    variant: str | None
    points: list[Point]
    plans: list[RunPlan]
    unavailable: dict[str, Availability]  # scheme -> why it is unavailable
    build: Build
    switch: SwitchTarget = "nagi"
    lacking: dict[str, Availability] = field(default_factory=dict)  # backend -> why it is lacking
    only: dict[str, list[str]] = field(default_factory=dict)  # axis or REPEAT -> selected values

    @property
    def experiment(self) -> Experiment:
        """The experiment of the first point, for settings that all points share."""
        return self.points[0].experiment

    def list_available(self) -> list[RunPlan]:
        """Return the plans whose schemes and backends this machine has."""
        return [plan for plan in self.plans if not self.list_missing(plan)]

    def group_by_point(self) -> list[list[RunPlan]]:
        """Return the plans of each point, in the order of `points`."""
        plans_by_values: dict[tuple[str, ...], list[RunPlan]] = {
            tuple(point.values.values()): [] for point in self.points
        }
        for plan in self.plans:
            plans_by_values[tuple(plan.point.values())].append(plan)
        return list(plans_by_values.values())

    def list_missing(self, plan: RunPlan) -> list[str]:
        """Return the schemes (NAME) and links (`link NAME`) of a run that this machine lacks."""
        missing = [flow.scheme for flow in plan.flows if flow.scheme in self.unavailable]
        for needs in self.lacking_needs.values():
            missing += [f"link {user}" for user in needs.list_users([plan])]
        return missing

    @cached_property
    def lacking_needs(self) -> dict[str, Needs]:
        """Backend -> its Needs, for the backends in `lacking`."""
        return {name: needs for name, needs in load_needs().items() if name in self.lacking}


def check_here(needs: Needs) -> Availability:
    """Return the availability of the programs that a backend needs, on this machine."""
    return needs.check_availability()


def select_runs(
    points: list[Point],
    variant: str | None,
    only: dict[str, list[str]],
    build: Build,
    check_scheme: Callable[[schemes.Scheme], Availability] = schemes.check_availability,
    switch: SwitchTarget = "nagi",
    check_backend: Callable[[Needs], Availability] = check_here,
) -> Selection:
    """Plan the runs of the points and repeats that `only` selects, point by point.

    Runs that this machine cannot execute are planned, too. See Selection.list_available().

    Args:
        points: All points of the experiment.
        variant: The variant of the experiment, or None.
        only: Axis -> selected values; REPEAT -> selected repeats, counted from 1. Axes that are not
            in `only` are not restricted.
        build: The build that executes the runs.
        check_scheme: A function that returns the availability of a scheme.
        switch: The program that runs the P4 pipelines of switches.
        check_backend: A function that returns the availability of the programs of a backend. It is
            called only for backends that a run needs.

    Raises:
        InputError: `only` has an unknown axis or value, or selects no run.
    """
    is_axis = any(REPEAT in point.values for point in points)
    repeats = [] if is_axis else only.get(REPEAT, [])
    only_axes = {axis: values for axis, values in only.items() if axis != REPEAT or is_axis}
    for axis, values in only_axes.items():
        values_of_axis = sorted({point.values[axis] for point in points if axis in point.values})
        if not values_of_axis:
            problem = f"--only {excerpt(axis)}=...: there is no such axis"
            raise refuse(problem, suggest(axis, [*points[0].values, REPEAT], "axes"))
        _require_known(axis, values, values_of_axis)
    selected_points = [
        point
        for point in points
        if all(point.values[axis] in values for axis, values in only_axes.items())
    ]
    if not selected_points:
        raise refuse("--only selects no run", "give other values")
    memo = Memo()
    plans = [
        plan.with_ids(build.id, memo)
        for point in selected_points
        for plan in plan_runs(point, variant, switch=switch, memo=memo)
    ]
    if repeats:
        if selected_points[0].experiment.until is not None:
            problem = f"--only {REPEAT}=...: the experiment's `until` decides the number of repeats"
            raise refuse(problem, "choose points, or remove `until`")
        _require_known(REPEAT, repeats, sorted({_format_repeat(plan) for plan in plans}, key=int))
        plans = [plan for plan in plans if _format_repeat(plan) in repeats]
    availabilities = {
        name: check_scheme(scheme) for name, scheme in sorted(find_schemes(selected_points).items())
    }
    unavailable = {
        name: availability
        for name, availability in availabilities.items()
        if not availability.available
    }
    backend_availabilities = {
        name: check_backend(needs)
        for name, needs in load_needs().items()
        if needs.list_users(plans)
    }
    lacking = {
        name: availability
        for name, availability in backend_availabilities.items()
        if not availability.available
    }
    return Selection(variant, selected_points, plans, unavailable, build, switch, lacking, only)


def require_lab(plans: list[RunPlan], lab: str) -> None:
    """Raise InputError if the lab `lab` does not support a link of `plans`.

    For example, only the physical lab supports links on FPGA boards.
    """
    for needs in load_needs().values():
        needs.require_lab(plans, lab)


def _require_known(axis: str, values: list[str], valid: list[str]) -> None:
    """Raise InputError if a value of `--only` is not in `valid`."""
    for value in values:
        if value not in valid:
            problem = f"--only {axis}={excerpt(value)}: there is no such value"
            raise refuse(problem, suggest(value, valid, "values"))


def _format_repeat(plan: RunPlan) -> str:
    """Return the number of a run's repeat, counted from 1."""
    return str(plan.repeat + 1)


def has_switches(points: list[Point]) -> bool:
    """Return whether a node of any point is a switch."""
    return any(point.experiment.list_nodes("switch") for point in points)


def find_backends(points: list[Point]) -> list[str]:
    """Return the backends that at least one point needs, in the order of all backends."""
    return [
        name
        for name, needs in load_needs().items()
        if any(needs.is_needed_by(point.experiment) for point in points)
    ]


def find_schemes(points: list[Point]) -> dict[str, schemes.Scheme]:
    """Return name -> scheme, for the schemes of all flows of `points`.

    Unknown schemes and absent flows are left out.
    """
    schemes_by_name = {
        flow.scheme: schemes.find_scheme(flow.scheme, point.document.resolve_path)
        for point in points
        for flow in point.experiment.flows.values()
        if not flow.is_absent
    }
    return {name: scheme for name, scheme in schemes_by_name.items() if scheme is not None}
