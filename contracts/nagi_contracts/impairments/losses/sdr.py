# SPDX-License-Identifier: Apache-2.0
"""Losses by a calibration table: the error rates of a radio's receiver (`nagi-sdr calibrate`)."""

from __future__ import annotations

import math
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from nagi_contracts.base import Contract, is_none
from nagi_contracts.calibration import CalibrationCurve
from nagi_contracts.errors import BadValue
from nagi_contracts.impairments.fading import (
    Fading,
    FadingPlan,
    RayleighFading,
    RicianFading,
    Shadowing,
    ShadowingPlan,
)
from nagi_contracts.impairments.losses.base import MODEL, LossPlanBase, LossSettings
from nagi_contracts.impairments.planning import Planning
from nagi_contracts.impairments.snr import SnrTrace, SnrTracePlan
from nagi_contracts.units import Level

_CERTAIN = 60.0  # the exponent E that stands for a certain loss, as in loss_table.cpp


class SdrCurvePlan(Contract):
    """Packet error rates of packets of one length."""

    packet_bytes: int
    snr_db: list[float] = Field(description="SNRs in dB, increasing")
    per: list[float] = Field(description="packet error rate at each SNR, not increasing")

    @classmethod
    def from_calibration(cls, curve: CalibrationCurve) -> SdrCurvePlan:
        """Return the plan of a calibrated curve, with error rates that never increase with SNR."""
        return cls(
            packet_bytes=curve.packet_bytes,
            snr_db=[cell.snr_db for cell in curve.cells],
            per=curve.packet_error_rates(),
        )

    def exponent(self, snr_db: float) -> float:
        """Interpolate the exponent E at an SNR; the probability of losing a packet is 1 - exp(-E).

        Outside the curve, return E at the nearest end of the curve. nagi-link (loss_table.hpp)
        stores E at 128 nodes per octave of SNR.
        """
        if snr_db <= self.snr_db[0]:
            return _to_exponent(self.per[0])
        if snr_db >= self.snr_db[-1]:
            return _to_exponent(self.per[-1])
        after = next(i for i, node_db in enumerate(self.snr_db) if node_db > snr_db)
        below_db, above_db = self.snr_db[after - 1], self.snr_db[after]
        per_below, per_above = self.per[after - 1], self.per[after]
        fraction = (snr_db - below_db) / (above_db - below_db)
        if per_below >= 1 or per_above <= 0:  # ln E is not finite
            return _to_exponent(per_below + fraction * (per_above - per_below))
        log_below, log_above = (math.log(_to_exponent(per)) for per in (per_below, per_above))
        return math.exp(log_below + fraction * (log_above - log_below))


def _to_exponent(per: float) -> float:
    return _CERTAIN if per >= 1 else min(_CERTAIN, -math.log1p(-per))


class SdrLossPlan(LossPlanBase):
    """Losses with the measured error rate of a radio's receiver at the SNR of the transmission."""

    model: Literal["sdr"] = "sdr"
    snr_db: float | None = Field(None, exclude_if=is_none)
    snr_trace: SnrTracePlan | None = Field(
        None, exclude_if=is_none, description="an SNR that changes; replaces snr_db"
    )
    fading: FadingPlan | None = Field(None, exclude_if=is_none)
    shadowing: ShadowingPlan | None = Field(None, exclude_if=is_none)
    curves: list[SdrCurvePlan] = Field(description="one curve per packet length, increasing")

    def loss_probability(self, size: int, overhead: int) -> float | None:
        """Interpolate the loss probability by packet size; return None if the SNR varies.

        The probability does not decrease with size. For packets longer than those of all curves,
        the exponent E is proportional to the size.
        """
        if self.snr_db is None or self.fading is not None or self.shadowing is not None:
            return None
        exponents: list[float] = []
        for curve in self.curves:
            exponents.append(max([curve.exponent(self.snr_db), *exponents[-1:]]))
        lengths = [curve.packet_bytes for curve in self.curves]
        if size <= lengths[0]:
            return -math.expm1(-exponents[0])
        if size >= lengths[-1]:
            return -math.expm1(-exponents[-1] * size / lengths[-1])
        after = next(i for i, length in enumerate(lengths) if length >= size)
        shorter, longer = lengths[after - 1], lengths[after]
        fraction = (size - shorter) / (longer - shorter)
        low, high = exponents[after - 1], exponents[after]
        return -math.expm1(-(low + fraction * (high - low)))

    def describe(self) -> str:
        snr = f"{self.snr_db:g} dB" if self.snr_trace is None else "along a trace"
        fading = ""
        if self.fading is not None:
            fading = f", {self.fading.kind.capitalize()} fading of {self.fading.doppler_hz:g} Hz"
        if self.shadowing is not None:
            fading += f", shadowing of {self.shadowing.deviation_db:g} dB"
        return f"a radio's receiver as calibrated, SNR {snr}{fading}"


