# SPDX-License-Identifier: Apache-2.0
"""Print the words of links in reports."""

from __future__ import annotations

from nagi_reports.chapters.backends import Chapter
from nagi_reports.chapters.material import Material
from nagi_reports.content import Paragraph, Section


class EchoChapter(Chapter):
    """A section with the words of all links, and a row in Setup."""

    def compose_sections(self, material: Material) -> list[Section]:
        words = _list_words(material)
        blocks = [Paragraph(f"The links say {', '.join(words)}.")] if words else []
        return [Section("echo", "Echoes", [*blocks])]

    def compose_setup_rows(self, material: Material) -> list[tuple[str, str]]:
        words = _list_words(material)
        return [("Echoes", str(len(words)))] if words else []


def _list_words(material: Material) -> list[str]:
    words = [
        link.parts["echo"]["says"]
        for plan in material.plans.values()
        for link in plan.carried_by("echo")
    ]
    return list(dict.fromkeys(words))


part = EchoChapter()
