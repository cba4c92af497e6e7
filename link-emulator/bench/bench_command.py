# SPDX-License-Identifier: Apache-2.0
"""What the commands of benchmarks have in common: options, refusals, and how they end."""

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


def parser_of(doc: str, subjects: Collection[str], *, seconds: str) -> argparse.ArgumentParser:
    """With the options of all that measure frames. `doc`: the command's; `seconds`: what that
    option is the length of."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("what", nargs="*", help=f"of {', '.join(subjects)}; all if none is given")
    parser.add_argument("--quick", action="store_true", help="shorter and fewer trials")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything here")
    parser.add_argument("--seconds", type=float, help=f"length of {seconds}")
    parser.add_argument(
        "--programs",
        type=Path,
        default=ROOT / "build" / "link-emulator" / "bench",
        metavar="DIR",
        help="where bench-source and the others are",
    )
    return parser


def parsed(parser: argparse.ArgumentParser, subjects: Collection[str]) -> argparse.Namespace:
    given = parser.parse_args()
    for what in given.what:
        if what not in subjects:
            parser.error(f"{what}: there is {', '.join(subjects)}")
    given.what = given.what or list(subjects)
    return given


def refusal(measured: Path, programs: Path) -> str | None:
    """Why the benchmark of a program cannot run, and the cure."""
    if os.geteuid() != 0:
        return "needs root, for network namespaces: run it with sudo"
    if (os.cpu_count() or 1) < 2:
        return "needs two processors: one for the source, one for what is measured"
    if not measured.exists():
        return f"no {measured}: run make"
    for name in ("bench-source", "bench-injector", "bench-sink", "bench-forwarder"):
        if not (programs / name).exists():
            return f"no {programs / name}: cmake --build build --target nagi_bench"
    return None


def status_of(measure: Callable[[], None]) -> int:
    """Measures. What ended it early is said; returns the exit status, 0 if nothing did."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        measure()
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bench: interrupted; the lab is gone", file=sys.stderr)
        return 130
    return 0
