# SPDX-License-Identifier: Apache-2.0
"""Measures nagi-switch on this machine, compared with other programs: `make bench-switch`.

    bench_switch.py [throughput|timing|entries|tables|experiment ...] [--quick] [--json FILE]
                    [--seconds N]

throughput  the highest offered rate without loss, and the rate delivered under overload, with
            edge.p4 and 1,000 routes. nagi-switch is compared with a program that only forwards
            frames by AF_XDP (forwarder), and with simple_switch, if it is installed. Each program
            runs on one core.
timing      one-way delay at 25,000 packets/s, compared with the forwarder and the kernel's bridge
entries     how long it takes to add 100,000 entries: at the start, by a controller one by one, and
            by a controller in one batch; and the delay of packets meanwhile
tables      how long it takes to find an entry in tables of up to a million exact entries, 500,000
            prefixes, or 10,000 ternary entries with 1,000 masks
experiment  whether the topology of the achievement paper with both links at 200 Mb/s
            (switch-200.yaml) gets a valid certificate in real time, in the attempts of `nagi run`

Rows without a measurement or without a comparison give the reason and get no verdict.

Exit status: 0 all targets met, 1 some targets missed, 2 the benchmark cannot run here.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "link-emulator" / "bench"))

from bench_command import find_obstacle, make_parser, parse_arguments, run_benchmark  # noqa: E402
from bench_lab import BenchError, Lab, run_trial  # noqa: E402
from bench_report import GENERATOR, Row, describe_machine, judge, report_results  # noqa: E402
from bench_subjects import Bridge, Forwarder, Subject  # noqa: E402
from bench_throughput import Throughput, find_throughput, print_progress  # noqa: E402
from switch_subjects import ROUTES, Bench, NagiSwitch, SimpleSwitch  # noqa: E402

ENTRIES = 100_000
MAX_LOADING_S = 2.0  # for ENTRIES entries
MIN_RATIO_TO_FORWARDER = 0.7  # of throughputs
MIN_RATIO_TO_SIMPLE_SWITCH = 8.0
# Maximum time to find an entry. An exact or longest match needs a few hash look-ups, so its time
# depends on cache misses only. A ternary match needs one look-up per mask.
MAX_LOOKUP_NS = {"exact": 500.0, "lpm": 1000.0}
MAX_NS_PER_MASK = 50.0
TIMING_RATE = 25_000  # packets/s
MAX_MEDIAN_DELAY_NS = 100_000
MIN_OFFERED = 0.99  # of the requested rate; if less is offered, the source is the limit
GET_SIMPLE_SWITCH = (
    "not measured: no simple_switch on PATH; install bmv2 (package p4lang-bmv2, see "
    "github.com/p4lang/behavioral-model), or give --simple-switch FILE"
)
EXPERIMENT = Path(__file__).with_name("switch-200.yaml")
LOADING_S = 5.0  # duration of the packets that are sent before, while and after entries are added

NOTES = """\
The source runs on processor 0, the measured program on processor 1, with SCHED_FIFO, except for
simple_switch, whose threads run at ordinary priority. In throughput trials above 100 kpps, the
kernel generates the frames in the namespace of the measured program, as a driver would. Frames are
1,000 bytes long. The switch has 1,000 routes, and all frames take the same route. Ports have no
rate limit. ">=": processor 0 was the limit. "generator": the source was too slow for a verdict.
"-": no target, or no figure to compare with."""


# --- throughput ---------------------------------------------------------------------------------


def compute_median(rounds: list[Throughput], name: str) -> float:
    """Return the median, over all rounds, of the field `name` of Throughput."""
    return statistics.median(float(getattr(result, name)) for result in rounds)


def is_source_limited(rounds: list[Throughput], name: str) -> bool:
    """Return whether the source was the limit in at least half of the rounds.

    Then the median of the field `name` is only a lower bound. Under overload, the source was the
    limit if the measured program delivered at least MIN_OFFERED of the offered rate.
    """

    def is_limited(result: Throughput) -> bool:
        if name == "overload_delivered":
            return result.overload_delivered >= MIN_OFFERED * result.overload_offered
        return result.source_limited

    return sum(is_limited(result) for result in rounds) * 2 >= len(rounds)


def measure_throughput(bench: Bench) -> None:
    """Measure throughput of nagi-switch, the forwarder and simple_switch.

    Without simple_switch, the report says how to get it.
    """
    nagi_switch = NagiSwitch(bench, ROUTES, "af_xdp")
    makers: dict[str, Callable[[], Subject]] = {
        Forwarder.name: lambda: Forwarder(bench.lab),
        nagi_switch.name: lambda: nagi_switch,
    }
    simple_switch = bench.simple_switch
    if simple_switch is not None:
        makers[SimpleSwitch.name] = lambda: SimpleSwitch(bench, simple_switch)
    rounds_by_name: dict[str, list[Throughput]] = {}
    for _ in range(2 if bench.quick else 3):
        # Measure all subjects in each round, so that a slow minute of the machine affects all.
        for name, make in makers.items():
            with make() as subject:
                result = find_throughput(bench.lab, subject, bench.choose_length(2, 1))
            rounds_by_name.setdefault(name, []).append(result)
    nagi_rounds = rounds_by_name[nagi_switch.name]
    for name, min_ratio in (
        (Forwarder.name, MIN_RATIO_TO_FORWARDER),
        (SimpleSwitch.name, MIN_RATIO_TO_SIMPLE_SWITCH),
    ):
        if name not in rounds_by_name:
            target = f"ratio >= {min_ratio:g}"
            bench.rows.append(Row(f"throughput: {name}", GET_SIMPLE_SWITCH, target=target))
            continue
        for field, label in (
            ("lossless", "throughput, nothing lost"),
            ("overload_delivered", "  delivered under overload"),
        ):
            bench.rows.append(
                _make_throughput_row(
                    nagi_rounds, rounds_by_name[name], field, f"{label}: {name}", min_ratio
                )
            )
    cost = "; ".join(
        f"{compute_median(nagi_rounds, field):.2f}" for field in ("process_us", "core_us")
    )
    bench.rows.append(Row("nagi-switch's processor time per packet: process; core", f"{cost} us"))
    bench.details["throughput"] = {
        name: [result.to_json() for result in rounds] for name, rounds in rounds_by_name.items()
    }
    bench.details["account"] = nagi_switch.account


def _make_throughput_row(
    nagi_rounds: list[Throughput],
    reference_rounds: list[Throughput],
    field: str,
    label: str,
    min_ratio: float,
) -> Row:
    """Make the row that compares a rate of nagi-switch with the same rate of another program.

    Args:
        nagi_rounds: The results of nagi-switch.
        reference_rounds: The results of the other program.
        field: The rate, a field of Throughput.
        label: The first cell of the row.
        min_ratio: The target: the smallest ratio of the two rates.
    """

    def format_rate(rounds: list[Throughput]) -> str:
        is_limited = is_source_limited(rounds, field)
        return f"{'>= ' if is_limited else ''}{compute_median(rounds, field) / 1e3:.0f} kpps"

    reference_rate = compute_median(reference_rounds, field)
    target = f"ratio >= {min_ratio:g}"
    if reference_rate == 0:
        reason = f"{format_rate(reference_rounds)}: frames were lost at every rate tried"
        return Row(label, format_rate(nagi_rounds), reason, target=target)
    ratio = compute_median(nagi_rounds, field) / reference_rate
    is_good = ratio >= min_ratio
    is_certain = not is_source_limited(reference_rounds if is_good else nagi_rounds, field)
    return Row(
        label,
        format_rate(nagi_rounds),
        format_rate(reference_rounds),
        ratio,
        target,
        judge(is_good, is_certain),
    )


# --- timing -------------------------------------------------------------------------------------


def measure_timing(bench: Bench) -> None:
    """Measure one-way delay of nagi-switch, the forwarder and the bridge.

    If the source does not reach TIMING_RATE, repeat the measurement, at most twice.
    """
    seconds = bench.choose_length(10, 3)
    nagi_switch = NagiSwitch(bench, ROUTES, "af_xdp")
    subjects: list[Subject] = [Bridge(bench.lab), Forwarder(bench.lab), nagi_switch]
    details: dict[str, Any] = {}
    baseline = ""
    for subject in subjects:
        print_progress(f"timing: {subject.name}: {TIMING_RATE} packets/s for {seconds:g} s")
        for _ in range(3):
            with subject:
                trial = run_trial(bench.lab, subject.pid, TIMING_RATE, 1, seconds, drain=0.2)
            if is_rate_reached := trial.offered_rate >= MIN_OFFERED * TIMING_RATE:
                break
        details[subject.name] = {**trial.to_json(), "account": subject.account}
        times = trial.sink["delay_ns"]
        delays = "; ".join(f"{times[q] / 1e3:.1f}" for q in ("p50", "p99", "max")) + " us"
        losses = f", {trial.lost} lost" if trial.lost else ""
        has_target = subject is nagi_switch
        bench.rows.append(
            Row(
                f"one-way delay, p50; p99; max: {subject.name}",
                delays + losses,
                baseline,
                target=f"p50 < {MAX_MEDIAN_DELAY_NS / 1e3:.0f} us" if has_target else "",
                verdict=judge(times["p50"] < MAX_MEDIAN_DELAY_NS, is_rate_reached)
                if has_target
                else ("-" if is_rate_reached else GENERATOR),
            )
        )
        baseline = baseline or delays
    bench.details["timing"] = details


# --- entries ------------------------------------------------------------------------------------


def measure_entries(bench: Bench) -> None:
    """Measure how long it takes to add entries, and the delay of packets meanwhile.

    For entries that are added at the start, measure how much they delay the start of nagi-switch.
    """
    print_progress(f"entries: {ENTRIES} at the start")
    with NagiSwitch(bench, 1, "af_xdp") as switch_with_one:
        pass
    with NagiSwitch(bench, ENTRIES, "af_xdp") as switch_with_all:
        pass
    details: dict[str, Any] = {"at_start_s": switch_with_all.ready_s - switch_with_one.ready_s}
    _report_loading(bench, "at the start", details["at_start_s"])
    # The switch has the first entry from the start, so that packets pass.
    operations = NagiSwitch(bench, 1, "af_xdp").build_operations(ENTRIES + 1)[1:]
    batch = f'{{"op": "batch", "operations": [{", ".join(operations)}]}}'
    for method, requests in (("one by one", operations), ("in one batch", [batch])):
        print_progress(f"entries: {ENTRIES} {method}")
        with NagiSwitch(bench, 1, "af_xdp") as idle_switch:
            duration_s = idle_switch.load(requests)
        _report_loading(bench, f"by a controller, {method}", duration_s)
        with (
            NagiSwitch(bench, 1, "af_xdp") as busy_switch,
            ThreadPoolExecutor() as pool,
        ):
            pid, rate = busy_switch.pid, TIMING_RATE
            pending_trial = pool.submit(run_trial, bench.lab, pid, rate, 1, LOADING_S, drain=0.5)
            time.sleep(1)
            busy_s = busy_switch.load(requests)
            trial = pending_trial.result()
        times = trial.sink["delay_ns"]
        delays = "; ".join(f"{times[q] / 1e3:.1f}" for q in ("p50", "p99", "max")) + " us"
        bench.rows.append(
            Row(
                f"  one-way delay meanwhile, p50; p99; max ({busy_s:.2f} s)",
                f"{delays}, {trial.lost} of {trial.source['frames']} lost",
                verdict="-" if trial.offered_rate >= MIN_OFFERED * TIMING_RATE else GENERATOR,
            )
        )
        details[method] = {
            "took_s": duration_s,
            "took_busy_s": busy_s,
            "meanwhile": trial.to_json(),
        }
    bench.details["entries"] = details


def _report_loading(bench: Bench, method: str, duration_s: float) -> None:
    bench.rows.append(
        Row(
            f"{ENTRIES} entries, {method}",
            f"{duration_s:.2f} s",
            target=f"< {MAX_LOADING_S:g} s",
            verdict=judge(duration_s < MAX_LOADING_S),
        )
    )


# --- tables -------------------------------------------------------------------------------------


def measure_tables(bench: Bench) -> None:
    """Measure look-ups in exact, lpm and ternary tables with the program bench-tables.

    Each row compares a table with the smallest table of its kind, which comes first.
    """
    print_progress("tables")
    process = subprocess.run([str(bench.tables)], capture_output=True, text=True, check=False)
    if process.returncode != 0:
        raise BenchError(f"{bench.tables}: {process.stderr[-300:]}")
    results = json.loads(process.stdout)
    smallest_table_ns: dict[str, float] = {}  # duration of a look-up, by kind
    for result in results:
        kind, lookup_ns = result["kind"], result["lookup_ns"]
        first_ns = smallest_table_ns.setdefault(kind, lookup_ns)
        max_ns = MAX_LOOKUP_NS.get(kind) or MAX_NS_PER_MASK * result["masks"]
        masks = f", {result['masks']} masks" if kind == "ternary" else ""
        bench.rows.append(
            Row(
                f"finding one of {result['entries']} entries, {kind}{masks}",
                f"{lookup_ns:.0f} ns",
                f"{first_ns:.0f} ns",
                lookup_ns / first_ns,
                f"< {max_ns:.0f} ns",
                judge(lookup_ns < max_ns),
            )
        )
    bench.details["tables"] = results


# --- experiment ---------------------------------------------------------------------------------


def measure_experiment(bench: Bench) -> None:
    """Check that an experiment at 200 Mb/s gets a valid certificate in real time."""
    print_progress("experiment: 200 Mb/s through a switch, in up to three attempts")
    nagi = bench.nagi_switch.with_name("nagi")
    with tempfile.TemporaryDirectory(prefix="nagi-bench-") as out:
        command = [str(nagi), "run", str(EXPERIMENT), "--lab", "netns", "--out", out]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        runs = sorted(Path(out, "runs").glob("*"), key=lambda run: run.stat().st_mtime)
        verdicts = [json.loads((run / "verdict.json").read_text()) for run in runs]
    if not verdicts:
        raise BenchError(f"nagi run: {process.stderr[-300:]}")
    for number, certificate in enumerate(verdicts, start=1):
        checks = {check["name"]: check for check in certificate["checks"]}
        errors = "; ".join(
            f"{checks[name]['value'] or 0:.2g}"
            for name in ("capture_transit_median", "capture_transit_p99", "capture_transit_max")
        )
        is_last = number == len(verdicts)
        bench.rows.append(
            Row(
                f"200 Mb/s through a switch, attempt {number}: transit error p50; p99; max",
                f"{errors} ms, {certificate['status']}",
                target="valid" if is_last else "",
                verdict=judge(certificate["status"] == "valid") if is_last else "-",
            )
        )
    bench.details["experiment"] = verdicts


# --- the command --------------------------------------------------------------------------------

SUBJECTS = {
    "throughput": measure_throughput,
    "timing": measure_timing,
    "entries": measure_entries,
    "tables": measure_tables,
    "experiment": measure_experiment,
}


def read_options() -> argparse.Namespace:
    """Parse the command line. By default, `simple_switch` is the program on PATH, or None."""
    parser = make_parser(__doc__ or "", SUBJECTS, seconds="a trial")
    parser.add_argument(
        "--nagi-switch", type=Path, default=Path(sys.prefix) / "bin" / "nagi-switch", metavar="FILE"
    )
    parser.add_argument(
        "--tables",
        type=Path,
        default=ROOT / "build" / "p4" / "switch" / "bench" / "bench-tables",
        metavar="FILE",
    )
    parser.add_argument(
        "--simple-switch",
        type=Path,
        metavar="FILE",
        help="simple_switch, with simple_switch_CLI in the same directory (default: on PATH)",
    )
    options = parse_arguments(parser, SUBJECTS)
    on_path = shutil.which("simple_switch")
    if options.simple_switch is None and on_path is not None:
        options.simple_switch = Path(on_path)
    return options


def main() -> int:
    """Run the benchmark, print the report, and return the exit status: see the module."""
    options = read_options()
    reason = find_obstacle(options.nagi_switch, options.programs)
    if reason is None and options.simple_switch is not None and not options.simple_switch.exists():
        reason = (
            f"{options.simple_switch} does not exist: give the path of simple_switch, or leave "
            "--simple-switch out"
        )
    if reason is not None:
        print(f"bench: {reason}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    details: dict[str, Any] = {}

    def measure() -> None:
        with Lab(options.programs.resolve()) as lab:
            bench = Bench(
                options.quick,
                options.seconds,
                lab,
                options.nagi_switch.resolve(),
                ROOT / "p4" / "edge.json",
                options.tables.resolve(),
                options.simple_switch.absolute() if options.simple_switch else None,
                rows,
                details,
            )
            for subject in options.what:
                SUBJECTS[subject](bench)

    if status := run_benchmark(measure):
        return status
    about = {
        "machine": describe_machine(),
        "nagi_switch": str(options.nagi_switch),
        "quick": options.quick,
    }
    return report_results(rows, NOTES, options.json, about, details)


if __name__ == "__main__":
    sys.exit(main())
