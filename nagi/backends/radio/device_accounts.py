# SPDX-License-Identifier: Apache-2.0
"""Radio links whose radios are devices (UHD)."""

from __future__ import annotations

from collections.abc import Iterator

from nagi_contracts.errors import refuse
from nagi_contracts.plan import DIRECTIONS, LinkPlan, RunPlan
from nagi_contracts.radios import Radios
from nagi_contracts.records import Information

from nagi.records.direction_numbers import get_direction_number
from nagi.records.transmissions import Transmissions, select_direction
from nagi.verdict.values import Value

RADIOS = "radios.json"  # in the directory of a run


def list_devices(plan: RunPlan) -> list[LinkPlan]:
    """Return the radio links that UHD devices carry."""
    return [
        link
        for link in plan.carried_by("radio")
        if link.radio is not None and link.radio.by == "uhd"
    ]


def count_by_outcome(plan: RunPlan, transmissions: Transmissions, outcome: int) -> Iterator[Value]:
    """Count, per direction of links with devices, the transmissions that have an outcome."""
    for link in list_devices(plan):
        for direction in DIRECTIONS:
            sent = select_direction(transmissions, get_direction_number(plan, link.name, direction))
            yield float((sent["outcome"] == outcome).sum()), f"{link.name} {direction}"


def describe_devices(plan: RunPlan, radios: Radios) -> Iterator[Information]:
    """Yield what devices measured at the start, and how many samples they clipped.

    Raises:
        InputError: `radios` lacks a link.
    """
    for link in list_devices(plan):
        account = radios.link(link.name)
        if account is None:
            raise refuse(f"{RADIOS} says nothing of link {link.name}", "run it again")
        yield Information(
            name="radio_lead",
            description="measured at the start: a burst is on the air that much after its instant",
            value=account.lead_ns / 1e6,
            unit="ms",
            subject=link.name,
        )
        for direction in DIRECTIONS:
            path = account.direction(direction)
            measured: list[tuple[str, str, float, str]] = [
                (
                    "radio_delay",
                    "from a burst's instant to its reception",
                    path.delay_samples,
                    "samples",
                ),
                ("radio_drift", "by which the sender's clock is faster", path.drift_ppm, "ppm"),
                ("radio_preamble_snr", "of probes at the start", path.preamble_snr_db, "dB"),
            ]
            if path.counts is not None:
                clipped = float(path.counts.clipped_samples)
                measured.append(("radio_clipped", "samples above full scale", clipped, "samples"))
            for name, description, value, unit in measured:
                yield Information(
                    name=name,
                    description=description,
                    value=round(value, 4),
                    unit=unit,
                    subject=f"{link.name} {direction}",
                )
