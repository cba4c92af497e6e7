# SPDX-License-Identifier: Apache-2.0
"""What goes over StreamChannels: arbitration, packets, digests, idle timeouts, errors.

A thread asks the switch for events every few milliseconds while there is a primary client. What
happened while there was none is thrown away. A client that does not keep up loses packets and
digests, never notices of arbitration.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from nagi_p4.operations import UNSUPPORTED, Refused
from nagi_p4.switch import Switch

from nagi_p4runtime import errors, keys, packet_io
from nagi_p4runtime.arbitration import Arbitration, Client, Notice
from nagi_p4runtime.device import Device, Pipeline
from nagi_p4runtime.digests import DigestLists
from nagi_p4runtime.errors import Code, P4Error
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.roles import Rights

_log = logging.getLogger(__name__)

_EVERY_S = 0.004
_ROOM = 10_000  # messages that may wait for a client
_FRESH_S = 10.0  # after which a primary is told that it is, come what may
MAX_STREAMS = 32  # each keeps a thread of the server


class Stream(Client):
    """A client, and the messages that wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: queue.SimpleQueue[p4r.StreamMessageResponse | P4Error | None] = (
            queue.SimpleQueue()
        )

    def send(self, message: p4r.StreamMessageResponse) -> None:
        self._waiting.put(message)

    def send_if_room(self, message: p4r.StreamMessageResponse) -> bool:
        if self._waiting.qsize() >= _ROOM:
            return False
        self._waiting.put(message)
        return True

    def end(self, error: P4Error | None = None) -> None:
        """After what waits."""
        self._waiting.put(error)

    def responses(self) -> Iterator[p4r.StreamMessageResponse]:
        """Until the end. Raises P4Error if it is one."""
        while True:
            message = self._waiting.get()
            if message is None:
                return
            if isinstance(message, P4Error):
                raise message
            yield message


