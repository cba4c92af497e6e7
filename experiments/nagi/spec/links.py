# SPDX-License-Identifier: Apache-2.0
"""Links: rates, delays, queues, losses, marking, ARQ, radios and FPGAs, by direction."""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address
from typing import Annotated, Literal, Self, get_args

from nagi_contracts.base import Flag, Strict, Whole
from nagi_contracts.bounds import get_integer_range
from nagi_contracts.errors import BadValue, shown
from nagi_contracts.impairments.effects import Effects
from nagi_contracts.impairments.fading import Fading, Shadowing
from nagi_contracts.impairments.jitters import Jitter
from nagi_contracts.impairments.losses import Loss
from nagi_contracts.impairments.markings import Marking
from nagi_contracts.impairments.queues import Queue
from nagi_contracts.impairments.snr import SnrTrace
from nagi_contracts.impairments.steps import Steps, make_steps_field
from nagi_contracts.plan import ETHERNET_MTU, CodeRate, DirectionName, Modulation
from nagi_contracts.units import (
    Bitrate,
    Burst,
    ByteCount,
    CarrierFrequency,
    ClockDrift,
    ClockOffset,
    Delay,
    Duration,
    Feedback,
    FrequencyOffset,
    Level,
    Linewidth,
    Overhead,
    SampleRate,
    StepRate,
)
from nagi_fpga.kinds import DEFAULT_ADDRESS
from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from nagi.spec.base import Name
from nagi.spec.multipath import ProfileName

MIN_RETRIES, MAX_RETRIES = get_integer_range("arq_retries")


class RateTraceFile(Strict):
    """A rate that a file says, see nagi/spec/traces.py."""

    file: str = Field(min_length=1, description="relative to this file")
    format: Literal["mahimahi", "steps"] = Field(description="format of the file")


class DelayTraceFile(Strict):
    """A delay that a file says, see nagi/spec/traces.py."""

    file: str = Field(min_length=1, description="relative to this file")
    format: Literal["steps"] = Field("steps", description="format of the file")


class RateSteps(Steps):
    """A piecewise-constant rate, from the start of the run."""

    steps: dict[Duration, StepRate] = make_steps_field("rate from then on; 0 b/s is an outage")

    @model_validator(mode="after")
    def _possible(self) -> RateSteps:
        if not any(rate.value for rate in self.steps.values()):
            raise BadValue("the rate is always 0", "give a step another rate", "steps")
        return self


class DelaySteps(Steps):
    """A piecewise-constant delay, from the start of the run."""

    steps: dict[Duration, Delay] = make_steps_field("delay from then on")


def _trace_kind(value: object) -> str:
    has_steps = "steps" in value if isinstance(value, dict) else isinstance(value, Steps)
    return "trace in place" if has_steps else "trace in a file"


RateTrace = Annotated[
    Annotated[RateTraceFile, Tag("trace in a file")] | Annotated[RateSteps, Tag("trace in place")],
    Discriminator(_trace_kind),
]
DelayTrace = Annotated[
    Annotated[DelayTraceFile, Tag("trace in a file")]
    | Annotated[DelaySteps, Tag("trace in place")],
    Discriminator(_trace_kind),
]


class Arq(Strict):
    """What was lost in transmission is sent again: automatic repeat request, on the link itself."""

    retries: Whole = Field(
        ge=MIN_RETRIES,
        le=MAX_RETRIES,
        description="transmissions of a packet beside the first",
    )
    feedback: Feedback = Field(
        description="from the end of a transmission until its sender knows of its loss"
    )


class Tap(Strict):
    """A path from sender to receiver."""

    delay: Duration = Field(description="beside the link's")
    power: Level = Field(description="beside the others'; their sum is that of the signal")


class SampleClock(Strict):
    """The receiver's sample clock against the sender's. They agree when the run begins."""

    offset: ClockOffset = Field(description="by how much the receiver's is faster then")
    drift: ClockDrift | None = Field(
        None, description="by how much that grows in a second; 0 ppm/s if not given"
    )


class Interferer(Strict):
    """Another radio on the same frequency: what it sends disturbs this receiver."""

    link: Name = Field(description="the link that is this radio")
    direction: DirectionName = Field("forward", description="which of its transmissions")
    carrier_to_interference: Level = Field(
        description="mean power of the signal over that of its bursts, at this receiver"
    )


