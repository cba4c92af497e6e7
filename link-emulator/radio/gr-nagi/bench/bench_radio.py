# SPDX-License-Identifier: Apache-2.0
"""Measures nagi-sdr on this machine in real time: `make bench-radio`.

    bench_radio.py [both|one-way|virtual|lasting ...] [--quick] [--json FILE] [--seconds N]

both      2 Mb/s of 1,000-byte packets in each direction at the same time (OFDM, QPSK, simulated
          radio): losses, the delay that a radio adds to the air time, lateness of packets
one-way   8 Mb/s in one direction, with QPSK and with 16-QAM: losses and lateness
virtual   as `both`, with processes that exchange samples over ZeroMQ
lasting   ten minutes of `both`: growth of memory, and lost packets

A radio adds the delay of its link (10 ms), during which it computes the waveform, and its lateness.
Channels have an SNR of 30 dB, at which no packet is lost on the channel; the program causes all
losses.

Exit status: 0 all targets met, 1 a target missed, 2 the benchmark cannot run here.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "link-emulator" / "bench"))

from bench_command import find_obstacle, make_parser, parse_arguments, run_benchmark  # noqa: E402
from bench_lab import FRAME_BYTES, IP_BYTES, BenchError, Lab, Program  # noqa: E402
from bench_report import Row, describe_machine, judge, report_results  # noqa: E402

DELAY_NS = 10_000_000
MAX_ADDED_NS = 20_000_000
MIN_RATE_SHARE = 0.99  # of the rate at which packets are sent
DRAIN_S = 1.0
GROWTH_BYTES = 4 << 20
SNR_DB = 30.0


def load_air_time() -> ModuleType:
    """Import gr-nagi's module `air_time` without its package, which would import GNU Radio."""
    source = ROOT / "link-emulator" / "radio" / "gr-nagi" / "python" / "nagi" / "air_time.py"
    spec = importlib.util.spec_from_file_location("nagi_air_time", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Radio:
    """A radio with the smallest sample rate (in steps of 10 kHz) that carries `ip_bps` plus 2 %."""

    modulation: str
    ip_bps: float
    by: str = "simulated"
    modem: str = "ofdm"

    def make_link(self) -> dict[str, Any]:
        """Return the link's entry in nagi-sdr's configuration, with two equal directions."""
        air_time = load_air_time()
        modem = (self.modem, self.modulation)
        sample_rate = 100_000
        while True:
            rate = air_time.compute_rate_bps(*modem, sample_rate, "none")
            overhead = air_time.compute_overhead_bytes(*modem, sample_rate, "none")
            if rate * IP_BYTES / (IP_BYTES + overhead) >= self.ip_bps * 1.02:
                break
            sample_rate += 10_000
        direction = {
            "rate_bps": rate,
            "overhead_bytes": overhead,
            "delay_ns": DELAY_NS,
            "queue": {"packets": 200},
            "loss": {"model": "radio"},
        }
        radio = {
            "by": self.by,
            "modem": self.modem,
            "modulation": self.modulation,
            "sample_rate_hz": sample_rate,
            "code_rate": "none",
            "forward": {"snr_db": SNR_DB},
            "backward": {"snr_db": SNR_DB},
        }
        ends = {"name": "radio", "id": 1, "a": "e0", "b": "e1"}
        return {**ends, "forward": direction, "backward": direction, "radio": radio}


@dataclass
class Bench:
    """The options of the benchmark, its hosts, and its results so far."""

    lab: Lab
    nagi_sdr: Path
    quick: bool
    seconds: float | None
    rows: list[Row]
    details: dict[str, Any]

    def choose_seconds(self, usual: float, quick: float) -> float:
        """Return the duration of a transfer; the option --seconds overrides both arguments."""
        return self.seconds if self.seconds is not None else quick if self.quick else usual


@dataclass(frozen=True)
class DirectionResult:
    """The results of one direction of a transfer.

    Attributes:
        sent: Output of the program that sends.
        came: Output of the program that receives.
        account: The direction's counters, which nagi-link wrote at its end.
    """

    sent: dict[str, Any]
    came: dict[str, Any]
    account: dict[str, Any]

    @property
    def lost(self) -> int:
        return int(self.sent["frames"]) - int(self.came["frames"])


def carry(
    bench: Bench, radio: Radio, directions: int, seconds: float
) -> tuple[list[DirectionResult], list[int]]:
    """Send frames over a radio.

    Args:
        bench: The options and the lab.
        radio: The radio.
        directions: 1 for the forward direction only, 2 for both at once.
        seconds: Duration of sending.

    Returns:
        The results of each direction (forward first), and nagi-sdr's resident memory in bytes:
        after a tenth of `seconds`, and at the end.
    """
    lab = bench.lab
    rate = radio.ip_bps / (8 * IP_BYTES)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        config = directory / "radio.json"
        config.write_text(
            json.dumps(
                {
                    "schema_version": 1,
                    "seed": 1,
                    "account": str(directory / "links.json"),
                    "links": [radio.make_link()],
                }
            )
        )
        emulator = lab.start("middle", str(bench.nagi_sdr), "run", str(config))
        emulator.wait_until_ready()
        max_frames = ["--frames", str(int(rate * seconds) + 1000)]
        ends = [("left", "right"), ("right", "left")][:directions]
        sinks = [lab.start_sink(to, "eth0", *max_frames) for _, to in ends]
        sources = [
            lab.start(
                sender,
                *lab.make_source_command("eth0", lab.read_mac(to, "eth0"), rate, 1, seconds),
            )
            for sender, to in ends
        ]
        memory = [_read_memory_after(sources[0], seconds / 10, emulator)]
        sent = [json.loads(source.finish(seconds + 30)) for source in sources]
        pause(DRAIN_S)
        memory.append(_read_resident_bytes(emulator.pid))
        came = [json.loads(sink.stop()) for sink in sinks]
        emulator.stop()
        account = json.loads((directory / "links.json").read_text())["links"][0]
    accounts = [account["forward"], account["backward"]]
    return [DirectionResult(*result) for result in zip(sent, came, accounts, strict=False)], memory


def pause(seconds: float) -> None:
    time.sleep(seconds)


def _read_memory_after(running: Program, seconds: float, emulator: Program) -> int:
    pause(seconds)
    if running.process.poll() is not None:
        raise BenchError("the source ended too early")
    return _read_resident_bytes(emulator.pid)


def _read_resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    raise BenchError("nagi-sdr has ended")


def _add_rows(bench: Bench, name: str, radio: Radio, directions: list[DirectionResult]) -> None:
    """Add rows with rate, losses, added delay and lateness of each direction to the results."""
    link = radio.make_link()["forward"]
    air_ns = (IP_BYTES + link["overhead_bytes"]) * 8e9 / link["rate_bps"]
    for number, direction in enumerate(directions):
        label = f"{name}, {('there', 'back')[number]}"
        rate = int(direction.came["frames"]) * IP_BYTES * 8 / float(direction.sent["seconds"])
        added = direction.came["delay_ns"]["p50"] - air_ns
        late = direction.account["transit_error_ns"]
        bench.rows += [
            Row(f"{label}: IP rate", f"{rate / 1e6:.2f} Mb/s", f"{radio.ip_bps / 1e6:g} Mb/s",
                rate / radio.ip_bps, f">= {MIN_RATE_SHARE:g}",
                judge(rate >= MIN_RATE_SHARE * radio.ip_bps)),
            Row(f"{label}: lost", str(direction.lost), f"{direction.sent['frames']} sent", None,
                "0",
                judge(direction.lost == 0)),
            Row(f"{label}: delay added, median", f"{added / 1e6:.2f} ms", "", None,
                f"< {MAX_ADDED_NS / 1e6:g} ms", judge(added < MAX_ADDED_NS)),
            Row(f"{label}: lateness, median, p99, max",
                " ".join(f"{late[key] / 1e6:.2f}" for key in ("median", "p99", "max")) + " ms"),
        ]  # fmt: skip
    bench.details[name] = [vars(direction) for direction in directions]


def measure_both(bench: Bench) -> None:
    radio = Radio("qpsk", 2e6)
    directions, _ = carry(bench, radio, 2, bench.choose_seconds(30, 5))
    _add_rows(bench, "2 Mb/s each way", radio, directions)


def measure_one_way(bench: Bench) -> None:
    for modulation in ("qpsk", "16qam"):
        radio = Radio(modulation, 8e6)
        directions, _ = carry(bench, radio, 1, bench.choose_seconds(30, 5))
        _add_rows(bench, f"8 Mb/s, {modulation}", radio, directions)


def measure_virtual(bench: Bench) -> None:
    radio = Radio("qpsk", 2e6, by="virtual")
    directions, _ = carry(bench, radio, 2, bench.choose_seconds(30, 5))
    _add_rows(bench, "2 Mb/s each way over ZeroMQ", radio, directions)


def measure_lasting(bench: Bench) -> None:
    """Measure losses and the growth of nagi-sdr's memory over ten minutes (one with `--quick`)."""
    radio = Radio("qpsk", 2e6)
    seconds = bench.choose_seconds(600, 60)
    directions, (early, late) = carry(bench, radio, 2, seconds)
    _add_rows(bench, f"{seconds:g} s", radio, directions)
    bench.rows.append(
        Row(f"{seconds:g} s: memory at the end", f"{late / 1e6:.1f} MB", f"{early / 1e6:.1f} MB",
            late / early, f"<= + {GROWTH_BYTES >> 20} MiB", judge(late - early <= GROWTH_BYTES))
    )  # fmt: skip


SUBJECTS: dict[str, Callable[[Bench], None]] = {
    "both": measure_both,
    "one-way": measure_one_way,
    "virtual": measure_virtual,
    "lasting": measure_lasting,
}


def main() -> int:
    parser = make_parser(__doc__ or "", SUBJECTS, seconds="each transfer")
    default = ROOT / ".venv" / "bin" / "nagi-sdr"
    parser.add_argument("--nagi-sdr", type=Path, default=default, help="the program")
    options = parse_arguments(parser, SUBJECTS)
    obstacle = find_obstacle(options.nagi_sdr, options.programs)
    if obstacle is not None:
        cure = "; `make sdr` installs nagi-sdr" if not options.nagi_sdr.exists() else ""
        print(f"bench: {obstacle}{cure}", file=sys.stderr)
        return 2
    about = describe_machine()
    rows: list[Row] = []
    details: dict[str, Any] = {}

    def measure() -> None:
        for name in options.what:
            print(f"== {name}", file=sys.stderr)
            with Lab(options.programs) as lab:
                SUBJECTS[name](
                    Bench(lab, options.nagi_sdr, options.quick, options.seconds, rows, details)
                )

    status = run_benchmark(measure)
    if status == 0 or rows:
        notes = f"Packets of {FRAME_BYTES} bytes with their Ethernet header; {SNR_DB:g} dB."
        status = report_results(rows, notes, options.json, about, details) or status
    return status


if __name__ == "__main__":
    sys.exit(main())
