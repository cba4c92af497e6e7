# SPDX-License-Identifier: Apache-2.0
"""Numbers of directions and stations in the emulator's records.

Each link has two numbers, one per direction, in the order of the plan. The stations of media
follow, medium by medium.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_contracts.plan import DIRECTIONS, DirectionName, LinkDirection, RunPlan

EVERYBODY, NOBODY = 0xFFFF, 0xFFFE  # next hops: all stations of the medium (broadcast), none


def get_direction_number(plan: RunPlan, link: str, direction: DirectionName) -> int:
    """Return the number of a link's direction in records."""
    names = [link_plan.name for link_plan in plan.links]
    return names.index(link) * 2 + DIRECTIONS.index(direction)


def get_hop_number(plan: RunPlan, direction: LinkDirection) -> int:
    """Return the number of a hop in records.

    A hop on a link has the number of the direction. A hop on a medium has the number of the sending
    station.
    """
    if direction.sender is not None:
        return get_station_number(plan, direction.link, direction.sender)
    return get_direction_number(plan, direction.link, direction.direction)


def get_station_number(plan: RunPlan, medium: str, node: str) -> int:
    """Return the number, in records, of the station of `node` on a medium."""
    return _list_stations(plan).index((medium, node)) + 2 * len(plan.links)


def list_numbers(plan: RunPlan) -> Iterator[tuple[str, int]]:
    """Yield (text, number) of each direction of each link, then of each station of each medium.

    The text is `LINK DIRECTION` or `MEDIUM NODE`.
    """
    for link in plan.links:
        for direction in DIRECTIONS:
            yield f"{link.name} {direction}", get_direction_number(plan, link.name, direction)
    for medium, node in _list_stations(plan):
        yield f"{medium} {node}", get_station_number(plan, medium, node)


def count_numbers(plan: RunPlan) -> int:
    """Return how many numbers a plan has: two per link, and one per station of a medium."""
    return 2 * len(plan.links) + len(_list_stations(plan))


def are_stations(
    numbers: npt.NDArray[Any], stations: npt.NDArray[np.int64], plan: RunPlan
) -> npt.NDArray[np.bool_]:
    """Return, for each record, whether its medium has a station with the index in `stations`.

    Args:
        numbers: For each record, the number of its direction or sending station, below
            count_numbers(). The sending station determines the medium. Links have no stations.
        stations: For each record, the index of a station in its medium, or -1 for no station. The
            result is true for -1.
        plan: The plan of the run.
    """
    station_counts = np.zeros(count_numbers(plan), np.int64)
    number = 2 * len(plan.links)
    for medium in plan.media:
        station_counts[number : number + len(medium.stations)] = len(medium.stations)
        number += len(medium.stations)
    is_station: npt.NDArray[np.bool_] = stations < station_counts[numbers.astype(np.int64)]
    return is_station


def get_link_names(numbers: npt.NDArray[Any], plan: RunPlan) -> pd.Categorical[str]:
    """Return the name of the link or medium of each number, see list_numbers()."""
    names = [link.name for link in plan.links] + [medium.name for medium in plan.media]
    name_indices = [index for index in range(len(plan.links)) for _ in DIRECTIONS]
    for index, medium in enumerate(plan.media):
        name_indices += [len(plan.links) + index] * len(medium.stations)
    codes = np.array(name_indices, np.int64)[numbers.astype(np.int64)]
    return pd.Categorical.from_codes(codes, pd.Index(names))


def get_direction_names(numbers: npt.NDArray[Any], plan: RunPlan) -> pd.Categorical[str]:
    """Return the direction of each number, see list_numbers(). Stations are `forward`."""
    is_link = numbers < 2 * len(plan.links)
    return pd.Categorical.from_codes(np.where(is_link, numbers % 2, 0), pd.Index(DIRECTIONS))


def get_senders(numbers: npt.NDArray[Any], plan: RunPlan) -> pd.Categorical[str]:
    """Return the node of each station's number. Numbers of links get a missing value."""
    stations = _list_stations(plan)
    nodes = pd.Index(list(dict.fromkeys(node for _, node in stations)))
    code_by_station = np.array([nodes.get_loc(node) for _, node in stations], np.int64)
    station_index = numbers.astype(np.int64) - 2 * len(plan.links)
    codes = np.where(station_index < 0, -1, code_by_station[np.maximum(station_index, 0)])
    return pd.Categorical.from_codes(codes, nodes)


def get_receivers(
    numbers: npt.NDArray[Any], stations: npt.NDArray[np.int64], plan: RunPlan
) -> pd.Categorical[str]:
    """Return the node of each record's receiving station. Records without one get a missing value.

    Args:
        numbers: For each record, the number of its sending station, which determines the medium.
        stations: For each record, the index of the receiving station in its medium, or -1.
        plan: The plan of the run.
    """
    first_numbers = np.zeros(count_numbers(plan), np.int64)
    number = 2 * len(plan.links)
    for medium in plan.media:
        first_numbers[number : number + len(medium.stations)] = number
        number += len(medium.stations)
    station_numbers = first_numbers[numbers.astype(np.int64)] + stations
    return get_senders(np.where(stations < 0, -1, station_numbers), plan)  # -1 is no number


def _list_stations(plan: RunPlan) -> list[tuple[str, str]]:
    """Return (medium, node) of each station, in the order of their numbers."""
    return [(medium.name, station.node) for medium in plan.media for station in medium.stations]
