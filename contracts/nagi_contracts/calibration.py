# SPDX-License-Identifier: Apache-2.0
"""Tables of `nagi-sdr calibrate`: packet error rates of a receiver over SNR and packet length."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from pydantic import Field, model_validator

from nagi_contracts.base import Contract
from nagi_contracts.errors import BadValue

MAX_RECEIVED_AT_LOWEST_SNR = 0.1  # largest share of packets received at a curve's smallest SNR
MIN_RECEIVED_AT_HIGHEST_SNR = 0.95  # smallest share of packets received at its largest SNR


class CalibrationCell(Contract):
    """The numbers of packets sent at one SNR, and of packets lost, by cause."""

    snr_db: float = Field(description="mean power of the signal over that of the noise, per sample")
    packets: int = Field(ge=1)
    not_detected: int = Field(ge=0)
    header_errors: int = Field(ge=0)
    payload_errors: int = Field(ge=0)

    @property
    def lost(self) -> int:
        """The number of packets lost, by any cause."""
        return self.not_detected + self.header_errors + self.payload_errors

    @model_validator(mode="after")
    def _check_counts(self) -> CalibrationCell:
        if self.lost > self.packets:
            raise ValueError(f"{self.lost} packets lost of {self.packets}")
        return self


class CalibrationCurve(Contract):
    """The packet error rate over SNR, for packets of one length."""

    packet_bytes: int = Field(ge=1, description="IP bytes")
    cells: list[CalibrationCell] = Field(min_length=2, description="by increasing SNR")

    @model_validator(mode="after")
    def _check_order(self) -> CalibrationCurve:
        snrs = [cell.snr_db for cell in self.cells]
        if any(later <= earlier for earlier, later in pairwise(snrs)):
            raise ValueError("the SNRs do not increase")
        return self

    def packet_error_rates(self) -> list[float]:
        """Return the packet error rate of each cell, adjusted so that no rate increases with SNR.

        The method is pooling of adjacent violators (Barlow et al., "Statistical inference under
        order restrictions", 1972): neighbouring cells get their common mean rate if the cell with
        the higher SNR lost a larger share of its packets.
        """
        pooled: list[tuple[int, int, int]] = []  # packets lost, packets sent, number of cells
        for cell in self.cells:
            lost, packets, count = cell.lost, cell.packets, 1
            while pooled and pooled[-1][0] * packets < lost * pooled[-1][1]:
                previous = pooled.pop()
                lost += previous[0]
                packets += previous[1]
                count += previous[2]
            pooled.append((lost, packets, count))
        return [lost / packets for lost, packets, count in pooled for _ in range(count)]


class CalibratedMode(Contract):
    """A modem with its settings, and the curves that were measured with these settings."""

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
            raise ValueError("the packet lengths do not increase")
        return self

    def check_range(self) -> None:
        """Check that each curve begins with few packets received, and ends with few packets lost.

        Below the smallest SNR of a curve, its first error rate is used, and above the largest SNR
        its last error rate. This is only correct if nearly all packets are lost below, and nearly
        none above.

        Raises:
            BadValue: A curve begins at too large an SNR, or ends at too small an SNR.
        """
        for curve in self.curves:
            rates = curve.packet_error_rates()
            loses_most_first = rates[0] >= 1 - MAX_RECEIVED_AT_LOWEST_SNR
            loses_few_last = rates[-1] <= 1 - MIN_RECEIVED_AT_HIGHEST_SNR
            if not (loses_most_first and loses_few_last):
                raise BadValue(
                    f"{self.name}: the curve of {curve.packet_bytes}-byte packets is incomplete, it"
                    f" has error rates from {rates[0]:.3g} to {rates[-1]:.3g} only",
                    "run `nagi-sdr calibrate` with this file again, which continues it",
                )


class CalibratedDevice(Contract):
    """The channel or device that the packets passed."""

    by: Literal["simulated", "uhd"] = Field(
        description="simulated: gr-nagi's channel with noise only; uhd: devices joined by a cable"
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
    """A calibration table, which `nagi-sdr calibrate` writes."""

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
        """Return the only mode of the table with the given settings.

        Args:
            modem: The name of the modem; None matches every modem.
            modulation: The modulation; None matches every modulation.
            code_rate: The code rate; None matches every code rate.

        Raises:
            BadValue: No mode of the table matches, or several modes match.
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
                f"the table has no mode with {request}, only these modes: {names}"
                if request
                else "the table has no mode",
                f"calibrate {request}" if request else "run `nagi-sdr calibrate` to its end",
            )
        raise BadValue(
            f"the table has several modes: {names}", "give `modem`, `modulation` and `code_rate`"
        )
