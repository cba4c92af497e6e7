# SPDX-License-Identifier: Apache-2.0
"""Kernel modules of schemes in guests: checks nagi's modules, and builds those of users."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nagi_contracts.errors import InputError
from nagi_contracts.plan import RunPlan

from nagi.backends.availability import Availability
from nagi.labs import guest_kernel
from nagi.plan import schemes
from nagi.plan.scheme_sources import find_source, list_sources
from nagi.plan.schemes import Scheme

_IN_NETNS = "run it with --lab netns"


def build_user_modules(plan: RunPlan) -> dict[str, Path]:
    """Return congestion control -> kernel module, for the users' schemes that a plan needs.

    Modules are built if they do not exist yet. The plan must have been made on this machine, which
    has the sources.

    Raises:
        InputError: A module cannot be built.
    """
    scheme_objects = [
        (name, scheme_object)
        for flow in plan.flows
        for name, scheme_object in flow.objects().items()
    ]
    return {
        name: guest_kernel.build_user_module(scheme_object.source, scheme_object.source)
        for name, scheme_object in scheme_objects
        if list_sources(scheme_object.source)
    }


def check_availability(scheme: Scheme) -> Availability:
    """Return whether the guest kernel can run `scheme`. If not, the result has reason and cure.

    Modules of a user's schemes are built if they do not exist yet.
    """
    try:
        kernel = guest_kernel.require_installed()
    except InputError as error:
        return Availability(False, error.problems[0].what, error.problems[0].cure)
    if scheme.kernel is not None and scheme.congestion_control not in kernel.congestion_controls:
        availability = schemes.check_kernel_control(scheme, kernel.release, is_present=False)
        return replace(availability, cure=_IN_NETNS)
    schemes_of_both_ends = [scheme] if scheme.receiver is None else [scheme, scheme.receiver]
    try:
        needed_modules = [
            end_scheme.congestion_control
            for end_scheme in schemes_of_both_ends
            if end_scheme.object_file is not None and _build_user_module(end_scheme) is None
        ]
    except InputError as error:
        problem = error.problems[0]
        return Availability(False, str(problem).removesuffix(f"; {problem.cure}"), problem.cure)
    if any(module not in kernel.modules for module in needed_modules):
        return Availability(
            False,
            "the virtual lab's kernel has no eBPF struct_ops, and no module for this scheme",
            _IN_NETNS,
        )
    if needed_modules and kernel.module_sources != guest_kernel.hash_module_sources():
        return Availability(
            False,
            "the virtual lab's modules of schemes were built from other sources than those in "
            "hosts/tcp",
            "build the modules again: `nagi setup virtual-lab`",
        )
    return Availability(True)


def _build_user_module(scheme: Scheme) -> Path | None:
    """Return the kernel module of a user's scheme in C. Build the module if it does not exist yet.

    Return None if `scheme` is one of nagi's schemes, or the user gave no C file. Raises InputError
    if the module cannot be built.
    """
    if scheme.own_file is None or scheme.object_file is None:
        return None
    if not list_sources(scheme.object_file):
        return None
    return guest_kernel.build_user_module(scheme.object_file, find_source(scheme.own_file))
