# SPDX-License-Identifier: Apache-2.0
"""Prints where under a prefix Python packages go, so that this Python finds them by itself:
lib/python3/dist-packages under Debian's /usr, lib/python3.11/dist-packages under /usr/local.

    packages_dir.py PREFIX

Where it looks nowhere under the prefix, it is lib/python3/dist-packages.
"""

from __future__ import annotations

import site
import sys
from collections.abc import Sequence
from pathlib import PurePosixPath


def packages_dir(prefix: str, searched: Sequence[str]) -> str:
    """Relative to the prefix; `searched`: where a Python looks, also what is not there yet."""
    for place in searched:
        path = PurePosixPath(place)
        if path.name in ("dist-packages", "site-packages") and path.is_relative_to(prefix):
            below = path.relative_to(prefix)
            if below.parts[0] == "lib":
                return str(below)
    return "lib/python3/dist-packages"


if __name__ == "__main__":
    print(packages_dir(sys.argv[1], site.getsitepackages()))
