#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the modems' receivers lose against theory.

    bench_modem.py measure modem.json           under the Python that has GNU Radio
    bench_modem.py report modem.json [figure.svg]   under one with matplotlib, if a figure is wanted

Measured, all seeded, over the simulated channel:
- bit error rates with known timing over AWGN and over flat Rayleigh fading, beside theory;
- packet error rates of the whole receiver, 1,000 bytes without FEC, beside those of an ideal one,
  which knows channel and timing: 1 - (1 - Pb)^8000. The *implementation loss* is what more SNR the
  whole receiver needs for a packet error rate of 10 %;
- how often bursts are not detected, and headers wrong.

SNRs are Es/N0 and Eb/N0 of payload symbols. What prefix, pilots, preamble and header cost in energy
is no loss of the receiver; it is printed on its own.
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
PACKET = 1000
TARGET = 0.1
"""Packet error rate at which losses are compared."""
OFFSETS_DB = (-0.6, -0.2, 0.2, 0.6, 1.0)
BITS = {"bpsk": 1, "qpsk": 2, "8psk": 3, "16qam": 4}
MODEMS = ("ofdm", "single_carrier")
NAMES = {
    "bpsk": "BPSK", "qpsk": "QPSK", "8psk": "8-PSK", "16qam": "16-QAM",
    "ofdm": "OFDM", "single_carrier": "single carrier", "awgn": "AWGN", "rayleigh": "Rayleigh",
}  # fmt: skip
SCHEMA_VERSION = 1


def tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2))


def theory_ber(modulation: str, es_n0_db: float) -> float:
    """Gray-mapped, over AWGN; 8-PSK and 16-QAM to within 1 % below a rate of 0.01 (Proakis, Digital
    Communications, 4.3)."""
    es = 10 ** (es_n0_db / 10)
    if modulation == "bpsk":
        return tail(math.sqrt(2 * es))
    if modulation == "qpsk":
        return tail(math.sqrt(es))
    if modulation == "8psk":
        return 2 / 3 * tail(math.sqrt(2 * es) * math.sin(math.pi / 8))
    near, far = tail(math.sqrt(es / 5)), tail(3 * math.sqrt(es / 5))
    return 0.75 * near + 0.5 * far


def ideal_per(modulation: str, es_n0_db: float) -> float:
    return -math.expm1(8 * PACKET * math.log1p(-theory_ber(modulation, es_n0_db)))


def threshold_db(modulation: str) -> float:
    """Es/N0 at which an ideal receiver has the target's packet error rate."""
    low, high = 0.0, 40.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if ideal_per(modulation, middle) > TARGET else (low, middle)
    return high


def crossing_db(points: list[dict[str, Any]]) -> float:
    """Where measured packet error rates cross the target, linear in log(-log(1 - PER)).

    That is nearly straight over dB: a packet is lost if one of many independent bits is.
    """

    def height(rate: float, count: int) -> float:
        inside = min(max(rate, 0.5 / count), 1 - 0.5 / count)
        return math.log(-math.log1p(-inside))

    target = math.log(-math.log1p(-TARGET))
    for before, after in pairwise(points):
        one = height(before["per"], before["packets"])
        two = height(after["per"], after["packets"])
        if one >= target > two:
            share = (one - target) / (one - two)
            return float(before["es_n0_db"] + share * (after["es_n0_db"] - before["es_n0_db"]))
    raise ValueError("the packet error rates measured do not cross the target")


