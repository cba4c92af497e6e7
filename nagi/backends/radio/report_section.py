# SPDX-License-Identifier: Apache-2.0
"""Compose the section Radio links: outcomes of transmissions, and measured SNR."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from nagi_contracts.links import Links, TransmissionCounts
from nagi_contracts.plan import (
    DIRECTIONS,
    DirectionName,
    LinkPlan,
)
from nagi_contracts.units import format_count
from nagi_reports import figures
from nagi_reports.chapters.material import Material
from nagi_reports.chapters.words import NONE
from nagi_reports.content import Block, Column, Figure, Paragraph, Table
from nagi_reports.figures import ErrorRate

from nagi.backends.radio import report_modes
from nagi.backends.radio.report_words import describe_direction, describe_radio, list_radios

_CAUSES = (
    "not_detected",
    "header_errors",
    "payload_errors",
    "receiver_busy",
    "not_sent",
    "not_received",
)
_DEVICE_CAUSES = {"receiver_busy": "Busy", "not_sent": "Not sent", "not_received": "Not received"}


@dataclass
class _SnrGroup:
    """The results of one direction of a radio at one configured SNR, over all its runs."""

    runs: int = 0
    counts: list[TransmissionCounts] = field(default_factory=list)  # one per run
    measured_db: list[float] = field(default_factory=list)  # mean measured SNR of each run

    def count(self, name: str) -> int:
        """Return the sum over runs of the attribute `name` of TransmissionCounts."""
        return sum(getattr(run_counts, name) for run_counts in self.counts)

    @property
    def answered(self) -> int:
        """The number of transmissions whose outcome the radio reported."""
        names = ("received", "lost", *_CAUSES)
        return sum(self.count(name) for name in names)

    @property
    def failed(self) -> int:
        """The number of transmissions that the radio reported as not received."""
        return self.answered - self.count("received")


# Link, direction, description of the radio, configured SNR in dB (None for devices).
_Key = tuple[str, DirectionName, str, float | None]


def compose_blocks(material: Material) -> list[Block]:
    """Return the blocks of the section Radio links; empty if no link is a radio."""
    groups = _group_transmissions(material)
    if not groups:
        return []
    runs = max(group.runs for group in groups.values())
    undetected = sum(group.count("undetected_errors") for group in groups.values())
    introduction = (
        "On a radio link, GNU Radio modulates packets to waveforms, which pass through a channel "
        "and are demodulated. A transmission is lost for one of three causes: no burst was "
        "detected, its header had errors, or its payload had errors. The configured SNR is the SNR "
        "of the channel without fading. The measured SNR is the mean power ratio over the "
        "transmissions for which the receiver reported an SNR. Bursts that were not detected have "
        f"no measured SNR. Each row has the sums of up to {format_count(runs, 'run')}. "
    )
    introduction += (
        "All received packets had the bytes that were sent."
        if not undetected
        else f"{format_count(undetected, 'packet')} arrived with wrong bytes, which the CRC did "
        "not detect."
    )
    composed: list[Block] = [Paragraph(introduction), _compose_table(groups)]
    curves = _collect_curves(groups)
    if curves:
        figure = figures.make_error_rate_figure(curves)
        composed.append(
            Figure(
                "radio",
                figures.render_svg(figure),
                "Share of transmissions lost, over the configured SNR. A triangle marks an SNR "
                "without losses, at the share that one loss would have.",
                _describe_figure(curves),
            )
        )
    return composed + report_modes.compose_blocks(material)


def _group_transmissions(material: Material) -> dict[_Key, _SnrGroup]:
    """Group the counts of all runs by direction, radio and configured SNR, in the order of rows."""
    groups: dict[_Key, _SnrGroup] = {}
    for run_id, link, direction, counts in _read_accounts(material):
        assert link.radio is not None
        channel = link.radio.channel(direction)
        channel_words = describe_direction(link.radio, direction)
        radio_words = ", ".join(filter(None, (describe_radio(link.radio), channel_words)))
        snr_db = None if channel is None else channel.snr_db
        group = groups.setdefault((link.name, direction, radio_words, snr_db), _SnrGroup())
        group.runs += 1
        group.counts.append(counts)
        group.measured_db += _collect_measured_snrs_db(material, run_id, f"{link.name} {direction}")
    # Radios are in the order of the runs. The groups of a radio are in ascending order of SNR.
    order = {kind: number for number, kind in enumerate(dict.fromkeys(key[:3] for key in groups))}
    return dict(sorted(groups.items(), key=lambda item: (order[item[0][:3]], item[0][3] or 0)))


def _read_accounts(
    material: Material,
) -> Iterator[tuple[str, LinkPlan, DirectionName, TransmissionCounts]]:
    """Yield (run id, link, direction, counts) for each direction of a radio in each run."""
    for run_id, plan, accounts in material.read_all(Links, "links.json", list_radios):
        by_name = {account.name: account for account in accounts.links}
        for link in list_radios(plan):
            account = by_name[link.name]
            for direction in DIRECTIONS:
                transmissions = account.direction(direction).transmissions
                if transmissions is not None:
                    yield run_id, link, direction, transmissions


def _collect_measured_snrs_db(material: Material, run_id: str, subject: str) -> list[float]:
    """Return a list with the mean measured SNR from a run's verdict; empty if not measured.

    Args:
        material: The campaign.
        run_id: The run.
        subject: Link and direction, as in verdicts.
    """
    verdict = material.verdicts.get(run_id)
    return [
        item.value
        for item in (verdict.information if verdict is not None else ())
        if item.name == "radio_snr" and item.subject == subject
    ]


def _compose_table(groups: dict[_Key, _SnrGroup]) -> Table:
    """Return the table of transmissions, one row per direction, radio and configured SNR.

    A cause of loss that only UHD devices report has a column only if it occurred.
    """
    device_causes = [
        name for name in _DEVICE_CAUSES if any(group.count(name) for group in groups.values())
    ]
    heads = ["Sent", "Not detected", "Header", "Payload"]
    heads += [*(_DEVICE_CAUSES[name] for name in device_causes), "Unanswered", "Lost", "SNR"]
    return Table(
        "Transmissions on radio links by outcome and configured SNR.",
        [
            Column("Direction", weight=2),
            Column("Radio", weight=3),
            Column("SNR set", "right"),
            *(Column(head, "right") for head in heads),
        ],
        [
            [
                f"{link} {direction}",
                radio,
                NONE if snr_db is None else f"{snr_db:g} dB",
                *_format_row(group, device_causes),
            ]
            for (link, direction, radio, snr_db), group in groups.items()
        ],
        small=True,
    )


def _format_row(group: _SnrGroup, device_causes: list[str]) -> list[str]:
    """Return the cells of a row: counts, the share of lost transmissions, and the measured SNR."""
    lost_share = f"{group.failed / group.answered:.3%}" if group.answered else NONE
    measured_snr = NONE
    if group.measured_db:
        mean = sum(10 ** (value / 10) for value in group.measured_db) / len(group.measured_db)
        measured_snr = f"{10 * math.log10(mean):.2f} dB"
    names = ("sent", "not_detected", "header_errors", "payload_errors", *device_causes)
    counts = [*(group.count(name) for name in names), group.count("sent") - group.answered]
    return [*(f"{count:,}" for count in counts), lost_share, measured_snr]


def _collect_curves(groups: dict[_Key, _SnrGroup]) -> list[tuple[str, list[ErrorRate]]]:
    """Return (label, loss rates over SNR) of each direction and radio with several SNRs."""
    curves: dict[tuple[str, DirectionName, str], list[ErrorRate]] = {}
    for (link, direction, radio, snr_db), group in groups.items():
        if group.answered and snr_db is not None:
            rate = ErrorRate(snr_db, group.failed, group.answered)
            curves.setdefault((link, direction, radio), []).append(rate)
    long_curves = {key: rates for key, rates in curves.items() if len(rates) > 1}
    is_same_radio = len({radio for _, _, radio in long_curves}) == 1
    return [
        (f"{link} {direction}" if is_same_radio else f"{link} {direction}, {radio}", rates)
        for (link, direction, radio), rates in long_curves.items()
    ]


def _describe_figure(curves: list[tuple[str, list[ErrorRate]]]) -> str:
    """Return the alternative text of the figure of loss rates: its values in words."""
    sentences = ["Share of transmissions lost over SNR."]
    for label, rates in curves:
        points = ", ".join(f"{rate.lost / rate.sent:.2g} at {rate.snr_db:g} dB" for rate in rates)
        sentences.append(f"{label}: {points}.")
    return " ".join(sentences)
