# SPDX-License-Identifier: Apache-2.0
"""What our TCP schemes cost beside the kernel's own: `make bench-tcp`.

    bench_tcp.py [throughput] [cpu] [flows] [--schemes A,B] [--seconds N] [--rounds N] [--flows N]
                 [--json FILE]

throughput  one flow over a path that limits nothing, and the machine's processor time for an ACK,
            beside newreno's (the kernel's reno without SACK) right before or after; what others
            than the benchmark disturbed is left out, and without half of it there is no verdict
cpu         how long the scheme's eBPF programs run for an ACK, by the kernel's own count
flows       many flows at once: all of them get something through

Schemes take turns; a ratio is the median of the rounds' ratios. In the end nothing of ours is left
in the kernel.

Exit status: 0 all targets met, 1 some missed, 2 the benchmark cannot run here.
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

from bench_command import status_of
from bench_report import Row, machine, report, verdict
from bpf_objects import RunTime, ours, run_times, timed, wait_until_gone
from nagi.plan.schemes import read_loaded_controls, read_schemes
from nagi_contracts.paths import executable, scheme_object
from tcp_lab import NETWORKS, TcpLab, Trial, held

DISTURBED = "disturbed"  # others were at work: no verdict
LEAST_RATIO = 0.95  # of newreno's throughput
ASKED = ("vegas", "westwood", "tahoe")
REFERENCE = "newreno"
OURS = {name: scheme.object for name, scheme in read_schemes().items() if scheme.object}
# Vegas that takes nothing for a queue: what it costs then is the code's, not the definition's.
UNBOUND = "vegas, all limits at 1000"
UNBOUND_SETS = ("alpha=1000", "beta=1000", "gamma=1000")

NOTES = """\
Processor time is the whole machine's, of all processors, both hosts and the traffic programs; so it
is worth something only if nothing else runs ("disturbed": something did). An ACK stands for a few
kB of Vegas's, else for a hundred and more. A run time is that of the programs alone, with what it
takes to take the time.

Vegas keeps at most beta segments in queues, and on a path without delay the hosts' own work is the
queue: its window stays at a few segments by definition. With its limits out of reach it shows what
the program costs."""


@dataclass
class Bench:
    """What all parts of the benchmark share."""

    lab: TcpLab
    schemes: dict[str, str]  # programs by name
    seconds: float
    rounds: int
    flows: int
    rows: list[Row]
    details: dict[str, Any]


def progress(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def kernel_name(number: int) -> str:
    """Nobody else's."""
    return f"bench{number}_{os.getpid()}"


@contextmanager
def all_held(chosen: dict[str, str]) -> Iterator[dict[str, str]]:
    """The schemes to be compared; what the kernel calls them."""
    with ExitStack() as stack:
        names: dict[str, str] = {}
        for scheme, program in chosen.items():
            names[scheme] = stack.enter_context(held(program, kernel_name(len(names))))
            if program == "vegas":
                unbound = held(program, kernel_name(len(names)), *UNBOUND_SETS)
                names[UNBOUND] = stack.enter_context(unbound)
        yield names


# --- throughput, and processor time for an ACK ---------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """A trial of ours, and one of the reference beside it."""

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
    reference = str(read_schemes()[REFERENCE].kernel)
    details: dict[str, Any] = {}
    with all_held(bench.schemes) as names:
        for path in NETWORKS:
            done: dict[str, list[Pair]] = {scheme: [] for scheme in names}
            for number in range(bench.rounds):
                progress(f"throughput, {path}: round {number + 1} of {bench.rounds}")
                for scheme, name in names.items():
                    order = (name, reference) if number % 2 else (reference, name)
                    trials = {each: bench.lab.trial(path, each, bench.seconds) for each in order}
                    done[scheme].append(Pair(trials[name], trials[reference]))
            for scheme, pairs in done.items():
                _report_throughput(bench, path, scheme, pairs)
            details[path] = {
                scheme: [
                    {"own": pair.own.to_json(), REFERENCE: pair.reference.to_json()}
                    for pair in pairs
                ]
                for scheme, pairs in done.items()
            }
    bench.details["throughput"] = details


def _report_throughput(bench: Bench, path: str, scheme: str, pairs: list[Pair]) -> None:
    """From the pairs that nobody disturbed, if they are half of them; else there is no verdict."""
    undisturbed = [pair for pair in pairs if not pair.disturbed]
    kept_up = 2 * len(undisturbed) >= len(pairs)
    pairs = undisturbed if kept_up else pairs
    ratios = sorted(pair.rate_ratio for pair in pairs)
    ratio = statistics.median(ratios)
    own = statistics.median(pair.own.bits_per_second for pair in pairs)
    reference = statistics.median(pair.reference.bits_per_second for pair in pairs)
    asked = scheme in ASKED
    bench.rows.append(
        Row(
            f"throughput, {path}: {scheme}",
            f"{own / 1e9:.2f} Gb/s; ratios {ratios[0]:.2f} to {ratios[-1]:.2f}",
            f"{reference / 1e9:.2f} Gb/s ({REFERENCE})",
            ratio,
            f">= {LEAST_RATIO:g}" if asked else "",
            _judged(ratio, kept_up) if asked else "-",
        )
    )
    own, reference = (
        statistics.median(trial.busy_per_ack_us for trial in trials)
        for trials in ([p.own for p in pairs], [p.reference for p in pairs])
    )
    bench.rows.append(
        Row(
            "  processor time for an ACK",
            f"{own:.1f} us",
            f"{reference:.1f} us",
            statistics.median(pair.cost_ratio for pair in pairs),
        )
    )


