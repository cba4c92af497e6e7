# SPDX-License-Identifier: Apache-2.0
"""Read `emulator: echo` and `echo: {says: TEXT}` of links."""

from __future__ import annotations

from nagi.backends.keys import Key, Keys
from nagi_contracts.base import Strict
from pydantic import Field


class Echo(Strict):
    """The settings of an echo link."""

    says: str = Field(description="the word of the link")


part = Keys(
    emulators={"echo": "the link has a word, which nagi-echo records"},
    link_keys={"echo": Key(Echo, "the word, if `emulator: echo`")},
)
