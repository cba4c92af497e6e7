# SPDX-License-Identifier: Apache-2.0
"""For tests and benchmarks: what an ideal receiver would get wrong. Needs no GNU Radio."""

import math
from fractions import Fraction

from air_time import BITS_PER_SYMBOL, CODE_TAIL, FRAMING_BYTES

EVENTS = {
    "1/2": (Fraction(1, 2), {10: 11, 12: 38, 14: 193, 16: 1331, 18: 7275}),
    "2/3": (Fraction(2, 3), {6: 0.5, 7: 8, 8: 24, 9: 79, 10: 321, 11: 1217.5, 12: 4587}),
    "3/4": (Fraction(3, 4), {5: 8 / 3, 6: 31 / 3, 7: 160 / 3, 8: 892 / 3, 9: 1504, 10: 23297 / 3}),
}
"""Code rate -> the rate, and paths by their weight that leave the right one at a step, mean over
the puncturing's steps: counted on the code's trellis."""


def gaussian_tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2))


def theory_awgn(eb_n0_db: float, modulation: str = "qpsk") -> float:
    """Bit error rate, Gray-mapped. BPSK and QPSK: Q(sqrt(2 Eb/N0)). 8-PSK, to 1 % below a rate of
    0.01: Proakis, Digital Communications, 4.3. QAM: K. Cho and D. Yoon, "On the general BER
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
    return sum(share * gaussian_tail(steps * x) for steps, share in terms.items())


def theory_rayleigh(eb_n0_db: float) -> float:
    """That of BPSK and QPSK averaged over flat Rayleigh fading (Proakis, Digital Communications,
    14.3)."""
    mean = 10 ** (eb_n0_db / 10)
    return 0.5 * (1 - math.sqrt(mean / (1 + mean)))


def theory_packets(eb_n0_db: float, modulation: str, packet_bytes: int) -> float:
    """Share of packets without a code in which a bit is wrong, over AWGN."""
    return -math.expm1(8 * packet_bytes * math.log1p(-theory_awgn(eb_n0_db, modulation)))


def theory_code(eb_n0_db: float, code_rate: str, steps: int) -> float:
    """Share of frames that an ideal decoder of soft decisions loses over AWGN, in BPSK or QPSK: the
    union bound. `steps`: bits of a frame, with those of the code's tail."""
    rate, events = EVENTS[code_rate]
    es = float(rate) * 10 ** (eb_n0_db / 10)
    wrong = sum(count * gaussian_tail(math.sqrt(2 * d * es)) for d, count in events.items())
    return -math.expm1(-steps * wrong)


def theory_per(eb_n0_db: float, modulation: str, code_rate: str, packet_bytes: int) -> float:
    """Share of packets that an ideal receiver loses over AWGN, which knows channel and timing."""
    if code_rate == "none":
        return theory_packets(eb_n0_db, modulation, packet_bytes)
    steps = 8 * (packet_bytes + FRAMING_BYTES) + CODE_TAIL
    return min(1.0, theory_code(eb_n0_db, code_rate, steps))


def theory_threshold_db(per: float, modulation: str, code_rate: str, packet_bytes: int) -> float:
    """Eb/N0 at which an ideal receiver loses that share of packets."""
    low, high = 0.0, 40.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        is_lost = theory_per(middle, modulation, code_rate, packet_bytes) > per
        low, high = (middle, high) if is_lost else (low, middle)
    return high
