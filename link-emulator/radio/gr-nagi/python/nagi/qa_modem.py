#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that packets cross the modems bit-exact, and that each has one reproducible outcome.

All randomness is seeded. Bounds of random counts and errors are such that a correct
modem fails with a probability below 0.001.
"""

import subprocess
import sys
import unittest
from itertools import product

import numpy as np
from flows import Flow, receive, run, transmit
from gnuradio import gr_unittest, nagi
from gnuradio.nagi import air_time, ofdm, single_carrier
from gnuradio.nagi.modem import constellation

KINDS = list(product(air_time.MODEMS, air_time.BITS_PER_SYMBOL))
CLEAN_DB = {"bpsk": 15, "qpsk": 18, "8psk": 23, "16qam": 26, "64qam": 32}
RATE = 2e6


def packets(seed, sizes):
    rng = np.random.default_rng(seed)
    return [rng.bytes(int(size)) for size in sizes]


def make_channel(seed=1, **settings):
    return nagi.channel(seed, 0, RATE, **settings)


def add_noise(rng, burst, snr_db):
    """Add noise to a burst of power 1, given the SNR in dB."""
    scale = 10 ** (-snr_db / 20) / np.sqrt(2)
    noise = rng.normal(size=len(burst)) + 1j * rng.normal(size=len(burst))
    return (burst + scale * noise).astype(np.complex64)


class Modem(gr_unittest.TestCase):
    def check_exact(self, outcomes, sent, **context):
        with self.subTest(**context):
            self.assertEqual([meta["number"] for meta, _ in outcomes], list(range(len(sent))))
            self.assertEqual([meta.get("outcome") for meta, _ in outcomes], [None] * len(sent))
            self.assertEqual([data for _, data in outcomes], sent)

    def test_all_sizes_cross_bit_exact(self):
        # An SNR at which a bit error in all these packets has a probability below 1e-4.
        sizes = [*range(1, 40), *range(40, 1500, 97), 1500, air_time.count_longest_frame_bytes()]
        for modem, modulation in KINDS:
            sent = packets(2, sizes)
            chain = [
                nagi.modem_tx(modem, modulation),
                make_channel(snr_db=CLEAN_DB[modulation]),
                nagi.modem_rx(modem, modulation),
            ]
            self.check_exact(run(chain, sent), sent, modem=modem, modulation=modulation)

    def test_packets_of_zeros_have_full_power_and_cross(self):
        sent = [bytes(1000), b"\xff" * 1000]
        for modem, modulation in KINDS:
            bursts = transmit(modem, modulation, sent)
            guard = air_time.WAVEFORMS[modem].guard
            for burst in bursts:
                self.assertAlmostEqual(np.mean(abs(burst[guard:-guard]) ** 2), 1, delta=0.06)
            self.check_exact(receive(modem, modulation, bursts), sent, modem=modem)

    def test_a_packet_alone_comes_out(self):
        for modem in air_time.MODEMS:
            chain = [
                nagi.modem_tx(modem, "qpsk"),
                make_channel(snr_db=20.0),
                nagi.modem_rx(modem, "qpsk"),
            ]
            with Flow(*chain) as flow:
                for number, packet in enumerate(packets(3, [1500, 1, 40, 1000])):
                    flow.send({"number": number, "begin_ns": 0}, packet)
                    # Nothing follows that could push it out.
                    self.assertEqual(flow.collect(number + 1)[number][1], packet)

    def test_no_message_is_thrown_away(self):
        # In a process that ends at once: Python would free the singleton, and crash.
        program = (
            "import os; from gnuradio import gr, nagi; nagi.modem_rx();"
            "settings = gr.prefs.singleton();"
            "print('limit', settings.get_long('DEFAULT', 'max_messages', 0), flush=True);"
            "os._exit(0)"
        )
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertIn("limit -1\n", said.stdout, said.stderr)

    def test_outcomes_depend_on_the_burst_alone(self):
        rng = np.random.default_rng(4)
        for modem, modulation in (("ofdm", "qpsk"), ("single_carrier", "8psk")):
            sent = packets(5, rng.integers(1, 300, 500))
            bursts = [
                add_noise(rng, burst, rng.uniform(-3, 22))
                for burst in transmit(modem, modulation, sent)
            ]
            at_once = receive(modem, modulation, bursts)
            self.assertEqual([meta["number"] for meta, _ in at_once], list(range(len(bursts))))
            kinds = {meta.get("outcome", 0) for meta, _ in at_once}
            self.assertEqual(kinds, {0, 1, 2})  # or the test would show little
            with Flow(nagi.modem_rx(modem, modulation)) as flow:
                for number, burst in enumerate(bursts):
                    flow.send({"number": number, "begin_ns": number * 10_000_000}, burst)
                    flow.collect(number + 1)
                one_by_one = flow.collect(len(bursts))
            self.assertEqual(one_by_one, at_once)
            order = rng.permutation(len(bursts))
            shuffled = receive(modem, modulation, [bursts[i] for i in order])
            for place, i in enumerate(order):
                self.assertEqual(shuffled[place][1], at_once[i][1])
                for key in ("outcome", "snr_db"):  # to the last bit
                    self.assertEqual(shuffled[place][0].get(key), at_once[i][0].get(key))

    def test_a_burst_depends_on_its_packet_and_number_alone(self):
        sent = packets(6, [30, 700, 1, 1500])
        for modem in air_time.MODEMS:
            together = transmit(modem, "qpsk", sent)
            with Flow(nagi.modem_tx(modem, "qpsk")) as flow:
                flow.send({"number": 3, "begin_ns": 0}, sent[3])
                alone = flow.collect(1)[0][1]
            self.assertEqual(alone.tobytes(), together[3].tobytes())

    def test_all_causes_of_loss_appear_and_add_up(self):
        for modem in air_time.MODEMS:
            sent = packets(7, [200] * 300)
            chain = [
                ("packets", nagi.packet_framer("none", whiten=False, max_payload=1530), "frames"),
                nagi.modem_tx(modem, "qpsk"),
            ]
            rng = np.random.default_rng(8)
            bursts = [add_noise(rng, burst, rng.uniform(-5, 15)) for _, burst in run(chain, sent)]
            back = [
                nagi.modem_rx(modem, "qpsk"),
                ("frames", nagi.packet_deframer("none", whiten=False, max_payload=1530), "packets"),
            ]
            outcomes = run(back, bursts)
            self.assertEqual([meta["number"] for meta, _ in outcomes], list(range(len(sent))))
            counts = np.bincount([meta["outcome"] for meta, _ in outcomes], minlength=4)
            self.assertEqual(counts.sum(), len(sent))
            # Each is expected more than twenty times; none at all has a probability below 1e-9.
            self.assertTrue(all(counts > 0), counts)
            for (meta, data), packet in zip(outcomes, sent, strict=True):
                self.assertEqual(data, packet if meta["outcome"] == 0 else b"")

    def test_noise_alone_is_not_detected(self):
        rng = np.random.default_rng(9)
        silence = np.zeros(3000, np.complex64)
        for modem in air_time.MODEMS:
            bursts = [add_noise(rng, silence, 0) for _ in range(200)] + [
                silence,
                silence[:1],
                silence[:0],
            ]
            outcomes = receive(modem, "qpsk", bursts)
            self.assertEqual([len(data) for _, data in outcomes[200:]], [0, 0, 0])
            self.assertEqual([meta["outcome"] for meta, _ in outcomes[200:]], [1, 1, 1])
            # 3,000 samples of noise cross the threshold in a few bursts of a hundred; a header's
            # CRC-8 then holds in one of 256.
            lost = sum("outcome" in meta for meta, _ in outcomes)
            self.assertGreaterEqual(lost, 200)

    def test_bursts_that_are_cut_off(self):
        sent = packets(10, [500])
        for modem in air_time.MODEMS:
            burst = transmit(modem, "qpsk", sent)[0]
            waveform = air_time.WAVEFORMS[modem]
            payload = waveform.guard + waveform.preamble + waveform.header + waveform.ramp
            half = (payload + len(burst)) // 2
            cuts = [0, waveform.guard, waveform.guard + waveform.preamble, half]
            outcomes = receive(modem, "qpsk", [burst[:cut] for cut in cuts])
            # A preamble without a header has no header whose CRC is right.
            self.assertEqual([meta.get("outcome") for meta, _ in outcomes], [1, 1, 2, None])
            # The payload's end is missing: its length is right, its CRC will not be.
            data = outcomes[3][1]
            self.assertEqual(len(data), 500)
            self.assertEqual(data[:100], sent[0][:100])
            self.assertNotEqual(data, sent[0])

    def test_bursts_may_begin_at_any_sample(self):
        sent = packets(11, [300] * 40)
        rng = np.random.default_rng(12)
        for modem in air_time.MODEMS:
            bursts = [
                add_noise(rng, np.concatenate([np.zeros(i * 7), burst]), 18)
                for i, burst in enumerate(transmit(modem, "qpsk", sent))
            ]
            outcomes = receive(modem, "qpsk", bursts)
            self.check_exact(outcomes, sent, modem=modem)

    def test_frequency_offsets(self):
        spacing = RATE / air_time.FFT_LENGTH
        sent = packets(13, [1, 60, 700, 1500] * 5)
        for (modem, modulation), offset in product(KINDS, (-0.4, 0.13, 0.4)):
            chain = [
                nagi.modem_tx(modem, modulation),
                make_channel(snr_db=CLEAN_DB[modulation] + 1, frequency_offset_hz=offset * spacing),
                nagi.modem_rx(modem, modulation),
            ]
            self.check_exact(run(chain, sent), sent, modem=modem, modulation=modulation, by=offset)

    def test_multipath_shorter_than_the_prefix(self):
        # In samples and dB; the last is as long as the prefix. No channel has a null.
        paths = ([(0, 0), (3, -7)], [(0, -12), (9, 0)], [(0, 0), (5, -10), (15, -10)])
        sent = packets(14, [1, 60, 700, 1500] * 5)
        for modulation, taps in product(air_time.BITS_PER_SYMBOL, paths):
            chain = [
                nagi.modem_tx("ofdm", modulation),
                make_channel(
                    snr_db=CLEAN_DB[modulation] + 10,
                    taps=[(delay * 1e9 / RATE, power) for delay, power in taps],
                    frequency_offset_hz=0.3 * RATE / air_time.FFT_LENGTH,
                ),
                nagi.modem_rx("ofdm", modulation),
            ]
            self.check_exact(run(chain, sent), sent, modulation=modulation, taps=taps)

    def test_channels_that_change_during_a_burst(self):
        # 0.05 turns of the fastest path in the longest burst, mean SNR 24 dB above what BPSK needs.
        sent = packets(15, [1500] * 30)
        for modem in air_time.MODEMS:
            chain = [
                nagi.modem_tx(modem, "bpsk"),
                make_channel(snr_db=35.0, fading="rician", k_factor_db=6.0, doppler_hz=5.0),
                nagi.modem_rx(modem, "bpsk"),
            ]
            self.check_exact(run(chain, sent), sent, modem=modem)

    def test_the_timing_is_followed_through_the_longest_packet(self):
        # 40 ppm: two oscillators of 20 ppm each. The longest packet's end is then 1.6 samples off
        # in OFDM with BPSK, 0.3 with 64-QAM, and 2.0 with a single carrier and BPSK.
        sent = packets(18, [air_time.count_longest_frame_bytes()] * 6)
        for (modem, modulation), offset in product(
            (("ofdm", "64qam"), ("single_carrier", "bpsk"), ("single_carrier", "64qam")), (40, -40)
        ):
            chain = [
                nagi.modem_tx(modem, modulation),
                make_channel(snr_db=CLEAN_DB[modulation], sample_clock_offset_ppm=float(offset)),
            ]
            bursts = [samples for _, samples in run(chain, sent)]
            followed = receive(modem, modulation, bursts)
            self.check_exact(followed, sent, modem=modem, modulation=modulation, ppm=offset)
            left = run([nagi.modem_rx(modem, modulation, track_timing=False)], bursts)
            lost = sum(data != packet for (_, data), packet in zip(left, sent, strict=True))
            self.assertEqual(lost, len(sent), (modem, modulation, offset))

    def test_the_snr_is_estimated(self):
        for (modem, modulation), snr_db in product(KINDS, (0, 6)):
            asked = CLEAN_DB[modulation] + snr_db
            sent = packets(16, [1000] * 20)
            chain = [
                nagi.modem_tx(modem, modulation),
                make_channel(snr_db=asked),
                nagi.modem_rx(modem, modulation),
            ]
            errors = [meta["snr_db"] - asked for meta, _ in run(chain, sent)]
            # At least 2,000 symbols each, 0.1 dB of standard deviation; what synchronisation costs
            # counts as noise.
            self.assertLess(abs(np.mean(errors)), 0.4)
            self.assertLess(np.max(np.abs(errors)), 1.2)

    def test_packets_that_are_too_long_or_empty_are_not_detected(self):
        sent = packets(17, [100, air_time.count_longest_frame_bytes() + 1, 0, 100])
        for modem in air_time.MODEMS:
            outcomes = run([nagi.modem_tx(modem, "bpsk"), nagi.modem_rx(modem, "bpsk")], sent)
            self.assertEqual([meta["number"] for meta, _ in outcomes], [0, 1, 2, 3])
            self.assertEqual([meta.get("outcome") for meta, _ in outcomes], [None, 1, 1, None])

    def test_wrong_arguments_are_named(self):
        for arguments, name in ((("am", "qpsk"), "modem"), (("ofdm", "qam"), "modulation")):
            for block in (nagi.modem_tx, nagi.modem_rx):
                with self.assertRaisesRegex(ValueError, name):
                    block(*arguments)


class Signal(gr_unittest.TestCase):
    def test_constellations_are_gray_and_of_power_one(self):
        for modulation, bits in air_time.BITS_PER_SYMBOL.items():
            ideal = constellation(modulation)
            points = np.array(ideal.points())
            self.assertEqual(len(points), 2**bits)
            self.assertAlmostEqual(np.mean(abs(points) ** 2), 1, places=5)
            self.assertEqual([ideal.decision_maker_v([p]) for p in points], list(range(2**bits)))
            distance = abs(points[:, None] - points[None])
            nearest = np.min(distance[distance > 1e-6])
            for one, other in np.argwhere(abs(distance - nearest) < 1e-3):
                self.assertEqual(bin(one ^ other).count("1"), 1)

    def test_preambles_are_those_that_are_sent(self):
        for modem, signal in (("ofdm", ofdm), ("single_carrier", single_carrier)):
            burst = transmit(modem, "qpsk", packets(18, [50]))[0]
            expected = signal.make_preamble()
            begin = air_time.WAVEFORMS[modem].guard
            # The single carrier's last pulses overlap with what follows.
            count = len(expected) if modem == "ofdm" else air_time.WAVEFORMS[modem].preamble - 16
            difference = burst[begin : begin + count] - expected[:count]
            self.assertLess(np.max(abs(difference)), 0.01)


if __name__ == "__main__":
    unittest.main()
