# SPDX-License-Identifier: Apache-2.0
"""The paths of the programs of switches."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nagi_contracts import paths
from nagi_contracts.batch import P4RuntimeAccess, P4RuntimePrograms, SwitchPrograms
from nagi_contracts.errors import BadValue
from nagi_contracts.plan import RunPlan
from nagi_p4.simple_switch_client import find_client_directory
from pydantic import ValidationError

from nagi.backends.interface import Json, Programs
from nagi.labs import guest
from nagi.labs.shape import Shape

_IN_GUEST = guest.MOUNT_POINT / "nagi-switch"
_PYTHON_PACKAGES = ("nagi_p4", "nagi_p4runtime")


class SwitchNodePrograms(Programs):
    """The paths of nagi-switch, bmv2 and P4Runtime's programs.

    nagi-switch is shipped to real hosts, unless the inventory names its path there. bmv2 must be
    installed on real hosts.
    """

    def read_variables(self, variables: Mapping[str, Any]) -> Json:
        access = _read_access(variables.get("nagi_p4runtime"))
        return {
            "nagi_switch": variables.get("nagi_switch"),
            "p4runtime": access and access.model_dump(mode="json", exclude_none=True),
        }

    def list_local(self, node: str, shape: Shape) -> Json:
        return _list_programs(paths.executable("nagi-switch")) if node in shape.switches else {}

    def list_in_guest(self, node: str, shape: Shape) -> Json:
        return _list_programs(_IN_GUEST) if node in shape.switches else {}

    def list_guest_mounts(self, plans: Sequence[RunPlan]) -> dict[Path, Path]:
        """Return the files of nagi-switch and of the other targets of `plans`."""
        if not any(plan.switches() for plan in plans):
            return {}
        # bmv2's switches and nagi-p4runtime find their files relative to their own paths.
        targets = {plan.switch_target for plan in plans if plan.switches()}
        files: list[Path] = []
        if "bmv2" in targets:
            files += _list_bmv2_files("simple_switch")
        if "p4runtime" in targets:
            files += _list_bmv2_files("simple_switch_grpc") or _list_python_directories()
        return {_IN_GUEST: paths.executable("nagi-switch"), **{path: path for path in files}}

    def list_remote(self, node: str, shape: Shape, settings: Json, directory: str) -> Json:
        program = settings["nagi_switch"]
        if not program and node in shape.switches:
            program = f"{directory}/nagi-switch"
        programs = {"nagi_switch": program, "p4runtime": settings["p4runtime"]}
        return {name: value for name, value in programs.items() if value}

    def list_shipped(self, settings: Json, programs: Json) -> dict[str, str]:
        if "nagi_switch" not in programs or settings["nagi_switch"]:
            return {}
        return {"nagi_switch_source": str(paths.executable("nagi-switch"))}


def _list_programs(nagi_switch: Path) -> Json:
    """Return the switch programs of this machine. Programs that are not installed are left out.

    Args:
        nagi_switch: The path of nagi-switch.
    """
    programs = SwitchPrograms(
        nagi_switch=str(nagi_switch),
        simple_switch=shutil.which("simple_switch"),
        simple_switch_client=find_client_directory(),
        p4runtime_here=P4RuntimePrograms(
            simple_switch_grpc=shutil.which("simple_switch_grpc"),
            nagi_p4runtime=_find_python_command("nagi-p4runtime"),
            modules=sysconfig.get_path("purelib"),
        ),
    )
    return programs.model_dump(mode="json", exclude_none=True)


def _find_python_command(name: str) -> str | None:
    """Return the path of a command that a package of this Python installs, or None if missing."""
    path = Path(sysconfig.get_path("scripts")) / name
    return str(path) if path.exists() else None


def _read_access(value: Any) -> P4RuntimeAccess | None:
    """Return how a host reaches its switch by P4Runtime, or None if `value` is empty.

    Raises:
        BadValue: The value of the inventory variable is wrong.
    """
    if not value:
        return None
    try:
        return P4RuntimeAccess.model_validate(value, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(["nagi_p4runtime", *map(str, first["loc"])])
        cure = 'write it as {address: "10.0.0.9:9559", device_id: 1, ports: {link: number}}'
        raise BadValue(first["msg"], cure, key) from None


def _list_bmv2_files(name: str) -> list[Path]:
    """Return the paths of a bmv2 program, its libraries and bmv2's Python modules.

    Empty if the program is not installed.
    """
    executable = shutil.which(name)
    if executable is None:
        return []
    program = Path(executable)
    modules = find_client_directory()
    return [
        program,
        program.resolve(),
        program.resolve().parent.parent / "lib",
        *([] if modules is None else [Path(modules)]),
    ]


def _list_python_directories() -> list[Path]:
    """Return the directories of this Python, and of the packages that nagi-p4runtime needs."""
    specs = [find_spec(name) for name in _PYTHON_PACKAGES]
    packages = [Path(spec.origin).parent for spec in specs if spec is not None and spec.origin]
    installed = [sys.prefix, sys.base_prefix, sysconfig.get_path("purelib")]
    return [*map(Path, installed), *packages]


part = SwitchNodePrograms()
