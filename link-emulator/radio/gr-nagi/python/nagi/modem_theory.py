# SPDX-License-Identifier: Apache-2.0
"""Computes error rates of ideal receivers, for tests and benchmarks. Needs no GNU Radio."""

import math
from fractions import Fraction

from air_time import BITS_PER_SYMBOL, CODE_TAIL, FRAMING_BYTES

EVENTS = {
    "1/2": (Fraction(1, 2), {10: 11, 12: 38, 14: 193, 16: 1331, 18: 7275}),
    "2/3": (Fraction(2, 3), {6: 0.5, 7: 8, 8: 24, 9: 79, 10: 321, 11: 1217.5, 12: 4587}),
    "3/4": (Fraction(3, 4), {5: 8 / 3, 6: 31 / 3, 7: 160 / 3, 8: 892 / 3, 9: 1504, 10: 23297 / 3}),
}
"""For each code rate: the rate as a number, and the number of error paths by Hamming weight. An
error path leaves the correct path of the trellis at a given step; the number of paths is averaged
over the steps of the puncturing pattern. The paths were counted on the code's trellis."""


def gaussian_tail(x: float) -> float:
    """Return Q(x), the probability that a standard normal variable exceeds x."""
    return 0.5 * math.erfc(x / math.sqrt(2))


def awgn_bit_error_rate(eb_n0_db: float, modulation: str = "qpsk") -> float:
    """Return the bit error rate of a Gray-mapped modulation over AWGN.

    BPSK and QPSK: Q(sqrt(2 Eb/N0)). 8-PSK: an approximation (Proakis, Digital Communications, 4.3),
    which deviates by at most 1 % for rates below 0.01. QAM: K. Cho and D. Yoon, "On the general BER
    expression of one- and two-dimensional amplitude modulations", IEEE Trans. Commun. 50(7), 2002.
    """
    es = BITS_PER_SYMBOL[modulation] * 10 ** (eb_n0_db / 10)
    if modulation == "8psk":
        return 2 / 3 * gaussian_tail(math.sqrt(2 * es) * math.sin(math.pi / 8))
    if modulation == "16qam":
        terms, x = {1: 3 / 4, 3: 1 / 2, 5: -1 / 4}, math.sqrt(es / 5)
    elif modulation == "64qam":
        terms, x = {1: 7 / 12, 3: 6 / 12, 5: -1 / 12, 9: 1 / 12, 13: -1 / 12}, math.sqrt(es / 21)
    else:
        return gaussian_tail(math.sqrt(2 * 10 ** (eb_n0_db / 10)))
    return sum(weight * gaussian_tail(factor * x) for factor, weight in terms.items())


def rayleigh_bit_error_rate(eb_n0_db: float) -> float:
    """Return the mean bit error rate of BPSK and QPSK over flat Rayleigh fading.

    Source: Proakis, Digital Communications, 14.3.
    """
    mean = 10 ** (eb_n0_db / 10)
    return 0.5 * (1 - math.sqrt(mean / (1 + mean)))


def uncoded_packet_error_rate(eb_n0_db: float, modulation: str, packet_bytes: int) -> float:
    """Return the share of uncoded packets with at least one wrong bit, over AWGN."""
    return -math.expm1(8 * packet_bytes * math.log1p(-awgn_bit_error_rate(eb_n0_db, modulation)))


def coded_frame_error_rate(eb_n0_db: float, code_rate: str, steps: int) -> float:
    """Return the union bound of the frame error rate with soft decisions, for BPSK or QPSK in AWGN.

    Args:
        eb_n0_db: Eb/N0 in dB.
        code_rate: A key of EVENTS.
        steps: Number of bits into the encoder: the bits of a frame and of the code's tail.
    """
    rate, events = EVENTS[code_rate]
    es = float(rate) * 10 ** (eb_n0_db / 10)
    error_events = sum(count * gaussian_tail(math.sqrt(2 * d * es)) for d, count in events.items())
    return -math.expm1(-steps * error_events)


def packet_error_rate(eb_n0_db: float, modulation: str, code_rate: str, packet_bytes: int) -> float:
    """Return the share of packets that an ideal receiver loses over AWGN.

    The ideal receiver knows the channel and the timing exactly.
    """
    if code_rate == "none":
        return uncoded_packet_error_rate(eb_n0_db, modulation, packet_bytes)
    steps = 8 * (packet_bytes + FRAMING_BYTES) + CODE_TAIL
    return min(1.0, coded_frame_error_rate(eb_n0_db, code_rate, steps))


def packet_error_threshold_db(
    per: float, modulation: str, code_rate: str, packet_bytes: int
) -> float:
    """Return the Eb/N0 in dB at which an ideal receiver loses the share `per` of packets.

    The search covers 0 to 40 dB. A threshold outside of this range gives the nearer limit.
    """
    low, high = 0.0, 40.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        is_too_low = packet_error_rate(middle, modulation, code_rate, packet_bytes) > per
        low, high = (middle, high) if is_too_low else (low, middle)
    return high
