# SPDX-License-Identifier: Apache-2.0
"""The installed guest kernel. hosts/guest/kernel.py builds and installs the kernel."""

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

from nagi.plan.scheme_sources import compile_in_sandbox, list_sources, parse_problems

PRELOADED = "repeatable.so"
_MODULES = Path("/mnt/nagi/modules")  # the directory of a module's sources in Kbuild's sandbox


class GuestKernel(Contract):
    """The content of kernel.json: an installed guest kernel, and checksums of its sources."""

    schema_version: Literal[1] = 1
    release: str
    source: str
    configuration: str = Field(description="checksum of the kernel's configuration and build")
    compiler: str
    linux: str = Field(description="SHA-256 of the kernel")
    congestion_controls: list[str]
    modules: dict[str, str] = Field(description="name -> SHA-256")
    module_sources: str = Field(description="checksum of the sources of the modules")
    build: str = Field(description="the kernel's build directory, for modules of users' schemes")


class _Refused(Exception):
    """An error of hosts/guest/kernel.py: the problem, its cure, and the file concerned."""

    what: str
    cure: str
    file: str


class _Builder(Protocol):
    """The functions of hosts/guest/kernel.py that are used here."""

    FILE: str
    Refused: type[_Refused]

    def digest_configuration(self) -> str: ...
    def digest_module_sources(self) -> str: ...
    def describe_build_time(self) -> str: ...
    def set_up(self, target: Path, tree: Path | None, mirror: str | None) -> str: ...
    def stage_module_sources(self, sources: Sequence[Path], target: Path) -> None: ...
    def build_module_command(self, kernel_build: Path, directory: Path) -> list[str]: ...


@cache
def _load_builder() -> _Builder:
    """Return hosts/guest/kernel.py as a module."""
    return cast(_Builder, paths.load_module(paths.GUEST / "kernel.py"))


def find_kernel_directory() -> Path:
    """Return the directory in which the guest kernel and its modules are installed."""
    return paths.prefix() / "lib" / "nagi" / "guest"


def find_preloaded_library() -> Path:
    """Return the library that is preloaded (LD_PRELOAD) into the guest kernel's process."""
    return find_kernel_directory() / PRELOADED


def set_up(tree: Path | None, mirror: str | None) -> str:
    """Build and install the parts of the guest kernel that are missing.

    Args:
        tree: A Linux source tree; by default, Debian's package is used.
        mirror: A Debian archive; by default, the one that apt uses.

    Returns:
        A text for people that describes the installed kernel.

    Raises:
        InputError: The kernel cannot be built.
    """
    builder = _load_builder()
    try:
        return builder.set_up(find_kernel_directory(), tree, mirror)
    except builder.Refused as error:
        raise refuse(error.what, error.cure, file=error.file) from None


def read_installed() -> GuestKernel | None:
    """Return the installed guest kernel, or None if kernel.json is missing or wrong."""
    try:
        return GuestKernel.read(find_kernel_directory() / _load_builder().FILE)
    except InputError:
        return None


def require_installed() -> GuestKernel:
    """Return the installed guest kernel.

    Raises:
        InputError: The guest kernel is missing or outdated, or its preloaded library is missing.
    """
    kernel = read_installed()
    if kernel is None:
        raise refuse(
            "the virtual lab's guest kernel has not been built",
            f"build it: `nagi setup virtual-lab` (about {_load_builder().describe_build_time()})",
        )
    if kernel.configuration != _load_builder().digest_configuration():
        raise refuse(
            "the virtual lab's guest kernel was built for another version of nagi",
            "build it again: `nagi setup virtual-lab`",
        )
    if not find_preloaded_library().exists():
        raise refuse(
            f"the virtual lab's guest kernel has no {find_preloaded_library()}",
            "build it: `make setup`, or install nagi again",
        )
    return kernel


@cache
def hash_module_sources() -> str:
    """Return a checksum of the current sources of nagi's kernel modules."""
    return _load_builder().digest_module_sources()


def build_user_module(object_file: Path, source: Path) -> Path:
    """Return the kernel module of a user's scheme. Build it if it does not exist yet.

    Args:
        object_file: The eBPF object of the scheme. The module is stored in a directory beside it.
        source: The user's C file, for messages.

    Raises:
        InputError: The source does not compile, or the guest kernel or its build directory is
            missing.
    """
    kernel = require_installed()
    name = f"nagi_{object_file.name.partition('.')[0]}"
    module = object_file.parent / kernel.linux[:16] / f"{name}.ko"
    if module.exists():
        return module
    kernel_build = Path(kernel.build)
    if not kernel_build.is_dir():
        raise refuse(
            "the guest kernel's build directory, which modules need, does not exist any more",
            "build it again: `nagi setup virtual-lab`",
            file=kernel.build,
        )
    builder = _load_builder()
    with tempfile.TemporaryDirectory(prefix="nagi-module-") as scratch:
        try:
            builder.stage_module_sources(list_sources(object_file), Path(scratch))
            command = builder.build_module_command(kernel_build, _MODULES)
        except builder.Refused as error:
            raise refuse(error.what, error.cure, file=error.file) from None
        process = compile_in_sandbox(
            command,
            writable={_MODULES: Path(scratch)},
            readable={path: path for path in (kernel_build, _find_kernel_sources(kernel_build))},
        )
        if process.returncode != 0:
            raise InputError(*parse_problems(process.stdout, source))
        module.parent.mkdir(exist_ok=True)
        partial = module.with_suffix(f".{os.getpid()}")
        shutil.copyfile(Path(scratch) / module.name, partial)
        partial.replace(module)
    return module


def _find_kernel_sources(kernel_build: Path) -> Path:
    """Return the directory of the kernel's sources: the target of `source` in `kernel_build`."""
    return (kernel_build / "source").resolve()
