# SPDX-License-Identifier: Apache-2.0
"""Measures the resident memory of nagi-link in a run with a full queue."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from bench_lab import IP_BYTES, BenchError
from bench_link import OVERLOAD, Bench
from bench_report import Row, judge
from bench_throughput import print_progress

MAX_RESIDENT_BYTES = 100_000_000
MAX_GROWTH_BYTES = 500_000  # more than single pages


def read_resident_bytes(pid: int) -> int:
    """Return the resident memory of a process: VmRSS, see proc(5)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise BenchError(f"no VmRSS of process {pid}")


def measure_memory(bench: Bench) -> None:
    """Measure the resident memory of nagi-link over time, with a full queue.

    The growth is the difference between the end and a time 30 s after the start (or half of the
    duration, if this is earlier), when the queue is full.
    """
    rate_bps, one_way_ns = 200_000_000, 50_000_000
    seconds = bench.hours * 3600 if bench.hours else (20.0 if bench.quick else 60.0)
    settled_after_s = min(30.0, seconds / 2)
    interval_s = max(1.0, seconds / 600)
    forward = {
        "rate_bps": rate_bps,
        "delay_ns": one_way_ns,
        "queue": {"bdp": 1.0, "base_rtt_ns": 2 * one_way_ns, "packet_bytes": IP_BYTES},
    }
    details: dict[str, Any] = {}
    for io in bench.link.list_io_kinds():
        with bench.make_link(io, forward, one_way_ns) as link:
            assert link.pid is not None
            print_progress(
                f"memory: {link.name}: 200 Mb/s, RTT 100 ms, full queue, for {seconds:g} s"
            )
            samples = [(0.0, read_resident_bytes(link.pid))]
            pps = OVERLOAD * rate_bps / 8 / IP_BYTES
            sink = bench.lab.start_sink(
                "right", "eth0", "--count-only", "--seconds", str(seconds + 60)
            )
            # The source sleeps between bursts, so that a long run does not occupy a processor.
            source = bench.lab.start_source(pps, 16, seconds)
            started = time.monotonic()
            last_message = started
            while source.process.poll() is None:
                time.sleep(interval_s)
                samples.append((time.monotonic() - started, read_resident_bytes(link.pid)))
                if time.monotonic() - last_message >= 60:
                    last_message = time.monotonic()
                    print_progress(f"memory: {samples[-1][0]:.0f} s, {samples[-1][1] / 1e6:.1f} MB")
            source_result = json.loads(source.finish(10))
            sink_result = json.loads(sink.stop())
        settled_bytes = next(
            (size for time_s, size in samples if time_s >= settled_after_s), samples[-1][1]
        )
        max_bytes = max(size for _, size in samples)
        growth_bytes = samples[-1][1] - settled_bytes
        kept_up = float(source_result["rate"]) >= 1.02 * rate_bps / 8 / IP_BYTES
        details[link.name] = {
            "resident_bytes": samples,
            "source": source_result,
            "sink": sink_result,
            "account": link.account,
        }
        megabytes = "; ".join(
            f"{size / 1e6:.1f}" for size in (samples[0][1], settled_bytes, samples[-1][1])
        )
        bench.rows.append(
            Row(
                f"resident at start; {settled_after_s:g} s; {seconds:g} s: {link.name}",
                f"{megabytes} MB",
                target=f"< {MAX_RESIDENT_BYTES / 1e6:.0f} MB",
                verdict=judge(max_bytes < MAX_RESIDENT_BYTES, kept_up),
            )
        )
        bench.rows.append(
            Row(
                f"  growth from {settled_after_s:g} s to the end",
                f"{growth_bytes / 1e6:.2f} MB",
                target=f"<= {MAX_GROWTH_BYTES / 1e6:g} MB",
                verdict=judge(growth_bytes <= MAX_GROWTH_BYTES, kept_up),
            )
        )
    bench.details["memory"] = details
