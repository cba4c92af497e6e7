#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Radios that are devices of UHD, over the double of these: packets cross, each fault has an
outcome and a count of its own, and what a device cannot do is said.

Devices sample in real time: the lead of 0.4 s and their buffers of 10 s leave a busy machine time.
All draws are seeded.
"""

import itertools
import math
import os
import time
import unittest
from collections import Counter

import numpy as np
from flows import Flow, run
from gnuradio import gr_unittest, nagi
from gnuradio.nagi import usrp
from gnuradio.nagi.air_time import air_time_ns
from gnuradio.nagi.radio import parse_radio

RATE = 2_000_000
LEAD_NS = 400_000_000
SPARED_S = 2.0
LOOP = "channels=2,tx_cable=x|y,rx_cable=y|x,buffer=10"
APART = (
    "tx_cable=x,rx_cable=y,buffer=10",
    "tx_cable=y,rx_cable=x,buffer=10,offset_ppm=8,drift_ppm_s=0.02",
)
NOISE_DBM = -174 + 10 * math.log10(RATE) + 6
RECEIVED, NOT_DETECTED, NOT_SENT, NOT_RECEIVED, RECEIVER_BUSY = 0, 1, 11, 12, 8


def output_gain_db(snr_db, backoff_db=12.0, attenuation_db=60.0):
    """The gain at which a burst has that SNR at the other end of the cable."""
    return snr_db + NOISE_DBM + attenuation_db + backoff_db - 10 + 89.75


_serials = itertools.count()


def device(arguments):
    """Each of its own: UHD gives who asks for a serial the device that is open already."""
    return f"type=nagi_double,serial=qa-{os.getpid()}-{next(_serials)},{arguments}"


def config(a=LOOP, b=None, *, snr_db=25.0, channel=1, duplex="full", both=None, **changes):
    """`both`: of both ends; `changes`: of the first end, or of the link."""
    a, b = device(a), device(b) if b else None
    gain = round(output_gain_db(snr_db) * 4) / 4
    common = {"tx_gain_db": gain, "rx_gain_db": 40.0, **(both or {})}
    uhd = {
        "a": {"device": a, "channel": 0, **common},
        "b": {"device": b or a, "channel": 0 if b else channel, **common},
        "frequency_hz": {"forward": 2.45e9, "backward": 2.45e9},
        "duplex": duplex,
    }
    for key, value in changes.items():
        if key in ("frequency_hz", "lo_offset_hz", "backoff_db"):
            uhd[key] = value
        else:
            uhd["a"][key] = value
    return parse_radio({
        "by": "uhd", "modem": "ofdm", "modulation": "qpsk", "sample_rate_hz": RATE,
        "code_rate": "none", "uhd": uhd,
    })  # fmt: skip


def packets(count, size, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.bytes(size) for _ in range(count)]


def carry(radio, sent, direction="forward", after_s=0.0):
    """Outcomes of packets that follow each other without a gap, with counts of the direction.
    `after_s`: since the devices were opened."""
    epoch = time.monotonic_ns()
    link = usrp.UhdLink(radio, epoch, 2 * LEAD_NS, lead_ns=LEAD_NS)
    time.sleep(max(0.0, after_s - (time.monotonic_ns() - epoch) * 1e-9))
    begin = time.monotonic_ns() - epoch
    with Flow(("packets", link.radio(direction), "outcomes")) as flow:
        for number, packet in enumerate(sent):
            flow.send({"number": number, "begin_ns": begin, "mode": 0}, packet)
            begin += air_time_ns("ofdm", "qpsk", RATE, "none", len(packet))
        outcomes = flow.collect(len(sent))
    return outcomes, link.counts()[direction], link


def fate(meta):
    return meta.get("fate", meta["outcome"])


class Usrp(gr_unittest.TestCase):
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
            Flow(("packets", link.radio("forward"), "outcomes")) as there,
            Flow(("packets", link.radio("backward"), "outcomes")) as back,
        ):
            there.send({"number": 0, "begin_ns": begin, "mode": 0}, bytes(500))
            back.send({"number": 0, "begin_ns": begin + 500_000, "mode": 0}, bytes(500))
            there.send({"number": 1, "begin_ns": begin + 50_000_000, "mode": 0}, bytes(500))
            back.send({"number": 1, "begin_ns": begin + 90_000_000, "mode": 0}, bytes(500))
            for flow in (there, back):
                found = [fate(meta) for meta, _ in flow.collect(2)]
                self.assertEqual(found, [RECEIVER_BUSY, RECEIVED])

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
        there, here = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(here)
            held = usrp.bindings().Usrp(device=shared)
            os.read(there, 1)
            del held
            os._exit(0)
        try:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                try:
                    usrp.bindings().Usrp(device=shared)
                except RuntimeError as error:
                    self.assertIn("is in use", str(error))
                    self.assertEqual(error.stage, "device")
                    return
                time.sleep(0.05)
            self.fail("nobody had it")
        finally:
            os.write(here, b".")
            os.waitpid(child, 0)

    def test_too_short_a_delay_is_said_with_what_is_needed(self):
        with self.assertRaises(usrp.DeviceError) as raised:
            usrp.UhdLink(config(), time.monotonic_ns(), 1_000_000, lead_ns=5_000_000)
        self.assertIn("too short", str(raised.exception))


class Search(gr_unittest.TestCase):
    """Whether noise is taken for a burst as seldom as the formula says."""

    def test_false_alarms_stay_below_their_bound(self):
        module = usrp.bindings()
        rng = np.random.default_rng(7)
        for modem in ("ofdm", "single_carrier"):
            shape = usrp.preamble(modem)
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
        module = usrp.bindings()
        shape = usrp.preamble("ofdm")
        search = module.BurstSearch(shape, 65, 1e-6)
        self.assertAlmostEqual(
            module.BurstSearch.false_alarms(shape, 65, search.threshold) / 1e-6, 1, places=6
        )
        self.assertLess(search.threshold, 0.15)


if __name__ == "__main__":
    unittest.main()
