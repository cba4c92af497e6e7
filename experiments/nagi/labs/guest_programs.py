# SPDX-License-Identifier: Apache-2.0
"""Programs that a guest starts from where they are installed, as they look for their parts beside
themselves: nagi-sdr, nagi-p4runtime, bmv2's switches. Below /usr a guest sees them anyway."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from nagi_contracts.plan import RunPlan
from nagi_p4.simple_switch import client_directory

from nagi.plan import radio

_PYTHON_PACKAGES = ("nagi_p4", "nagi_p4runtime")


def shown_programs(plans: Iterable[RunPlan]) -> dict[Path, Path]:
    """Return what guests that run `plans` are to see of this machine's programs outside /usr, files
    and directories: path inside -> path outside, which are the same."""
    needed: list[Path] = []
    plans = list(plans)
    targets = {plan.switch_target for plan in plans if plan.switches()}
    if any(plan.radios() for plan in plans):
        needed += radio.list_installed_parts()
    if "bmv2" in targets:
        needed += _bmv2_parts("simple_switch")
    if "p4runtime" in targets:
        needed += _bmv2_parts("simple_switch_grpc") or _python_parts()
    outside = [path for path in needed if path.exists() and not path.is_relative_to("/usr")]
    return {path: path for path in dict.fromkeys(outside)}


def _bmv2_parts(name: str) -> list[Path]:
    """Return the program, its libraries and its Python modules; none if it is not installed."""
    found = shutil.which(name)
    if found is None:
        return []
    program = Path(found)
    modules = client_directory()
    return [
        program,
        program.resolve(),
        program.resolve().parent.parent / "lib",
        *([] if modules is None else [Path(modules)]),
    ]


def _python_parts() -> list[Path]:
    """Return this Python with its packages, among them nagi-p4runtime's."""
    specs = [find_spec(name) for name in _PYTHON_PACKAGES]
    packages = [Path(spec.origin).parent for spec in specs if spec is not None and spec.origin]
    installed = [sys.prefix, sys.base_prefix, sysconfig.get_path("purelib")]
    return [*map(Path, installed), *packages]
