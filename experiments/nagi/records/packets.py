# SPDX-License-Identifier: Apache-2.0
"""What became of every packet the emulator saw: nagi-link's record, as a table, and once more from
the model.

The record's format is described in link-emulator/daemon/packet_record.hpp.
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
    are_receivers,
    count_of_directions,
    direction_names,
    link_names,
    number_of,
    receivers,
    senders,
)
from nagi.records.transmissions import Transmissions, of_radios
from nagi.scratch import scratch

Records = npt.NDArray[np.void]  # structured: RECORD

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
    """Reads nagi-link's record of packets. Raises InputError if it is none, or cut off."""
    data = read_run_file(path)
    if not data.startswith(HEADER) or (len(data) - len(HEADER)) % RECORD.itemsize:
        raise refuse("not a whole record of packets", "run it again", file=str(path))
    return np.frombuffer(data, RECORD, offset=len(HEADER))


def write_records(records: Records, path: Path) -> None:
    path.write_bytes(HEADER + records.tobytes())


def fates(records: Records) -> npt.NDArray[np.int64]:
    """Of each record: DELIVERED, QUEUE_OVERFLOW, CHANNEL_LOSS, HELD, AQM_DROP or GIVEN_UP."""
    return records["fate"].astype(np.int64)


def are_copies(records: Records) -> npt.NDArray[np.bool_]:
    """Of each record: whether it is of a duplicate, which did not arrive as a packet."""
    copies: npt.NDArray[np.bool_] = records["flags"] & _COPY != 0
    return copies


def to_table(records: Records, plan: RunPlan) -> pd.DataFrame:
    """Records as packets.parquet has them; see contracts.records.PacketRow. Raises InputError if
    they are not of this plan."""
    _require_known(records, plan)
    flags = records["flags"]
    columns: dict[str, Any] = {name: records[name] for name in RECORD.names or ()}
    columns |= {
        "link": link_names(records["direction"], plan),
        "direction": direction_names(records["direction"], plan),
        # Without media files are to the byte what they were before there were any.
        "fate": pd.Categorical.from_codes(
            fates(records), pd.Index(FATES if plan.media else FATES[:GIVEN_UP])
        ),
        "marked": flags & _MARKED != 0,
        "corrupted": flags & _CORRUPTED != 0,
        "is_copy": flags & _COPY != 0,
    }
    names = list(PacketRow.model_fields)
    if plan.media:
        columns["sender"] = senders(records["direction"], plan)
        columns["receiver"] = receivers(records["direction"], _next_hops(records), plan)
    else:
        names = [name for name in names if name not in ("sender", "receiver")]
    return pd.DataFrame({name: columns[name] for name in names})


def _next_hops(records: Records) -> npt.NDArray[np.int64]:
    """Return the place of each packet's next station in its medium; -1: none."""
    hops = records["next_hop"].astype(np.int64)
    return np.where(hops < NOBODY, hops - 1, -1)


def _require_known(records: Records, plan: RunPlan) -> None:
    """Raises InputError if a record has a direction, fate or station that there is not."""
    known = (records["direction"] < count_of_directions(plan)).all() and (
        records["fate"] < (len(FATES) if plan.media else GIVEN_UP)
    ).all()
    if not known or not are_receivers(records["direction"], _next_hops(records), plan).all():
        raise refuse("a packet of no kind that there is in packets.bin", "run it again")


def from_table(table: pd.DataFrame, plan: RunPlan) -> Records:
    """The records that to_table() made a table of."""
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
        records["direction"][rows] = number_of(plan, hop)
        if hop.is_hop:
            stations = [station.node for station in plan.medium(link).stations]
            places = pd.Categorical(table["receiver"].iloc[rows], categories=stations).codes
            records["next_hop"][rows] = np.where(places < 0, NOBODY, places + 1)
    records["fate"] = pd.Categorical(table["fate"], categories=list(FATES)).codes
    records["flags"] = (
        table["marked"].to_numpy() * _MARKED
        + table["corrupted"].to_numpy() * _CORRUPTED
        + table["is_copy"].to_numpy() * _COPY
    )
    return records


def configuration(plan: RunPlan, transmissions: Transmissions | None = None) -> dict[str, Any]:
    """nagi-link's configuration for a plan, for use without interfaces. What radios lost, the model
    cannot know: it is told by `transmissions`.

    The agent's emulator.configuration() is not used here on purpose: what the emulator did is
    checked against the plan, so an agent that told it something else would be found out.
    """
    told = {} if transmissions is None else of_radios(plan, transmissions)

    def settings(link: LinkPlan, direction: DirectionName) -> dict[str, Any]:
        written = link.direction(direction).model_dump(mode="json", exclude_none=True)
        return written | told.get((link.name, direction), {})

    return {
        "schema_version": 1,
        "seed": plan.seed,
        "links": [
            {
                "name": link.name,
                "id": link.id,
                "a": f"{link.name}.a",
                "b": f"{link.name}.b",
                "forward": settings(link, "forward"),
                "backward": settings(link, "backward"),
            }
            for link in plan.links
        ],
        **({"media": [_medium(each) for each in plan.media]} if plan.media else {}),
    }


def _medium(medium: MediumPlan) -> dict[str, Any]:
    written = medium.model_dump(mode="json", exclude_none=True, exclude={"monitor", "stations"})
    stations = [
        station.model_dump(mode="json", exclude_none=True, exclude={"node", "address"})
        | {"name": station.node, "interface": f"{medium.name}.{station.node}"}
        for station in medium.stations
    ]
    return written | {"stations": stations}


def replay(plan: RunPlan, records: Records, transmissions: Transmissions | None = None) -> Records:
    """What the model makes of the recorded arrivals if it does what the plan says, and radios lost
    of the transmissions what they say: the same records, ordered by direction and arrival, with
    `left_ns` and `fate` as they should be.

    Raises InputError if the record makes no sense.
    """
    with scratch() as directory:
        config, recorded, output = (directory / f for f in ("link.json", "packets", "replayed"))
        config.write_text(json.dumps(configuration(plan, transmissions)))
        write_records(records, recorded)
        done = subprocess.run(
            [executable("nagi-link"), "replay", config, recorded, output],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise refuse(f"the arrivals cannot be replayed: {done.stderr.strip()}", "run it again")
        return read_records(output)


def differ(recorded: Records, due: Records) -> npt.NDArray[np.bool_]:
    """Return which packets did not fare as the model says. Those still held have not fared yet."""
    same = (recorded["fate"] == due["fate"]) & (recorded["left_ns"] == due["left_ns"])
    found: npt.NDArray[np.bool_] = (fates(recorded) != HELD) & ~same
    return found


def in_order(records: Records) -> Records:
    """Records ordered by direction and arrival, as replay() has them; copies follow packets."""
    keys = (are_copies(records), records["index"], records["arrived_ns"], records["direction"])
    return records[np.lexsort(keys)]
