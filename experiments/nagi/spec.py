# SPDX-License-Identifier: Apache-2.0
"""The experiment file: what it may say, and how it is read.

An experiment is a topology, flows over it, and a matrix of values to try. Wherever a value may
stand, `$axis` stands for the values of that axis of the matrix, one run after the other. A form
(`quick`) replaces parts of the file. Reading yields one validated `Experiment` for every point of
the matrix.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import ErrorDetails

from nagi.commands import FIELDS, Command
from nagi.contracts.records import Keep, Until
from nagi.contracts.results import metrics_of_results
from nagi.errors import InputError, Problem
from nagi.statements import Statement, check_axes
from nagi.traces import LATEST, problem_with_instant
from nagi.units import (
    Bitrate,
    ByteCount,
    DopplerSpread,
    Duration,
    FrequencyOffset,
    Level,
    PacketCount,
    PositiveDuration,
    QueueSize,
    SampleRate,
    Share,
    Sojourn,
    StepRate,
    Text,
)
from nagi.yaml_source import Place, Source, read_yaml

SCHEMA_VERSION = 1
LEAST_REPEATS = 3  # before the width of an interval is believed

# Names become parts of interface names, which Linux limits to 15 characters.
Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,10}$")]
Axis = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
LossPlace = Literal["ingress", "egress"]
_MODEL = "how losses are drawn"
_AT = "where packets are lost: before the queue (ingress), or after transmission (egress)"


class Strict(BaseModel):
    """A part of the file: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


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
    packet: ByteCount | None = Field(
        None, description="what a full-size packet is, in IP bytes; the flows' if not given"
    )
    at: LossPlace = Field("egress", description=_AT)

    @model_validator(mode="after")
    def _possible(self) -> PoissonLoss:
        if self.rate.value == 1:
            raise ValueError("no Poisson process loses every packet; give a rate below 1")
        return self


class BernoulliBitLoss(Strict):
    """Every bit is wrong with the same probability, independently; one wrong bit loses a packet."""

    model: Literal["bernoulli_bit"] = Field(description=_MODEL)
    rate: Share = Field(description="the bit error rate, below 1")
    at: LossPlace = Field("egress", description=_AT)

    @model_validator(mode="after")
    def _possible(self) -> BernoulliBitLoss:
        if self.rate.value == 1:
            raise ValueError("a bit error rate of 1 loses everything; give less, like 1e-6")
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
    half_width: Duration = Field(description="largest deviation from the delay")


class NormalJitter(Strict):
    """A normal distribution around 0."""

    distribution: Literal["normal"] = Field(description="distribution of the jitter")
    deviation: Duration = Field(description="standard deviation")


class ExponentialJitter(Strict):
    """An exponential distribution: always later."""

    distribution: Literal["exponential"] = Field(description="distribution of the jitter")
    mean: Duration = Field(description="mean of what is added to the delay")


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
                raise ValueError(problem)
            before = at
        return steps

    def _check_period(self, last: Duration) -> None:
        if self.period.value <= last.value:
            raise ValueError(f"repeats after {self.period}, before the step at {last}; give more")
        if self.period.value > LATEST.value:
            raise ValueError(f"repeats after {self.period}; give at most {LATEST}")


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
            raise ValueError("the rate is always 0; give one that is not")
        return self


