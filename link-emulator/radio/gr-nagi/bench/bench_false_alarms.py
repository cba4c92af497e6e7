#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how often a receiver of radio hardware mistakes noise for a burst. Prints JSON.

    python3 bench_false_alarms.py [--trials 1000000]

The rates are measured with seeded noise, at thresholds below the threshold in use. They are
compared with the bound from which the threshold in use is computed. In a trial, the receiver
searches one window for a burst: with a common clock, at 17 positions and at the positions of the
fine search.
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
    """Measure the false alarms of a modem's detector, and return its object for the JSON output."""
    module = usrp.load_bindings()
    preamble = usrp.make_preamble(modem)
    search = module.BurstSearch(preamble, 1, 1.0)  # accepts all candidates of the detector
    positions = module.common_clock_positions(preamble)
    size = GUARD + module.preamble_length(preamble) + 2 * MARGIN
    rng = np.random.default_rng(seed)
    shares = []
    for _ in range(0, trials, BATCH):
        noise = rng.standard_normal((BATCH, size, 2), np.float32).view(np.complex64)[..., 0]
        shares += [burst[1] if (burst := search.find(samples)) else 0.0 for samples in noise]
    values = np.asarray(shares)
    rows = [
        {
            "threshold": threshold,
            "false_alarms": int((values > threshold).sum()),
            "measured": float((values > threshold).mean()),
            "bound": module.BurstSearch.false_alarms(preamble, positions, threshold),
        }
        for threshold in THRESHOLDS
    ]
    in_use = module.BurstSearch(preamble, positions, usrp.MAX_FALSE_ALARMS).threshold
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
    results = [measure(modem, arguments.trials, arguments.seed) for modem in modems]
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
