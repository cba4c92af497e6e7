# SPDX-License-Identifier: Apache-2.0
"""What an impairment is told when it is planned."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol

from nagi_contracts.base import Strict
from nagi_contracts.calibration import CalibratedMode
from nagi_contracts.impairments.snr import SnrSteps, SnrTraceFile, SnrTracePlan
from nagi_contracts.units import Measure, Quantity, QueueSize, Share


@dataclass(frozen=True)
class RecordedOutcomes:
    """What became of the transmissions of a direction in a run."""

    lost: list[int]
    """Numbers of those that were lost, increasing."""
    length: int
    """How many transmissions there were."""
    steps: list[tuple[int, float]]
    """(instant in ns, 1: what began from then on was lost, or 0); the first at 0."""
    end_ns: int
    """When the last one was over."""
    traffic_ns: int | None
    """When that run's traffic began, if its plan is known."""

    def begun_at(self, traffic_ns: int) -> RecordedOutcomes:
        """The same, for traffic that begins at another instant: what starts first takes time."""
        if self.traffic_ns is None:
            return self
        later_ns = traffic_ns - self.traffic_ns
        steps = {
            max(0, at_ns + later_ns) if index else 0: lost
            for index, (at_ns, lost) in enumerate(self.steps)
        }
        return replace(
            self,
            steps=list(steps.items()),
            end_ns=self.end_ns + later_ns,
            traffic_ns=traffic_ns,
        )


class Planning(Protocol):
    """A direction of a link, and the file that describes it."""

    @property
    def constant_rate_bps(self) -> int | None:
        """None: unlimited, or it changes."""

    @property
    def changes_rate(self) -> str | None:
        """The setting by which the rate is not constant: rate_trace or burst; None: it is."""

    @property
    def packet_bytes(self) -> int | None:
        """IP bytes of a full-size packet of the flows that cross; None: none does."""

    def refuse(self, what: str, cure: str) -> NoReturn:
        """Raises InputError, naming file and line of the impairment."""

    def limit(self, size: QueueSize) -> tuple[int | None, int | None]:
        """A size of the queue, in packets or in bytes. Raises InputError."""

    def losses(self, file: str) -> tuple[list[int], int]:
        """What a loss trace says: the indices of lost packets, and how many packets there are.
        Raises InputError."""

    def outcomes(
        self, file: str, link: str | None, direction: str | None
    ) -> RecordedOutcomes | None:
        """What a record of transmissions says of a direction; None: the file is none. Raises
        InputError."""

    def calibrated(
        self, table: str, modem: str | None, modulation: str | None, code_rate: str | None
    ) -> CalibratedMode:
        """A modem of a table, which this version of nagi has. Raises InputError."""

    def snr_trace(self, trace: SnrTraceFile | SnrSteps) -> SnrTracePlan:
        """Raises InputError."""


# Reads a table of a distribution that the experiment names, in standard deviations. Raises
# InputError.
QuantileReader = Callable[[str], list[float]]

DEFAULT_PACKET = 1500  # IP bytes of a full-size packet, where no flow crosses


def plan_values(settings: Strict, *, without: Collection[str] = ()) -> dict[str, Any]:
    """The values of settings by the names they have in a plan, which end with the unit: target_ns.
    `without`: settings that are left out, as are those that are null."""
    values = {}
    for name in type(settings).model_fields.keys() - set(without):
        value = getattr(settings, name)
        if isinstance(value, Quantity | Measure | Share):
            values[name + value.suffix] = value.value
        elif value is not None:
            values[name] = value
    return values


def full_size(planning: Planning) -> int:
    return planning.packet_bytes or DEFAULT_PACKET
