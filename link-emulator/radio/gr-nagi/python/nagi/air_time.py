# SPDX-License-Identifier: Apache-2.0
"""Computes the air time of packets. The functions are pure and need no GNU Radio.

The modems are built from these constants, so the results hold for the bursts that modems send.

A *packet* is the payload (an IP packet). The framer puts it into a *frame* (header, CRC-32, code).
The modem sends the frame in a *burst*: guard, preamble, PHY header, frame, tail.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import lru_cache

BITS_PER_SYMBOL = {"bpsk": 1, "qpsk": 2, "8psk": 3, "16qam": 4, "64qam": 6}
MODEMS = ("ofdm", "single_carrier")
CODE_RATES = {
    "none": Fraction(1),
    "1/2": Fraction(1, 2),
    "2/3": Fraction(2, 3),
    "3/4": Fraction(3, 4),
}
"""Code rates by name: bits into the encoder, divided by bits out of the encoder."""

MAX_SAMPLE_RATE_HZ = 500_000_000
"""The sample rate of the fastest software-defined radios."""

LONGEST_PACKET = 1530
"""Bytes of the longest packet that the modems take."""

FRAMING_BYTES = 7 + 4
"""Bytes of a frame without its packet: length, sequence number and flags; CRC-32."""

CODE_TAIL = 6
"""Bits that return an encoder of constraint length 7 to its zero state."""


@dataclass(frozen=True)
class Waveform:
    """The fixed parts of a modem's bursts. Lengths are in samples."""

    guard: int
    preamble: int
    header: int
    item: int
    """Samples of an item: an OFDM symbol, or one symbol of the single carrier."""
    item_symbols: int
    """Payload symbols that an item carries."""
    ramp: int
    """Number of samples by which the last symbol's pulse is longer than the symbol."""
    tail: int
    symbol_gain: Fraction
    """Ratio of a symbol's SNR to the mean SNR of the samples."""


FFT_LENGTH = 64
CYCLIC_PREFIX = 16
DATA_CARRIERS = 48
ACTIVE_CARRIERS = 52
SAMPLES_PER_SYMBOL = 2
PREAMBLE_SYMBOLS = 64
PULSE_SPAN = 8
"""Number of symbols by which a single-carrier pulse extends before and after its own symbol."""
HEADER_SYMBOLS = 96
"""Number of BPSK symbols of the PHY header, which sends its 32 bits three times."""

WAVEFORMS = {
    "ofdm": Waveform(
        guard=32,
        preamble=2 * (FFT_LENGTH + CYCLIC_PREFIX),
        header=HEADER_SYMBOLS // DATA_CARRIERS * (FFT_LENGTH + CYCLIC_PREFIX),
        item=FFT_LENGTH + CYCLIC_PREFIX,
        item_symbols=DATA_CARRIERS,
        ramp=0,
        tail=32,
        symbol_gain=Fraction(FFT_LENGTH, ACTIVE_CARRIERS),
    ),
    "single_carrier": Waveform(
        guard=32,
        preamble=PREAMBLE_SYMBOLS * SAMPLES_PER_SYMBOL,
        header=HEADER_SYMBOLS * SAMPLES_PER_SYMBOL,
        item=SAMPLES_PER_SYMBOL,
        item_symbols=1,
        ramp=2 * PULSE_SPAN * SAMPLES_PER_SYMBOL,
        tail=32,
        symbol_gain=Fraction(SAMPLES_PER_SYMBOL),
    ),
}


def _check_names(modem: str, modulation: str, code_rate: str = "none") -> None:
    for name, value, choices in (
        ("modem", modem, MODEMS),
        ("modulation", modulation, BITS_PER_SYMBOL),
        ("code_rate", code_rate, CODE_RATES),
    ):
        if value not in choices:
            raise ValueError(f'{name} is "{value}", not one of {", ".join(choices)}')


def count_frame_bytes(packet_bytes: int, code_rate: str) -> int:
    """Return the size in bytes of the frame that carries a packet.

    Raises:
        ValueError: The code rate is unknown.
    """
    uncoded_bytes = packet_bytes + FRAMING_BYTES
    if code_rate not in CODE_RATES:
        raise ValueError(f'code_rate is "{code_rate}", not one of {", ".join(CODE_RATES)}')
    if code_rate == "none":
        return uncoded_bytes
    return math.ceil(math.ceil((8 * uncoded_bytes + CODE_TAIL) / CODE_RATES[code_rate]) / 8)


def count_longest_frame_bytes(code_rate: str = "1/2") -> int:
    """Return the size in bytes of the longest frame that a modem must carry."""
    return count_frame_bytes(LONGEST_PACKET, code_rate)


