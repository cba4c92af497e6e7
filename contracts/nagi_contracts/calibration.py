# SPDX-License-Identifier: Apache-2.0
"""Tables of `nagi-sdr calibrate`: packet error rates of a receiver over SNR and packet length."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from pydantic import Field, model_validator

from nagi_contracts.base import Contract
from nagi_contracts.errors import BadValue

RECEIVED_AT_FIRST, RECEIVED_AT_LAST = 0.1, 0.95  # what a curve must reach from and to, as shares


class CalibrationCell(Contract):
    """Packets sent at one SNR, and those that were lost, by cause."""

    snr_db: float = Field(description="mean power of the signal over that of the noise, a sample")
    packets: int = Field(ge=1)
    not_detected: int = Field(ge=0)
    header_errors: int = Field(ge=0)
    payload_errors: int = Field(ge=0)

    @property
    def lost(self) -> int:
        return self.not_detected + self.header_errors + self.payload_errors

    @model_validator(mode="after")
    def _possible(self) -> CalibrationCell:
        if self.lost > self.packets:
            raise ValueError(f"{self.lost} packets lost of {self.packets}")
        return self


class CalibrationCurve(Contract):
    """Packets of one length."""

    packet_bytes: int = Field(ge=1, description="IP bytes")
    cells: list[CalibrationCell] = Field(min_length=2, description="by increasing SNR")

    @model_validator(mode="after")
    def _in_order(self) -> CalibrationCurve:
        snrs = [cell.snr_db for cell in self.cells]
        if any(later <= before for before, later in pairwise(snrs)):
            raise ValueError("SNRs that do not increase")
        return self

    def packet_error_rates(self) -> list[float]:
        """Of each cell; monotone, by the method of pooled adjacent violators (Barlow et al.,
        "Statistical inference under order restrictions", 1972): where a higher SNR lost more, the
        cells count together."""
        pooled: list[tuple[int, int, int]] = []  # lost, packets, cells
        for cell in self.cells:
            lost, packets, count = cell.lost, cell.packets, 1
            while pooled and pooled[-1][0] * packets < lost * pooled[-1][1]:
                before = pooled.pop()
                lost, packets, count = lost + before[0], packets + before[1], count + before[2]
            pooled.append((lost, packets, count))
        return [lost / packets for lost, packets, count in pooled for _ in range(count)]


class CalibratedMode(Contract):
    """A modem with its settings."""

    modem: str
    modulation: str
    code_rate: str
    digest: str = Field(
        description="SHA-256 of all that decides what this modem sends and receives"
    )
    curves: list[CalibrationCurve] = Field(min_length=1, description="by increasing length")

    @property
    def name(self) -> str:
        return f"{self.modem}, {self.modulation}, code rate {self.code_rate}"

    @model_validator(mode="after")
    def _in_order(self) -> CalibratedMode:
        lengths = [curve.packet_bytes for curve in self.curves]
        if any(later <= before for before, later in pairwise(lengths)):
            raise ValueError("lengths that do not increase")
        return self

    def check_range(self) -> None:
        """Raises BadValue unless each curve goes from where hardly a packet arrives to where nearly
        all do: beyond its ends a curve is constant."""
        for curve in self.curves:
            rates = curve.packet_error_rates()
            if rates[0] < 1 - RECEIVED_AT_FIRST or rates[-1] > 1 - RECEIVED_AT_LAST:
                raise BadValue(
                    f"{self.name}: packets of {curve.packet_bytes} bytes were lost at rates from"
                    f" {rates[0]:.3g} to {rates[-1]:.3g} only: not the whole curve",
                    "run `nagi-sdr calibrate` with this file again: it goes on where it ended",
                )


class CalibratedDevice(Contract):
    """What the packets went through."""

    by: Literal["simulated", "uhd"] = Field(
        description="simulated: gr-nagi's channel, noise alone; uhd: devices on a cable"
    )
    name: str
    firmware: str | None = Field(None, description="null: the device has none")


class CalibrationSettings(Contract):
    """When a cell has enough packets."""

    seed: int
    precision: float = Field(
        description="half the 95 % confidence interval of a packet error rate, over the rate"
    )
    min_packets: int
    max_packets: int
    step_db: float = Field(description="between neighbouring SNRs where the curve is steep")


class Calibration(Contract):
    """A table of `nagi-sdr calibrate`."""

    schema_version: Literal[1] = 1
    kind: Literal["calibration"] = "calibration"
    device: CalibratedDevice
    nagi: str = Field(description="version of nagi-sdr")
    gnuradio: str = Field(description="version of GNU Radio")
    date: str = Field(description="of the beginning, ISO 8601, UTC")
    settings: CalibrationSettings
    finished: bool = Field(description="false: interrupted; the cells that there are hold")
    modes: list[CalibratedMode]

    def mode(
        self, modem: str | None, modulation: str | None, code_rate: str | None
    ) -> CalibratedMode:
        """The one that has these settings; None: any. Raises BadValue if it is none or not one."""
        asked = {"modem": modem, "modulation": modulation, "code_rate": code_rate}
        found = [
            mode
            for mode in self.modes
            if all(value in (None, getattr(mode, key)) for key, value in asked.items())
        ]
        if len(found) == 1:
            return found[0]
        known = "; ".join(mode.name for mode in self.modes) or "none"
        wanted = ", ".join(f"{key} {value}" for key, value in asked.items() if value is not None)
        if not found:
            raise BadValue(
                f"a table of another modem: it has {known}",
                f"calibrate {wanted}" if wanted else "run `nagi-sdr calibrate` to its end",
            )
        raise BadValue(
            f"the table has several modems: {known}", "give `modem`, `modulation` and `code_rate`"
        )
