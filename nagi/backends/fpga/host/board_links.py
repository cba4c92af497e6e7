# SPDX-License-Identifier: Apache-2.0
"""Run the FPGA boards that carry the links of a run in place of nagi-link.

The boards' records and counters are written to the files that nagi-link writes: packets.bin and
links.json.
"""

from __future__ import annotations

import math
import os
import threading
import time
from contextlib import ExitStack, suppress
from typing import Optional

from nagi_agent.contracts import Json, LinkPlan, RunPlan
from nagi_agent.emulator import ACCOUNT, LIVE_CHECK_INTERVAL_S, PACKETS, drop_nulls
from nagi_agent.journal import write_json
from nagi_fpga import records
from nagi_fpga.board import Board, PortState
from nagi_fpga.configuration import Unsupported
from nagi_fpga.errors import BoardError
from nagi_fpga.loading import BoardLocation, Lock, open_board, require_links
from nagi_fpga.records import CoreRecord

_POLL_S = 0.01  # the board's ring of 512 records fills in 50 ms at 10,000 packets per second
_DRAIN_S = 3.0  # time for packets on the link to leave it
_LATE_NS = 1_000_000  # nagi-link counts events as late from here on, too
DIRECTIONS = ("forward", "backward")


def locate_board(link: LinkPlan) -> BoardLocation:
    """Return which board carries a link, and how this host reaches the board."""
    fpga = link.fpga
    assert fpga is not None and fpga.board is not None
    return BoardLocation(fpga.board, fpga.address, fpga.serial, fpga.cable)


def list_on_boards(plan: RunPlan) -> list[LinkPlan]:
    """Return the links that boards carry: all links of the run, or none."""
    return [
        link
        for link in plan.carried_by("fpga")
        if link.fpga is not None and link.fpga.by == "board"
    ]


def find_problems(plans: list[RunPlan], images: Optional[str]) -> list[str]:
    """Return why boards of the plans cannot be used, one text per link, with key and cure.

    A board that runs another build is loaded with the right bitstream.

    Args:
        plans: the runs to check.
        images: directory of the bitstreams, or None if the batch names none.
    """
    links = {link.name: link for plan in plans for link in list_on_boards(plan)}
    problems = []
    for name, link in links.items():
        if images is None:
            problems.append(f"links.{name}.fpga: the batch names no bitstreams")
            continue
        location = locate_board(link)
        try:
            lock = Lock(location)
            try:
                board, _ = open_board(location, images)
                try:
                    require_links(board, location)
                finally:
                    board.close()
            finally:
                lock.release()
        except BoardError as error:
            problems.append(f"links.{name}.fpga: {error}")
    return problems


class _BoardLink:
    """A board that carries one link, with a thread that collects the board's records."""

    def __init__(
        self, number: int, link: LinkPlan, images: str, plan: RunPlan, epoch_s: float
    ) -> None:
        self.name, self._number, self.link = link.name, number, link
        self.problem: Optional[str] = None
        self.records: list[CoreRecord] = []
        self._must_end = threading.Event()
        location = locate_board(link)
        with ExitStack() as undo:
            lock = Lock(location)
            undo.callback(lock.release)
            self.board: Board
            self.board, self.identity = open_board(location, images)
            undo.callback(self.board.close)
            require_links(self.board, location)
            self.ports_before = self.board.read_ports()
            self.epoch_error_ns = self.board.start(
                link.id,
                plan.seed,
                {
                    "forward": drop_nulls(link.forward),
                    "backward": drop_nulls(link.backward),
                },
                int(epoch_s * 1e9),
            )
            self._undo = undo.pop_all()
        self._thread = threading.Thread(target=self._collect_records, daemon=True)
        self._thread.start()

    def _collect_records(self) -> None:
        try:
            while not self._must_end.is_set():
                self.records += self.board.take_records()
                self._must_end.wait(_POLL_S)
        except BoardError as error:
            self.problem = str(error)

    def finish(self) -> None:
        """Wait until the packets on the link have left it, and stop the board.

        Raises:
            BoardError: the board does not answer.
            RuntimeError: the thread that collects records has failed.
        """
        self._end_thread()
        if self.problem is not None:
            raise RuntimeError(f"links.{self.name}.fpga: {self.problem}")
        deadline = time.monotonic() + _DRAIN_S
        while time.monotonic() < deadline:
            self.counters = self.board.read_counters()
            if not any(_count_held(counters) for counters in self.counters.values()):
                break
            time.sleep(_POLL_S)
        self.ports = self.board.read_ports()
        self.board.stop()
        self.records += self.board.take_records()
        self._undo.close()

    def kill(self) -> None:
        self._end_thread()
        with suppress(BoardError):
            self.board.stop()
        self._undo.close()

    def _end_thread(self) -> None:
        self._must_end.set()
        self._thread.join()

    def encode_records(self) -> list[tuple[int, bytes]]:
        """Return records for packets.bin, each as (departure in ns, bytes)."""
        return [
            (record.left_ns, records.encode_packet_record(record, self._number))
            for record in self.records
        ]


