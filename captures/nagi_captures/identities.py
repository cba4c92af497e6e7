# SPDX-License-Identifier: Apache-2.0
"""Packets found again by their identity; identities that occur twice are ignored."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Nanoseconds = npt.NDArray[np.int64]


def select_unique_keys(keys: Nanoseconds, values: Nanoseconds) -> tuple[Nanoseconds, Nanoseconds]:
    """Return the keys that occur once, sorted, and their values."""
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    is_repeated = keys[1:] == keys[:-1]
    is_unique = ~(np.append(is_repeated, False) | np.append(False, is_repeated))[: len(keys)]
    return keys[is_unique], values[is_unique]


def look_up(keys: Nanoseconds, values: Nanoseconds, wanted: Nanoseconds) -> Nanoseconds:
    """Return the values of the `wanted` among sorted `keys`; 0 for a missing key."""
    if not len(keys):
        return np.zeros(len(wanted), np.int64)
    index = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[index] == wanted, values[index], 0)
