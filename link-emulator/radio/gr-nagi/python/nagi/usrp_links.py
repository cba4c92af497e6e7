# SPDX-License-Identifier: Apache-2.0
"""Opens links over the double of UHD's devices and sends packets over them, for tests."""

import itertools
import math
import os
import time

import numpy as np
from flows import Flow
from gnuradio.nagi import usrp
from gnuradio.nagi.air_time import compute_air_time_ns
from gnuradio.nagi.radio import parse_radio

RATE = 2_000_000
LEAD_NS = 20_000_000
LOOP = "channels=2,tx_cable=x|y,rx_cable=y|x"
APART = (
    "tx_cable=x,rx_cable=y",
    "tx_cable=y,rx_cable=x,offset_ppm=8,drift_ppm_s=0.02",
)
NOISE_DBM = -174 + 10 * math.log10(RATE) + 6


def output_gain_db(snr_db, backoff_db=12.0, attenuation_db=60.0):
    """Return the gain at which a burst has the SNR `snr_db` at the other end of the cable."""
    return snr_db + NOISE_DBM + attenuation_db + backoff_db - 10 + 89.75


_serials = itertools.count()


def device(arguments):
    """Return device arguments with a unique serial, so that UHD opens a new device.

    UHD would return a device that is already open to a caller that gives its serial.
    """
    return f"type=nagi_double,serial=qa-{os.getpid()}-{next(_serials)},{arguments}"


def config(a=LOOP, b=None, *, snr_db=25.0, channel=1, duplex="full", both=None, **changes):
    """Return a radio's configuration.

    `both` are settings of both ends, `changes` settings of the first end or of the link.
    """
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
    """Send packets back to back over a new link, and close the link.

    `after_s` is the time between the opening of the devices and the first packet.

    Returns:
        The packets' outcomes, the direction's counts, and the closed link.
    """
    epoch = time.monotonic_ns()
    link = usrp.UhdLink(radio, epoch, 2 * LEAD_NS, lead_ns=LEAD_NS)
    time.sleep(max(0.0, after_s - (time.monotonic_ns() - epoch) * 1e-9))
    begin = time.monotonic_ns() - epoch
    with Flow(("packets", link.make_radio(direction), "outcomes")) as flow:
        for number, packet in enumerate(sent):
            flow.send({"number": number, "begin_ns": begin, "mode": 0}, packet)
            begin += compute_air_time_ns("ofdm", "qpsk", RATE, "none", len(packet))
        outcomes = flow.collect(len(sent))
    counts = link.read_counts()[direction]
    link.close()  # ends the streams, which use processor time
    return outcomes, counts, link
