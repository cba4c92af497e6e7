# SPDX-License-Identifier: Apache-2.0
"""TCP schemes as eBPF objects, ours or a user's: what they are, by nagi-tcp's word."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path

from nagi_contracts import paths
from nagi_contracts.base import Contract
from nagi_contracts.errors import InputError, refuse
from nagi_contracts.plan import SchemeObjectPlan
from nagi_contracts.records import sha256_of

NAGI_TCP = "nagi-tcp"
SUFFIX = ".o"  # what tells the path of an object from the name of a scheme


class Parameter(Contract):
    """A number that a scheme can be given."""

    default: int
    minimum: int
    maximum: int
    unit: str
    meaning: str


class Description(Contract):
    """What an object says of itself."""

    scheme: str
    events: bool
    parameters: dict[str, Parameter]


def nagi_tcp() -> Path:
    """The executable. Raises InputError if it has not been built."""
    program = paths.executable(NAGI_TCP)
    if not program.exists():
        raise refuse(f"there is no {program}", "build it: `make setup`")
    return program


def describe(path: Path) -> Description:
    """Raises InputError if `path` is no scheme."""
    return _describe(path, path.stat().st_mtime_ns if path.exists() else None)


@cache
def _describe(path: Path, _changed_ns: int | None) -> Description:
    done = subprocess.run(
        [nagi_tcp(), "describe", path], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        what, _, cure = _said(done.stderr).removeprefix(f"{path}: ").partition("; ")
        raise refuse(what, cure or "see docs of hosts/tcp", file=str(path))
    return Description.model_validate(json.loads(done.stdout))


def plan_of(path: Path, parameters: dict[str, int]) -> SchemeObjectPlan:
    """How a plan names the object in `path`, with `parameters` instead of its defaults."""
    described = describe(path)
    sha256 = sha256_of(path)
    stem = path.name.removesuffix(SUFFIX).removesuffix(".bpf")
    values = {name: each.default for name, each in described.parameters.items()} | parameters
    plan = SchemeObjectPlan(
        object=f"{stem}-{sha256[:8]}.bpf{SUFFIX}",
        sha256=sha256,
        events=described.events,
        parameters=values,
    )
    return plan.set_source(path)


def check_name(path: Path, source: Path) -> None:
    """Raises InputError if the scheme in `path`, made from `source`, has not the file's name."""
    described, stem = describe(path).scheme, path.name.partition(".")[0]
    if described != stem:
        raise refuse(
            f"its scheme is called {described}",
            f"name it as the file is: NAGI_SCHEME({stem})",
            file=str(source),
        )


def object_name(path: Path) -> str:
    """What the object in `path` is called in plans, and where agents have it."""
    return plan_of(path, {}).object


@cache
def refusal(path: Path) -> tuple[str, str] | None:
    """Why this machine's kernel does not take the object in `path`, and what helps; None if it
    does, or if this process may not try."""
    if os.geteuid() != 0:
        return None
    try:
        describe(path)
        done = subprocess.run(
            [nagi_tcp(), "check", path], capture_output=True, text=True, check=False
        )
    except InputError as error:
        return error.problems[0].what, error.problems[0].cure
    return None if done.returncode == 0 else in_two(_said(done.stderr))


def in_two(complaint: str) -> tuple[str, str]:
    """What nagi-tcp refuses, and what helps."""
    what, _, cure = complaint.partition("; ")
    return what, cure or "use another scheme, or another kernel: `nagi schemes` lists what runs"


def _said(stderr: str) -> str:
    return stderr.strip().removeprefix(f"{NAGI_TCP}: ")
