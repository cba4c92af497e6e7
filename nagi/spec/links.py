# SPDX-License-Identifier: Apache-2.0
"""Define the settings of links, by direction: rates, delays, queues, losses, marking and ARQ."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from nagi_contracts.base import Flag, Strict, Whole
from nagi_contracts.bounds import get_integer_range
from nagi_contracts.errors import BadValue
from nagi_contracts.impairments.effects import Effects
from nagi_contracts.impairments.jitters import Jitter
from nagi_contracts.impairments.losses import Loss
from nagi_contracts.impairments.markings import Marking
from nagi_contracts.impairments.queues import Queue
from nagi_contracts.impairments.steps import Steps, make_steps_field
from nagi_contracts.plan import ETHERNET_MTU, DirectionName
from nagi_contracts.units import (
    Bitrate,
    Burst,
    ByteCount,
    Delay,
    Duration,
    Feedback,
    Overhead,
    StepRate,
)
from pydantic import Discriminator, Field, Tag, model_validator

from nagi.spec.backend_keys import (
    DIRECTION_KEYS,
    EMULATORS,
    LINK_KEYS,
    NODE_KINDS,
    SettingsT,
    add_fields,
    find_settings,
    make_optional_fields,
)
from nagi.spec.base import Name

MIN_RETRIES, MAX_RETRIES = get_integer_range("arq_retries")


class RateTraceFile(Strict):
    """A file with a rate that changes, see nagi/spec/traces.py."""

    file: str = Field(min_length=1, description="path of the trace, relative to this file")
    format: Literal["mahimahi", "steps"] = Field(description="format of the trace")


class DelayTraceFile(Strict):
    """A file with a delay that changes, see nagi/spec/traces.py."""

    file: str = Field(min_length=1, description="path of the trace, relative to this file")
    format: Literal["steps"] = Field("steps", description="format of the trace")


class RateSteps(Steps):
    """A piecewise-constant rate, from the start of the run."""

    steps: dict[Duration, StepRate] = make_steps_field("rate from then on; 0 b/s is an outage")

    @model_validator(mode="after")
    def _require_some_rate(self) -> RateSteps:
        if not any(rate.value for rate in self.steps.values()):
            raise BadValue("the rate is always 0", "give a step another rate", "steps")
        return self


class DelaySteps(Steps):
    """A piecewise-constant delay, from the start of the run."""

    steps: dict[Duration, Delay] = make_steps_field("delay from then on")


def _get_trace_tag(value: object) -> str:
    has_steps = "steps" in value if isinstance(value, dict) else isinstance(value, Steps)
    return "trace in place" if has_steps else "trace in a file"


RateTrace = Annotated[
    Annotated[RateTraceFile, Tag("trace in a file")] | Annotated[RateSteps, Tag("trace in place")],
    Discriminator(_get_trace_tag),
]
DelayTrace = Annotated[
    Annotated[DelayTraceFile, Tag("trace in a file")]
    | Annotated[DelaySteps, Tag("trace in place")],
    Discriminator(_get_trace_tag),
]


class Arq(Strict):
    """Automatic repeat request: the link retransmits packets that were lost in transmission."""

    retries: Whole = Field(
        ge=MIN_RETRIES,
        le=MAX_RETRIES,
        description="largest number of retransmissions of a packet",
    )
    feedback: Feedback = Field(
        description="time from the end of a lost transmission until its sender detects the loss"
    )


TRACES = {"rate_trace": "rate", "delay_trace": "delay"}
# Settings that exclude each other. A direction with either setting inherits neither from the link.
ALTERNATIVES = TRACES | {constant: trace for trace, constant in TRACES.items()}


_SHAPING_KINDS = [name for name, kind in NODE_KINDS.items() if kind.shapes_directions]
_SHAPED_BY = Field(
    None,
    description="what shapes rate, queue, marking and loss: the emulator if not given, or the "
    f"{' or '.join(_SHAPING_KINDS)} that sends into this direction. The emulator always adds the "
    "delay",
)


# With defer_build, pydantic does not build validators of base classes, so that nagi starts faster.
@add_fields({"shaped_by": (Literal[*_SHAPING_KINDS, "emulator"] | None, _SHAPED_BY)})
class DirectionSettings(Effects, defer_build=True):
    """Settings that a link can have for both directions, or for one direction."""

    rate: Bitrate | None = Field(
        None, description="rate of IP bytes; without a rate there is no queue"
    )
    burst: Burst | None = Field(
        None, description="size of a token bucket that fills at `rate`; this much can leave at once"
    )
    rate_trace: RateTrace | None = Field(None, description="a rate that changes, instead of `rate`")
    overhead: Overhead | None = Field(None, description="bytes of framing per packet on the link")
    delay: Delay | None = Field(None, description="propagation delay, one way")
    delay_trace: DelayTrace | None = Field(
        None, description="a delay that changes, instead of `delay`"
    )
    jitter: Jitter | None = Field(None, description="random addition to the delay of each packet")
    keep_order: Flag | None = Field(
        None, description="whether packets stay in order despite jitter; true if not given"
    )
    queue: Queue | None = Field(
        None, description="size of the queue; with a discipline, also how it schedules and drops"
    )
    mark: Marking | None = Field(None, description="ECN marking; none if not given")
    loss: Loss | None = Field(None, description="losses of the channel; none if not given")
    arq: Arq | None = Field(
        None,
        description="link-layer retransmission of packets that the link lost; without `arq`, only "
        "TCP retransmits",
    )
    shaped_by: str | None = None  # the kind of a node, or `emulator`

    @model_validator(mode="after")
    def _check_exclusive(self) -> Self:
        for trace, constant in TRACES.items():
            if getattr(self, trace) is not None and getattr(self, constant) is not None:
                raise BadValue(f"{constant} and {trace} are both given", "remove one", trace)
        if self.burst is not None and self.rate_trace is not None:
            raise BadValue("burst and rate_trace are both given", "remove one", "burst")
        return self

    @property
    def marks(self) -> bool:
        """True if the direction marks packets that support ECN."""
        return self.mark is not None or (self.queue is not None and self.queue.marks)


@add_fields(make_optional_fields(DIRECTION_KEYS))
class OneDirection(DirectionSettings):
    """Settings for one direction, which replace those of the link."""

    def find_settings(self, settings: type[SettingsT]) -> SettingsT | None:
        """Return the settings of a backend's class, such as RadioChannel; None if not given."""
        return find_settings(self, DIRECTION_KEYS, settings)


