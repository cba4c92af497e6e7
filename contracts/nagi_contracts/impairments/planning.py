# SPDX-License-Identifier: Apache-2.0
"""The context that an impairment's settings need to become a plan."""

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
    """The recorded outcomes of the transmissions of a direction in a run."""

    lost: list[int]
    """Numbers of the lost transmissions, increasing."""
    length: int
    """Number of transmissions."""
    steps: list[tuple[int, float]]
    """(instant in ns, 1 if transmissions that begin from then on were lost, else 0); the first
    instant is 0."""
    end_ns: int
    """End of the last transmission."""
    traffic_ns: int | None
    """Start of that run's traffic; None if its plan is unknown."""

    def shift_to(self, traffic_ns: int) -> RecordedOutcomes:
        """Return these outcomes, shifted in time for traffic that begins at `traffic_ns`.

        Runs differ in the time that their programs need before traffic can begin.
        """
        if self.traffic_ns is None:
            return self
        shift_ns = traffic_ns - self.traffic_ns
        steps = {
            max(0, at_ns + shift_ns) if index else 0: lost
            for index, (at_ns, lost) in enumerate(self.steps)
        }
        return replace(
            self,
            steps=list(steps.items()),
            end_ns=self.end_ns + shift_ns,
            traffic_ns=traffic_ns,
        )


class Planning(Protocol):
    """The direction of a link that has the impairment, and the experiment file that describes it.

    All methods raise InputError, with file and line of the impairment.
    """

    @property
    def constant_rate_bps(self) -> int | None:
        """The rate in bit/s; None if it is unlimited or changes."""

    @property
    def changes_rate(self) -> str | None:
        """The setting that changes the rate, rate_trace or burst; None if it is constant."""

    @property
    def packet_bytes(self) -> int | None:
        """IP bytes of a full-size packet of the flows on the link; None if no flow uses it."""

    def refuse(self, message: str, cure: str) -> NoReturn:
        """Refuse the settings of the impairment."""

    def resolve_size(self, size: QueueSize) -> tuple[int | None, int | None]:
        """Return a size of the queue as (packets, None) or (None, bytes)."""

    def read_losses(self, file: str) -> tuple[list[int], int]:
        """Read a loss trace: the indices of lost packets, and the number of all packets."""

    def read_outcomes(
        self, file: str, link: str | None, direction: str | None
    ) -> RecordedOutcomes | None:
        """Read a record of the transmissions of a direction; None if the file is no such record."""

    def read_calibrated_mode(
        self, table: str, modem: str | None, modulation: str | None, code_rate: str | None
    ) -> CalibratedMode:
        """Read from a calibration table a mode whose modem this version of nagi has."""

    def plan_snr_trace(self, trace: SnrTraceFile | SnrSteps) -> SnrTracePlan:
        """Return the plan of an SNR that changes, from a file or from steps."""


# Reads the distribution table that the experiment names, in standard deviations. Raises InputError.
QuantileReader = Callable[[str], list[float]]

DEFAULT_PACKET = 1500  # IP bytes of a full-size packet on a link without flows


def plan_values(settings: Strict, *, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the values of settings by their names in a plan, which end with the unit: target_ns.

    Args:
        settings: The settings of an impairment or application.
        without: The settings to leave out; null settings are always left out.
    """
    values = {}
    for name in type(settings).model_fields.keys() - set(without):
        value = getattr(settings, name)
        if isinstance(value, Quantity | Measure | Share):
            values[name + value.suffix] = value.value
        elif value is not None:
            values[name] = value
    return values


def get_full_size(planning: Planning) -> int:
    """Return the IP bytes of a full-size packet on the link, or 1500 without flows."""
    return planning.packet_bytes or DEFAULT_PACKET