class Streams:
    """All of a device. `events`: a connection to the switch for the thread alone. `gone`: called
    when the switch is gone."""

    def __init__(
        self,
        device: Device,
        arbitration: Arbitration,
        switch: Switch,
        events: Switch,
        gone: Callable[[OSError], None],
    ) -> None:
        self._device = device
        self._arbitration = arbitration
        self._switch = switch
        self._events = events
        self._gone = gone
        self._lock = threading.Lock()  # of arbitration and lists
        self._lists: tuple[Pipeline, DigestLists] | None = None
        self._open: set[Stream] = set()
        self._awake = threading.Event()
        self._fresh = threading.Event()  # what happened before there was a primary is gone
        self._ended = False
        self._thread = threading.Thread(target=self._watch, name="events", daemon=True)
        self._thread.start()

    def open(self) -> Stream:
        """Raises P4Error if there are too many."""
        stream = Stream()
        with self._lock:
            if len(self._open) >= MAX_STREAMS:
                raise P4Error(
                    Code.RESOURCE_EXHAUSTED, f"there are {MAX_STREAMS} streams; end one of them"
                )
            self._open.add(stream)
        return stream

    def close(self, stream: Stream) -> None:
        with self._lock:
            self._open.discard(stream)
            notices = self._arbitration.leave(stream)
            self._tell(notices)

    def end(self, error: P4Error) -> None:
        """Of all streams."""
        self._ended = True
        self._awake.set()
        with self._lock:
            for stream in self._open:
                stream.end(error)

    def check_primary(self, role: str, election_id: int) -> tuple[Rights, frozenset[int]]:
        """What the role may do, and ids that others alone may write. Raises P4Error if it is not
        the primary that asks."""
        with self._lock:
            rights = self._arbitration.check_primary(role, election_id)
            return rights, self._arbitration.taken_by_others(role)

    def rights(self, role: str) -> Rights:
        with self._lock:
            return self._arbitration.rights(role)

    def take(self, stream: Stream, request: p4r.StreamMessageRequest) -> None:
        """A message of a client. Raises P4Error if the stream has to end."""
        kind = request.WhichOneof("update")
        if kind == "arbitration":
            self._arbitrate(stream, request.arbitration)
        elif kind == "packet":
            self._packet_out(stream, request.packet)
        elif kind == "digest_ack":
            self._acknowledge(stream, request.digest_ack)
        elif kind == "other":
            response = _error(Code.UNIMPLEMENTED, "there are no other messages")
            response.error.other.other.CopyFrom(request.other)
            stream.send(response)
        else:
            raise errors.invalid("a message with nothing in it")

    def _arbitrate(self, stream: Stream, message: p4r.MasterArbitrationUpdate) -> None:
        """Others are told first, then Writes that have begun end, then the new primary is told."""
        with self._lock:
            was_primary = self._arbitration.is_primary(stream)
            notices = self._arbitration.update(stream, message)
            is_primary = self._arbitration.is_primary(stream)
            if is_primary and not was_primary and self._lists is not None:
                self._lists[1].forget_sent()
            if not is_primary:
                self._tell(notices)
                return
            self._tell(notices[:-1])
        self._awake.set()
        if self._device.pipeline is not None:
            self._fresh.wait(_FRESH_S)
        with self._device.lock:
            self._tell(notices[-1:])

    def _tell(self, notices: list[Notice]) -> None:
        for client, message in notices:
            assert isinstance(client, Stream)
            client.send(message)

    def _packet_out(self, stream: Stream, message: p4r.PacketOut) -> None:
        error = self._refusal_of(stream, message)
        if error is not None:
            response = _error(error.code, error.message)
            response.error.packet_out.packet_out.CopyFrom(message)
            stream.send(response)

    def _refusal_of(self, stream: Stream, message: p4r.PacketOut) -> P4Error | None:
        """Sends a packet out, or tells why not."""
        with self._lock:
            is_primary = self._arbitration.is_primary(stream)
        if not is_primary:
            return P4Error(Code.PERMISSION_DENIED, "packets are the primary client's to send")
        with self._device.lock:
            pipeline = self._device.pipeline
            if pipeline is None:
                return P4Error(Code.FAILED_PRECONDITION, "there is no forwarding pipeline")
            try:
                self._switch.send_packet_out(packet_io.bytes_of(pipeline.info, message))
            except P4Error as error:
                return error
            except Refused as refused:
                return errors.of_refusal(refused)
        return None

    def _acknowledge(self, stream: Stream, message: p4r.DigestListAck) -> None:
        pipeline = self._device.pipeline
        error = None
        with self._lock:
            if not self._arbitration.is_primary(stream):
                error = P4Error(Code.PERMISSION_DENIED, "digests are the primary client's")
            elif pipeline is None or message.digest_id not in pipeline.info.digests:
                error = errors.invalid(f"there is no digest with id {message.digest_id}")
            elif self._lists is not None:
                self._lists[1].acknowledge(message.digest_id, message.list_id)
        if error is not None:
            response = _error(error.code, error.message)
            response.error.digest_list_ack.digest_list_ack.CopyFrom(message)
            stream.send(response)

    # Events of the switch.

    def _watch(self) -> None:
        while not self._ended:
            pipeline = self._device.pipeline
            if pipeline is None or not self._has_primary():
                self._fresh.clear()
                self._awake.wait(0.05)
                self._awake.clear()
                continue
            try:
                events = self._events.read_events()
                if self._fresh.is_set():
                    self._pass_on(pipeline, events)
                self._fresh.set()
            except Refused as refused:
                _log.warning("no packets, digests or idle timeouts for clients: %s", refused)
                self._fresh.set()
                if refused.code == UNSUPPORTED:
                    return
                time.sleep(1)
            except OSError as error:
                self._gone(error)
                return
            time.sleep(_EVERY_S)

    def _has_primary(self) -> bool:
        with self._lock:
            return bool(self._arbitration.primaries())

    def _pass_on(self, pipeline: Pipeline, events: dict[str, Any]) -> None:
        messages: list[p4r.StreamMessageResponse] = []
        for packet in events.get("packets", ()):
            try:
                message = packet_io.packet_in(pipeline.info, bytes.fromhex(packet["bytes"]))
            except P4Error as error:
                _log.warning("a packet to the CPU port is left out: %s", error.message)
                continue
            messages.append(p4r.StreamMessageResponse(packet=message))
        with self._lock:
            messages += self._digest_lists(pipeline, events.get("digests", ()))
        messages += _timeouts(pipeline, events.get("timeouts", ()))
        if events.get("lost"):
            _log.warning("the switch lost %d packets, digests or timeouts", events["lost"])
        if not messages:
            return
        with self._lock:
            primaries = self._arbitration.primaries()
        for client, rights in primaries:
            assert isinstance(client, Stream)
            lost = sum(
                not client.send_if_room(message) for message in messages if rights.may_get(message)
            )
            if lost:
                _log.warning("a client does not keep up: %d messages lost", lost)

    def _digest_lists(self, pipeline: Pipeline, digests: Any) -> list[p4r.StreamMessageResponse]:
        if self._lists is None or self._lists[0] is not pipeline:
            self._lists = pipeline, DigestLists(pipeline.info, pipeline.memory.digests)
        lists = self._lists[1]
        now_ns = time.monotonic_ns()
        found = [
            each
            for digest in digests
            for each in lists.add(digest["digest"], digest["values"], now_ns)
        ]
        found += lists.due(now_ns)
        for each in found:
            each.timestamp = time.time_ns()
        return [p4r.StreamMessageResponse(digest=each) for each in found]


def _timeouts(pipeline: Pipeline, timeouts: Any) -> list[p4r.StreamMessageResponse]:
    """One message for all entries of a table."""
    messages: dict[int, p4r.StreamMessageResponse] = {}
    for each in timeouts:
        table = pipeline.info.table_by_name.get(each["table"])
        if table is None:
            continue
        message = messages.setdefault(table.id, p4r.StreamMessageResponse())
        notification = message.idle_timeout_notification
        notification.timestamp = time.time_ns()
        entry = notification.table_entry.add()
        entry.table_id = table.id
        key = keys.key_of_answer(table, each)
        keys.write_key(key, table, entry, 0)
        remembered = pipeline.memory.entries.get((table.id, key))
        if remembered is not None:
            entry.metadata = remembered.metadata
            entry.controller_metadata = remembered.controller_metadata
            entry.idle_timeout_ns = remembered.idle_timeout_ns
    return list(messages.values())


def _error(code: Code, message: str) -> p4r.StreamMessageResponse:
    response = p4r.StreamMessageResponse()
    response.error.canonical_code = code
    response.error.message = message
    response.error.space = errors.SPACE
    return response