def measure_receiver(modem: str, modulation: str, count: int) -> list[dict[str, Any]]:
    import numpy as np
    from flows import run
    from gnuradio import nagi
    from gnuradio.nagi import air_time

    points = []
    for index, offset in enumerate(OFFSETS_DB):
        es_n0_db = threshold_db(modulation) + offset
        sent = [np.random.default_rng([1, index, i]).bytes(PACKET) for i in range(count)]
        snr_db = es_n0_db - air_time.symbol_snr_db(modem, 0.0)
        chain = [
            nagi.modem_tx(modem, modulation),
            nagi.channel(100 + index, 0, 1e6, snr_db=snr_db),
            nagi.modem_rx(modem, modulation),
        ]
        outcomes = run(chain, sent)
        causes = [meta.get("outcome", 0) for meta, _ in outcomes]
        lost = sum(data != packet for (_, data), packet in zip(outcomes, sent, strict=True))
        points.append(
            {
                "es_n0_db": es_n0_db,
                "packets": count,
                "per": lost / count,
                "ideal_per": ideal_per(modulation, es_n0_db),
                "not_detected": causes.count(1),
                "header_errors": causes.count(2),
            }
        )
    return points


def measure_detection(modem: str, count: int) -> list[dict[str, Any]]:
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
                "es_n0_db": air_time.symbol_snr_db(modem, snr_db),
                "packets": count,
                "not_detected": causes.count(1),
                "header_errors": causes.count(2),
            }
        )
    return points


def measure_known_timing(modem: str, modulation: str) -> dict[str, list[dict[str, float]]]:
    import numpy as np
    import qa_modem_theory as known
    from flows import transmit
    from gnuradio import nagi

    rng = np.random.default_rng(3)
    bursts = transmit(modem, modulation, [rng.bytes(1500) for _ in range(80)])
    symbols = np.concatenate([known.SYMBOLS[modem](burst) for burst in bursts])
    bits = known.decide(modulation, symbols)
    awgn = []
    for wanted in (0.0, 2.0, 4.0, 6.0, 8.0):
        channel = nagi.channel_model(
            int(wanted), 1, 1e6, snr_db=known.snr_db_of(modem, modulation, wanted)
        )
        heard = [
            np.frombuffer(channel.apply(number, 0, burst.tobytes()), np.complex64)
            for number, burst in enumerate(bursts)
        ]
        received = np.concatenate([known.SYMBOLS[modem](burst) for burst in heard])
        wrong = int(np.sum(bits != known.decide(modulation, received)))
        awgn.append(
            {
                "eb_n0_db": wanted,
                "ber": wrong / bits.size,
                "errors": wrong,
                "theory": known.theory_awgn(wanted),
            }
        )
    fading = nagi.channel_model(7, 1, 1e6, fading="rayleigh", doppler_hz=100.0)
    gains = np.array([fading.gain(0, 0.1234567 * i) for i in range(len(symbols))])
    noise = rng.normal(size=len(symbols)) + 1j * rng.normal(size=len(symbols))
    rayleigh = []
    for wanted in (0.0, 10.0, 20.0, 30.0):
        es = 10 ** (wanted / 10) * BITS[modulation]
        heard_symbols = symbols + noise / math.sqrt(2 * es) / gains
        wrong = int(np.sum(bits != known.decide(modulation, heard_symbols)))
        rayleigh.append(
            {
                "eb_n0_db": wanted,
                "ber": wrong / bits.size,
                "errors": wrong,
                "theory": known.theory_rayleigh(wanted),
            }
        )
    return {"awgn": awgn, "rayleigh": rayleigh}


def measure(path: Path, count: int) -> None:
    sys.path.insert(0, str(MODULE))
    from gnuradio.nagi import air_time

    results: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "packet_bytes": PACKET}
    results["receiver"] = []
    for modem in MODEMS:
        w = air_time.WAVEFORMS[modem]
        for modulation in BITS:
            points = measure_receiver(modem, modulation, count)
            samples = air_time.frame_samples(modem, modulation, PACKET) - w.guard - w.tail
            symbols = 8 * PACKET / BITS[modulation]
            energy = samples / (symbols * float(w.symbol_gain))
            results["receiver"].append(
                {
                    "modem": modem,
                    "modulation": modulation,
                    "ideal_db": threshold_db(modulation),
                    "loss_db": crossing_db(points) - threshold_db(modulation),
                    "overhead_db": 10 * math.log10(energy),
                    "points": points,
                }
            )
    results["detection"] = [
        {"modem": modem, "points": measure_detection(modem, count)} for modem in MODEMS
    ]
    results["known_timing"] = [
        {"modem": modem, "modulation": modulation, **measure_known_timing(modem, modulation)}
        for modem in MODEMS
        for modulation in ("bpsk", "qpsk")
    ]
    path.write_text(json.dumps(results, indent=1) + "\n")


