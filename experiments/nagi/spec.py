# SPDX-License-Identifier: Apache-2.0
"""The experiment file: what it may say, and how it is read.

An experiment is a topology, flows over it, and a matrix of values to try. Wherever a value may
stand, `$axis` stands for the values of that axis of the matrix, one run after the other. A form
(`quick`) replaces parts of the file. Reading yields one validated `Experiment` for every point of
the matrix.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import ErrorDetails

from nagi import paths
from nagi.bounds import real, whole
from nagi.commands import FIELDS, Command
from nagi.contracts.records import Keep, Until
from nagi.contracts.results import metrics_of_results
from nagi.errors import (
    BadValue,
    InputError,
    Problem,
    choices,
    excerpt,
    in_two,
    listed,
    nearest,
    shown,
)
from nagi.statements import Statement, check_axes
from nagi.traces import LATEST, problem_with_instant
from nagi.units import (
    Bitrate,
    ByteCount,
    Delay,
    DopplerSpread,
    Duration,
    Feedback,
    FrequencyOffset,
    JitterWidth,
    Level,
    Overhead,
    PacketCount,
    PacketSize,
    PositiveDuration,
    QueueSize,
    SampleRate,
    Share,
    Sojourn,
    StepRate,
    Text,
    Threshold,
)
from nagi.yaml_source import Place, Source, read_yaml

LEAST_RETRIES, MOST_RETRIES = whole("arq_retries")
LEAST_REPEATS = 3  # before the width of an interval is believed
MAX_RUNS = 100_000
_VALUES = str | int | float  # what an axis may have: true and false are whole numbers to Python
_MAX_PROBLEMS = 20  # that are named at once

# Names become parts of interface names, which Linux limits to 15 characters.
_NAME = r"^[A-Za-z][A-Za-z0-9_-]{0,10}$"
_AXIS = r"^[a-z][a-z0-9_]{0,63}$"
EXPERIMENT_NAME = r"^[a-z0-9][a-z0-9-]{0,63}$"
_FORM_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
# What each of them says.
_PATTERNS = {
    _NAME: "use 1 to 11 of A-Z, a-z, 0-9, - and _, and begin with a letter",
    _AXIS: "use 1 to 64 of a-z, 0-9 and _, and begin with a letter",
    EXPERIMENT_NAME: "use 1 to 64 of a-z, 0-9 and -, and begin with a letter or digit",
    _FORM_NAME: "use 1 to 64 of A-Z, a-z, 0-9, - and _, and begin with a letter or digit",
}

Name = Annotated[str, Field(pattern=_NAME)]
Axis = Annotated[str, Field(pattern=_AXIS)]
Whole = Annotated[int, Field(strict=True)]  # true is no number here
Flag = Annotated[bool, Field(strict=True)]
LossPlace = Literal["ingress", "egress"]
_MODEL = "how losses are drawn"
_AT = "where packets are lost: before the queue (ingress), or after transmission (egress)"


def _version(value: object) -> object:
    if type(value) is not int or value != 1:
        raise BadValue(f"unknown version {shown(value)}", "write `schema_version: 1`")
    return value


class Strict(BaseModel):
    """A part of the file: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NoLoss(Strict):
    """No packet is lost on the channel."""

    model: Literal["none"] = Field("none", description=_MODEL)


class BernoulliLoss(Strict):
    """Every packet is lost with the same probability, independently."""

    model: Literal["bernoulli"] = Field(description=_MODEL)
    rate: Share = Field(description="the probability of losing a packet")
    at: LossPlace = Field("egress", description=_AT)


class PoissonLoss(Strict):
    """A Poisson process in time; a packet during whose transmission an event falls is lost."""

    model: Literal["poisson"] = Field(description=_MODEL)
    rate: Share = Field(description="the share of full-size packets that is lost, below 1")
    packet: PacketSize | None = Field(
        None, description="what a full-size packet is, in IP bytes; the flows' if not given"
    )
    at: LossPlace = Field("egress", description=_AT)

    @model_validator(mode="after")
    def _possible(self) -> PoissonLoss:
        if self.rate.value > real("packet_loss_rate")[1]:
            raise BadValue(
                "a Poisson process cannot lose every packet", "give a rate below 1", "rate"
            )
        return self


class BernoulliBitLoss(Strict):
    """Every bit is wrong with the same probability, independently; one wrong bit loses a packet."""

    model: Literal["bernoulli_bit"] = Field(description=_MODEL)
    rate: Share = Field(description="the bit error rate, below 1")
    at: LossPlace = Field("egress", description=_AT)

    @model_validator(mode="after")
    def _possible(self) -> BernoulliBitLoss:
        if self.rate.value > real("bit_error_rate")[1]:
            raise BadValue(
                "a bit error rate of 1 loses every packet", "give less, like 1e-6", "rate"
            )
        return self


class GilbertElliottLoss(Strict):
    """A good and a bad state with their own loss rates; after each packet the state may change."""

    model: Literal["gilbert_elliott"] = Field(description=_MODEL)
    good_to_bad: Share = Field(description="the probability of leaving the good state")
    bad_to_good: Share = Field(description="the probability of leaving the bad state")
    loss_in_good: Share = Field(Share(0), description="the probability of losing a packet")
    loss_in_bad: Share = Field(Share(1), description="the probability of losing a packet")
    at: LossPlace = Field("egress", description=_AT)


class MarkovLoss(Strict):
    """A good and a bad state with their own loss rates, which change in continuous time."""

    model: Literal["markov"] = Field(description=_MODEL)
    good: Sojourn = Field(description="mean sojourn in the good state")
    bad: Sojourn = Field(description="mean sojourn in the bad state")
    loss_in_good: Share = Field(Share(0), description="the probability of losing a packet")
    loss_in_bad: Share = Field(Share(1), description="the probability of losing a packet")
    at: LossPlace = Field("egress", description=_AT)


