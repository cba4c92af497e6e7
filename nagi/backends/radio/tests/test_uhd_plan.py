# SPDX-License-Identifier: Apache-2.0
"""Test links that are UHD devices: settings, messages and plans."""

from __future__ import annotations

import json

import pytest
from nagi.backends.radio import plan as radio_plan
from nagi_contracts.errors import InputError
from radio_specs import RADIO, change_lines, plan_points

END = "{device: serial=30A1, tx_gain: 40 dB, rx_gain: 30.5 dB, rx_antenna: RX2}"
UHD = change_lines(
    ("    backward:\n      radio: {snr: 30 dB}\n", ""),
    ("      modem: ofdm\n", "      by: uhd\n      modem: ofdm\n"),
    ("      snr: $snr\n",
     "      uhd:\n        frequency: 2450 MHz\n        lo_offset: 1 MHz\n"
     f"        ends: {{N: {END}, D: {END.replace('30A1', '30A2')}}}\n"),
    ("  snr: [12 dB, 15.5 dB]\n", ""),
    ("report: {x: snr}", "report: {x: scheme}"),
    text=RADIO,
)  # fmt: skip


def test_the_plan_has_devices_in_the_order_of_the_ends_and_no_channel(tmp_path):
    plan = plan_points(tmp_path, UHD)[0]
    radio = json.loads(plan.link("wireless").radio.model_dump_json())
    end = {"channel": 0, "tx_gain_db": 40.0, "rx_gain_db": 30.5, "rx_antenna": "RX2"}
    assert radio["by"] == "uhd" and not {"forward", "backward"} & set(radio)
    assert radio["uhd"] == {
        "a": {"device": "serial=30A1", **end},
        "b": {"device": "serial=30A2", **end},
        "frequency_hz": {"forward": 2_450_000_000, "backward": 2_450_000_000},
        "lo_offset_hz": 1e6,
        "duplex": "full",
    }
    # Devices take seconds to open.
    simulated = plan_points(tmp_path)[0]
    later = plan.timeline.capture_s - simulated.timeline.capture_s
    assert later == pytest.approx(radio_plan.DEVICE_START_S)


def test_directions_may_have_a_frequency_each(tmp_path):
    text = change_lines(
        ("frequency: 2450 MHz\n", "frequency: 2.4 GHz\n        backward_frequency: 2.5 GHz\n"),
        text=UHD,
    )
    carriers = plan_points(tmp_path, text)[0].link("wireless").radio.uhd.frequency_hz
    assert (carriers.forward, carriers.backward) == (2_400_000_000, 2_500_000_000)


REFUSED = [
    ("      by: uhd\n", "", "links.wireless.radio.uhd", "`uhd` together with `by: simulated`"),
    ("        frequency: 2450 MHz\n", "", "links.wireless.radio.uhd", "missing key `frequency`"),
    ("frequency: 2450 MHz", "frequency: 2450", "links.wireless.radio.uhd.frequency", "no unit"),
    ("by: uhd\n", "by: uhd\n      snr: 12 dB\n", "links.wireless.radio.snr",
     "snr is for simulated channels, not for radio hardware; remove it"),
    ("by: uhd\n", "by: uhd\n      fading: {kind: rayleigh, doppler: 5 Hz}\n",
     "links.wireless.radio.fading", "remove it"),
    (", D: {", ", S: {", "links.wireless.radio.uhd.ends.S", "S is not a node of the link; the"),
    ("30A2", "30A1", "links.wireless.radio.uhd.duplex",
     "both nodes use the same channel of a device, which can send only one burst at a time"),
    ("tx_gain: 40 dB", "tx_gain: 40", "links.wireless.radio.uhd.ends.N.tx_gain", "no unit"),
    ("delay: 20 ms\n", "delay: 20 ms\n    forward: {radio: {snr: 3 dB}}\n",
     "links.wireless.forward.radio", "settings of a simulated channel for radio hardware"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "key", "message"), REFUSED, ids=[str(r[1:3]) for r in REFUSED]
)
def test_what_devices_cannot_do_is_refused_with_its_place(tmp_path, old, new, key, message):
    with pytest.raises(InputError) as refused:
        plan_points(tmp_path, change_lines((old, new), text=UHD))
    problem = refused.value.problems[0]
    assert ".".join(map(str, problem.key or ())) == key or str(problem).find(key) >= 0
    assert message in str(problem)


def test_by_uhd_needs_devices(tmp_path):
    with pytest.raises(InputError, match="which lists the devices; add `uhd:"):
        text = change_lines(
            ("      modem: ofdm\n", "      by: uhd\n      modem: ofdm\n"),
            ("      snr: $snr\n", ""),
            text=RADIO,
        )
        plan_points(tmp_path, text)
