# SPDX-License-Identifier: Apache-2.0
"""The directions of a plan's links and the stations of its media, as the emulator's records number
them: two directions a link, then the stations, medium by medium."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_contracts.plan import DIRECTIONS, DirectionName, LinkDirection, RunPlan

EVERYBODY, NOBODY = 0xFFFF, 0xFFFE  # next hops of packets


def direction_number(plan: RunPlan, link: str, direction: DirectionName) -> int:
    """The number that a direction of a link has in records."""
    names = [each.name for each in plan.links]
    return names.index(link) * 2 + DIRECTIONS.index(direction)


def number_of(plan: RunPlan, direction: LinkDirection) -> int:
    """The same; of a hop over a medium that of the station that sends."""
    if direction.sender is not None:
        return station_number(plan, direction.link, direction.sender)
    return direction_number(plan, direction.link, direction.direction)


def station_number(plan: RunPlan, medium: str, node: str) -> int:
    """The number that a station of a medium has in records."""
    return _stations(plan).index((medium, node)) + 2 * len(plan.links)


def count_of_directions(plan: RunPlan) -> int:
    """How many numbers there are."""
    return 2 * len(plan.links) + len(_stations(plan))


def are_receivers(
    numbers: npt.NDArray[Any], stations: npt.NDArray[np.int64], plan: RunPlan
) -> npt.NDArray[np.bool_]:
    """Return where the medium of station `numbers` has a station with the place in `stations`, or
    `stations` is -1 (nobody). Links have no stations. `numbers` are below count_of_directions()."""
    counts = np.zeros(count_of_directions(plan), np.int64)
    number = 2 * len(plan.links)
    for medium in plan.media:
        counts[number : number + len(medium.stations)] = len(medium.stations)
        number += len(medium.stations)
    found: npt.NDArray[np.bool_] = stations < counts[numbers.astype(np.int64)]
    return found


def link_names(numbers: npt.NDArray[Any], plan: RunPlan) -> pd.Categorical[str]:
    """The link or medium of each number."""
    names = [link.name for link in plan.links] + [medium.name for medium in plan.media]
    places = [index for index in range(len(plan.links)) for _ in DIRECTIONS]
    for index, medium in enumerate(plan.media):
        places += [len(plan.links) + index] * len(medium.stations)
    codes = np.array(places, np.int64)[numbers.astype(np.int64)]
    return pd.Categorical.from_codes(codes, pd.Index(names))


def direction_names(numbers: npt.NDArray[Any], plan: RunPlan) -> pd.Categorical[str]:
    """The direction of each number; of stations forward, as of hops."""
    of_links = numbers < 2 * len(plan.links)
    return pd.Categorical.from_codes(np.where(of_links, numbers % 2, 0), pd.Index(DIRECTIONS))


def senders(numbers: npt.NDArray[Any], plan: RunPlan) -> pd.Categorical[str]:
    """The station that each number is of; of a link none."""
    stations = _stations(plan)
    nodes = pd.Index(list(dict.fromkeys(node for _, node in stations)))
    places = np.array([nodes.get_loc(node) for _, node in stations], np.int64)
    station = numbers.astype(np.int64) - 2 * len(plan.links)
    codes = np.where(station < 0, -1, places[np.maximum(station, 0)])
    return pd.Categorical.from_codes(codes, nodes)


def receivers(
    numbers: npt.NDArray[Any], stations: npt.NDArray[np.int64], plan: RunPlan
) -> pd.Categorical[str]:
    """The stations with those places (-1: none) in the media whose stations `numbers` are."""
    first = np.zeros(count_of_directions(plan), np.int64)
    number = 2 * len(plan.links)
    for medium in plan.media:
        first[number : number + len(medium.stations)] = number
        number += len(medium.stations)
    where = first[numbers.astype(np.int64)] + stations
    return senders(np.where(stations < 0, 0, where), plan)


def _stations(plan: RunPlan) -> list[tuple[str, str]]:
    """(medium, node), in the order of their numbers."""
    return [(medium.name, each.node) for medium in plan.media for each in medium.stations]
