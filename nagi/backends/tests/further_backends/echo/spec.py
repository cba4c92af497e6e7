# SPDX-License-Identifier: Apache-2.0
"""Read `emulator: echo` and `echo: {says: TEXT}` of links."""

from __future__ import annotations

from nagi.backends.interface import Key, Keys
from nagi_contracts.base import Strict
from pydantic import Field


class Echo(Strict):
    """The word that a link says."""

    says: str = Field(description="a word")


part = Keys(
    emulators={"echo": "the link says a word"}, link_keys={"echo": Key(Echo, "what it says")}
)
