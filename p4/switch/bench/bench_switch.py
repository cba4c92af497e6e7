# SPDX-License-Identifier: Apache-2.0
"""What nagi-switch can do on this machine, beside what else could do it: `make bench-switch`.

    bench_switch.py [throughput|timing|entries|tables|experiment ...] [--quick] [--json FILE]
                    [--seconds N]

throughput  the highest rate offered of which nothing is lost, and the rate that is delivered under
            overload, through edge.p4 with 1,000 routes: nagi-switch's beside the bare AF_XDP
            forwarder's and simple_switch's, where it is. Each on one core.
timing      one-way delay at 25,000 packets/s, beside the forwarder's and the kernel's bridge
entries     how long 100,000 entries take to load: at the start, by a controller one by one, and
            in one batch; and how long packets are held up meanwhile
tables      what it costs to find an entry among a million exact ones, 500,000 prefixes, and 10,000
            ternary ones under up to 1,000 masks
experiment  whether the achievement topology with both links at 200 Mb/s (switch-200.yaml) gets a
            valid certificate in real time, in as many tries as `nagi run` makes

What was not measured, or has nothing to be held against, says so and gets no verdict.

Exit status: 0 all targets met, 1 some missed, 2 the benchmark cannot run here.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "link-emulator" / "bench"))

from bench_command import find_obstacle, make_parser, parse_arguments, run_benchmark  # noqa: E402
from bench_lab import MEASURED_CPU, BenchError, Lab, Trials, run_trial  # noqa: E402
from bench_report import GENERATOR, Row, describe_machine, judge, report_results  # noqa: E402
from bench_subjects import Bridge, Forwarder, Subject  # noqa: E402
from bench_throughput import Throughput, find_throughput, print_progress  # noqa: E402

ROUTES = 1000
ENTRIES = 100_000
ENTRIES_S = 2.0
MIN_OF_FORWARDER = 0.7
MIN_OF_SIMPLE_SWITCH = 8.0
# What an entry is found in. An exact or longest match takes a hash look-up or a few, so only caches
# make it grow; a ternary one takes a look-up a mask.
MAX_LOOKUP_NS = {"exact": 500.0, "lpm": 1000.0}
MAX_NS_A_MASK = 50.0
TIMING_RATE = 25_000  # packets/s
MEDIAN_DELAY_NS = 100_000
KEEPS_UP = 0.99  # of the rate asked for: below this the generator is the limit
START_S = 20.0
SOCKETS_GONE_S = 0.5  # the kernel gives interfaces free some time after AF_XDP sockets are closed
ON_ITS_PROCESSOR = ("taskset", "-c", str(MEASURED_CPU))
SIMPLE_SWITCH_QUEUE = 1000  # packets; its default of 64 is shorter than a burst of the source
GET_SIMPLE_SWITCH = (
    "not measured: no simple_switch on PATH; install bmv2 (package p4lang-bmv2, see "
    "github.com/p4lang/behavioral-model), or give --simple-switch FILE"
)
EXPERIMENT = Path(__file__).with_name("switch-200.yaml")
LOADING_S = 5.0  # of packets, while entries are loaded: some are sent before and after

NOTES = """\
The source is on processor 0, what is measured on processor 1, with SCHED_FIFO; simple_switch, all
its threads, at ordinary priority. In throughput trials above 100 kpps the kernel makes the frames
in the middle, as a driver would. Frames are 1,000 bytes long and all take one of the 1,000 routes;
ports have no rate. ">=": processor 0 was the limit. "generator": the source was too slow to
tell. "-": no target, or nothing to hold the figure against."""


@dataclass
class Bench(Trials):
    lab: Lab
    nagi_switch: Path
    program: Path
    tables: Path
    simple_switch: Path | None
    rows: list[Row]
    details: dict[str, Any]


def prefixes(count: int) -> list[str]:
    """What is routed: the source's frames, those that the kernel makes (to 0.0.0.0), and others."""
    first = ["10.0.0.0/24", "0.0.0.0/8"]
    others = [f"{10 + i // 65536}.{i // 256 % 256}.{i % 256}.0/24" for i in range(2, count)]
    return [*first, *others][:count]


