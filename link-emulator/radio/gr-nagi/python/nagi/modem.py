# SPDX-License-Identifier: Apache-2.0
"""The packet modems: modulate bytes into a burst of samples, and demodulate bursts.

Transmitter and receiver are hierarchical blocks with message ports. One packet is one burst. The
outcome of a burst depends only on its samples.
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
    count_longest_frame_bytes,
)

_LEVELS = {
    "qpsk": (-1, 1),
    "16qam": (-3, -1, 3, 1),
    "64qam": (-7, -5, -1, -3, 7, 5, 1, 3),
}
"""Amplitude of an axis for each value of its bits, a Gray code: IEEE 802.11-2020, 17.3.5.8."""


def constellation(modulation: str) -> digital.constellation:
    """Return a Gray-mapped constellation of mean power 1.

    QPSK and QAM are built here as rectangular constellations, because gr-digital's QPSK has another
    mean power, and its 16-QAM is not Gray-mapped.

    Raises:
        ValueError: No modem has the modulation.
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
"""The number of modes that the PHY header can represent."""


def _check_modem(modem: str) -> None:
    if modem not in MODEMS:
        raise ValueError(f'modem is "{modem}", not one of {", ".join(MODEMS)}')


def _list_modulations(modulation: str | Sequence[str]) -> list[str]:
    """Return the modulation of each mode."""
    modes = [modulation] if isinstance(modulation, str) else list(modulation)
    if not 1 <= len(modes) <= MAX_MODES:
        raise ValueError(f"{len(modes)} modulations; a modem has 1 to {MAX_MODES}, one per mode")
    return modes


def _count_max_symbols(modem: str, modulations: Sequence[str]) -> int:
    """Return the number of symbols of the longest packet with its header."""
    bits = min(BITS_PER_SYMBOL[modulation] for modulation in modulations)
    symbols = -(-8 * count_longest_frame_bytes() // bits)
    block = WAVEFORMS[modem].item_symbols
    return (-(-symbols // block) * block) + HEADER_SYMBOLS


class modem_tx(gr.hier_block2):  # noqa: N801  as all of GNU Radio's blocks
    """Modulates packets into bursts.

    Message ports: in `pdus` (bytes, with number and begin_ns), out `bursts` (complex samples of
    mean power 1, with the packet's dictionary). A burst has `air_time.count_frame_samples` samples.
    A packet longer than `air_time.count_longest_frame_bytes()` bytes becomes an empty burst and is
    reported in the log.

    Parameters:
    - modem: "ofdm" or "single_carrier"
    - modulation: "bpsk", "qpsk", "8psk", "16qam" or "64qam"; or a list of 1 to 16 of these, one per
      mode. With a list, each PDU needs `mode`, an index into the list, in its dictionary. The
      receiver needs the same value.

    Raises ValueError for other values.
    """

    def __init__(self, modem: str = "ofdm", modulation: str | Sequence[str] = "qpsk") -> None:
        _check_modem(modem)
        modes = _list_modulations(modulation)
        constellations = [constellation(modulation) for modulation in modes]
        gr.hier_block2.__init__(
            self, "modem_tx", gr.io_signature(0, 0, 0), gr.io_signature(0, 0, 0)
        )
        self.message_port_register_hier_in("pdus")
        self.message_port_register_hier_out("bursts")
        waveform = WAVEFORMS[modem]
        is_ofdm = modem == "ofdm"
        mux = nagi_python.packet_mux(
            constellations=[points.base() for points in constellations],
            header_symbols=HEADER_SYMBOLS,
            block=waveform.item_symbols,
            longest=count_longest_frame_bytes(),
            guard=waveform.guard,
            tail=waveform.tail,
        )
        modulator: gr.basic_block
        if is_ofdm:
            modulator = ofdm.Modulator(_count_max_symbols(modem, modes))
        else:
            modulator = single_carrier.make_modulator()
        self.msg_connect(self, "pdus", mux, "pdus")
        self.msg_connect(mux, "symbols", modulator, "symbols")
        self.msg_connect(modulator, "samples", mux, "samples")
        self.msg_connect(mux, "bursts", self, "bursts")


class modem_rx(gr.hier_block2):  # noqa: N801
    """Demodulates bursts into packets, or reports why a burst cannot be received.

    Message ports: in `bursts` (complex samples, with number and begin_ns); out `pdus`, one for each
    burst, in order, with the burst's dictionary. The PDU of a received packet has bytes, mode and
    snr_db; the PDU of a lost packet has no bytes, and the outcome. Out
    `symbols`, the equalized symbols of each burst whose header was received, for display.

    Parameters:
    - modem, modulation: the values of the transmitter
    - soft_bits: True if PDUs shall also have soft decisions, for packet_deframer
    - track_timing: True if the receiver shall track the timing during a burst, which is necessary
      if the sample clocks differ. False keeps the timing of the preamble.

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
        modes = _list_modulations(modulation)
        distinct = list(dict.fromkeys(modes))
        points = {name: constellation(name) for name in distinct}
        gr.hier_block2.__init__(
            self, "modem_rx", gr.io_signature(0, 0, 0), gr.io_signature(0, 0, 0)
        )
        self.message_port_register_hier_in("bursts")
        self.message_port_register_hier_out("pdus")
        self.message_port_register_hier_out("symbols")
        bpsk = constellation("bpsk")
        signal = ofdm if modem == "ofdm" else single_carrier
        demux = nagi_python.packet_demux(
            constellations=[points[name].base() for name in modes],
            demodulators=[distinct.index(name) for name in modes],
            soft_bits=soft_bits,
            longest=count_longest_frame_bytes(),
            **signal.make_demux_arguments(),
        )
        demodulators: dict[tuple[str, str], gr.basic_block] = {}
        """Demodulators by the ports of demux to which they are connected: (output, input)."""
        if modem == "ofdm":
            demodulators["header", "header_symbols"] = ofdm.Demodulator(
                bpsk, ofdm.HEADER_ITEMS, header=True, track_timing=track_timing
            )
        else:
            demodulators["header", "header_symbols"] = single_carrier.make_demodulator(
                bpsk, header=True, track_timing=track_timing
            )
        for index, name in enumerate(distinct):
            suffix = str(index or "")
            if modem == "ofdm":
                items = _count_max_symbols(modem, [name]) // DATA_CARRIERS
                payload = ofdm.Demodulator(
                    points[name], items, header=False, track_timing=track_timing
                )
            else:
                payload = single_carrier.make_demodulator(
                    points[name], header=False, track_timing=track_timing
                )
            demodulators[f"payload{suffix}", f"payload_symbols{suffix}"] = payload
        self.msg_connect(self, "bursts", demux, "bursts")
        for (output_port, input_port), demodulator in demodulators.items():
            self.msg_connect(demux, output_port, demodulator, "samples")
            self.msg_connect(demodulator, "symbols", demux, input_port)
        self.msg_connect(demux, "pdus", self, "pdus")
        self.msg_connect(demux, "symbols", self, "symbols")
