#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of radios that are UHD devices, with the double: packets, and the counts of faults.

A busy machine makes bursts late, so these tests run in virtual time, in a guest of the virtual
lab (nagi/tests/test_virtual_uhd.py). All draws are seeded.
"""

import math
import time
import unittest
from collections import Counter

import numpy as np
from flows import Flow, run
from gnuradio import gr_unittest, nagi
from gnuradio.nagi import usrp
from gnuradio.nagi.radio import parse_radio
from usrp_links import APART, LEAD_NS, LOOP, RATE, carry, config, packets

SPARED_S = 1.0  # probes are over by then
RECEIVED, NOT_SENT, NOT_RECEIVED, RECEIVER_BUSY = 0, 11, 12, 8


def fate(meta):
    return meta.get("fate", meta["outcome"])


class UsrpTiming(gr_unittest.TestCase):
    def test_packets_cross_each_way_and_come_in_order(self):
        for direction in ("forward", "backward"):
            sent = packets(40, 500)
            outcomes, counts, link = carry(config(), sent, direction)
            self.assertEqual([meta["number"] for meta, _ in outcomes], list(range(40)))
            self.assertEqual([data for _, data in outcomes], sent)
            self.assertEqual(counts["not_sent"] + counts["not_received"], 0)
            self.assertEqual(link.measured[direction].delay_samples, 0)
            snr = [meta["snr_db"] for meta, _ in outcomes]
            self.assertAlmostEqual(float(np.mean(snr)), 25, delta=1)

    def test_it_loses_as_many_as_the_simulated_channel(self):
        # Null hypothesis: the same probability. Of 400 each, a difference of 5 standard deviations
        # has a probability below 10^-6.
        count = 400
        sent = packets(count, 300)
        outcomes, _, _ = carry(config(snr_db=10.5), sent)
        lost = sum(fate(meta) != RECEIVED for meta, _ in outcomes)
        channel = {"snr_db": 10.5}
        simulated = parse_radio({
            "by": "simulated", "modem": "ofdm", "modulation": "qpsk", "sample_rate_hz": RATE,
            "code_rate": "none", "forward": channel, "backward": channel,
        })  # fmt: skip
        radio = nagi.SimulatedRadio(simulated, "forward", 1, 0)
        theirs = run([("packets", radio, "outcomes")], sent)
        expected = sum(meta["outcome"] != RECEIVED for meta, _ in theirs)
        self.assertTrue(0.05 * count < expected < 0.95 * count, expected)
        share = (lost + expected) / (2 * count)
        deviation = math.sqrt(2 * count * share * (1 - share))
        self.assertLess(abs(lost - expected), 5 * deviation, (lost, expected))

    def test_each_fault_is_an_outcome_and_a_count_of_its_own(self):
        for fault, counted, expected in (
            ("late=0.1", "late", NOT_SENT),
            ("underflow=0.1", "underflows", NOT_SENT),
            ("tx_sequence=0.1", "tx_sequence_errors", NOT_SENT),
            ("overflow=0.2", "overflows", NOT_RECEIVED),
            ("rx_sequence=0.3", "rx_sequence_errors", NOT_RECEIVED),
        ):
            with self.subTest(fault):
                # Of 120 packets, and 40 of the stream or more, with a probability below 10^-4
                # none is met; the seed is one with which some are.
                radio = config(f"{LOOP},{fault},spared={SPARED_S},seed=3")
                outcomes, counts, _ = carry(radio, packets(120, 300), after_s=SPARED_S)
                found = Counter(fate(meta) for meta, _ in outcomes)
                self.assertEqual(set(found), {RECEIVED, expected}, found)
                self.assertGreaterEqual(counts[counted], 1)
                name = "not_sent" if expected == NOT_SENT else "not_received"
                self.assertEqual(counts[name], found[expected])
                others = {"late", "underflows", "tx_sequence_errors", "overflows",
                          "rx_sequence_errors"} - {counted}  # fmt: skip
                self.assertEqual({key: counts[key] for key in others}, dict.fromkeys(others, 0))

    def test_a_receiver_follows_a_clock_of_its_own(self):
        sent = packets(150, 500)
        outcomes, _, link = carry(config(*APART), sent)
        self.assertEqual([data for _, data in outcomes], sent)
        self.assertAlmostEqual(link.measured["forward"].drift_ppm, 8, delta=1)

    def test_a_common_reference_is_a_common_clock(self):
        sources = {"clock_source": "external", "time_source": "external"}
        radio = config(*APART, both=sources)
        sent = packets(40, 500)
        outcomes, _, link = carry(radio, sent)
        self.assertEqual([data for _, data in outcomes], sent)
        self.assertEqual(link.measured["forward"].delay_samples, 0)

    def test_small_impairments_lose_nothing_and_large_ones_do(self):
        small = "rx_dc=0.002,tx_dc=0.002,iq_gain=0.1,iq_phase=1,phase_noise=20,bits=12"
        for said, is_received in ((small, True), ("phase_noise=1500", False)):
            with self.subTest(said):
                outcomes, _, _ = carry(config(f"{LOOP},{said}"), packets(40, 500))
                found = Counter(fate(meta) for meta, _ in outcomes)
                self.assertEqual(found[RECEIVED] == 40, is_received, found)

    def test_peaks_above_full_scale_are_clipped_and_counted(self):
        _, counts, _ = carry(config(), packets(40, 500))
        self.assertEqual(counts["clipped_samples"], 0)
        _, counts, _ = carry(config(backoff_db=3.0), packets(40, 500))
        # A tenth of OFDM's samples are 3 dB above the mean power or more.
        self.assertGreater(counts["clipped_samples"], 40 * 500 / 20)

    def test_half_duplex_loses_what_overlaps(self):
        radio = config(LOOP, snr_db=25, duplex="half")
        epoch = time.monotonic_ns()
        link = usrp.UhdLink(radio, epoch, 2 * LEAD_NS, lead_ns=LEAD_NS)
        begin = time.monotonic_ns() - epoch
        with (
            Flow(("packets", link.make_radio("forward"), "outcomes")) as there,
            Flow(("packets", link.make_radio("backward"), "outcomes")) as back,
        ):
            there.send({"number": 0, "begin_ns": begin, "mode": 0}, bytes(500))
            back.send({"number": 0, "begin_ns": begin + 500_000, "mode": 0}, bytes(500))
            there.send({"number": 1, "begin_ns": begin + 50_000_000, "mode": 0}, bytes(500))
            back.send({"number": 1, "begin_ns": begin + 90_000_000, "mode": 0}, bytes(500))
            for flow in (there, back):
                found = [fate(meta) for meta, _ in flow.collect(2)]
                self.assertEqual(found, [RECEIVER_BUSY, RECEIVED])
        link.close()


if __name__ == "__main__":
    unittest.main()
