# SPDX-License-Identifier: Apache-2.0
"""What a check of the certificate was measured from: packets and instants, the worst first.

Tables have `time_s`, seconds since the run began by the emulator's clock, and `at`. A packet is
named by its IP identification and checksum, as `identity` in packets.parquet has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_captures.identities import Nanoseconds
from nagi_contracts.plan import RunPlan

from nagi.records.packets import HELD, Records, differ, fates, to_table
from nagi.records.transmissions import Transmissions
from nagi.records.transmissions import to_table as transmissions_table
from nagi.verdict.host_response import Waits

Witnesses = Callable[[], pd.DataFrame]  # makes the table once it is asked for


def late_packets(plan: RunPlan, recorded: Records) -> pd.DataFrame:
    """Return packets of the emulator's record by how late it was with each."""
    table = to_table(recorded[fates(recorded) != HELD], plan)
    return _worst_first(
        pd.DataFrame(
            {
                "time_s": table["left_ns"] / 1e9,
                "at": _places(table),
                "packet": _names(table["identity"]),
                "bytes": table["bytes"],
                "late_ms": table["late_ns"] / 1e6,
            }
        )
    )


def different_packets(plan: RunPlan, recorded: Records, due: Records) -> pd.DataFrame:
    """Return the packets that did not fare as the model says, in their order."""
    found = differ(recorded, due)
    table, model = to_table(recorded[found], plan), to_table(due[found], plan)
    return _by_time(
        pd.DataFrame(
            {
                "time_s": table["arrived_ns"] / 1e9,
                "at": _places(table),
                "packet": _names(table["identity"]),
                "bytes": table["bytes"],
                "fate": table["fate"].astype(str),
                "left_s": table["left_ns"] / 1e9,
                "fate_of_model": model["fate"].astype(str),
                "left_s_of_model": model["left_ns"] / 1e9,
            }
        )
    )


def astray_packets(
    crossings: Iterable[tuple[str, Nanoseconds, Nanoseconds, Nanoseconds]],
) -> pd.DataFrame:
    """Return packets by how long they took between captures, less what links should take. Each
    crossing: which it is, and of each packet its identity, when it was sent, and that time."""
    parts = [
        pd.DataFrame(
            {
                "time_s": sent_ns / 1e9,
                "at": at,
                "packet": _names(identity),
                "too_long_ms": error_ns / 1e6,
            }
        )
        for at, identity, sent_ns, error_ns in crossings
    ]
    return _worst_first(_joined(parts, ["time_s", "at", "packet", "too_long_ms"]))


def unknown_packets(crossings: Iterable[tuple[str, Nanoseconds, Nanoseconds]]) -> pd.DataFrame:
    """Return received packets that the emulator has no record of, in their order. Each crossing:
    which it is, and of each packet its identity and when it was received."""
    parts = [
        pd.DataFrame({"time_s": received_ns / 1e9, "at": at, "packet": _names(identity)})
        for at, identity, received_ns in crossings
    ]
    return _by_time(_joined(parts, ["time_s", "at", "packet"]))


def waits_of_hosts(found: Iterable[tuple[str, Waits]]) -> pd.DataFrame:
    """Return how long hosts took to respond, and to what arrived when."""
    parts = [
        pd.DataFrame(
            {
                "time_s": waits.since_ns / 1e9,
                "at": at,
                "waited_ms": waits.waited_ns / 1e6,
            }
        )
        for at, waits in found
    ]
    return _worst_first(_joined(parts, ["time_s", "at", "waited_ms"]))


def failed_transmissions(plan: RunPlan, transmissions: Transmissions, outcome: int) -> pd.DataFrame:
    """Return the transmissions with an outcome, in their order."""
    table = transmissions_table(transmissions[transmissions["outcome"] == outcome], plan)
    return _by_time(
        pd.DataFrame(
            {
                "time_s": table["start_ns"] / 1e9,
                "at": _places(table),
                "transmission": table["number"],
                "attempt": table["attempt"],
                "snr_db": table["snr_db"],
            }
        )
    )


def _joined(parts: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    kept = [part for part in parts if len(part)]
    return pd.concat(kept, ignore_index=True) if kept else pd.DataFrame(columns=columns)


def _by_time(table: pd.DataFrame) -> pd.DataFrame:
    return table.sort_values("time_s", kind="stable", ignore_index=True)


def _worst_first(table: pd.DataFrame) -> pd.DataFrame:
    """Sort by the size of the last column."""
    size = table[table.columns[-1]].abs()
    return table.loc[size.sort_values(ascending=False, kind="stable").index].reset_index(drop=True)


def _places(table: pd.DataFrame) -> pd.Series[str]:
    """Link and direction; of a medium, the station that sent."""
    if "sender" not in table:
        return table["link"].astype(str) + " " + table["direction"].astype(str)
    sender = table["sender"].astype("object")
    which = sender.where(sender.notna(), table["direction"].astype("object"))
    return table["link"].astype(str) + " " + which.astype(str)


def _names(identity: npt.NDArray[np.integer] | pd.Series[int]) -> list[str]:
    """Identification and checksum, in hexadecimal digits."""
    return [f"{int(each) >> 16:04x}:{int(each) & 0xFFFF:04x}" for each in identity]
