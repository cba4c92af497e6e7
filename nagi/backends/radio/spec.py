# SPDX-License-Identifier: Apache-2.0
"""Define the settings of links that are radios: modem, channel, and radio hardware."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self, get_args

from nagi_contracts.base import Strict, Whole
from nagi_contracts.errors import BadValue, format_value
from nagi_contracts.impairments.fading import Fading, Shadowing
from nagi_contracts.impairments.snr import SnrTrace
from nagi_contracts.plan import CodeRate, DirectionName, Modulation
from nagi_contracts.units import (
    Bitrate,
    CarrierFrequency,
    ClockDrift,
    ClockOffset,
    Duration,
    FrequencyOffset,
    Level,
    Linewidth,
    SampleRate,
)
from pydantic import BeforeValidator, Field, model_validator

from nagi.backends.keys import Key, Keys
from nagi.backends.radio.multipath import ProfileName
from nagi.spec.base import Name

if TYPE_CHECKING:
    from nagi.spec.links import Link


class Tap(Strict):
    """A path of a multipath channel."""

    delay: Duration = Field(description="excess delay, in addition to the link's delay")
    power: Level = Field(
        description="power relative to the other paths; the powers of all paths are scaled so that "
        "their sum is the power of the signal"
    )


class SampleClock(Strict):
    """The receiver's sample clock relative to the sender's. Both agree at the start of a run."""

    offset: ClockOffset = Field(
        description="how much faster the receiver's clock runs at the start of the run"
    )
    drift: ClockDrift | None = Field(
        None, description="growth of the offset per second; 0 ppm/s if not given"
    )


class Interferer(Strict):
    """Another radio on the same frequency, whose transmissions interfere at this receiver."""

    link: Name = Field(description="the link of the other radio")
    direction: DirectionName = Field(
        "forward", description="direction of the transmissions that interfere"
    )
    carrier_to_interference: Level = Field(
        description="mean power of the signal over the mean power of the interferer's bursts, at "
        "this receiver"
    )


class RadioChannel(Strict):
    """The channel through which waveforms pass in one direction.

    At the top level of `radio`, these settings apply to both directions.
    """

    snr: Level | None = Field(
        None, description="mean power of the signal over the power of the noise, without fading"
    )
    snr_trace: SnrTrace | None = Field(None, description="an SNR that changes, instead of `snr`")
    fading: Fading | None = Field(None, description="none if not given")
    multipath: Annotated[list[Tap], Field(min_length=1)] | ProfileName | None = Field(
        None,
        description="paths, or the name of a power delay profile of 3GPP TS 36.101 (epa, eva, etu) "
        "or ITU-R M.1225; one path if not given",
    )
    shadowing: Shadowing | None = Field(None, description="none if not given")
    phase_noise: Linewidth | None = Field(
        None,
        description="sum of the linewidths of the oscillators at both ends; 0 Hz if not given",
    )
    frequency_offset: FrequencyOffset | None = Field(
        None,
        description="difference of the sender's carrier from the receiver's; 0 Hz if not given",
    )
    sample_clock: SampleClock | None = Field(
        None,
        description="the receiver's sample clock relative to the sender's; equal if not given",
    )
    interference: Annotated[list[Interferer], Field(max_length=8)] | None = Field(
        None, description="radios on the same frequency; none if not given"
    )

    @model_validator(mode="after")
    def _check_one_snr(self) -> Self:
        if self.snr is not None and self.snr_trace is not None:
            raise BadValue("snr and snr_trace are both given", "remove one", "snr_trace")
        return self


MODES = ("bpsk 1/2", "bpsk 3/4", "qpsk 1/2", "qpsk 3/4", "16qam 1/2", "16qam 3/4", "64qam 2/3",
         "64qam 3/4")  # fmt: skip
"""The modes of IEEE 802.11a: modulation and code rate."""


def _parse_mode(value: object) -> object:
    """Return a mode as modulation, one space and code rate, such as `qpsk 1/2`.

    A value that is not a text is returned unchanged.

    Raises:
        BadValue: The text is not a mode.
    """
    if not isinstance(value, str):
        return value
    words = value.split()
    modulations, code_rates = get_args(Modulation), get_args(CodeRate)
    if len(words) == 1 and words[0] in modulations:
        raise BadValue(f"mode {words[0]} without a code rate", f"write `{words[0]} 1/2`")
    if len(words) != 2 or words[0] not in modulations or words[1] not in code_rates:
        choices_text = f"{', '.join(modulations)} with {', '.join(code_rates)}"
        raise BadValue(
            f"not a mode: {format_value(value)}",
            f"write a mode, such as `qpsk 1/2`; there are {choices_text}",
        )
    return " ".join(words)


Mode = Annotated[str, BeforeValidator(_parse_mode)]


class SnrTableAdaptation(Strict):
    """Rate adaptation by SNR: the fastest mode whose smallest SNR the last measured SNR reaches."""

    kind: Literal["snr_table"] = Field(description="kind of rate adaptation")
    table: Annotated[dict[Mode, Level], Field(min_length=1, max_length=16)] = Field(
        description="mode, such as `qpsk 1/2` -> smallest SNR at which the mode is used"
    )

    @property
    def modes(self) -> list[str]:
        return list(self.table)


class MinstrelAdaptation(Strict):
    """Rate adaptation by the measured throughput of each mode, like Minstrel in mac80211."""

    kind: Literal["minstrel"] = Field(description="kind of rate adaptation")
    modes: Annotated[list[Mode], Field(min_length=1, max_length=16)] = Field(
        list(MODES), description="modes, such as `qpsk 1/2`; IEEE 802.11a's modes if not given"
    )


Adaptation = Annotated[SnrTableAdaptation | MinstrelAdaptation, Field(discriminator="kind")]


class UhdEnd(Strict):
    """The radio hardware at one node of a link. Keys are named as in UHD."""

    device: str = Field(min_length=1, description="device arguments, such as `serial=30A1B2C`")
    channel: Whole = Field(0, ge=0, le=31, description="number of the channel in `subdev`")
    tx_gain: Level = Field(description="gain of the transmitter")
    rx_gain: Level = Field(description="gain of the receiver")
    subdev: str | None = Field(None, description="front ends, such as `A:A A:B`")
    tx_antenna: str | None = Field(None, description="such as `TX/RX`")
    rx_antenna: str | None = Field(None, description="such as `RX2`")
    clock_source: str | None = Field(
        None, description="internal, external, gpsdo or mimo; the device's default if not given"
    )
    time_source: str | None = Field(
        None,
        description="source of the pulse per second, with the same values as `clock_source`",
    )


class Uhd(Strict):
    """The UHD devices (USRPs) of a link, see docs/first-radios.md."""

    ends: Annotated[dict[Name, UhdEnd], Field(min_length=2, max_length=2)] = Field(
        description="node of the link -> its device; both nodes may use one device"
    )
    frequency: CarrierFrequency = Field(
        description="carrier frequency; to transmit, you need a licence or a licence-exempt band"
    )
    backward_frequency: CarrierFrequency | None = Field(
        None, description="carrier frequency of the backward direction; `frequency` if not given"
    )
    lo_offset: FrequencyOffset | None = Field(
        None,
        description="offset of the local oscillators, which keeps their leakage out of the signal",
    )
    duplex: Literal["full", "half"] = Field(
        "full", description="half: an end cannot receive while it transmits"
    )
    backoff: Level | None = Field(
        None,
        description="mean power of a transmission below full scale; if not given, 12 dB for OFDM "
        "and 6 dB for a single carrier",
    )


class Radio(RadioChannel):
    """A radio, which sends packets as waveforms over a channel."""

    by: Literal["simulated", "virtual", "uhd"] = Field(
        "simulated",
        description="simulated: both ends and the channel in one process; virtual: both ends and "
        "the channel in separate processes, which exchange samples; uhd: UHD devices (USRPs)",
    )
    uhd: Uhd | None = Field(None, description="the devices, with `by: uhd`")
    modem: Literal["ofdm", "single_carrier"] = Field(
        description="ofdm, or single_carrier for channels of one path, because it has no equalizer"
    )
    modulation: Modulation | None = Field(
        None, description="constellation: 1, 2, 3, 4 or 6 bits per symbol"
    )
    rate: Bitrate | None = Field(None, description="bit rate of the body of a transmission")
    sample_rate: SampleRate | None = Field(None, description="sample rate, instead of `rate`")
    code_rate: CodeRate | None = Field(
        None,
        description="rate of the convolutional code, bits in over bits out; no code if not given",
    )
    rate_adaptation: Adaptation | None = Field(
        None,
        description="rate adaptation, which chooses modulation and code rate of each transmission; "
        "needs `arq` for its feedback",
    )

    @model_validator(mode="after")
    def _check_devices(self) -> Self:
        """Check that `by: uhd` has `uhd` and no settings of the channel; others have no `uhd`."""
        if self.by != "uhd":
            if self.uhd is not None:
                message = f"`uhd` together with `by: {self.by}`"
                raise BadValue(message, "write `by: uhd`, or remove `uhd`", "uhd")
            return self
        if self.uhd is None:
            raise BadValue(
                "`by: uhd` without `uhd`, which lists the devices",
                "add `uhd: {ends: {NODE: {device: ..., tx_gain: ..., rx_gain: ...}, ...}, "
                "frequency: ...}`",
            )
        for name in RadioChannel.model_fields:
            if getattr(self, name) is not None:
                raise BadValue(
                    f"{name} is for simulated channels, not for radio hardware",
                    "remove it; gains and attenuators decide the SNR",
                    name,
                )
        return self

    @model_validator(mode="after")
    def _check_one_rate(self) -> Radio:
        """Check that either rate or sample_rate, and modulation or rate_adaptation, is given."""
        if self.rate_adaptation is not None:
            for key in ("modulation", "code_rate", "rate"):
                if getattr(self, key) is not None:
                    cure = "give `sample_rate`" if key == "rate" else "remove one"
                    raise BadValue(f"{key} and rate_adaptation are both given", cure, key)
        elif self.modulation is None:
            raise BadValue("no modulation", "add `modulation: qpsk`, or `rate_adaptation`")
        if self.rate is None and self.sample_rate is None:
            raise BadValue("no rate and no sample_rate", "give one, such as `rate: 2 Mb/s`")
        if self.rate is not None and self.sample_rate is not None:
            raise BadValue("rate and sample_rate are both given", "remove one", "sample_rate")
        return self


# Settings that exclude each other. If a direction has one of them, the direction inherits neither
# from the settings for both directions.
_ALTERNATIVES = {"snr": "snr_trace", "snr_trace": "snr"}


def resolve_channel(link: Link, direction: DirectionName) -> RadioChannel:
    """Return the radio channel of one direction of a link.

    A setting of the direction has priority over the setting for both directions. A direction with
    an SNR does not inherit an SNR trace, and vice versa.
    """
    radio = link.find_settings(Radio)
    direction_channel = link.get_own_settings(direction).find_settings(RadioChannel)
    settings = {}
    for name in RadioChannel.model_fields:
        value = getattr(direction_channel, name, None)
        alternative = _ALTERNATIVES.get(name)
        is_replaced = (
            alternative is not None and getattr(direction_channel, alternative, None) is not None
        )
        inherited = None if is_replaced else getattr(radio, name, None)
        settings[name] = inherited if value is None else value
    return RadioChannel.model_construct(**settings)


part = Keys(
    emulators={"sdr": "a radio of GNU Radio, which decides rate and losses"},
    link_keys={"radio": Key(Radio, "the radio, if `emulator: sdr`")},
    direction_keys={
        "radio": Key(RadioChannel, "settings of the radio's channel that differ in this direction")
    },
    union_tags={"kind": "kind"},
)
