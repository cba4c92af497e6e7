# SPDX-License-Identifier: Apache-2.0
"""The content of a campaign's report. One module per section composes the section's blocks.

Backends add sections, rows of tables, and notes (backends.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from nagi_reports.chapters import (
    applications,
    certificate,
    closing,
    fairness,
    losses,
    measures,
    over_time,
    results,
    runs,
    setting,
    statements,
)
from nagi_reports.chapters.backends import Chapter, collect_notes
from nagi_reports.chapters.material import Material, read_material
from nagi_reports.content import Report, Section
from nagi_reports.outcomes import evaluate_statements

__all__ = ["compose", "read_material"]


def compose(material: Material, chapters: Mapping[str, Chapter]) -> Report:
    """Return the report of a campaign; sections without blocks are left out.

    Args:
        material: The records of the campaign.
        chapters: The chapter of each backend, by the backend's name.
    """
    campaign = material.campaign
    backends = chapters.values()
    notes = collect_notes(material, backends)
    setup_rows = [row for backend in backends for row in backend.compose_setup_rows(material)]
    programs = [
        program for backend in backends for program in backend.list_programs(campaign.build)
    ]
    outcomes = evaluate_statements(campaign, material.table)
    name = campaign.experiment + (f" ({campaign.variant})" if campaign.variant else "")
    sections = [
        Section("result", "Results", results.compose_blocks(material, outcomes)),
        Section("agi", "Achieved goodput index", results.compose_index(material)),
        Section("applications", "Applications", applications.compose_blocks(material)),
        Section("measures", "Other metrics", measures.compose_blocks(material)),
        Section("fairness", "Fairness", fairness.compose_blocks(material)),
        Section("statements", "Statements checked", statements.compose_blocks(outcomes)),
        Section("time", "Time series", over_time.compose_blocks(material, notes)),
        Section("losses", "Loss differentiation", losses.compose_blocks(material)),
        *(section for backend in backends for section in backend.compose_sections(material)),
        Section("setting", "Setup", setting.compose_blocks(material, setup_rows, notes)),
        Section(
            "certificate",
            "Certificate",
            [
                *certificate.compose_blocks(material),
                *(block for backend in backends for block in backend.compose_certificate(material)),
            ],
        ),
        Section(
            "definitions",
            "Definitions",
            [
                *closing.compose_definitions(material, notes),
                *(block for backend in backends for block in backend.compose_definitions(material)),
            ],
        ),
        Section("reproduce", "Reproduction", closing.compose_reproduction(material, programs)),
        Section("runs", "All runs", runs.compose_blocks(material)),
    ]
    return Report(
        title=campaign.title.strip() or campaign.experiment,
        reference=campaign.reference,
        footer=f"{name} · nagi {campaign.build.version} · build {campaign.build.id}",
        created_s=int(max(manifest.date_s for manifest in material.manifests.values())),
        sections=[section for section in sections if section.blocks],
    )
