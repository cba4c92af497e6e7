# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of nagi's TCP schemes, compared with a scheme of the kernel: `make bench-tcp`.

    bench_tcp.py [throughput] [cpu] [flows] [--schemes A,B] [--seconds N] [--rounds N] [--flows N]
                 [--json FILE]

throughput  one flow over a path without a rate limit: the rate, and the machine's processor time
            per ACK. Each trial is compared with a trial of newreno (the kernel's reno without SACK)
            immediately before or after. Trials during which other programs used the processors do
            not count. If more than half of the trials do not count, there is no verdict.
cpu         run time of the scheme's eBPF programs per ACK, as the kernel measures it
flows       many flows at the same time: each flow must transfer data

In each round every scheme has one trial. A ratio is the median of the rounds' ratios. At the end
the benchmark checks that no eBPF object and no scheme of nagi is left in the kernel.

Exit status: 0 if all targets are met, 1 if not, 2 if the benchmark cannot run on this machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3] / "link-emulator" / "bench"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from bench_command import run_benchmark
from bench_report import Row, describe_machine, judge, report_results
from bpf_objects import RunTime, list_nagi_objects, run_times, timed, wait_until_gone
from nagi.plan.schemes import read_loaded_controls, read_schemes
from nagi_contracts.paths import executable, scheme_object
from tcp_lab import NETWORKS, TcpLab, Trial, register_scheme

DISTURBED = "disturbed"  # other programs used the processors: no verdict
MIN_RATIO = 0.95  # target for throughput, relative to newreno's
WITH_TARGET = ("vegas", "westwood", "tahoe")  # schemes that must meet the target
REFERENCE = "newreno"
OURS = {name: scheme.object for name, scheme in read_schemes().items() if scheme.object}
# Vegas never reaches these limits, so its window is not small. The measurement then shows the cost
# of the code.
UNBOUND = "vegas, all limits at 1000"
UNBOUND_PARAMETERS = ("alpha=1000", "beta=1000", "gamma=1000")

NOTES = """\
Processor time is that of the whole machine: all processors, both hosts and the traffic programs. It
is meaningful only if nothing else runs ("disturbed" means that something did). With Vegas an ACK
acknowledges a few kB, with the other schemes 100 kB and more. A run time is that of the eBPF
programs alone, including the time that the measurement takes.

Vegas keeps at most beta segments in queues. On a path without delay the processing in the hosts
counts as a queue, so its window stays at a few segments by definition. With limits of 1000 segments
the result shows the cost of the program itself."""


@dataclass
class Bench:
    """The lab and the options of all measurements, and the results that measurements add."""

    lab: TcpLab
    schemes: dict[str, str]  # scheme -> name of its scheme object
    seconds: float
    rounds: int
    flows: int
    rows: list[Row]
    details: dict[str, Any]