class NagiSwitch(Subject):
    """nagi-switch with edge.p4, from port 1 (e0) to port 2 (e1). `ready_s`: what its start took."""

    def __init__(self, bench: Bench, routes: int, io: str) -> None:
        self.name = f"nagi-switch ({io})"
        self._bench = bench
        self._routes = routes
        self._io = io
        self.ready_s = 0.0

    def operations(self, count: int) -> list[str]:
        mac = self._bench.lab.right_mac
        data = [2, "02:00:00:00:00:fe", mac, 1500]
        return [
            json.dumps(
                {
                    "op": "table_add",
                    "table": "ingress.ipv4_routes",
                    "match": [prefix],
                    "action": "ingress.forward",
                    "data": data,
                }
            )
            for prefix in prefixes(count)
        ]

    def load(self, requests: list[str]) -> float:
        """Has it perform requests by its control socket. Returns how long that took."""
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("".join(request + "\n" for request in requests))
            file.flush()
            command = [str(self._bench.nagi_switch), "control", str(self.socket), file.name]
            started = time.monotonic()
            done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
            took = time.monotonic() - started
        if done.returncode != 0:
            raise BenchError("nagi-switch refused an entry")
        return took

    def __enter__(self) -> NagiSwitch:
        self._directory = Path(tempfile.mkdtemp(prefix="nagi-bench-"))
        self.socket = self._directory / "sock"
        entries = self._directory / "entries.jsonl"
        entries.write_text("".join(line + "\n" for line in self.operations(self._routes)))
        config = {
            "schema_version": 1,
            "seed": 2008,
            "pipeline": str(self._bench.program),
            "entries": str(entries),
            "io": self._io,
            "account": str(self._directory / "switch.json"),
            "control_socket": str(self.socket),
            "ports": [{"number": 1, "interface": "e0"}, {"number": 2, "interface": "e1"}],
        }
        path = self._directory / "config.json"
        path.write_text(json.dumps(config))
        try:
            started = time.monotonic()
            self._running = self._bench.lab.start_measured(
                str(self._bench.nagi_switch), "run", str(path)
            )
            self._running.wait_until_ready()
            self.ready_s = time.monotonic() - started
        except BaseException:
            shutil.rmtree(self._directory)
            raise
        self.pid = self._running.pid
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._running.stop()
            time.sleep(SOCKETS_GONE_S)
            account = json.loads((self._directory / "switch.json").read_text())
            for port in account["ports"]:
                for times in ("arrival_lateness_ns", "added_delay_ns"):
                    port[times].pop("histogram")
            self.account = account
        finally:
            shutil.rmtree(self._directory)


class SimpleSwitch(Subject):
    """bmv2's simple_switch with the same program and routes, given by its own command line."""

    name = "simple_switch"

    def __init__(self, bench: Bench, program: Path) -> None:
        self._bench = bench
        self._program = program

    def __enter__(self) -> SimpleSwitch:
        lab = self._bench.lab
        self._directory = Path(tempfile.mkdtemp(prefix="nagi-bench-"))
        commands = self._directory / "commands"
        data = f"2 02:00:00:00:00:fe {lab.right_mac} 1500"
        commands.write_text(
            "".join(
                f"table_add ingress.ipv4_routes ingress.forward {prefix} => {data}\n"
                for prefix in prefixes(ROUTES)
            )
            + f"set_queue_depth {SIMPLE_SWITCH_QUEUE}\n"
        )
        ports = ["-i", "1@e0", "-i", "2@e1"]
        # Of its threads, one that never sleeps would keep the others out at a real-time priority.
        self._running = lab.start(
            "middle", *ON_ITS_PROCESSOR, str(self._program), *ports, str(self._bench.program)
        )
        self.pid = self._running.pid
        cli = self._program.with_name("simple_switch_CLI")
        deadline = time.monotonic() + START_S
        while True:
            loaded = lab.start("middle", "sh", "-c", f"{cli} <{commands}")
            try:
                said = loaded.finish(START_S)
            except BenchError as error:  # it does not listen yet
                said = str(error)
            if said.count("handle") >= ROUTES:
                return self
            if time.monotonic() > deadline:
                self.__exit__()
                raise BenchError(f"simple_switch did not take its routes: {said[-300:]}")
            time.sleep(0.5)

    def __exit__(self, *_: object) -> None:
        self._running.kill()
        shutil.rmtree(self._directory)


# --- throughput ---------------------------------------------------------------------------------


def median(rounds: list[Throughput], what: str) -> float:
    return statistics.median(float(getattr(once, what)) for once in rounds)


def source_limited(rounds: list[Throughput], what: str) -> bool:
    """Whether the source was the limit in most rounds: the figure is only a lower bound then."""

    def limited(once: Throughput) -> bool:
        if what == "overload_delivered":
            return once.overload_delivered >= KEEPS_UP * once.overload_offered
        return once.source_limited

    return sum(limited(once) for once in rounds) * 2 >= len(rounds)


