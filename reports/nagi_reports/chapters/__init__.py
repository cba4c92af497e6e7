# SPDX-License-Identifier: Apache-2.0
"""The report's content, made from a campaign: a module a section, which returns what is in it."""

from __future__ import annotations

from nagi_reports.chapters import (
    certificate,
    closing,
    losses,
    measures,
    over_time,
    radios,
    results,
    runs,
    setting,
    statements,
)
from nagi_reports.chapters.material import Material, gather
from nagi_reports.content import Report, Section
from nagi_reports.outcomes import outcomes

__all__ = ["compose", "gather"]


def compose(material: Material) -> Report:
    """The report of a campaign."""
    campaign = material.campaign
    found = outcomes(campaign, material.table)
    name = campaign.experiment + (f" ({campaign.form})" if campaign.form else "")
    sections = [
        Section("result", "What was achieved", results.blocks(material, found)),
        Section("agi", "Achieved goodput index", results.index(material)),
        Section("measures", "What else was measured", measures.blocks(material)),
        Section("statements", "What was said, and what was found", statements.blocks(found)),
        Section("time", "What happened over time", over_time.blocks(material)),
        Section("losses", "What losses were taken for", losses.blocks(material)),
        Section("radio", "Radio links", radios.blocks(material)),
        Section("setting", "What was run, and on what", setting.blocks(material)),
        Section(
            "certificate", "Whether the links did what was asked", certificate.blocks(material)
        ),
        Section("definitions", "What the words mean", closing.definitions(material)),
        Section("reproduce", "How to get the same again", closing.reproduction(material)),
        Section("runs", "All runs", runs.blocks(material)),
    ]
    return Report(
        title=campaign.title,
        reference=campaign.reference,
        footer=f"{name} · nagi {campaign.build.version} · build {campaign.build.id}",
        created_s=int(max(each.began_realtime_s for each in material.manifests.values())),
        sections=[section for section in sections if section.blocks],
    )
