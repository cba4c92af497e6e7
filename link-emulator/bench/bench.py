# SPDX-License-Identifier: Apache-2.0
"""Measures nagi-link on this machine, and compares it with other programs: `make bench`.

    bench.py [throughput] [calibrated] [timing] [rate] [memory] [--quick] [--json FILE]
             [--seconds N]

throughput  the highest offered rate without loss (RFC 2544, 26.1), and the rate delivered under
            overload, in one direction; compared with the bare AF_XDP forwarder, each on one core
calibrated  the throughput with a radio's calibrated losses and fading, relative to no losses
timing      the lateness of sent packets, and the delay of forwarding without emulation
rate        the achieved rate relative to the configured one, compared with tbf and Rattan
memory      the resident memory in a run with a full queue

Exit status: 0 if all targets are met, 1 if a target is missed, 2 if the benchmark cannot run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_command import find_obstacle, make_parser, parse_arguments, run_benchmark
from bench_lab import Lab
from bench_link import Bench
from bench_link_memory import measure_memory
from bench_link_rate import find_rattan, measure_rate
from bench_link_throughput import measure_calibrated, measure_throughput
from bench_link_timing import measure_timing
from bench_report import Row, describe_machine, report_results
from bench_subjects import LinkProgram

NOTES = """\
The source runs on processor 0, the measured program on processor 1 with SCHED_FIFO. A veth executes
the receiver's part of the kernel on the sender's processor. So processor 0 passes frames into the
middle, and processor 1 passes them to the sink, a BPF program that drops them. The kernel's bridge
uses processor 0 only. In throughput trials, no source sends frames to the middle. The kernel makes
them there as a driver would, which costs processor 0 less time. Frames have 1,000 bytes, of which
986 are IP. ">=": processor 0 was the limit. Rates are IP bits per time between arrivals, from 0.5 s
on, with 10 % overload. tbf counts Ethernet bytes, so its rate is 1000/986 times higher.
"generator": no verdict, because the source was too slow. Calibrated losses have a mean SNR of 100
dB with Rayleigh fading: the SNR of each packet is computed and looked up, but no packet is lost."""


SUBJECTS = ("throughput", "calibrated", "timing", "rate", "memory")


def read_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__ or "", SUBJECTS, seconds="a trial (not of memory)")
    parser.add_argument(
        "--hours", type=float, default=0.0, help="duration of the measurement `memory`, in hours"
    )
    parser.add_argument(
        "--nagi-link", type=Path, default=Path(sys.prefix) / "bin" / "nagi-link", metavar="FILE"
    )
    parser.add_argument(
        "--extra",
        type=json.loads,
        default={},
        metavar="JSON",
        help="keys to add to nagi-link's configuration",
    )
    parser.add_argument("--rattan", type=Path, metavar="FILE")
    return parse_arguments(parser, SUBJECTS)


def main() -> int:
    options = read_arguments()
    if reason := find_obstacle(options.nagi_link, options.programs):
        print(f"bench: {reason}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    details: dict[str, Any] = {}

    def measure() -> None:
        with Lab(options.programs.resolve()) as lab:
            link = LinkProgram(options.nagi_link.resolve(), options.extra)
            bench = Bench(options.quick, options.seconds, lab, link, options.hours, rows, details)
            measurements: dict[str, Callable[[], None]] = {
                "throughput": lambda: measure_throughput(bench),
                "calibrated": lambda: measure_calibrated(bench),
                "timing": lambda: measure_timing(bench),
                "rate": lambda: measure_rate(bench, find_rattan(options.rattan)),
                "memory": lambda: measure_memory(bench),
            }
            for name in options.what:
                measurements[name]()

    if status := run_benchmark(measure):
        return status
    about = {
        "machine": describe_machine(),
        "nagi_link": str(options.nagi_link),
        "quick": options.quick,
    }
    return report_results(rows, NOTES, options.json, about, details)


if __name__ == "__main__":
    sys.exit(main())
