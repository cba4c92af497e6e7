# SPDX-License-Identifier: Apache-2.0
"""Witnesses: tables of the packets from which a check of the certificate was measured.

Each function returns a table, with the worst row first or in the order of time. Rows that are equal
in this respect keep the order of the record. All tables have the columns `time_s`, in seconds since
the run began by the emulator's clock, and `at`, such as a link and its direction. `packet` names a
packet by its IP identification and checksum, which are its `identity` in packets.parquet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_captures.identities import Nanoseconds
from nagi_contracts.plan import RunPlan

from nagi.records.packets import HELD, Records, find_differences, get_fates, to_table
from nagi.records.transmissions import Transmissions
from nagi.records.transmissions import to_table as transmissions_table
from nagi.verdict.host_response import ResponseTimes

Witnesses = Callable[[], pd.DataFrame]  # a function that makes a table


def list_late_packets(plan: RunPlan, recorded: Records) -> pd.DataFrame:
    """Return the packets that were sent or dropped, those with the largest lateness first."""
    table = to_table(recorded[get_fates(recorded) != HELD], plan)
    return _sort_worst_first(
        pd.DataFrame(
            {
                "time_s": table["left_ns"] / 1e9,
                "at": _name_directions(table),
                "packet": _name_packets(table["identity"]),
                "bytes": table["bytes"],
                "late_ms": table["late_ns"] / 1e6,
            }
        )
    )


def list_replay_differences(plan: RunPlan, recorded: Records, replayed: Records) -> pd.DataFrame:
    """Return the packets whose fate or departure time differs in the replay, by time of arrival."""
    is_different = find_differences(recorded, replayed)
    table, model = to_table(recorded[is_different], plan), to_table(replayed[is_different], plan)
    return _sort_by_time(
        pd.DataFrame(
            {
                "time_s": table["arrived_ns"] / 1e9,
                "at": _name_directions(table),
                "packet": _name_packets(table["identity"]),
                "bytes": table["bytes"],
                "fate": table["fate"].astype(str),
                "left_s": table["left_ns"] / 1e9,
                "fate_of_model": model["fate"].astype(str),
                "left_s_of_model": model["left_ns"] / 1e9,
            }
        )
    )


def list_transit_errors(
    crossings: Iterable[tuple[str, Nanoseconds, Nanoseconds, Nanoseconds]],
) -> pd.DataFrame:
    """Return packets and the error of their time between two captures.

    The error with the largest absolute value comes first.

    Args:
        crossings: For each flow and direction: a text that names it; and arrays with each packet's
            identity, time of sending, and time between captures minus the time on the links.
    """
    tables = [
        pd.DataFrame(
            {
                "time_s": sent_ns / 1e9,
                "at": subject,
                "packet": _name_packets(identity),
                "too_long_ms": error_ns / 1e6,
            }
        )
        for subject, identity, sent_ns, error_ns in crossings
    ]
    return _sort_worst_first(_concatenate(tables, ["time_s", "at", "packet", "too_long_ms"]))


def list_unrecorded_packets(
    crossings: Iterable[tuple[str, Nanoseconds, Nanoseconds]],
) -> pd.DataFrame:
    """Return received packets that the sender's capture or the emulator's record lacks, by time.

    Args:
        crossings: For each flow and direction: a text that names it; and arrays with each packet's
            identity and time of reception.
    """
    tables = [
        pd.DataFrame(
            {"time_s": received_ns / 1e9, "at": subject, "packet": _name_packets(identity)}
        )
        for subject, identity, received_ns in crossings
    ]
    return _sort_by_time(_concatenate(tables, ["time_s", "at", "packet"]))


def list_host_responses(responses: Iterable[tuple[str, ResponseTimes]]) -> pd.DataFrame:
    """Return when hosts had to respond and how long they took, the slowest response first.

    Args:
        responses: For each host and flow: a text that names them, and the response times.
    """
    tables = [
        pd.DataFrame(
            {
                "time_s": times.since_ns / 1e9,
                "at": subject,
                "waited_ms": times.waited_ns / 1e6,
            }
        )
        for subject, times in responses
    ]
    return _sort_worst_first(_concatenate(tables, ["time_s", "at", "waited_ms"]))


def list_transmissions(plan: RunPlan, transmissions: Transmissions, outcome: int) -> pd.DataFrame:
    """Return the transmissions on links that had the outcome `outcome`, by time of start.

    Args:
        plan: The plan of the run.
        transmissions: The emulator's record of transmissions.
        outcome: The number of the outcome, such as LOST of nagi.records.transmissions.
    """
    table = transmissions_table(transmissions[transmissions["outcome"] == outcome], plan)
    return _sort_by_time(
        pd.DataFrame(
            {
                "time_s": table["start_ns"] / 1e9,
                "at": _name_directions(table),
                "transmission": table["number"],
                "attempt": table["attempt"],
                "snr_db": table["snr_db"],
            }
        )
    )


def _concatenate(tables: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    filled = [table for table in tables if len(table)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=columns)


def _sort_by_time(table: pd.DataFrame) -> pd.DataFrame:
    return table.sort_values("time_s", kind="stable", ignore_index=True)


def _sort_worst_first(table: pd.DataFrame) -> pd.DataFrame:
    """Sort by the absolute value of the last column, the largest first."""
    magnitude = table[table.columns[-1]].abs()
    return table.loc[magnitude.sort_values(ascending=False, kind="stable").index].reset_index(
        drop=True
    )


def _name_directions(table: pd.DataFrame) -> pd.Series[str]:
    """Return a text for each row: link and direction, or medium and sender."""
    if "sender" not in table:
        return table["link"].astype(str) + " " + table["direction"].astype(str)
    sender = table["sender"].astype("object")
    direction_or_sender = sender.where(sender.notna(), table["direction"].astype("object"))
    return table["link"].astype(str) + " " + direction_or_sender.astype(str)


def _name_packets(identity: npt.NDArray[np.integer] | pd.Series[int]) -> list[str]:
    """Return IP identification and checksum of each packet as hexadecimal digits."""
    return [f"{int(number) >> 16:04x}:{int(number) & 0xFFFF:04x}" for number in identity]
