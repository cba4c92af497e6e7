# SPDX-License-Identifier: Apache-2.0
"""The error class and the progress messages that the scripts of the guest kernel share."""

from __future__ import annotations

import sys


class Refused(Exception):
    """The kernel or its modules cannot be built.

    Args:
        what: the error.
        cure: what the user can do.
        file: the file or directory that causes the error; "" if there is none.
    """

    def __init__(self, what: str, cure: str, file: str = "") -> None:
        super().__init__(f"{file}: {what}; {cure}" if file else f"{what}; {cure}")
        self.what = what
        self.cure = cure
        self.file = file


def report_progress(text: str) -> None:
    """Print a line of progress to standard error."""
    print(f"== guest kernel: {text}", file=sys.stderr, flush=True)
