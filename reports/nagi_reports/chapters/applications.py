# SPDX-License-Identifier: Apache-2.0
"""How applications fared: a table a flow that has one."""

from __future__ import annotations

from nagi_reports.applications import MEASURED, fared
from nagi_reports.chapters.material import Material
from nagi_reports.chapters.words import capital, spaced, written
from nagi_reports.content import Block, Column, Definition, Table


def blocks(material: Material) -> list[Block]:
    """Nothing where no flow is an application's."""
    campaign = material.campaign
    said = _applications(material)
    found: list[Block] = []
    for each in fared(campaign, material.table):
        which = f" at {spaced(campaign.panels)} {each.panel}" if campaign.panels else ""
        heads = [Column(capital(spaced(axis)), weight=1) for axis in each.axes]
        heads += [Column(MEASURED[name].title, "right", 1) for name in each.columns]
        rows = [
            [
                *values,
                *(
                    written(mean, digits=MEASURED[name].digits)
                    for name, mean in zip(each.columns, means, strict=True)
                ),
            ]
            for values, means in each.rows
        ]
        application = said.get(each.flow, "application")
        found.append(Table(f"Flow {each.flow}: {application}{which}.", heads, rows, small=True))
    return found


def definitions(material: Material) -> list[Block]:
    """Of what the tables show."""
    known = {name for each in fared(material.campaign, material.table) for name in each.columns}
    return [
        Definition(measured.head, None, measured.definition)
        for name, measured in MEASURED.items()
        if name in known
    ]


def _applications(material: Material) -> dict[str, str]:
    """Flow -> its application; where an axis changes that, each."""
    found: dict[str, dict[str, None]] = {}
    for plan in material.plans.values():
        for flow in plan.flows:
            if flow.application is not None:
                found.setdefault(flow.name, {})[flow.application.describe()] = None
    return {name: " or ".join(words) for name, words in found.items()}
