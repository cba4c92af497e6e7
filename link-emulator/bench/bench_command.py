# SPDX-License-Identifier: Apache-2.0
"""Options, requirements and exit statuses that the commands of benchmarks share."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from types import FrameType

from bench_lab import BenchError

ROOT = Path(__file__).resolve().parents[2]


def make_parser(doc: str, subjects: Collection[str], *, seconds: str) -> argparse.ArgumentParser:
    """Make a parser with the options of all benchmarks that send frames.

    Args:
        doc: The command's docstring.
        subjects: Names of the measurements that can be selected.
        seconds: What the option `--seconds` sets the duration of.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("what", nargs="*", help=f"some of {', '.join(subjects)}; default: all")
    parser.add_argument("--quick", action="store_true", help="shorter and fewer trials")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to FILE")
    parser.add_argument("--seconds", type=float, help=f"duration of {seconds}")
    parser.add_argument(
        "--programs",
        type=Path,
        default=ROOT / "build" / "link-emulator" / "bench",
        metavar="DIR",
        help="directory of bench-source and the other programs",
    )
    return parser


def parse_arguments(
    parser: argparse.ArgumentParser, subjects: Collection[str]
) -> argparse.Namespace:
    """Parse the command line; `what` then has the names of the selected measurements."""
    options = parser.parse_args()
    for name in options.what:
        if name not in subjects:
            parser.error(f"{name}: no such measurement; give some of {', '.join(subjects)}")
    options.what = options.what or list(subjects)
    return options


def find_obstacle(measured: Path, programs: Path) -> str | None:
    """Return why the benchmark of a program cannot run, with the cure, or None if it can."""
    if os.geteuid() != 0:
        return "needs root, for network namespaces: run it with sudo"
    if (os.cpu_count() or 1) < 2:
        return "needs two processors: one for the source, one for the measured program"
    if not measured.exists():
        return f"no {measured}: run make"
    for name in ("bench-source", "bench-injector", "bench-sink", "bench-forwarder"):
        if not (programs / name).exists():
            return f"no {programs / name}: cmake --build build --target nagi_bench"
    return None


def run_benchmark(measure: Callable[[], None]) -> int:
    """Run a benchmark, print the reason if it ends early, and return its exit status."""

    def exit_on_signal(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, exit_on_signal)
    try:
        measure()
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bench: interrupted; the lab was removed", file=sys.stderr)
        return 130
    return 0
