# SPDX-License-Identifier: Apache-2.0
"""radios.json: the devices of radio links, and measurements with them.

Written by nagi-sdr for radios on UHD devices.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.base import Contract, is_none
from nagi_contracts.plan import DirectionName


class DeviceFacts(Contract):
    """A device, as UHD describes it."""

    name: str = Field(description="type and serial number")
    description: str
    firmware: str = Field(description="versions of firmware and FPGA image")


class DeviceCounts(Contract):
    """Counts of bursts and errors of the devices in one direction.

    The last three are outcomes of transmissions, see TransmissionCounts.
    """

    bursts: int = Field(description="bursts handed to the device")
    late: int = Field(description="bursts that the device got too late")
    underflows: int = Field(description="bursts during which the device ran out of samples")
    tx_sequence_errors: int = Field(
        description="bursts of which a packet was lost on the way to the device"
    )
    clipped_samples: int = Field(description="samples above full scale despite the back-off")
    overflows: int = Field(description="how often the host did not read received samples in time")
    rx_sequence_errors: int = Field(description="packets of received samples that were lost")
    lost_samples: int = Field(description="received samples lost in overflows and lost packets")
    not_sent: int
    not_received: int
    receiver_busy: int


class RadioDirection(Contract):
    delay_samples: float = Field(
        description="samples from the instant of a burst to that of its reception, each by the "
        "clock of its device; measured at the start"
    )
    drift_ppm: float = Field(
        description="rate error of the sender's clock against the receiver's; measured at the start"
    )
    preamble_snr_db: float = Field(description="SNR of the preamble; measured at the start")
    counts: DeviceCounts | None = Field(None, exclude_if=is_none, description="counts at the end")


class RadioAccount(Contract):
    """A link on radio hardware."""

    name: str
    devices: list[DeviceFacts] = Field(
        description="devices of end a and of end b; one entry if they share a device"
    )
    lead_ns: int = Field(
        description="time from a burst's instant until it is on the air; measured at the start"
    )
    forward: RadioDirection
    backward: RadioDirection

    def direction(self, name: DirectionName) -> RadioDirection:
        return self.forward if name == "forward" else self.backward


class Radios(Contract):
    """radios.json: all links of a run on radio hardware."""

    schema_version: Literal[1] = 1
    version: str = Field(description="version of nagi-sdr")
    uhd: str = Field(description="version of UHD")
    complete: bool = Field(description="false: written at the start; nagi-sdr did not end properly")
    links: list[RadioAccount]

    def link(self, name: str) -> RadioAccount | None:
        """Return the account of a link, or None if radio hardware does not carry it."""
        return next((link for link in self.links if link.name == name), None)
