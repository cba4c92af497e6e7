#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the channel with theory (noise, fading, multipath, frequency offset) and repeats it.

Statistical tests are at a significance of 0.001 each, by normal deviates beyond 3.29 or Kolmogorov
and Smirnov's statistic beyond 1.95 / sqrt(n). Seeds are fixed, so results repeat.
"""

import math
import unittest

import numpy as np
import pmt
from gnuradio import blocks, gr, gr_unittest, nagi
from pdus import open_pdu, pdu

RATE = 2e6
DEVIATIONS = 3.29
KOLMOGOROV = 1.95


def model(seed=1, direction=0, **settings):
    return nagi.channel_model(seed, direction, RATE, **settings)


def apply(channel, number, begin_ns, samples):
    sent = np.asarray(samples, np.complex64).tobytes()
    return np.frombuffer(channel.apply(number, begin_ns, sent), np.complex64)


def bessel_j0(x):
    angles = (np.arange(2000) + 0.5) * math.pi / 2000
    return np.cos(np.multiply.outer(np.asarray(x), np.sin(angles))).mean(axis=-1)


def normal_cdf(x):
    return (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def rician_power_cdf(k):
    """Return the distribution of |h|^2 with mean 1 at a K factor, integrated from its density."""
    power = np.linspace(0, 12, 200_001)
    density = (1 + k) * np.exp(-k - (1 + k) * power) * np.i0(2 * np.sqrt(k * (1 + k) * power))
    steps = (density[1:] + density[:-1]) / 2 * np.diff(power)
    return lambda x: np.interp(x, power, np.concatenate([[0], np.cumsum(steps)]))


class Channel(gr_unittest.TestCase):
    def check_distribution(self, values, cdf):
        values = np.sort(values)
        n = len(values)
        expected = cdf(values)
        above = np.max(np.arange(1, n + 1) / n - expected)
        below = np.max(expected - np.arange(n) / n)
        self.assertLess(max(above, below), KOLMOGOROV / math.sqrt(n))

    def check_mean(self, values, expected):
        error = np.std(values) / math.sqrt(len(values))
        self.assertLess(abs(np.mean(values) - expected), DEVIATIONS * error)

    def test_noise_is_white_and_gaussian_of_the_given_power(self):
        n = 400_000
        for snr_db in (-3.0, 0.0, 17.0):
            noise = apply(model(7, snr_db=snr_db), 3, 0, np.zeros(n)).astype(complex)
            power = 10 ** (-snr_db / 10)
            self.check_mean(np.abs(noise) ** 2, power)
            for part in (noise.real, noise.imag):
                normal = part / math.sqrt(power / 2)
                self.check_mean(normal, 0)
                self.check_mean(normal**4, 3)
                self.check_distribution(normal[::10], normal_cdf)
            self.check_mean(noise.real * noise.imag, 0)
            for lag in (1, 2, 3, 255, 256):  # draws are of 2 samples, made 256 at a time
                self.check_mean((noise[lag:] * noise[:-lag].conj()).real, 0)
                self.check_mean((noise[lag:] * noise[:-lag].conj()).imag, 0)

    def test_noise_of_other_bursts_directions_and_seeds_is_independent(self):
        def noise(seed, direction, number):
            return apply(model(seed, direction, snr_db=0.0), number, 0, np.zeros(100_000))

        one = noise(1, 0, 0)
        for other in (noise(2, 0, 0), noise(1, 1, 0), noise(1, 0, 1), noise(1, 0, 2**32)):
            self.check_mean((one * other.conj()).real.astype(float), 0)

    def test_a_burst_repeats_in_any_order_and_of_any_length(self):
        settings = {
            "snr_db": 10.0,
            "fading": "rician",
            "doppler_hz": 30.0,
            "k_factor_db": 3.0,
            "taps": [(0, 0), (1500, -3)],
            "frequency_offset_hz": 123.0,
        }
        draw = np.random.default_rng(1)
        bursts = [(n, int(draw.integers(10**12)), draw.normal(size=1000)) for n in range(30)]
        forwards = [apply(model(**settings), *burst) for burst in bursts]
        channel = model(**settings)
        backwards = [apply(channel, *burst) for burst in reversed(bursts)]
        for a, b in zip(forwards, reversed(backwards), strict=True):
            self.assertEqual(a.tobytes(), b.tobytes())
        number, begin_ns, samples = bursts[0]
        part = apply(channel, number, begin_ns, samples[:501])
        np.testing.assert_array_equal(part[:501], forwards[0][:501])
        self.assertFalse(np.array_equal(apply(channel, 99, begin_ns, samples), forwards[0]))

    def test_nothing_asked_for_changes_nothing(self):
        samples = np.exp(1j * np.arange(5000)).astype(np.complex64)
        np.testing.assert_array_equal(apply(model(), 0, 10**15, samples), samples)

    def test_rayleigh_over_time_and_over_seeds(self):
        channel = model(5, fading="rayleigh", doppler_hz=50.0)
        times = np.random.default_rng(1).uniform(0, 1e5, 4000)  # 20 ms is a period: independent
        over_time = np.array([channel.gain(0, t) for t in times])
        over_seeds = np.array(
            [model(s, fading="rayleigh", doppler_hz=50.0).gain(0, 1.0) for s in range(4000)]
        )
        for gains in (over_time, over_seeds):
            self.check_distribution(np.abs(gains) ** 2, lambda x: 1 - np.exp(-x))
            angles = np.angle(gains) / (2 * math.pi) + 0.5
            self.check_distribution(angles, lambda x: x)
            self.check_mean(np.abs(gains) ** 2, 1)

    def test_rician(self):
        times = np.random.default_rng(2).uniform(0, 1e5, 4000)
        for k_factor_db in (0.0, 6.0):
            channel = model(6, fading="rician", doppler_hz=50.0, k_factor_db=k_factor_db)
            gains = np.array([channel.gain(0, t) for t in times])
            self.check_distribution(np.abs(gains) ** 2, rician_power_cdf(10 ** (k_factor_db / 10)))

    def test_autocorrelation_is_that_of_clarke(self):
        doppler_hz = 50.0
        lags = np.array([0.1, 0.2, 0.3827, 0.5, 0.8, 1.2, 2.0]) / doppler_hz
        products = []
        for seed in range(2000):
            channel = model(seed, fading="rayleigh", doppler_hz=doppler_hz)
            first = channel.gain(0, 5.0)
            products.append([channel.gain(0, 5.0 + lag) * np.conj(first) for lag in lags])
        expected = bessel_j0(2 * math.pi * doppler_hz * lags)
        for i, value in enumerate(expected):
            self.check_mean(np.array(products)[:, i].real, value)
            self.check_mean(np.array(products)[:, i].imag, 0)

    def test_bursts_fade_as_the_gain_says(self):
        for doppler_hz in (0.0, 5.0, 2000.0):
            channel = model(8, fading="rayleigh", doppler_hz=doppler_hz)
            begin_ns = 86_400 * 10**9 + 12_345
            got = apply(channel, 0, begin_ns, np.ones(20_000))
            at = np.arange(0, 20_000, 37)
            expected = np.array([channel.gain(0, begin_ns * 1e-9 + i / RATE) for i in at])
            # Linear interpolation over 1/64 of a period: below (2 pi / 64)^2 / 8 of the sum of all
            # amplitudes; in single precision.
            bound = (2 * math.pi / 64) ** 2 / 8 * math.sqrt(32) + 1e-5
            self.assertLess(np.max(np.abs(got[at] - expected)), bound)

    def test_paths_have_their_delays_and_powers(self):
        taps = [(0, 0.0), (1000, -3.0), (2500, -10.0)]  # 0, 2 and 5 samples
        powers = 10 ** (np.array([p for _, p in taps]) / 10)
        powers /= powers.sum()
        still = apply(model(1, taps=taps), 0, 0, [1, 0, 0, 0])
        self.assertEqual(model(1, taps=taps).longest_delay(), 5)
        np.testing.assert_allclose(
            np.abs(still) ** 2, [powers[0], 0, powers[1], 0, 0, powers[2], 0, 0, 0], atol=1e-6
        )
        gains = []
        for seed in range(3000):
            channel = model(seed, fading="rayleigh", doppler_hz=5.0, taps=taps)
            gains.append([channel.gain(tap, 0.0) for tap in range(3)])
        gains = np.array(gains)
        for tap in range(3):
            self.check_mean(np.abs(gains[:, tap]) ** 2, powers[tap])
            self.check_mean((gains[:, tap] * gains[:, (tap + 1) % 3].conj()).real, 0)

    def test_frequency_offset_is_continuous_in_absolute_time(self):
        offset_hz = 12_345.678
        channel = model(frequency_offset_hz=offset_hz)
        for begin_ns in (0, 1, 10**9 - 1, 86_400 * 10**9 + 333):
            got = apply(channel, 0, begin_ns, np.ones(5000))
            # In whole numbers, as floating point is too coarse for a day's cycles.
            cycles = np.array(
                [12_345_678 * (2 * begin_ns + 1000 * i) % (2 * 10**12) / (2 * 10**12)
                 for i in range(5000)]
            )  # fmt: skip
            np.testing.assert_allclose(got, np.exp(2j * math.pi * cycles), atol=2e-6)

    def test_delays_between_samples_are_band_limited(self):
        n = np.arange(600)
        for delay in (0.3, 1.5, 2.001, 17.77):
            channel = model(taps=[(delay / RATE * 1e9, 0.0)])
            for frequency in (-0.41, -0.2, 0.0, 0.05, 0.4):
                sent = np.exp(2j * math.pi * frequency * n)
                got = apply(channel, 0, 0, sent)
                self.assertEqual(len(got), 600 + int(delay) + 16)
                inside = slice(60, 560)
                expected = np.exp(2j * math.pi * frequency * (np.arange(len(got)) - delay))
                np.testing.assert_allclose(got[inside], expected[inside], atol=2e-3)

    def test_whole_delays_take_no_filter(self):
        sent = np.random.default_rng(1).normal(size=50)
        got = apply(model(taps=[(3e9 / RATE, 0.0)]), 0, 0, sent)
        self.assertEqual(len(got), 53)
        np.testing.assert_array_equal(got[3:], sent.astype(np.complex64))

    def test_the_snr_follows_a_trace(self):
        channel = model(snr_steps=[(0, 10.0), (10**9, -3.0)], snr_period_ns=4 * 10**9)
        for begin_ns, snr_db in ((0, 10.0), (10**9 - 1, 10.0), (10**9, -3.0), (4 * 10**9, 10.0)):
            noise = apply(channel, 3, begin_ns, np.zeros(100_000)).astype(complex)
            self.check_mean(np.abs(noise) ** 2, 10 ** (-snr_db / 10))

    def test_shadowing_is_log_normal_and_correlated_in_time(self):
        def level_db(seed, begin_ns):
            channel = model(seed, snr_db=0.0, shadowing_db=8.0, shadowing_decorrelation_s=2.0)
            noise = apply(channel, 0, begin_ns, np.zeros(4000)).astype(complex)
            return -10 * math.log10(np.mean(np.abs(noise) ** 2))

        levels = np.array(
            [[level_db(seed, at) for at in (10**9, 3 * 10**9)] for seed in range(1500)]
        )
        self.check_mean(levels[:, 0] / 8, 0)
        self.check_mean((levels[:, 0] / 8) ** 2, 1)
        self.check_distribution(levels[:, 0] / 8, normal_cdf)
        self.check_mean(levels[:, 0] * levels[:, 1] / 64, math.exp(-1))

    def test_phase_noise_is_wiener_s_process(self):
        linewidth = 200.0
        lag = 50
        turned = []
        for number in range(400):
            got = apply(model(phase_noise_hz=linewidth), number, 0, np.ones(1000))
            np.testing.assert_allclose(np.abs(got), 1, atol=1e-5)
            angles = np.unwrap(np.angle(got.astype(complex)))
            turned.append(np.diff(angles[::lag]))
        steps = np.concatenate(turned) / math.sqrt(2 * math.pi * linewidth * lag / RATE)
        self.check_mean(steps, 0)
        self.check_mean(steps**2, 1)
        self.check_distribution(steps, normal_cdf)

    def test_a_faster_sample_clock_stretches_bursts(self):
        frequency = 0.4  # of the sample rate; OFDM's outermost carriers are at 0.406
        tone = np.exp(2j * math.pi * frequency * np.arange(20_000))
        for offset, drift, begin_s in ((50.0, 0.0, 1.005), (-100.0, 0.0, 3.00123), (20.0, 1.0, 30)):
            channel = model(sample_clock_offset_ppm=offset, sample_clock_drift_ppm_s=drift)
            begin_ns = round(begin_s * 1e9)
            slip = RATE * 1e-6 * (offset * begin_s + drift * begin_s**2 / 2)
            self.assertAlmostEqual(channel.clock_slip(begin_ns), slip, places=6)
            rate = 1 + 1e-6 * (offset + drift * begin_s)
            self.assertAlmostEqual(channel.clock_offset(begin_ns), rate - 1, places=12)
            got = apply(channel, 0, begin_ns, tone)
            at = (np.arange(len(got)) - slip % 1) / rate
            expected = np.exp(2j * math.pi * frequency * at)
            inside = (at > 20) & (at < len(tone) - 20)
            self.assertGreater(np.sum(inside), 19_900)
            # 80 dB below the tone.
            error = np.mean(np.abs(got[inside] - expected[inside]) ** 2)
            self.assertLess(error, 1e-8)

    def test_a_drift_ends_at_the_greatest_offset(self):
        channel = model(sample_clock_offset_ppm=199.0, sample_clock_drift_ppm_s=0.5)
        slips = [channel.clock_slip(round(at * 1e9)) for at in (2.0, 3.0, 5.0)]
        self.assertAlmostEqual(channel.clock_offset(5 * 10**9), 2e-4, places=12)
        self.assertAlmostEqual(slips[0], RATE * 1e-6 * 399, places=6)
        np.testing.assert_allclose(np.diff(slips), [RATE * 2e-4, 2 * RATE * 2e-4])

    def test_what_is_refused(self):
        for settings, name in (
            ({"fading": "nakagami"}, "nakagami"),
            ({"snr_db": math.nan}, "snr_db"),
            ({"doppler_hz": -1.0}, "doppler_hz"),
            ({"doppler_hz": RATE}, "doppler_hz"),
            ({"taps": [(-1.0, 0.0)]}, "delay"),
            ({"taps": [(0.0, math.inf)]}, "power"),
            ({"k_factor_db": math.inf}, "k_factor_db"),
            ({"frequency_offset_hz": RATE}, "frequency_offset_hz"),
            ({"direction": 2**23}, "direction"),
            ({"shadowing_db": -1.0}, "shadowing_db"),
            ({"shadowing_decorrelation_s": 0.0}, "shadowing_decorrelation_s"),
            ({"phase_noise_hz": RATE}, "phase_noise_hz"),
            ({"sample_clock_offset_ppm": 201.0}, "sample_clock_offset_ppm"),
            ({"sample_clock_drift_ppm_s": math.nan}, "sample_clock_drift_ppm_s"),
            ({"snr_steps": [(1, 3.0)], "snr_period_ns": 5}, "snr_steps"),
            ({"snr_steps": [(0, 3.0), (0, 4.0)], "snr_period_ns": 5}, "snr_steps"),
            ({"snr_steps": [(0, math.nan)], "snr_period_ns": 5}, "snr_steps"),
            ({"snr_steps": [(0, 3.0), (5, 3.0)], "snr_period_ns": 5}, "snr_period_ns"),
        ):
            with self.assertRaisesRegex(ValueError, name):
                model(**settings)
        with self.assertRaisesRegex(ValueError, "sample_rate"):
            nagi.channel(1, 0, 0.0)


class ChannelBlock(gr_unittest.TestCase):
    def test_bursts_pass_with_their_dictionary(self):
        settings = {
            "snr_db": 3.0,
            "fading": "rayleigh",
            "doppler_hz": 5.0,
            "taps": [(0, 0), (500, 0)],
        }
        block, sink = nagi.channel(1, 0, RATE, **settings), blocks.message_debug(False)
        flowgraph = gr.top_block(catch_exceptions=False)
        flowgraph.msg_connect(block, "bursts", sink, "store")
        samples = np.ones(1001, np.complex64)
        sent = [{"number": 5, "begin_ns": 10**9, "extra": 1}, {"number": 6}, {"number": 7}]
        for meta in sent:
            block.to_basic_block()._post(pmt.intern("bursts"), pdu(meta, samples))
        flowgraph.start()
        self.assertTrue(self.waitFor(lambda: sink.num_messages() == 3))
        flowgraph.stop()
        flowgraph.wait()
        for i, meta in enumerate(sent):
            begin_ns = 10**9 + i * 500_500  # one after the other
            got_meta, got = open_pdu(sink.get_message(i))
            self.assertEqual(got_meta, meta | {"begin_ns": begin_ns})
            expected = apply(model(**settings), meta["number"], begin_ns, samples)
            self.assertEqual(got.tobytes(), expected.tobytes())

    def test_settings_change_while_a_flowgraph_runs(self):
        block, sink = nagi.channel(1, 0, RATE), blocks.message_debug(False)
        flowgraph = gr.top_block(catch_exceptions=False)
        flowgraph.msg_connect(block, "bursts", sink, "store")
        flowgraph.start()
        samples = np.ones(1000, np.complex64)
        changes = [
            ("snr_db", 3.0),
            ("fading", "rayleigh"),
            ("doppler_hz", 5.0),
            ("taps", [(0.0, 0.0), (500.0, -3.0)]),
            ("frequency_offset_hz", 100.0),
            ("shadowing_db", 4.0),
            ("phase_noise_hz", 10.0),
            ("sample_clock_offset_ppm", 20.0),
        ]
        settings = {}
        for number, (name, value) in enumerate(changes):
            settings[name] = value
            getattr(block, f"set_{name}")(value)
            message = pdu({"number": number, "begin_ns": number * 10**9}, samples)
            block.to_basic_block()._post(pmt.intern("bursts"), message)
            self.assertTrue(self.waitFor(lambda count=number + 1: sink.num_messages() == count))
            expected = apply(model(**settings), number, number * 10**9, samples)
            self.assertEqual(open_pdu(sink.get_message(number))[1].tobytes(), expected.tobytes())
        self.assertEqual(block.snr_db(), 3.0)
        with self.assertRaisesRegex(ValueError, "doppler_hz"):
            block.set_doppler_hz(-1.0)
        self.assertEqual(block.doppler_hz(), 5.0)
        flowgraph.stop()
        flowgraph.wait()


if __name__ == "__main__":
    unittest.main()
