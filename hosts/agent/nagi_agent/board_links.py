# SPDX-License-Identifier: Apache-2.0
"""Runs the boards that carry the links of a run, in the place of nagi-link, and leaves the files
that nagi-link leaves: packets.bin from the boards' records, links.json from their counters."""

from __future__ import annotations

import os
import threading
import time
from contextlib import ExitStack, suppress
from typing import Any, Optional

from nagi_fpga import records
from nagi_fpga.board import Board, PortState
from nagi_fpga.configuration import Unsupported
from nagi_fpga.errors import BoardError
from nagi_fpga.loading import Lock, Place, opened, require_links
from nagi_fpga.records import CoreRecord

from nagi_agent.contracts import Json, LinkPlan, RunPlan
from nagi_agent.journal import write_json

ACCOUNT, PACKETS = "links.json", "packets.bin"
_POLL_S = 0.01  # a ring of 512 records holds 50 ms of 10,000 packets a second
_DRAIN_S = 3.0  # until packets under way have left
_LATE_NS = 1_000_000  # as nagi-link counts late events
DIRECTIONS = ("forward", "backward")


def place_of(link: LinkPlan) -> Place:
    fpga = link.fpga
    assert fpga is not None and fpga.board is not None
    return Place(fpga.board, fpga.address, fpga.serial, fpga.cable)


def problems_with(plans: list[RunPlan], images: Optional[str]) -> list[str]:
    """What of the plans' boards cannot be had here, each with its key and cure. Boards that run
    another build are loaded."""
    links = {link.name: link for plan in plans for link in plan.on_boards()}
    found = []
    for name, link in links.items():
        if images is None:
            found.append(f"links.{name}.fpga: the batch names no bitstreams")
            continue
        place = place_of(link)
        try:
            lock = Lock(place)
            try:
                board, _ = opened(place, images)
                try:
                    require_links(board, place)
                finally:
                    board.close()
            finally:
                lock.release()
        except BoardError as error:
            found.append(f"links.{name}.fpga: {error}")
    return found


class _Link:
    """A board that carries one link, and a thread that takes its records while it does."""

    def __init__(
        self, number: int, link: LinkPlan, images: str, plan: RunPlan, epoch: float
    ) -> None:
        self.name, self._number, self.link = link.name, number, link
        self.problem: Optional[str] = None
        self.records: list[CoreRecord] = []
        self._is_over = threading.Event()
        place = place_of(link)
        with ExitStack() as undo:
            lock = Lock(place)
            undo.callback(lock.release)
            self.board: Board
            self.board, self.identity = opened(place, images)
            undo.callback(self.board.close)
            require_links(self.board, place)
            self.ports_before = self.board.ports()
            self.epoch_error_ns = self.board.begin(
                link.id,
                plan.seed,
                {
                    "forward": _without_nulls(link.forward),
                    "backward": _without_nulls(link.backward),
                },
                int(epoch * 1e9),
            )
            self._undo = undo.pop_all()
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def _take(self) -> None:
        try:
            while not self._is_over.is_set():
                self.records += self.board.take_records()
                self._is_over.wait(_POLL_S)
        except BoardError as error:
            self.problem = str(error)

    def finish(self) -> None:
        """Waits for packets under way, and ends. Raises BoardError and RuntimeError."""
        self._end_thread()
        if self.problem is not None:
            raise RuntimeError(f"links.{self.name}.fpga: {self.problem}")
        deadline = time.monotonic() + _DRAIN_S
        while time.monotonic() < deadline:
            self.counters = self.board.counters()
            if not any(_held(each) for each in self.counters.values()):
                break
            time.sleep(_POLL_S)
        self.ports = self.board.ports()
        self.board.end()
        self.records += self.board.take_records()
        self._undo.close()

    def kill(self) -> None:
        self._end_thread()
        with suppress(BoardError):
            self.board.end()
        self._undo.close()

    def _end_thread(self) -> None:
        self._is_over.set()
        self._thread.join()

    def in_file(self) -> list[tuple[int, bytes]]:
        """Records of packets.bin, each with the instant at which its packet left."""
        return [(each.left_ns, records.in_file(each, self._number)) for each in self.records]


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def _held(counters: dict[str, int]) -> int:
    """Packets that waited or were under way."""
    ended = ("delivered", "queue_overflows", "memory_overflows", "channel_losses")
    return counters["offered"] - sum(counters[name] for name in ended)


