# SPDX-License-Identifier: Apache-2.0
"""radios.json: what the devices of radio links are, and what was measured with them. Written by
nagi-sdr where radios are devices of UHD."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.base import Contract, is_none
from nagi_contracts.plan import DirectionName


class DeviceFacts(Contract):
    """A device, as UHD describes it."""

    name: str = Field(description="its type and serial number")
    description: str
    firmware: str = Field(description="versions of firmware and FPGA image")


class DeviceCounts(Contract):
    """What devices did in one direction, and what went wrong. See TransmissionCounts for the last
    three, which are outcomes of transmissions."""

    bursts: int = Field(description="handed to the device")
    late: int = Field(description="bursts that the device had too late")
    underflows: int = Field(description="bursts of which the device ran out of samples")
    tx_sequence_errors: int = Field(description="bursts of which a packet to the device was lost")
    clipped_samples: int = Field(description="samples that the back-off left above full scale")
    overflows: int = Field(description="the host did not take received samples in time")
    rx_sequence_errors: int = Field(description="packets of received samples that were lost")
    lost_samples: int = Field(description="received samples that these took")
    not_sent: int
    not_received: int
    receiver_busy: int


class RadioDirection(Contract):
    delay_samples: float = Field(
        description="measured at the start: from the instant of a burst to that of its reception, "
        "each by the clock of its device"
    )
    drift_ppm: float = Field(
        description="the same: by which the sender's clock is faster than the receiver's"
    )
    preamble_snr_db: float = Field(description="the same")
    counts: DeviceCounts | None = Field(None, exclude_if=is_none, description="at the end")


class RadioAccount(Contract):
    """A link that is radio hardware."""

    name: str
    devices: list[DeviceFacts] = Field(description="of end a and of end b; one if both have it")
    lead_ns: int = Field(
        description="measured at the start: a burst is on the air that much after its instant"
    )
    forward: RadioDirection
    backward: RadioDirection

    def direction(self, name: DirectionName) -> RadioDirection:
        return self.forward if name == "forward" else self.backward


class Radios(Contract):
    """radios.json"""

    schema_version: Literal[1] = 1
    version: str = Field(description="of nagi-sdr")
    uhd: str = Field(description="version of UHD")
    complete: bool = Field(description="false: written at the start; nagi-sdr did not end in order")
    links: list[RadioAccount]

    def link(self, name: str) -> RadioAccount | None:
        return next((link for link in self.links if link.name == name), None)