class RadioChannel(Strict):
    """What waveforms go through in one direction. Given on the radio itself, it holds for both."""

    snr: Level | None = Field(
        None, description="mean power of the signal over that of the noise; without fading"
    )
    snr_trace: SnrTrace | None = Field(None, description="an SNR that changes, instead of `snr`")
    fading: Fading | None = Field(None, description="none if not given")
    multipath: Annotated[list[Tap], Field(min_length=1)] | ProfileName | None = Field(
        None,
        description="paths, or the name of a profile: of 3GPP TS 36.101 (epa, eva, etu) or ITU-R "
        "M.1225; one path if not given",
    )
    shadowing: Shadowing | None = Field(None, description="none if not given")
    phase_noise: Linewidth | None = Field(
        None, description="linewidth of the oscillators at both ends together; 0 Hz if not given"
    )
    frequency_offset: FrequencyOffset | None = Field(
        None, description="of the sender's carrier against the receiver's; 0 Hz if not given"
    )
    sample_clock: SampleClock | None = Field(
        None, description="the receiver's against the sender's; as fast if not given"
    )
    interference: Annotated[list[Interferer], Field(max_length=8)] | None = Field(
        None, description="radios on the same frequency; none if not given"
    )

    @model_validator(mode="after")
    def _one_snr(self) -> Self:
        if self.snr is not None and self.snr_trace is not None:
            raise BadValue("snr and snr_trace are both given", "remove one", "snr_trace")
        return self


MODES = ("bpsk 1/2", "bpsk 3/4", "qpsk 1/2", "qpsk 3/4", "16qam 1/2", "16qam 3/4", "64qam 2/3",
         "64qam 3/4")  # fmt: skip
"""Those of IEEE 802.11a."""


def _mode(value: object) -> object:
    """A modulation and a code rate, such as `qpsk 1/2`."""
    if not isinstance(value, str):
        return value
    words = value.split()
    modulations, code_rates = get_args(Modulation), get_args(CodeRate)
    if len(words) == 1 and words[0] in modulations:
        raise BadValue(f"mode {words[0]} without a code rate", f"write `{words[0]} 1/2`")
    if len(words) != 2 or words[0] not in modulations or words[1] not in code_rates:
        known = f"{', '.join(modulations)} with {', '.join(code_rates)}"
        raise BadValue(f"not a mode: {shown(value)}", f"write `qpsk 1/2`; there are {known}")
    return " ".join(words)


Mode = Annotated[str, BeforeValidator(_mode)]


class SnrTableAdaptation(Strict):
    """The fastest mode whose least SNR the last SNR reaches that the receiver reported."""

    kind: Literal["snr_table"] = Field(description="kind of rate adaptation")
    table: Annotated[dict[Mode, Level], Field(min_length=1, max_length=16)] = Field(
        description="modes, such as `qpsk 1/2`, with the least SNR of each"
    )

    @property
    def modes(self) -> list[str]:
        return list(self.table)


class MinstrelAdaptation(Strict):
    """The mode that carries most by the statistics of what was received, as in mac80211."""

    kind: Literal["minstrel"] = Field(description="kind of rate adaptation")
    modes: Annotated[list[Mode], Field(min_length=1, max_length=16)] = Field(
        list(MODES), description="modes, such as `qpsk 1/2`; those of IEEE 802.11a if not given"
    )


Adaptation = Annotated[SnrTableAdaptation | MinstrelAdaptation, Field(discriminator="kind")]


class UhdEnd(Strict):
    """One end of a link that is radio hardware: what it has of a device, in UHD's terms."""

    device: str = Field(min_length=1, description="device arguments, such as `serial=30A1B2C`")
    channel: Whole = Field(0, ge=0, le=31, description="among those of `subdev`")
    tx_gain: Level = Field(description="of the transmitter")
    rx_gain: Level = Field(description="of the receiver")
    subdev: str | None = Field(None, description="front ends, such as `A:A A:B`")
    tx_antenna: str | None = Field(None, description="such as `TX/RX`")
    rx_antenna: str | None = Field(None, description="such as `RX2`")
    clock_source: str | None = Field(
        None, description="internal, external, gpsdo or mimo; the device's own if not given"
    )
    time_source: str | None = Field(None, description="the same, of the pulse per second")


class Uhd(Strict):
    """The devices of UHD (USRPs) that a link is, see docs/first-radios.md."""

    ends: Annotated[dict[Name, UhdEnd], Field(min_length=2, max_length=2)] = Field(
        description="by the link's nodes; both may name one device"
    )
    frequency: CarrierFrequency = Field(
        description="of the carrier. Transmitting needs a licence or a band that needs none"
    )
    backward_frequency: CarrierFrequency | None = Field(
        None, description="of the other direction, if it has another"
    )
    lo_offset: FrequencyOffset | None = Field(
        None, description="of the local oscillators, to keep their leakage out of the signal"
    )
    duplex: Literal["full", "half"] = Field(
        "full", description="half: neither end hears the other while it transmits itself"
    )
    backoff: Level | None = Field(
        None,
        description="mean power of a transmission below full scale; 12 dB of OFDM and 6 dB of a "
        "single carrier if not given",
    )


