# SPDX-License-Identifier: Apache-2.0
"""Measures the throughput of nagi-link, without losses and with a radio's calibrated losses."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench_lab import IP_BYTES
from bench_link import Bench
from bench_report import Row, judge
from bench_subjects import AMPLE_RATE_BPS, Bridge, Forwarder, Subject
from bench_throughput import Throughput, find_throughput
from nagi_contracts.calibration import Calibration
from nagi_contracts.impairments.losses.sdr import SdrCurvePlan

MIN_THROUGHPUT = 300_000  # packets/s without loss
MIN_RATIO = 0.8  # throughput over that of the bare forwarder
MIN_CALIBRATED_RATIO = 0.9  # throughput over that of nagi-link without losses
EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
CALIBRATION = EXPERIMENTS / "calibrations" / "ofdm-qpsk.json"
DELAY_NS = 50_000_000
AMPLE = {
    "rate_bps": AMPLE_RATE_BPS,
    "delay_ns": DELAY_NS,
    "queue": {"bdp": 1.0, "base_rtt_ns": 2 * DELAY_NS, "packet_bytes": IP_BYTES},
}


def measure_throughput(bench: Bench) -> None:
    """Measure the throughputs of nagi-link, the bare forwarder and the bridge, and compare them."""
    kinds = bench.link.list_io_kinds()
    makers: dict[str, Callable[[], Subject]] = {}
    bare = Forwarder.name
    makers[bare] = lambda: Forwarder(bench.lab)
    links = []
    for io in kinds:
        name = bench.make_link(io, AMPLE, DELAY_NS).name
        links.append(name)
        makers[name] = lambda io=io: bench.make_link(io, AMPLE, DELAY_NS)
    others: dict[str, Callable[[], Subject]] = {
        Bridge(bench.lab).name: lambda: Bridge(bench.lab),
    }
    throughputs, accounts = _run_rounds(bench, makers, others)
    for name in throughputs:
        reference = bare if name in links else None
        bench.rows += _make_rows(
            throughputs[name],
            name,
            throughputs.get(reference or ""),
            MIN_RATIO if name == links[0] else None,
        )
    bench.details["throughput"] = _make_details(throughputs, accounts)


def measure_calibrated(bench: Bench) -> None:
    """Compare the throughput of nagi-link with calibrated losses and without losses."""
    io = bench.link.list_io_kinds()[0]
    calibration = Calibration.read(CALIBRATION).mode(None, None, None)
    curves = [SdrCurvePlan.from_calibration(curve).model_dump() for curve in calibration.curves]
    fading = {"kind": "rayleigh", "doppler_hz": 5}
    loss = {"model": "sdr", "curves": curves, "snr_db": 100, "fading": fading}

    def make_without_losses() -> Subject:
        return bench.make_link(io, AMPLE, DELAY_NS)

    def make_calibrated() -> Subject:
        return bench.make_link(io, {**AMPLE, "loss": loss}, DELAY_NS)

    reference, name = "no losses", "calibrated losses"
    throughputs, accounts = _run_rounds(
        bench, {reference: make_without_losses, name: make_calibrated}, {}
    )
    bench.rows += _make_rows(throughputs[name], name, throughputs[reference], MIN_CALIBRATED_RATIO)
    bench.details["calibrated"] = _make_details(throughputs, accounts)


def _run_rounds(
    bench: Bench,
    makers: dict[str, Callable[[], Subject]],
    others: dict[str, Callable[[], Subject]],
) -> tuple[dict[str, list[Throughput]], dict[str, list[Any]]]:
    """Measure the throughputs of subjects in three rounds, with `--quick` in two.

    The subjects take turns in each round, so that slow periods of the machine affect all of them.

    Args:
        bench: The options.
        makers: Functions that make the subjects of all rounds, by name.
        others: Functions that make further subjects, for the first round only, by name.

    Returns:
        Throughputs and accounts of each subject, by name, one per round. An account has the
        counters that the subject reported at its end, or is None.
    """
    throughputs: dict[str, list[Throughput]] = {}
    accounts: dict[str, list[Any]] = {}
    for number in range(2 if bench.quick else 3):
        for name, make in {**makers, **(others if number == 0 else {})}.items():
            with make() as subject:
                throughputs.setdefault(name, []).append(
                    find_throughput(bench.lab, subject, bench.choose_length(2, 1))
                )
            accounts.setdefault(name, []).append(subject.account)
    return throughputs, accounts


def _make_details(
    throughputs: dict[str, list[Throughput]], accounts: dict[str, list[Any]]
) -> dict[str, Any]:
    return {
        name: {
            "rounds": [throughput.to_json() for throughput in rounds],
            "accounts": accounts[name],
        }
        for name, rounds in throughputs.items()
    }


def _make_rows(
    rounds: list[Throughput],
    name: str,
    reference: list[Throughput] | None,
    min_ratio: float | None,
) -> list[Row]:
    """Return the rows of a subject.

    Args:
        rounds: The subject's throughput in each round.
        name: The subject's name.
        reference: Throughputs of the subject to compare with, or None.
        min_ratio: Target of the ratio to the reference, or None if there is no target.
    """

    def median(rounds: list[Throughput], field: str) -> float:
        return statistics.median(float(getattr(throughput, field)) for throughput in rounds)

    def is_bounded(rounds: list[Throughput]) -> bool:
        return sum(throughput.source_limited for throughput in rounds) * 2 >= len(rounds)

    def ratio(field: str) -> float | None:
        divisor = median(reference, field) if reference else 0
        return median(rounds, field) / divisor if divisor else None

    def row(label: str, show: Callable[[list[Throughput]], str], field: str) -> Row:
        return Row(label, show(rounds), show(reference) if reference else "", ratio(field))

    def lossless(rounds: list[Throughput]) -> str:
        return f"{'>= ' if is_bounded(rounds) else ''}{median(rounds, 'lossless') / 1e3:.0f} kpps"

    def delivered(rounds: list[Throughput]) -> str:
        rate, offered = median(rounds, "overload_delivered"), median(rounds, "overload_offered")
        return f"{rate / 1e3:.0f} of {offered / 1e3:.0f} kpps"

    def processor_time(rounds: list[Throughput]) -> str:
        return f"{median(rounds, 'process_us'):.2f}; {median(rounds, 'core_us'):.2f} us"

    first = row(f"throughput, nothing lost: {name}", lossless, "lossless")
    if min_ratio is not None:
        is_good = median(rounds, "lossless") >= MIN_THROUGHPUT and (first.ratio or 0) >= min_ratio
        # A reference that the source limits is a lower bound, so the ratio is an upper bound.
        is_certain = not is_bounded(reference or []) if is_good else not is_bounded(rounds)
        first = replace(
            first,
            target=f">= {MIN_THROUGHPUT // 1000} kpps, ratio >= {min_ratio}",
            verdict=judge(is_good, generator_kept_up=is_certain),
        )
    # The forwarding rate at maximum offered load (RFC 2285, section 3.6.2) shows the capacity of a
    # processor. The throughput (RFC 2544) also depends on other programs that use the processor.
    overload_row = row("  delivered under overload", delivered, "overload_delivered")
    if min_ratio is not None:
        is_good = (overload_row.ratio or 0) >= min_ratio
        overload_row = replace(overload_row, target=f"ratio >= {min_ratio}", verdict=judge(is_good))
    rows = [first, overload_row]
    # The bridge has no process and uses the source's processor.
    if median(rounds, "process_us") > 0:
        rows.append(row("  processor time per packet: process; core", processor_time, "process_us"))
    return rows