class TraceLoss(Strict):
    """The packets are lost that a file says, by their number; it repeats."""

    model: Literal["trace"] = Field(description=_MODEL)
    file: str = Field(
        min_length=1, description="0 and 1 (lost), a packet each; relative to this file"
    )
    at: LossPlace = Field("egress", description=_AT)


Loss = Annotated[
    NoLoss
    | BernoulliLoss
    | PoissonLoss
    | BernoulliBitLoss
    | GilbertElliottLoss
    | MarkovLoss
    | TraceLoss,
    Field(discriminator="model"),
]


class UniformJitter(Strict):
    """As much earlier as later, at most by the half width."""

    distribution: Literal["uniform"] = Field(description="distribution of the jitter")
    half_width: JitterWidth = Field(description="largest deviation from the delay")


class NormalJitter(Strict):
    """A normal distribution around 0."""

    distribution: Literal["normal"] = Field(description="distribution of the jitter")
    deviation: JitterWidth = Field(description="standard deviation")


class ExponentialJitter(Strict):
    """An exponential distribution: always later."""

    distribution: Literal["exponential"] = Field(description="distribution of the jitter")
    mean: JitterWidth = Field(description="mean of what is added to the delay")


Jitter = Annotated[
    UniformJitter | NormalJitter | ExponentialJitter, Field(discriminator="distribution")
]


class RateTraceFile(Strict):
    """A rate that a file says, see nagi/traces.py."""

    file: str = Field(min_length=1, description="relative to this file")
    format: Literal["mahimahi", "steps"] = Field(description="format of the file")


class DelayTraceFile(Strict):
    """A delay that a file says, see nagi/traces.py."""

    file: str = Field(min_length=1, description="relative to this file")
    format: Literal["steps"] = Field("steps", description="format of the file")


class Steps(Strict):
    """A piecewise-constant value, from the start of the run."""

    period: PositiveDuration = Field(description="after which the trace repeats")

    @field_validator("steps", mode="before", check_fields=False)
    @classmethod
    def _in_order(cls, steps: object) -> object:
        before: Duration | None = None
        for text in steps if isinstance(steps, dict) else ():
            try:
                at = Duration.parse(text)
            except ValueError:
                continue  # is said of the key itself
            problem = problem_with_instant(at, before)
            if problem is not None:
                raise problem
            before = at
        return steps

    def _check_period(self, last: Duration) -> None:
        if self.period.value <= last.value:
            what = f"a period of {self.period} ends before the step at {last}"
            raise BadValue(what, "give a longer one", "period")
        if self.period.value > LATEST.value:
            what = f"a period of {self.period} is too long"
            raise BadValue(what, f"give at most {LATEST}", "period")


class RateSteps(Steps):
    """A piecewise-constant rate, from the start of the run."""

    steps: dict[Duration, StepRate] = Field(
        min_length=1,
        description="instant -> rate from then on; 0 b/s is an outage",
        json_schema_extra={"additionalProperties": False},
    )

    @model_validator(mode="after")
    def _possible(self) -> RateSteps:
        self._check_period(max(self.steps))
        if not any(rate.value for rate in self.steps.values()):
            raise BadValue("the rate is always 0", "give a step another rate", "steps")
        return self


class DelaySteps(Steps):
    """A piecewise-constant delay, from the start of the run."""

    steps: dict[Duration, Delay] = Field(
        min_length=1,
        description="instant -> delay from then on",
        json_schema_extra={"additionalProperties": False},
    )

    @model_validator(mode="after")
    def _possible(self) -> DelaySteps:
        self._check_period(max(self.steps))
        return self


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


class Mark(Strict):
    """ECN: packets are marked CE while the queue's moving average is over the threshold."""

    threshold: Threshold = Field(description="queue above which packets are marked")
    weight: Share = Field(
        Share(0.002), description="of a new value in the average, above 0; 1: the queue itself"
    )

    @model_validator(mode="after")
    def _possible(self) -> Mark:
        if self.weight.value < real("mark_weight")[0]:
            raise BadValue(
                f"a weight of {self.weight.value:g} ignores the queue",
                "give more, like 0.002",
                "weight",
            )
        return self


class Arq(Strict):
    """What was lost in transmission is sent again: automatic repeat request, on the link itself."""

    retries: Whole = Field(
        ge=LEAST_RETRIES,
        le=MOST_RETRIES,
        description="transmissions of a packet beside the first",
    )
    feedback: Feedback = Field(
        description="from the end of a transmission until its sender knows of its loss"
    )


class NoFading(Strict):
    """The gain of the channel does not change."""

    kind: Literal["none"] = Field(description="kind of fading")


class RayleighFading(Strict):
    """No path without obstacles: the gain is complex Gaussian, with Clarke's Doppler spectrum."""

    kind: Literal["rayleigh"] = Field(description="kind of fading")
    doppler: DopplerSpread = Field(description="the largest Doppler shift")


class RicianFading(Strict):
    """A path without obstacles beside that."""

    kind: Literal["rician"] = Field(description="kind of fading")
    doppler: DopplerSpread = Field(description="the largest Doppler shift")
    k_factor: Level = Field(description="power of that path over that of all others")


_FADINGS = Annotated[NoFading | RayleighFading | RicianFading, Field(discriminator="kind")]


def _fading(value: object) -> object:
    if value == "none":
        return {"kind": "none"}
    further = {"rayleigh": "", "rician": ", k_factor: 6 dB"}
    if isinstance(value, str) and value in further:
        cure = f"write `{{kind: {value}, doppler: 5 Hz{further[value]}}}`"
        raise BadValue(f"fading {value} without its settings", cure)
    if isinstance(value, str):
        raise BadValue(f"unknown fading {shown(value)}", choices(value, ["none", *further]))
    return value


Fading = Annotated[
    _FADINGS, BeforeValidator(_fading, json_schema_input_type=Literal["none"] | _FADINGS)
]


