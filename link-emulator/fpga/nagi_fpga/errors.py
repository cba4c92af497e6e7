# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a board, for people: what, and what to do."""

from __future__ import annotations


class BoardError(Exception):
    """A board cannot be used. `stage`: how far it was; `cure`: what to do."""

    def __init__(self, stage: str, what: str, cure: str) -> None:
        super().__init__(f"{what}; {cure}")
        self.stage, self.what, self.cure = stage, what, cure
