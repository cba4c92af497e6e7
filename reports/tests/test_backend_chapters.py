# SPDX-License-Identifier: Apache-2.0
"""A further backend adds to a report, and nothing else of the report changes."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from nagi.backends.registry import load_chapters
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.records import Campaign
from nagi_reports.analysis import build_table
from nagi_reports.chapters import compose, read_material
from nagi_reports.chapters.backends import Chapter
from nagi_reports.content import Definition, Facts, Paragraph, Section
from nagi_reports.report import render_html
from nagi_reports.summary import summarise


class EchoChapter(Chapter):
    def compose_sections(self, material):
        return [
            Section("echo", "Echo links", [Paragraph(f"{len(material.plans)} run had echoes.")]),
            Section("silence", "Silence", []),
        ]

    def compose_setup_rows(self, material):
        return [("Echoes", "every link")]


class TalkativeChapter(EchoChapter):
    def compose_certificate(self, material):
        return [Paragraph("All echoes came back.")]

    def compose_definitions(self, material):
        return [Definition("Echo", None, "What comes back.")]

    def compose_notes(self, material):
        return {"emulator": ", with echoes", "queue": " Echoes do not wait."}

    def list_programs(self, build):
        return [("nagi-echo", "5" * 64), ("nagi-hall", None)]


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    """Read the recorded example."""
    out = tmp_path_factory.mktemp("example") / "campaign"
    shutil.copytree(SCHEMAS / "example" / "campaign", out)
    campaign = Campaign.read(out / "campaign.json")
    table = build_table(out, campaign)
    return read_material(out, campaign, table, summarise(campaign, table))


def facts_of(report, name):
    section = next(section for section in report.sections if section.name == name)
    return next(block.items for block in section.blocks if isinstance(block, Facts))


def test_a_further_backend_is_printed_and_nothing_else_changes(material):
    plain = compose(material, load_chapters())
    report = compose(material, {**load_chapters(), "echo": EchoChapter()})
    names = [section.name for section in report.sections]
    assert names[names.index("echo") + 1] == "setting" and "silence" not in names
    assert ("Echoes", "every link") in facts_of(report, "setting")
    assert "1 run had echoes." in render_html(report)
    facts_of(report, "setting").remove(("Echoes", "every link"))
    others = [section for section in report.sections if section.name != "echo"]
    assert replace(report, sections=others) == plain


def test_a_backend_can_continue_other_sections(material):
    report = compose(material, {"echo": TalkativeChapter()})
    certificate, definitions = (
        next(section for section in report.sections if section.name == name)
        for name in ("certificate", "definitions")
    )
    assert certificate.blocks[-1] == Paragraph("All echoes came back.")
    assert definitions.blocks[-1] == Definition("Echo", None, "What comes back.")
    (queue,) = (block for block in definitions.blocks if block.term == "Queue")
    assert queue.words.endswith(" Echoes do not wait.")
    assert dict(facts_of(report, "setting"))["Lab"].endswith(", with echoes")
    programs = dict(facts_of(report, "reproduce"))
    assert programs["nagi-echo"] == f"SHA-256 {'5' * 64}" and "nagi-hall" not in programs


def test_programs_of_further_backends_are_listed(material):
    build = material.campaign.build.model_copy(update={"parts": {"echo": "6" * 64}})
    campaign = material.campaign.model_copy(update={"build": build})
    report = compose(replace(material, campaign=campaign), load_chapters())
    assert ("echo", f"SHA-256 {'6' * 64}") in facts_of(report, "reproduce")
