#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that air_time agrees with the modems, and that no burst is longer than its link."""

import importlib.util
import subprocess
import sys
import unittest
from itertools import product

from flows import run
from gnuradio import gr_unittest, nagi
from gnuradio.nagi import air_time

RATES = (1_000_000, 2_083_333, 5_000_000, 12_345_678)
KINDS = list(product(air_time.MODEMS, air_time.BITS_PER_SYMBOL))
SIZES = (1, 2, 20, 40, 41, 47, 576, 1000, 1499, 1500, 1530)


class AirTime(gr_unittest.TestCase):
    def test_frames_have_the_size_of_the_framers(self):
        for code_rate in air_time.CODE_RATES:
            for size in range(1, air_time.LONGEST_PACKET + 1):
                self.assertEqual(
                    air_time.count_frame_bytes(size, code_rate), nagi.framed_bytes(size, code_rate)
                )

    def test_bursts_have_the_samples_that_are_said(self):
        for (modem, modulation), code_rate in product(KINDS, air_time.CODE_RATES):
            chain = [
                (
                    "packets",
                    nagi.packet_framer(
                        code_rate, whiten=False, max_payload=air_time.LONGEST_PACKET
                    ),
                    "frames",
                ),
                nagi.modem_tx(modem, modulation),
            ]
            bursts = run(chain, [bytes(size) for size in SIZES])
            said = [
                air_time.count_burst_samples(modem, modulation, code_rate, size) for size in SIZES
            ]
            self.assertEqual([len(samples) for _, samples in bursts], said)

    def test_no_burst_is_longer_than_the_links_air_time(self):
        for (modem, modulation), code_rate, rate in product(KINDS, air_time.CODE_RATES, RATES):
            bps = air_time.compute_rate_bps(modem, modulation, rate, code_rate)
            overhead = air_time.compute_overhead_bytes(modem, modulation, rate, code_rate)
            gaps = [
                (size + overhead) * 8 * rate
                - air_time.count_burst_samples(modem, modulation, code_rate, size) * bps
                for size in range(20, 1501)
            ]
            self.assertGreaterEqual(min(gaps), 0)
            # One byte less and some burst, of the sizes that the modem takes, would not fit.
            self.assertTrue(
                any(
                    (size + overhead - 1) * 8 * rate
                    < air_time.count_burst_samples(modem, modulation, code_rate, size) * bps
                    for size in range(1, air_time.LONGEST_PACKET + 1)
                )
            )
            last = air_time.compute_air_time_ns(modem, modulation, rate, code_rate, 1500)
            samples = air_time.count_burst_samples(modem, modulation, code_rate, 1500)
            self.assertGreaterEqual(last * rate, samples * 10**9)

    def test_rates(self):
        # 48 carriers of 2 bits in 80 samples
        self.assertEqual(air_time.compute_rate_bps("ofdm", "qpsk", 2_000_000, "none"), 2_400_000)
        self.assertEqual(air_time.compute_rate_bps("ofdm", "qpsk", 2_000_000, "1/2"), 1_200_000)
        self.assertEqual(air_time.compute_rate_bps("ofdm", "qpsk", 2_083_333, "none"), 2_499_999)
        # 4 bits in 2 samples
        self.assertEqual(
            air_time.compute_rate_bps("single_carrier", "16qam", 1_000_000, "none"), 2_000_000
        )

    def test_wrong_arguments_are_named(self):
        for arguments, name in (
            (("am", "qpsk", 1, "none"), "modem"),
            (("ofdm", "qam", 1, "none"), "modulation"),
            (("ofdm", "qpsk", 0, "none"), "sample_rate_hz"),
            (("ofdm", "qpsk", 1, "turbo"), "code_rate"),
        ):
            with self.assertRaisesRegex(ValueError, name):
                air_time.compute_rate_bps(*arguments)

    def test_it_needs_no_gnu_radio(self):
        origin = importlib.util.find_spec("gnuradio.nagi.air_time").origin
        program = (
            f"import runpy, sys; runpy.run_path({origin!r});"
            "sys.exit(any(name.startswith(('gnuradio', 'numpy')) for name in sys.modules))"
        )
        subprocess.run([sys.executable, "-I", "-c", program], check=True)


if __name__ == "__main__":
    unittest.main()
