# SPDX-License-Identifier: Apache-2.0
"""Links that nagi-sdr emulates: modems, channels and radio hardware."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.base import Contract, is_none, is_zero
from nagi_contracts.impairments.fading import ShadowingPlan
from nagi_contracts.impairments.snr import SnrTracePlan
from nagi_contracts.plan.direction import DirectionName


class TapPlan(Contract):
    """One propagation path from the sender to the receiver."""

    delay_ns: int
    power_db: float = Field(
        description="relative power; nagi-sdr scales the powers of all paths to a sum of 1"
    )


class SampleClockPlan(Contract):
    """The receiver's sample clock, relative to the sender's; the clocks agree at instant 0."""

    offset_ppm: float
    drift_ppm_s: float = Field(0.0, exclude_if=is_zero)


class InterfererPlan(Contract):
    """A direction of another radio link, whose transmissions interfere with this direction."""

    link: str
    direction: DirectionName
    level_db: float = Field(
        description="mean power of the interfering bursts at this direction's receiver, divided by "
        "the mean power of this direction's own bursts there"
    )


class RadioChannelPlan(Contract):
    """The simulated channel of one direction of a radio link."""

    snr_db: float = Field(
        description="mean power of a burst's body divided by the noise power, as nagi-sdr defines "
        "it; if snr_trace is given, the mean of the trace"
    )
    snr_trace: SnrTracePlan | None = Field(
        None, exclude_if=is_none, description="an SNR that changes; replaces snr_db"
    )
    fading: Literal["none", "rayleigh", "rician"] = "none"
    doppler_hz: float | None = Field(
        None, exclude_if=is_none, description="for fading: the largest Doppler shift"
    )
    k_factor_db: float | None = Field(
        None, exclude_if=is_none, description="for Rician fading: the K factor"
    )
    taps: list[TapPlan] | None = Field(None, exclude_if=is_none, description="null: one path")
    frequency_offset_hz: float = 0.0
    shadowing: ShadowingPlan | None = Field(None, exclude_if=is_none)
    phase_noise_hz: float = Field(0.0, exclude_if=is_zero, description="linewidth")
    sample_clock: SampleClockPlan | None = Field(
        None, exclude_if=is_none, description="null: both sample clocks have the same rate"
    )
    interference: list[InterfererPlan] | None = Field(
        None, exclude_if=is_none, description="null: no interference"
    )


Modulation = Literal["bpsk", "qpsk", "8psk", "16qam", "64qam"]
CodeRate = Literal["none", "1/2", "2/3", "3/4"]


class RadioModePlan(Contract):
    """A modulation with a code rate."""

    modulation: Modulation
    code_rate: CodeRate


class UhdEndPlan(Contract):
    """One end of a link on radio hardware: a channel of a UHD device and its settings."""

    device: str = Field(description="UHD's device arguments")
    channel: int
    tx_gain_db: float
    rx_gain_db: float
    subdev: str | None = Field(None, exclude_if=is_none)
    tx_antenna: str | None = Field(None, exclude_if=is_none)
    rx_antenna: str | None = Field(None, exclude_if=is_none)
    clock_source: str | None = Field(None, exclude_if=is_none)
    time_source: str | None = Field(None, exclude_if=is_none)


class CarriersPlan(Contract):
    """Carrier frequencies in Hz, by direction."""

    forward: int
    backward: int


class UhdPlan(Contract):
    """The UHD devices at the two ends of a link; `a` is at the link's first end."""

    a: UhdEndPlan
    b: UhdEndPlan
    frequency_hz: CarriersPlan
    lo_offset_hz: float = Field(0.0, exclude_if=is_zero)
    duplex: Literal["full", "half"]
    backoff_db: float | None = Field(
        None,
        exclude_if=is_none,
        description="mean power below full scale; null: the modem's default",
    )

    def sender(self, direction: DirectionName) -> UhdEndPlan:
        """Return the end that sends in a direction."""
        return self.a if direction == "forward" else self.b

    def receiver(self, direction: DirectionName) -> UhdEndPlan:
        """Return the end that receives in a direction."""
        return self.b if direction == "forward" else self.a


class RadioPlan(Contract):
    """The radio that emulates a link, in the format of nagi-sdr's configuration.

    `forward` and `backward` are the channels of the two directions. nagi computes the rates and
    overheads of the link's directions from the radio's settings.
    """

    by: Literal["simulated", "virtual", "uhd"] = Field(
        description="simulated: one process simulates both ends and the channel; virtual: separate "
        "processes exchange samples; uhd: radio hardware"
    )
    modem: Literal["ofdm", "single_carrier"]
    modulation: Modulation | None = Field(
        None,
        exclude_if=is_none,
        description="modulation, if the radio has one mode; null (also code_rate): see modes",
    )
    sample_rate_hz: int
    code_rate: CodeRate | None = Field(None, exclude_if=is_none)
    modes: list[RadioModePlan] | None = Field(
        None, exclude_if=is_none, description="for rate adaptation: modes by increasing rate"
    )
    forward: RadioChannelPlan | None = Field(
        None, exclude_if=is_none, description="simulated channel; null: air or a cable"
    )
    backward: RadioChannelPlan | None = Field(None, exclude_if=is_none)
    uhd: UhdPlan | None = Field(None, exclude_if=is_none)

    def channel(self, direction: DirectionName) -> RadioChannelPlan | None:
        """Return the simulated channel of a direction, or None if the radio is hardware."""
        return self.forward if direction == "forward" else self.backward
