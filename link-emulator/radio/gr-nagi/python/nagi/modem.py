# SPDX-License-Identifier: Apache-2.0
"""The packet modems: bytes to a burst of samples, and back, or why not.

Both ends are hierarchical blocks with message ports. One packet is one burst, and what becomes of a
burst depends on its samples alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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

_LEVELS = {
    "qpsk": (-1, 1),
    "16qam": (-3, -1, 3, 1),
    "64qam": (-7, -5, -1, -3, 7, 5, 1, 3),
}
"""Gray, by value: IEEE 802.11-2020, 17.3.5.8."""


def constellation(modulation: str) -> digital.constellation:
    """Gray-mapped points of mean power 1.

    gr-digital's QPSK has another power and its 16-QAM is not Gray-mapped, hence rectangles.
    Raises ValueError for a modulation that no modem has.
    """
    if modulation == "bpsk":
        return digital.constellation_bpsk()
    if modulation == "8psk":
        return digital.constellation_8psk()
    if modulation in _LEVELS:
        levels = _LEVELS[modulation]
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


MAX_MODES = 16
"""Modes that the PHY header can tell apart."""


def _check_modem(modem: str) -> None:
    if modem not in MODEMS:
        raise ValueError(f'modem is "{modem}", not one of {", ".join(MODEMS)}')


def _modes(modulation: str | Sequence[str]) -> list[str]:
    """The modulation in each mode."""
    modes = [modulation] if isinstance(modulation, str) else list(modulation)
    if not 1 <= len(modes) <= MAX_MODES:
        raise ValueError(f"{len(modes)} modulations; a modem has 1 to {MAX_MODES}, one a mode")
    return modes


def _max_symbols(modem: str, modulations: Sequence[str]) -> int:
    """Symbols of the longest packet, with its header."""
    bits = min(BITS_PER_SYMBOL[modulation] for modulation in modulations)
    symbols = -(-8 * longest_frame() // bits)
    block = WAVEFORMS[modem].item_symbols
    return (-(-symbols // block) * block) + HEADER_SYMBOLS


class modem_tx(gr.hier_block2):  # noqa: N801  as all of GNU Radio's blocks
    """Packets to bursts.

    Message ports: in `pdus` (bytes, with number and begin_ns), out `bursts` (complex samples, mean
    power 1, the same dictionary), `air_time.frame_samples` samples each. A packet longer than
    `air_time.longest_frame()` bytes becomes an empty burst, and an error in the log.

    Parameters:
    - modem: "ofdm" or "single_carrier"
    - modulation: "bpsk", "qpsk", "8psk", "16qam" or "64qam"; or a list of 1 to 16, one for each
      mode; PDUs then say their `mode`. The receiver needs the same.

    Raises ValueError for others.
    """

    def __init__(self, modem: str = "ofdm", modulation: str | Sequence[str] = "qpsk") -> None:
        _check_modem(modem)
        modes = _modes(modulation)
        points = [constellation(each) for each in modes]
        gr.hier_block2.__init__(
            self, "modem_tx", gr.io_signature(0, 0, 0), gr.io_signature(0, 0, 0)
        )
        self.message_port_register_hier_in("pdus")
        self.message_port_register_hier_out("bursts")
        waveform = WAVEFORMS[modem]
        is_ofdm = modem == "ofdm"
        mux = nagi_python.packet_mux(
            constellations=[each.base() for each in points],
            header_symbols=HEADER_SYMBOLS,
            block=waveform.item_symbols,
            longest=longest_frame(),
            guard=waveform.guard,
            tail=waveform.tail,
        )
        modulator: gr.basic_block
        if is_ofdm:
            modulator = ofdm.Modulator(_max_symbols(modem, modes))
        else:
            modulator = single_carrier.modulator()
        self.msg_connect(self, "pdus", mux, "pdus")
        self.msg_connect(mux, "symbols", modulator, "symbols")
        self.msg_connect(modulator, "samples", mux, "samples")
        self.msg_connect(mux, "bursts", self, "bursts")


class modem_rx(gr.hier_block2):  # noqa: N801
    """Bursts to packets, or why not.

    Message ports: in `bursts` (complex samples, with number and begin_ns), out `pdus`, one for each
    burst, in order, with its dictionary: bytes, mode and snr_db, or none and the outcome; out
    `symbols`, the equalized symbols of each burst whose header was understood, to look at.

    Parameters:
    - modem, modulation: as the transmitter's
    - soft_bits: whether soft decisions leave with the bytes, for packet_deframer
    - track_timing: whether the timing is followed through a burst, as a sample clock that is off
      needs it, or stays the preamble's

    Raises ValueError for other modems and modulations.
    """

    def __init__(
        self,
        modem: str = "ofdm",
        modulation: str | Sequence[str] = "qpsk",
        *,
        soft_bits: bool = False,
        track_timing: bool = True,
    ) -> None:
        _check_modem(modem)
        modes = _modes(modulation)
        distinct = list(dict.fromkeys(modes))
        points = {each: constellation(each) for each in distinct}
        gr.hier_block2.__init__(
            self, "modem_rx", gr.io_signature(0, 0, 0), gr.io_signature(0, 0, 0)
        )
        self.message_port_register_hier_in("bursts")
        self.message_port_register_hier_out("pdus")
        self.message_port_register_hier_out("symbols")
        bpsk = constellation("bpsk")
        signal = ofdm if modem == "ofdm" else single_carrier
        demux = nagi_python.packet_demux(
            constellations=[points[each].base() for each in modes],
            demodulators=[distinct.index(each) for each in modes],
            soft_bits=soft_bits,
            longest=longest_frame(),
            **signal.demux_shape(),
        )
        demodulators: dict[tuple[str, str], gr.basic_block] = {}
        """By the ports of demux before and after them."""
        if modem == "ofdm":
            demodulators["header", "header_symbols"] = ofdm.Demodulator(
                bpsk, ofdm.HEADER_ITEMS, header=True, track_timing=track_timing
            )
        else:
            demodulators["header", "header_symbols"] = single_carrier.demodulator(
                bpsk, header=True, track_timing=track_timing
            )
        for index, each in enumerate(distinct):
            place = str(index or "")
            if modem == "ofdm":
                items = _max_symbols(modem, [each]) // DATA_CARRIERS
                payload = ofdm.Demodulator(
                    points[each], items, header=False, track_timing=track_timing
                )
            else:
                payload = single_carrier.demodulator(
                    points[each], header=False, track_timing=track_timing
                )
            demodulators[f"payload{place}", f"payload_symbols{place}"] = payload
        self.msg_connect(self, "bursts", demux, "bursts")
        for (before, after), demodulator in demodulators.items():
            self.msg_connect(demux, before, demodulator, "samples")
            self.msg_connect(demodulator, "symbols", demux, after)
        self.msg_connect(demux, "pdus", self, "pdus")
        self.msg_connect(demux, "symbols", self, "symbols")
