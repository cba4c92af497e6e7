# SPDX-License-Identifier: Apache-2.0
"""Which packets a calibration sends next, and the table that it makes: pure functions, without GNU
Radio. nagi_contracts/calibration.py describes the table.

Each curve (a modem with its settings, a length of packets) has cells, one an SNR. What is sent next
follows from the counts alone, so that a calibration that was interrupted goes on as if it had not
been:

1. *Range*: SNRs 2 dB apart, until the lowest loses nearly all packets and the highest none.
2. *Steps*: the middle between two cells is added until they are `step_db` apart, where the curve is
   not flat.
3. *Precision*: each cell gets more packets until half the 95 % confidence interval (Wilson,
   "Probable inference, the law of succession, and statistical inference", JASA 22, 1927) is at most
   `precision` times the rate, or there are `max_packets`. So does the lowest cell without losses:
   if one comes, a higher SNR is added.
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
ALL_LOST = 0.98
BATCH = 50
RECEIVED, NOT_DETECTED, HEADER_ERROR, PAYLOAD_ERROR = range(4)
_CAUSES = ("not_detected", "header_errors", "payload_errors")
_DEVIATIONS = 1.959964  # of a normal distribution: 95 %


class TableError(Exception):
    """A table cannot be read, or not be gone on with: what is wrong, and what would be right."""


@dataclass(frozen=True)
class CalibrationSettings:
    seed: int = 1
    precision: float = 0.1
    min_packets: int = 100
    max_packets: int = 2000
    step_db: float = 0.5


@dataclass
class Cell:
    packets: int = 0
    causes: list[int] = field(default_factory=lambda: [0, 0, 0])

    @property
    def lost(self) -> int:
        return sum(self.causes)

    @property
    def rate(self) -> float:
        return self.lost / self.packets

    def add(self, outcome: int) -> None:
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
        """Raises ValueError for what no modem has."""
        return air_time.modem_digest(self.modem, self.modulation, self.code_rate)


Curve = dict[float, Cell]
"""By SNR in dB."""

Carry = Callable[[int, list[bytes]], list[tuple[int, bytes]]]
"""Carries packets; the first has that number. Returns each one's outcome and what was received."""


def half_interval(cell: Cell) -> float:
    """Half of Wilson's confidence interval of a rate."""
    n, p, z = cell.packets, cell.rate, _DEVIATIONS
    return z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))


def next_batch(curve: Curve, settings: CalibrationSettings) -> tuple[float, int] | None:
    """(SNR in dB, how many packets) to be sent next; None: the curve is finished."""
    for snr_db in sorted(curve):
        if curve[snr_db].packets < settings.min_packets:
            return _batch(curve, snr_db, settings.min_packets)
    new = _next_snr(curve, settings.step_db)
    if new is not None:
        return _batch(curve, new, settings.min_packets)
    without_losses = min((snr for snr, cell in curve.items() if not cell.lost), default=None)
    for snr_db in sorted(curve):
        cell = curve[snr_db]
        if cell.packets >= settings.max_packets or (not cell.lost and snr_db != without_losses):
            continue
        if not cell.lost or half_interval(cell) > settings.precision * cell.rate:
            return _batch(curve, snr_db, settings.max_packets)
    return None


def _batch(curve: Curve, snr_db: float, packets: int) -> tuple[float, int]:
    done = curve[snr_db].packets if snr_db in curve else 0
    return snr_db, min(BATCH, packets - done)


def _next_snr(curve: Curve, step_db: float) -> float | None:
    """One that the curve lacks."""
    if not curve:
        return FIRST_DB
    snrs = sorted(curve)
    if curve[snrs[0]].rate < ALL_LOST and snrs[0] > LOWEST_DB:
        return snrs[0] - COARSE_DB
    if curve[snrs[-1]].lost and snrs[-1] < HIGHEST_DB:
        return snrs[-1] + COARSE_DB
    for low, high in pairwise(snrs):
        flat = curve[high].rate >= ALL_LOST or not curve[low].lost
        if not flat and high - low > step_db * 1.01:
            return (low + high) / 2
    return None


@dataclass
class Table:
    """All curves, and where they come from."""

    settings: CalibrationSettings
    provenance: dict[str, Any]
    """device, nagi, gnuradio, date."""
    curves: dict[tuple[Mode, int], Curve] = field(default_factory=dict)
    """By mode and IP bytes of a packet."""

    def modes(self) -> Iterator[Mode]:
        yield from dict.fromkeys(mode for mode, _ in self.curves)

    def is_finished(self) -> bool:
        return all(next_batch(curve, self.settings) is None for curve in self.curves.values())

    def to_json(self) -> dict[str, Any]:
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
                for mode in self.modes()
            ],
        }

    def write(self, path: Path) -> None:
        write_json(path, self.to_json())


def _name(value: Any) -> str:
    """Of a device, or a version."""
    if isinstance(value, dict) and "name" in value:
        return ", ".join(str(value[key]) for key in ("name", "firmware") if value.get(key))
    return str(value)


def go_on_with(path: Path, table: Table) -> None:
    """Adds to `table` what a file has, if there is one. Raises TableError if the file is none, or
    was made with other settings."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise TableError(
            f"{path}: no table of a calibration: {error}; name another file"
        ) from error
    try:
        found = {key: document[key] for key in table.provenance if key != "date"}
        for key, value in found.items():
            if value != table.provenance[key]:
                raise TableError(
                    f"{path}: made with {key} {_name(value)}, not"
                    f" {_name(table.provenance[key])}; name another file"
                )
        for key in ("seed", "step_db"):
            if document["settings"][key] != vars(table.settings)[key]:
                raise TableError(
                    f"{path}: made with {key} {document['settings'][key]}; give that, or name"
                    " another file"
                )
        for item in document["modes"]:
            mode = Mode(item["modem"], item["modulation"], item["code_rate"])
            if item["digest"] != mode.digest:
                raise TableError(
                    f"{path}: {mode.name} was another modem when this was made; name another file"
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
            f"{path}: no table of a calibration: {error!r}; name another file"
        ) from error
