# SPDX-License-Identifier: Apache-2.0
"""The error that is raised if a board cannot be used."""

from __future__ import annotations


class BoardError(Exception):
    """A board cannot be used.

    Attributes:
        stage: The check that failed; `stages.py` lists them.
        what: Description of the problem.
        cure: What the user can do.
    """

    def __init__(self, stage: str, what: str, cure: str) -> None:
        super().__init__(f"{what}; {cure}")
        self.stage, self.what, self.cure = stage, what, cure
