# SPDX-License-Identifier: Apache-2.0
"""Make the table of frames on media from the emulator's record of transmissions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import FrameRow

from nagi.records.direction_numbers import get_link_names, get_receivers, get_senders
from nagi.records.transmissions import (
    FRAME_OUTCOMES,
    KINDS,
    NO_STATION,
    Transmissions,
    to_names,
)


def to_frames_table(transmissions: Transmissions, plan: RunPlan) -> pd.DataFrame:
    """Return the table of frames.parquet (contract FrameRow), one row per frame on a medium.

    Transmissions on links are left out. Frames without a receiving station have no `receiver`.
    """
    frames = transmissions[transmissions["kind"] != 0]
    names = frames.dtype.names or ()
    stations = frames["receiver"].astype(np.int64)
    columns: dict[str, Any] = {name: frames[name] for name in names}
    columns |= {
        "medium": get_link_names(frames["direction"], plan),
        "sender": get_senders(frames["direction"], plan),
        "receiver": get_receivers(
            frames["direction"], np.where(stations < NO_STATION, stations, -1), plan
        ),
        "kind": to_names(frames["kind"], KINDS),
        "outcome": to_names(frames["outcome"], FRAME_OUTCOMES),
    }
    return pd.DataFrame({name: columns[name] for name in FrameRow.model_fields})
