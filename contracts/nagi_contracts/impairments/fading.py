# SPDX-License-Identifier: Apache-2.0
"""Fading and shadowing of radio channels, for radios and for the loss model `sdr`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from nagi_contracts.base import Contract, Strict, is_none
from nagi_contracts.errors import BadValue, format_value, suggest
from nagi_contracts.units import Decorrelation, DopplerSpread, Level, ShadowingDeviation


class FadingPlan(Contract):
    """Flat fading. The SNR at the begin of a transmission applies to the whole transmission."""

    kind: Literal["rayleigh", "rician"]
    doppler_hz: float
    k_factor_db: float | None = Field(None, exclude_if=is_none)


class ShadowingPlan(Contract):
    """Log-normal shadowing."""

    deviation_db: float
    decorrelation_ns: int


class NoFading(Strict):
    """A channel whose gain does not change."""

    kind: Literal["none"] = Field(description="kind of fading")


class RayleighFading(Strict):
    """Fading without line of sight: a complex Gaussian gain with Clarke's Doppler spectrum."""

    kind: Literal["rayleigh"] = Field(description="kind of fading")
    doppler: DopplerSpread = Field(description="the largest Doppler shift")


class RicianFading(Strict):
    """Rayleigh fading plus a line of sight."""

    kind: Literal["rician"] = Field(description="kind of fading")
    doppler: DopplerSpread = Field(description="the largest Doppler shift")
    k_factor: Level = Field(description="power of the line of sight / power of all other paths")


_FADINGS = Annotated[NoFading | RayleighFading | RicianFading, Field(discriminator="kind")]


def _complete_fading(value: object) -> object:
    """Return the mapping for `none`, and values that are not names unchanged.

    Raises:
        BadValue: The value is another name: of fading that needs settings, or unknown.
    """
    if value == "none":
        return {"kind": "none"}
    examples = {"rayleigh": "", "rician": ", k_factor: 6 dB"}  # kind -> keys besides doppler
    if isinstance(value, str) and value in examples:
        cure = f"write `{{kind: {value}, doppler: 5 Hz{examples[value]}}}`"
        raise BadValue(f"fading {value} without its settings", cure)
    if isinstance(value, str):
        raise BadValue(f"unknown fading {format_value(value)}", suggest(value, ["none", *examples]))
    return value


Fading = Annotated[
    _FADINGS, BeforeValidator(_complete_fading, json_schema_input_type=Literal["none"] | _FADINGS)
]


class Shadowing(Strict):
    """Log-normal shadowing with an exponential correlation in time (Gudmundson 1991)."""

    deviation: ShadowingDeviation = Field(description="standard deviation of the gain")
    decorrelation: Decorrelation = Field(
        description="time in which the correlation falls to 1/e: a distance divided by a speed"
    )

    def to_plan(self) -> ShadowingPlan:
        return ShadowingPlan(
            deviation_db=self.deviation.value, decorrelation_ns=self.decorrelation.value
        )
