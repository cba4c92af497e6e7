#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of radios that are UHD devices, with the double: refused settings, and false alarms.

qa_usrp_timing.py has the tests that depend on time.
"""

import math
import os
import time
import unittest

import numpy as np
from gnuradio import gr_unittest
from gnuradio.nagi import usrp
from usrp_links import LEAD_NS, LOOP, config, device


class Usrp(gr_unittest.TestCase):
    def test_what_a_device_cannot_do_is_said_with_its_stage_and_cure(self):
        external = {"clock_source": "external"}
        far = {"forward": 7e9, "backward": 7e9}
        for radio, stage, what, cure in (
            (config(f"{LOOP},devices=missing"), "device", "UHD finds no", "uhd_find_dev"),
            (config(f"{LOOP},images=missing"), "images", "does not find the images", "download"),
            (config(f"{LOOP},attenuation=-1"), "device", "write a number from 0", "uhd_usrp_pro"),
            (config(both={"clock_source": "gpsdo"}), "device", "no clock_source", "internal"),
            (config(f"{LOOP},reference=missing", both=external), "device", "not lock", "10 MHz"),
            (config(channel=2), "device", "no receive channel 2", "from 0 to 1"),
            (config(tx_antenna="RX9"), "device", "no antenna RX9", "TX/RX"),
            (config(both={"subdev": "B:0"}), "device", "subdev", "uhd_usrp_probe"),
            (config(frequency_hz=far), "rate", "not tune to 7000 MHz", "give a frequency from"),
            (config(tx_gain_db=100.0), "rate", "a gain of 100 dB", "from 0 to 89.75 dB"),
            (config(f"{LOOP},master_clock_rate=30.72e6"), "rate", "at 2 MHz but at 2.048 MHz",
             "sample_rate: 2.048 MHz"),
            (config(LOOP, "channels=1"), "loopback", "found 0", "check cables"),
        ):  # fmt: skip
            with self.subTest(what), self.assertRaises(usrp.DeviceError) as raised:
                usrp.UhdLink(radio, time.monotonic_ns(), 2 * LEAD_NS, lead_ns=10_000_000)
            self.assertEqual(raised.exception.stage, stage)
            self.assertIn(what, str(raised.exception))
            self.assertIn(cure, raised.exception.cure)

    def test_a_device_in_use_by_another_process_is_said(self):
        shared = device("channels=1")
        wait, end = os.pipe()
        opened, tell = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(end)
            held = usrp.load_bindings().Usrp(device=shared)
            os.write(tell, b".")
            os.read(wait, 1)
            del held
            os._exit(0)
        os.close(tell)
        try:
            self.assertEqual(os.read(opened, 1), b".")
            with self.assertRaisesRegex(RuntimeError, "is in use") as raised:
                usrp.load_bindings().Usrp(device=shared)
            self.assertEqual(raised.exception.stage, "device")
        finally:
            os.write(end, b".")
            os.waitpid(child, 0)

    def test_too_short_a_delay_is_said_with_what_is_needed(self):
        with self.assertRaises(usrp.DeviceError) as raised:
            usrp.UhdLink(config(), time.monotonic_ns(), 1_000_000, lead_ns=5_000_000)
        self.assertIn("too short", str(raised.exception))


class Search(gr_unittest.TestCase):
    """Check that false alarms are as rare as the formula predicts."""

    def test_false_alarms_stay_below_their_bound(self):
        module = usrp.load_bindings()
        rng = np.random.default_rng(7)
        for modem in ("ofdm", "single_carrier"):
            shape = usrp.make_preamble(modem)
            positions = 40
            search = module.BurstSearch(shape, positions, 1.0)
            length = 160
            trials = 4000
            shares = []
            for _ in range(trials):
                size = length + positions
                noise = rng.normal(size=size) + 1j * rng.normal(size=size)
                found = search.find(noise.astype(np.complex64))
                shares.append(found[1] if found else 0.0)
            shares = np.array(shares)
            # At thresholds at which there still are alarms, the bound holds, and it is a bound of
            # the right steepness: alarms at the highest fall with it.
            for threshold in (0.03, 0.05, 0.06):
                bound = module.BurstSearch.false_alarms(shape, positions, threshold)
                seen = float((shares > threshold).mean())
                self.assertLess(seen, bound + 5 * math.sqrt(bound / trials))

    def test_the_threshold_gives_the_probability_asked_for(self):
        module = usrp.load_bindings()
        shape = usrp.make_preamble("ofdm")
        search = module.BurstSearch(shape, 65, 1e-6)
        self.assertAlmostEqual(
            module.BurstSearch.false_alarms(shape, 65, search.threshold) / 1e-6, 1, places=6
        )
        self.assertLess(search.threshold, 0.15)


if __name__ == "__main__":
    unittest.main()