def count_frame_samples(modem: str, modulation: str, frame_bytes: int) -> int:
    """Return the number of samples in the burst that carries a frame.

    Raises:
        ValueError: A name is unknown, or the frame is empty.
    """
    _check_names(modem, modulation)
    if frame_bytes < 1:
        raise ValueError(f"frame_bytes is {frame_bytes}; a frame has at least one byte")
    w = WAVEFORMS[modem]
    symbols = -(-8 * frame_bytes // BITS_PER_SYMBOL[modulation])
    items = -(-symbols // w.item_symbols)
    return w.guard + w.preamble + w.header + items * w.item + w.ramp + w.tail


def count_burst_samples(modem: str, modulation: str, code_rate: str, payload_bytes: int) -> int:
    """Return the number of samples in the burst that carries a packet.

    Raises:
        ValueError: A name is unknown.
    """
    _check_names(modem, modulation, code_rate)
    return count_frame_samples(modem, modulation, count_frame_bytes(payload_bytes, code_rate))


def compute_rate_bps(modem: str, modulation: str, sample_rate_hz: int, code_rate: str) -> int:
    """Return the rate of packet bits per second while a burst's frame is sent, rounded down.

    Raises:
        ValueError: A name is unknown, or the sample rate is not in 1 to MAX_SAMPLE_RATE_HZ.
    """
    _check_names(modem, modulation, code_rate)
    if sample_rate_hz < 1:
        raise ValueError(f"sample_rate_hz is {sample_rate_hz}; it must be positive")
    if sample_rate_hz > MAX_SAMPLE_RATE_HZ:
        raise ValueError(f"no radio has more than {MAX_SAMPLE_RATE_HZ / 1e6:g} Msample/s")
    w = WAVEFORMS[modem]
    coded = Fraction(w.item_symbols * BITS_PER_SYMBOL[modulation], w.item) * sample_rate_hz
    return math.floor(coded * CODE_RATES[code_rate])


@lru_cache(maxsize=256)
def compute_overhead_bytes(modem: str, modulation: str, sample_rate_hz: int, code_rate: str) -> int:
    """Return the overhead of a burst, converted to bytes at the modem's packet bit rate.

    The overhead is the smallest integer with which no packet of 1 to LONGEST_PACKET
    bytes takes longer than (packet bytes + overhead) x 8 / rate.

    Raises:
        ValueError: A name is unknown, the sample rate is out of range, or the modem's rate is below
            1 bit/s.
    """
    rate = compute_rate_bps(modem, modulation, sample_rate_hz, code_rate)
    if rate == 0:
        raise ValueError(f"sample_rate_hz is {sample_rate_hz}; it carries less than 1 bit/s")
    return max(
        -(-count_burst_samples(modem, modulation, code_rate, size) * rate // (8 * sample_rate_hz))
        - size
        for size in range(1, LONGEST_PACKET + 1)
    )


def compute_air_time_ns(
    modem: str, modulation: str, sample_rate_hz: int, code_rate: str, payload_bytes: int
) -> int:
    """Return the transmission time of a packet in ns on a link with the modem's rate and overhead.

    The time is rounded up.

    Raises:
        ValueError: See compute_overhead_bytes.
    """
    size = payload_bytes + compute_overhead_bytes(modem, modulation, sample_rate_hz, code_rate)
    return -(-size * 8 * 10**9 // compute_rate_bps(modem, modulation, sample_rate_hz, code_rate))


def compute_symbol_snr_db(modem: str, snr_db: float) -> float:
    """Return Es/N0 in dB of a payload symbol, given the mean SNR of the samples in dB."""
    return snr_db + 10 * math.log10(WAVEFORMS[modem].symbol_gain)


TRANSCEIVER_VERSION = 4
"""Version of transmitter and receiver; every change that affects packet error rates increments it.

A table of `nagi-sdr calibrate` is valid for one version."""


def compute_modem_digest(modem: str, modulation: str, code_rate: str) -> str:
    """Return the hexadecimal SHA-256 of all properties that affect a modem's packet error rate."""
    _check_names(modem, modulation, code_rate)
    properties = {
        "transceiver": TRANSCEIVER_VERSION,
        "modem": modem,
        "modulation": modulation,
        "code_rate": code_rate,
        "bursts": {
            str(size): count_burst_samples(modem, modulation, code_rate, size)
            for size in (1, 100, LONGEST_PACKET)
        },
        "waveform": {key: str(value) for key, value in asdict(WAVEFORMS[modem]).items()},
    }
    return hashlib.sha256(json.dumps(properties, sort_keys=True).encode()).hexdigest()
