# SPDX-License-Identifier: Apache-2.0
"""The report's content, made from a campaign: a module a section, which returns what is in it."""

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
from nagi_reports.chapters.material import Material, gather
from nagi_reports.content import Report, Section
from nagi_reports.outcomes import outcomes

__all__ = ["compose", "gather"]


def compose(material: Material) -> Report:
    """The report of a campaign."""
    campaign = material.campaign
    found = outcomes(campaign, material.table)
    name = campaign.experiment + (f" ({campaign.variant})" if campaign.variant else "")
    sections = [
        Section("result", "Results", results.blocks(material, found)),
        Section("agi", "Achieved goodput index", results.index(material)),
        Section("applications", "Applications", applications.blocks(material)),
        Section("measures", "Other metrics", measures.blocks(material)),
        Section("fairness", "Fairness", fairness.blocks(material)),
        Section("statements", "Statements checked", statements.blocks(found)),
        Section("time", "Time series", over_time.blocks(material)),
        Section("losses", "Loss differentiation", losses.blocks(material)),
        Section("radio", "Radio links", radios.blocks(material)),
        Section("media", "Shared media", media.blocks(material)),
        Section("setting", "Setup", setting.blocks(material)),
        Section("certificate", "Certificate", certificate.blocks(material)),
        Section("definitions", "Definitions", closing.definitions(material)),
        Section("reproduce", "Reproduction", closing.reproduction(material)),
        Section("runs", "All runs", runs.blocks(material)),
    ]
    return Report(
        title=campaign.title.strip() or campaign.experiment,
        reference=campaign.reference,
        footer=f"{name} · nagi {campaign.build.version} · build {campaign.build.id}",
        created_s=int(max(each.date_s for each in material.manifests.values())),
        sections=[section for section in sections if section.blocks],
    )
