# SPDX-License-Identifier: Apache-2.0
"""The packet modems: bytes to a burst of samples, and back, or why not.

Both ends are hierarchical blocks with message ports. One packet is one burst, and what becomes of a
burst depends on its samples alone.
"""

from __future__ import annotations

import math

from gnuradio import digital, gr

from . import nagi_python, ofdm, single_carrier
from .air_time import (
    BITS_PER_SYMBOL,
    DATA_CARRIERS,
    HEADER_SYMBOLS,
    MODEMS,
    WAVEFORMS,
    longest_frame,
)


def constellation(modulation: str) -> digital.constellation:
    """Gray-mapped points of mean power 1.

    gr-digital's QPSK has another power and its 16-QAM is not Gray-mapped, hence rectangles.
    Raises ValueError for a modulation that no modem has.
    """
    if modulation == "bpsk":
        return digital.constellation_bpsk()
    if modulation == "8psk":
        return digital.constellation_8psk()
    if modulation in ("qpsk", "16qam"):
        levels = {"qpsk": (-1, 1), "16qam": (-3, -1, 3, 1)}[modulation]  # Gray, by value
        half = BITS_PER_SYMBOL[modulation] // 2
        power = 2 * sum(level**2 for level in levels) / len(levels)
        unit = 1 / math.sqrt(power)
        points = [
            complex(levels[value >> half], levels[value & (len(levels) - 1)]) * unit
            for value in range(len(levels) ** 2)
        ]
        sectors = len(levels)
        return digital.constellation_rect(
            points,
            [],
            4,
            sectors,
            sectors,
            2 * unit,
            2 * unit,
            digital.constellation.normalization.NO_NORMALIZATION,
        )
    raise ValueError(f'modulation is "{modulation}", not one of {", ".join(BITS_PER_SYMBOL)}')


def _check_modem(modem: str) -> None:
    if modem not in MODEMS:
        raise ValueError(f'modem is "{modem}", not one of {", ".join(MODEMS)}')


def _max_symbols(modem: str, modulation: str) -> int:
    """Symbols of the longest packet, with its header."""
    symbols = -(-8 * longest_frame() // BITS_PER_SYMBOL[modulation])
    block = WAVEFORMS[modem].item_symbols
    return (-(-symbols // block) * block) + HEADER_SYMBOLS


class modem_tx(gr.hier_block2):  # noqa: N801  as all of GNU Radio's blocks
    """Packets to bursts.

    Message ports: in `pdus` (bytes, with number and begin_ns), out `bursts` (complex samples, mean
    power 1, the same dictionary), `air_time.frame_samples` samples each. A packet longer than
    `air_time.longest_frame()` bytes becomes an empty burst, and an error in the log.
    """

    def __init__(self, modem: str = "ofdm", modulation: str = "qpsk") -> None:
        _check_modem(modem)
        gr.hier_block2.__init__(
            self, "modem_tx", gr.io_signature(0, 0, 0), gr.io_signature(0, 0, 0)
        )
        self.message_port_register_hier_in("pdus")
        self.message_port_register_hier_out("bursts")
        points = constellation(modulation)
        waveform = WAVEFORMS[modem]
        is_ofdm = modem == "ofdm"
        mux = nagi_python.packet_mux(
            constellation=points.base(),
            header_symbols=HEADER_SYMBOLS,
            block=waveform.item_symbols,
            longest=longest_frame(),
            guard=waveform.guard,
            tail=waveform.tail,
        )
        modulator: gr.basic_block
        if is_ofdm:
            modulator = ofdm.Modulator(_max_symbols(modem, modulation))
        else:
            modulator = single_carrier.modulator()
        self.msg_connect(self, "pdus", mux, "pdus")
        self.msg_connect(mux, "symbols", modulator, "symbols")
        self.msg_connect(modulator, "samples", mux, "samples")
        self.msg_connect(mux, "bursts", self, "bursts")


class modem_rx(gr.hier_block2):  # noqa: N801
    """Bursts to packets, or why not.

    Message ports: in `bursts` (complex samples, with number and begin_ns), out `pdus`, one for each
    burst, in order, with its dictionary: bytes and snr_db, or none and the outcome.
    """

    def __init__(self, modem: str = "ofdm", modulation: str = "qpsk") -> None:
        _check_modem(modem)
        gr.hier_block2.__init__(
            self, "modem_rx", gr.io_signature(0, 0, 0), gr.io_signature(0, 0, 0)
        )
        self.message_port_register_hier_in("bursts")
        self.message_port_register_hier_out("pdus")
        points = constellation(modulation)
        bpsk = constellation("bpsk")
        signal = ofdm if modem == "ofdm" else single_carrier
        demux = nagi_python.packet_demux(
            constellation=points.base(), longest=longest_frame(), **signal.demux_shape()
        )
        header: gr.basic_block
        payload: gr.basic_block
        if modem == "ofdm":
            header = ofdm.Demodulator(bpsk, ofdm.HEADER_ITEMS, header=True)
            items = _max_symbols(modem, modulation) // DATA_CARRIERS
            payload = ofdm.Demodulator(points, items, header=False)
        else:
            header = single_carrier.demodulator(bpsk, header=True)
            payload = single_carrier.demodulator(points, header=False)
        self.msg_connect(self, "bursts", demux, "bursts")
        for name, demodulator in (("header", header), ("payload", payload)):
            self.msg_connect(demux, name, demodulator, "samples")
            self.msg_connect(demodulator, "symbols", demux, f"{name}_symbols")
        self.msg_connect(demux, "pdus", self, "pdus")
