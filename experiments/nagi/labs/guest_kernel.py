# SPDX-License-Identifier: Apache-2.0
"""The guest kernel that is installed. hosts/guest/kernel.py builds and installs it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal, Protocol, cast

from nagi_contracts import paths
from nagi_contracts.base import Contract
from nagi_contracts.errors import InputError, refuse
from pydantic import Field

from nagi.plan.scheme_sources import compile_in_sandbox, problems_in, sources_beside

PRELOADED = "repeatable.so"
_MODULES = Path("/mnt/nagi/modules")  # where Kbuild sees a module's sources, in its sandbox


class GuestKernel(Contract):
    """kernel.json: what a guest kernel was made from, and is."""

    schema_version: Literal[1] = 1
    release: str
    source: str
    configuration: str = Field(description="stands for its configuration and how it is compiled")
    compiler: str
    linux: str = Field(description="SHA-256")
    congestion_controls: list[str]
    modules: dict[str, str] = Field(description="name -> SHA-256")
    module_sources: str = Field(description="stands for what the modules were built from")
    build: str = Field(description="its build directory, for modules of a user's own")


class _Refused(Exception):
    what: str
    cure: str
    file: str


class _Builder(Protocol):
    """hosts/guest/kernel.py"""

    FILE: str
    Refused: type[_Refused]

    def configuration(self) -> str: ...
    def module_sources(self) -> str: ...
    def minutes(self) -> str: ...
    def set_up(self, target: Path, tree: Path | None, mirror: str | None) -> str: ...
    def stage_module_sources(self, sources: Sequence[Path], target: Path) -> None: ...
    def module_command(self, kernel_build: Path, directory: Path) -> list[str]: ...


@cache
def _builder() -> _Builder:
    return cast(_Builder, paths.load_module(paths.GUEST / "kernel.py"))


def directory() -> Path:
    """Where kernel and modules are installed."""
    return paths.prefix() / "lib" / "nagi" / "guest"


def preloaded() -> Path:
    """Return the library that is preloaded into the kernel."""
    return directory() / PRELOADED


def set_up(tree: Path | None, mirror: str | None) -> str:
    """Builds and installs what is not there yet; `tree`: a Linux tree instead of Debian's package,
    `mirror`: a Debian archive instead of the one apt has. Returns what there is, in words. Raises
    InputError."""
    builder = _builder()
    try:
        return builder.set_up(directory(), tree, mirror)
    except builder.Refused as error:
        raise refuse(error.what, error.cure, file=error.file) from None


def installed() -> GuestKernel | None:
    """The kernel that is installed, if one is."""
    try:
        return GuestKernel.read(directory() / _builder().FILE)
    except InputError:
        return None


def require_installed() -> GuestKernel:
    """Raises InputError if there is none, or another than this nagi's."""
    found = installed()
    if found is None:
        raise refuse(
            "the virtual lab's guest kernel has not been built",
            f"build it: `nagi setup virtual-lab` (about {_builder().minutes()})",
        )
    if found.configuration != _builder().configuration():
        raise refuse(
            "the virtual lab's guest kernel was built with another configuration than this nagi's",
            "build it anew: `nagi setup virtual-lab`",
        )
    if not preloaded().exists():
        raise refuse(
            f"the virtual lab's guest kernel has no {preloaded()}",
            "build it: `make setup`, or install nagi again",
        )
    return found


@cache
def module_sources() -> str:
    """Stands for what modules of ours are built from now."""
    return _builder().module_sources()


def own_module(made: Path, source: Path) -> Path:
    """The module of a scheme of a user's own, built if it has not been. `made`: its eBPF object,
    `source`: the user's file, for messages. Raises InputError."""
    kernel = require_installed()
    name = f"nagi_{made.name.partition('.')[0]}"
    module = made.parent / kernel.linux[:16] / f"{name}.ko"
    if module.exists():
        return module
    kernel_build = Path(kernel.build)
    if not kernel_build.is_dir():
        raise refuse(
            "the guest kernel's build directory, which modules need, is not there any more",
            "build it again: `nagi setup virtual-lab`",
            file=kernel.build,
        )
    builder = _builder()
    with tempfile.TemporaryDirectory(prefix="nagi-module-") as scratch:
        try:
            builder.stage_module_sources(sources_beside(made), Path(scratch))
            command = builder.module_command(kernel_build, _MODULES)
        except builder.Refused as error:
            raise refuse(error.what, error.cure, file=error.file) from None
        done = compile_in_sandbox(
            command,
            writable={_MODULES: Path(scratch)},
            readable={path: path for path in (kernel_build, _sources_of(kernel_build))},
        )
        if done.returncode != 0:
            raise InputError(*problems_in(done.stdout, source))
        module.parent.mkdir(exist_ok=True)
        partial = module.with_suffix(f".{os.getpid()}")
        shutil.copyfile(Path(scratch) / module.name, partial)
        partial.replace(module)
    return module


def _sources_of(kernel_build: Path) -> Path:
    """Return the kernel's sources, to which a build directory has a link."""
    return (kernel_build / "source").resolve()
