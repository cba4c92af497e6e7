# SPDX-License-Identifier: Apache-2.0
"""Tables of `nagi-sdr calibrate`: packet error rates of a receiver over SNR and packet length."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from pydantic import Field, model_validator

from nagi_contracts.base import Contract
from nagi_contracts.errors import BadValue

# Share of packets received: a curve must begin below the first value and end above the last one.
RECEIVED_AT_FIRST, RECEIVED_AT_LAST = 0.1, 0.95


class CalibrationCell(Contract):
    """The numbers of packets sent at one SNR, and of packets lost, by cause."""

    snr_db: float = Field(description="mean power of the signal over that of the noise, per sample")
    packets: int = Field(ge=1)
    not_detected: int = Field(ge=0)
    header_errors: int = Field(ge=0)
    payload_errors: int = Field(ge=0)

    @property
    def lost(self) -> int:
        return self.not_detected + self.header_errors + self.payload_errors

    @model_validator(mode="after")
    def _check_counts(self) -> CalibrationCell:
        if self.lost > self.packets:
            raise ValueError(f"{self.lost} packets lost of {self.packets}")
        return self


class CalibrationCurve(Contract):
    """The packet error rates of one packet length over SNR."""

    packet_bytes: int = Field(ge=1, description="IP bytes")
    cells: list[CalibrationCell] = Field(min_length=2, description="by increasing SNR")

    @model_validator(mode="after")
    def _check_order(self) -> CalibrationCurve:
        snrs = [cell.snr_db for cell in self.cells]
        if any(later <= earlier for earlier, later in pairwise(snrs)):
            raise ValueError("SNRs that do not increase")
        return self

    def packet_error_rates(self) -> list[float]:
        """Return the packet error rate of each cell, made monotone in SNR.

        The method is that of pooled adjacent violators (Barlow et al., "Statistical inference under
        order restrictions", 1972): cells in which a higher SNR lost more packets are pooled.
        """
        pooled: list[tuple[int, int, int]] = []  # lost, packets, cells
        for cell in self.cells:
            lost, packets, count = cell.lost, cell.packets, 1
            while pooled and pooled[-1][0] * packets < lost * pooled[-1][1]:
                last = pooled.pop()
                lost, packets, count = lost + last[0], packets + last[1], count + last[2]
            pooled.append((lost, packets, count))
        return [lost / packets for lost, packets, count in pooled for _ in range(count)]


class CalibratedMode(Contract):
    """A modem with its settings, and the curves measured with them."""

    modem: str
    modulation: str
    code_rate: str
    digest: str = Field(
        description="SHA-256 of everything that determines what this modem sends and receives"
    )
    curves: list[CalibrationCurve] = Field(
        min_length=1, description="curves by increasing packet length"
    )

    @property
    def name(self) -> str:
        """The name of the mode for messages."""
        return f"{self.modem}, {self.modulation}, code rate {self.code_rate}"

    @model_validator(mode="after")
    def _check_order(self) -> CalibratedMode:
        lengths = [curve.packet_bytes for curve in self.curves]
        if any(later <= earlier for earlier, later in pairwise(lengths)):
            raise ValueError("lengths that do not increase")
        return self

    def check_range(self) -> None:
        """Check that each curve ranges from few received packets to nearly all.

        Beyond its ends a curve is constant, so a curve without these ends would be wrong there.

        Raises:
            BadValue: A curve does not cover this range.
        """
        for curve in self.curves:
            rates = curve.packet_error_rates()
            if rates[0] < 1 - RECEIVED_AT_FIRST or rates[-1] > 1 - RECEIVED_AT_LAST:
                raise BadValue(
                    f"{self.name}: packets of {curve.packet_bytes} bytes were lost at rates from"
                    f" {rates[0]:.3g} to {rates[-1]:.3g} only: not the whole curve",
                    "run `nagi-sdr calibrate` with this file again: it resumes where it ended",
                )


class CalibratedDevice(Contract):
    """The channel or device that the packets passed."""

    by: Literal["simulated", "uhd"] = Field(
        description="simulated: gr-nagi's channel, noise alone; uhd: devices on a cable"
    )
    name: str
    firmware: str | None = Field(None, description="null: the device has none")


class CalibrationSettings(Contract):
    """The settings that decide when a cell has enough packets."""

    seed: int
    precision: float = Field(
        description="half the 95 % confidence interval of a packet error rate, divided by the rate"
    )
    min_packets: int
    max_packets: int
    step_db: float = Field(
        description="difference between neighbouring SNRs where the curve is steep"
    )


class Calibration(Contract):
    """A table of `nagi-sdr calibrate`."""

    schema_version: Literal[1] = 1
    kind: Literal["calibration"] = "calibration"
    device: CalibratedDevice
    nagi: str = Field(description="version of nagi-sdr")
    gnuradio: str = Field(description="version of GNU Radio")
    date: str = Field(description="start of the calibration: ISO 8601, UTC")
    settings: CalibrationSettings
    finished: bool = Field(description="false: interrupted; the existing cells are valid")
    modes: list[CalibratedMode]

    def mode(
        self, modem: str | None, modulation: str | None, code_rate: str | None
    ) -> CalibratedMode:
        """Return the only mode with these settings, of which None matches any.

        Raises:
            BadValue: No mode matches, or several do.
        """
        settings = {"modem": modem, "modulation": modulation, "code_rate": code_rate}
        chosen = {key: value for key, value in settings.items() if value is not None}
        matches = [
            mode
            for mode in self.modes
            if all(value == getattr(mode, key) for key, value in chosen.items())
        ]
        if len(matches) == 1:
            return matches[0]
        names = "; ".join(mode.name for mode in self.modes) or "none"
        if not matches:
            request = ", ".join(f"{key} {value}" for key, value in chosen.items())
            raise BadValue(
                f"a table of another modem: it has {names}",
                f"calibrate {request}" if request else "run `nagi-sdr calibrate` to its end",
            )
        raise BadValue(
            f"the table has several modems: {names}", "give `modem`, `modulation` and `code_rate`"
        )
