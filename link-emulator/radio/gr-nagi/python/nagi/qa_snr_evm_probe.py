#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of snr_evm_probe: EVM of symbols with known errors, SNR in noise."""

import math
import unittest

import numpy as np
import pmt
from gnuradio import blocks, gr, gr_unittest, nagi
from pdus import pdu

QPSK = np.array([1 + 1j, -1 + 1j, -1 - 1j, 1 - 1j]) / math.sqrt(2)
QAM16 = np.array([a + 1j * b for a in (-3, -1, 1, 3) for b in (-3, -1, 1, 3)]) / math.sqrt(10)


def measure(points, packets):
    probe, sink = nagi.snr_evm_probe([complex(p) for p in points]), blocks.message_debug(False)
    flowgraph = gr.top_block(catch_exceptions=False)
    flowgraph.msg_connect(probe, "measured", sink, "store")
    for number, symbols in enumerate(packets):
        probe.to_basic_block()._post(
            pmt.intern("symbols"), pdu({"number": number}, symbols.astype(np.complex64))
        )
    flowgraph.start()
    while sink.num_messages() < len(packets):
        pass
    flowgraph.stop()
    flowgraph.wait()
    assert probe.packets() == len(packets)
    return [pmt.to_python(sink.get_message(i)) for i in range(len(packets))]


class SnrEvmProbe(gr_unittest.TestCase):
    def test_known_errors(self):
        symbols = np.tile(QPSK, 25)
        shifted = symbols + 0.1 * np.exp(1j * np.arange(100))
        half = symbols + 0.2j * (np.arange(100) % 2)  # every other one: EVM 20 % / sqrt(2)
        got = measure(QPSK, [shifted, half])
        for i, evm_percent in enumerate((10.0, 20 / math.sqrt(2))):
            self.assertAlmostEqual(got[i]["evm_percent"], evm_percent, places=4)
            self.assertAlmostEqual(got[i]["snr_db"], -20 * math.log10(evm_percent / 100), places=4)
            self.assertEqual((got[i]["number"], got[i]["symbols"]), (i, 100))

    def test_snr_in_noise(self):
        n, draw = 20_000, np.random.default_rng(1)
        for points, snr_db in ((QPSK, 14.0), (QAM16, 24.0)):  # errors rarer than 1 in 10^5
            deviation = 10 ** (-snr_db / 20) / math.sqrt(2)
            noise = deviation * (draw.normal(size=n) + 1j * draw.normal(size=n))
            (got,) = measure(points, [draw.choice(points, n) + noise])
            # Deviations: of the noise's power 1 / sqrt(n), of 16QAM's 0.57 / sqrt(n); here times 4.
            self.assertLess(abs(got["snr_db"] - snr_db), 4 * 4.343 * math.hypot(1, 0.57) / n**0.5)

    def test_what_is_refused(self):
        for points in ([], [0j, 0j]):
            with self.assertRaisesRegex(ValueError, "points"):
                nagi.snr_evm_probe(points)
        self.assertTrue(math.isnan(nagi.snr_evm_probe([1 + 0j]).snr_db()))


if __name__ == "__main__":
    unittest.main()
