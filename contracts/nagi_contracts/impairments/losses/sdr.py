# SPDX-License-Identifier: Apache-2.0
"""Losses of a radio's receiver, as `nagi-sdr calibrate` measured them."""

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

_CERTAIN = 60.0  # as an exponent, as in loss_table.cpp


class SdrCurvePlan(Contract):
    """Packet error rates of packets of one length."""

    packet_bytes: int
    snr_db: list[float] = Field(description="increasing")
    per: list[float] = Field(description="one each, not increasing")

    @classmethod
    def of(cls, curve: CalibrationCurve) -> SdrCurvePlan:
        """As it was measured."""
        return cls(
            packet_bytes=curve.packet_bytes,
            snr_db=[cell.snr_db for cell in curve.cells],
            per=curve.packet_error_rates(),
        )

    def exponent(self, snr_db: float) -> float:
        """E at an SNR: a packet is lost with probability 1 - exp(-E). See loss_table.hpp, which has
        its values at 128 nodes an octave."""
        if snr_db <= self.snr_db[0]:
            return _exponent_of(self.per[0])
        if snr_db >= self.snr_db[-1]:
            return _exponent_of(self.per[-1])
        after = next(i for i, each in enumerate(self.snr_db) if each > snr_db)
        low, high = self.per[after - 1], self.per[after]
        share = (snr_db - self.snr_db[after - 1]) / (self.snr_db[after] - self.snr_db[after - 1])
        if low >= 1 or high <= 0:
            return _exponent_of(low + share * (high - low))
        one, other = math.log(_exponent_of(low)), math.log(_exponent_of(high))
        return math.exp(one + share * (other - one))


def _exponent_of(per: float) -> float:
    return _CERTAIN if per >= 1 else min(_CERTAIN, -math.log1p(-per))


class SdrLossPlan(LossPlanBase):
    """A packet is lost at the rate that a radio's receiver had at the transmission's SNR."""

    model: Literal["sdr"] = "sdr"
    snr_db: float | None = Field(None, exclude_if=is_none)
    snr_trace: SnrTracePlan | None = Field(None, exclude_if=is_none, description="instead of it")
    fading: FadingPlan | None = Field(None, exclude_if=is_none)
    shadowing: ShadowingPlan | None = Field(None, exclude_if=is_none)
    curves: list[SdrCurvePlan] = Field(description="by increasing length")

    def loss_probability(self, size: int, overhead: int) -> float | None:
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
        share = (size - lengths[after - 1]) / (lengths[after] - lengths[after - 1])
        low, high = exponents[after - 1], exponents[after]
        return -math.expm1(-(low + share * (high - low)))

    def describe(self) -> str:
        snr = f"{self.snr_db:g} dB" if self.snr_trace is None else "along a trace"
        fading = ""
        if self.fading is not None:
            fading = f", {self.fading.kind.capitalize()} fading of {self.fading.doppler_hz:g} Hz"
        if self.shadowing is not None:
            fading += f", shadowing of {self.shadowing.deviation_db:g} dB"
        return f"a radio's receiver as calibrated, SNR {snr}{fading}"


class SdrLoss(LossSettings):
    """A packet is lost at the rate that a radio's receiver had at the transmission's SNR."""

    model: Literal["sdr"] = Field(description=MODEL)
    table: str = Field(min_length=1, description="of `nagi-sdr calibrate`; relative to this file")
    modem: str | None = Field(None, description="that must be the table's, or is one of its modems")
    modulation: str | None = Field(None, description="as modem")
    code_rate: str | None = Field(None, description="as modem")
    snr: Level | None = Field(
        None, description="mean power of the signal over that of the noise; without fading"
    )
    snr_trace: SnrTrace | None = Field(None, description="an SNR that changes, instead of `snr`")
    fading: Fading | None = Field(
        None, description="flat: that of a radio of the same seed and link; none if not given"
    )
    shadowing: Shadowing | None = Field(None, description="none if not given")

    @model_validator(mode="after")
    def _one_snr(self) -> Self:
        if self.snr is None and self.snr_trace is None:
            raise BadValue("no snr and no snr_trace", "give one, such as `snr: 12 dB`")
        if self.snr is not None and self.snr_trace is not None:
            raise BadValue("snr and snr_trace are both given", "remove one", "snr_trace")
        return self

    def plan(self, planning: Planning) -> SdrLossPlan:
        mode = planning.calibrated(self.table, self.modem, self.modulation, self.code_rate)
        longest = mode.curves[-1].packet_bytes
        if planning.packet_bytes is not None and planning.packet_bytes > longest:
            planning.refuse(
                f"packets of {planning.packet_bytes} bytes, longer than the table's"
                f" {longest} bytes",
                f"calibrate with `--lengths ...,{planning.packet_bytes}`",
            )
        values: dict[str, Any] = {}
        if self.snr is not None:
            values["snr_db"] = self.snr.value
        else:
            assert self.snr_trace is not None
            values["snr_trace"] = planning.snr_trace(self.snr_trace)
        if isinstance(self.fading, RayleighFading | RicianFading):
            values["fading"] = FadingPlan(
                kind=self.fading.kind,
                doppler_hz=self.fading.doppler.value,
                k_factor_db=self.fading.k_factor.value
                if isinstance(self.fading, RicianFading)
                else None,
            )
        if self.shadowing is not None:
            values["shadowing"] = self.shadowing.plan()
        return SdrLossPlan(curves=[*map(SdrCurvePlan.of, mode.curves)], at=self.at, **values)
