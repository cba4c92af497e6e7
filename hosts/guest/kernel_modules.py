# SPDX-License-Identifier: Apache-2.0
"""Build TCP schemes as modules of the guest kernel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kernel_messages import Refused

_SCHEMES = Path(__file__).resolve().parents[1] / "tcp"
_PLAIN = re.compile(r"[A-Za-z0-9_./@+-]+")  # names that need no quotes in make, shell and Kbuild


def list_module_sources() -> list[Path]:
    """Return the files from which the modules of nagi's own schemes are built."""
    return sorted([*_SCHEMES.glob("*.c"), *_SCHEMES.glob("*/*.h")])


def build_modules(kernel_build: Path, scratch: Path) -> list[Path]:
    """Build nagi's own schemes as modules.

    Args:
        kernel_build: build directory of the kernel.
        scratch: an empty directory, which gets sources and modules.

    Returns:
        The files of the modules (*.ko).

    Raises:
        Refused: The schemes do not compile for this kernel.
    """
    stage_module_sources(sorted(_SCHEMES.glob("*.c")), scratch)
    result = subprocess.run(
        build_module_command(kernel_build, scratch),
        env=make_module_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        errors = [line for line in result.stderr.splitlines() if not line.startswith("make")]
        raise Refused(
            f"the TCP schemes cannot be built as modules: {' / '.join(errors[:3])}",
            "correct these errors, or give another kernel tree with --tree DIRECTORY",
            file=str(kernel_build),
        )
    return sorted(scratch.glob("*.ko"))


def stage_module_sources(sources: Sequence[Path], target: Path) -> None:
    """Copy the files that Kbuild needs to build modules of schemes to one directory.

    The files are `sources`, nagi's own headers and the file Kbuild.

    Args:
        sources: C files of schemes, and headers of the user.
        target: the directory.

    Raises:
        Refused: A name of a source has a character that make, a shell or Kbuild would interpret.
    """
    for source in sources:
        require_plain(source.name, str(source))
    for directory in ("arithmetic", "glue"):
        shutil.copytree(_SCHEMES / directory, target / directory, dirs_exist_ok=True)
    shutil.copy(_SCHEMES / "module" / "Kbuild", target)
    for source in sources:
        name = f"nagi_{source.name}" if source.suffix == ".c" else source.name
        shutil.copy(source, target / name)


def build_module_command(kernel_build: Path, directory: Path) -> list[str]:
    """Return the command that builds modules.

    Args:
        kernel_build: build directory of the kernel.
        directory: the directory that stage_module_sources() has filled.

    Raises:
        Refused: A path has a character that make, a shell or Kbuild would interpret.
    """
    for path in (kernel_build, directory):
        require_plain(str(path), str(path))
    # Nothing reads the type information (BTF) of modules, and generating it needs pahole.
    options = ("ARCH=um", "CONFIG_DEBUG_INFO_BTF_MODULES=", f"-j{os.cpu_count() or 1}")
    return ["make", "-s", "-C", str(kernel_build), f"M={directory}", *options, "modules"]


def make_module_environment() -> dict[str, str]:
    """Return the environment for the command of build_module_command().

    It is the environment of this process, with the locale C and without MAKEFLAGS.
    """
    return {key: value for key, value in os.environ.items() if key != "MAKEFLAGS"} | {"LC_ALL": "C"}


def require_plain(name: str, file: str) -> None:
    """Raise Refused if a name has a character that make, a shell or Kbuild would interpret.

    Args:
        name: the name or path.
        file: the file that has the name, for the message.
    """
    if not _PLAIN.fullmatch(name):
        raise Refused(
            f"the build of the kernel does not support the name {name!r}",
            "use only letters, digits, `.`, `_`, `+` and `-`; XDG_CACHE_HOME and TMPDIR set the "
            "directories of nagi's own files",
            file=file,
        )