def _count_held(counters: dict[str, int]) -> int:
    """Return how many packets are in the queue or on the link."""
    final_counters = ("delivered", "queue_overflows", "memory_overflows", "channel_losses")
    return counters["offered"] - sum(counters[name] for name in final_counters)


class BoardLinks:
    """All links of a run, one board per link.

    Args:
        images: directory of the bitstreams, or None if the batch names none.
        plan: the run.
        epoch_s: the instant 0 of the links' clocks, in seconds since the Unix epoch.
        directory: gets links.json and packets.bin when the boards are stopped.
        live: whether the topology is live: check() is then to be called. In a run, finish() raises
            the error if a board has failed.

    Raises:
        RuntimeError: there are no bitstreams, or a board cannot carry its link.
    """

    def __init__(
        self,
        images: Optional[str],
        plan: RunPlan,
        epoch_s: float,
        directory: str,
        *,
        live: bool = False,
    ) -> None:
        if images is None:
            raise RuntimeError("a link is on a board, and the batch names no bitstreams")
        self.check_interval_s = LIVE_CHECK_INTERVAL_S if live else math.inf
        self._plan, self._epoch_s, self._directory = plan, epoch_s, directory
        self._started_ns = time.time_ns()
        self._links: list[_BoardLink] = []
        with ExitStack() as undo:
            for number, link in enumerate(plan.links):
                try:
                    board_link = _BoardLink(number, link, images, plan, epoch_s)
                except (BoardError, Unsupported) as error:
                    raise RuntimeError(f"links.{link.name}.fpga: {error}") from error
                undo.callback(board_link.kill)
                self._links.append(board_link)
            self._undo = undo.pop_all()

    def begin(self) -> None:
        """Return at once: the constructor has already started all boards."""

    def check(self) -> None:
        """Raise RuntimeError if a board does not answer."""
        for link in self._links:
            if link.problem is not None:
                raise RuntimeError(f"links.{link.name}.fpga: {link.problem}")

    def finish(self) -> None:
        """Wait until the packets on the links have left, stop the boards, and write the files.

        Raises:
            RuntimeError: a board does not answer.
        """
        for link in self._links:
            try:
                link.finish()
            except BoardError as error:
                raise RuntimeError(f"links.{link.name}.fpga: {error}") from error
        self._undo.pop_all()
        timed_records = sorted(
            (record for link in self._links for record in link.encode_records()),
            key=lambda record: record[0],
        )
        with open(os.path.join(self._directory, PACKETS), "wb") as file:
            file.write(records.HEADER)
            file.write(b"".join(record for _, record in timed_records))
        write_json(os.path.join(self._directory, ACCOUNT), self._build_account())

    def kill(self) -> None:
        """Stop the boards at once, without files."""
        self._undo.close()

    def _build_account(self) -> Json:
        notices = [
            f"link {link.name}: the board's clock was set to within {link.epoch_error_ns} ns"
            for link in self._links
        ]
        builds = sorted({f"{link.identity.build_id:08x}" for link in self._links})
        return {
            "schema_version": 1,
            "executable": ", ".join(locate_board(link.link).kind for link in self._links),
            "version": f"build {', '.join(builds)}",
            "scheduling": "gateware",
            "memory_locked": True,
            "cpu_pinned": None,
            "spin_ns": 0,
            "complete": True,
            "seed": self._plan.seed,
            "epoch_realtime_ns": int(self._epoch_s * 1e9),
            "started_realtime_ns": self._started_ns,
            "ended_realtime_ns": time.time_ns(),
            "cpu": {"user_s": 0.0, "system_s": 0.0, "max_resident_bytes": 0},
            "records_lost": sum(
                counters["lost_records"]
                for link in self._links
                for counters in link.counters.values()
            ),
            "notices": notices,
            "links": [_describe_link(link) for link in self._links],
        }


