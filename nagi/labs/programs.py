# SPDX-License-Identifier: Apache-2.0
"""The programs and settings of all backends for the agent of a node (Batch.backends)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nagi_contracts.plan import RunPlan

from nagi.backends.interface import Json, Programs
from nagi.backends.registry import load_programs
from nagi.labs.shape import Shape

# A function that returns backend -> programs and settings, for a node of a shape.
ListPrograms = Callable[[str, Shape], dict[str, Json]]


def list_local_programs(node: str, shape: Shape) -> dict[str, Json]:
    """Return backend -> programs of this machine, for a node of a lab on this machine.

    Backends that the node does not use are missing in the results of this function and of the
    following ones.
    """
    return _call_all(lambda _, backend: backend.list_local(node, shape))


def list_guest_programs(node: str, shape: Shape) -> dict[str, Json]:
    """Return backend -> programs by their paths in a guest, for a node in the virtual lab."""
    return _call_all(lambda _, backend: backend.list_in_guest(node, shape))


def list_guest_mounts(plans: Sequence[RunPlan]) -> dict[Path, Path]:
    """Return path in guests -> path on this machine of the files that backends need for `plans`.

    A file that has the same path in guests is left out if it does not exist, or if it is in /usr,
    which all guests see.
    """
    mounts: dict[Path, Path] = {}
    for backend in load_programs().values():
        mounts |= backend.list_guest_mounts(plans)
    return {
        guest_path: path
        for guest_path, path in mounts.items()
        if guest_path != path or (path.exists() and not path.is_relative_to("/usr"))
    }


def list_remote_programs(
    node: str, shape: Shape, settings: Mapping[str, Json], directory: str
) -> dict[str, Json]:
    """Return backend -> programs by their paths on a real host.

    Args:
        node: The name of the node that the host is, or EMULATOR.
        shape: The nodes and links in use.
        settings: The host's settings, from read_settings().
        directory: The directory of nagi's programs on the host.
    """
    return _call_all(
        lambda name, backend: backend.list_remote(node, shape, settings[name], directory)
    )


def list_shipped_programs(
    settings: Mapping[str, Json], programs: Mapping[str, Json]
) -> dict[str, str]:
    """Return Ansible's variables with the paths of programs to copy to a real host.

    Args:
        settings: The host's settings, from read_settings().
        programs: The host's programs, from list_remote_programs().
    """
    shipped: dict[str, str] = {}
    for name, backend in load_programs().items():
        shipped |= backend.list_shipped(settings[name], programs.get(name, {}))
    return shipped


def read_settings(variables: Mapping[str, Any]) -> dict[str, Json]:
    """Return backend -> settings, from a real host's inventory variables.

    Raises:
        BadValue: A variable is wrong.
    """
    return {name: backend.read_variables(variables) for name, backend in load_programs().items()}


def _call_all(call: Callable[[str, Programs], Json]) -> dict[str, Json]:
    """Call a function for each backend, and return backend -> result, without empty results."""
    results = {name: call(name, backend) for name, backend in load_programs().items()}
    return {name: result for name, result in results.items() if result}
