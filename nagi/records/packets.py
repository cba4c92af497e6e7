# SPDX-License-Identifier: Apache-2.0
"""nagi-link's record of packets: reading, conversion to and from tables, and replay by the model.

link-emulator/daemon/packet_record.hpp describes the format.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_contracts.base import read_run_file
from nagi_contracts.errors import refuse
from nagi_contracts.media import MediumPlan
from nagi_contracts.paths import executable
from nagi_contracts.plan import DirectionName, LinkDirection, LinkPlan, RunPlan
from nagi_contracts.records import PacketRow

from nagi.records.direction_numbers import (
    NOBODY,
    are_stations,
    count_numbers,
    get_direction_names,
    get_hop_number,
    get_link_names,
    get_receivers,
    get_senders,
)
from nagi.scratch import make_scratch

Records = npt.NDArray[np.void]  # a structured array of type RECORD
# (link, direction) -> settings of nagi-link that replace those of the plan
Settings = dict[tuple[str, DirectionName], dict[str, Any]]

RECORD = np.dtype(
    [
        ("arrived_ns", "<i8"),
        ("left_ns", "<i8"),
        ("index", "<u4"),
        ("identity", "<u4"),
        ("late_ns", "<i4"),
        ("flow", "<u4"),
        ("bytes", "<u2"),
        ("direction", "u1"),
        ("fate", "u1"),
        ("ecn", "u1"),
        ("flags", "u1"),
        ("next_hop", "<u2"),
    ]
)
HEADER = b"nagi-pkt" + np.array([2, RECORD.itemsize], "<u4").tobytes()
FATES = ("delivered", "queue overflow", "channel loss", "held", "AQM drop", "given up")
DELIVERED, QUEUE_OVERFLOW, CHANNEL_LOSS, HELD, AQM_DROP, GIVEN_UP = range(6)
_MARKED, _CORRUPTED, _COPY = 1, 2, 4


def read_records(path: Path) -> Records:
    """Read nagi-link's record of packets.

    Raises:
        InputError: The file is missing, is not a record of packets, or is truncated.
    """
    data = read_run_file(path)
    if not data.startswith(HEADER) or (len(data) - len(HEADER)) % RECORD.itemsize:
        raise refuse("not a complete record of packets", "run it again", file=str(path))
    return np.frombuffer(data, RECORD, offset=len(HEADER))


def write_records(records: Records, path: Path) -> None:
    path.write_bytes(HEADER + records.tobytes())


def get_fates(records: Records) -> npt.NDArray[np.int64]:
    """Return the fate of each record: DELIVERED, QUEUE_OVERFLOW, and so on."""
    return records["fate"].astype(np.int64)


def are_copies(records: Records) -> npt.NDArray[np.bool_]:
    """Return, for each record, whether its packet is a duplicate that the emulator made."""
    copies: npt.NDArray[np.bool_] = records["flags"] & _COPY != 0
    return copies


def to_table(records: Records, plan: RunPlan) -> pd.DataFrame:
    """Convert records to the table of packets.parquet (contract PacketRow).

    Raises:
        InputError: A record has a direction, fate or station that the plan does not have.
    """
    _require_known(records, plan)
    flags = records["flags"]
    columns: dict[str, Any] = {name: records[name] for name in RECORD.names or ()}
    columns |= {
        "link": get_link_names(records["direction"], plan),
        "direction": get_direction_names(records["direction"], plan),
        # Without media, packets.parquet has the same bytes as in versions of nagi without media.
        "fate": pd.Categorical.from_codes(
            get_fates(records), pd.Index(FATES if plan.media else FATES[:GIVEN_UP])
        ),
        "marked": flags & _MARKED != 0,
        "corrupted": flags & _CORRUPTED != 0,
        "is_copy": flags & _COPY != 0,
    }
    column_names = list(PacketRow.model_fields)
    if plan.media:
        columns["sender"] = get_senders(records["direction"], plan)
        columns["receiver"] = get_receivers(records["direction"], _get_next_hops(records), plan)
    else:
        column_names = [name for name in column_names if name not in ("sender", "receiver")]
    return pd.DataFrame({name: columns[name] for name in column_names})


def _get_next_hops(records: Records) -> npt.NDArray[np.int64]:
    """Return the index of each packet's next station in its medium, or -1 if there is none."""
    hops = records["next_hop"].astype(np.int64)
    return np.where(hops < NOBODY, hops - 1, -1)


def _require_known(records: Records, plan: RunPlan) -> None:
    """Raise InputError if a direction, fate or station of a record is not possible in the plan."""
    is_known = (records["direction"] < count_numbers(plan)).all() and (
        records["fate"] < (len(FATES) if plan.media else GIVEN_UP)
    ).all()
    if not is_known or not are_stations(records["direction"], _get_next_hops(records), plan).all():
        raise refuse(
            "packets.bin has a packet whose direction, fate or station is not in the plan",
            "run it again",
        )