def _describe_link(link: _BoardLink) -> Json:
    directions = {
        name: _describe_direction(
            drop_nulls(getattr(link.link, name)),
            link.counters[name],
            [record for record in link.records if record.is_backward == (name == "backward")],
        )
        for name in DIRECTIONS
    }
    # Packets that port a receives go forward; those that port b receives go backward.
    ports = {
        port.name: _describe_port(
            port, port_before, link.counters[incoming], link.counters[outgoing]
        )
        for port, port_before, incoming, outgoing in zip(
            link.ports, link.ports_before, DIRECTIONS, reversed(DIRECTIONS)
        )
    }
    return {"name": link.name, "id": link.link.id, **ports, **directions}


def _describe_port(
    port: PortState, port_before: PortState, incoming: dict[str, int], outgoing: dict[str, int]
) -> Json:
    return {
        "interface": f"port {port.name} of the board",
        "io": "gateware",
        "received": incoming["offered"] + incoming["bad_frames"],
        "sent": outgoing["delivered"],
        "socket_drops": (port.overflows - port_before.overflows) % (1 << 32),
        "oversized": 0,
        "checksum_missing": 0,
        "send_failures": (port.underruns - port_before.underruns) % (1 << 32),
        "offloads_switched_off": [],
    }


def _describe_direction(
    config: Json, counters: dict[str, int], core_records: list[CoreRecord]
) -> Json:
    lateness = sorted(record.late_ns for record in core_records if record.fate == 0)
    return {
        "config": config,
        "changes": [],
        "packets": {
            "offered": counters["offered"],
            "delivered": counters["delivered"],
            # Packets dropped for lack of memory are left out: no queue of the plan dropped them,
            # and the certificate must be able to find them.
            "queue_overflows": counters["queue_overflows"],
            "aqm_drops": 0,
            "channel_losses": counters["channel_losses"],
            "held": _count_held(counters),
            "marked": counters["marked"],
            "corrupted": 0,
            "duplicated": 0,
            "reordered": 0,
        },
        "bytes": {"offered": counters["offered_bytes"], "delivered": counters["delivered_bytes"]},
        "server": {
            "packets": counters["transmitted"],
            "bytes": counters["transmitted_bytes"],
            "busy_ns": counters["transmitting_ns"],
        },
        "max_waiting_packets": counters["max_waiting"],
        "arrival_lateness_ns": _summarise_lateness([]),
        "transit_error_ns": _summarise_lateness(lateness),
        "late_events": sum(late_ns > _LATE_NS for late_ns in lateness),
    }


def _summarise_lateness(values: list[int]) -> Json:
    """Return quantiles and a histogram of sorted values; buckets end at powers of two minus 1."""
    buckets: dict[int, int] = {}
    for value in values:
        top = (1 << value.bit_length()) - 1
        buckets[top] = buckets.get(top, 0) + 1

    def quantile(share: float) -> int:
        return values[min(len(values) - 1, int(share * len(values)))] if values else 0

    return {
        "count": len(values),
        "median": quantile(0.5),
        "p99": quantile(0.99),
        "max": values[-1] if values else 0,
        "histogram": [list(bucket) for bucket in sorted(buckets.items())],
    }
