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
_PLAIN = re.compile(r"[A-Za-z0-9_./@+-]+")  # names that make, shells and Kbuild do not split


def list_module_sources() -> list[Path]:
    """Return the files from which the modules of nagi's own schemes are built."""
    return sorted([*_SCHEMES.glob("*.c"), *_SCHEMES.glob("*/*.h")])


def build_modules(kernel_build: Path, scratch: Path) -> list[Path]:
    """Build nagi's own schemes as modules.

    Args:
        kernel_build: build directory of the kernel.
        scratch: an empty directory.

    Returns:
        The modules' files.

    Raises:
        Refused: the schemes do not compile for this kernel.
    """
    stage_module_sources(sorted(_SCHEMES.glob("*.c")), scratch)
    done = subprocess.run(
        build_module_command(kernel_build, scratch),
        env=make_module_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if not line.startswith("make")]
        raise Refused(
            f"the TCP schemes cannot be built as modules: {' / '.join(errors[:3])}",
            "correct that, or give another kernel tree with --tree DIRECTORY",
            file=str(kernel_build),
        )
    return sorted(scratch.glob("*.ko"))


def stage_module_sources(sources: Sequence[Path], target: Path) -> None:
    """Copy everything to a directory that Kbuild needs there to build modules.

    Args:
        sources: C files of schemes, and their headers. nagi's own headers are copied as well.
        target: the directory.

    Raises:
        Refused: make, a shell or Kbuild would split a name.
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
    """Return the command that builds the modules whose sources are in a directory.

    Args:
        kernel_build: build directory of the kernel.
        directory: the directory, from stage_module_sources().

    Raises:
        Refused: make, a shell or Kbuild would split a path.
    """
    for path in (kernel_build, directory):
        require_plain(str(path), str(path))
    # Nothing reads the type information (BTF) of modules, and generating it needs pahole.
    options = ("ARCH=um", "CONFIG_DEBUG_INFO_BTF_MODULES=", f"-j{os.cpu_count() or 1}")
    return ["make", "-s", "-C", str(kernel_build), f"M={directory}", *options, "modules"]


def make_module_environment() -> dict[str, str]:
    """Return the environment in which modules are built."""
    return {key: value for key, value in os.environ.items() if key != "MAKEFLAGS"} | {"LC_ALL": "C"}


def require_plain(name: str, file: str) -> None:
    """Raise Refused if make, a shell or Kbuild would split a name.

    Args:
        name: the name or path.
        file: the file that has the name, for the message.
    """
    if not _PLAIN.fullmatch(name):
        raise Refused(
            f"the kernel's build cannot have {name!r} in a name",
            "use letters, digits, `.`, `_`, `+` and `-` alone; XDG_CACHE_HOME and TMPDIR say where "
            "nagi's own files are",
            file=file,
        )