class Tap(Strict):
    """A path from sender to receiver."""

    delay: Duration = Field(description="beside the link's")
    power: Level = Field(description="beside the others'; their sum is that of the signal")


class RadioChannel(Strict):
    """What waveforms go through in one direction. Given on the radio itself, it holds for both."""

    snr: Level | None = Field(
        None, description="mean power of the signal over that of the noise; without fading"
    )
    fading: Fading | None = Field(None, description="none if not given")
    multipath: Annotated[list[Tap], Field(min_length=1)] | None = Field(
        None, description="one path if not given"
    )
    frequency_offset: FrequencyOffset | None = Field(
        None, description="of the sender's carrier against the receiver's; 0 Hz if not given"
    )


class Radio(RadioChannel):
    """A radio: packets become waveforms, cross a channel and become packets again, or are lost."""

    by: Literal["simulated", "virtual"] = Field(
        "simulated",
        description="simulated: both ends and the channel in one process; virtual: in processes of "
        "their own, which exchange samples",
    )
    modem: Literal["ofdm", "single_carrier"] = Field(
        description="single_carrier has no equalizer: it is for channels of one path"
    )
    modulation: Literal["bpsk", "qpsk", "8psk", "16qam"] = Field(
        description="constellation: 1, 2, 3 or 4 bits a symbol"
    )
    rate: Bitrate | None = Field(None, description="what the body of a transmission carries")
    sample_rate: SampleRate | None = Field(None, description="instead of `rate`")
    fec: Literal["none", "convolutional"] = Field("none", description="forward error correction")

    @field_validator("by", mode="before")
    @classmethod
    def _there(cls, by: object) -> object:
        if by == "uhd":
            raise BadValue(
                "this version of nagi does not support radio hardware (UHD)",
                "write `by: simulated` or `by: virtual`",
            )
        return by

    @model_validator(mode="after")
    def _one_rate(self) -> Radio:
        if self.rate is None and self.sample_rate is None:
            raise BadValue("no rate and no sample_rate", "give one, such as `rate: 2 Mb/s`")
        if self.rate is not None and self.sample_rate is not None:
            raise BadValue("rate and sample_rate are both given", "remove one", "sample_rate")
        return self


TRACES = {"rate_trace": "rate", "delay_trace": "delay"}
# Either of a pair, when given for a direction, replaces what the link has of both.
ALTERNATIVES = TRACES | {constant: trace for trace, constant in TRACES.items()}


class DirectionSettings(Strict):
    """What one direction of a link does. Given on the link itself, it holds for both directions."""

    rate: Bitrate | None = Field(None, description="of IP bytes; without it nothing queues")
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
    queue: QueueSize | None = Field(None, description="drop-tail limit; without it none")
    mark: Mark | None = Field(None, description="ECN marking; none if not given")
    loss: Loss | None = Field(None, description="losses of the channel; none if not given")
    arq: Arq | None = Field(
        None, description="repeat on the link what was lost there; without it TCP has to"
    )
    imposed_by: Literal["switch", "emulator"] | None = Field(
        None,
        description="who imposes rate, queue, marking and loss: the emulator if not given, or the "
        "switch that the direction leaves. Delay is always the emulator's",
    )

    @model_validator(mode="after")
    def _exclusive(self) -> Self:
        for trace, constant in TRACES.items():
            if getattr(self, trace) is not None and getattr(self, constant) is not None:
                raise BadValue(f"{constant} and {trace} are both given", "remove one", trace)
        return self


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
    emulator: Literal["link", "sdr"] = Field(
        "link", description="sdr: the link is a radio, by GNU Radio; rate and losses are its own"
    )
    radio: Radio | None = Field(None, description="of `emulator: sdr`")
    forward: OneDirection = Field(
        OneDirection(), description="settings from the first to the second node"
    )
    backward: OneDirection = Field(
        OneDirection(), description="settings from the second to the first node"
    )

    def direction(self, way: Literal["forward", "backward"]) -> DirectionSettings:
        """The settings of one direction: its own where given, else the link's."""
        return DirectionSettings(
            **{
                name: getattr(self if self.inherits(way, name) else getattr(self, way), name)
                for name in DirectionSettings.model_fields
            }
        )

    def inherits(self, way: Literal["forward", "backward"], name: str) -> bool:
        """Whether the setting `name` of a direction is the link's."""
        own = getattr(self, way)
        alternative = ALTERNATIVES.get(name, name)
        return getattr(own, name) is None and getattr(own, alternative) is None

    def channel(self, way: Literal["forward", "backward"]) -> RadioChannel:
        """What waveforms go through in one direction: its own where given, else the radio's."""
        own = getattr(self, way).radio
        found = {}
        for name in RadioChannel.model_fields:
            value = getattr(own, name, None)
            found[name] = getattr(self.radio, name, None) if value is None else value
        return RadioChannel.model_construct(**found)


