# SPDX-License-Identifier: Apache-2.0
"""Options, requirements and exit statuses that all benchmark commands share."""

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
        doc: The command's docstring; its first line becomes the description in the help text.
        subjects: Names of the measurements that can be selected.
        seconds: The activity whose duration `--seconds` sets, for the help text.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument(
        "what", nargs="*", help=f"measurements: {', '.join(subjects)}; default: all"
    )
    parser.add_argument("--quick", action="store_true", help="shorter and fewer trials")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to FILE")
    parser.add_argument("--seconds", type=float, help=f"duration of {seconds}, in seconds")
    parser.add_argument(
        "--programs",
        type=Path,
        default=ROOT / "build" / "link-emulator" / "bench",
        metavar="DIR",
        help="directory with the programs bench-source, bench-sink, ...",
    )
    return parser


def parse_arguments(
    parser: argparse.ArgumentParser, subjects: Collection[str]
) -> argparse.Namespace:
    """Parse the command line.

    `what` of the result lists the selected measurements: all `subjects` if the user names none. An
    unknown name ends the process with exit status 2.
    """
    options = parser.parse_args()
    for name in options.what:
        if name not in subjects:
            parser.error(f"there is no measurement {name}; choose from {', '.join(subjects)}")
    options.what = options.what or list(subjects)
    return options


def find_obstacle(measured: Path, programs: Path) -> str | None:
    """Return why the benchmark cannot run here, with the cure, or None if it can run.

    Args:
        measured: The path of the measured program.
        programs: The directory with the benchmark's own programs.
    """
    if os.geteuid() != 0:
        return "network namespaces need root; run it with sudo"
    if (os.cpu_count() or 1) < 2:
        return "two processors are needed, one for the source and one for the measured program"
    if not measured.exists():
        return f"{measured} does not exist; run `make`"
    for name in ("bench-source", "bench-injector", "bench-sink", "bench-forwarder"):
        if not (programs / name).exists():
            return (
                f"{programs / name} does not exist; run `cmake --build build --target nagi_bench`"
            )
    return None


def run_benchmark(measure: Callable[[], None]) -> int:
    """Run a benchmark, and return its exit status.

    The status is 0 if `measure` returns, 2 if it raises BenchError, and 130 after Ctrl-C. For 2 and
    130, the reason is printed to standard error. SIGTERM raises SystemExit with 143.
    """

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
