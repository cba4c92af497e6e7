# SPDX-License-Identifier: Apache-2.0
"""Programs that a guest starts from the directories in which they are installed.

nagi-sdr, nagi-p4runtime and bmv2's switches find their files relative to their own path, so a guest
must see them at this path. All guests see /usr.
"""

from __future__ import annotations

import shutil
import sys
import sysconfig
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from nagi_contracts.plan import RunPlan
from nagi_p4.simple_switch_client import find_client_directory

from nagi.plan import radio

_PYTHON_PACKAGES = ("nagi_p4", "nagi_p4runtime")


def list_visible_programs(plans: Iterable[RunPlan]) -> dict[Path, Path]:
    """Return this machine's files outside /usr that guests must see to execute `plans`.

    Returns:
        path inside -> path outside, which are equal
    """
    needed: list[Path] = []
    plans = list(plans)
    targets = {plan.switch_target for plan in plans if plan.switches()}
    if any(plan.radios() for plan in plans):
        needed += radio.list_installed_parts()
    if "bmv2" in targets:
        needed += _list_bmv2_files("simple_switch")
    if "p4runtime" in targets:
        needed += _list_bmv2_files("simple_switch_grpc") or _list_python_directories()
    outside = [path for path in needed if path.exists() and not path.is_relative_to("/usr")]
    return {path: path for path in dict.fromkeys(outside)}


def _list_bmv2_files(name: str) -> list[Path]:
    """Return a program of bmv2, its libraries and Python modules; [] if it is not installed."""
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
    """Return the directories of this Python and of the packages of nagi-p4runtime."""
    specs = [find_spec(name) for name in _PYTHON_PACKAGES]
    packages = [Path(spec.origin).parent for spec in specs if spec is not None and spec.origin]
    installed = [sys.prefix, sys.base_prefix, sysconfig.get_path("purelib")]
    return [*map(Path, installed), *packages]
