#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of calibration over the double of UHD devices. All draws are seeded.

Packets that the double does not carry in time are sent again, so a busy machine makes the tests
slower, but does not change results.
"""

import argparse
import math
import time
import unittest

import numpy as np
from gnuradio.nagi import calibrate, usrp
from gnuradio.nagi.calibration import RECEIVED, CalibrationSettings, Mode, Table
from gnuradio.nagi.device_calibration import DeviceChannel
from gnuradio.nagi.device_doctor import build_radio
from usrp_links import LOOP, device

QUICK = CalibrationSettings(seed=3, precision=0.3, min_packets=50, max_packets=200, step_db=0.5)
QPSK = Mode("ofdm", "qpsk", "none")
SIZE = 200
SPARED_S = 2.0


def arguments(faults="seed=1"):
    """Parse the arguments of a calibration over a double whose ends are connected by cables."""
    parser = argparse.ArgumentParser()
    calibrate.add_arguments(parser)
    return parser.parse_args(
        ["table.json", "--device", device(f"{LOOP},buffer=10,{faults}"), "--channels", "0,1",
         "--frequency", "2450e6", "--tx-gain", "72.5", "--rx-gain", "40", "--modulation", "qpsk",
         "--lengths", str(SIZE)]
    )  # fmt: skip


def make_table(settings=QUICK):
    table = Table(settings, {})
    table.curves[QPSK, SIZE] = {}
    return table


def measure(channel):
    table = make_table()
    calibrate.calibrate(table, lambda: None, lambda _: None, channel)
    return table.curves[QPSK, SIZE]


class Calibrating(unittest.TestCase):
    def test_the_curve_is_that_of_the_simulated_channel(self):
        # H0: the same curve, but for 0.2 dB, which the probes' SNR may be wrong by. Cells of 50 to
        # 200 packets each; the bound is one of 4 standard deviations, passed by chance once in
        # 1,000 runs of some 20 comparisons.
        simulated = measure(calibrate.open_simulated_channel)
        with DeviceChannel(build_radio(arguments())) as devices:
            self.assertEqual(devices.describe(QPSK)["by"], "uhd")
            curve = measure(devices.open_at)
        snrs = sorted(simulated)
        rates = np.minimum.accumulate([simulated[snr].rate for snr in snrs])
        compared = 0
        for snr_db, cell in curve.items():
            high, low = np.interp([snr_db - 0.2, snr_db + 0.2], snrs, rates)
            allowed = 4 * math.sqrt(0.25 * (1 / cell.packets + 1 / QUICK.min_packets))
            spread = max(high * (1 - high), low * (1 - low), 1 / cell.packets) * 4
            self.assertLess(cell.rate, high + allowed * math.sqrt(spread), snr_db)
            self.assertGreater(cell.rate, low - allowed * math.sqrt(spread), snr_db)
            compared += 0.02 < cell.rate < 0.98
        self.assertGreaterEqual(compared, 3)

    def test_packets_that_the_device_did_not_carry_are_sent_again(self):
        # Of 100 packets with a probability below 10^-10 none is late.
        faults = f"late=0.3,spared={SPARED_S},seed=3"
        radio = build_radio(arguments(faults))
        rng = np.random.default_rng(5)
        sent = [rng.bytes(SIZE) for _ in range(100)]
        with DeviceChannel(radio) as devices, devices.open_at(QPSK, 30.0, 1) as carry:
            time.sleep(SPARED_S)
            self.assertEqual(carry(0, sent), [(RECEIVED, packet) for packet in sent])
            self.assertGreater(devices.resent, 0)

    def test_a_gain_that_the_device_lacks_is_said(self):
        radio = build_radio(arguments())
        with (
            DeviceChannel(radio) as devices,
            self.assertRaises(usrp.DeviceError) as raised,
            devices.open_at(QPSK, 60.0, 1),
        ):
            self.fail("a gain above the highest")
        self.assertIn("from 0 to 89.75 dB", raised.exception.cure)


if __name__ == "__main__":
    unittest.main()