def report_progress(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def make_kernel_name(number: int) -> str:
    """Return a name for a congestion control that no other process uses."""
    return f"bench{number}_{os.getpid()}"


@contextmanager
def register_all(chosen: dict[str, str]) -> Iterator[dict[str, str]]:
    """Register the schemes to compare, and yield scheme -> name in the kernel.

    Vegas is registered twice, the second time (UNBOUND) with limits that it never reaches.

    Args:
        chosen: scheme -> name of its scheme object.
    """
    with ExitStack() as stack:
        names: dict[str, str] = {}
        for scheme, object_name in chosen.items():
            kernel_name = make_kernel_name(len(names))
            names[scheme] = stack.enter_context(register_scheme(object_name, kernel_name))
            if object_name == "vegas":
                kernel_name = make_kernel_name(len(names))
                unbound = register_scheme(object_name, kernel_name, *UNBOUND_PARAMETERS)
                names[UNBOUND] = stack.enter_context(unbound)
        yield names


# --- throughput, and processor time per ACK ------------------------------------------------------


@dataclass(frozen=True)
class TrialPair:
    """A trial of a scheme, and a trial of the reference immediately before or after."""

    own: Trial
    reference: Trial

    @property
    def disturbed(self) -> bool:
        return self.own.disturbed or self.reference.disturbed

    @property
    def rate_ratio(self) -> float:
        return self.own.bits_per_second / self.reference.bits_per_second

    @property
    def cost_ratio(self) -> float:
        return self.own.busy_per_ack_us / self.reference.busy_per_ack_us


def measure_throughput(bench: Bench) -> None:
    """Compare throughput and processor time per ACK of each scheme with those of newreno."""
    reference = str(read_schemes()[REFERENCE].kernel)
    details: dict[str, Any] = {}
    with register_all(bench.schemes) as names:
        for path in NETWORKS:
            pairs_by_scheme: dict[str, list[TrialPair]] = {scheme: [] for scheme in names}
            for number in range(bench.rounds):
                report_progress(f"throughput, {path}: round {number + 1} of {bench.rounds}")
                for scheme, name in names.items():
                    order = (name, reference) if number % 2 else (reference, name)
                    trials = {
                        control: bench.lab.run_trial(path, control, bench.seconds)
                        for control in order
                    }
                    pairs_by_scheme[scheme].append(TrialPair(trials[name], trials[reference]))
            for scheme, pairs in pairs_by_scheme.items():
                _report_throughput(bench, path, scheme, pairs)
            details[path] = {
                scheme: [
                    {"own": pair.own.to_json(), REFERENCE: pair.reference.to_json()}
                    for pair in pairs
                ]
                for scheme, pairs in pairs_by_scheme.items()
            }
    bench.details["throughput"] = details


def _report_throughput(bench: Bench, path: str, scheme: str, pairs: list[TrialPair]) -> None:
    """Add a scheme's rows to the report.

    Only undisturbed pairs of trials are used. If fewer than half of the pairs are undisturbed, all
    pairs are used, and the verdict is "disturbed".
    """
    undisturbed = [pair for pair in pairs if not pair.disturbed]
    has_verdict = 2 * len(undisturbed) >= len(pairs)
    pairs = undisturbed if has_verdict else pairs
    ratios = sorted(pair.rate_ratio for pair in pairs)
    ratio = statistics.median(ratios)
    scheme_bps = statistics.median(pair.own.bits_per_second for pair in pairs)
    reference_bps = statistics.median(pair.reference.bits_per_second for pair in pairs)
    has_target = scheme in WITH_TARGET
    bench.rows.append(
        Row(
            f"throughput, {path}: {scheme}",
            f"{scheme_bps / 1e9:.2f} Gb/s; ratios {ratios[0]:.2f} to {ratios[-1]:.2f}",
            f"{reference_bps / 1e9:.2f} Gb/s ({REFERENCE})",
            ratio,
            f">= {MIN_RATIO:g}" if has_target else "",
            _judge_ratio(ratio, has_verdict) if has_target else "-",
        )
    )
    scheme_us, reference_us = (
        statistics.median(trial.busy_per_ack_us for trial in trials)
        for trials in ([p.own for p in pairs], [p.reference for p in pairs])
    )
    bench.rows.append(
        Row(
            "  processor time per ACK",
            f"{scheme_us:.1f} us",
            f"{reference_us:.1f} us",
            statistics.median(pair.cost_ratio for pair in pairs),
        )
    )


def _judge_ratio(ratio: float, has_verdict: bool) -> str:
    return judge(ratio >= MIN_RATIO) if has_verdict else DISTURBED


# --- run time of the programs --------------------------------------------------------------------


def measure_cpu(bench: Bench) -> None:
    """Measure the run time of each scheme's eBPF programs, and report the run time per ACK."""
    details: dict[str, Any] = {}
    for path in NETWORKS:
        for number, (scheme, object_name) in enumerate(bench.schemes.items()):
            report_progress(f"cpu, {path}: {scheme}")
            before = set(run_times())
            with register_scheme(object_name, make_kernel_name(number)) as name, timed():
                trial = bench.lab.run_trial(path, name, bench.seconds)
                times = {key[0]: time for key, time in run_times().items() if key not in before}
            details.setdefault(path, {})[scheme] = {
                "trial": trial.to_json(),
                "programs": {name: vars(time) for name, time in times.items()},
            }
            _report_cpu(bench, path, scheme, times[f"{object_name}_ack"[:15]], trial)
    bench.details["cpu"] = details


def _report_cpu(bench: Bench, path: str, scheme: str, ack: RunTime, trial: Trial) -> None:
    mean_ns = ack.nanoseconds / max(ack.calls, 1)
    bench.rows.append(
        Row(
            f"run time per ACK, {path}: {scheme}",
            f"{mean_ns:.0f} ns in {ack.calls} calls",
            f"{100 * ack.nanoseconds / 1e9 / trial.busy_s:.2f} % of the machine's time",
        )
    )


# --- many flows at once --------------------------------------------------------------------------


def measure_flows(bench: Bench) -> None:
    """Check that each of many flows transfers data, and that the scheme is removed afterwards."""
    details: dict[str, Any] = {}
    for path in NETWORKS:
        for number, (scheme, object_name) in enumerate(bench.schemes.items()):
            report_progress(f"flows, {path}: {bench.flows} of {scheme}")
            with register_scheme(object_name, make_kernel_name(number)) as name:
                trial = bench.lab.run_trial(path, name, bench.seconds, bench.flows)
            served = sum(size > 0 for size in trial.flow_bytes)
            is_removed = name not in read_loaded_controls()
            details.setdefault(path, {})[scheme] = {**trial.to_json(), "name_gone": is_removed}
            bench.rows.append(
                Row(
                    f"{bench.flows} flows, {path}: {scheme}",
                    f"{served} sent data, the slowest {min(trial.flow_bytes) / 1e3:.0f} kB; "
                    f"{'removed' if is_removed else 'NOT REMOVED'} afterwards",
                    f"{trial.bits_per_second / 1e9:.2f} Gb/s in total",
                    target="all, removed",
                    verdict=judge(served == bench.flows and is_removed),
                )
            )
    bench.details["flows"] = details


# --- leftovers in the kernel ---------------------------------------------------------------------


def report_leftovers(
    rows: list[Row],
    details: dict[str, Any],
    objects_before: set[tuple[str, int]],
    controls_before: set[str],
) -> None:
    """Add a row about BPF objects and congestion controls that the benchmark left in the kernel.

    Args:
        rows: rows of the report.
        details: the content of the JSON file.
        objects_before: BPF objects that existed before the benchmark, as (kind, number).
        controls_before: congestion controls that were registered before the benchmark.
    """
    with suppress(AssertionError):  # the row lists the remaining objects
        wait_until_gone(objects_before)
    leftovers = sorted(f"{kind} {number}" for kind, number in list_nagi_objects() - objects_before)
    leftovers += sorted(read_loaded_controls() - controls_before)
    details["left_behind"] = leftovers
    rows.append(
        Row(
            "programs, maps, links and names left in the kernel",
            ", ".join(leftovers) or "none",
            target="none",
            verdict=judge(not leftovers),
        )
    )


# --- the command ---------------------------------------------------------------------------------


def parse_arguments() -> argparse.Namespace:
    """Return the options of the command line.

    `parts` are the functions of the chosen measurements. `schemes` is scheme -> name of its scheme
    object.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parts = {"throughput": measure_throughput, "cpu": measure_cpu, "flows": measure_flows}
    parser.add_argument("what", nargs="*", help=f"measurements: {', '.join(parts)}; default: all")
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of a trial")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of throughput")
    parser.add_argument("--flows", type=int, default=100, help="number of flows at once")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to FILE")
    parser.add_argument(
        "--schemes", default=",".join(OURS), metavar="A,B", help="schemes to measure"
    )
    options = parser.parse_args()
    for part in options.what:
        if part not in parts:
            parser.error(f"{part}: give one of {', '.join(parts)}")
    for option in ("seconds", "rounds", "flows"):
        if getattr(options, option) <= 0:
            parser.error(f"--{option}: give more than 0")
    for scheme in options.schemes.split(","):
        if scheme not in OURS:
            parser.error(f"--schemes: {scheme}: give one of {', '.join(OURS)}")
    options.schemes = {scheme: OURS[scheme] for scheme in options.schemes.split(",")}
    options.parts = [parts[part] for part in options.what or parts]
    return options


def find_obstacle() -> str | None:
    """Return why the benchmark cannot run, with the cure, or None."""
    if os.geteuid() != 0:
        return "the benchmark needs root, for network namespaces and eBPF; run it with sudo"
    if shutil.which("iperf") is None:
        return "iperf is not installed; run `apt-get install iperf`"
    for path in (executable("nagi-tcp"), *map(scheme_object, OURS.values())):
        if not path.exists():
            return f"{path} does not exist; run `make`"
    return None


def main() -> int:
    """Run the benchmark, print the report, and return the exit status: see the module."""
    options = parse_arguments()
    if obstacle := find_obstacle():
        print(f"bench: {obstacle}", file=sys.stderr)
        return 2

    rows: list[Row] = []
    details: dict[str, Any] = {}
    objects_before, controls_before = list_nagi_objects(), read_loaded_controls()

    def measure() -> None:
        with TcpLab() as lab:
            bench = Bench(
                lab, options.schemes, options.seconds, options.rounds, options.flows, rows, details
            )
            for measure_part in options.parts:
                measure_part(bench)

    if status := run_benchmark(measure):
        return status
    report_leftovers(rows, details, objects_before, controls_before)
    about = {"machine": describe_machine(), "seconds": options.seconds, "rounds": options.rounds}
    return report_results(rows, NOTES, options.json, about, details)


if __name__ == "__main__":
    sys.exit(main())