_EMULATOR = Field(
    next(iter(EMULATORS)),
    description="; ".join(f"{name}: {text}" for name, text in EMULATORS.items()),
)


@add_fields({"emulator": (Literal[*EMULATORS], _EMULATOR), **make_optional_fields(LINK_KEYS)})
class _BothDirections(DirectionSettings):
    """Settings of a link that hold for both directions."""

    between: tuple[Name, Name] = Field(
        description="the two nodes; forward is from the first to the second"
    )
    mtu: ByteCount | None = Field(
        None, description="MTU of the interfaces at both ends, in IP bytes; 1500 if not given"
    )
    emulator: str  # one of EMULATORS

    @property
    def mtu_bytes(self) -> int:
        return ETHERNET_MTU if self.mtu is None else self.mtu.value

    def find_settings(self, settings: type[SettingsT]) -> SettingsT | None:
        """Return the settings of a backend's class, such as Radio; None if not given."""
        return find_settings(self, LINK_KEYS, settings)


class Link(_BothDirections, defer_build=False):
    """A link between two nodes; forward is from the first to the second."""

    forward: OneDirection = Field(
        OneDirection(), description="settings from the first to the second node"
    )
    backward: OneDirection = Field(
        OneDirection(), description="settings from the second to the first node"
    )

    def get_own_settings(self, direction: DirectionName) -> OneDirection:
        """Return the settings under `forward` or `backward`, without those of the whole link."""
        return self.forward if direction == "forward" else self.backward

    def resolve_direction(self, direction: DirectionName) -> DirectionSettings:
        """Return the settings of one direction, including those that it inherits from the link."""
        return DirectionSettings(
            **{
                name: getattr(
                    self if self.inherits(direction, name) else getattr(self, direction), name
                )
                for name in DirectionSettings.model_fields
            }
        )

    def inherits(self, direction: DirectionName, name: str) -> bool:
        """Return whether a direction takes the value of the setting `name` from the link.

        It does so if it sets neither `name` nor the setting that excludes `name`: of `rate` and
        `rate_trace`, and of `delay` and `delay_trace`, a direction with either inherits neither.
        """
        own_settings = getattr(self, direction)
        alternative = ALTERNATIVES.get(name, name)
        return getattr(own_settings, name) is None and getattr(own_settings, alternative) is None