class Flow(Strict):
    """Data from one host to another: one TCP connection, or what a command sends."""

    from_: Name = Field(alias="from", description="the host that sends the data")
    to: Name = Field(description="the host that receives it")
    scheme: str = Field(
        description="a name from hosts/schemes.yaml, or the path of an eBPF object (.o), relative "
        "to this file"
    )
    traffic: Literal["bulk", "command"] = Field(
        "bulk",
        description="bulk: as much as goes, until the end; command: what `client` and `server` do",
    )
    client: Command | None = Field(
        None,
        description="program and arguments, started at the flow's start on the host that does not "
        "listen; fields: " + ", ".join(f"{{{name}}}" for name in FIELDS),
    )
    server: Command | None = Field(
        None,
        description="the same, started before on the host that listens; without it, what `client` "
        "talks to must be there",
    )
    listen: Literal["from", "to"] = Field(
        "to", description="the host whose port `port` is; `from` for a download"
    )
    background: Flag = Field(
        False,
        description="cross traffic: in tables of runs, but in no mean and no figure of them",
    )
    payload: ByteCount = Field(
        ByteCount(1000), description="payload bytes of a full-size segment (the MSS)"
    )
    start: Duration = Field(Duration(0), description="counted from the start of the traffic")
    port: Whole | None = Field(None, ge=1024, le=65535, description="5001 and up if not given")

    @model_validator(mode="after")
    def _possible(self) -> Flow:
        if self.traffic == "bulk":
            for key in ("client", "server", "listen"):
                if key in self.model_fields_set and getattr(self, key) is not None:
                    what = f"{key} does not go with `traffic: bulk`"
                    raise BadValue(what, "write `traffic: command`, or remove it", key)
        if self.traffic == "command" and self.client is None:
            raise BadValue("no client", "write `client: [PROGRAM, ARGUMENT, ...]`")
        if not 88 <= self.payload.value <= 1448:
            what = f"a payload of {self.payload} does not fit into Ethernet's MTU"
            raise BadValue(what, "give 88 to 1448 bytes", "payload")
        return self


class ReportSettings(Strict):
    """How the report arranges the matrix."""

    x: Axis = Field(description="the axis along which curves run; NAGI is the mean over it")
    series: Axis = Field("scheme", description="the axis that tells the curves apart")
    panels: Axis | None = Field(None, description="the axis that tells the panels apart")
    statements: list[Statement] = Field(
        [], description="what is said of the results, to be held against them"
    )


class Experiment(Strict):
    """An experiment file."""

    schema_version: Annotated[Literal[1], BeforeValidator(_version)] = Field(
        description="version of this format"
    )
    name: Annotated[str, Field(pattern=EXPERIMENT_NAME)] = Field(
        description="names the directory of results; lower-case letters, digits, hyphens"
    )
    title: str = Field(description="title of the report")
    reference: str = Field("", description="where the experiment comes from")
    seed: Whole = Field(ge=0, lt=2**63, description="every random draw follows from it")
    repeats: Whole = Field(1, ge=1, le=1000, description="of each point; with `until`, the least")
    until: Until | None = Field(
        None, description="repeat each point until the interval of a metric is narrow enough"
    )
    keep: Keep = Field(Keep(), description="what is kept of each run's files")
    host_profile: str = Field("linux", description="a name from hosts/profiles.yaml")
    max_window: PacketCount | None = Field(
        None, description="cap of every sender's congestion window, as ns-2's `window_`"
    )
    ecn: Flag | None = Field(
        None, description="whether hosts ask for ECN; if not said, they do where a link marks"
    )
    parameters: dict[str, dict[str, Whole]] = Field(
        {}, description="of schemes of ours: scheme -> parameter -> value; see `nagi schemes`"
    )
    nodes: dict[Name, Literal["host", "router", "switch"]] = Field(
        min_length=2, description="a router forwards by its kernel, a switch by p4/edge.p4"
    )
    links: dict[Name, Link] = Field(min_length=1, description="name -> link")
    flows: dict[Name, Flow] = Field(min_length=1, description="name -> flow")
    duration: Duration = Field(description="of the traffic")
    warmup: Duration = Field(
        Duration(0), description="at the start of the traffic, not part of the measurement"
    )
    matrix: dict[Axis, Annotated[list[str | bool | int | float], Field(min_length=1)]] = Field(
        min_length=1, description="axis -> values; all combinations are run"
    )
    report: ReportSettings = Field(description="how the report arranges the matrix")
    forms: dict[str, dict[str, Any]] = Field(
        {}, description="named variants: parts that replace those of the file"
    )

    @model_validator(mode="after")
    def _possible(self) -> Experiment:
        if self.duration.value < 10**9:
            what = f"a duration of {self.duration} is too short"
            raise BadValue(what, "give 1 s or more", "duration")
        if self.duration.value > 24 * 3600 * 10**9:
            raise BadValue(
                f"a duration of {self.duration} is too long", "give 24 h or less", "duration"
            )
        if self.warmup.value >= self.duration.value:
            what = f"a warmup of {self.warmup} leaves nothing of a duration of {self.duration}"
            raise BadValue(what, "give less", "warmup")
        if self.until is not None:
            self._check_until(self.until)
        return self

    def _check_until(self, until: Until) -> None:
        if until.metric not in metrics_of_results():
            what = f"unknown metric {shown(until.metric)}"
            raise BadValue(what, choices(until.metric, metrics_of_results()), "until.metric")
        if self.repeats < LEAST_REPEATS:
            what = (
                f"`until` with `repeats: {self.repeats}`: an interval of so few runs is narrow by "
                "chance"
            )
            raise BadValue(what, f"write `repeats: {LEAST_REPEATS}` or more", "repeats")
        if until.at_most < self.repeats:
            what = f"`at_most: {until.at_most}` is less than `repeats: {self.repeats}`"
            raise BadValue(what, "raise it", "until.at_most")


@dataclass(frozen=True)
class Point:
    """One point of the matrix."""

    values: dict[str, str]  # axis -> value, as the file has it
    experiment: Experiment
    document: Document


@dataclass(frozen=True)
class Document:
    """An experiment as plain data, and for each place in it where the file has it."""

    source: Source
    base: dict[str, Any]  # with `$axis` in it
    origin: Mapping[Place, Place]  # what a form replaces -> where the form has it
    axes: Mapping[Place, str] = field(default_factory=dict)  # where base has `$axis`
    chosen: Mapping[str, int] = field(default_factory=dict)  # axis -> index of its value

    def place_in_file(self, place: Place) -> Place:
        """Where the file has what stands at `place`."""
        for length in range(len(place), 0, -1):
            start, rest = place[:length], place[length:]
            axis = self.axes.get(start)
            if axis is not None and axis in self.chosen:
                return (*self.place_in_file(("matrix", axis, self.chosen[axis])), *rest)
            if start in self.origin:
                return (*self.origin[start], *rest)
        return place

    def problem(self, place: Place, what: str, cure: str) -> Problem:
        """A problem with what stands at `place`, named by its place in the file."""
        return self.source.problem(self.place_in_file(place), what, cure)

    def error(self, place: Place, what: str, cure: str) -> InputError:
        return InputError(self.problem(place, what, cure))

    def beside(self, name: str) -> Path:
        """The path of a file that the experiment file names, relative to itself."""
        return Path(self.source.file).parent / name


