# SPDX-License-Identifier: Apache-2.0
"""The signal of the single-carrier modem.

It has two samples per symbol and root-raised-cosine pulses with rolloff 0.35. The preamble repeats
a sequence of 32 symbols: a maximum-length sequence of 31 symbols and one more. The modem has no
equalizer, so it needs a channel with one path; use OFDM for channels with several paths.
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
"""Number of samples by which the end of a packet may be later than its beginning predicts."""

_RAMP = 2 * PULSE_SPAN * SAMPLES_PER_SYMBOL


def make_preamble_symbols() -> list[complex]:
    """Return the 64 BPSK symbols of the preamble; both halves are equal."""
    state = [1] * 5  # x^5 + x^3 + 1
    half = []
    for _ in range(31):
        half.append(complex(1 - 2 * state[4]))
        state = [state[4] ^ state[2], *state[:4]]
    half.append(complex(-1))
    return half * (PREAMBLE_SYMBOLS // len(half))


def make_pulse() -> np.ndarray:
    """Return the pulse of single_carrier_mod: samples of energy 2, shape (33,)."""
    fine = firdes.root_raised_cosine(1.0, SAMPLES_PER_SYMBOL * 32, 1.0, ROLLOFF, 32 * _RAMP + 1)
    taps = np.array(fine)[::32]
    return taps * math.sqrt(SAMPLES_PER_SYMBOL / np.sum(taps**2))


def make_preamble() -> np.ndarray:
    """Return the preamble's samples, shape (144,), complex.

    The samples include the start of the first pulse and exclude the end of the last pulse.
    """
    spaced = np.zeros(PREAMBLE_SYMBOLS * SAMPLES_PER_SYMBOL, complex)
    spaced[::SAMPLES_PER_SYMBOL] = make_preamble_symbols()
    return np.convolve(spaced, make_pulse())[: len(spaced) + _RAMP // 2]


def make_modulator() -> nagi_python.single_carrier_mod:
    return nagi_python.single_carrier_mod(
        preamble=make_preamble_symbols(),
        samples_per_symbol=SAMPLES_PER_SYMBOL,
        rolloff=ROLLOFF,
        span=PULSE_SPAN,
    )


def make_demodulator(
    constellation: digital.constellation, *, header: bool, track_timing: bool = True
) -> nagi_python.single_carrier_demod:
    return nagi_python.single_carrier_demod(
        constellation=constellation.base(),
        preamble=make_preamble_symbols() if header else [],
        samples_per_symbol=SAMPLES_PER_SYMBOL,
        rolloff=ROLLOFF,
        span=PULSE_SPAN,
        bandwidth=0.03,
        timing_gain=0.01 if track_timing else 0.0,
    )


def make_demux_arguments() -> dict[str, object]:
    """Return the keyword arguments of packet_demux that describe the modem's signal."""
    half = PREAMBLE_SYMBOLS * SAMPLES_PER_SYMBOL // 2
    return {
        "header_symbols": HEADER_SYMBOLS,
        "preamble": [complex(x) for x in make_preamble()],
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
