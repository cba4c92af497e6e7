#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often a receiver of radio hardware takes noise for a burst: measured on seeded noise at lower
thresholds, beside the bound by which the threshold in use is computed. Prints JSON.

    python3 bench_false_alarms.py [--trials 1000000]

A trial is the window in which the receiver looks for one burst: with a common clock 17 positions
and what the fine search adds.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from gnuradio.nagi import usrp

THRESHOLDS = (0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.10)
GUARD, MARGIN = 32, 8  # samples, as in UsrpChannel
BATCH = 2000


def measure(modem: str, trials: int, seed: int) -> dict[str, object]:
    module = usrp.load_bindings()
    shape = usrp.make_preamble(modem)
    search = module.BurstSearch(shape, 1, 1.0)  # all that the detector proposes
    positions = module.common_clock_positions(shape)
    size = GUARD + module.preamble_length(shape) + 2 * MARGIN
    rng = np.random.default_rng(seed)
    shares = []
    for _ in range(0, trials, BATCH):
        noise = rng.standard_normal((BATCH, size, 2), np.float32).view(np.complex64)[..., 0]
        shares += [found[1] if (found := search.find(one)) else 0.0 for one in noise]
    values = np.asarray(shares)
    rows = [
        {
            "threshold": threshold,
            "false_alarms": int((values > threshold).sum()),
            "measured": float((values > threshold).mean()),
            "bound": module.BurstSearch.false_alarms(shape, positions, threshold),
        }
        for threshold in THRESHOLDS
    ]
    in_use = module.BurstSearch(shape, positions, usrp.MAX_FALSE_ALARMS).threshold
    return {
        "modem": modem,
        "trials": len(values),
        "rows": rows,
        "threshold_in_use": in_use,
        "false_alarms_in_use": int((values > in_use).sum()),
        "bound_in_use": usrp.MAX_FALSE_ALARMS,
        "highest_share": float(values.max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    modems = ("ofdm", "single_carrier")
    found = [measure(modem, arguments.trials, arguments.seed) for modem in modems]
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
