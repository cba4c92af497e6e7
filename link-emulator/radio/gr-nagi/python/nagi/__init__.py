# SPDX-License-Identifier: Apache-2.0
"""nagi's GNU Radio blocks: packets in and out, link model, framing, modems, channels, probes."""

from .modem import modem_rx, modem_tx
from .nagi_python import (
    channel,
    channel_model,
    framed_bytes,
    framing,
    interference,
    link,
    loss_probe,
    medium_port,
    ofdm_equalizer_tracking,
    packet_deframer,
    packet_demux,
    packet_framer,
    packet_mux,
    packet_port,
    repeatable_fft,
    single_carrier_demod,
    single_carrier_mod,
    snr_evm_probe,
)
from .radio import SimulatedRadio
from .streams import packets_to_stream, stream_to_packets

__all__ = [
    "SimulatedRadio",
    "channel",
    "channel_model",
    "framed_bytes",
    "framing",
    "interference",
    "link",
    "loss_probe",
    "medium_port",
    "modem_rx",
    "modem_tx",
    "ofdm_equalizer_tracking",
    "packet_deframer",
    "packet_demux",
    "packet_framer",
    "packet_mux",
    "packet_port",
    "packets_to_stream",
    "repeatable_fft",
    "single_carrier_demod",
    "single_carrier_mod",
    "snr_evm_probe",
    "stream_to_packets",
]
