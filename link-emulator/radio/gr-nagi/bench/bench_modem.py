#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the modems' receivers with theory.

    bench_modem.py measure modem.json               under the Python that has GNU Radio
    bench_modem.py report modem.json [figure.svg]   under a Python with matplotlib for a figure

All measurements are seeded and use the simulated channel:
- bit error rates with known timing over AWGN and over flat Rayleigh fading, compared with theory;
- packet error rates of the whole receiver, for packets of 1,000 bytes. Without FEC, the rates are
  compared with those of an ideal receiver, which knows the channel and the timing. With each code
  rate, in QPSK with soft decisions, the whole receiver and the decoder alone are compared with the
  union bound of an ideal decoder. The *implementation loss* is the additional SNR for a packet
  error rate of 10 %;
- shares of bursts that are not detected, and of wrong headers.

SNRs are Eb/N0 of payload bits. The energy of prefix, pilots, preamble and header does not count as
a loss of the receiver; it is printed separately.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

MODULE = Path(__file__).resolve().parent.parent / "python" / "nagi"
sys.path.insert(0, str(MODULE))  # air_time, modem_theory and flows
from air_time import BITS_PER_SYMBOL as BITS  # noqa: E402
from modem_theory import (  # noqa: E402
    EVENTS,
    awgn_bit_error_rate,
    packet_error_rate,
    packet_error_threshold_db,
    rayleigh_bit_error_rate,
)

PACKET = 1000
TARGET = 0.1
"""Packet error rate at which implementation losses are determined."""
OFFSETS_DB = (-0.6, -0.2, 0.2, 0.6, 1.0)
CODED_OFFSETS_DB = (0.0, 0.4, 0.8, 1.2, 1.6, 2.0)
DECODER_OFFSETS_DB = (-0.4, 0.0, 0.4, 0.8)
"""Offsets from the ideal receiver's Eb/N0. With a code, bursts have more noise at an equal error
rate, so the whole receiver loses more."""
CODED = "qpsk"
MODEMS = ("ofdm", "single_carrier")
RECEIVERS = [*((modulation, "none") for modulation in BITS), *((CODED, rate) for rate in EVENTS)]
NAMES = {
    "bpsk": "BPSK", "qpsk": "QPSK", "8psk": "8-PSK", "16qam": "16-QAM", "64qam": "64-QAM",
    "ofdm": "OFDM", "single_carrier": "single carrier", "awgn": "AWGN", "rayleigh": "Rayleigh",
}  # fmt: skip
SCHEMA_VERSION = 2


def ideal_packet_error_rate(modulation: str, code_rate: str, eb_n0_db: float) -> float:
    return packet_error_rate(eb_n0_db, modulation, code_rate, PACKET)


def ideal_threshold_db(modulation: str, code_rate: str) -> float:
    """Return the Eb/N0 in dB at which an ideal receiver has the packet error rate TARGET."""
    return packet_error_threshold_db(TARGET, modulation, code_rate, PACKET)


def find_crossing_db(points: list[dict[str, Any]]) -> float:
    """Return the Eb/N0 in dB at which measured packet error rates cross TARGET.

    `points` must be in ascending order of Eb/N0. The rates are interpolated linearly in
    log(-log(1 - PER)). This transform is nearly linear over dB, because a packet is lost if one of
    many independent bits is wrong.

    Raises:
        ValueError: The rates do not cross TARGET.
    """

    def transform(rate: float, count: int) -> float:
        clipped = min(max(rate, 0.5 / count), 1 - 0.5 / count)
        return math.log(-math.log1p(-clipped))

    target = math.log(-math.log1p(-TARGET))
    for before, after in pairwise(points):
        first = transform(before["per"], before["packets"])
        second = transform(after["per"], after["packets"])
        if first >= target > second:
            share = (first - target) / (first - second)
            return float(before["eb_n0_db"] + share * (after["eb_n0_db"] - before["eb_n0_db"]))
    raise ValueError("the measured packet error rates do not cross the target; give more --packets")


