# SPDX-License-Identifier: Apache-2.0
"""The OFDM modem's signal, and its stream chains made of gr-digital's blocks.

64 carriers: 48 with data, 4 with pilots, on the places of IEEE 802.11-2020, 17.3.5.10; cyclic
prefix of 16 samples. Two preamble symbols after Schmidl and Cox (1997): the first repeats itself
after half its length, the second holds all carriers, for the channel's estimate.
"""

from __future__ import annotations

import math

import numpy as np
from gnuradio import blocks, digital, gr, pdu

from . import nagi_python
from .air_time import (
    ACTIVE_CARRIERS,
    CYCLIC_PREFIX,
    DATA_CARRIERS,
    FFT_LENGTH,
    HEADER_SYMBOLS,
    WAVEFORMS,
)

PILOTS = (-21, -7, 7, 21)
DATA = tuple(k for k in range(-26, 27) if k != 0 and k not in PILOTS)
CHANNEL_KEY = "ofdm_sync_chan_taps"  # as gr-digital's blocks call it
SYMBOL = FFT_LENGTH + CYCLIC_PREFIX
SYNC_ITEMS = 2
HEADER_ITEMS = SYNC_ITEMS + HEADER_SYMBOLS // DATA_CARRIERS

_AMPLITUDE = 1 / math.sqrt(ACTIVE_CARRIERS)  # makes samples of mean power 1
_PREAMBLE_SEED = 8


def _pilot_symbols() -> list[list[complex]]:
    """Pilots of 127 symbols in turn, scrambled with x^7 + x^4 + 1."""
    state = [1] * 7
    signs = []
    for _ in range(127):
        bit = state[6] ^ state[3]
        state = [bit, *state[:6]]
        signs.append(1 - 2 * bit)
    return [[sign, sign, sign, -sign] for sign in signs]


PILOT_SYMBOLS = _pilot_symbols()
PILOT_CARRIERS = [list(PILOTS)] * len(PILOT_SYMBOLS)  # gr-digital's blocks want as many


def sync_words() -> tuple[list[complex], list[complex]]:
    """Both preamble symbols over the carriers, the lowest frequency first."""
    signs = np.random.Generator(np.random.PCG64(_PREAMBLE_SEED)).integers(0, 2, (2, FFT_LENGTH))
    first = np.zeros(FFT_LENGTH, complex)
    second = np.zeros(FFT_LENGTH, complex)
    for k in (*DATA, *PILOTS):
        place = k + FFT_LENGTH // 2
        second[place] = 1 - 2 * signs[1, place]
        if k % 2 == 0:
            first[place] = math.sqrt(2) * (1 - 2 * signs[0, place])
    return list(first), list(second)


def preamble() -> np.ndarray:
    """The preamble's samples, mean power 1: (160,) complex."""
    parts = []
    for word in sync_words():
        body = np.fft.ifft(np.fft.ifftshift(word)) * FFT_LENGTH * _AMPLITUDE
        parts += [body[-CYCLIC_PREFIX:], body]
    return np.concatenate(parts)


def _occupied() -> list[list[int]]:
    return [list(DATA)]


def _equalizer(
    constellation: digital.constellation,
    symbols_skipped: int,
    track_timing: bool,
) -> nagi_python.ofdm_equalizer_tracking:
    return nagi_python.ofdm_equalizer_tracking(
        constellation=constellation.base(),
        fft_len=FFT_LENGTH,
        occupied_carriers=_occupied(),
        pilot_carriers=PILOT_CARRIERS,
        pilot_symbols=PILOT_SYMBOLS,
        symbols_skipped=symbols_skipped,
        delay_spread=CYCLIC_PREFIX,
        alpha=0.05,
        timing_gain=0.3 if track_timing else 0.0,
    )


def _room(block: gr.block, items: int) -> None:
    """Tagged streams need a buffer that holds a packet; for two, the next need not wait."""
    block.set_min_output_buffer(2 * items)


