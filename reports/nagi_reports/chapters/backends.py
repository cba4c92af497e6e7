# SPDX-License-Identifier: Apache-2.0
"""The interface by which a backend of nagi adds content to the report of a campaign.

The file `chapter.py` of a backend has an object `part` of a subclass of Chapter. nagi passes these
objects as an argument, because this package must not import nagi's backends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, Protocol, get_args

from nagi_contracts.records import Build

from nagi_reports.chapters.material import Material
from nagi_reports.content import Block, Section

# Texts of other sections that backends can continue:
# emulator      the row Lab of Setup, after the emulator's version
# time series   the description of the time series
# queue         the definition of a queue
# bottleneck    the definition of a bottleneck that flows share
NoteSubject = Literal["emulator", "time series", "queue", "bottleneck"]
Notes = Mapping[NoteSubject, str]  # subject -> text that continues the text of the section


class Chapter(Protocol):
    """The content that a backend adds to a report.

    By default, a backend adds no content. Subclasses override the methods for the content that they
    add, and return no content for campaigns that do not use the backend.
    """

    def compose_sections(self, material: Material) -> list[Section]:
        """Return sections to insert before Setup; sections without blocks are left out."""
        return []

    def compose_setup_rows(self, material: Material) -> list[tuple[str, str]]:
        """Return rows for the table in Setup, as name and value."""
        return []

    def compose_certificate(self, material: Material) -> list[Block]:
        """Return blocks for the end of the section Certificate."""
        return []

    def compose_definitions(self, material: Material) -> list[Block]:
        """Return blocks for the end of the section Definitions."""
        return []

    def compose_notes(self, material: Material) -> Notes:
        """Return texts that continue texts of other sections, by subject.

        A text begins with the space or the comma that separates it from the text of the section.
        """
        return {}

    def list_programs(self, build: Build) -> list[tuple[str, str | None]]:
        """Return name and SHA-256 of the backend's programs that have a field in Build.

        The SHA-256 of a program that was not used is None. Programs in Build.parts are left out,
        because the report lists them in any case.
        """
        return []


def collect_notes(material: Material, chapters: Iterable[Chapter]) -> Notes:
    """Return the joined notes of all backends, by subject; "" for subjects without notes."""
    notes = [chapter.compose_notes(material) for chapter in chapters]
    return {
        subject: "".join(note.get(subject, "") for note in notes)
        for subject in get_args(NoteSubject)
    }
