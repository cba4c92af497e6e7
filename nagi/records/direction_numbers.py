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

EVERYBODY, NOBODY = 0xFFFF, 0xFFFE  # next hops of packets


def get_direction_number(plan: RunPlan, link: str, direction: DirectionName) -> int:
    """Return the number of a link's direction in records."""
    names = [link_plan.name for link_plan in plan.links]
    return names.index(link) * 2 + DIRECTIONS.index(direction)


def get_hop_number(plan: RunPlan, direction: LinkDirection) -> int:
    """Return the number of a direction in records; for a hop over a medium, that of its sender."""
    if direction.sender is not None:
        return get_station_number(plan, direction.link, direction.sender)
    return get_direction_number(plan, direction.link, direction.direction)


def get_station_number(plan: RunPlan, medium: str, node: str) -> int:
    """Return the number of a medium's station in records."""
    return _list_stations(plan).index((medium, node)) + 2 * len(plan.links)


def list_numbers(plan: RunPlan) -> Iterator[tuple[str, int]]:
    """Yield each direction of each link, then each station of each medium, with its number."""
    for link in plan.links:
        for direction in DIRECTIONS:
            yield f"{link.name} {direction}", get_direction_number(plan, link.name, direction)
    for medium, node in _list_stations(plan):
        yield f"{medium} {node}", get_station_number(plan, medium, node)


def count_directions(plan: RunPlan) -> int:
    """Return how many numbers a plan uses."""
    return 2 * len(plan.links) + len(_list_stations(plan))


def are_stations(
    numbers: npt.NDArray[Any], stations: npt.NDArray[np.int64], plan: RunPlan
) -> npt.NDArray[np.bool_]:
    """Return whether each medium has a station at a position.

    Args:
        numbers: Number of a station for each record, below count_directions(). It selects the
            medium. Links have no stations.
        stations: Position in that medium for each record, or -1 for no station, which is valid.
        plan: The plan of the run.
    """
    counts = np.zeros(count_directions(plan), np.int64)
    number = 2 * len(plan.links)
    for medium in plan.media:
        counts[number : number + len(medium.stations)] = len(medium.stations)
        number += len(medium.stations)
    is_station: npt.NDArray[np.bool_] = stations < counts[numbers.astype(np.int64)]
    return is_station


def get_link_names(numbers: npt.NDArray[Any], plan: RunPlan) -> pd.Categorical[str]:
    """Return the name of the link or medium of each number."""
    names = [link.name for link in plan.links] + [medium.name for medium in plan.media]
    positions = [index for index in range(len(plan.links)) for _ in DIRECTIONS]
    for index, medium in enumerate(plan.media):
        positions += [len(plan.links) + index] * len(medium.stations)
    codes = np.array(positions, np.int64)[numbers.astype(np.int64)]
    return pd.Categorical.from_codes(codes, pd.Index(names))


def get_direction_names(numbers: npt.NDArray[Any], plan: RunPlan) -> pd.Categorical[str]:
    """Return the direction of each number. Stations count as forward, as hops over media do."""
    is_link = numbers < 2 * len(plan.links)
    return pd.Categorical.from_codes(np.where(is_link, numbers % 2, 0), pd.Index(DIRECTIONS))


def get_senders(numbers: npt.NDArray[Any], plan: RunPlan) -> pd.Categorical[str]:
    """Return the station of each number, or a missing value for numbers of links."""
    stations = _list_stations(plan)
    nodes = pd.Index(list(dict.fromkeys(node for _, node in stations)))
    codes_of_nodes = np.array([nodes.get_loc(node) for _, node in stations], np.int64)
    station = numbers.astype(np.int64) - 2 * len(plan.links)
    codes = np.where(station < 0, -1, codes_of_nodes[np.maximum(station, 0)])
    return pd.Categorical.from_codes(codes, nodes)


def get_receivers(
    numbers: npt.NDArray[Any], stations: npt.NDArray[np.int64], plan: RunPlan
) -> pd.Categorical[str]:
    """Return the names of stations at positions of media.

    Args:
        numbers: Number of a station for each record. It selects the medium.
        stations: Position in that medium for each record, or -1 for no station.
        plan: The plan of the run.
    """
    first = np.zeros(count_directions(plan), np.int64)
    number = 2 * len(plan.links)
    for medium in plan.media:
        first[number : number + len(medium.stations)] = number
        number += len(medium.stations)
    station_numbers = first[numbers.astype(np.int64)] + stations
    return get_senders(np.where(stations < 0, 0, station_numbers), plan)


def _list_stations(plan: RunPlan) -> list[tuple[str, str]]:
    """Return (medium, node) of each station, in the order of their numbers."""
    return [(medium.name, station.node) for medium in plan.media for station in medium.stations]
