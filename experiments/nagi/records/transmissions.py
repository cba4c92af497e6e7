# SPDX-License-Identifier: Apache-2.0
"""What became of every transmission: the emulator's record of links that are radios or repeat what
was lost (ARQ), and of frames on media, as tables; of radios as what the model has to be told to do
the same again.

transmissions.bin, little-endian: "nagi-trn", u32 version (1), u32 bytes a record (32), then records
as TRANSMISSION has them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_contracts.base import read_run_file
from nagi_contracts.errors import refuse
from nagi_contracts.plan import DIRECTIONS, DirectionName, RunPlan
from nagi_contracts.records import FrameRow, Outcome, TransmissionRow

from nagi.records.direction_numbers import (
    are_receivers,
    count_of_directions,
    direction_names,
    direction_number,
    link_names,
    receivers,
    senders,
)

Transmissions = npt.NDArray[np.void]  # structured: TRANSMISSION

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
HEADER = b"nagi-trn" + np.array([1, TRANSMISSION.itemsize], "<u4").tobytes()
RECEIVED, NOT_DETECTED, HEADER_ERROR, PAYLOAD_ERROR, UNANSWERED, LOST = range(6)
RECEIVER_BUSY, NOT_SENT, NOT_RECEIVED = 8, 11, 12
# By the record's numbers, of links.
OUTCOMES: dict[int, str] = dict(
    zip((*range(6), RECEIVER_BUSY, NOT_SENT, NOT_RECEIVED), get_args(Outcome), strict=True)
)
# By the record's numbers; the outcomes of links that media do not have have no name there.
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
_NO_STATION = 254  # and 255: all that hear it
SNR_UNKNOWN, SNR_STEPS = -32768, 100  # of a dB
_ENDLESS = 1 << 32  # numbers are modulo 2^32


def read_transmissions(path: Path, plan: RunPlan) -> Transmissions:
    """Reads the record. Raises InputError if it is none, cut off, or of other links."""
    data = read_run_file(path)
    if not data.startswith(HEADER) or (len(data) - len(HEADER)) % TRANSMISSION.itemsize:
        raise refuse("not a whole record of transmissions", "run it again", file=str(path))
    found = np.frombuffer(data, TRANSMISSION, offset=len(HEADER))
    on_media = found["kind"] != 0
    known = np.where(
        on_media,
        np.isin(found["outcome"], list(FRAME_OUTCOMES))
        & np.isin(found["kind"], list(KINDS))
        & (found["direction"] >= 2 * len(plan.links))
        & (found["direction"] < count_of_directions(plan)),
        np.isin(found["outcome"], list(OUTCOMES)) & (found["direction"] < 2 * len(plan.links)),
    )
    if known.all():
        stations = found["receiver"].astype(np.int64)
        places = np.where(on_media & (stations < _NO_STATION), stations, -1)
        known = are_receivers(found["direction"], places, plan)
    if not known.all():
        raise refuse("a transmission of no kind that there is", "run it again", file=str(path))
    return found


def write_transmissions(transmissions: Transmissions, path: Path) -> None:
    path.write_bytes(HEADER + transmissions.tobytes())


def snr_db(transmissions: Transmissions) -> npt.NDArray[np.float64]:
    """As the receiver measured it; nan where it did not."""
    known = transmissions["snr"] != SNR_UNKNOWN
    return np.where(known, transmissions["snr"] / SNR_STEPS, np.nan)


def frames_table(transmissions: Transmissions, plan: RunPlan) -> pd.DataFrame:
    """What of the record is of media, as frames.parquet has it; see contracts.records.FrameRow."""
    frames = transmissions[transmissions["kind"] != 0]
    names = frames.dtype.names or ()
    stations = frames["receiver"].astype(np.int64)
    columns: dict[str, Any] = {name: frames[name] for name in names}
    columns |= {
        "medium": link_names(frames["direction"], plan),
        "sender": senders(frames["direction"], plan),
        "receiver": receivers(
            frames["direction"], np.where(stations < _NO_STATION, stations, -1), plan
        ),
        "kind": _named(frames["kind"], KINDS),
        "outcome": _named(frames["outcome"], FRAME_OUTCOMES),
    }
    return pd.DataFrame({name: columns[name] for name in FrameRow.model_fields})


def _named(numbers: npt.NDArray[np.uint8], names: dict[int, str]) -> pd.Categorical[str]:
    places = np.full(256, -1, np.int64)
    places[list(names)] = range(len(names))
    return pd.Categorical.from_codes(places[numbers], pd.Index(list(names.values())))


def to_table(transmissions: Transmissions, plan: RunPlan) -> pd.DataFrame:
    """What of the record is of links, as transmissions.parquet has it; see
    contracts.records.TransmissionRow."""
    transmissions = transmissions[transmissions["kind"] == 0]
    names = TRANSMISSION.names or ()
    columns: dict[str, Any] = {name: transmissions[name] for name in names}
    columns |= {
        "link": link_names(transmissions["direction"], plan),
        "direction": direction_names(transmissions["direction"], plan),
        "outcome": _named(transmissions["outcome"], OUTCOMES),
        "snr_db": snr_db(transmissions),
    }
    return pd.DataFrame({name: columns[name] for name in TransmissionRow.model_fields})


def from_table(table: pd.DataFrame, plan: RunPlan) -> Transmissions:
    """Return the record that to_table() made a table of."""
    found = np.zeros(len(table), TRANSMISSION)
    for name in ("start_ns", "end_ns", "number", "index", "attempt", "mode"):
        found[name] = table[name]
    numbers: dict[tuple[str, str], int] = {
        (link.name, direction): direction_number(plan, link.name, direction)
        for link in plan.links
        for direction in DIRECTIONS
    }
    places = zip(table["link"].astype(str), table["direction"].astype(str), strict=True)
    found["direction"] = [numbers[place] for place in places]
    names = {name: number for number, name in OUTCOMES.items()}
    found["outcome"] = table["outcome"].astype(str).map(names)
    measured = table["snr_db"].to_numpy(np.float64)
    found["snr"] = np.where(
        np.isnan(measured), SNR_UNKNOWN, np.rint(np.nan_to_num(measured) * SNR_STEPS)
    )
    return found


def of_direction(transmissions: Transmissions, number: int) -> Transmissions:
    """Those of a direction, in their order."""
    mine = transmissions[transmissions["direction"] == number]
    ordered: Transmissions = mine[np.argsort(mine["number"], kind="stable")]
    return ordered


def recorded_snr(transmissions: Transmissions) -> list[int]:
    """In 0.01 dB, of each transmission of a direction by its number, for the model to adapt to."""
    found = np.full(
        int(transmissions["number"].astype(np.int64).max(initial=-1)) + 1, SNR_UNKNOWN, np.int64
    )
    found[transmissions["number"]] = transmissions["snr"]
    values: list[int] = found.tolist()
    return values


def of_radios(
    plan: RunPlan, transmissions: Transmissions
) -> dict[tuple[str, DirectionName], dict[str, Any]]:
    """(link, direction) of each direction of a radio -> its settings `loss`, which loses the
    transmissions that the radio lost, and `rate_adaptation`, which is told the measured SNRs. As
    the model counts transmissions, a packet that ARQ repeats is another."""
    found: dict[tuple[str, DirectionName], dict[str, Any]] = {}
    for link in plan.radios():
        for direction in DIRECTIONS:
            mine = of_direction(transmissions, direction_number(plan, link.name, direction))
            lost = np.unique(mine["number"][mine["outcome"] != RECEIVED])
            planned = link.direction(direction)
            found[link.name, direction] = {
                "loss": {
                    "model": "trace",
                    "lost": lost.tolist(),
                    "length": _ENDLESS,
                    "at": planned.loss.at,
                }
            }
            if planned.rate_adaptation is not None:
                found[link.name, direction]["rate_adaptation"] = {
                    **planned.rate_adaptation.model_dump(mode="json", exclude_none=True),
                    "recorded_snr": recorded_snr(mine),
                }
    return found
