# SPDX-License-Identifier: Apache-2.0
"""Measures the error of nagi-link's rate, and compares it with the kernel's tbf and Rattan."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

from bench_lab import IP_BYTES, MEASURED_PREFIX, BenchError, CpuTime, Trial, run_trial
from bench_link import OVERLOAD, Bench
from bench_report import GENERATOR, Row, judge
from bench_subjects import Bridge
from bench_throughput import print_progress

MAX_RATE_ERROR = 0.001
RATES_BPS = (10_000_000, 100_000_000, 200_000_000)
RATE_QUEUE_PACKETS = 1000  # 39 ms at 200 Mb/s, which is longer than pauses of the source
SETTLE_S = 0.5  # time until all token buckets are empty


def find_rattan(path: Path | None) -> Path | None:
    """Return the path of the program Rattan, or None if it is not installed.

    Without `path`, the function looks in $PATH, then in Cargo's directory. If `path` is given but
    does not exist, it returns None.
    """
    if path is not None:
        return path.resolve() if path.exists() else None
    cargo_path = Path.home() / ".cargo" / "bin" / "rattan"
    found_path = shutil.which("rattan")
    return Path(found_path) if found_path else cargo_path if cargo_path.exists() else None


def run_rattan_trial(bench: Bench, rattan: Path, rate_bps: int, seconds: float) -> Trial:
    """Send frames over a link of Rattan, which creates its own namespaces.

    Rattan runs the source in its left namespace. The right end of its link is in the namespace in
    which Rattan was started. Rattan runs on the same processor and with the same priority as
    nagi-link in its trials. Its processor times are not measured; they are 0 in the result.

    Raises:
        BenchError: Rattan creates no interface, or fails.
        StopIteration: Rattan's output lacks the result of the source.
    """
    lab = bench.lab
    if "rattan" not in lab.run_in_lab("ip netns list"):
        lab.add_namespace("rattan")
    rate = OVERLOAD * rate_bps / 8 / IP_BYTES
    source = lab.make_source_command("$interface", "$mac", rate, 1, seconds)
    words = " ".join(f'"{word}"' if "$" in word else word for word in source)
    script = (
        "interface=$(ip -o link | grep -o 'vL1[^@:]*');"
        "mac=$(ip neigh show $RATTAN_BASE | grep -o '..:..:..:..:..:..');"
        f"sleep 1; exec chrt -o 0 {words} --catch-up --from 10.1.1.1 --to $RATTAN_BASE"
    )
    queue = json.dumps({"packet_limit": RATE_QUEUE_PACKETS})
    command = ["ip", "netns", "exec", "rattan", *MEASURED_PREFIX, str(rattan), "link"]
    command += ["--uplink-bandwidth", f"{rate_bps}bps", "--uplink-queue", "droptail"]
    command += ["--uplink-queue-args", queue, "--", "sh", "-c", script]
    rattan_process = lab.start_in_lab(*command)
    deadline = time.monotonic() + 5
    while not (interfaces := [i for i in lab.list_interfaces("rattan") if i.startswith("vR1")]):
        if time.monotonic() > deadline or rattan_process.process.poll() is not None:
            rattan_process.kill()
            raise BenchError("Rattan created no interface at its right end")
        time.sleep(0.05)
    max_arrivals = str(int(rate * seconds) + 1000)
    sink = lab.start_sink(
        "rattan", interfaces[0], "--frames", max_arrivals, "--settle", str(SETTLE_S)
    )
    output = rattan_process.finish(seconds + 10)
    source_line = next(line for line in output.splitlines() if line.startswith('{"frames"'))
    return Trial(rate, json.loads(source_line), json.loads(sink.stop()), CpuTime(0, 0, 0, 0))


def measure_rate(bench: Bench, rattan: Path | None) -> None:
    """Measure the rate errors of tbf, nagi-link and Rattan in overload.

    If `rattan` is None or fails, the report says that it was not compared.
    """
    seconds = bench.choose_length(10, 5)
    delay_ns = 10_000_000
    details: dict[str, Any] = {}
    for rate_bps in RATES_BPS:
        pps = OVERLOAD * rate_bps / 8 / IP_BYTES
        forward = {
            "rate_bps": rate_bps,
            "delay_ns": delay_ns,
            "queue": {"packets": RATE_QUEUE_PACKETS},
        }
        tbf = Bridge(bench.lab, rate_bps, RATE_QUEUE_PACKETS)
        links = [bench.make_link(io, forward, delay_ns) for io in bench.link.list_io_kinds()]
        results: dict[str, Trial | str] = {}
        for subject in (tbf, *links):
            print_progress(f"rate: {subject.name}: {rate_bps / 1e6:g} Mb/s for {seconds:g} s")
            with subject:
                results[subject.name] = run_trial(
                    bench.lab,
                    subject.pid,
                    pps,
                    1,
                    seconds,
                    drain=1.2,
                    settle=SETTLE_S,
                    catch_up=True,
                )
        if rattan is None:
            results["Rattan"] = (
                "not compared: rattan is not installed (cargo install rattan --version 0.1.1)"
            )
        else:
            print_progress(f"rate: Rattan: {rate_bps / 1e6:g} Mb/s for {seconds:g} s")
            try:
                results["Rattan"] = run_rattan_trial(bench, rattan, rate_bps, seconds)
            except (BenchError, StopIteration) as error:
                results["Rattan"] = f"not compared: {error}"
        _report_rate(bench, rate_bps, results, tbf.name)
        details[str(rate_bps)] = {
            name: result.to_json() if isinstance(result, Trial) else result
            for name, result in results.items()
        }
    bench.details["rate"] = details


def has_kept_queue_filled(trial: Trial, rate_bps: int) -> bool:
    """Return whether the source overloaded the link, without pauses in which the queue empties."""
    packets_per_s = rate_bps / 8 / IP_BYTES
    paused_s = float(trial.source["latest_ns"]) / 1e9
    return (
        trial.offered_rate >= 1.02 * packets_per_s
        and paused_s < 0.9 * RATE_QUEUE_PACKETS / packets_per_s
    )


def _report_rate(
    bench: Bench, rate_bps: int, results: dict[str, Trial | str], reference: str
) -> None:
    def rate_error(result: Trial | str) -> float | None:
        if isinstance(result, str) or "ip_bits_per_second" not in result.sink:
            return None
        return float(result.sink["ip_bits_per_second"]) / rate_bps - 1

    errors = {
        name: f"{100 * error:+.3f} %" if (error := rate_error(result)) is not None else str(result)
        for name, result in results.items()
    }
    for name, result in results.items():
        error = rate_error(result)
        is_link = name.startswith("nagi-link")
        kept_up = not isinstance(result, Trial) or has_kept_queue_filled(result, rate_bps)
        has_verdict = is_link and error is not None
        bench.rows.append(
            Row(
                f"rate error at {rate_bps / 1e6:g} Mb/s, {name}",
                errors[name],
                f"{errors[reference]} (tbf)" if is_link else "",
                target=f"<= {100 * MAX_RATE_ERROR:g} %" if is_link else "",
                verdict=judge(abs(error or 0.0) <= MAX_RATE_ERROR, kept_up)
                if has_verdict
                else ("-" if kept_up else GENERATOR),
            )
        )
