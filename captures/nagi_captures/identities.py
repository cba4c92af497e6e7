# SPDX-License-Identifier: Apache-2.0
"""Packets found again by their identity. Identities that occur twice are of no use."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Nanoseconds = npt.NDArray[np.int64]


def select_unique_keys(keys: Nanoseconds, values: Nanoseconds) -> tuple[Nanoseconds, Nanoseconds]:
    """The keys that occur once, sorted, and their values."""
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    same = keys[1:] == keys[:-1]
    single = ~(np.append(same, False) | np.append(False, same))[: len(keys)]
    return keys[single], values[single]


def look_up(keys: Nanoseconds, values: Nanoseconds, wanted: Nanoseconds) -> Nanoseconds:
    """The values of the `wanted` among sorted `keys`; 0 where there is none."""
    if not len(keys):
        return np.zeros(len(wanted), np.int64)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], 0)