def print_report(results: dict[str, Any]) -> None:
    print(f"Whole receiver, {results['packet_bytes']} bytes, no FEC, AWGN; Es/N0 for 10 % loss")
    print(f"{'modem':16}{'modulation':12}{'ideal dB':>9}{'loss dB':>9}{'overhead dB':>13}")
    for row in results["receiver"]:
        print(
            f"{row['modem']:16}{row['modulation']:12}{row['ideal_db']:9.2f}{row['loss_db']:9.2f}"
            f"{row['overhead_db']:13.2f}"
        )
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
            print(f"{row['modem']:16}{row['modulation']:6}{name:10}{cells}")


def draw(results: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    colours = dict(zip(BITS, ("C0", "C1", "C2", "C3"), strict=True))
    for modulation, colour in colours.items():
        start = threshold_db(modulation)
        axis = [start - 2 + 0.1 * i for i in range(41)]
        rates = [ideal_per(modulation, x) for x in axis]
        left.semilogy(axis, rates, color=colour, label=f"{NAMES[modulation]}, ideal")
    for row in results["receiver"]:
        x = [point["es_n0_db"] for point in row["points"]]
        y = [point["per"] or math.nan for point in row["points"]]
        style = {"ofdm": "o", "single_carrier": "x"}[row["modem"]]
        left.semilogy(x, y, style, color=colours[row["modulation"]])
    left.plot([], [], "ko", label="OFDM")
    left.plot([], [], "kx", label="single carrier")
    left.set(xlabel="Es/N0 (dB)", ylabel="packet error rate, 1,000 bytes", ylim=(1e-3, 1.1))
    left.legend(fontsize="small", ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
    for name, style, top in (("awgn", "-", 8), ("rayleigh", "--", 30)):
        shown = results["known_timing"][0][name]
        right.semilogy(
            [p["eb_n0_db"] for p in shown],
            [p["theory"] for p in shown],
            "k" + style,
            label=f"theory, {NAMES[name]}",
        )
        for row, marker in zip(results["known_timing"], "os^x", strict=True):
            kept = [p for p in row[name] if p["errors"] and p["eb_n0_db"] <= top]
            label = f"{NAMES[row['modem']]}, {NAMES[row['modulation']]}" if name == "awgn" else None
            right.semilogy(
                [p["eb_n0_db"] for p in kept],
                [p["ber"] for p in kept],
                marker,
                label=label,
                fillstyle="none",
            )
    right.set(xlabel="Eb/N0 (dB)", ylabel="bit error rate, known timing")
    right.legend(fontsize="small", ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
    figure.savefig(path)


def quiet() -> None:
    """Of GNU Radio's log only what is wrong."""
    from gnuradio import gr

    gr.logging().set_default_level(gr.log_levels.warn)


def main() -> None:
    parser = argparse.ArgumentParser(description="What the modems' receivers lose against theory.")
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
        quiet()
        measure(arguments.results, arguments.packets)
        return
    try:
        results = json.loads(arguments.results.read_text())
        if results["schema_version"] != SCHEMA_VERSION:
            parser.error(f"{arguments.results}: not of this version; measure again")
    except (OSError, ValueError, KeyError, TypeError) as error:
        parser.error(f"{arguments.results}: no results of bench_modem.py measure: {error}")
    print_report(results)
    if arguments.figure:
        draw(results, arguments.figure)


if __name__ == "__main__":
    main()
