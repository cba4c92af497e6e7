# SPDX-License-Identifier: Apache-2.0
"""Measure speed and memory of the capture reader, and compare it with tcptrace, tcpdump and tshark.

All programs read a capture of one long connection, headers only (make_capture.py), which is in the
page cache. They take turns. Each program reads the capture three times, and its best time counts.
tcptrace and nagi compute all metrics of the connection, tcpdump copies the packets to /dev/null,
and tshark finds retransmissions and RTTs (in a smaller capture, because tshark is slow). nagi's
time is that of one scan(), without the start of Python and the import of pandas. A second, large
capture shows that the memory in use does not grow with the file.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "link-emulator" / "bench"))

import make_capture
from bench_report import Row, describe_machine, format_table, judge, write_results
from nagi_contracts.paths import executable

ROUNDS = 3
TSHARK_SHARE = 20  # tshark's capture has 1 / TSHARK_SHARE of the packets
REQUIRED_SPEEDUP = 2.0  # required packets per second / packets per second of tcptrace
MAX_MEMORY_MB = 100.0  # largest memory that is permitted
PACKET_BYTES = 86  # bytes per packet in the captures, with record headers

SCAN = """
import sys, time
from pathlib import Path
if sys.argv[2] == "tables":
    from nagi_captures.capture import scan
else:
    import nagi_captures_native
    scan = lambda path: nagi_captures_native.scan(path.encode(), None, None, 0, False, [], False)