def read_experiment(path: Path, form: str | None) -> list[Point]:
    """All points of the experiment in `path`, in its form `form` (None: as it stands). The name of
    an experiment that comes with nagi is enough.

    Raises InputError naming file, line and key of everything that is wrong.
    """
    document = _with_form(read_yaml(paths.experiment(path)), form)
    matrix = _matrix_of(document)
    _check_size(document, math.prod(map(len, matrix.values())), "")
    points = _Expansion(document, matrix).points()
    _check_size(document, *_runs_of(points))
    _check_report(points[0])
    _check_campaign(points)
    return points


def experiment_schema() -> dict[str, Any]:
    """The JSON Schema of the experiment file, for editors: `$axis` is allowed for every value."""
    schema = Experiment.model_json_schema(by_alias=True, schema_generator=_SchemaGenerator)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    _allow_axes(schema, under_key="")
    return schema


_FOR_ALL_POINTS = ("Keep", "Until")  # what holds for the whole campaign has no axes in it
# Keys whose values hold for the whole campaign: no axis stands in them.
_NO_AXES = ("schema_version", "name", "matrix", "report")

# The keys that say which of several a mapping is, and of what.
UNION_TAGS = {
    "model": "loss model",
    "distribution": "jitter distribution",
    "kind": "kind of fading",
}


class _SchemaGenerator(GenerateJsonSchema):
    """Writes defaults as the file would have them: `1000 bytes`."""

    def encode_default(self, dft: Any) -> Any:
        return str(dft) if isinstance(dft, Text) else super().encode_default(dft)


def _allow_axes(node: Any, under_key: str) -> None:
    if isinstance(node, list):
        for item in node:
            _allow_axes(item, "")
    if not isinstance(node, dict):
        return
    for key, value in list(node.items()):
        if key in ("properties", "patternProperties"):
            for name, schema in value.items():
                if name in ("schema_version", "name", "matrix", "forms", "report", "between"):
                    continue
                kept = {
                    k: schema.pop(k) for k in ("description", "default", "title") if k in schema
                }
                if name not in UNION_TAGS and _is_scalar(schema):
                    value[name] = {**_or_axis(schema), **kept}
                else:
                    schema.update(kept)
        if key == "additionalProperties" and isinstance(value, dict) and "type" in value:
            node[key] = value = _or_axis(value) if _is_scalar(value) else value
        if key not in _FOR_ALL_POINTS:
            _allow_axes(value, key)


def _or_axis(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [dict(schema), {"type": "string", "pattern": r"^\$"}]}


def _is_scalar(schema: dict[str, Any]) -> bool:
    options = schema.get("anyOf", [schema])
    scalars = ("string", "boolean", "integer", "number", "null")
    return all(option.get("type") in scalars for option in options)


def _with_form(source: Source, form: str | None) -> Document:
    data = {key: value for key, value in source.data.items() if key != "forms"}
    forms = source.data.get("forms", {})
    if not isinstance(forms, dict):
        what = f"{shown(forms)} in place of a mapping of forms"
        raise source.error(("forms",), what, "write `forms: {quick: {...}}`")
    for name, parts in forms.items():
        if re.search(_FORM_NAME, name) is None:
            raise source.error(("forms", name), f"{shown(name)} is no name", _PATTERNS[_FORM_NAME])
        if not isinstance(parts, dict):
            what = f"{shown(parts)} in place of a mapping"
            raise source.error(("forms", name), what, "write the keys that the form replaces")
    if form is None:
        return Document(source, data, {})
    if form not in forms:
        what = f"there is no form {shown(form)}"
        raise source.error(("forms",), what, choices(form, forms, "forms of this file"))
    origin: dict[Place, Place] = {}
    return Document(source, _overlay(data, forms[form], (), ("forms", form), origin), origin)


def _overlay(
    base: Any, over: Any, place: Place, over_place: Place, origin: dict[Place, Place]
) -> Any:
    """`base` with the parts that `over` has; mappings merge, everything else replaces."""
    if isinstance(base, dict) and isinstance(over, dict):
        return base | {
            key: _overlay(base.get(key), value, (*place, key), (*over_place, key), origin)
            for key, value in over.items()
        }
    origin[place] = over_place
    return over


def _matrix_of(document: Document) -> dict[str, list[Any]]:
    """The values of each axis."""
    matrix = document.base.get("matrix")
    if matrix is None:
        for key in document.base:
            if key not in Experiment.model_fields and nearest(key, ["matrix"]):
                raise document.error((key,), *_unknown(key, Experiment.model_fields))
    if not isinstance(matrix, dict) or not matrix:
        what = "no matrix" if matrix is None else "the matrix has no axis"
        raise document.error(("matrix",), what, "write `matrix: {scheme: [newreno, cubic]}`")
    for axis, values in matrix.items():
        if re.search(_AXIS, axis) is None:
            raise document.error(("matrix", axis), f"{shown(axis)} is no name", _PATTERNS[_AXIS])
        if not isinstance(values, list) or not values:
            what = "an empty list" if values == [] else f"{shown(values)} in place of a list"
            raise document.error(("matrix", axis), what, "write its values: [a, b, ...]")
        found: set[str] = set()
        for index, value in enumerate(values):
            place = ("matrix", axis, index)
            if not isinstance(value, _VALUES):
                what = f"{shown(value)} in place of a value"
                raise document.error(place, what, "write a text, a number, true or false")
            text = _text(value)
            if text in found:
                raise document.error(place, f"{shown(text)} is given twice", "remove one")
            found.add(text)
    return matrix


