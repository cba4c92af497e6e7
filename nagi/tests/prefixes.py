# SPDX-License-Identifier: Apache-2.0
"""Make prefixes in which another program, or no program, replaces one of nagi's."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from nagi_contracts import paths


def make_prefix(target: Path, *, without: Collection[str] = ()) -> Path:
    """Make a prefix for NAGI_PREFIX that links to the files of the installed prefix.

    Files in bin/ and lib/nagi/ whose names are in `without` are left out.
    """
    for folder in (Path("bin"), Path("lib", "nagi")):
        (target / folder).mkdir(parents=True)
        for installed in (paths.prefix() / folder).iterdir():
            if installed.name not in without:
                (target / folder / installed.name).symlink_to(installed.resolve())
    return target