def measure_throughput(bench: Bench) -> None:
    ours = NagiSwitch(bench, ROUTES, "af_xdp")
    makers: dict[str, Callable[[], Subject]] = {
        Forwarder.name: lambda: Forwarder(bench.lab),
        ours.name: lambda: ours,
    }
    other = bench.simple_switch
    if other is not None:
        makers[SimpleSwitch.name] = lambda: SimpleSwitch(bench, other)
    found: dict[str, list[Throughput]] = {}
    for _ in range(2 if bench.quick else 3):
        # In turns, so that a slow minute of the machine falls on all alike.
        for name, make in makers.items():
            with make() as subject:
                once = find_throughput(bench.lab, subject, bench.choose_length(2, 1))
            found.setdefault(name, []).append(once)
    us = found[ours.name]
    for name, least in (
        (Forwarder.name, MIN_OF_FORWARDER),
        (SimpleSwitch.name, MIN_OF_SIMPLE_SWITCH),
    ):
        if name not in found:
            target = f"ratio >= {least:g}"
            bench.rows.append(Row(f"throughput: {name}", GET_SIMPLE_SWITCH, target=target))
            continue
        for what, label in (
            ("lossless", "throughput, nothing lost"),
            ("overload_delivered", "  delivered under overload"),
        ):
            bench.rows.append(_throughput_row(us, found[name], what, f"{label}: {name}", least))
    cost = "; ".join(f"{median(us, each):.2f}" for each in ("process_us", "core_us"))
    bench.rows.append(Row("its processor time a packet: process; core", f"{cost} us"))
    bench.details["throughput"] = {
        name: [once.to_json() for once in rounds] for name, rounds in found.items()
    }
    bench.details["account"] = ours.account


def _throughput_row(
    us: list[Throughput], reference: list[Throughput], what: str, label: str, least: float
) -> Row:
    def shown(rounds: list[Throughput]) -> str:
        limited = source_limited(rounds, what)
        return f"{'>= ' if limited else ''}{median(rounds, what) / 1e3:.0f} kpps"

    below = median(reference, what)
    target = f"ratio >= {least:g}"
    if below == 0:
        why = f"{shown(reference)}: it lost frames at every rate tried"
        return Row(label, shown(us), why, target=target)
    ratio = median(us, what) / below
    good = ratio >= least
    sure = not source_limited(reference if good else us, what)
    return Row(label, shown(us), shown(reference), ratio, target, judge(good, sure))


# --- timing -------------------------------------------------------------------------------------


def measure_timing(bench: Bench) -> None:
    seconds = bench.choose_length(10, 3)
    ours = NagiSwitch(bench, ROUTES, "af_xdp")
    subjects: list[Subject] = [Bridge(bench.lab), Forwarder(bench.lab), ours]
    details: dict[str, Any] = {}
    baseline = ""
    for subject in subjects:
        print_progress(f"timing: {subject.name}: {TIMING_RATE} packets/s for {seconds:g} s")
        for _ in range(3):
            with subject:
                done = run_trial(bench.lab, subject.pid, TIMING_RATE, 1, seconds, drain=0.2)
            if kept_up := done.offered_rate >= KEEPS_UP * TIMING_RATE:
                break
        details[subject.name] = {**done.to_json(), "account": subject.account}
        times = done.sink["delay_ns"]
        delays = "; ".join(f"{times[q] / 1e3:.1f}" for q in ("p50", "p99", "max")) + " us"
        lost = f", {done.lost} lost" if done.lost else ""
        judged = subject is ours
        bench.rows.append(
            Row(
                f"one-way delay, p50; p99; max: {subject.name}",
                delays + lost,
                baseline,
                target=f"p50 < {MEDIAN_DELAY_NS / 1e3:.0f} us" if judged else "",
                verdict=judge(times["p50"] < MEDIAN_DELAY_NS, kept_up)
                if judged
                else ("-" if kept_up else GENERATOR),
            )
        )
        baseline = baseline or delays
    bench.details["timing"] = details


# --- entries ------------------------------------------------------------------------------------


def measure_entries(bench: Bench) -> None:
    print_progress(f"entries: {ENTRIES} at the start")
    with NagiSwitch(bench, 1, "af_xdp") as one:
        pass
    with NagiSwitch(bench, ENTRIES, "af_xdp") as many:
        pass
    details: dict[str, Any] = {"at_start_s": many.ready_s - one.ready_s}
    _report_loading(bench, "at the start", details["at_start_s"])
    # The first entry is there already, so that packets pass.
    entries = NagiSwitch(bench, 1, "af_xdp").operations(ENTRIES + 1)[1:]
    batch = f'{{"op": "batch", "operations": [{", ".join(entries)}]}}'
    for how, requests in (("one by one", entries), ("in one batch", [batch])):
        print_progress(f"entries: {ENTRIES} {how}")
        with NagiSwitch(bench, 1, "af_xdp") as quiet:
            took = quiet.load(requests)
        _report_loading(bench, f"by a controller, {how}", took)
        with (
            NagiSwitch(bench, 1, "af_xdp") as busy,
            ThreadPoolExecutor() as pool,
        ):
            pid, rate = busy.pid, TIMING_RATE
            sent = pool.submit(run_trial, bench.lab, pid, rate, 1, LOADING_S, drain=0.5)
            time.sleep(1)
            took_busy = busy.load(requests)
            done = sent.result()
        times = done.sink["delay_ns"]
        delays = "; ".join(f"{times[q] / 1e3:.1f}" for q in ("p50", "p99", "max")) + " us"
        bench.rows.append(
            Row(
                f"  one-way delay meanwhile, p50; p99; max ({took_busy:.2f} s)",
                f"{delays}, {done.lost} of {done.source['frames']} lost",
                verdict="-" if done.offered_rate >= KEEPS_UP * TIMING_RATE else GENERATOR,
            )
        )
        details[how] = {"took_s": took, "took_busy_s": took_busy, "meanwhile": done.to_json()}
    bench.details["entries"] = details