def _judged(ratio: float, undisturbed: bool) -> str:
    return verdict(ratio >= LEAST_RATIO) if undisturbed else DISTURBED


# --- run time of the programs --------------------------------------------------------------------


def measure_cpu(bench: Bench) -> None:
    details: dict[str, Any] = {}
    for path in NETWORKS:
        for number, (scheme, program) in enumerate(bench.schemes.items()):
            progress(f"cpu, {path}: {scheme}")
            before = set(run_times())
            with held(program, kernel_name(number)) as name, timed():
                trial = bench.lab.trial(path, name, bench.seconds)
                spent = {key[0]: took for key, took in run_times().items() if key not in before}
            details.setdefault(path, {})[scheme] = {
                "trial": trial.to_json(),
                "programs": {name: vars(took) for name, took in spent.items()},
            }
            _report_cpu(bench, path, scheme, spent[f"{program}_ack"[:15]], trial)
    bench.details["cpu"] = details


def _report_cpu(bench: Bench, path: str, scheme: str, ack: RunTime, trial: Trial) -> None:
    mean_ns = ack.nanoseconds / max(ack.calls, 1)
    bench.rows.append(
        Row(
            f"run time for an ACK, {path}: {scheme}",
            f"{mean_ns:.0f} ns in {ack.calls} calls",
            f"{100 * ack.nanoseconds / 1e9 / trial.busy_s:.2f} % of the machine's time",
        )
    )


# --- many flows at once --------------------------------------------------------------------------


def measure_flows(bench: Bench) -> None:
    details: dict[str, Any] = {}
    for path in NETWORKS:
        for number, (scheme, program) in enumerate(bench.schemes.items()):
            progress(f"flows, {path}: {bench.flows} of {scheme}")
            with held(program, kernel_name(number)) as name:
                trial = bench.lab.trial(path, name, bench.seconds, bench.flows)
            served = sum(size > 0 for size in trial.flows)
            gone = name not in read_loaded_controls()
            details.setdefault(path, {})[scheme] = {**trial.to_json(), "name_gone": gone}
            bench.rows.append(
                Row(
                    f"{bench.flows} flows, {path}: {scheme}",
                    f"{served} got on, the last {min(trial.flows) / 1e3:.0f} kB; "
                    f"{'gone' if gone else 'NOT GONE'} afterwards",
                    f"{trial.bits_per_second / 1e9:.2f} Gb/s in all",
                    target="all, gone",
                    verdict=verdict(served == bench.flows and gone),
                )
            )
    bench.details["flows"] = details


# --- what is left --------------------------------------------------------------------------------


def report_left(
    rows: list[Row], details: dict[str, Any], before: set[tuple[str, int]], names: set[str]
) -> None:
    with suppress(AssertionError):  # what is left is in the row
        wait_until_gone(before)
    left = sorted(f"{kind} {number}" for kind, number in ours() - before)
    left += sorted(read_loaded_controls() - names)
    details["left_behind"] = left
    rows.append(
        Row(
            "programs, maps, links and names left in the kernel",
            ", ".join(left) or "none",
            target="none",
            verdict=verdict(not left),
        )
    )


# --- the command ---------------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parts = {"throughput": measure_throughput, "cpu": measure_cpu, "flows": measure_flows}
    parser.add_argument("what", nargs="*", help=f"of {', '.join(parts)}; all if none is given")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a trial")
    parser.add_argument("--rounds", type=int, default=7, help="of throughput")
    parser.add_argument("--flows", type=int, default=100, help="at once")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything here")
    parser.add_argument("--schemes", default=",".join(OURS), metavar="A,B", help="only these")
    given = parser.parse_args()
    for what in given.what:
        if what not in parts:
            parser.error(f"{what}: there is {', '.join(parts)}")
    for option in ("seconds", "rounds", "flows"):
        if getattr(given, option) <= 0:
            parser.error(f"--{option}: give more than 0")
    for scheme in given.schemes.split(","):
        if scheme not in OURS:
            parser.error(f"--schemes: {scheme}: there is {', '.join(OURS)}")
    given.schemes = {scheme: OURS[scheme] for scheme in given.schemes.split(",")}
    given.parts = [parts[what] for what in given.what or parts]
    return given


def refusal() -> str | None:
    """Why the benchmark cannot run, and the cure."""
    if os.geteuid() != 0:
        return "needs root, for network namespaces and eBPF: run it with sudo"
    if shutil.which("iperf") is None:
        return "needs iperf: apt-get install iperf"
    for needed in (executable("nagi-tcp"), *map(scheme_object, OURS.values())):
        if not needed.exists():
            return f"no {needed}: run make"
    return None


def main() -> int:
    given = arguments()
    if reason := refusal():
        print(f"bench: {reason}", file=sys.stderr)
        return 2

    rows: list[Row] = []
    details: dict[str, Any] = {}
    before, names = ours(), read_loaded_controls()

    def measure() -> None:
        with TcpLab() as lab:
            bench = Bench(
                lab, given.schemes, given.seconds, given.rounds, given.flows, rows, details
            )
            for part in given.parts:
                part(bench)

    if status := status_of(measure):
        return status
    report_left(rows, details, before, names)
    about = {"machine": machine(), "seconds": given.seconds, "rounds": given.rounds}
    return report(rows, NOTES, given.json, about, details)


if __name__ == "__main__":
    sys.exit(main())
