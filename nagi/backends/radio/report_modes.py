# SPDX-License-Identifier: Apache-2.0
"""Draw the figure of rate adaptation: how often radios used each mode, over the measured SNR."""

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

_MIN_TRANSMISSIONS = 30  # minimum number of transmissions at an SNR that is shown
_MIN_RANGE_DB = 4  # smallest range of SNRs for which a panel is shown
_COLUMNS = ["link", "direction", "snr_db", "mode", "outcome"]


def compose_blocks(material: Material) -> list[Figure]:
    """Return the figure of rate adaptation, with one panel per direction of a radio that has it.

    Return an empty list if no direction has enough transmissions at different SNRs.
    """
    panels = [
        shares
        for (link, direction), (modes, table) in _read_transmissions(material).items()
        if (shares := _compute_shares(f"{link} {direction}", modes, table)) is not None
    ]
    if not panels:
        return []
    caption = (
        "Shares of the modes in which transmissions were sent at each SNR, and the share of these"
        " transmissions that was lost. The SNR is measured by the receiver, and rounded to 1 dB."
        " Transmissions without a measured SNR, such as bursts that were not detected, are left"
        f" out. SNRs with less than {format_count(_MIN_TRANSMISSIONS, 'transmission')} are left"
        " out."
    )
    drawn = figures.make_mode_figure(panels)
    return [Figure("modes", figures.render_svg(drawn), caption, _describe_figure(panels))]


def _read_transmissions(
    material: Material,
) -> dict[tuple[str, str], tuple[list[str], pd.DataFrame]]:
    """Read the transmissions of all radios that adapt their rate, over all runs.

    Runs without a record of transmissions are left out.

    Returns:
        (link, direction) -> (names of the modes, slowest first; table of transmissions).
    """
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
    """Return the shares of modes at each SNR with enough transmissions.

    Return None if there are no such SNRs, or if they span less than _MIN_RANGE_DB.

    Args:
        label: Label of the panel.
        modes: Names of the modes, slowest first.
        table: The transmissions of one direction.
    """
    measured = table.dropna(subset=["snr_db"])
    snr_db = measured["snr_db"].round().astype(int)
    counts = pd.crosstab(snr_db, measured["mode"]).reindex(columns=range(len(modes)), fill_value=0)
    totals = counts.sum(axis=1)
    has_enough = totals >= _MIN_TRANSMISSIONS
    shown_snrs = counts.index[has_enough]
    if shown_snrs.empty or shown_snrs.max() - shown_snrs.min() < _MIN_RANGE_DB:
        return None
    loss_shares = (measured["outcome"] != "received").groupby(snr_db).mean()
    return ModeShares(
        label,
        [int(value) for value in shown_snrs],
        {
            name: [float(share) for share in (counts[mode] / totals)[has_enough]]
            for mode, name in enumerate(modes)
        },
        [float(share) for share in loss_shares[has_enough]],
    )


def _describe_figure(panels: list[ModeShares]) -> str:
    """Return the alternative text: the most frequent mode at the lowest and highest SNR."""
    sentences = []
    for panel in panels:
        mode_at_lowest_snr, mode_at_highest_snr = (
            max(panel.shares, key=lambda name: panel.shares[name][position]) for position in (0, -1)
        )
        sentences.append(
            f"{panel.label}: mostly {mode_at_lowest_snr} at {panel.snr_db[0]} dB,"
            f" {mode_at_highest_snr} at {panel.snr_db[-1]} dB."
        )
    return " ".join(["Shares of modes over SNR.", *sentences])
