# SPDX-License-Identifier: Apache-2.0
"""radios.json: the devices of radio links on UHD hardware, and nagi-sdr's measurements of them."""

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

    `not_sent`, `not_received` and `receiver_busy` are outcomes of transmissions, see
    TransmissionCounts.
    """

    bursts: int = Field(description="bursts handed to the device")
    late: int = Field(description="bursts that the device got too late")
    underflows: int = Field(description="bursts during which the device ran out of samples")
    tx_sequence_errors: int = Field(
        description="bursts of which a packet was lost between the host and the device"
    )
    clipped_samples: int = Field(description="samples above full scale despite the back-off")
    overflows: int = Field(description="how often the host did not read received samples in time")
    rx_sequence_errors: int = Field(description="packets of received samples that were lost")
    lost_samples: int = Field(description="received samples lost in overflows and lost packets")
    not_sent: int
    not_received: int
    receiver_busy: int


class RadioDirection(Contract):
    """Measurements and counts of one direction of a link on radio hardware."""

    delay_samples: float = Field(
        description="delay in samples: instant of reception by the receiver's clock, minus instant "
        "of sending by the sender's clock; measured at the start"
    )
    drift_ppm: float = Field(
        description="rate error of the sender's clock relative to the receiver's clock; measured "
        "at the start"
    )
    preamble_snr_db: float = Field(description="SNR of the preamble; measured at the start")
    counts: DeviceCounts | None = Field(None, exclude_if=is_none, description="counts at the end")


class RadioAccount(Contract):
    """Measurements and counts of one link on radio hardware."""

    name: str
    devices: list[DeviceFacts] = Field(
        description="devices of end a and of end b; one entry if they share a device"
    )
    lead_ns: int = Field(
        description="time from the instant of a burst until the burst is on the air; measured at "
        "the start"
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
    complete: bool = Field(
        description="false: nagi-sdr wrote the file at the start, and did not end properly"
    )
    links: list[RadioAccount]

    def link(self, name: str) -> RadioAccount | None:
        """Return the measurements of a link, or None if the link is not on radio hardware."""
        return next((link for link in self.links if link.name == name), None)