def _check_size(document: Document, runs: int, repeats: str) -> None:
    """Refuses a matrix that nobody could run. `repeats`: what multiplies its points."""
    if runs > MAX_RUNS:
        matrix = document.base["matrix"]
        factors = " x ".join(f"{len(values):,} {excerpt(axis)}" for axis, values in matrix.items())
        raise document.error(
            ("matrix",),
            f"the matrix gives {runs:,} runs ({factors}{repeats}), more than {MAX_RUNS:,}",
            "remove values from the longest axes" + (", or lower `repeats`" if repeats else ""),
        )


def _runs_of(points: list[Point]) -> tuple[int, str]:
    """How many runs `points` are, and in words how many times each is repeated."""
    repeats = {point.experiment.repeats for point in points}
    text = f" x {repeats.pop():,} repeats" if len(repeats) == 1 else ", with repeats"
    return sum(point.experiment.repeats for point in points), text


def _text(value: Any) -> str:
    """A value of an axis as the file has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# Where a part of a document has `$axis`: an axis, or steps into the part.
_Uses = str | dict[str | int, Any]


class _Expansion:
    """Makes one experiment of a document for every point of its matrix.

    Most points share most of their parts: a link or a flow is validated once for every combination
    of the axes that it uses, everything else once for every combination of its own. So a validator
    of Experiment must not look into links and flows together with the rest: the planner does.
    """

    def __init__(self, document: Document, matrix: dict[str, list[Any]]) -> None:
        self._document = document
        self._matrix = matrix
        self._axes: dict[Place, str] = {}
        self._uses = self._find({k: v for k, v in document.base.items() if k not in _NO_AXES}, ())
        self._parts: list[_Part] = []
        uses = dict(self._uses) if isinstance(self._uses, dict) else {}
        for key, adapter in _ADAPTERS.items():
            inner = uses.pop(key, {})
            entries = document.base.get(key)
            if isinstance(inner, str) or not isinstance(entries, dict):
                uses[key] = inner
                continue
            for name, data in entries.items():
                self._parts.append(_Part(key, name, adapter, data, inner.get(name, {})))
        self._rest_axes = _axes_of(uses)

    def _find(self, node: Any, place: Place) -> _Uses:
        """Where `node` has `$axis`; notes it in self._axes, too."""
        if isinstance(node, dict | list):
            found: dict[str | int, Any] = {}
            for step, value in node.items() if isinstance(node, dict) else enumerate(node):
                if inner := self._find(value, (*place, step)):
                    found[step] = inner
            return found
        if not isinstance(node, str) or not node.startswith("$"):
            return {}
        axis = node[1:]
        if axis not in self._matrix:
            what = f"there is no axis {shown(axis)} in the matrix"
            raise self._document.error(place, what, choices(axis, self._matrix, "axes"))
        self._axes[place] = axis
        return axis

    def points(self) -> list[Point]:
        """Raises InputError that names all that is wrong."""
        texts = {axis: [_text(each) for each in values] for axis, values in self._matrix.items()}
        points: list[Point] = []
        problems: dict[str, Problem] = {}
        bases: dict[tuple[int, ...], Experiment | None] = {}
        for indices in itertools.product(*(range(len(each)) for each in texts.values())):
            chosen = dict(zip(texts, indices, strict=True))
            rest = tuple(chosen[axis] for axis in self._rest_axes)
            parts = [part.at(chosen, self._matrix) for part in self._parts]
            if rest not in bases or any(part.is_new_and_wrong for part in parts):
                base, found = self._validate(chosen)
                bases.setdefault(rest, base)
                problems |= {str(problem): problem for problem in found}
                if len(problems) >= _MAX_PROBLEMS:
                    break
            base = bases[rest]
            if problems or base is None:
                continue
            changed: dict[str, dict[str, Any]] = {key: {} for key in _ADAPTERS}
            for part, each in zip(self._parts, parts, strict=True):
                changed[part.key][part.name] = each.value
            changed = {key: entries for key, entries in changed.items() if entries}
            experiment = base.model_copy(update=changed)
            values = {axis: texts[axis][index] for axis, index in chosen.items()}
            points.append(Point(values, experiment, self._at(chosen)))
        for axis in texts:
            if not problems and axis not in self._axes.values():
                what = f"axis {axis} is used nowhere"
                cure = f"write ${axis} where its values go"
                raise self._document.error(("matrix", axis), what, cure)
        if problems:
            raise InputError(*list(problems.values())[:_MAX_PROBLEMS])
        return points

    def _at(self, chosen: dict[str, int]) -> Document:
        document = self._document
        return Document(document.source, document.base, document.origin, self._axes, chosen)

    def _validate(self, chosen: dict[str, int]) -> tuple[Experiment | None, list[Problem]]:
        """The whole experiment at a point, or what is wrong with it."""
        data = _filled(self._document.base, self._uses, _values_at(self._matrix, chosen))
        try:
            return Experiment.model_validate(data), []
        except ValidationError as error:
            return None, _problems(self._at(chosen), data, error.errors())


@dataclass(frozen=True)
class _Validated:
    value: Any  # None: the part is wrong
    is_new_and_wrong: bool


@dataclass
class _Part:
    """A link or a flow, and where it has `$axis`."""

    key: str
    name: str
    adapter: TypeAdapter[Any]
    data: Any
    uses: _Uses
    axes: tuple[str, ...] = ()
    _seen: dict[tuple[int, ...], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.axes = _axes_of(self.uses)

    def at(self, chosen: dict[str, int], matrix: dict[str, list[Any]]) -> _Validated:
        """The part with the chosen values."""
        indices = tuple(chosen[axis] for axis in self.axes)
        is_new = indices not in self._seen
        if is_new:
            data = _filled(self.data, self.uses, _values_at(matrix, chosen))
            try:
                self._seen[indices] = self.adapter.validate_python(data)
            except ValidationError:
                self._seen[indices] = None
        value = self._seen[indices]
        return _Validated(value, is_new and value is None)


def _values_at(matrix: dict[str, list[Any]], chosen: dict[str, int]) -> dict[str, Any]:
    return {axis: matrix[axis][index] for axis, index in chosen.items()}


def _axes_of(uses: _Uses) -> tuple[str, ...]:
    """The axes in `uses`, each once."""
    if isinstance(uses, str):
        return (uses,)
    return tuple(dict.fromkeys(axis for inner in uses.values() for axis in _axes_of(inner)))


def _filled(node: Any, uses: _Uses, values: dict[str, Any]) -> Any:
    """`node` with the values of axes where it `uses` them; what uses none is shared."""
    if isinstance(uses, str):
        return values[uses]
    if not uses:
        return node
    filled: Any = dict(node) if isinstance(node, dict) else list(node)
    for step, inner in uses.items():
        filled[step] = _filled(node[step], inner, values)
    return filled


# What is validated apart from the rest: each entry of these keys.
_ADAPTERS: dict[str, TypeAdapter[Any]] = {"links": TypeAdapter(Link), "flows": TypeAdapter(Flow)}


def _check_report(point: Point) -> None:
    settings = point.experiment.report
    for key in ("x", "series", "panels"):
        axis = getattr(settings, key)
        if axis is not None and axis not in point.values:
            what = f"there is no axis {axis} in the matrix"
            raise point.document.error(("report", key), what, choices(axis, point.values, "axes"))
    values = _values_of_all_forms(point.document)
    found = check_axes(settings.statements, settings.x, values)
    problems = [
        point.document.problem(("report", "statements", *place), what, cure)
        for place, what, cure in itertools.islice(found, _MAX_PROBLEMS)
    ]
    if problems:
        raise InputError(*problems)


def _check_campaign(points: list[Point]) -> None:
    """What holds for the whole campaign is the same at every point."""
    for key in ("keep", "until"):
        first = getattr(points[0].experiment, key)
        if any(getattr(point.experiment, key) != first for point in points):
            raise points[0].document.error(
                (key,), f"`{key}` differs between points", "give values, not axes of the matrix"
            )


def _values_of_all_forms(document: Document) -> dict[str, list[str]]:
    """Every value that an axis has in the file or in one of its forms, as texts."""
    data = document.source.data
    matrices = [
        document.base["matrix"],
        data.get("matrix"),
        *(form.get("matrix") for form in data.get("forms", {}).values()),
    ]
    found: dict[str, list[str]] = {axis: [] for axis in document.base["matrix"]}
    for matrix in matrices:
        for axis, values in matrix.items() if isinstance(matrix, dict) else ():
            if axis in found and isinstance(values, list):
                found[axis] += [_text(each) for each in values if isinstance(each, _VALUES)]
    return {axis: list(dict.fromkeys(values)) for axis, values in found.items()}


def _problems(document: Document, data: Any, errors: list[ErrorDetails]) -> list[Problem]:
    """pydantic's errors in our words. Unknown keys come first; what follows from the lack of the
    key that was meant is left out."""
    in_base = replace(document, axes={})  # a key stands where it is, whatever its value is
    unknown: dict[Place, Problem] = {}
    others: list[tuple[Place, str, Problem]] = []
    for details in errors[: 5 * _MAX_PROBLEMS]:
        place = _place_in_data(data, details["loc"])
        key = _unknown_key(details, place, data)
        if key is None:
            of_key = details["type"] == "extra_forbidden"
            explained = _explain(document, data, place, details)
            problem = (in_base if of_key else document).problem(*explained)
            others.append((place, details["type"], problem))
        else:
            mapping = place[:-1] if details["type"] == "extra_forbidden" else place
            what, cure = _unknown(key, _known_keys(mapping, data))
            unknown[*mapping, key] = in_base.problem((*mapping, key), what, cure)
    mistyped = {place[:-1] for place in unknown}
    rest = [
        problem
        for place, kind, problem in others
        if not (kind == "missing" and place in mistyped)
        and not (kind == "extra_forbidden" and place[:-1] in mistyped)
    ]
    return [*unknown.values(), *rest]


def _unknown_key(details: ErrorDetails, place: Place, data: Any) -> str | None:
    """The unknown key that an error is about, if it is about one."""
    if details["type"] == "extra_forbidden":
        key = str(place[-1])
        return None if key in _known_keys(place[:-1], data) else key
    if details["type"] == "union_tag_not_found":
        tag = details["ctx"]["discriminator"].strip("'")
        known = _known_keys(place, data)
        keys = [key for key in _at_place(data, place) if key not in known]
        return next((key for key in keys if nearest(key, [tag])), None)
    return None


def _unknown(key: str, known: Iterable[str]) -> tuple[str, str]:
    name, colon, _ = key.partition(":")
    what = f"unknown key `{excerpt(key)}`" if key else "an empty key"
    if colon and name in known:
        return what, f"write a space after the colon: `{name}: ...`"
    return what, choices(key, sorted(known), "known here")


# Kind of pydantic's error -> what is wanted, and how to write it.
_WANTED = {
    "string_type": ("a text", "write a text"),
    "int_type": ("a whole number", "write one, such as 3"),
    "int_from_float": ("a whole number", "write one, such as 3"),
    "float_type": ("a number", "write one, such as 0.5"),
    "finite_number": ("a finite number", "write one, such as 0.5"),
    "bool_type": ("true or false", "write true or false"),
    "list_type": ("a list", "write [a, b, ...]"),
    "tuple_type": ("a list", "write [a, b]"),
    "dict_type": ("a mapping", "write {key: value, ...}"),
    "model_type": ("a mapping", ""),
    "model_attributes_type": ("a mapping", ""),
}
_RANGES = {
    "greater_than": ("gt", "give more than {}"),
    "greater_than_equal": ("ge", "give {} or more"),
    "less_than": ("lt", "give less than {}"),
    "less_than_equal": ("le", "give {} or less"),
}


def _explain(
    document: Document, data: Any, place: Place, details: ErrorDetails
) -> tuple[Place, str, str]:
    """One of pydantic's errors: its place, what is wrong, and the cure."""
    kind, given, context = details["type"], details["input"], details.get("ctx", {})
    if kind == "missing":
        name = details["loc"][-1]
        if isinstance(name, int):
            return place, f"no entry {name + 1} in the list", "add it"
        return place, f"missing key `{name}`", f"add `{name}: ...`"
    if kind == "extra_forbidden":
        return place, f"`{place[-1]}` does not go with the other keys here", "remove it"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        key = context["discriminator"].strip("'")
        known = re.findall(r"'([^']*)'", context.get("expected_tags", ""))
        if kind == "union_tag_not_found" or not known:
            known = _known_tags(place, data)
            return place, f"no {UNION_TAGS[key]}", f"add `{key}: ...`, one of: {listed(known)}"
        what = f"unknown {UNION_TAGS[key]} {shown(_at_place(data, (*place, key)))}"
        return (*place, key), what, choices(context["tag"], known)
    if kind in _WANTED:
        wanted, cure = _WANTED[kind]
        if kind.startswith("model"):
            cure = f"known here: {listed(_known_keys(place, data))}"
        if kind == "string_type" and isinstance(given, int | float):
            cure = f"quote it: '{shown(given)}'"
        if given is None and document.source.has_comment(document.place_in_file(place)):
            cure += "; quote a text that begins with #"
        return place, f"{shown(given)} in place of {wanted}", cure
    if kind in _RANGES:
        key, cure = _RANGES[kind]
        return place, f"{shown(given)} is out of range", cure.format(_plain(context[key]))
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", context["expected"])
        name = given if isinstance(given, str) else ""
        return place, f"unknown value {shown(given)}", choices(name, known)
    if kind == "string_pattern_mismatch":
        cure = _PATTERNS[context["pattern"]]
        if ":" in given:
            cure += "; write a space after the colon between key and value"
        return place, f"{shown(given)} is no name", cure
    if kind == "string_too_short":
        return place, "an empty text", "write one"
    if kind == "too_short":
        what = "1 entry" if context["actual_length"] else "no entry"
        return place, what, f"give {context['min_length']} or more"
    if kind == "too_long":
        what = f"more than {context['max_length']} entries"
        return place, what, f"give {context['max_length']}"
    if kind == "value_error":
        error = context["error"]
        inner = error.key.split(".") if isinstance(error, BadValue) and error.key else []
        return (*place, *inner), *in_two(error)
    return place, f"{shown(given)} is not possible here", excerpt(details["msg"])


