# SPDX-License-Identifier: Apache-2.0
"""Chooses the packets that a calibration sends next, and stores the results in a table.

These are pure functions, without GNU Radio. nagi_contracts/calibration.py describes the table.

There is one curve per modem, settings of the modem, and packet length. A curve has one cell per
SNR. The choice of the next packets depends only on the counts so far, so an interrupted
calibration resumes with the same result:

1. *Range*: add SNRs 2 dB apart, until nearly all packets are lost at the lowest SNR, and none at
   the highest.
2. *Steps*: where the curve is not flat, add the SNR in the middle between two cells, until cells
   are `step_db` apart.
3. *Precision*: send more packets in each cell until half the 95 % confidence interval (Wilson,
   "Probable inference, the law of succession, and statistical inference", JASA 22, 1927) is at most
   `precision` times the loss rate, or the cell has `max_packets`. The cell of the lowest SNR
   without losses also gets more packets; if one of them is lost, a higher SNR is added.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from . import air_time
from .json_file import write_json

COARSE_DB = 2.0
FIRST_DB = 10.0
LOWEST_DB, HIGHEST_DB = -20.0, 60.0
ALL_LOST = 0.98  # loss rate from which on nearly all packets count as lost
BATCH = 50  # maximum number of packets that are sent before the next choice
RECEIVED, NOT_DETECTED, HEADER_ERROR, PAYLOAD_ERROR = range(4)
_CAUSES = ("not_detected", "header_errors", "payload_errors")
_DEVIATIONS = 1.959964  # standard deviations on each side that hold 95 % of a normal distribution


class TableError(Exception):
    """A table cannot be read or resumed. The message says what is wrong and what to do."""


@dataclass(frozen=True)
class CalibrationSettings:
    """The settings that determine which packets a calibration sends.

    Attributes:
        seed: Seed of the packets' contents and of the channel's noise.
        precision: Target of half the confidence interval, divided by the loss rate.
        min_packets: Packets that every cell gets.
        max_packets: Packets after which a cell gets no more.
        step_db: Distance in dB down to which SNRs are added.
    """

    seed: int = 1
    precision: float = 0.1
    min_packets: int = 100
    max_packets: int = 2000
    step_db: float = 0.5


@dataclass
class Cell:
    """Numbers of packets sent and lost at one SNR."""

    packets: int = 0
    causes: list[int] = field(default_factory=lambda: [0, 0, 0])
    """Number of lost packets by cause, in the order of _CAUSES."""

    @property
    def lost(self) -> int:
        return sum(self.causes)

    @property
    def rate(self) -> float:
        """Share of packets that were lost. The cell must have packets."""
        return self.lost / self.packets

    def add(self, outcome: int) -> None:
        """Count a packet. `outcome` is RECEIVED or a cause of its loss."""
        self.packets += 1
        if outcome != RECEIVED:
            self.causes[outcome - 1] += 1


@dataclass(frozen=True)
class Mode:
    """A modem with its settings."""

    modem: str
    modulation: str
    code_rate: str

    @property
    def name(self) -> str:
        return f"{self.modem}, {self.modulation}, code rate {self.code_rate}"

    @property
    def digest(self) -> str:
        """The digest of the modem's properties. Raises ValueError for unknown settings."""
        return air_time.compute_modem_digest(self.modem, self.modulation, self.code_rate)


Curve = dict[float, Cell]
"""Cells by SNR in dB."""

Carry = Callable[[int, list[bytes]], list[tuple[int, bytes]]]
"""A function that sends packets, given the number of the first packet and the packets. It returns
the outcome and the received bytes of each packet."""


def compute_half_interval(cell: Cell) -> float:
    """Return half the width of Wilson's 95 % confidence interval of a cell's loss rate."""
    n, p, z = cell.packets, cell.rate, _DEVIATIONS
    return z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))


def choose_next_batch(curve: Curve, settings: CalibrationSettings) -> tuple[float, int] | None:
    """Return the SNR in dB and the number of packets, at most BATCH, to send next.

    The result is None if the curve is finished.
    """
    for snr_db in sorted(curve):
        if curve[snr_db].packets < settings.min_packets:
            return _size_batch(curve, snr_db, settings.min_packets)
    new_snr = _choose_next_snr(curve, settings.step_db)
    if new_snr is not None:
        return _size_batch(curve, new_snr, settings.min_packets)
    without_losses = min((snr for snr, cell in curve.items() if not cell.lost), default=None)
    for snr_db in sorted(curve):
        cell = curve[snr_db]
        if cell.packets >= settings.max_packets or (not cell.lost and snr_db != without_losses):
            continue
        if not cell.lost or compute_half_interval(cell) > settings.precision * cell.rate:
            return _size_batch(curve, snr_db, settings.max_packets)
    return None


