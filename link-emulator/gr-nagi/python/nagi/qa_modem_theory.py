#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bit error rates of the modems' signals with known timing, against theory.

The bursts are those of modem_tx; this test knows where each symbol is and decides with the modem's
constellation by gr-digital's constellation_decoder_cb. So mapping, pulse, power and the relation of
SNR to Eb/N0 are tested apart from synchronisation, whose cost `bench_modem.py` measures.

Bounds: 0.5 dB, ten or more standard deviations of the counted errors away from theory; for slopes,
five. So a right modem fails with a probability below 1e-6, and a wrong one is seen.
"""

import math
import unittest
from itertools import product

import numpy as np
from flows import transmit
from gnuradio import blocks, digital, gr, gr_unittest, nagi
from gnuradio.nagi import air_time, ofdm, single_carrier
from gnuradio.nagi.modem import constellation
from modem_theory import EVENTS, theory_awgn, theory_code, theory_rayleigh

TOLERANCE_DB = 0.5
EB_N0_DB = {
    "bpsk": (4.0, 7.0), "qpsk": (4.0, 7.0), "8psk": (7.0, 10.0), "16qam": (7.0, 10.0),
    "64qam": (11.0, 14.0),
}  # fmt: skip
PACKET = 1500


def ofdm_symbols(burst):
    """Payload symbols, mean power 1, of a burst that begins where it is said to."""
    w = air_time.WAVEFORMS["ofdm"]
    begin = w.guard + w.preamble + w.header
    items = burst[begin : len(burst) - w.tail].reshape(-1, w.item)[:, air_time.CYCLIC_PREFIX :]
    carriers = np.fft.fft(items, axis=1) * math.sqrt(air_time.ACTIVE_CARRIERS) / air_time.FFT_LENGTH
    return carriers[:, ofdm.DATA].ravel()


def single_carrier_symbols(burst):
    w = air_time.WAVEFORMS["single_carrier"]
    pulse = single_carrier.pulse()
    begin = w.guard + w.preamble + w.header
    matched = np.convolve(burst, pulse) / np.sum(pulse**2)
    count = (len(burst) - w.guard - w.preamble - w.header - w.ramp - w.tail) // w.item
    return matched[begin + len(pulse) - 1 :: w.item][:count]


SYMBOLS = {"ofdm": ofdm_symbols, "single_carrier": single_carrier_symbols}


def decide(modulation, symbols):
    """The symbols' bits."""
    flow = gr.top_block()
    source = blocks.vector_source_c(symbols.astype(np.complex64).tolist())
    sink = blocks.vector_sink_b()
    flow.connect(source, digital.constellation_decoder_cb(constellation(modulation).base()), sink)
    flow.run()
    values = np.array(sink.data(), np.uint8)
    return np.unpackbits(values[:, None], axis=1)[:, -air_time.BITS_PER_SYMBOL[modulation] :]


def eb_n0_db(modem, modulation, snr_db):
    bits = air_time.BITS_PER_SYMBOL[modulation]
    return air_time.symbol_snr_db(modem, snr_db) - 10 * math.log10(bits)


def snr_db_of(modem, modulation, wanted):
    return wanted - eb_n0_db(modem, modulation, 0.0)


class Theory(gr_unittest.TestCase):
    def bursts(self, modem, modulation, count):
        rng = np.random.default_rng(20)
        return transmit(modem, modulation, [rng.bytes(PACKET) for _ in range(count)])

    def test_bit_error_rate_over_awgn(self):
        kinds = [
            (modem, modulation, wanted)
            for modem, (modulation, points) in product(air_time.MODEMS, EB_N0_DB.items())
            for wanted in points
        ]
        for seed, (modem, modulation, wanted) in enumerate(kinds):
            bursts = self.bursts(modem, modulation, 60)
            channel = nagi.channel_model(seed, 0, 1e6, snr_db=snr_db_of(modem, modulation, wanted))
            sent, received = [], []
            for number, burst in enumerate(bursts):
                heard = np.frombuffer(channel.apply(number, 0, burst.tobytes()), np.complex64)
                sent.append(SYMBOLS[modem](burst))
                received.append(SYMBOLS[modem](heard))
            bits = decide(modulation, np.concatenate(sent))
            wrong = bits != decide(modulation, np.concatenate(received))
            self.assertGreaterEqual(bits.size, 60 * PACKET * 8)
            with self.subTest(modem=modem, modulation=modulation, eb_n0_db=wanted):
                self.assertLess(np.mean(wrong), theory_awgn(wanted - TOLERANCE_DB, modulation))
                self.assertGreater(np.mean(wrong), theory_awgn(wanted + TOLERANCE_DB, modulation))

    def test_codes_lose_what_theory_says(self):
        # At 0.5 dB more than an ideal decoder needs to lose 1 frame in 10. Null hypothesis: this
        # one needs as much. Of 200 frames, 8 or fewer are then lost with a probability below
        # 0.002; of an ideal one's, more than 8 with less than 0.01.
        rng = np.random.default_rng(22)
        for code_rate in EVENTS:
            steps = 8 * (1000 + air_time.FRAMING_BYTES) + air_time.CODE_TAIL
            needed = 3.0
            while theory_code(needed, code_rate, steps) > 0.1:
                needed += 0.01
            es = float(EVENTS[code_rate][0]) * 10 ** ((needed + TOLERANCE_DB) / 10)
            framing = nagi.framing(code_rate)
            lost = 0
            for number in range(200):
                packet = rng.bytes(1000)
                sent = np.unpackbits(np.frombuffer(framing.frame(number, packet), np.uint8))
                heard = 2.0 * sent - 1 + rng.normal(size=sent.size) / math.sqrt(2 * es)
                lost += framing.deframe_soft(heard.tolist()) != (number, packet)
            with self.subTest(code_rate=code_rate, needed_db=needed):
                self.assertLessEqual(lost, 8)

    def test_slope_over_flat_rayleigh_fading(self):
        # Each symbol meets a gain of its own, from the channel's model at instants many periods of
        # the Doppler frequency apart; the receiver knows it. 720,000 bits: at 30 dB, 180 errors.
        fading = nagi.channel_model(5, 0, 1e6, fading="rayleigh", doppler_hz=100.0)
        for modem, modulation in product(air_time.MODEMS, ("bpsk", "qpsk")):
            symbols = np.concatenate(
                [SYMBOLS[modem](burst) for burst in self.bursts(modem, modulation, 60)]
            )
            bits = decide(modulation, symbols)
            gains = np.array([fading.gain(0, 0.1234567 * i) for i in range(len(symbols))])
            rng = np.random.default_rng(21)
            noise = rng.normal(size=len(symbols)) + 1j * rng.normal(size=len(symbols))
            rates = []
            for wanted in (10.0, 20.0, 30.0):
                es_n0 = 10 ** (wanted / 10) * air_time.BITS_PER_SYMBOL[modulation]
                heard = symbols + noise / math.sqrt(2 * es_n0) / gains
                rates.append(np.mean(bits != decide(modulation, heard)))
            decades = np.log10(rates[0] / rates[2]) / 2
            with self.subTest(modem=modem, modulation=modulation, rates=rates):
                expected = math.log10(theory_rayleigh(10) / theory_rayleigh(30)) / 2
                self.assertAlmostEqual(decades, expected, delta=0.08)
                self.assertAlmostEqual(rates[0] / theory_rayleigh(10), 1, delta=0.12)


if __name__ == "__main__":
    unittest.main()
