#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares bit error rates of the modems' signals with theory, for known timing.

The bursts are those of modem_tx. The tests use the known position of each symbol, and decide with
the modem's constellation by gr-digital's constellation_decoder_cb. So mapping, pulse, power and the
relation of SNR to Eb/N0 are tested apart from synchronisation. With codes, whole receivers are
tested, since codes work at the lowest Es/N0. `bench_modem.py` measures the losses of all receivers.

Bounds: 0.5 dB, ten or more standard deviations of the counted errors away from theory; for slopes,
five. So a correct modem fails with a probability below 1e-6, and a wrong one is detected.
"""

import math
import unittest
from itertools import product

import numpy as np
from flows import Flow, run, transmit
from gnuradio import blocks, digital, gr, gr_unittest, nagi
from gnuradio.nagi import air_time, ofdm, single_carrier
from gnuradio.nagi.modem import constellation
from modem_theory import (
    EVENTS,
    awgn_bit_error_rate,
    packet_error_threshold_db,
    rayleigh_bit_error_rate,
)

TOLERANCE_DB = 0.5
EB_N0_DB = {
    "bpsk": (4.0, 7.0), "qpsk": (4.0, 7.0), "8psk": (7.0, 10.0), "16qam": (7.0, 10.0),
    "64qam": (11.0, 14.0),
}  # fmt: skip
PACKET = 1500


def ofdm_symbols(burst):
    """Return the payload symbols, of mean power 1, of a burst with known timing."""
    w = air_time.WAVEFORMS["ofdm"]
    begin = w.guard + w.preamble + w.header
    items = burst[begin : len(burst) - w.tail].reshape(-1, w.item)[:, air_time.CYCLIC_PREFIX :]
    carriers = np.fft.fft(items, axis=1) * math.sqrt(air_time.ACTIVE_CARRIERS) / air_time.FFT_LENGTH
    return carriers[:, ofdm.DATA].ravel()


def single_carrier_symbols(burst):
    w = air_time.WAVEFORMS["single_carrier"]
    pulse = single_carrier.make_pulse()
    begin = w.guard + w.preamble + w.header
    matched = np.convolve(burst, pulse) / np.sum(pulse**2)
    count = (len(burst) - w.guard - w.preamble - w.header - w.ramp - w.tail) // w.item
    return matched[begin + len(pulse) - 1 :: w.item][:count]


SYMBOLS = {"ofdm": ofdm_symbols, "single_carrier": single_carrier_symbols}


def decide(modulation, symbols):
    """Decide symbols, and return their bits."""
    flow = gr.top_block()
    source = blocks.vector_source_c(symbols.astype(np.complex64).tolist())
    sink = blocks.vector_sink_b()
    flow.connect(source, digital.constellation_decoder_cb(constellation(modulation).base()), sink)
    flow.run()
    values = np.array(sink.data(), np.uint8)
    return np.unpackbits(values[:, None], axis=1)[:, -air_time.BITS_PER_SYMBOL[modulation] :]


def eb_n0_db(modem, modulation, snr_db):
    bits = air_time.BITS_PER_SYMBOL[modulation]
    return air_time.compute_symbol_snr_db(modem, snr_db) - 10 * math.log10(bits)


def snr_db_of(modem, modulation, wanted):
    return wanted - eb_n0_db(modem, modulation, 0.0)


def eb_n0_needed_db(code_rate):
    """Return Eb/N0 in dB at which an ideal receiver loses 10 % of packets of 1,000 bytes."""
    return packet_error_threshold_db(0.1, "qpsk", code_rate, 1000)


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
                self.assertLess(
                    np.mean(wrong), awgn_bit_error_rate(wanted - TOLERANCE_DB, modulation)
                )
                self.assertGreater(
                    np.mean(wrong), awgn_bit_error_rate(wanted + TOLERANCE_DB, modulation)
                )

    def test_codes_lose_what_theory_says(self):
        # At 0.5 dB more than an ideal decoder needs to lose 1 frame in 10. Null hypothesis: this
        # one needs as much. Of 200 frames, 8 or fewer are then lost with a probability below
        # 0.002; of an ideal one's, more than 8 with less than 0.01.
        rng = np.random.default_rng(22)
        for code_rate in EVENTS:
            needed = eb_n0_needed_db(code_rate)
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

    def test_whole_receivers_with_codes_lose_half_a_decibel_at_most(self):
        # At 0.5 dB more than an ideal receiver needs to lose 1 packet in 10. Null hypothesis: this
        # one needs as much. Of 1,000 packets, 75 or fewer are then lost with a probability below
        # 0.005.
        rng = np.random.default_rng(23)
        packets = [rng.bytes(1000) for _ in range(1000)]
        for seed, (modem, code_rate) in enumerate(product(air_time.MODEMS, EVENTS)):
            wanted = eb_n0_needed_db(code_rate) + TOLERANCE_DB
            rate_db = 10 * math.log10(EVENTS[code_rate][0])
            outcomes = run(
                [
                    ("packets", nagi.packet_framer(code_rate), "frames"),
                    nagi.modem_tx(modem, "qpsk"),
                    nagi.channel(seed, 0, 1e6, snr_db=snr_db_of(modem, "qpsk", wanted) + rate_db),
                    nagi.modem_rx(modem, "qpsk", soft_bits=True),
                    ("frames", nagi.packet_deframer(code_rate), "packets"),
                ],
                packets,
            )
            lost = sum(data != sent for (_, data), sent in zip(outcomes, packets, strict=True))
            with self.subTest(modem=modem, code_rate=code_rate, eb_n0_db=wanted):
                self.assertLessEqual(lost, 75)

    def test_all_carriers_are_equalized_as_well(self):
        # 400 packets at an Es/N0 of 8 dB: errors of a carrier's 16,000 symbols, whose power has a
        # deviation of 0.8 %. Those next to a pilot know that one, too.
        rng = np.random.default_rng(24)
        packets = [rng.bytes(480) for _ in range(400)]
        es_n0_db = 8.0
        snr_db = es_n0_db - air_time.compute_symbol_snr_db("ofdm", 0.0)
        sent = [ofdm_symbols(burst) for burst in transmit("ofdm", "qpsk", packets)]
        receiver = nagi.modem_rx("ofdm", "qpsk")
        chain = [nagi.modem_tx("ofdm", "qpsk"), nagi.channel(9, 0, 1e6, snr_db=snr_db)]
        with Flow(*chain, ("bursts", receiver, "symbols")) as flow:
            for number, packet in enumerate(packets):
                flow.send({"number": number, "begin_ns": number * 10_000_000}, packet)
            heard = [np.array(symbols) for _, symbols in flow.collect(len(packets))]
        errors = np.abs(np.array(heard) - np.array(sent)) ** 2
        powers = errors.reshape(-1, air_time.DATA_CARRIERS).mean(axis=0) * 10 ** (es_n0_db / 10)
        self.assertLess(powers.max(), 1.3)
        beside_pilots = [i for i, k in enumerate(ofdm.DATA) if {k - 1, k + 1} & set(ofdm.PILOTS)]
        self.assertLess(powers[beside_pilots].mean(), 1.05 * powers.mean())

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
                expected = math.log10(rayleigh_bit_error_rate(10) / rayleigh_bit_error_rate(30)) / 2
                self.assertAlmostEqual(decades, expected, delta=0.08)
                self.assertAlmostEqual(rates[0] / rayleigh_bit_error_rate(10), 1, delta=0.12)


if __name__ == "__main__":
    unittest.main()
