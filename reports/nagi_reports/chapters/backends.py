# SPDX-License-Identifier: Apache-2.0
"""What a backend of nagi adds to the report of a campaign.

The file `chapter.py` of a backend has an object `part` of a subclass of Chapter. Chapters are an
argument of this package, because nagi's backends are above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, Protocol, get_args

from nagi_contracts.records import Build

from nagi_reports.chapters.material import Material
from nagi_reports.content import Block, Section

# Texts of other sections that backends continue:
# emulator: the row Lab of Setup, after the emulator's version,
# time series: what the time series show, queue: the definition of a queue,
# bottleneck: the definition of a bottleneck that flows share.
NoteSubject = Literal["emulator", "time series", "queue", "bottleneck"]
Notes = Mapping[NoteSubject, str]  # text by subject; empty if no backend has any


class Chapter(Protocol):
    """A backend's share in a report.

    Subclasses override the methods of what they have. Campaigns without the backend have no share.
    """

    def compose_sections(self, material: Material) -> list[Section]:
        """Return its sections, which stand before Setup; those without blocks are left out."""
        return []

    def compose_setup_rows(self, material: Material) -> list[tuple[str, str]]:
        """Return its rows of the table in Setup, as name and value."""
        return []

    def compose_certificate(self, material: Material) -> list[Block]:
        """Return its blocks at the end of the section Certificate."""
        return []

    def compose_definitions(self, material: Material) -> list[Block]:
        """Return its blocks at the end of the section Definitions."""
        return []

    def compose_notes(self, material: Material) -> Notes:
        """Return what it adds to texts of other sections.

        A text begins with the space or the comma that separates it from the text before.
        """
        return {}

    def list_programs(self, build: Build) -> list[tuple[str, str | None]]:
        """Return name and SHA-256 of its programs that have fields of their own in Build.

        The SHA-256 of a program that was not used is None. The report lists Build.parts by itself.
        """
        return []


def collect_notes(material: Material, chapters: Iterable[Chapter]) -> Notes:
    """Return the notes of all backends on each subject."""
    notes = [chapter.compose_notes(material) for chapter in chapters]
    return {
        subject: "".join(note.get(subject, "") for note in notes)
        for subject in get_args(NoteSubject)
    }
