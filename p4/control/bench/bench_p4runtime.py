# SPDX-License-Identifier: Apache-2.0
"""Measures nagi-p4runtime with nagi-switch on this machine: `make bench-p4runtime`.

    bench_p4runtime.py [writes|reads ...] [--quick] [--json FILE] [--seconds N]

writes  how many Writes a client completes per second, and how many packets are lost meanwhile. Each
        Write has one entry. Packets pass at half the highest rate without loss. The client has at
        most 16 unanswered Writes
reads   how long it takes to write 100,000 routes in one batch, and to read them

Exit status: 0 all targets met, 1 some targets missed, 2 the benchmark cannot run here.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
for _folder in ("link-emulator/bench", "p4/switch/bench"):
    sys.path.insert(0, str(ROOT / _folder))

import grpc  # noqa: E402
from bench_command import find_obstacle, make_parser, parse_arguments, run_benchmark  # noqa: E402
from bench_lab import BenchError, Lab, run_count_trial  # noqa: E402
from bench_report import Row, describe_machine, judge, report_results  # noqa: E402
from bench_throughput import BURST, find_throughput, print_progress  # noqa: E402
from google.protobuf import text_format  # noqa: E402
from nagi_p4runtime.protos import p4i, p4r, p4r_grpc  # noqa: E402
from switch_subjects import ROUTES, Bench, NagiSwitch  # noqa: E402

EDGE_INFO = ROOT / "p4" / "edge.p4info.txtpb"
ENTRIES = 100_000
MIN_WRITES_PER_S = 1000.0
MAX_READ_S = 5.0
WINDOW = 16  # maximum number of unanswered Writes
MAX_TRIALS = (
    3  # the trial is repeated if other programs had the processor, so that packets were lost
)
START_S = 30.0

NOTES = """\
nagi-switch runs on processor 1, with SCHED_FIFO. The source of packets, which never sleeps, the
server and the client share the other processors at equal priority (nice -20). Server and client
are written in Python. Packets are 1,000 bytes long and take one of 1,000 routes."""


class Client:
    """The primary client of a P4Runtime server, which writes routes of edge.p4.

    Args:
        address: Address of the server.
    """

    def __init__(self, address: str) -> None:
        options = [("grpc.max_send_message_length", -1)]
        self._channel = grpc.insecure_channel(address, options)
        grpc.channel_ready_future(self._channel).result(timeout=START_S)
        self._stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._open = True
        self._stream = self._stub.StreamChannel(self._arbitration())
        if next(self._stream).arbitration.status.code != 0:
            raise BenchError("the client is not primary")
        info = text_format.Parse(EDGE_INFO.read_text(), p4i.P4Info())
        (table,) = [t for t in info.tables if t.preamble.name == "ingress.ipv4_routes"]
        (action,) = [a for a in info.actions if a.preamble.name == "ingress.forward"]
        self._table, self._action = table.preamble.id, action.preamble.id
        values = {"port": b"\2", "mtu": b"\x05\xdc"}
        self._params = [
            p4r.Action.Param(param_id=each.id, value=values.get(each.name, b"\2\0\0\0\0\x0b"))
            for each in action.params
        ]

    def close(self) -> None:
        self._open = False
        self._stream.cancel()
        self._channel.close()

    def _arbitration(self) -> Iterator[p4r.StreamMessageRequest]:
        update = p4r.MasterArbitrationUpdate(device_id=1, election_id=p4r.Uint128(low=1))
        yield p4r.StreamMessageRequest(arbitration=update)
        while self._open:
            time.sleep(0.1)

    def make_insertion(self, number: int) -> p4r.Update:
        """Return the update that inserts route number `number`. No packet takes these routes."""
        update = p4r.Update(type=p4r.Update.INSERT)
        entry = update.entity.table_entry
        entry.table_id = self._table
        match = entry.match.add()
        match.field_id = 1
        match.lpm.value = ((172 << 24) + number).to_bytes(4, "big")
        match.lpm.prefix_len = 32
        entry.action.action.action_id = self._action
        entry.action.action.params.extend(self._params)
        return update

    def make_request(self, *updates: p4r.Update) -> p4r.WriteRequest:
        return p4r.WriteRequest(
            device_id=1,
            election_id=p4r.Uint128(low=1),
            updates=updates,
            atomicity=p4r.WriteRequest.DATAPLANE_ATOMIC,
        )

    def write(self, *updates: p4r.Update) -> None:
        self._stub.Write(self.make_request(*updates))

    def write_for(self, seconds: float) -> int:
        """Write routes for `seconds`, and return how many Writes were answered in this time."""
        unanswered: deque[Any] = deque()
        written = 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            request = self.make_request(self.make_insertion(written))
            unanswered.append(self._stub.Write.future(request))
            written += 1
            if len(unanswered) == WINDOW:
                unanswered.popleft().result()
        late_answers = len(unanswered)
        for write in unanswered:
            write.result()
        return written - late_answers

    def count_routes(self) -> int:
        """Read all routes, and return their number."""
        entity = p4r.Entity(table_entry=p4r.TableEntry(table_id=self._table))
        request = p4r.ReadRequest(device_id=1, entities=[entity])
        return sum(len(response.entities) for response in self._stub.Read(request))


@contextmanager
def serve(switch: NagiSwitch) -> Iterator[Client]:
    """Run nagi-p4runtime for a running nagi-switch, and yield its primary client."""
    with tempfile.TemporaryDirectory(prefix="nagi-bench-") as directory:
        address = f"unix:{directory}/sock"
        program = str(Path(sys.executable).with_name("nagi-p4runtime"))
        options = ["--switch", f"nagi:{switch.socket}", "--listen", address]
        server = subprocess.Popen([program, *options, "--p4info", str(EDGE_INFO)])
        try:
            client = Client(address)
            try:
                yield client
            finally:
                client.close()
        finally:
            server.terminate()
            server.wait()


def measure_writes(bench: Bench) -> None:
    """Measure Writes per second while packets pass at half the highest rate without loss.

    Also count the packets that are lost meanwhile. If other programs had the processor, so that
    packets were lost, repeat the trial (at most MAX_TRIALS trials), and report the last one.

    Raises:
        BenchError: nagi-switch lost packets at every rate.
    """
    switch = NagiSwitch(bench, ROUTES, "af_xdp")
    with switch:
        load = find_throughput(bench.lab, switch, bench.choose_length(2, 1))
    rate = load.lossless / 2
    if rate == 0:
        raise BenchError("nagi-switch lost packets at every rate: there is no load for the Writes")
    seconds = bench.choose_length(10, 3)
    trials = []
    for _ in range(MAX_TRIALS):
        print_progress(f"writes: {rate / 1e3:.0f} kpps for {seconds:g} s")
        with switch, serve(switch) as client, ThreadPoolExecutor() as pool:
            sent = pool.submit(run_count_trial, bench.lab, switch.pid, rate, BURST, seconds)
            time.sleep(0.5)  # until packets pass
            writes = client.write_for(seconds - 1) / (seconds - 1)
            trial = sent.result()
        trials.append({"writes": writes, "load": trial.to_json()})
        if not (trial.lost and trial.held_up):
            break
    bench.rows.append(
        Row(
            f"Writes per second, while {trial.offered_rate / 1e3:.0f} kpps pass",
            f"{writes:.0f}",
            f"{load.lossless / 1e3:.0f} kpps without loss",
            target=f">= {MIN_WRITES_PER_S:.0f}",
            verdict=judge(writes >= MIN_WRITES_PER_S),
        )
    )
    bench.rows.append(
        Row(
            f"  packets lost meanwhile, of {trial.source['frames']}",
            f"{trial.lost}{' (others had the processor)' if trial.lost and trial.held_up else ''}",
            target="0",
            verdict=judge(trial.lost == 0),
        )
    )
    bench.details["writes"] = trials


def measure_reads(bench: Bench) -> None:
    """Measure how long it takes to write ENTRIES routes in one batch, and to read them.

    Raises:
        BenchError: The server returned another number of routes.
    """
    print_progress(f"reads: {ENTRIES} routes")
    switch = NagiSwitch(bench, 1, "af_xdp")
    with switch, serve(switch) as client:
        routes = [client.make_insertion(number) for number in range(ENTRIES - 1)]
        started = time.monotonic()
        client.write(*routes)
        written_s = time.monotonic() - started
        started = time.monotonic()
        count = client.count_routes()
        read_s = time.monotonic() - started
    if count != ENTRIES:
        raise BenchError(f"{count} routes were read, but {ENTRIES} were written")
    bench.rows.append(Row(f"{ENTRIES} routes, written in one batch", f"{written_s:.2f} s"))
    bench.rows.append(
        Row(
            f"{ENTRIES} routes, read",
            f"{read_s:.2f} s",
            target=f"< {MAX_READ_S:g} s",
            verdict=judge(read_s < MAX_READ_S),
        )
    )
    bench.details["reads"] = {"written_s": written_s, "read_s": read_s}


SUBJECTS = {"writes": measure_writes, "reads": measure_reads}


def read_options() -> argparse.Namespace:
    parser = make_parser(__doc__ or "", SUBJECTS, seconds="a trial")
    parser.add_argument(
        "--nagi-switch", type=Path, default=Path(sys.prefix) / "bin" / "nagi-switch", metavar="FILE"
    )
    return parse_arguments(parser, SUBJECTS)


def main() -> int:
    """Run the benchmark, print the report, and return the exit status: see the module."""
    options = read_options()
    reason = find_obstacle(options.nagi_switch, options.programs)
    if reason is not None:
        print(f"bench: {reason}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    details: dict[str, Any] = {}

    def measure() -> None:
        with Lab(options.programs.resolve()) as lab:
            bench = Bench(
                options.quick,
                options.seconds,
                lab,
                options.nagi_switch.resolve(),
                ROOT / "p4" / "edge.json",
                Path(),
                None,
                rows,
                details,
            )
            for subject in options.what:
                SUBJECTS[subject](bench)

    os.nice(-20)
    if status := run_benchmark(measure):
        return status
    about = {
        "machine": describe_machine(),
        "nagi_switch": str(options.nagi_switch),
        "quick": options.quick,
    }
    return report_results(rows, NOTES, options.json, about, details)


if __name__ == "__main__":
    sys.exit(main())
