# SPDX-License-Identifier: Apache-2.0
"""Run the FPGA boards that carry the links of a run in place of nagi-link.

This module writes the boards' records and counters to packets.bin and links.json, the files that
nagi-link writes in other runs.
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
_DRAIN_S = 3.0  # longest wait at the end of a run until no packets are in queues or on links
_LATE_NS = 1_000_000  # a packet that leaves more than this after its due time counts as late
DIRECTIONS = ("forward", "backward")


def locate_board(link: LinkPlan) -> BoardLocation:
    """Return type, address and JTAG cable of the board that carries a link.

    The link must have a board.
    """
    fpga = link.fpga
    assert fpga is not None and fpga.board is not None
    return BoardLocation(fpga.board, fpga.address, fpga.serial, fpga.cable)


def list_board_links(plan: RunPlan) -> list[LinkPlan]:
    """Return the links that boards carry: all links of the run, or none."""
    return [
        link
        for link in plan.carried_by("fpga")
        if link.fpga is not None and link.fpga.by == "board"
    ]


def find_problems(plans: list[RunPlan], images: Optional[str]) -> list[str]:
    """Open the board of each link, and return a message for each link whose board cannot be used.

    Messages contain the key of the experiment file and the cure. If a board runs another build of
    the core than the build in `images`, the board is loaded with the bitstream in `images`.

    Args:
        plans: the runs to check.
        images: directory of the bitstreams, or None if the batch does not name it.
    """
    links = {link.name: link for plan in plans for link in list_board_links(plan)}
    problems = []
    for name, link in links.items():
        if images is None:
            problems.append(f"links.{name}.fpga: the batch names no directory of bitstreams")
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
    """A board that carries one link, with a thread that collects the board's records.

    Args:
        number: position of the link in the plan.
        link: the link.
        images: directory of the bitstreams.
        plan: the run.
        epoch_s: the instant 0 of the link's clock, in seconds since the Unix epoch.

    Attributes:
        problem: the error that ended the thread, or None.
        records: the records collected until now, in the order of the board.
        epoch_error_ns: the largest possible error of the board's clock when it was set.

    Raises:
        BoardError: The board cannot be used.
        Unsupported: The core cannot carry the link.
    """

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
        """Wait until no packets are in queues or on the link, and stop the board.

        The board is also stopped if packets remain after 3 s.

        Raises:
            BoardError: The board does not answer.
            RuntimeError: The thread that collects records has failed.
        """
        self._end_thread()
        if self.problem is not None:
            raise RuntimeError(f"links.{self.name}.fpga: {self.problem}")
        deadline = time.monotonic() + _DRAIN_S
        while time.monotonic() < deadline:
            self.counters = self.board.read_counters()
            if not any(_count_packets_in_transit(counters) for counters in self.counters.values()):
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
        """Return (departure in ns, bytes of packets.bin) of each record."""
        return [
            (record.left_ns, records.encode_packet_record(record, self._number))
            for record in self.records
        ]


def _count_packets_in_transit(counters: dict[str, int]) -> int:
    """Return how many packets of a direction are in the queue or on the link."""
    final_counters = ("delivered", "queue_overflows", "memory_overflows", "channel_losses")
    return counters["offered"] - sum(counters[name] for name in final_counters)


class BoardLinks:
    """The boards that carry all links of a run, one board per link.

    Args:
        images: directory of the bitstreams, or None if the batch does not name it.
        plan: the run.
        epoch_s: the instant 0 of the links' clocks, in seconds since the Unix epoch.
        directory: where links.json and packets.bin are written when the boards are stopped.
        live: whether the topology is live. If so, the caller calls check() once per second. In a
            run, only finish() reports that a board has failed.

    Raises:
        RuntimeError: `images` is None, or a board cannot carry its link.
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
            raise RuntimeError(
                "a board carries a link, but the batch names no directory of bitstreams"
            )
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
        """Do nothing, because the constructor has started all boards."""

    def check(self) -> None:
        """Raise RuntimeError if a board no longer answers the thread that reads its records."""
        for link in self._links:
            if link.problem is not None:
                raise RuntimeError(f"links.{link.name}.fpga: {link.problem}")

    def finish(self) -> None:
        """Wait until no packets are on the links, stop the boards, and write the files.

        Raises:
            RuntimeError: A board does not answer.
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
        """Stop the boards at once, and write no files."""
        self._undo.close()

    def _build_account(self) -> Json:
        """Return the contents of links.json."""
        notices = [
            f"link {link.name}: the board's clock was set with an error of at most "
            f"{link.epoch_error_ns} ns"
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
    """Return the entry of a link in links.json: its two ports and its two directions."""
    directions = {
        name: _describe_direction(
            drop_nulls(getattr(link.link, name)),
            link.counters[name],
            [record for record in link.records if record.is_backward == (name == "backward")],
        )
        for name in DIRECTIONS
    }
    # Port a receives the packets of direction forward. Port b receives those of direction backward.
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
    """Return the entry of a port in links.json.

    Args:
        port: counters of the port at the end of the run.
        port_before: counters of the port at the start of the run.
        incoming: counters of the direction whose packets the port receives.
        outgoing: counters of the direction whose packets the port sends.
    """
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
    """Return the entry of a direction in links.json, from the core's counters and records."""
    # Fate 0 is a delivered packet.
    lateness = sorted(record.late_ns for record in core_records if record.fate == 0)
    return {
        "config": config,
        "changes": [],
        "packets": {
            "offered": counters["offered"],
            "delivered": counters["delivered"],
            # Packets dropped because memory was full are not counted here, because no queue of the
            # plan dropped them. The certificate finds them as unaccounted packets.
            "queue_overflows": counters["queue_overflows"],
            "aqm_drops": 0,
            "channel_losses": counters["channel_losses"],
            "held": _count_packets_in_transit(counters),
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
    """Return quantiles and a histogram of latenesses in ns.

    Args:
        values: The latenesses in ascending order. If there are none, all results are 0 or empty.

    Returns:
        The quantiles, and "histogram" as pairs (largest lateness of the bucket, which is 2^n - 1,
        number of packets).
    """
    buckets: dict[int, int] = {}
    for value in values:
        bucket_max = (1 << value.bit_length()) - 1
        buckets[bucket_max] = buckets.get(bucket_max, 0) + 1

    def quantile(probability: float) -> int:
        return values[min(len(values) - 1, int(probability * len(values)))] if values else 0

    return {
        "count": len(values),
        "median": quantile(0.5),
        "p99": quantile(0.99),
        "max": values[-1] if values else 0,
        "histogram": [list(bucket) for bucket in sorted(buckets.items())],
    }