class Radio(RadioChannel):
    """A radio: packets become waveforms, cross a channel and become packets again, or are lost."""

    by: Literal["simulated", "virtual", "uhd"] = Field(
        "simulated",
        description="simulated: both ends and the channel in one process; virtual: in processes of "
        "their own, which exchange samples; uhd: devices of UHD (USRPs)",
    )
    uhd: Uhd | None = Field(None, description="of `by: uhd`: the devices")
    modem: Literal["ofdm", "single_carrier"] = Field(
        description="single_carrier has no equalizer: it is for channels of one path"
    )
    modulation: Modulation | None = Field(
        None, description="constellation: 1, 2, 3, 4 or 6 bits a symbol"
    )
    rate: Bitrate | None = Field(None, description="what the body of a transmission carries")
    sample_rate: SampleRate | None = Field(None, description="instead of `rate`")
    code_rate: CodeRate | None = Field(
        None,
        description="of the convolutional code, bits in over bits out; none if not given: no code",
    )
    rate_adaptation: Adaptation | None = Field(
        None,
        description="chooses modulation and code rate of each transmission, instead of these; "
        "needs `arq`, whose feedback it learns from",
    )

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, given: object) -> object:
        if isinstance(given, dict) and "fec" in given:
            raise BadValue(
                "fec is called code_rate now",
                "write `code_rate: none`, 1/2 (which was convolutional), 2/3 or 3/4",
                "fec",
            )
        return given

    @model_validator(mode="after")
    def _devices(self) -> Self:
        if self.by != "uhd":
            if self.uhd is not None:
                raise BadValue("`uhd` beside `by: " + self.by + "`", "write `by: uhd`", "uhd")
            return self
        if self.uhd is None:
            raise BadValue(
                "no devices",
                "add `uhd: {ends: {NODE: {device: ..., tx_gain: ..., rx_gain: ...}, ...}, "
                "frequency: ...}`",
            )
        for name in RadioChannel.model_fields:
            if getattr(self, name) is not None:
                raise BadValue(
                    f"{name} of radio hardware: it is what the air or the cable makes it",
                    "remove it; gains and attenuators set the SNR",
                    name,
                )
        return self

    @model_validator(mode="after")
    def _one_rate(self) -> Radio:
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


class Fpga(Strict):
    """The FPGA link emulator: the link model as gateware, see docs/fpga-in-the-loop.md."""

    by: Literal["simulated", "board"] = Field(
        "simulated",
        description="simulated: the core's Verilog, simulated by nagi-fpga beside nagi-link; "
        "board: an FPGA on the cables between real hosts, see docs/fpga-board.md",
    )
    board: (
        Literal["colorlight-5a-75b", "colorlight-5a-75b-v7", "colorlight-i9", "ulx3s-85f"] | None
    ) = Field(None, description="of `by: board`: which; colorlight-i9 if not given")
    address: str | None = Field(
        None, description="of `by: board`: its IPv4 address, as the emulator's host reaches it"
    )
    serial: str | None = Field(
        None, min_length=1, description="instead of `address`: its serial device on that host"
    )
    cable: str | None = Field(
        None,
        pattern=r"[\w.-]+",
        description="of `by: board`: the JTAG cable that loads it, in openFPGALoader's terms",
    )

    @field_validator("address")
    @classmethod
    def _ipv4(cls, address: str | None) -> str | None:
        try:
            return None if address is None else str(IPv4Address(address))
        except AddressValueError:
            raise BadValue(
                f"{shown(address)} is no IPv4 address", f"write `{DEFAULT_ADDRESS}`, or the board's"
            ) from None

    @model_validator(mode="after")
    def _of_a_board(self) -> Fpga:
        for name in ("board", "address", "serial", "cable"):
            if self.by != "board" and getattr(self, name) is not None:
                raise BadValue(f"`{name}` is for boards", "remove it, or write `by: board`", name)
        if self.by == "board" and (self.address is None) == (self.serial is None):
            given = "neither address nor serial" if self.address is None else "address and serial"
            raise BadValue(
                f"{given} of the board", f"give one, such as `address: {DEFAULT_ADDRESS}`"
            )
        return self


# Either, when given for a direction, replaces what the radio has of both.
_EITHER_SNR = {"snr": "snr_trace", "snr_trace": "snr"}
TRACES = {"rate_trace": "rate", "delay_trace": "delay"}
# Either of a pair, when given for a direction, replaces what the link has of both.
ALTERNATIVES = TRACES | {constant: trace for trace, constant in TRACES.items()}


