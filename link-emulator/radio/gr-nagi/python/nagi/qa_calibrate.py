#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of calibration: the choice of packets, the curves, and resuming after an interruption.

Statistical tests are seeded, with deviates beyond 3.29 (significance 0.001).
"""

import json
import math
import random
import tempfile
import unittest
from itertools import pairwise
from pathlib import Path

import numpy as np
from flows import run
from gnuradio import gr_unittest, nagi
from gnuradio.nagi import air_time, calibrate
from gnuradio.nagi.calibration import (
    ALL_LOST,
    CalibrationSettings,
    Cell,
    Mode,
    Table,
    TableError,
    choose_next_batch,
    compute_half_interval,
    resume_from,
)
from gnuradio.nagi.radio import parse_radio

RADIO = {
    "by": "simulated",
    "modem": "ofdm",
    "modulation": "qpsk",
    "sample_rate_hz": 1_000_000,
}
QPSK = Mode("ofdm", "qpsk", "none")
PROVENANCE = {
    "device": {"by": "simulated", "name": "a test", "firmware": None},
    "nagi": "1",
    "gnuradio": "2",
    "date": "today",
}
QUICK = CalibrationSettings(seed=3, precision=0.3, min_packets=50, max_packets=200, step_db=0.5)


def make_table(settings=QUICK, *sizes):
    table = Table(settings, dict(PROVENANCE))
    for size in sizes or (200,):
        table.curves[QPSK, size] = {}
    return table


class Planning(unittest.TestCase):
    def measure_curve(self, settings, rate):
        """Measure the curve of a receiver whose packet error rate is `rate(snr_db)`."""
        draw = random.Random(1)
        curve = {}
        while (batch := choose_next_batch(curve, settings)) is not None:
            snr_db, count = batch
            self.assertTrue(0 < count <= 50)
            cell = curve.setdefault(snr_db, Cell())
            for _ in range(count):
                cell.add(3 if draw.random() < rate(snr_db) else 0)
        return curve

    def test_a_curve_goes_from_all_lost_to_none_in_small_steps(self):
        settings = CalibrationSettings(precision=0.1, max_packets=4000, step_db=0.5)
        for threshold in (-3.0, 11.3, 25.0):
            curve = self.measure_curve(
                settings, lambda snr, at=threshold: -math.expm1(-math.exp(1.5 * (at - snr)))
            )
            snrs = sorted(curve)
            self.assertGreaterEqual(curve[snrs[0]].rate, ALL_LOST)
            self.assertEqual(curve[snrs[-1]].lost, 0)
            self.assertEqual(
                max(c.packets for c in curve.values() if not c.lost), settings.max_packets
            )
            for low, high in pairwise(snrs):
                if curve[high].rate < ALL_LOST and curve[low].lost:
                    self.assertLessEqual(high - low, 0.5)
            for cell in curve.values():
                if cell.lost and cell.packets < settings.max_packets:
                    self.assertLessEqual(compute_half_interval(cell), 0.1 * cell.rate)

    def test_a_receiver_that_hears_nothing_or_everything_comes_to_an_end(self):
        for rate in (0.0, 1.0):
            self.assertLess(len(self.measure_curve(QUICK, lambda _, share=rate: share)), 60)

    def test_a_table_comes_back_as_it_was(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "table.json")
            table = make_table(QUICK, 200, 500)
            table.curves[QPSK, 200] = {3.5: Cell(7, [1, 2, 3]), 4.0: Cell(5, [0, 0, 0])}
            table.write(path)
            back = make_table(QUICK, 100)
            resume_from(path, back)
            self.assertEqual(back.curves[QPSK, 200], table.curves[QPSK, 200])
            self.assertEqual(list(back.curves), [(QPSK, 100), (QPSK, 200)])

    def test_what_is_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "table.json")
            for change, named in (
                ({"seed": 4}, "seed 3"),
                ({"step_db": 1.0}, "step_db 0.5"),
            ):
                make_table().write(path)
                other = make_table(CalibrationSettings(**{**vars(QUICK), **change}))
                with self.assertRaisesRegex(TableError, named):
                    resume_from(path, other)
            other = make_table()
            other.provenance["gnuradio"] = "3"
            with self.assertRaisesRegex(TableError, "gnuradio 2, not 3"):
                resume_from(path, other)
            document = json.loads(path.read_text())
            document["modes"][0]["digest"] = "0"
            path.write_text(json.dumps(document))
            with self.assertRaisesRegex(TableError, "has changed since"):
                resume_from(path, make_table())
            for text in ("", "{}", "[]"):
                path.write_text(text)
                with self.assertRaisesRegex(TableError, "not a calibration table"):
                    resume_from(path, make_table())

    def test_a_digest_tells_modems_apart(self):
        modes = [
            Mode(modem, points, rate)
            for modem in air_time.MODEMS
            for points in air_time.BITS_PER_SYMBOL
            for rate in air_time.CODE_RATES
        ]
        self.assertEqual(len({mode.digest for mode in modes}), len(modes))
        with self.assertRaisesRegex(ValueError, "modulation"):
            Mode("ofdm", "morse", "none").digest  # noqa: B018


class Interrupted(Exception):
    pass


class Measuring(gr_unittest.TestCase):
    def test_an_interruption_costs_nothing(self):
        whole = make_table()
        calibrate.calibrate(whole, lambda: None, lambda _: None)
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "table.json")
            for _ in range(50):
                part = make_table()
                resume_from(path, part)
                said = []

                def say(text, part=part, said=said):
                    said.append(text)
                    part.write(path)
                    if len(said) == 3:
                        raise Interrupted

                try:
                    calibrate.calibrate(part, lambda part=part: part.write(path), say)
                except Interrupted:
                    continue
                break
            self.assertEqual(part.to_json(), whole.to_json())
            self.assertTrue(part.to_json()["finished"])

    def test_a_table_says_what_the_modem_loses_over_flat_fading(self):
        # H0: packet i is lost with the table's probability at the SNR that the channel has in its
        # middle. A loss from -0.15 to 0.15 dB beside the table is taken: over fading the receiver
        # estimates other channels than over noise alone.
        size, rate_hz, snr_db, count = 200, 1e6, 14.0, 1500
        table = make_table(
            CalibrationSettings(seed=1, precision=0.1, min_packets=100, max_packets=800)
        )
        calibrate.calibrate(table, lambda: None, lambda _: None)
        curve = table.curves[QPSK, size]
        snrs = sorted(curve)

        def exponents(cells):
            return [-math.log1p(-min(cell.rate, 1 - 1e-9)) for cell in cells]

        heights = np.log(np.maximum(exponents(curve[snr] for snr in snrs), 1e-9))
        channel = nagi.channel_model(5, 0, rate_hz, fading="rayleigh", doppler_hz=5.0)
        fading = {"snr_db": snr_db, "fading": "rayleigh", "doppler_hz": 5.0}
        radio = nagi.SimulatedRadio(
            parse_radio({**RADIO, "forward": fading, "backward": fading}), "forward", 5, 0
        )
        rng = np.random.default_rng(9)
        begins = [i * 40_000_000 for i in range(count)]
        sent = [rng.bytes(size) for _ in begins]
        outcomes = run([("packets", radio, "outcomes")], sent, begins)
        lost = sum(data != packet for (_, data), packet in zip(outcomes, sent, strict=True))
        half_s = air_time.count_burst_samples("ofdm", "qpsk", "none", size) / rate_hz / 2
        gains = [abs(channel.gain(0, begin * 1e-9 + half_s)) ** 2 for begin in begins]
        levels = snr_db + 10 * np.log10(gains)

        def expected(offset_db):
            chances = -np.expm1(-np.exp(np.interp(levels + offset_db, snrs, heights)))
            return chances.sum(), math.sqrt((chances * (1 - chances)).sum())

        most, deviation = expected(-0.15)
        least, _ = expected(0.15)
        self.assertGreater(lost, 100)
        self.assertLess(lost, most + 3.29 * deviation)
        self.assertGreater(lost, least - 3.29 * deviation)

    def test_rates_are_those_of_an_ideal_receiver_within_its_loss(self):
        # 200 bytes of QPSK: bits are wrong with Q(sqrt(Es/N0)). The receiver loses 0.11 dB to one
        # that knows the channel; a loss from 0 to 0.4 dB is taken.
        table = make_table(
            CalibrationSettings(seed=1, precision=0.1, min_packets=100, max_packets=600)
        )
        calibrate.calibrate(table, lambda: None, lambda _: None)

        def ideal(snr_db):
            es_n0 = 10 ** (air_time.compute_symbol_snr_db("ofdm", snr_db) / 10)
            wrong = 0.5 * math.erfc(math.sqrt(es_n0 / 2))
            return -math.expm1(8 * (200 + air_time.FRAMING_BYTES) * math.log1p(-wrong))

        compared = 0
        for snr_db, cell in table.curves[QPSK, 200].items():
            if not 0.02 < ideal(snr_db) < 0.98:
                continue
            error = 3.29 * math.sqrt(cell.rate * (1 - cell.rate) / cell.packets)
            self.assertGreater(cell.rate + error, ideal(snr_db))
            self.assertLess(cell.rate - error, ideal(snr_db - 0.4))
            compared += 1
        self.assertGreaterEqual(compared, 4)


if __name__ == "__main__":
    unittest.main()
