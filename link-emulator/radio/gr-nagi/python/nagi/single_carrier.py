# SPDX-License-Identifier: Apache-2.0
"""The single-carrier modem's signal: two samples a symbol, root-raised-cosine pulses, rolloff 0.35.

The preamble is a maximum-length sequence of 31 symbols and one more, twice. There is no equalizer:
this modem is for channels of one path, OFDM for others.
"""

from __future__ import annotations

import math

import numpy as np
from gnuradio import digital
from gnuradio.filter import firdes

from . import nagi_python
from .air_time import (
    HEADER_SYMBOLS,
    PREAMBLE_SYMBOLS,
    PULSE_SPAN,
    SAMPLES_PER_SYMBOL,
    WAVEFORMS,
)

ROLLOFF = 0.35
CHANNEL_KEY = "single_carrier_state"
MAX_SLIP = 16
"""Samples by which a packet's end may come later than its begin says."""

_RAMP = 2 * PULSE_SPAN * SAMPLES_PER_SYMBOL


def preamble_symbols() -> list[complex]:
    """(64,) BPSK symbols, the second half like the first."""
    state = [1] * 5  # x^5 + x^3 + 1
    half = []
    for _ in range(31):
        half.append(complex(1 - 2 * state[4]))
        state = [state[4] ^ state[2], *state[:4]]
    half.append(complex(-1))
    return half * (PREAMBLE_SYMBOLS // len(half))


def pulse() -> np.ndarray:
    """The pulse of single_carrier_mod: (33,) samples of energy 2."""
    fine = firdes.root_raised_cosine(1.0, SAMPLES_PER_SYMBOL * 32, 1.0, ROLLOFF, 32 * _RAMP + 1)
    taps = np.array(fine)[::32]
    return taps * math.sqrt(SAMPLES_PER_SYMBOL / np.sum(taps**2))


def preamble() -> np.ndarray:
    """The preamble's samples, with its first and without its last pulse's end: (144,) complex."""
    spaced = np.zeros(PREAMBLE_SYMBOLS * SAMPLES_PER_SYMBOL, complex)
    spaced[::SAMPLES_PER_SYMBOL] = preamble_symbols()
    return np.convolve(spaced, pulse())[: len(spaced) + _RAMP // 2]


def modulator() -> nagi_python.single_carrier_mod:
    return nagi_python.single_carrier_mod(
        preamble=preamble_symbols(),
        samples_per_symbol=SAMPLES_PER_SYMBOL,
        rolloff=ROLLOFF,
        span=PULSE_SPAN,
    )


def demodulator(
    constellation: digital.constellation, *, header: bool, track_timing: bool = True
) -> nagi_python.single_carrier_demod:
    return nagi_python.single_carrier_demod(
        constellation=constellation.base(),
        preamble=preamble_symbols() if header else [],
        samples_per_symbol=SAMPLES_PER_SYMBOL,
        rolloff=ROLLOFF,
        span=PULSE_SPAN,
        bandwidth=0.03,
        timing_gain=0.01 if track_timing else 0.0,
    )


def demux_shape() -> dict[str, object]:
    """What packet_demux must know of the signal."""
    half = PREAMBLE_SYMBOLS * SAMPLES_PER_SYMBOL // 2
    return {
        "header_symbols": HEADER_SYMBOLS,
        "preamble": [complex(x) for x in preamble()],
        "repeat_begin": _RAMP // 2,
        "repeat_lag": half,
        "repeat_length": half,
        "spread": 0,
        "threshold": 0.16,
        "item_samples": SAMPLES_PER_SYMBOL,
        "item_prefix": 0,
        "item_symbols": 1,
        "header_items": PREAMBLE_SYMBOLS + HEADER_SYMBOLS,
        "overlap": _RAMP // SAMPLES_PER_SYMBOL + MAX_SLIP // SAMPLES_PER_SYMBOL,
        "snr_offset_db": 10 * math.log10(WAVEFORMS["single_carrier"].symbol_gain),
        "channel_key": CHANNEL_KEY,
        "weights": [],
    }
