# SPDX-License-Identifier: Apache-2.0
"""Count transmissions and report measurements of radio links that use UHD devices (hardware)."""

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


def list_uhd_links(plan: RunPlan) -> list[LinkPlan]:
    """Return the radio links that use UHD devices."""
    return [
        link
        for link in plan.carried_by("radio")
        if link.radio is not None and link.radio.by == "uhd"
    ]


def count_by_outcome(plan: RunPlan, transmissions: Transmissions, outcome: int) -> Iterator[Value]:
    """Yield (count, direction) for each direction of links with UHD devices.

    The count is the number of transmissions that had the outcome `outcome`.

    Args:
        plan: The plan of the run.
        transmissions: The record of transmissions.
        outcome: The outcome, a number of nagi.records.transmissions such as NOT_SENT.
    """
    for link in list_uhd_links(plan):
        for direction in DIRECTIONS:
            sent = select_direction(transmissions, get_direction_number(plan, link.name, direction))
            yield float((sent["outcome"] == outcome).sum()), f"{link.name} {direction}"


def describe_devices(plan: RunPlan, radios: Radios) -> Iterator[Information]:
    """Yield the measurements of UHD devices at the start of a run, and counts of clipped samples.

    Args:
        plan: The plan of the run.
        radios: The contents of radios.json.

    Raises:
        InputError: `radios` has no entry for a link with UHD devices.
    """
    for link in list_uhd_links(plan):
        link_account = radios.link(link.name)
        if link_account is None:
            raise refuse(f"{RADIOS} has no entry for link {link.name}", "repeat the run")
        yield Information(
            name="radio_lead",
            description="delay from the planned start of a burst until it is on the air, measured "
            "at the start of the run",
            value=link_account.lead_ns / 1e6,
            unit="ms",
            subject=link.name,
        )
        for direction in DIRECTIONS:
            direction_account = link_account.direction(direction)
            measurements: list[tuple[str, str, float, str]] = [
                (
                    "radio_delay",
                    "delay from the planned start of a burst to its reception",
                    direction_account.delay_samples,
                    "samples",
                ),
                (
                    "radio_drift",
                    "how much faster the sender's clock is than the receiver's",
                    direction_account.drift_ppm,
                    "ppm",
                ),
                (
                    "radio_preamble_snr",
                    "SNR of the preambles of probes at the start of the run",
                    direction_account.preamble_snr_db,
                    "dB",
                ),
            ]
            if direction_account.counts is not None:
                clipped = float(direction_account.counts.clipped_samples)
                measurements.append(
                    ("radio_clipped", "samples above full scale", clipped, "samples")
                )
            for name, description, value, unit in measurements:
                yield Information(
                    name=name,
                    description=description,
                    value=round(value, 4),
                    unit=unit,
                    subject=f"{link.name} {direction}",
                )