def from_table(table: pd.DataFrame, plan: RunPlan) -> Records:
    """Convert a table of packets.parquet back to records. See to_table().

    The next hop of packets without a receiver becomes NOBODY, also if it was EVERYBODY.
    """
    records = np.zeros(len(table), RECORD)
    for name in RECORD.names or ():
        if name in table and name not in ("direction", "fate"):
            records[name] = table[name]
    keys = ["link", "direction", *(["sender"] if plan.media else [])]
    for key, rows in table.groupby(keys, observed=True, dropna=False).indices.items():
        link, direction, *sender = key if isinstance(key, tuple) else (key,)
        hop = LinkDirection(
            link=link,
            direction=direction,
            sender=sender[0] if sender and isinstance(sender[0], str) else None,
        )
        records["direction"][rows] = get_hop_number(plan, hop)
        if hop.is_hop:
            stations = [station.node for station in plan.medium(link).stations]
            positions = pd.Categorical(table["receiver"].iloc[rows], categories=stations).codes
            records["next_hop"][rows] = np.where(positions < 0, NOBODY, positions + 1)
    records["fate"] = pd.Categorical(table["fate"], categories=list(FATES)).codes
    records["flags"] = (
        table["marked"].to_numpy() * _MARKED
        + table["corrupted"].to_numpy() * _CORRUPTED
        + table["is_copy"].to_numpy() * _COPY
    )
    return records


def make_configuration(plan: RunPlan, changes: Settings | None = None) -> dict[str, Any]:
    """Return the configuration with which nagi-link replays a run of `plan`, without interfaces.

    The agent's configuration() also makes a configuration from a plan. It is not used here, so that
    the replay also reveals errors in the agent's function.

    Args:
        plan: The plan of the run.
        changes: (link, direction) -> settings that replace settings of the plan, because they
            describe what other programs did in the run, such as the losses of radios. None for no
            changes.
    """
    replacements = changes or {}

    def make_settings(link: LinkPlan, direction: DirectionName) -> dict[str, Any]:
        settings = link.direction(direction).model_dump(mode="json", exclude_none=True)
        return settings | replacements.get((link.name, direction), {})

    return {
        "schema_version": 1,
        "seed": plan.seed,
        "links": [
            {
                "name": link.name,
                "id": link.id,
                "a": f"{link.name}.a",
                "b": f"{link.name}.b",
                "forward": make_settings(link, "forward"),
                "backward": make_settings(link, "backward"),
            }
            for link in plan.links
        ],
        **({"media": [_make_medium(medium) for medium in plan.media]} if plan.media else {}),
    }


def _make_medium(medium: MediumPlan) -> dict[str, Any]:
    settings = medium.model_dump(mode="json", exclude_none=True, exclude={"monitor", "stations"})
    stations = [
        station.model_dump(mode="json", exclude_none=True, exclude={"node", "address"})
        | {"name": station.node, "interface": f"{medium.name}.{station.node}"}
        for station in medium.stations
    ]
    return settings | {"stations": stations}


def replay(plan: RunPlan, records: Records, changes: Settings | None = None) -> Records:
    """Replay the recorded arrivals with the model of nagi-link, by running `nagi-link replay`.

    Args:
        plan: The plan of the run, which configures the model.
        records: The emulator's record of packets.
        changes: Settings that replace settings of the plan, see make_configuration(); None for no
            changes.

    Returns:
        The packets of `records` in the order of sort_records(), with `left_ns` and `fate` from the
        model.

    Raises:
        InputError: The model cannot replay the records.
    """
    with make_scratch() as directory:
        config, recorded, output = (
            directory / name for name in ("link.json", "packets", "replayed")
        )
        config.write_text(json.dumps(make_configuration(plan, changes)))
        write_records(records, recorded)
        process = subprocess.run(
            [executable("nagi-link"), "replay", config, recorded, output],
            capture_output=True,
            text=True,
            check=False,
        )
        if process.returncode != 0:
            raise refuse(
                f"the arrivals cannot be replayed: {process.stderr.strip()}", "run it again"
            )
        return read_records(output)


def find_differences(recorded: Records, replayed: Records) -> npt.NDArray[np.bool_]:
    """Return a mask of the packets whose fate or departure time differs in the replay.

    Packets that were still in the emulator when it ended are never in the mask.

    Args:
        recorded: The emulator's record of packets, in the order of sort_records().
        replayed: The records of the same packets, from replay().
    """
    is_same = (recorded["fate"] == replayed["fate"]) & (recorded["left_ns"] == replayed["left_ns"])
    differs: npt.NDArray[np.bool_] = (get_fates(recorded) != HELD) & ~is_same
    return differs


def sort_records(records: Records) -> Records:
    """Return records in the order of replay(): by direction, time of arrival, and index.

    A copy of a packet comes after the original with the same direction, time and index.
    """
    keys = (are_copies(records), records["index"], records["arrived_ns"], records["direction"])
    return records[np.lexsort(keys)]
