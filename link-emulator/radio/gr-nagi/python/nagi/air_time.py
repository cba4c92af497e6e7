# SPDX-License-Identifier: Apache-2.0
"""How long a packet is on the air: pure functions, without GNU Radio.

The modems are built from the same numbers, so what is said here is what they send.

A *packet* is what is to be carried (an IP packet), a *frame* what the framer makes of it (header,
CRC-32, code), a *burst* what the modem makes of that: guard, preamble, PHY header, frame, tail.
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
"""Bits in over bits out."""

MAX_SAMPLE_RATE_HZ = 500_000_000
"""As of the fastest software-defined radios."""

LONGEST_PACKET = 1530
"""Bytes of the longest packet that the modems take."""

FRAMING_BYTES = 7 + 4
"""Length, sequence and flags; CRC-32."""

CODE_TAIL = 6
"""Bits that take an encoder of constraint length 7 back to zero."""


@dataclass(frozen=True)
class Waveform:
    """The fixed parts of a modem's bursts. Lengths are in samples."""

    guard: int
    preamble: int
    header: int
    item: int
    """Samples in which `item_symbols` symbols are sent."""
    item_symbols: int
    ramp: int
    """By which the last symbol's pulse is longer than the symbol."""
    tail: int
    symbol_gain: Fraction
    """SNR of a symbol over the mean SNR of the samples."""


FFT_LENGTH = 64
CYCLIC_PREFIX = 16
DATA_CARRIERS = 48
ACTIVE_CARRIERS = 52
SAMPLES_PER_SYMBOL = 2
PREAMBLE_SYMBOLS = 64
PULSE_SPAN = 8
"""Symbols to either side of its own over which a single-carrier pulse extends."""
HEADER_SYMBOLS = 96
"""Of the PHY header: its 32 bits three times, in BPSK."""

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


def _check(modem: str, modulation: str, code_rate: str = "none") -> None:
    for name, value, known in (
        ("modem", modem, MODEMS),
        ("modulation", modulation, BITS_PER_SYMBOL),
        ("code_rate", code_rate, CODE_RATES),
    ):
        if value not in known:
            raise ValueError(f'{name} is "{value}", not one of {", ".join(known)}')


def framed_bytes(packet_bytes: int, code_rate: str) -> int:
    """Bytes of the frame that carries a packet."""
    plain = packet_bytes + FRAMING_BYTES
    if code_rate not in CODE_RATES:
        raise ValueError(f'code_rate is "{code_rate}", not one of {", ".join(CODE_RATES)}')
    if code_rate == "none":
        return plain
    return math.ceil(math.ceil((8 * plain + CODE_TAIL) / CODE_RATES[code_rate]) / 8)


def longest_frame(code_rate: str = "1/2") -> int:
    """Bytes of the longest frame a modem must carry."""
    return framed_bytes(LONGEST_PACKET, code_rate)


def frame_samples(modem: str, modulation: str, frame_bytes: int) -> int:
    """Samples of the burst that carries a frame of so many bytes."""
    _check(modem, modulation)
    if frame_bytes < 1:
        raise ValueError(f"a frame of {frame_bytes} bytes; it must have at least one")
    w = WAVEFORMS[modem]
    symbols = -(-8 * frame_bytes // BITS_PER_SYMBOL[modulation])
    items = -(-symbols // w.item_symbols)
    return w.guard + w.preamble + w.header + items * w.item + w.ramp + w.tail


def burst_samples(modem: str, modulation: str, code_rate: str, payload_bytes: int) -> int:
    """Samples of the burst that carries a packet of so many bytes."""
    _check(modem, modulation, code_rate)
    return frame_samples(modem, modulation, framed_bytes(payload_bytes, code_rate))


def rate_bps(modem: str, modulation: str, sample_rate_hz: int, code_rate: str) -> int:
    """What the body of a burst carries, in packet bits a second, rounded down."""
    _check(modem, modulation, code_rate)
    if sample_rate_hz < 1:
        raise ValueError(f"sample_rate_hz is {sample_rate_hz}; it must be positive")
    if sample_rate_hz > MAX_SAMPLE_RATE_HZ:
        raise ValueError(f"no radio has more than {MAX_SAMPLE_RATE_HZ / 1e6:g} Msample/s")
    w = WAVEFORMS[modem]
    coded = Fraction(w.item_symbols * BITS_PER_SYMBOL[modulation], w.item) * sample_rate_hz
    return math.floor(coded * CODE_RATES[code_rate])


@lru_cache(maxsize=256)
def overhead_bytes(modem: str, modulation: str, sample_rate_hz: int, code_rate: str) -> int:
    """What a burst carries beside its packet, as bytes at `rate_bps`, rounded up.

    The least whole number with which no burst of 1 to LONGEST_PACKET bytes takes longer than
    (packet bytes + overhead) x 8 / rate.
    """
    rate = rate_bps(modem, modulation, sample_rate_hz, code_rate)
    if rate == 0:
        raise ValueError(f"sample_rate_hz is {sample_rate_hz}; it carries less than 1 bit/s")
    return max(
        -(-burst_samples(modem, modulation, code_rate, size) * rate // (8 * sample_rate_hz)) - size
        for size in range(1, LONGEST_PACKET + 1)
    )


def air_time_ns(
    modem: str, modulation: str, sample_rate_hz: int, code_rate: str, payload_bytes: int
) -> int:
    """Nanoseconds that a link of that rate and overhead takes over a packet, rounded up."""
    size = payload_bytes + overhead_bytes(modem, modulation, sample_rate_hz, code_rate)
    return -(-size * 8 * 10**9 // rate_bps(modem, modulation, sample_rate_hz, code_rate))


def symbol_snr_db(modem: str, snr_db: float) -> float:
    """Es/N0 of a payload symbol where the mean power of the samples over the noise is `snr_db`."""
    return snr_db + 10 * math.log10(WAVEFORMS[modem].symbol_gain)


TRANSCEIVER_VERSION = 4
"""Counts changes of transmitter and receiver that change packet error rates: tables of
`nagi-sdr calibrate` hold for one."""


def modem_digest(modem: str, modulation: str, code_rate: str) -> str:
    """SHA-256, hexadecimal, of all that decides which packets a modem loses at an SNR."""
    _check(modem, modulation, code_rate)
    decides = {
        "transceiver": TRANSCEIVER_VERSION,
        "modem": modem,
        "modulation": modulation,
        "code_rate": code_rate,
        "bursts": {
            str(size): burst_samples(modem, modulation, code_rate, size)
            for size in (1, 100, LONGEST_PACKET)
        },
        "waveform": {key: str(value) for key, value in asdict(WAVEFORMS[modem]).items()},
    }
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
