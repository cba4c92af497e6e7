# SPDX-License-Identifier: Apache-2.0
"""Power delay profiles of radio channels.

epa, eva and etu are Extended Pedestrian A, Extended Vehicular A and Extended Typical Urban of 3GPP
TS 36.101, annex B.2. pedestrian_a, pedestrian_b and vehicular_a are tapped delay lines of ITU-R
M.1225.
"""

from __future__ import annotations

from typing import Literal

ProfileName = Literal["epa", "eva", "etu", "pedestrian_a", "pedestrian_b", "vehicular_a"]

# Name -> (excess delay in ns, relative power in dB) of each path.
PROFILES: dict[ProfileName, list[tuple[int, float]]] = {
    "epa": [(0, 0), (30, -1), (70, -2), (90, -3), (110, -8), (190, -17.2), (410, -20.8)],
    "eva": [
        (0, 0), (30, -1.5), (150, -1.4), (310, -3.6), (370, -0.6), (710, -9.1), (1090, -7),
        (1730, -12), (2510, -16.9),
    ],
    "etu": [
        (0, -1), (50, -1), (120, -1), (200, 0), (230, 0), (500, 0), (1600, -3), (2300, -5),
        (5000, -7),
    ],
    "pedestrian_a": [(0, 0), (110, -9.7), (190, -19.2), (410, -22.8)],
    "pedestrian_b": [(0, 0), (200, -0.9), (800, -4.9), (1200, -8), (2300, -7.8), (3700, -23.9)],
    "vehicular_a": [(0, 0), (310, -1), (710, -9), (1090, -10), (1730, -15), (2510, -20)],
}  # fmt: skip