class BoardLinks:
    """All links of a run, each on a board of its own. As the agent's Emulator has it; files are
    written to `directory` at the end. Raises RuntimeError."""

    def __init__(self, images: Optional[str], plan: RunPlan, epoch: float, directory: str) -> None:
        if images is None:
            raise RuntimeError("a link is on a board, and the batch names no bitstreams")
        self._plan, self._epoch, self._directory = plan, epoch, directory
        self._started = time.time_ns()
        self._links: list[_Link] = []
        with ExitStack() as undo:
            for number, link in enumerate(plan.links):
                try:
                    running = _Link(number, link, images, plan, epoch)
                except (BoardError, Unsupported) as error:
                    raise RuntimeError(f"links.{link.name}.fpga: {error}") from error
                undo.callback(running.kill)
                self._links.append(running)
            self._undo = undo.pop_all()

    def wait_until_ready(self) -> None:
        """They are, or would not have been started."""

    def check(self) -> None:
        for link in self._links:
            if link.problem is not None:
                raise RuntimeError(f"links.{link.name}.fpga: {link.problem}")

    def stop(self) -> None:
        for link in self._links:
            try:
                link.finish()
            except BoardError as error:
                raise RuntimeError(f"links.{link.name}.fpga: {error}") from error
        self._undo.pop_all()
        found = sorted(
            (record for link in self._links for record in link.in_file()), key=lambda each: each[0]
        )
        with open(os.path.join(self._directory, PACKETS), "wb") as file:
            file.write(records.HEADER)
            file.write(b"".join(record for _, record in found))
        write_json(os.path.join(self._directory, ACCOUNT), self._account())

    def kill(self) -> None:
        self._undo.close()

    def _account(self) -> Json:
        notices = [
            f"link {link.name}: the board's clock was set to within {link.epoch_error_ns} ns"
            for link in self._links
        ]
        builds = sorted({f"{link.identity.build_id:08x}" for link in self._links})
        return {
            "schema_version": 1,
            "executable": ", ".join(place_of(link.link).kind for link in self._links),
            "version": f"build {', '.join(builds)}",
            "scheduling": "gateware",
            "memory_locked": True,
            "cpu_pinned": None,
            "spin_ns": 0,
            "complete": True,
            "seed": self._plan.seed,
            "epoch_realtime_ns": int(self._epoch * 1e9),
            "started_realtime_ns": self._started,
            "ended_realtime_ns": time.time_ns(),
            "cpu": {"user_s": 0.0, "system_s": 0.0, "max_resident_bytes": 0},
            "records_lost": sum(
                counters["lost_records"]
                for link in self._links
                for counters in link.counters.values()
            ),
            "notices": notices,
            "links": [_link_account(link) for link in self._links],
        }


def _link_account(link: _Link) -> Json:
    directions = {
        name: _direction_account(
            _without_nulls(getattr(link.link, name)),
            link.counters[name],
            [each for each in link.records if each.is_backward == (name == "backward")],
        )
        for name in DIRECTIONS
    }
    # What comes in at port a goes forward.
    ports = {
        port.name: _port_account(port, before, link.counters[came], link.counters[went])
        for port, before, came, went in zip(
            link.ports, link.ports_before, DIRECTIONS, reversed(DIRECTIONS)
        )
    }
    return {"name": link.name, "id": link.link.id, **ports, **directions}


def _port_account(
    port: PortState, before: PortState, came: dict[str, int], went: dict[str, int]
) -> Json:
    return {
        "interface": f"port {port.name} of the board",
        "io": "gateware",
        "received": came["offered"] + came["bad_frames"],
        "sent": went["delivered"],
        "socket_drops": (port.overflows - before.overflows) % (1 << 32),
        "oversized": 0,
        "checksum_missing": 0,
        "send_failures": (port.underruns - before.underruns) % (1 << 32),
        "offloads_switched_off": [],
    }


def _direction_account(config: Json, counters: dict[str, int], found: list[CoreRecord]) -> Json:
    late = sorted(each.late_ns for each in found if each.fate == 0)
    return {
        "config": config,
        "changes": [],
        "packets": {
            "offered": counters["offered"],
            "delivered": counters["delivered"],
            # Packets that found no room in memory were dropped by no queue of the plan's: the
            # certificate is to find them as such.
            "queue_overflows": counters["queue_overflows"],
            "aqm_drops": 0,
            "channel_losses": counters["channel_losses"],
            "held": _held(counters),
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
        "arrival_lateness_ns": _lateness([]),
        "transit_error_ns": _lateness(late),
        "late_events": sum(each > _LATE_NS for each in late),
    }


def _lateness(values: list[int]) -> Json:
    """Of sorted values, with buckets that end at powers of two less one."""
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
        "histogram": [list(each) for each in sorted(buckets.items())],
    }