def measure_receiver(
    modem: str, modulation: str, code_rate: str, count: int
) -> list[dict[str, Any]]:
    """Measure packet error rates of the whole receiver around the ideal receiver's threshold."""
    import numpy as np
    from flows import run
    from gnuradio import nagi
    from gnuradio.nagi import air_time

    bits = BITS[modulation] * (1.0 if code_rate == "none" else float(EVENTS[code_rate][0]))
    is_coded = code_rate != "none"
    points = []
    for index, offset in enumerate(CODED_OFFSETS_DB if is_coded else OFFSETS_DB):
        eb_n0_db = ideal_threshold_db(modulation, code_rate) + offset
        sent = [np.random.default_rng([1, index, i]).bytes(PACKET) for i in range(count)]
        snr_db = eb_n0_db + 10 * math.log10(bits) - air_time.compute_symbol_snr_db(modem, 0.0)
        chain = [
            nagi.modem_tx(modem, modulation),
            nagi.channel(100 + index, 0, 1e6, snr_db=snr_db),
            nagi.modem_rx(modem, modulation, soft_bits=is_coded),
        ]
        if is_coded:
            framer, deframer = nagi.packet_framer(code_rate), nagi.packet_deframer(code_rate)
            chain = [("packets", framer, "frames"), *chain, ("frames", deframer, "packets")]
        outcomes = run(chain, sent)
        causes = [meta.get("outcome", 0) for meta, _ in outcomes]
        lost = sum(data != packet for (_, data), packet in zip(outcomes, sent, strict=True))
        points.append(
            {
                "eb_n0_db": eb_n0_db,
                "packets": count,
                "per": lost / count,
                "ideal_per": ideal_packet_error_rate(modulation, code_rate, eb_n0_db),
                "not_detected": causes.count(1),
                "header_errors": causes.count(2),
            }
        )
    return points


def measure_decoder(code_rate: str, count: int) -> list[dict[str, Any]]:
    """Measure the decoder alone, with noisy BPSK symbols of known timing and channel."""
    import numpy as np
    from gnuradio import nagi

    rng = np.random.default_rng(4)
    framing = nagi.framing(code_rate)
    points = []
    for offset in DECODER_OFFSETS_DB:
        eb_n0_db = ideal_threshold_db(CODED, code_rate) + offset
        es = float(EVENTS[code_rate][0]) * 10 ** (eb_n0_db / 10)
        lost = 0
        for number in range(count):
            packet = rng.bytes(PACKET)
            sent = np.unpackbits(np.frombuffer(framing.frame(number, packet), np.uint8))
            received = 2.0 * sent - 1 + rng.normal(size=sent.size) / math.sqrt(2 * es)
            lost += framing.deframe_soft(received.tolist()) != (number, packet)
        ideal = ideal_packet_error_rate(CODED, code_rate, eb_n0_db)
        points.append(
            {"eb_n0_db": eb_n0_db, "packets": count, "per": lost / count, "ideal_per": ideal}
        )
    return points


def measure_detection(modem: str, count: int) -> list[dict[str, Any]]:
    """Measure the numbers of undetected bursts and of wrong headers over SNR."""
    import numpy as np
    from flows import run
    from gnuradio import nagi
    from gnuradio.nagi import air_time

    sent = [np.random.default_rng([2, i]).bytes(40) for i in range(count)]
    points = []
    for snr_db in range(-4, 7, 2):
        chain = [
            nagi.modem_tx(modem, "bpsk"),
            nagi.channel(200 + snr_db, 0, 1e6, snr_db=float(snr_db)),
            nagi.modem_rx(modem, "bpsk"),
        ]
        causes = [meta.get("outcome", 0) for meta, _ in run(chain, sent)]
        points.append(
            {
                "snr_db": snr_db,
                "es_n0_db": air_time.compute_symbol_snr_db(modem, snr_db),
                "packets": count,
                "not_detected": causes.count(1),
                "header_errors": causes.count(2),
            }
        )
    return points


def list_awgn_eb_n0_db(modulation: str) -> list[float]:
    """List the Eb/N0 in dB at which bit error rates are measured; the rates are 0.1 to 10^-4."""
    first = {"bpsk": 0, "qpsk": 0, "8psk": 2, "16qam": 2, "64qam": 5}[modulation]
    return [first + 2.0 * index for index in range(5)]


def measure_known_timing(modem: str, modulation: str) -> dict[str, list[dict[str, float]]]:
    """Measure bit error rates with known timing over AWGN and Rayleigh fading."""
    import numpy as np
    import qa_modem_theory as theory
    from flows import transmit
    from gnuradio import nagi

    rng = np.random.default_rng(3)
    bursts = transmit(modem, modulation, [rng.bytes(1500) for _ in range(80)])
    symbols = np.concatenate([theory.SYMBOLS[modem](burst) for burst in bursts])
    bits = theory.decide(modulation, symbols)
    awgn = []
    for index, eb_n0_db in enumerate(list_awgn_eb_n0_db(modulation)):
        channel = nagi.channel_model(
            index, 1, 1e6, snr_db=theory.snr_db_of(modem, modulation, eb_n0_db)
        )
        channel_output = [
            np.frombuffer(channel.apply(number, 0, burst.tobytes()), np.complex64)
            for number, burst in enumerate(bursts)
        ]
        received = np.concatenate([theory.SYMBOLS[modem](burst) for burst in channel_output])
        wrong = int(np.sum(bits != theory.decide(modulation, received)))
        awgn.append(
            {
                "eb_n0_db": eb_n0_db,
                "ber": wrong / bits.size,
                "errors": wrong,
                "theory": awgn_bit_error_rate(eb_n0_db, modulation),
            }
        )
    if BITS[modulation] > 2:  # modem_theory has no formula for other modulations over fading
        return {"awgn": awgn, "rayleigh": []}
    fading = nagi.channel_model(7, 1, 1e6, fading="rayleigh", doppler_hz=100.0)
    gains = np.array([fading.gain(0, 0.1234567 * i) for i in range(len(symbols))])
    noise = rng.normal(size=len(symbols)) + 1j * rng.normal(size=len(symbols))
    rayleigh = []
    for eb_n0_db in (0.0, 10.0, 20.0, 30.0):
        es = 10 ** (eb_n0_db / 10) * BITS[modulation]
        received_symbols = symbols + noise / math.sqrt(2 * es) / gains
        wrong = int(np.sum(bits != theory.decide(modulation, received_symbols)))
        rayleigh.append(
            {
                "eb_n0_db": eb_n0_db,
                "ber": wrong / bits.size,
                "errors": wrong,
                "theory": rayleigh_bit_error_rate(eb_n0_db),
            }
        )
    return {"awgn": awgn, "rayleigh": rayleigh}