def _size_batch(curve: Curve, snr_db: float, packets: int) -> tuple[float, int]:
    sent = curve[snr_db].packets if snr_db in curve else 0
    return snr_db, min(BATCH, packets - sent)


def _choose_next_snr(curve: Curve, step_db: float) -> float | None:
    """Return the next SNR in dB that the curve needs, or None if it needs no more."""
    if not curve:
        return FIRST_DB
    snrs = sorted(curve)
    if curve[snrs[0]].rate < ALL_LOST and snrs[0] > LOWEST_DB:
        return snrs[0] - COARSE_DB
    if curve[snrs[-1]].lost and snrs[-1] < HIGHEST_DB:
        return snrs[-1] + COARSE_DB
    for low, high in pairwise(snrs):
        is_flat = curve[high].rate >= ALL_LOST or not curve[low].lost
        if not is_flat and high - low > step_db * 1.01:
            return (low + high) / 2
    return None


@dataclass
class Table:
    """All curves of a calibration, the settings, and the conditions of the measurement."""

    settings: CalibrationSettings
    provenance: dict[str, Any]
    """Values of the table's keys device, nagi, gnuradio and date."""
    curves: dict[tuple[Mode, int], Curve] = field(default_factory=dict)
    """Curves by mode and packet length in IP bytes."""

    def list_modes(self) -> Iterator[Mode]:
        """Yield each mode once, in the order of the curves."""
        yield from dict.fromkeys(mode for mode, _ in self.curves)

    def is_finished(self) -> bool:
        return all(
            choose_next_batch(curve, self.settings) is None for curve in self.curves.values()
        )

    def to_json(self) -> dict[str, Any]:
        """Return the table in the format of nagi_contracts/calibration.py.

        Curves are sorted by packet length, cells by SNR. Cells without packets are omitted.
        """
        return {
            "schema_version": 1,
            "kind": "calibration",
            **self.provenance,
            "settings": vars(self.settings),
            "finished": self.is_finished(),
            "modes": [
                {
                    **vars(mode),
                    "digest": mode.digest,
                    "curves": [
                        {
                            "packet_bytes": size,
                            "cells": [
                                {
                                    "snr_db": snr_db,
                                    "packets": curve[snr_db].packets,
                                    **dict(zip(_CAUSES, curve[snr_db].causes, strict=True)),
                                }
                                for snr_db in sorted(curve)
                                if curve[snr_db].packets
                            ],
                        }
                        for (owner, size), curve in sorted(
                            self.curves.items(), key=lambda item: item[0][1]
                        )
                        if owner == mode and curve
                    ],
                }
                for mode in self.list_modes()
            ],
        }

    def write(self, path: Path) -> None:
        write_json(path, self.to_json())


def _describe_origin(value: Any) -> str:
    """Return a value of a table's provenance, such as the device, as text for messages."""
    if isinstance(value, dict) and "name" in value:
        return ", ".join(str(value[key]) for key in ("name", "firmware") if value.get(key))
    return str(value)


def resume_from(path: Path, table: Table) -> None:
    """Add the cells and the date of an existing file to `table`; do nothing if there is no file.

    The file's curves replace those of `table` that have the same mode and packet length.

    Raises:
        TableError: The file is not a table; or it was measured with another device, version of nagi
            or GNU Radio, seed, `step_db` or modem.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise TableError(f"{path}: not a calibration table: {error}; name another file") from error
    try:
        provenance = {key: document[key] for key in table.provenance if key != "date"}
        for key, value in provenance.items():
            if value != table.provenance[key]:
                raise TableError(
                    f"{path}: made with {key} {_describe_origin(value)}, not"
                    f" {_describe_origin(table.provenance[key])}; name another file"
                )
        for key in ("seed", "step_db"):
            if document["settings"][key] != vars(table.settings)[key]:
                raise TableError(
                    f"{path}: made with {key} {document['settings'][key]}; give this value, or"
                    " name another file"
                )
        for item in document["modes"]:
            mode = Mode(item["modem"], item["modulation"], item["code_rate"])
            if item["digest"] != mode.digest:
                raise TableError(
                    f"{path}: the modem ({mode.name}) has changed since this table was made; name"
                    " another file"
                )
            for curve in item["curves"]:
                table.curves[mode, int(curve["packet_bytes"])] = {
                    float(cell["snr_db"]): Cell(
                        int(cell["packets"]), [int(cell[cause]) for cause in _CAUSES]
                    )
                    for cell in curve["cells"]
                }
        table.provenance["date"] = document["date"]
    except (KeyError, TypeError, ValueError) as error:
        raise TableError(
            f"{path}: not a calibration table: {error!r}; name another file"
        ) from error
