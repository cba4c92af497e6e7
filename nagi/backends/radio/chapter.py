# SPDX-License-Identifier: Apache-2.0
"""Radios in the report of a campaign: the section Radio links, and the row Radios in Setup."""

from __future__ import annotations

from nagi_contracts.plan import DIRECTIONS
from nagi_contracts.records import Build
from nagi_reports.chapters.backends import Chapter, Notes
from nagi_reports.chapters.material import Material
from nagi_reports.content import Section

from nagi.backends.radio import report_section
from nagi.backends.radio.report_words import describe_direction, describe_radio, list_radios


class _RadioChapter(Chapter):
    """The parts of a report that describe radios."""

    def compose_sections(self, material: Material) -> list[Section]:
        return [Section("radio", "Radio links", report_section.compose_blocks(material))]

    def compose_setup_rows(self, material: Material) -> list[tuple[str, str]]:
        """Return one row with all radios and channels of all runs; empty without radios."""
        descriptions: dict[str, None] = {}
        for plan in material.plans.values():
            for link in list_radios(plan):
                radio = link.radio
                assert radio is not None
                phrases = [f"{link.name}: {radio.by}, {describe_radio(radio)}"]
                for direction in DIRECTIONS:
                    channel = describe_direction(radio, direction)
                    if channel:
                        phrases.append(f"{direction} {channel}")
                descriptions["; ".join(phrases)] = None
        return [("Radios", ". ".join(descriptions))] if descriptions else []

    def compose_notes(self, material: Material) -> Notes:
        has_radios = list_radios(material.plan)
        return {"emulator": ", which nagi-sdr runs for radios"} if has_radios else {}

    def list_programs(self, build: Build) -> list[tuple[str, str | None]]:
        return [("nagi-sdr", build.nagi_sdr)]


part = _RadioChapter()