class DelaySteps(Steps):
    """A piecewise-constant delay, from the start of the run."""

    steps: dict[Duration, Duration] = Field(
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

    threshold: QueueSize = Field(description="queue above which packets are marked")
    weight: Share = Field(
        Share(0.002), description="of a new value in the average, above 0; 1: the queue itself"
    )

    @model_validator(mode="after")
    def _possible(self) -> Mark:
        if self.weight.value == 0:
            raise ValueError("a weight of 0 never sees the queue; give more, like 0.002")
        return self


class Arq(Strict):
    """What was lost in transmission is sent again: automatic repeat request, on the link itself."""

    retries: int = Field(ge=1, le=100, description="transmissions of a packet beside the first")
    feedback: PositiveDuration = Field(
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
    if isinstance(value, str):
        raise ValueError(f"no fading {value!r}; write none, or {{kind: {value}, doppler: 5 Hz}}")
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
            raise ValueError(
                "not yet: this version of nagi has no radio hardware (UHD); write `by: simulated` "
                "or `by: virtual`"
            )
        return by

    @model_validator(mode="after")
    def _one_rate(self) -> Radio:
        if self.rate is None and self.sample_rate is None:
            raise ValueError("neither rate nor sample_rate; give one, such as `rate: 2 Mb/s`")
        if self.rate is not None and self.sample_rate is not None:
            raise ValueError("rate and sample_rate at once; remove one")
        return self


# Either of a pair, when given for a direction, replaces what the link has of both.
ALTERNATIVES = {"rate_trace": "rate", "delay_trace": "delay"}
ALTERNATIVES |= {constant: trace for trace, constant in ALTERNATIVES.items()}


class DirectionSettings(Strict):
    """What one direction of a link does. Given on the link itself, it holds for both directions."""

    rate: Bitrate | None = Field(None, description="of IP bytes; without it nothing queues")
    rate_trace: RateTrace | None = Field(None, description="a rate that changes, instead of `rate`")
    overhead: ByteCount | None = Field(None, description="framing a packet has on the link")
    delay: Duration | None = Field(None, description="propagation delay, one way")
    delay_trace: DelayTrace | None = Field(
        None, description="a delay that changes, instead of `delay`"
    )
    jitter: Jitter | None = Field(None, description="what is added to each packet's delay")
    keep_order: bool | None = Field(
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

    @field_validator("rate_trace", "delay_trace")
    @classmethod
    def _exclusive(cls, trace: object, info: ValidationInfo) -> object:
        constant = ALTERNATIVES[str(info.field_name)]
        if trace is not None and info.data.get(constant) is not None:
            raise ValueError(f"{constant} and {info.field_name} at once; remove one")
        return trace


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
    background: bool = Field(
        False,
        description="cross traffic: in tables of runs, but in no mean and no figure of them",
    )
    payload: ByteCount = Field(
        ByteCount(1000), description="payload bytes of a full-size segment (the MSS)"
    )
    start: Duration = Field(Duration(0), description="counted from the start of the traffic")
    port: int | None = Field(None, ge=1024, le=65535, description="5001 and up if not given")

    @field_validator("client", "server", "listen")
    @classmethod
    def _of_commands(cls, value: object, info: ValidationInfo) -> object:
        if value is not None and info.data.get("traffic") == "bulk":
            raise ValueError("traffic is bulk, which has none; write `traffic: command`")
        return value

    @model_validator(mode="after")
    def _possible(self) -> Flow:
        if self.traffic == "command" and self.client is None:
            raise ValueError("no client; write `client: [PROGRAM, ARGUMENT, ...]`")
        if not 88 <= self.payload.value <= 1448:
            raise ValueError(
                f"a payload of {self.payload} does not fit; give 88 to 1448 bytes (Ethernet's MTU)"
            )
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

    schema_version: Literal[1] = Field(description="version of this format")
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")] = Field(
        description="names the directory of results; lower-case letters, digits, hyphens"
    )
    title: str = Field(description="title of the report")
    reference: str = Field("", description="where the experiment comes from")
    seed: int = Field(ge=0, lt=2**63, description="every random draw follows from it")
    repeats: int = Field(1, ge=1, le=1000, description="of each point; with `until`, the least")
    until: Until | None = Field(
        None, description="repeat each point until the interval of a metric is narrow enough"
    )
    keep: Keep = Field(Keep(), description="what is kept of each run's files")
    host_profile: str = Field("linux", description="a name from hosts/profiles.yaml")
    max_window: PacketCount | None = Field(
        None, description="cap of every sender's congestion window, as ns-2's `window_`"
    )
    ecn: bool | None = Field(
        None, description="whether hosts ask for ECN; if not said, they do where a link marks"
    )
    parameters: dict[str, dict[str, int]] = Field(
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
            raise ValueError(f"a duration of {self.duration} is too short; give 1 s or more")
        if self.duration.value > 24 * 3600 * 10**9:
            raise ValueError(f"a duration of {self.duration} is too long; give 24 h or less")
        if self.warmup.value >= self.duration.value:
            raise ValueError(
                f"a warm-up of {self.warmup} leaves nothing of {self.duration}; shorten it"
            )
        if self.until is not None:
            self._check_until(self.until)
        return self

    def _check_until(self, until: Until) -> None:
        if until.metric not in metrics_of_results():
            known = ", ".join(metrics_of_results())
            raise ValueError(f"until: there is no metric {until.metric!r}; one of: {known}")
        if self.repeats < LEAST_REPEATS:
            raise ValueError(
                f"until with repeats: {self.repeats}, and so few agree by chance; "
                f"write `repeats: {LEAST_REPEATS}` or more, the least there are to be"
            )
        if until.at_most < self.repeats:
            raise ValueError(
                f"until: at_most {until.at_most} is less than repeats, {self.repeats}; "
                "raise at_most"
            )


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
    data: dict[str, Any]
    origin: Mapping[Place, Place]

    def place_in_file(self, place: Place) -> Place:
        """Where the file has what stands at `place`."""
        found = place
        while found and found not in self.origin:
            found = found[:-1]
        return (*self.origin.get(found, ()), *place[len(found) :])

    def problem(self, place: Place, what: str, cure: str) -> Problem:
        """A problem with what stands at `place`, named by its place in the file."""
        return self.source.problem(self.place_in_file(place), what, cure)

    def error(self, place: Place, what: str, cure: str) -> InputError:
        return InputError(self.problem(place, what, cure))

    def beside(self, name: str) -> Path:
        """The path of a file that the experiment file names, relative to itself."""
        return Path(self.source.file).parent / name


def read_experiment(path: Path, form: str | None) -> list[Point]:
    """All points of the experiment in `path`, in its form `form` (None: as it stands).

    Raises InputError naming file, line and key of everything that is wrong.
    """
    source = read_yaml(path)
    document = _with_form(source, form)
    points = []
    problems: dict[str, Problem] = {}
    used: set[str] = set()
    for values, concrete in _expand(document, used):
        try:
            experiment = Experiment.model_validate(concrete.data)
        except ValidationError as error:
            for details in error.errors():
                problem = _problem(concrete, details)
                problems[str(problem)] = problem
        else:
            points.append(Point(values, experiment, concrete))
    if problems:
        raise InputError(*problems.values())
    for axis in document.data["matrix"]:
        if axis not in used:
            raise document.error(
                ("matrix", axis), "this axis is used nowhere", f"write ${axis} where its values go"
            )
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
    origin: dict[Place, Place] = {place: place for place in source.lines}
    data = {key: value for key, value in source.data.items() if key != "forms"}
    forms = source.data.get("forms", {})
    if not isinstance(forms, dict):
        raise source.error(("forms",), "not a mapping of forms", "write `forms: {quick: {...}}`")
    for name, parts in forms.items():
        if not isinstance(parts, dict):
            raise source.error(("forms", name), "not a mapping", "write the keys that it replaces")
    if form is None:
        return Document(source, data, origin)
    if form not in forms:
        known = ", ".join(forms) or "none"
        raise source.error(("forms",), f"there is no form {form!r}", f"forms of this file: {known}")
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
    for replaced in [known for known in origin if known[: len(place)] == place]:
        del origin[replaced]
    origin[place] = over_place
    return over


def _expand(document: Document, used: set[str]) -> Iterator[tuple[dict[str, str], Document]]:
    """The document at every point of its matrix, with `$axis` replaced; notes the axes `used`."""
    matrix = document.data.get("matrix")
    if not isinstance(matrix, dict) or not matrix:
        raise document.error(("matrix",), "no matrix", "write `matrix: {scheme: [...], ...}`")
    for axis, values in matrix.items():
        if not isinstance(values, list) or not values:
            raise document.error(("matrix", axis), "not a list of values", "write [a, b, ...]")
        texts = [_text(value) for value in values]
        for index, text in enumerate(texts):
            if text in texts[:index]:
                raise document.error(
                    ("matrix", axis, index), f"{text} is named twice", "remove one"
                )
    rest = {key: value for key, value in document.data.items() if key != "matrix"}
    for indices in itertools.product(*(range(len(values)) for values in matrix.values())):
        chosen = dict(zip(matrix, indices, strict=True))
        origin = dict(document.origin)
        data = _substitute(rest, (), document, chosen, origin, used)
        yield (
            {axis: _text(matrix[axis][index]) for axis, index in chosen.items()},
            Document(document.source, {**data, "matrix": matrix}, origin),
        )


def _text(value: Any) -> str:
    """A value of an axis as the file has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _substitute(
    node: Any,
    place: Place,
    document: Document,
    chosen: dict[str, int],
    origin: dict[Place, Place],
    used: set[str],
) -> Any:
    if isinstance(node, dict):
        return {
            key: _substitute(value, (*place, key), document, chosen, origin, used)
            for key, value in node.items()
        }
    if isinstance(node, list):
        return [
            _substitute(value, (*place, index), document, chosen, origin, used)
            for index, value in enumerate(node)
        ]
    if not isinstance(node, str) or not node.startswith("$"):
        return node
    axis = node[1:]
    if axis not in chosen:
        known = ", ".join(f"${name}" for name in chosen)
        raise document.error(place, f"there is no axis {node} in the matrix", f"axes: {known}")
    used.add(axis)
    origin[place] = document.place_in_file(("matrix", axis, chosen[axis]))
    return document.data["matrix"][axis][chosen[axis]]


def _check_report(point: Point) -> None:
    settings = point.experiment.report
    for key in ("x", "series", "panels"):
        axis = getattr(settings, key)
        if axis is not None and axis not in point.values:
            known = ", ".join(point.values)
            raise point.document.error(
                ("report", key), f"there is no axis {axis} in the matrix", f"one of: {known}"
            )
    problems = [
        point.document.problem(("report", "statements", *place), what, cure)
        for place, what, cure in check_axes(
            settings.statements, settings.x, _values_of_all_forms(point.document)
        )
    ]
    if problems:
        raise InputError(*problems)


def _check_campaign(points: list[Point]) -> None:
    """What holds for the whole campaign is the same at every point."""
    for key in ("keep", "until"):
        first = getattr(points[0].experiment, key)
        if any(getattr(point.experiment, key) != first for point in points):
            raise points[0].document.error(
                (key,), "differs from point to point", "give values, not axes of the matrix"
            )


def _values_of_all_forms(document: Document) -> dict[str, list[str]]:
    """Every value that an axis has in the file or in one of its forms, as texts."""
    data = document.source.data
    matrices = [
        document.data["matrix"],
        data.get("matrix"),
        *(form.get("matrix") for form in data.get("forms", {}).values()),
    ]
    found: dict[str, list[str]] = {axis: [] for axis in document.data["matrix"]}
    for matrix in matrices:
        for axis, values in matrix.items() if isinstance(matrix, dict) else ():
            if axis in found and isinstance(values, list):
                found[axis] += [_text(value) for value in values]
    return {axis: list(dict.fromkeys(values)) for axis, values in found.items()}


def _problem(document: Document, details: ErrorDetails) -> Problem:
    """One of pydantic's errors in our words."""
    kind = details["type"]
    place = _place_in_data(document.data, details["loc"])
    if kind == "missing":
        name = details["loc"][-1]
        return document.problem(place, f"missing key {name!r}", f"add `{name}: ...`")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        context = details["ctx"]
        key = context["discriminator"].strip("'")
        if kind == "union_tag_not_found":
            return document.problem(place, f"no {UNION_TAGS[key]}", f"write {{{key}: ...}}")
        known = context["expected_tags"].replace("'", "")
        what = f"unknown {UNION_TAGS[key]} {context['tag']!r}"
        return document.problem(place, what, f"one of: {known}")
    if kind == "extra_forbidden":
        known = ", ".join(_known_keys(place[:-1], document.data)) or "none"
        return document.problem(place, "unknown key", f"known here: {known}")
    if kind in ("model_type", "model_attributes_type"):
        known = ", ".join(_known_keys(place, document.data))
        return document.problem(place, "not a mapping", f"known here: {known}")
    message = details["msg"].removeprefix("Value error, ")
    if kind == "value_error" and "; " in message:
        what, cure = message.split("; ", 1)
        return document.problem(place, what, cure)
    what = (
        f"{details['input']!r} is not possible here"
        if not isinstance(details["input"], dict)
        else "is not possible"
    )
    return document.problem(place, what, message[0].lower() + message[1:])


def _place_in_data(data: Any, loc: tuple[str | int, ...]) -> Place:
    """pydantic's location without what is no key of the file (names of union members, `[key]`)."""
    place: list[str | int] = []
    node = data
    for step in loc:
        try:
            node = node[step]
        except (KeyError, IndexError, TypeError):
            continue
        place.append(step)
    return tuple(place)


@cache
def _schema() -> dict[str, Any]:
    return Experiment.model_json_schema(by_alias=True)


def _known_keys(place: Place, data: Any) -> list[str]:
    """The keys that the schema knows at `place` of `data`."""
    nodes = _resolved([_schema()], data)
    for step in place:
        data = data[step]
        nodes = _resolved([child for node in nodes for child in _children(node, step)], data)
    return sorted({key for node in nodes for key in node.get("properties", {})})


def _resolved(nodes: list[dict[str, Any]], data: Any) -> list[dict[str, Any]]:
    """What `nodes` refer to; where `data` says which of several it is, only that one."""
    found = []
    for node in nodes:
        if "$ref" in node:
            name = node["$ref"].rsplit("/", 1)[1]
            found += _resolved([_schema()["$defs"][name]], data)
        elif "discriminator" in node and isinstance(data, dict):
            tag = data.get(node["discriminator"]["propertyName"])
            found += _resolved([{"$ref": node["discriminator"]["mapping"][tag]}], data)
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
