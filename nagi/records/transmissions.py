# SPDX-License-Identifier: Apache-2.0
"""The emulator's record of transmissions: reading, and conversion to and from tables.

The record has the transmissions of links that are radios or have ARQ, and the frames on media.

transmissions.bin, little-endian: "nagi-trn", u32 version (1), u32 bytes per record (32), then
records as TRANSMISSION describes them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_contracts.base import read_run_file
from nagi_contracts.errors import refuse
from nagi_contracts.plan import DIRECTIONS, RunPlan
from nagi_contracts.records import Outcome, TransmissionRow

from nagi.records.direction_numbers import (
    are_stations,
    count_numbers,
    get_direction_names,
    get_direction_number,
    get_link_names,
)

Transmissions = npt.NDArray[np.void]  # a structured array of type TRANSMISSION

TRANSMISSION = np.dtype(
    [
        ("start_ns", "<i8"),
        ("end_ns", "<i8"),
        ("number", "<u4"),
        ("index", "<u4"),
        ("direction", "u1"),
        ("outcome", "u1"),
        ("snr", "<i2"),
        ("attempt", "u1"),
        ("kind", "u1"),
        ("receiver", "u1"),
        ("mode", "u1"),
    ]
)
FILE = "transmissions.bin"
HEADER = b"nagi-trn" + np.array([1, TRANSMISSION.itemsize], "<u4").tobytes()
RECEIVED, NOT_DETECTED, HEADER_ERROR, PAYLOAD_ERROR, UNANSWERED, LOST = range(6)
RECEIVER_BUSY, NOT_SENT, NOT_RECEIVED = 8, 11, 12
# Outcomes of transmissions on links, by their numbers in records.
OUTCOMES: dict[int, str] = dict(
    zip((*range(6), RECEIVER_BUSY, NOT_SENT, NOT_RECEIVED), get_args(Outcome), strict=True)
)
# Outcomes of frames on media, by their numbers in records. Media lack some outcomes of links.
FRAME_OUTCOMES = {
    RECEIVED: "received",
    LOST: "channel error",
    6: "collided",
    7: "hidden terminal",
    8: "receiver busy",
    9: "out of reach",
    10: "not answered",
}
KINDS = {1: "RTS", 2: "CTS", 3: "DATA", 4: "ACK"}  # 0: a transmission on a link
NO_STATION = 254  # no receiver; 255 stands for all stations in reach
SNR_UNKNOWN, SNR_STEPS = -32768, 100  # steps per dB


def read_transmissions(path: Path, plan: RunPlan) -> Transmissions:
    """Read the emulator's record of transmissions.

    Raises:
        InputError: The file is missing, is not a record of transmissions, is truncated, or belongs
            to another plan.
    """
    data = read_run_file(path)
    if not data.startswith(HEADER) or (len(data) - len(HEADER)) % TRANSMISSION.itemsize:
        raise refuse("not a complete record of transmissions", "run it again", file=str(path))
    transmissions = np.frombuffer(data, TRANSMISSION, offset=len(HEADER))
    on_media = transmissions["kind"] != 0
    is_known = np.where(
        on_media,
        np.isin(transmissions["outcome"], list(FRAME_OUTCOMES))
        & np.isin(transmissions["kind"], list(KINDS))
        & (transmissions["direction"] >= 2 * len(plan.links))
        & (transmissions["direction"] < count_numbers(plan)),
        np.isin(transmissions["outcome"], list(OUTCOMES))
        & (transmissions["direction"] < 2 * len(plan.links)),
    )
    if is_known.all():
        stations = transmissions["receiver"].astype(np.int64)
        station_indices = np.where(on_media & (stations < NO_STATION), stations, -1)
        is_known = are_stations(transmissions["direction"], station_indices, plan)
    if not is_known.all():
        raise refuse(
            "a transmission has an unknown kind, outcome, direction or station",
            "run it again",
            file=str(path),
        )
    return transmissions


def write_transmissions(transmissions: Transmissions, path: Path) -> None:
    path.write_bytes(HEADER + transmissions.tobytes())


def get_snr_db(transmissions: Transmissions) -> npt.NDArray[np.float64]:
    """Return the SNR in dB that receivers measured for each transmission; NaN if unknown."""
    is_known = transmissions["snr"] != SNR_UNKNOWN
    return np.where(is_known, transmissions["snr"] / SNR_STEPS, np.nan)


def to_names(numbers: npt.NDArray[np.uint8], names: dict[int, str]) -> pd.Categorical[str]:
    """Return the name of each number. Numbers without a name get a missing value."""
    codes = np.full(256, -1, np.int64)
    codes[list(names)] = range(len(names))
    return pd.Categorical.from_codes(codes[numbers], pd.Index(list(names.values())))


def to_table(transmissions: Transmissions, plan: RunPlan) -> pd.DataFrame:
    """Convert the transmissions on links to the table of transmissions.parquet.

    Its rows have the contract TransmissionRow. Frames on media are left out.
    """
    transmissions = transmissions[transmissions["kind"] == 0]
    names = TRANSMISSION.names or ()
    columns: dict[str, Any] = {name: transmissions[name] for name in names}
    columns |= {
        "link": get_link_names(transmissions["direction"], plan),
        "direction": get_direction_names(transmissions["direction"], plan),
        "outcome": to_names(transmissions["outcome"], OUTCOMES),
        "snr_db": get_snr_db(transmissions),
    }
    return pd.DataFrame({name: columns[name] for name in TransmissionRow.model_fields})


def from_table(table: pd.DataFrame, plan: RunPlan) -> Transmissions:
    """Convert a table of transmissions.parquet back to records of links. See to_table()."""
    transmissions = np.zeros(len(table), TRANSMISSION)
    for name in ("start_ns", "end_ns", "number", "index", "attempt", "mode"):
        transmissions[name] = table[name]
    numbers: dict[tuple[str, str], int] = {
        (link.name, direction): get_direction_number(plan, link.name, direction)
        for link in plan.links
        for direction in DIRECTIONS
    }
    directions = zip(table["link"].astype(str), table["direction"].astype(str), strict=True)
    transmissions["direction"] = [numbers[direction] for direction in directions]
    names = {name: number for number, name in OUTCOMES.items()}
    transmissions["outcome"] = table["outcome"].astype(str).map(names)
    snr_db = table["snr_db"].to_numpy(np.float64)
    transmissions["snr"] = np.where(
        np.isnan(snr_db), SNR_UNKNOWN, np.rint(np.nan_to_num(snr_db) * SNR_STEPS)
    )
    return transmissions


def select_direction(transmissions: Transmissions, direction_number: int) -> Transmissions:
    """Return the transmissions of a direction, in the order of their field `number`."""
    selected = transmissions[transmissions["direction"] == direction_number]
    ordered: Transmissions = selected[np.argsort(selected["number"], kind="stable")]
    return ordered