def _plain(limit: float) -> str:
    return str(limit) if isinstance(limit, int) else f"{limit:g}"


def _at_place(data: Any, place: Place) -> Any:
    for step in place:
        data = data[step]
    return data


def _place_in_data(data: Any, loc: tuple[str | int, ...]) -> Place:
    """pydantic's location without what is no key of the file (names of union members, `[key]`)."""
    place: list[str | int] = []
    node = data
    for step in loc:
        is_key = isinstance(node, dict) and step in node
        if is_key or (isinstance(node, list) and isinstance(step, int) and step < len(node)):
            node = node[step]
            place.append(step)
    return tuple(place)


@cache
def _schema() -> dict[str, Any]:
    return Experiment.model_json_schema(by_alias=True)


def _known_keys(place: Place, data: Any) -> list[str]:
    """The keys that the schema knows at `place` of `data`."""
    nodes = _schema_at(place, data)
    return sorted({key for node in _resolved(*nodes) for key in node.get("properties", {})})


def _known_tags(place: Place, data: Any) -> list[str]:
    """What the schema knows the mapping at `place` of `data` to be."""
    nodes, _ = _schema_at(place, data)
    found = []
    while nodes:
        node = nodes.pop()
        found += node.get("discriminator", {}).get("mapping", {})
        nodes += [each for key in ("anyOf", "oneOf") for each in node.get(key, [])]
    return list(dict.fromkeys(found))


