#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of one direction of a radio link: its configuration, and outcomes of packets.

All randomness is seeded; an expected loss is absent with a probability below 1e-6.
"""

import socket
import struct
import unittest

import numpy as np
from flows import run
from gnuradio import gr_unittest, nagi
from gnuradio.nagi import air_time
from gnuradio.nagi.checks import DIRECTIONS, ConfigError
from gnuradio.nagi.flowgraph import Flowgraph
from gnuradio.nagi.radio import Channel, parse_radio
from gnuradio.nagi.settings import parse_settings

RADIO = {
    "by": "simulated",
    "modem": "ofdm",
    "modulation": "qpsk",
    "sample_rate_hz": 2083333,
    "code_rate": "none",
    "forward": {"snr_db": 11.0},
    "backward": {"snr_db": 40.0},
}


def changed(**settings):
    return parse_radio({**RADIO, **settings})


def send(config, sent, direction="forward", seed=1, number=0):
    radio = nagi.SimulatedRadio(config, direction, seed, number)
    return run([("packets", radio, "outcomes")], sent)


def packets(seed, count, size=500):
    rng = np.random.default_rng(seed)
    return [rng.bytes(size) for _ in range(count)]


class Radio(gr_unittest.TestCase):
    def test_every_packet_has_an_outcome_in_order(self):
        sent = packets(1, 300)
        outcomes = send(parse_radio(RADIO), sent)
        self.assertEqual([meta["number"] for meta, _ in outcomes], list(range(300)))
        received = [meta["outcome"] == 0 for meta, _ in outcomes]
        self.assertTrue(0 < sum(received) < 300)
        for (meta, data), packet in zip(outcomes, sent, strict=True):
            self.assertEqual(data, packet if meta["outcome"] == 0 else b"")
            self.assertIn("snr_db", meta)

    def test_it_repeats_and_differs_by_seed_number_and_direction(self):
        sent = packets(2, 200)
        config = parse_radio(RADIO)
        first = send(config, sent)
        self.assertEqual(send(config, sent), first)
        for settings in ({"seed": 2}, {"number": 1}):
            self.assertNotEqual(send(config, sent, **settings), first)
        clear = send(config, sent, direction="backward")
        self.assertEqual([data for _, data in clear], sent)

    def test_a_code_saves_packets(self):
        sent = packets(3, 100)
        noisy = {"snr_db": 8.0}
        plain = send(changed(forward=noisy), sent)
        coded = send(changed(forward=noisy, code_rate="1/2"), sent)
        # At this SNR hardly one packet in a hundred survives without, and nearly all with a code.
        self.assertLess(sum(meta["outcome"] == 0 for meta, _ in plain), 20)
        self.assertGreater(sum(meta["outcome"] == 0 for meta, _ in coded), 80)

    def test_every_kind_of_channel(self):
        taps = [{"delay_ns": 0, "power_db": 0.0}, {"delay_ns": 1500, "power_db": -6.0}]
        sent = packets(4, 60)
        for channel in (
            {"snr_db": 30.0, "fading": "rayleigh", "doppler_hz": 5.0},
            {"snr_db": 30.0, "fading": "rician", "k_factor_db": 6.0, "doppler_hz": 50.0},
            {"snr_db": 30.0, "taps": taps, "frequency_offset_hz": 9000.0},
        ):
            outcomes = send(changed(forward=channel), sent)
            good = sum(meta["outcome"] == 0 for meta, _ in outcomes)
            self.assertGreater(good, 20, channel)

    def test_the_longest_packet_crosses(self):
        for code_rate in air_time.CODE_RATES:
            sent = packets(5, 3, air_time.LONGEST_PACKET)
            config = changed(modulation="bpsk", code_rate=code_rate)
            outcomes = send(config, sent, direction="backward")
            self.assertEqual([data for _, data in outcomes], sent)


class Config(unittest.TestCase):
    def test_all_that_can_be_said(self):
        taps = [{"delay_ns": 0, "power_db": 0.0}, {"delay_ns": 1500, "power_db": -6.0}]
        full = {
            "snr_db": 12.0,
            "fading": "rician",
            "doppler_hz": 5.0,
            "k_factor_db": 6.0,
            "taps": taps,
            "frequency_offset_hz": -10.0,
            "sample_clock": {"offset_ppm": 20, "drift_ppm_s": 0.5},
        }
        config = changed(forward=full)
        expected = Channel(12.0, "rician", 5.0, 6.0, ((0.0, 0.0), (1500.0, -6.0)), -10.0,
                           sample_clock_offset_ppm=20.0, sample_clock_drift_ppm_s=0.5)  # fmt: skip
        self.assertEqual(config.channels["forward"], expected)

    def test_errors_name_the_key(self):
        for settings, key in (
            ({"by": "magic"}, "radio.by"),
            ({"modem": "am"}, "radio.modem"),
            ({"modulation": "256qam"}, "radio.modulation"),
            ({"code_rate": "turbo"}, "radio.code_rate"),
            ({"fec": "convolutional"}, "renamed code_rate"),
            ({"sample_rate_hz": 0}, "radio.sample_rate_hz"),
            ({"sample_rate_hz": 1234.5}, "radio.sample_rate_hz"),
            ({"sample_rate_hz": "2M"}, "radio.sample_rate_hz"),
            ({"power": 1}, "power"),
            ({"forward": {}}, "snr_db"),
            ({"forward": 12}, "radio.forward"),
            ({"forward": {"snr_db": float("nan")}}, "radio.forward.snr_db"),
            ({"forward": {"snr_db": 1, "fading": "slow"}}, "radio.forward.fading"),
            ({"forward": {"snr_db": 1, "doppler_hz": -1}}, "radio.forward.doppler_hz"),
            ({"forward": {"snr_db": 1, "taps": []}}, "radio.forward.taps"),
            ({"forward": {"snr_db": 1, "taps": [{"delay_ns": -1}]}}, "delay_ns"),
            ({"forward": {"snr_db": 1, "taps": [{"delay_ns": 1}]}}, "power_db"),
            ({"forward": {"snr_db": 1, "sample_clock": {}}}, "offset_ppm"),
            ({"forward": {"snr_db": 1, "sample_clock": {"offset_ppm": 201}}}, "at most 200"),
        ):
            with self.assertRaises(ConfigError) as caught:
                changed(**settings)
            self.assertIn(key, str(caught.exception))
        for missing in ("modem", "sample_rate_hz", "backward"):
            with self.assertRaises(ConfigError) as caught:
                parse_radio({key: value for key, value in RADIO.items() if key != missing})
            self.assertIn(missing, str(caught.exception))


class Interference(gr_unittest.TestCase):
    def document(self, **changes):
        links = []
        for number, name in enumerate(("west", "east")):
            radio = RADIO | {"forward": {"snr_db": 30.0}, "backward": {"snr_db": 30.0}}
            lossy = {"loss": {"model": "radio"}}
            links.append(
                {"name": name, "id": number, "forward": lossy, "backward": lossy, "radio": radio}
            )
        disturbed = {"link": "east", "direction": "forward", "level_db": -3.0} | changes
        links[0]["radio"]["forward"]["interference"] = [disturbed]
        return {"seed": 1, "links": links}

    def test_a_radio_disturbs_another(self):
        settings = parse_settings(self.document())
        places = [(link, direction) for link in ("west", "east") for direction in DIRECTIONS]
        pairs = {place: socket.socketpair(type=socket.SOCK_SEQPACKET) for place in places}
        flowgraph = Flowgraph(settings, {place: two.detach() for place, (_, two) in pairs.items()})
        ends = {place: one for place, (one, _) in pairs.items()}
        flowgraph.start()

        def outcome_of(link, number, begin_ns):
            end = ends[link, "forward"]
            end.settimeout(20)
            end.send(struct.pack("<IIqq", number, 0, begin_ns, begin_ns + 10**6) + bytes(200))
            return end.recv(1000)[4]

        # East's has been sent when its outcome is there: it is not too late for west's.
        self.assertEqual(outcome_of("east", 0, 10**6), 0)
        self.assertEqual(outcome_of("west", 0, 10**6 + 50_000), 3)  # payload error
        self.assertEqual(outcome_of("west", 1, 10**8), 0)  # long after it
        for end in ends.values():
            end.close()
        flowgraph.stop()

    def test_what_is_refused(self):
        for changes, said in (
            ({"link": "north"}, "no radio is called"),
            ({"link": "west"}, "cannot interfere with itself"),
            ({"direction": "up"}, "direction"),
            ({"level_db": None}, "level_db"),
        ):
            with self.assertRaisesRegex(ConfigError, said):
                parse_settings(self.document(**changes))
        document = self.document()
        document["links"][1]["radio"]["sample_rate_hz"] = 10**6
        with self.assertRaisesRegex(ConfigError, "another sample rate"):
            parse_settings(document)


if __name__ == "__main__":
    unittest.main()
