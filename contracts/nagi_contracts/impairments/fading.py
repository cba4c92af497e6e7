# SPDX-License-Identifier: Apache-2.0
"""How the gain of a radio channel changes: settings of radios, and of losses by a radio's table."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from nagi_contracts.base import Contract, Strict, is_none
from nagi_contracts.errors import BadValue, choices, shown
from nagi_contracts.units import Decorrelation, DopplerSpread, Level, ShadowingDeviation


class FadingPlan(Contract):
    """Flat fading: each transmission has the SNR of its instant."""

    kind: Literal["rayleigh", "rician"]
    doppler_hz: float
    k_factor_db: float | None = Field(None, exclude_if=is_none)


class ShadowingPlan(Contract):
    """Log-normal shadowing."""

    deviation_db: float
    decorrelation_ns: int


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


class Shadowing(Strict):
    """Log-normal shadowing, whose correlation falls exponentially in time (Gudmundson 1991)."""

    deviation: ShadowingDeviation = Field(description="standard deviation of the gain")
    decorrelation: Decorrelation = Field(
        description="after which the correlation has fallen to 1/e: a distance over a speed"
    )

    def plan(self) -> ShadowingPlan:
        return ShadowingPlan(
            deviation_db=self.deviation.value, decorrelation_ns=self.decorrelation.value
        )