class Modulator(gr.hier_block2):
    """PDUs of symbols (with symbol_count, a multiple of 48) into PDUs of samples."""

    def __init__(self, max_symbols: int) -> None:
        gr.hier_block2.__init__(
            self, "ofdm_modulator", gr.io_signature(0, 0, 0), gr.io_signature(0, 0, 0)
        )
        self.message_port_register_hier_in("symbols")
        self.message_port_register_hier_out("samples")
        items = -(-max_symbols // DATA_CARRIERS) + SYNC_ITEMS
        key = "packet_len"
        source = pdu.pdu_to_tagged_stream(gr.types.complex_t, key)
        allocator = digital.ofdm_carrier_allocator_cvc(
            FFT_LENGTH, _occupied(), PILOT_CARRIERS, PILOT_SYMBOLS, list(sync_words()), key
        )
        inverse = nagi_python.repeatable_fft(FFT_LENGTH, False, _AMPLITUDE)
        prefixer = digital.ofdm_cyclic_prefixer(FFT_LENGTH, SYMBOL, 0, key)
        sink = pdu.tagged_stream_to_pdu(gr.types.complex_t, key)
        _room(source, max_symbols)
        _room(allocator, items)
        _room(inverse, items)
        _room(prefixer, items * SYMBOL)
        self.connect(source, allocator, inverse, prefixer, sink)
        self.msg_connect(self, "symbols", source, "pdus")
        self.msg_connect(sink, "pdus", self, "samples")


class Demodulator(gr.hier_block2):
    """PDUs of samples (with item_count, a multiple of 64) into PDUs of symbols.

    `header`: the PDU begins with the preamble, from which the channel is estimated, and ends with
    the header. Otherwise the channel's estimate comes with the PDU.
    """

    def __init__(
        self,
        constellation: digital.constellation,
        max_items: int,
        *,
        header: bool,
        track_timing: bool = True,
    ) -> None:
        gr.hier_block2.__init__(
            self, "ofdm_demodulator", gr.io_signature(0, 0, 0), gr.io_signature(0, 0, 0)
        )
        self.message_port_register_hier_in("samples")
        self.message_port_register_hier_out("symbols")
        key = "frame_len" if header else "item_count"  # the preamble's items are no frame
        source = pdu.pdu_to_tagged_stream(gr.types.complex_t, "packet_len")
        vectors = blocks.stream_to_vector(gr.sizeof_gr_complex, FFT_LENGTH)
        transform = nagi_python.repeatable_fft(FFT_LENGTH, True)
        equalizer = digital.ofdm_frame_equalizer_vcvc(
            _equalizer(
                constellation,
                symbols_skipped=0 if header else HEADER_ITEMS - SYNC_ITEMS,
                track_timing=track_timing,
            ).base(),
            CYCLIC_PREFIX,
            key,
            True,  # the channel's estimate leaves with the symbols
            HEADER_ITEMS - SYNC_ITEMS if header else 0,
        )
        serializer = digital.ofdm_serializer_vcc(FFT_LENGTH, _occupied(), key)
        sink = pdu.tagged_stream_to_pdu(gr.types.complex_t, key)
        _room(source, max_items * FFT_LENGTH)
        for block in (vectors, transform, equalizer):
            _room(block, max_items)
        _room(serializer, max_items * DATA_CARRIERS)
        chain = [source, vectors, transform]
        if header:
            first, second = sync_words()
            chain.append(digital.ofdm_chanest_vcvc(first, second, HEADER_ITEMS - SYNC_ITEMS, 0, 0))
        self.connect(*chain, equalizer, serializer, sink)
        self.msg_connect(self, "samples", source, "pdus")
        self.msg_connect(sink, "pdus", self, "symbols")


def demux_shape() -> dict[str, object]:
    """What packet_demux must know of the signal."""
    return {
        "header_symbols": HEADER_SYMBOLS,
        "preamble": [complex(x) for x in preamble()],
        "repeat_begin": 0,
        "repeat_lag": FFT_LENGTH // 2,
        "repeat_length": FFT_LENGTH // 2 + CYCLIC_PREFIX,
        "spread": CYCLIC_PREFIX,
        "threshold": 0.2,
        "item_samples": SYMBOL,
        "item_prefix": CYCLIC_PREFIX,
        "item_symbols": DATA_CARRIERS,
        "header_items": HEADER_ITEMS,
        "overlap": 0,
        "snr_offset_db": 10 * math.log10(WAVEFORMS["ofdm"].symbol_gain),
        "channel_key": CHANNEL_KEY,
        "weights": [k + FFT_LENGTH // 2 for k in DATA],
    }
