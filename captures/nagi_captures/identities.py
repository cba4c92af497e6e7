# SPDX-License-Identifier: Apache-2.0
"""Look-up of packets by their identity, which nagi-link records (runtime/io/ip_header.hpp).

Identities that occur more than once are ignored, because they do not name a single packet.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Identities = npt.NDArray[np.int64]
Nanoseconds = npt.NDArray[np.int64]


def select_unique_keys(keys: Identities, values: Nanoseconds) -> tuple[Identities, Nanoseconds]:
    """Return the keys that occur only once, in ascending order, and their values.

    Args:
        keys: The identities of packets.
        values: The value for each element of `keys`, such as the packet's time.
    """
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    is_repeated = keys[1:] == keys[:-1]
    is_unique = ~(np.append(is_repeated, False) | np.append(False, is_repeated))[: len(keys)]
    return keys[is_unique], values[is_unique]


def look_up(keys: Identities, values: Nanoseconds, requested_keys: Identities) -> Nanoseconds:
    """Return the value for each of the requested keys, or 0 for a key that is not in `keys`.

    Args:
        keys: Different keys in ascending order, as select_unique_keys() returns them.
        values: The value for each element of `keys`.
        requested_keys: The keys to look up.
    """
    if not len(keys):
        return np.zeros(len(requested_keys), np.int64)
    index = np.minimum(np.searchsorted(keys, requested_keys), len(keys) - 1)
    return np.where(keys[index] == requested_keys, values[index], 0)
