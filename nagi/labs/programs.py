# SPDX-License-Identifier: Apache-2.0
"""The programs and settings of all backends that the agent of a node gets (Batch.backends)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nagi_contracts.plan import RunPlan

from nagi.backends.interface import Json, Programs
from nagi.backends.registry import load_programs
from nagi.labs.shape import Shape

# Returns the programs for a node of a shape, by backend.
ListPrograms = Callable[[str, Shape], dict[str, Json]]


def list_local_programs(node: str, shape: Shape) -> dict[str, Json]:
    """Return this machine's programs for a node of a lab on this machine, by backend."""
    return _ask_all(lambda _, part: part.list_local(node, shape))


def list_guest_programs(node: str, shape: Shape) -> dict[str, Json]:
    """Return the programs for a node in a guest of the virtual lab, by backend."""
    return _ask_all(lambda _, part: part.list_in_guest(node, shape))


def list_guest_mounts(plans: Sequence[RunPlan]) -> dict[Path, Path]:
    """Return the files that guests see to execute `plans`, path inside -> path outside."""
    mounts: dict[Path, Path] = {}
    for part in load_programs().values():
        mounts |= part.list_guest_mounts(plans)
    return {
        inside: outside
        for inside, outside in mounts.items()
        if inside != outside or (outside.exists() and not outside.is_relative_to("/usr"))
    }


def list_remote_programs(
    node: str, shape: Shape, settings: Mapping[str, Json], directory: str
) -> dict[str, Json]:
    """Return the programs for a node that is a real host, by backend.

    Args:
        node: the node's name, or that of the emulator
        shape: the nodes and links in use
        settings: the host's settings, of read_settings()
        directory: the directory of nagi's programs on the host
    """
    return _ask_all(lambda name, part: part.list_remote(node, shape, settings[name], directory))


def list_shipped_programs(
    settings: Mapping[str, Json], programs: Mapping[str, Json]
) -> dict[str, str]:
    """Return Ansible's variables with the paths of programs to ship to a real host.

    Args:
        settings: the host's settings, of read_settings()
        programs: the programs for its node, of list_remote_programs()
    """
    shipped: dict[str, str] = {}
    for name, part in load_programs().items():
        shipped |= part.list_shipped(settings[name], programs.get(name, {}))
    return shipped


def read_settings(variables: Mapping[str, Any]) -> dict[str, Json]:
    """Return the settings of all backends in a real host's inventory variables, by backend.

    Raises:
        BadValue: a variable is wrong.
    """
    return {name: part.read_variables(variables) for name, part in load_programs().items()}


def _ask_all(ask: Callable[[str, Programs], Json]) -> dict[str, Json]:
    """Return the answers of all backends that are not empty."""
    answers = {name: ask(name, part) for name, part in load_programs().items()}
    return {name: answer for name, answer in answers.items() if answer}