def measure(path: Path, count: int) -> None:
    """Measure everything with `count` packets per SNR, and write the results as JSON."""
    from gnuradio.nagi import air_time

    results: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "packet_bytes": PACKET}
    results["receiver"] = []
    for modem in MODEMS:
        w = air_time.WAVEFORMS[modem]
        for modulation, code_rate in RECEIVERS:
            points = measure_receiver(modem, modulation, code_rate, count)
            frame = PACKET if code_rate == "none" else air_time.count_frame_bytes(PACKET, code_rate)
            samples = air_time.count_frame_samples(modem, modulation, frame) - w.guard - w.tail
            symbols = 8 * frame / BITS[modulation]
            energy = samples / (symbols * float(w.symbol_gain))
            ideal_db = ideal_threshold_db(modulation, code_rate)
            results["receiver"].append(
                {
                    "modem": modem,
                    "modulation": modulation,
                    "code_rate": code_rate,
                    "ideal_db": ideal_db,
                    "loss_db": find_crossing_db(points) - ideal_db,
                    "overhead_db": 10 * math.log10(energy),
                    "points": points,
                }
            )
    results["decoder"] = [
        {
            "code_rate": code_rate,
            "loss_db": find_crossing_db(points) - ideal_threshold_db(CODED, code_rate),
            "points": points,
        }
        for code_rate in EVENTS
        for points in [measure_decoder(code_rate, count)]
    ]
    results["detection"] = [
        {"modem": modem, "points": measure_detection(modem, count)} for modem in MODEMS
    ]
    results["known_timing"] = [
        {"modem": modem, "modulation": modulation, **measure_known_timing(modem, modulation)}
        for modem in MODEMS
        for modulation in BITS
    ]
    path.write_text(json.dumps(results, indent=1) + "\n")


def print_report(results: dict[str, Any]) -> None:
    print(f"Whole receiver, {results['packet_bytes']} bytes, AWGN; Eb/N0 for 10 % loss")
    print(
        f"{'modem':16}{'modulation':12}{'code':6}{'ideal dB':>9}{'loss dB':>9}{'overhead dB':>13}"
    )
    for row in results["receiver"]:
        print(
            f"{row['modem']:16}{row['modulation']:12}{row['code_rate']:6}{row['ideal_db']:9.2f}"
            f"{row['loss_db']:9.2f}{row['overhead_db']:13.2f}"
        )
    print("\nDecoder alone, known timing and channel; loss dB")
    for row in results["decoder"]:
        print(f"{row['code_rate']:6}{row['loss_db']:6.2f}")
    print("\nBPSK bursts of 40 bytes: share not detected, share of headers wrong")
    for row in results["detection"]:
        for point in row["points"]:
            n = point["packets"]
            print(
                f"{row['modem']:16}SNR {point['snr_db']:3} dB{point['not_detected'] / n:10.4f}"
                f"{point['header_errors'] / n:10.4f}"
            )
    print("\nBit error rate with known timing, over theory")
    for row in results["known_timing"]:
        for name in ("awgn", "rayleigh"):
            cells = "  ".join(
                f"{point['eb_n0_db']:.0f} dB {point['ber']:.2e}/{point['theory']:.2e}"
                for point in row[name]
            )
            if cells:
                print(f"{row['modem']:16}{row['modulation']:6}{name:10}{cells}")


MARKERS = {"ofdm": "o", "single_carrier": "x"}


