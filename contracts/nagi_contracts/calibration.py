# SPDX-License-Identifier: Apache-2.0
"""Tables of `nagi-sdr calibrate`: packet error rates of a receiver over SNR and packet length."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from pydantic import Field, model_validator

from nagi_contracts.base import Contract
from nagi_contracts.errors import BadValue

# At the smallest SNR of a curve, at most the first share of packets may be received; at the largest
# SNR, at least the second share must be received.
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
                last = pooled.pop()
                lost, packets, count = lost + last[0], packets + last[1], count + last[2]
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
        """Check that each curve ranges from SNRs with few packets received to SNRs with nearly all.

        Below its smallest SNR and above its largest SNR, a curve is taken as constant, which is
        only correct if nearly all or nearly no packets are lost there.

        Raises:
            BadValue: A curve covers only part of this range.
        """
        for curve in self.curves:
            rates = curve.packet_error_rates()
            if rates[0] < 1 - RECEIVED_AT_FIRST or rates[-1] > 1 - RECEIVED_AT_LAST:
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
                f"a table of another modem, with these modes: {names}",
                f"calibrate {request}" if request else "run `nagi-sdr calibrate` to its end",
            )
        raise BadValue(
            f"the table has several modes: {names}", "give `modem`, `modulation` and `code_rate`"
        )
