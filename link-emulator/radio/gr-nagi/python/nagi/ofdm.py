# SPDX-License-Identifier: Apache-2.0
"""The signal of the OFDM modem, and a modulator and demodulator built from gr-digital's blocks.

The signal has 64 carriers, 48 with data and 4 with pilots as in IEEE 802.11-2020, 17.3.5.10, and a
cyclic prefix of 16 samples. The preamble has two symbols (Schmidl and Cox, 1997). Both halves of
the first symbol are equal. The second symbol uses all carriers with data or pilots, so that the
receiver can estimate the channel.
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
CHANNEL_KEY = "ofdm_sync_chan_taps"  # the name in gr-digital's blocks
SYMBOL = FFT_LENGTH + CYCLIC_PREFIX
SYNC_ITEMS = 2
HEADER_ITEMS = SYNC_ITEMS + HEADER_SYMBOLS // DATA_CARRIERS

_AMPLITUDE = 1 / math.sqrt(ACTIVE_CARRIERS)  # makes samples of mean power 1
_PREAMBLE_SEED = 8


def _make_pilot_symbols() -> list[list[complex]]:
    """Return the four pilots of 127 consecutive symbols, with signs scrambled by x^7 + x^4 + 1."""
    state = [1] * 7
    signs = []
    for _ in range(127):
        bit = state[6] ^ state[3]
        state = [bit, *state[:6]]
        signs.append(1 - 2 * bit)
    return [[sign, sign, sign, -sign] for sign in signs]


PILOT_SYMBOLS = _make_pilot_symbols()
PILOT_CARRIERS = [list(PILOTS)] * len(
    PILOT_SYMBOLS
)  # gr-digital's blocks need one entry per symbol


def make_sync_words() -> tuple[list[complex], list[complex]]:
    """Return both preamble symbols as complex values of the 64 carriers, lowest frequency first."""
    signs = np.random.Generator(np.random.PCG64(_PREAMBLE_SEED)).integers(0, 2, (2, FFT_LENGTH))
    first = np.zeros(FFT_LENGTH, complex)
    second = np.zeros(FFT_LENGTH, complex)
    for k in (*DATA, *PILOTS):
        carrier = k + FFT_LENGTH // 2
        second[carrier] = 1 - 2 * signs[1, carrier]
        if k % 2 == 0:
            first[carrier] = math.sqrt(2) * (1 - 2 * signs[0, carrier])
    return list(first), list(second)


def make_preamble() -> np.ndarray:
    """Return the preamble's samples of mean power 1, shape (160,), complex."""
    parts = []
    for word in make_sync_words():
        body = np.fft.ifft(np.fft.ifftshift(word)) * FFT_LENGTH * _AMPLITUDE
        parts += [body[-CYCLIC_PREFIX:], body]
    return np.concatenate(parts)


def _list_carriers() -> list[list[int]]:
    return [list(DATA)]


def _make_equalizer(
    constellation: digital.constellation,
    symbols_skipped: int,
    track_timing: bool,
) -> nagi_python.ofdm_equalizer_tracking:
    return nagi_python.ofdm_equalizer_tracking(
        constellation=constellation.base(),
        fft_len=FFT_LENGTH,
        occupied_carriers=_list_carriers(),
        pilot_carriers=PILOT_CARRIERS,
        pilot_symbols=PILOT_SYMBOLS,
        symbols_skipped=symbols_skipped,
        delay_spread=CYCLIC_PREFIX,
        alpha=0.05,
        timing_gain=0.3 if track_timing else 0.0,
    )


def _reserve_buffer(block: gr.block, items: int) -> None:
    """Reserve an output buffer for two packets.

    The buffer of a tagged stream must hold a whole packet. With room for two packets, the next
    packet does not wait.
    """
    block.set_min_output_buffer(2 * items)


class Modulator(gr.hier_block2):
    """Modulates PDUs of symbols (with symbol_count, a multiple of 48) into PDUs of samples."""

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
            FFT_LENGTH,
            _list_carriers(),
            PILOT_CARRIERS,
            PILOT_SYMBOLS,
            list(make_sync_words()),
            key,
        )
        inverse = nagi_python.repeatable_fft(FFT_LENGTH, False, _AMPLITUDE)
        prefixer = digital.ofdm_cyclic_prefixer(FFT_LENGTH, SYMBOL, 0, key)
        sink = pdu.tagged_stream_to_pdu(gr.types.complex_t, key)
        _reserve_buffer(source, max_symbols)
        _reserve_buffer(allocator, items)
        _reserve_buffer(inverse, items)
        _reserve_buffer(prefixer, items * SYMBOL)
        self.connect(source, allocator, inverse, prefixer, sink)
        self.msg_connect(self, "symbols", source, "pdus")
        self.msg_connect(sink, "pdus", self, "samples")


class Demodulator(gr.hier_block2):
    """Demodulates PDUs of samples (with item_count, a multiple of 64) into PDUs of symbols.

    If `header` is True, a PDU has preamble and header, and the channel is estimated from the
    preamble. If it is False, a PDU has payload, and its dictionary has the channel estimate.
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
        key = (
            "frame_len" if header else "item_count"
        )  # items of the preamble do not belong to the frame
        source = pdu.pdu_to_tagged_stream(gr.types.complex_t, "packet_len")
        vectors = blocks.stream_to_vector(gr.sizeof_gr_complex, FFT_LENGTH)
        transform = nagi_python.repeatable_fft(FFT_LENGTH, True)
        equalizer = digital.ofdm_frame_equalizer_vcvc(
            _make_equalizer(
                constellation,
                symbols_skipped=0 if header else HEADER_ITEMS - SYNC_ITEMS,
                track_timing=track_timing,
            ).base(),
            CYCLIC_PREFIX,
            key,
            True,  # send the estimate of the channel with the symbols
            HEADER_ITEMS - SYNC_ITEMS if header else 0,
        )
        serializer = digital.ofdm_serializer_vcc(FFT_LENGTH, _list_carriers(), key)
        sink = pdu.tagged_stream_to_pdu(gr.types.complex_t, key)
        _reserve_buffer(source, max_items * FFT_LENGTH)
        for block in (vectors, transform, equalizer):
            _reserve_buffer(block, max_items)
        _reserve_buffer(serializer, max_items * DATA_CARRIERS)
        chain = [source, vectors, transform]
        if header:
            first, second = make_sync_words()
            chain.append(digital.ofdm_chanest_vcvc(first, second, HEADER_ITEMS - SYNC_ITEMS, 0, 0))
        self.connect(*chain, equalizer, serializer, sink)
        self.msg_connect(self, "samples", source, "pdus")
        self.msg_connect(sink, "pdus", self, "symbols")


def make_demux_arguments() -> dict[str, object]:
    """Return the keyword arguments of packet_demux that describe the modem's signal."""
    return {
        "header_symbols": HEADER_SYMBOLS,
        "preamble": [complex(x) for x in make_preamble()],
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
