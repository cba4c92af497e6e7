# SPDX-License-Identifier: Apache-2.0
"""The content of the report of a campaign: one module per section, which returns its blocks."""

from __future__ import annotations

from nagi_reports.chapters import (
    applications,
    certificate,
    closing,
    fairness,
    losses,
    measures,
    media,
    over_time,
    radios,
    results,
    runs,
    setting,
    statements,
)
from nagi_reports.chapters.material import Material, read_material
from nagi_reports.content import Report, Section
from nagi_reports.outcomes import evaluate_statements

__all__ = ["compose", "read_material"]


def compose(material: Material) -> Report:
    """Return the report of a campaign."""
    campaign = material.campaign
    outcomes = evaluate_statements(campaign, material.table)
    name = campaign.experiment + (f" ({campaign.variant})" if campaign.variant else "")
    sections = [
        Section("result", "Results", results.compose_blocks(material, outcomes)),
        Section("agi", "Achieved goodput index", results.compose_index(material)),
        Section("applications", "Applications", applications.compose_blocks(material)),
        Section("measures", "Other metrics", measures.compose_blocks(material)),
        Section("fairness", "Fairness", fairness.compose_blocks(material)),
        Section("statements", "Statements checked", statements.compose_blocks(outcomes)),
        Section("time", "Time series", over_time.compose_blocks(material)),
        Section("losses", "Loss differentiation", losses.compose_blocks(material)),
        Section("radio", "Radio links", radios.compose_blocks(material)),
        Section("media", "Shared media", media.compose_blocks(material)),
        Section("setting", "Setup", setting.compose_blocks(material)),
        Section("certificate", "Certificate", certificate.compose_blocks(material)),
        Section("definitions", "Definitions", closing.compose_definitions(material)),
        Section("reproduce", "Reproduction", closing.compose_reproduction(material)),
        Section("runs", "All runs", runs.compose_blocks(material)),
    ]
    return Report(
        title=campaign.title.strip() or campaign.experiment,
        reference=campaign.reference,
        footer=f"{name} · nagi {campaign.build.version} · build {campaign.build.id}",
        created_s=int(max(manifest.date_s for manifest in material.manifests.values())),
        sections=[section for section in sections if section.blocks],
    )