def _report_loading(bench: Bench, how: str, took: float) -> None:
    bench.rows.append(
        Row(
            f"{ENTRIES} entries, {how}",
            f"{took:.2f} s",
            target=f"< {ENTRIES_S:g} s",
            verdict=judge(took < ENTRIES_S),
        )
    )


# --- tables -------------------------------------------------------------------------------------


def measure_tables(bench: Bench) -> None:
    print_progress("tables")
    done = subprocess.run([str(bench.tables)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{bench.tables}: {done.stderr[-300:]}")
    found = json.loads(done.stdout)
    smallest: dict[str, float] = {}
    for each in found:
        kind, took = each["kind"], each["lookup_ns"]
        first = smallest.setdefault(kind, took)
        most = MAX_LOOKUP_NS.get(kind) or MAX_NS_A_MASK * each["masks"]
        of = f", {each['masks']} masks" if kind == "ternary" else ""
        bench.rows.append(
            Row(
                f"finding one of {each['entries']} entries, {kind}{of}",
                f"{took:.0f} ns",
                f"{first:.0f} ns",
                took / first,
                f"< {most:.0f} ns",
                judge(took < most),
            )
        )
    bench.details["tables"] = found


# --- experiment ---------------------------------------------------------------------------------


def measure_experiment(bench: Bench) -> None:
    print_progress("experiment: 200 Mb/s through a switch, in up to three tries")
    nagi = bench.nagi_switch.with_name("nagi")
    with tempfile.TemporaryDirectory(prefix="nagi-bench-") as out:
        command = [str(nagi), "run", str(EXPERIMENT), "--lab", "netns", "--out", out]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        runs = sorted(Path(out, "runs").glob("*"), key=lambda run: run.stat().st_mtime)
        verdicts = [json.loads((run / "verdict.json").read_text()) for run in runs]
    if not verdicts:
        raise BenchError(f"nagi run: {done.stderr[-300:]}")
    for number, found in enumerate(verdicts, start=1):
        checks = {check["name"]: check for check in found["checks"]}
        worst = "; ".join(
            f"{checks[name]['value'] or 0:.2g}"
            for name in ("capture_transit_median", "capture_transit_p99", "capture_transit_max")
        )
        last = number == len(verdicts)
        bench.rows.append(
            Row(
                f"200 Mb/s through a switch, try {number}: transit error p50; p99; max",
                f"{worst} ms, {found['status']}",
                target="valid" if last else "",
                verdict=judge(found["status"] == "valid") if last else "-",
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


def arguments() -> argparse.Namespace:
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
        help="with simple_switch_CLI beside it; else looked for on PATH",
    )
    given = parse_arguments(parser, SUBJECTS)
    on_path = shutil.which("simple_switch")
    if given.simple_switch is None and on_path is not None:
        given.simple_switch = Path(on_path)
    return given


def main() -> int:
    given = arguments()
    reason = find_obstacle(given.nagi_switch, given.programs)
    if reason is None and given.simple_switch is not None and not given.simple_switch.exists():
        reason = f"no {given.simple_switch}: give simple_switch's path, or leave it out"
    if reason is not None:
        print(f"bench: {reason}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    details: dict[str, Any] = {}

    def measure() -> None:
        with Lab(given.programs.resolve()) as lab:
            bench = Bench(
                given.quick,
                given.seconds,
                lab,
                given.nagi_switch.resolve(),
                ROOT / "p4" / "edge.json",
                given.tables.resolve(),
                given.simple_switch.absolute() if given.simple_switch else None,
                rows,
                details,
            )
            for what in given.what:
                SUBJECTS[what](bench)

    if status := run_benchmark(measure):
        return status
    about = {
        "machine": describe_machine(),
        "nagi_switch": str(given.nagi_switch),
        "quick": given.quick,
    }
    return report_results(rows, NOTES, given.json, about, details)


if __name__ == "__main__":
    sys.exit(main())