class DirectionSettings(Effects):
    """What one direction of a link does. Given on the link itself, it holds for both directions."""

    rate: Bitrate | None = Field(None, description="of IP bytes; without it nothing queues")
    burst: Burst | None = Field(
        None, description="of a token bucket that fills at `rate`: so much leaves at once"
    )
    rate_trace: RateTrace | None = Field(None, description="a rate that changes, instead of `rate`")
    overhead: Overhead | None = Field(None, description="framing a packet has on the link")
    delay: Delay | None = Field(None, description="propagation delay, one way")
    delay_trace: DelayTrace | None = Field(
        None, description="a delay that changes, instead of `delay`"
    )
    jitter: Jitter | None = Field(None, description="what is added to each packet's delay")
    keep_order: Flag | None = Field(
        None, description="whether packets stay in order all the same; true if not given"
    )
    queue: Queue | None = Field(
        None, description="how much may wait; with a discipline, which packets are sent or dropped"
    )
    mark: Marking | None = Field(None, description="ECN marking; none if not given")
    loss: Loss | None = Field(None, description="losses of the channel; none if not given")
    arq: Arq | None = Field(
        None, description="repeat on the link what was lost there; without it TCP has to"
    )
    shaped_by: Literal["switch", "emulator"] | None = Field(
        None,
        description="who imposes rate, queue, marking and loss: the emulator if not given, or the "
        "switch that the direction leaves. Delay is always the emulator's",
    )

    @model_validator(mode="after")
    def _exclusive(self) -> Self:
        for trace, constant in TRACES.items():
            if getattr(self, trace) is not None and getattr(self, constant) is not None:
                raise BadValue(f"{constant} and {trace} are both given", "remove one", trace)
        if self.burst is not None and self.rate_trace is not None:
            raise BadValue("burst and rate_trace are both given", "remove one", "burst")
        return self

    @property
    def marks(self) -> bool:
        """Whether it marks packets that understand ECN."""
        return self.mark is not None or (self.queue is not None and self.queue.marks)


class OneDirection(DirectionSettings):
    """What one direction has of its own."""

    radio: RadioChannel | None = Field(
        None, description="what of the radio's channel differs in this direction"
    )


class Link(DirectionSettings):
    """A link between two nodes. Forward is from the first to the second."""

    between: tuple[Name, Name] = Field(
        description="the two nodes; forward is from the first to the second"
    )
    mtu: ByteCount | None = Field(
        None, description="of the interfaces at both ends, IP bytes; 1500 if not given"
    )
    emulator: Literal["link", "sdr", "fpga"] = Field(
        "link",
        description="sdr: the link is a radio, by GNU Radio; rate and losses are its own. fpga: "
        "the link model as gateware",
    )
    radio: Radio | None = Field(None, description="of `emulator: sdr`")
    fpga: Fpga | None = Field(None, description="of `emulator: fpga`; simulated if not given")
    forward: OneDirection = Field(
        OneDirection(), description="settings from the first to the second node"
    )
    backward: OneDirection = Field(
        OneDirection(), description="settings from the second to the first node"
    )

    @property
    def mtu_bytes(self) -> int:
        return ETHERNET_MTU if self.mtu is None else self.mtu.value

    @property
    def simulates_fpga(self) -> bool:
        """Whether it is an FPGA's, which is simulated."""
        return self.emulator == "fpga" and (self.fpga or Fpga()).by == "simulated"

    def direction(self, direction: DirectionName) -> DirectionSettings:
        """The settings of one direction: its own where given, else the link's."""
        return DirectionSettings(
            **{
                name: getattr(
                    self if self.inherits(direction, name) else getattr(self, direction), name
                )
                for name in DirectionSettings.model_fields
            }
        )

    def inherits(self, direction: DirectionName, name: str) -> bool:
        """Whether the setting `name` of a direction is the link's."""
        own = getattr(self, direction)
        alternative = ALTERNATIVES.get(name, name)
        return getattr(own, name) is None and getattr(own, alternative) is None

    def channel(self, direction: DirectionName) -> RadioChannel:
        """What waveforms go through in one direction: its own where given, else the radio's."""
        own = getattr(self, direction).radio
        found = {}
        for name in RadioChannel.model_fields:
            value = getattr(own, name, None)
            other = _EITHER_SNR.get(name)
            is_replaced = other is not None and getattr(own, other, None) is not None
            inherited = None if is_replaced else getattr(self.radio, name, None)
            found[name] = inherited if value is None else value
        return RadioChannel.model_construct(**found)
