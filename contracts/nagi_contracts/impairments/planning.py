# SPDX-License-Identifier: Apache-2.0
"""The context in which the settings of an impairment are converted to a plan."""

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
    """The outcomes of the transmissions of one direction of a link, recorded in an earlier run."""

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
    """Start of the traffic in the earlier run; None if the plan of that run is unknown."""

    def shift_to(self, traffic_ns: int) -> RecordedOutcomes:
        """Return these outcomes, shifted in time for a run whose traffic begins at `traffic_ns`.

        Runs differ in the time that their programs need before the traffic can begin. If the start
        of the traffic in the earlier run is unknown, return the outcomes unchanged.

        If the shift moves steps to instant 0 or earlier, only the last of these steps remains, at
        instant 0. If the shift moves no step that far, the first step still begins at instant 0.
        """
        if self.traffic_ns is None:
            return self
        shift_ns = traffic_ns - self.traffic_ns
        steps = {
            max(0, at_ns + shift_ns) if index else 0: loss_share
            for index, (at_ns, loss_share) in enumerate(self.steps)
        }
        return replace(
            self,
            steps=list(steps.items()),
            end_ns=self.end_ns + shift_ns,
            traffic_ns=traffic_ns,
        )


class Planning(Protocol):
    """The direction of a link with the impairment, and access to files of the experiment.

    All methods raise InputError, with the file and the line of the impairment.
    """

    @property
    def constant_rate_bps(self) -> int | None:
        """The rate of the direction in bit/s; None if it is unlimited or changes."""

    @property
    def rate_changing_key(self) -> str | None:
        """The setting that makes the rate change: rate_trace or burst; None if it is constant."""

    @property
    def packet_bytes(self) -> int | None:
        """IP bytes of a full-size packet of the flows on the link; None if no flow uses it."""

    def refuse(self, message: str, cure: str) -> NoReturn:
        """Refuse the settings of the impairment."""

    def resolve_size(self, size: QueueSize) -> tuple[int | None, int | None]:
        """Return the size of a queue, or a threshold, as (packets, None) or (None, bytes).

        A multiple of the bandwidth-delay product is converted to packets.
        """

    def read_losses(self, file: str) -> tuple[list[int], int]:
        """Read a loss trace. Return the indices of lost packets, and the number of all packets."""

    def read_outcomes(
        self, file: str, link: str | None, direction: str | None
    ) -> RecordedOutcomes | None:
        """Read the outcomes of a link's transmissions in one direction from transmissions.parquet.

        `link` and `direction` may be None if the file has only one of them. Return None if the file
        is not in Parquet's format.
        """

    def read_calibrated_mode(
        self, table: str, modem: str | None, modulation: str | None, code_rate: str | None
    ) -> CalibratedMode:
        """Return the mode of a calibration table that has these settings; None matches all values.

        It is an error if the modem has changed since the calibration.
        """

    def plan_snr_trace(self, trace: SnrTraceFile | SnrSteps) -> SnrTracePlan:
        """Return the plan of an SNR that changes, from a file or from steps."""


# A function that reads a distribution table, given its path in the experiment file, and returns the
# quantiles in standard deviations. It raises InputError.
QuantileReader = Callable[[str], list[float]]

DEFAULT_PACKET = 1500  # IP bytes of a full-size packet on a link without flows


def plan_values(settings: Strict, *, without: Collection[str] = ()) -> dict[str, Any]:
    """Return name in the plan -> value, for all settings that are not null.

    The name in the plan is the name of the setting plus the unit, such as target_ns.

    Args:
        settings: The settings of an impairment or of an application.
        without: The names of settings to leave out.
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
    """Return the IP bytes of a full-size packet on the link, or 1500 if no flow uses the link."""
    return planning.packet_bytes or DEFAULT_PACKET