def _schema_at(place: Place, data: Any) -> tuple[list[dict[str, Any]], Any]:
    """The schema's nodes for `place` of `data`, references in them not followed; and its data."""
    nodes = [_schema()]
    for step in place:
        nodes = [child for node in _resolved(nodes, data) for child in _children(node, step)]
        data = data[step]
    return nodes, data


def _resolved(nodes: list[dict[str, Any]], data: Any) -> list[dict[str, Any]]:
    """What `nodes` refer to; where `data` says which of several it is, only that one."""
    found = []
    for node in nodes:
        if "$ref" in node:
            name = node["$ref"].rsplit("/", 1)[1]
            found += _resolved([_schema()["$defs"][name]], data)
        elif "discriminator" in node and isinstance(data, dict):
            mapping = node["discriminator"]["mapping"]
            tag = data.get(node["discriminator"]["propertyName"])
            tags = [tag] if isinstance(tag, str) and tag in mapping else list(mapping)
            found += _resolved([{"$ref": mapping[each]} for each in tags], data)
        elif "anyOf" in node or "oneOf" in node:
            found += _resolved(node.get("anyOf", []) + node.get("oneOf", []), data)
        else:
            found.append(node)
    return found


def _children(node: dict[str, Any], step: str | int) -> list[dict[str, Any]]:
    if step in node.get("properties", {}):
        return [node["properties"][step]]
    children = [node.get("additionalProperties"), node.get("items")]
    children += node.get("patternProperties", {}).values()
    return [child for child in children if isinstance(child, dict)]
