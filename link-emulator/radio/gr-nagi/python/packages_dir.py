# SPDX-License-Identifier: Apache-2.0
"""Prints the directory below a prefix that this Python searches for packages.

  packages_dir.py PREFIX

Examples on Debian: lib/python3/dist-packages below /usr, and lib/python3.11/dist-packages below
/usr/local. If Python searches no directory below the prefix, the result is
lib/python3/dist-packages.
"""

from __future__ import annotations

import site
import sys
from collections.abc import Sequence
from pathlib import PurePosixPath


def find_packages_dir(prefix: str, searched: Sequence[str]) -> str:
    """Return the directory of packages relative to the prefix, of the first entry below the prefix.

    If no entry of `searched` is below the prefix, the result is lib/python3/dist-packages.

    Args:
        prefix: The directory below which gr-nagi is installed, such as /usr/local.
        searched: Directories that Python searches, whether they exist or not.
    """
    for directory in searched:
        path = PurePosixPath(directory)
        if path.name in ("dist-packages", "site-packages") and path.is_relative_to(prefix):
            below = path.relative_to(prefix)
            if below.parts[0] == "lib":
                return str(below)
    return "lib/python3/dist-packages"


if __name__ == "__main__":
    print(find_packages_dir(sys.argv[1], site.getsitepackages()))
