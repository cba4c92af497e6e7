# SPDX-License-Identifier: Apache-2.0
"""Figures of rate adaptation of radios over all runs: shares of modes by the measured SNR."""

from __future__ import annotations

import pandas as pd
from nagi_contracts.plan import DIRECTIONS, LinkPlan, RunPlan
from nagi_contracts.units import format_count
from nagi_reports import figures
from nagi_reports.chapters.material import Material
from nagi_reports.content import Figure
from nagi_reports.figures import ModeShares
from nagi_reports.parquet import read_parquet

from nagi.backends.radio.report_words import MODULATIONS, list_radios

_MIN_TRANSMISSIONS = 30  # at an SNR, for meaningful shares
_MIN_RANGE_DB = 4  # of SNRs, for a meaningful panel
_COLUMNS = ["link", "direction", "snr_db", "mode", "outcome"]


def compose_blocks(material: Material) -> list[Figure]:
    """Return a figure if any radio adapts its rate."""
    panels = [
        shares
        for (link, direction), (modes, table) in _read_transmissions(material).items()
        if (shares := _compute_shares(f"{link} {direction}", modes, table)) is not None
    ]
    if not panels:
        return []
    caption = (
        "Modes in which transmissions were sent, as shares at each SNR, and the share of them that"
        " was lost. The SNR is the one that the receiver measured, rounded to 1 dB; without one, as"
        " of bursts that were not detected, a transmission is left out, and so are SNRs of less"
        f" than {format_count(_MIN_TRANSMISSIONS, 'transmission')}."
    )
    drawn = figures.make_mode_figure(panels)
    return [Figure("modes", figures.render_svg(drawn), caption, _describe_figure(panels))]


def _read_transmissions(
    material: Material,
) -> dict[tuple[str, str], tuple[list[str], pd.DataFrame]]:
    """Return names of modes and all transmissions, by direction of radios that adapt their rate."""
    tables_by_direction: dict[tuple[str, str], tuple[list[str], list[pd.DataFrame]]] = {}
    for run_id, plan in material.plans.items():
        path = material.run_directory(run_id) / "transmissions.parquet"
        links = _list_adaptive_links(plan)
        if not links or not path.exists():
            continue
        table = read_parquet(path, _COLUMNS)
        for link in links:
            for direction in DIRECTIONS:
                selected = table[(table["link"] == link.name) & (table["direction"] == direction)]
                key = (link.name, direction)
                tables_by_direction.setdefault(key, (_name_modes(link), []))[1].append(selected)
    return {key: (modes, pd.concat(tables)) for key, (modes, tables) in tables_by_direction.items()}


def _list_adaptive_links(plan: RunPlan) -> list[LinkPlan]:
    return [link for link in list_radios(plan) if link.radio is not None and link.radio.modes]


def _name_modes(link: LinkPlan) -> list[str]:
    assert link.radio is not None and link.radio.modes is not None
    return [f"{MODULATIONS[mode.modulation]} {mode.code_rate}" for mode in link.radio.modes]


def _compute_shares(label: str, modes: list[str], table: pd.DataFrame) -> ModeShares | None:
    """Return shares of modes over SNR, or None if SNRs with enough transmissions are too close."""
    measured = table.dropna(subset=["snr_db"])
    snr_db = measured["snr_db"].round().astype(int)
    sent = pd.crosstab(snr_db, measured["mode"]).reindex(columns=range(len(modes)), fill_value=0)
    totals = sent.sum(axis=1)
    has_enough = totals >= _MIN_TRANSMISSIONS
    snrs = sent.index[has_enough]
    if snrs.empty or snrs.max() - snrs.min() < _MIN_RANGE_DB:
        return None
    lost = (measured["outcome"] != "received").groupby(snr_db).mean()
    return ModeShares(
        label,
        [int(value) for value in snrs],
        {
            name: [float(share) for share in (sent[mode] / totals)[has_enough]]
            for mode, name in enumerate(modes)
        },
        [float(share) for share in lost[has_enough]],
    )


def _describe_figure(panels: list[ModeShares]) -> str:
    sentences = []
    for panel in panels:
        first, last = (
            max(panel.shares, key=lambda name, at=position: panel.shares[name][position])  # type: ignore[misc]
            for position in (0, -1)
        )
        sentences.append(
            f"{panel.label}: mostly {first} at {panel.snr_db[0]} dB, {last} at"
            f" {panel.snr_db[-1]} dB."
        )
    return " ".join(["Shares of modes over SNR.", *sentences])