began = time.perf_counter()
scan(sys.argv[1])
took = time.perf_counter() - began
status = Path("/proc/self/status").read_text()
print(took, status.split("VmHWM:")[1].split()[0])
"""


@dataclass
class Subject:
    """A program that reads captures, and its best time."""

    name: str
    packets: int  # in the capture that it reads
    run: Callable[[], float]  # reads the capture once, and returns the time in seconds
    best_s: float = float("inf")

    def rate(self) -> float:
        """Return the packets read per second."""
        return self.packets / self.best_s


def measure_scan(path: Path, how: str = "tables") -> tuple[float, float]:
    """Scan a capture in a new process. Return (time in s, peak memory in MB).

    Args:
        path: The capture.
        how: "tables" for a scan with pandas, "reader" for a scan without it.
    """
    done = subprocess.run(
        [sys.executable, "-c", SCAN, str(path), how], capture_output=True, text=True, check=True
    )
    seconds, kib = done.stdout.split()
    return float(seconds), int(kib) * 1024 / 1e6


def measure_command(*command: str) -> float:
    """Execute a command, discard its output, and return its time in seconds."""
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def compare_scan(folder: Path, packets: int) -> tuple[list[Row], dict[str, float]]:
    """Compare the packets per second of one scan() with those of other programs.

    For each program that is not installed, print to standard output that it is left out. Return the
    rows of the report, and program -> packets per second.

    Args:
        folder: The directory for the captures, which are removed at the end.
        packets: The approximate number of packets in the capture.
    """
    path, part = folder / "long.pcap", folder / "part.pcap"
    packets = make_capture.write(path, packets)
    tshark_packets = make_capture.write(part, packets // TSHARK_SHARE)
    path.read_bytes()  # now it is in the page cache
    tshark_fields = ["-e", "tcp.analysis.ack_rtt", "-e", "tcp.analysis.retransmission"]
    commands = {
        "tcptrace -l -r": (packets, ["tcptrace", "-l", "-r", "-n", str(path)]),
        "tcpdump -w": (packets, ["tcpdump", "-r", str(path), "-w", "/dev/null"]),
        "tshark": (
            tshark_packets,
            ["tshark", "-n", "-r", str(part), "-T", "fields", *tshark_fields],
        ),
    }
    ours = Subject("scan()", packets, lambda: measure_scan(path)[0])
    subjects = [ours]
    for name, (count, command) in commands.items():
        if shutil.which(command[0]) is None:
            print(f"{command[0]} is not installed, so the comparison leaves it out")
            continue
        subjects.append(Subject(name, count, lambda command=command: measure_command(*command)))
    for _ in range(ROUNDS):
        for subject in subjects:
            subject.best_s = min(subject.best_s, subject.run())
    rows = [Row("one long flow, all metrics", format_rate(ours.rate()))]
    for subject in subjects[1:]:
        ratio = ours.rate() / subject.rate()
        required = REQUIRED_SPEEDUP if subject.name.startswith("tcptrace") else None
        rows.append(
            Row(
                f"  against {subject.name}",
                format_rate(ours.rate()),
                format_rate(subject.rate()),
                ratio,
                f">= {required:g}" if required else "",
                judge(ratio >= required) if required else "-",
            )
        )
    path.unlink()
    part.unlink()
    return rows, {subject.name: subject.rate() for subject in subjects}


BULK_BYTES = 1_800_000_000
CONNECTIONS = 112_000
# Required ratios of nagi's speed to the speed of tcptrace.
REQUIRED_BULK_SPEEDUP = 5.0
REQUIRED_CONNECTIONS_SPEEDUP = 3.0


def compare_processes(folder: Path) -> tuple[list[Row], dict[str, float]]:
    """Measure the whole command `nagi metrics`, and compare it with tcptrace if installed.

    One capture has one connection with many bytes, the other capture many connections. Return the
    rows of the report, and name -> time in s or peak memory in MB.
    """
    rows, details = [], {}
    cases: list[tuple[str, Callable[[Path], int], float]] = [
        ("bulk", lambda path: make_capture.write_bulk(path, BULK_BYTES), REQUIRED_BULK_SPEEDUP),
        (
            "connections",
            lambda path: make_capture.write_connections(path, CONNECTIONS),
            REQUIRED_CONNECTIONS_SPEEDUP,
        ),
    ]
    for name, make, required in cases:
        path = folder / f"{name}.pcap"
        packets = make(path)
        ours = Subject(
            "nagi metrics",
            packets,
            lambda path=path: measure_command(str(executable("nagi")), "metrics", str(path)),
        )
        subjects = [ours]
        if shutil.which("tcptrace"):
            command = ["tcptrace", "-l", "-r", "-n", str(path)]
            subjects.append(
                Subject("tcptrace", packets, lambda command=command: measure_command(*command))
            )
        for _ in range(ROUNDS):
            for subject in subjects:
                subject.best_s = min(subject.best_s, subject.run())
        details |= {f"{name}_{each.name}_s": each.best_s for each in subjects}
        details[f"{name}_peak_mb"] = measure_scan(path, "reader")[1]
        size = path.stat().st_size / 1e9
        for theirs in subjects[1:]:
            ratio = ours.rate() / theirs.rate()
            rows.append(
                Row(
                    f"whole process, {name}: {size:.2f} GB",
                    f"{ours.best_s:.2f} s, {details[f'{name}_peak_mb']:.0f} MB",
                    f"{theirs.best_s:.2f} s",
                    ratio,
                    f">= {required:g}",
                    judge(ratio >= required),
                )
            )
        path.unlink()
    return rows, details


def compare_memory(folder: Path, gigabytes: float) -> tuple[list[Row], dict[str, float]]:
    """Compare the peak memory for a large capture with the peak memory for 10 packets.

    Return the rows of the report, and name -> measured value.

    Args:
        folder: The directory for the captures, which are removed at the end.
        gigabytes: The size of the large capture, which is smaller if the disk has less space.
    """
    size = min(gigabytes * 1e9, shutil.disk_usage(folder).free * 0.9)
    small, large = folder / "small.pcap", folder / "large.pcap"
    make_capture.write(small, 10)
    make_capture.write(large, int(size / PACKET_BYTES))
    size = large.stat().st_size
    rows, details = [], {"large_file_bytes": float(size)}
    for how, label in (("reader", "reader without pandas"), ("tables", "scan() with pandas")):
        small_peak = measure_scan(small, how)[1]
        seconds, peak = measure_scan(large, how)
        details |= {f"{how}_peak_mb": peak, f"{how}_peak_mb_small": small_peak, f"{how}_s": seconds}
        is_limited = how == "reader"
        rows.append(
            Row(
                f"memory, {label}: {size / 1e9:.1f} GB in {seconds:.0f} s",
                f"{peak:.0f} MB",
                f"{small_peak:.0f} MB for 10 packets",
                peak / small_peak,
                f"< {MAX_MEMORY_MB:.0f} MB" if is_limited else "",
                judge(peak < MAX_MEMORY_MB) if is_limited else "-",
            )
        )
    small.unlink()
    large.unlink()
    return rows, details


def format_rate(rate: float) -> str:
    return f"{rate / 1e6:.2f} M/s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--packets", type=int, default=5_000_000, help="number of packets of the long connection"
    )
    parser.add_argument(
        "--large-gb", type=float, default=4, help="size of the large capture in GB; 0: none"
    )
    parser.add_argument("--folder", type=Path, help="directory for the captures (default: /tmp)")
    parser.add_argument("--json", type=Path, help="file for the results in JSON")
    arguments = parser.parse_args()
    about = {"machine": describe_machine()}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        rows, details = compare_scan(Path(name), arguments.packets)
        more, times = compare_processes(Path(name))
        rows += more
        details |= times
        if arguments.large_gb > 0:
            more, peaks = compare_memory(Path(name), arguments.large_gb)
            rows += more
            details |= peaks
    print(format_table(rows))
    if arguments.json:
        write_results(arguments.json, about, rows, details)


if __name__ == "__main__":
    main()