class SdrLoss(LossSettings):
    """Losses with the measured error rate of a radio's receiver at the SNR of the transmission."""

    model: Literal["sdr"] = Field(description=MODEL)
    table: str = Field(
        min_length=1,
        description="path of a table of `nagi-sdr calibrate`, relative to the experiment file",
    )
    modem: str | None = Field(
        None, description="the table's modem, required if the table has several modes"
    )
    modulation: str | None = Field(
        None, description="the table's modulation, required if the table has several modes"
    )
    code_rate: str | None = Field(
        None, description="the table's code rate, required if the table has several modes"
    )
    snr: Level | None = Field(
        None, description="mean power of the signal / mean power of the noise, without fading"
    )
    snr_trace: SnrTrace | None = Field(None, description="an SNR that changes, in place of `snr`")
    fading: Fading | None = Field(
        None,
        description="flat fading, identical to the fading of a radio with the same seed and link; "
        "default: none",
    )
    shadowing: Shadowing | None = Field(None, description="default: none")

    @model_validator(mode="after")
    def _check_snr(self) -> Self:
        if self.snr is None and self.snr_trace is None:
            raise BadValue("no `snr` and no `snr_trace`", "give one of them, such as `snr: 12 dB`")
        if self.snr is not None and self.snr_trace is not None:
            raise BadValue("snr and snr_trace are both given", "remove one", "snr_trace")
        return self

    def to_plan(self, planning: Planning) -> SdrLossPlan:
        """Return the plan, with the curves of the mode that the settings select in the table.

        Raises:
            InputError: The table has no mode with these settings, or its longest packets are
                shorter than packets on the link.
        """
        mode = planning.read_calibrated_mode(
            self.table, self.modem, self.modulation, self.code_rate
        )
        longest = mode.curves[-1].packet_bytes
        if planning.packet_bytes is not None and planning.packet_bytes > longest:
            planning.refuse(
                f"packets of {planning.packet_bytes} bytes are longer than the table's longest"
                f" packets, {longest} bytes",
                f"calibrate with `--lengths ...,{planning.packet_bytes}`",
            )
        values: dict[str, Any] = {}
        if self.snr is not None:
            values["snr_db"] = self.snr.value
        else:
            assert self.snr_trace is not None
            values["snr_trace"] = planning.plan_snr_trace(self.snr_trace)
        if isinstance(self.fading, RayleighFading | RicianFading):
            values["fading"] = FadingPlan(
                kind=self.fading.kind,
                doppler_hz=self.fading.doppler.value,
                k_factor_db=self.fading.k_factor.value
                if isinstance(self.fading, RicianFading)
                else None,
            )
        if self.shadowing is not None:
            values["shadowing"] = self.shadowing.to_plan()
        curves = [SdrCurvePlan.from_calibration(curve) for curve in mode.curves]
        return SdrLossPlan(curves=curves, at=self.at, **values)