def draw(results: dict[str, Any], path: Path) -> None:
    """Draw the results into a PNG or SVG file."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "nagi"  # equal results give equal files
    figure, (bits, plain, coded) = plt.subplots(1, 3, figsize=(13, 5.5), layout="constrained")
    below: Any = {
        "fontsize": "small", "ncols": 3, "loc": "upper center", "bbox_to_anchor": (0.5, -0.13),
    }  # fmt: skip
    colours = {name: f"C{index}" for index, name in enumerate((*BITS, *EVENTS))}
    for row in results["known_timing"]:
        colour = colours[row["modulation"]]
        for name, style in (("awgn", "-"), ("rayleigh", "--")):
            points = [point for point in row[name] if point["errors"]]
            x = [point["eb_n0_db"] for point in points]
            marker = MARKERS[row["modem"]]
            bits.semilogy(
                x, [point["ber"] for point in points], marker, color=colour, ms=5, mfc="none"
            )
            if row["modem"] == MODEMS[0] and points:
                axis = [x[0] + 0.1 * i for i in range(round(10 * (x[-1] - x[0])) + 1)]
                theory = [
                    rayleigh_bit_error_rate(value)
                    if name == "rayleigh"
                    else awgn_bit_error_rate(value, row["modulation"])
                    for value in axis
                ]
                bits.semilogy(axis, theory, style, color=colour, lw=1)
    bits.plot([], [], "k-", lw=1, label="theory, AWGN")
    bits.plot([], [], "k--", lw=1, label="theory, Rayleigh")
    bits.set(xlabel="Eb/N0 (dB)", ylabel="bit error rate, known timing", ylim=(1e-5, 0.5))
    bits.set_title("Demodulation")
    for modulation in BITS:
        bits.plot([], [], "s", color=colours[modulation], ms=5, label=NAMES[modulation])
    bits.legend(**below)
    for axes, is_coded, title in (
        (plain, False, "Whole receiver, no FEC"),
        (coded, True, "QPSK with FEC"),
    ):
        for modulation, code_rate in RECEIVERS:
            if (code_rate != "none") != is_coded:
                continue
            colour, label = colours[code_rate if is_coded else modulation], NAMES.get(modulation)
            start = ideal_threshold_db(modulation, code_rate)
            axis = [start - 1 + 0.05 * i for i in range(51)]
            rates = [ideal_packet_error_rate(modulation, code_rate, x) for x in axis]
            name = f"rate {code_rate}" if is_coded else label
            axes.semilogy(axis, rates, color=colour, lw=1, label=f"{name}, ideal")
            for row in results["receiver"]:
                if (row["modulation"], row["code_rate"]) == (modulation, code_rate):
                    axes.semilogy(
                        [point["eb_n0_db"] for point in row["points"]],
                        [point["per"] or math.nan for point in row["points"]],
                        MARKERS[row["modem"]], color=colour, ms=5, mfc="none",
                    )  # fmt: skip
        for row in results["decoder"] if is_coded else ():
            x = [point["eb_n0_db"] for point in row["points"]]
            y = [point["per"] or math.nan for point in row["points"]]
            axes.semilogy(x, y, "+", color=colours[row["code_rate"]], ms=7)
        if is_coded:
            axes.plot([], [], "k+", ms=7, label="decoder alone")
        for modem in MODEMS:
            axes.plot([], [], f"k{MARKERS[modem]}", ms=5, mfc="none", label=NAMES[modem])
        axes.set(xlabel="Eb/N0 (dB)", ylabel="packet error rate, 1,000 bytes", ylim=(1e-3, 1.1))
        axes.set_title(title)
        axes.legend(**below)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def set_log_level() -> None:
    """Restrict GNU Radio's log to warnings and errors."""
    from gnuradio import gr

    gr.logging().set_default_level(gr.log_levels.warn)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the modems' receivers with theory.")
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure", help="run the modems; needs GNU Radio")
    measuring.add_argument("results", type=Path)
    measuring.add_argument("--packets", type=int, default=1000, help="at each SNR")
    reporting = commands.add_parser("report", help="print a table, and draw it")
    reporting.add_argument("results", type=Path)
    reporting.add_argument("figure", type=Path, nargs="?", help="PNG or SVG; needs matplotlib")
    arguments = parser.parse_args()
    if arguments.command == "measure":
        if arguments.packets < 50:
            parser.error("--packets must be at least 50, or no rate is measured")
        set_log_level()
        measure(arguments.results, arguments.packets)
        return
    try:
        results = json.loads(arguments.results.read_text())
        if results["schema_version"] != SCHEMA_VERSION:
            parser.error(f"{arguments.results}: another schema version; measure again")
    except (OSError, ValueError, KeyError, TypeError) as error:
        parser.error(f"{arguments.results}: not written by bench_modem.py measure: {error}")
    print_report(results)
    if arguments.figure:
        draw(results, arguments.figure)


if __name__ == "__main__":
    main()
