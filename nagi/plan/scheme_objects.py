# SPDX-License-Identifier: Apache-2.0
"""Read the descriptions of TCP schemes from eBPF objects, nagi's or a user's, with nagi-tcp."""

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
from nagi_contracts.records import compute_sha256

NAGI_TCP = "nagi-tcp"
SUFFIX = ".o"  # of eBPF objects; no name of a scheme ends with it


class Parameter(Contract):
    """A number that a user can set for a scheme."""

    default: int
    minimum: int
    maximum: int
    unit: str
    meaning: str


class Description(Contract):
    """The properties of a scheme, as its eBPF object declares them."""

    scheme: str  # name of the scheme
    events: bool  # whether the scheme reports events
    parameters: dict[str, Parameter]


def find_nagi_tcp() -> Path:
    """Return the path of the nagi-tcp executable.

    Raises:
        InputError: If nagi-tcp has not been built.
    """
    program = paths.executable(NAGI_TCP)
    if not program.exists():
        raise refuse(f"there is no {program}", "build it: `make setup`")
    return program


def describe(path: Path) -> Description:
    """Return the description of the scheme in the eBPF object `path`.

    Raises:
        InputError: If the file does not exist or has no scheme, or nagi-tcp has not been built.
    """
    return _describe_version(path, path.stat().st_mtime_ns if path.exists() else None)


@cache
def _describe_version(path: Path, _changed_ns: int | None) -> Description:
    result = subprocess.run(
        [find_nagi_tcp(), "describe", path], capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        message, _, cure = _read_complaint(result.stderr).removeprefix(f"{path}: ").partition("; ")
        raise refuse(message, cure or "see docs/schemes.md", file=str(path))
    return Description.model_validate(json.loads(result.stdout))


def plan_object(path: Path, parameters: dict[str, int]) -> SchemeObjectPlan:
    """Return the plan of the eBPF object `path`; `parameters` replace the object's defaults."""
    description = describe(path)
    sha256 = compute_sha256(path)
    stem = path.name.removesuffix(SUFFIX).removesuffix(".bpf")
    values = {
        name: parameter.default for name, parameter in description.parameters.items()
    } | parameters
    plan = SchemeObjectPlan(
        object=f"{stem}-{sha256[:8]}.bpf{SUFFIX}",
        sha256=sha256,
        events=description.events,
        parameters=values,
    )
    return plan.set_source(path)


def check_name(path: Path, source: Path) -> None:
    """Check that the scheme in an eBPF object has the name of the object's file.

    Args:
        path: The object.
        source: The user's file or directory from which the object was compiled, for the message.

    Raises:
        InputError: If the scheme has another name.
    """
    scheme_name, stem = describe(path).scheme, path.name.partition(".")[0]
    if scheme_name != stem:
        raise refuse(
            f"its scheme is called {scheme_name}",
            f"give it the name of the file: NAGI_SCHEME({stem})",
            file=str(source),
        )


def make_object_name(path: Path) -> str:
    """Return the name that the object `path` has in plans and in the directory of an agent."""
    return plan_object(path, {}).object


@cache
def explain_refusal(path: Path) -> tuple[str, str] | None:
    """Return message and cure if the object `path` is wrong, or this machine's kernel refuses it.

    Return None if the kernel accepts the object, or if this process is not root and cannot try.
    """
    if os.geteuid() != 0:
        return None
    try:
        describe(path)
        result = subprocess.run(
            [find_nagi_tcp(), "check", path], capture_output=True, text=True, check=False
        )
    except InputError as error:
        return error.problems[0].what, error.problems[0].cure
    return None if result.returncode == 0 else split_complaint(_read_complaint(result.stderr))


def split_complaint(complaint: str) -> tuple[str, str]:
    """Split a message of nagi-tcp into what is wrong and the cure; add a cure if it has none."""
    message, _, cure = complaint.partition("; ")
    return message, cure or "use another scheme, or another kernel: `nagi schemes` lists what runs"


def _read_complaint(stderr: str) -> str:
    return stderr.strip().removeprefix(f"{NAGI_TCP}: ")
