#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of co-channel interference: overlapping bursts are added at their levels."""

import math
import unittest

import numpy as np
import pmt
from flows import run
from gnuradio import blocks, gr, gr_unittest, nagi
from pdus import open_pdu, pdu

RATE = 2e6
MARGIN_NS = 300_000_000
"""A time longer than a busy machine delays a message."""


class Interference(gr_unittest.TestCase):
    def run_interference(self, levels_db, bursts, interferers, **settings):
        """Add interferers to `bursts`, each (begin_ns, samples), and return the output."""
        block = nagi.interference(
            3, 1, RATE, levels_db=levels_db, **{"margin_ns": MARGIN_NS, **settings}
        )
        sink = blocks.message_debug(False)
        flowgraph = gr.top_block(catch_exceptions=False)
        flowgraph.msg_connect(block, "bursts", sink, "store")
        ports = [f"interferer{i or ''}" for i in range(len(interferers))]
        for port, sent in [*zip(ports, interferers, strict=True), ("bursts", bursts)]:
            for number, (begin_ns, samples) in enumerate(sent):
                message = pdu({"number": number, "begin_ns": begin_ns}, samples)
                block.to_basic_block()._post(pmt.intern(port), message)
        flowgraph.start()
        self.assertTrue(self.waitFor(lambda: sink.num_messages() == len(bursts), timeout=20))
        flowgraph.stop()
        flowgraph.wait()
        return [open_pdu(sink.get_message(i)) for i in range(len(bursts))]

    def test_what_overlaps_is_added(self):
        rng = np.random.default_rng(1)

        def burst(length):
            return (rng.normal(size=length) + 1j * rng.normal(size=length)).astype(np.complex64)

        # 0.5 us a sample. The second burst meets the end of one and the begin of another.
        wanted = [(0, burst(1000)), (10**6, burst(1000)), (2 * 10**6, burst(500))]
        first = [(900_000, burst(400)), (1_400_000, burst(5000))]
        second = [(5 * 10**8, burst(10))]
        alone, both, last = self.run_interference([-6.0, 0.0], wanted, [first, second])
        self.assertEqual(alone[0], {"number": 0, "begin_ns": 0})
        self.assertEqual(alone[1].tobytes(), wanted[0][1].tobytes())
        added = both[1] - wanted[1][1]
        np.testing.assert_allclose(added[200:800], 0, atol=1e-6)
        for got, sent in ((added[:200], first[0][1][200:]), (added[800:], first[1][1][:200])):
            gain = np.vdot(sent, got) / np.vdot(sent, sent)
            self.assertAlmostEqual(20 * math.log10(abs(gain)), -6, places=4)
            np.testing.assert_allclose(got, gain * sent, atol=1e-5)
        self.assertGreater(np.min(np.abs(last[1] - wanted[2][1])), 0)  # of the longest one
        again = self.run_interference([-6.0, 0.0], wanted, [first, second])
        for one, other in zip((alone, both, last), again, strict=True):
            self.assertEqual(one[1].tobytes(), other[1].tobytes())

    def test_the_receiver_takes_interference_for_noise(self):
        packets = [np.random.default_rng([2, i]).bytes(200) for i in range(20)]
        sent = [samples for _, samples in run([nagi.modem_tx("ofdm", "qpsk")], packets)]
        others = [samples for _, samples in run([nagi.modem_tx("ofdm", "16qam")], packets)]
        wanted = [(i * 10**7, samples) for i, samples in enumerate(sent)]
        # OFDM symbols that are not aligned are as noise is: QPSK needs 13 dB for few losses.
        for level_db, lost in ((-22.0, 0), (-3.0, 20)):
            disturbing = [(i * 10**7 + 37_000, np.tile(each, 3)) for i, each in enumerate(others)]
            heard = self.run_interference([level_db], wanted, [disturbing])
            out = run([nagi.modem_rx("ofdm", "qpsk")], [samples for _, samples in heard])
            wrong = sum(data != each for (_, data), each in zip(out, packets, strict=True))
            self.assertEqual(wrong, lost)
            if not lost:
                measured = np.mean([meta["snr_db"] for meta, _ in out])
                self.assertLess(abs(measured + level_db), 1.5)

    def test_what_is_refused(self):
        for settings, name in (
            ({"levels_db": []}, "levels_db"),
            ({"levels_db": [math.nan]}, "levels_db"),
            ({"levels_db": [0.0] * 9}, "levels_db"),
            ({"levels_db": [0.0], "margin_ns": -1}, "margin_ns"),
        ):
            with self.assertRaisesRegex(ValueError, name):
                nagi.interference(1, 0, RATE, **settings)
        with self.assertRaisesRegex(ValueError, "sample_rate"):
            nagi.interference(1, 0, 0.0, levels_db=[0.0])


if __name__ == "__main__":
    unittest.main()
