# SPDX-License-Identifier: Apache-2.0
"""Give experiment files the key of shared media. Their settings are part of every topology."""

from __future__ import annotations

from nagi.backends.interface import Keys, SectionKey
from nagi.spec.media import Medium

part = Keys(
    sections={
        "media": SectionKey(
            Medium,
            noun="medium",
            description="name -> medium that nodes share: wireless, by IEEE 802.11",
        )
    },
    union_tags={"by": "reach model"},
)
