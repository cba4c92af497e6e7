# SPDX-License-Identifier: Apache-2.0
"""The messages of StreamChannels: arbitration, packets, digests, idle timeouts, errors.

While there is a primary client, a thread polls the switch for events every few milliseconds. Events
that occurred without a primary client are discarded. A client that reads its stream too slowly
loses packets and digests, but no arbitration messages.
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

from nagi_p4runtime import keys, packet_io
from nagi_p4runtime.arbitration import Arbitration, Client, Notice
from nagi_p4runtime.device import Device, Pipeline
from nagi_p4runtime.digests import DigestLists
from nagi_p4runtime.entities.tables import write_metadata
from nagi_p4runtime.errors import ERROR_SPACE, Code, InvalidArgument, P4Error
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.roles import Rights

_log = logging.getLogger(__name__)

_POLL_INTERVAL_S = 0.004
_MAX_QUEUED = 10_000  # messages that may wait for a client
# A new primary client gets its notice after old events were discarded, but at the latest after this
# time.
_DISCARD_TIMEOUT_S = 10.0
MAX_STREAMS = 32  # each stream occupies a thread of the server


class Stream(Client):
    """A client, and the messages queued for it."""

    def __init__(self) -> None:
        super().__init__()
        self._queue: queue.SimpleQueue[p4r.StreamMessageResponse | P4Error | None] = (
            queue.SimpleQueue()
        )

    def send(self, message: p4r.StreamMessageResponse) -> None:
        self._queue.put(message)

    def send_if_room(self, message: p4r.StreamMessageResponse) -> bool:
        """Queue a message unless too many messages are queued.

        Returns:
            Whether the message was queued.
        """
        if self._queue.qsize() >= _MAX_QUEUED:
            return False
        self._queue.put(message)
        return True

    def finish(self, error: P4Error | None = None) -> None:
        """End the stream after the queued messages, with `error` unless it is None."""
        self._queue.put(error)

    def iterate_messages(self) -> Iterator[p4r.StreamMessageResponse]:
        """Yield the messages for the client until the stream ends.

        Raises:
            P4Error: The stream ended with this error.
        """
        while True:
            message = self._queue.get()
            if message is None:
                return
            if isinstance(message, P4Error):
                raise message
            yield message


class Streams:
    """The open StreamChannels of a device, and the thread that polls the switch for events.

    Args:
        device: The device.
        arbitration: The roles of the device and their clients.
        switch: The connection to the switch that requests use, under the device's lock.
        events: A second connection to the same switch, which only the polling thread uses.
        on_gone: A function that is called with the error when the connection to the switch is lost.
    """

    def __init__(
        self,
        device: Device,
        arbitration: Arbitration,
        switch: Switch,
        events: Switch,
        on_gone: Callable[[OSError], None],
    ) -> None:
        self._device = device
        self._arbitration = arbitration
        self._switch = switch
        self._events = events
        self._on_gone = on_gone
        self._lock = threading.Lock()  # protects arbitration and lists
        self._lists: tuple[Pipeline, DigestLists] | None = None
        self._open: set[Stream] = set()
        self._wake_up = threading.Event()
        # Set once the events that occurred without a primary client are discarded.
        self._old_events_discarded = threading.Event()
        self._absences = 0  # grows whenever an update or a closed stream leaves no primary client
        self._ended = False
        self._thread = threading.Thread(target=self._poll, name="events", daemon=True)
        self._thread.start()

    def open(self) -> Stream:
        """Open a stream.

        Raises:
            P4Error: MAX_STREAMS streams are open.
        """
        stream = Stream()
        with self._lock:
            if len(self._open) >= MAX_STREAMS:
                raise P4Error(
                    Code.RESOURCE_EXHAUSTED, f"there are {MAX_STREAMS} streams; end one of them"
                )
            self._open.add(stream)
        return stream

    def close(self, stream: Stream) -> None:
        """Close a stream. If its client was primary, notify the other clients of the role."""
        with self._lock:
            self._open.discard(stream)
            notices = self._arbitration.remove(stream)
            self._count_absence()
            self._send_notices(notices)

    def end_all(self, error: P4Error) -> None:
        """End all streams with an error, and end the polling thread."""
        self._ended = True
        self._wake_up.set()
        with self._lock:
            for stream in self._open:
                stream.finish(error)

    def check_primary(self, role: str, election_id: int) -> tuple[Rights, frozenset[int]]:
        """Check that a request comes from the primary client of a role.

        Args:
            role: The role in the request.
            election_id: The election id in the request.

        Returns:
            The rights of the role, and the ids of objects that only other roles may write.

        Raises:
            P4Error: The role has no primary client, or its primary client has another election id.
        """
        with self._lock:
            rights = self._arbitration.check_primary(role, election_id)
            return rights, self._arbitration.find_reserved_ids(role)

    def find_rights(self, role: str) -> Rights:
        """Return the rights of a role; all rights if there is no such role."""
        with self._lock:
            return self._arbitration.find_rights(role)

    def handle(self, stream: Stream, request: p4r.StreamMessageRequest) -> None:
        """Handle a message of a client.

        Raises:
            P4Error: The message is wrong. The caller must end the stream with this error.
        """
        kind = request.WhichOneof("update")
        if kind == "arbitration":
            self._arbitrate(stream, request.arbitration)
        elif kind == "packet":
            self._handle_packet_out(stream, request.packet)
        elif kind == "digest_ack":
            self._acknowledge(stream, request.digest_ack)
        elif kind == "other":
            response = _make_error(Code.UNIMPLEMENTED, "messages of type `other` are not supported")
            response.error.other.other.CopyFrom(request.other)
            stream.send(response)
        else:
            raise InvalidArgument("the message is empty; give arbitration, packet or digest_ack")

    def _arbitrate(self, stream: Stream, message: p4r.MasterArbitrationUpdate) -> None:
        """Handle an arbitration update.

        A new primary client gets its notice last: after the notices to other clients, after old
        events were discarded, and after all Writes that have begun.
        """
        with self._lock:
            was_primary = self._arbitration.is_primary(stream)
            notices = self._arbitration.update(stream, message)
            is_primary = self._arbitration.is_primary(stream)
            self._count_absence()
            if is_primary and not was_primary and self._lists is not None:
                self._lists[1].forget_sent()
            if not is_primary:
                self._send_notices(notices)
                return
            self._send_notices(notices[:-1])
        self._wake_up.set()
        if self._device.pipeline is not None:
            self._old_events_discarded.wait(_DISCARD_TIMEOUT_S)
        with self._device.lock:
            self._send_notices(notices[-1:])

    def _count_absence(self) -> None:
        """Make the polling thread discard old events if there is no primary client any more."""
        if not self._arbitration.list_primaries():
            self._absences += 1
            self._old_events_discarded.clear()

    def _send_notices(self, notices: list[Notice]) -> None:
        for client, message in notices:
            assert isinstance(client, Stream)
            client.send(message)

    def _handle_packet_out(self, stream: Stream, message: p4r.PacketOut) -> None:
        error = self._send_packet_out(stream, message)
        if error is not None:
            response = _make_error(error.code, error.message)
            response.error.packet_out.packet_out.CopyFrom(message)
            stream.send(response)

    def _send_packet_out(self, stream: Stream, message: p4r.PacketOut) -> P4Error | None:
        """Send a packet into the switch. Return the error if that fails, otherwise None."""
        with self._lock:
            is_primary = self._arbitration.is_primary(stream)
        if not is_primary:
            return P4Error(Code.PERMISSION_DENIED, "only the primary client may send packets")
        with self._device.lock:
            pipeline = self._device.pipeline
            if pipeline is None:
                return P4Error(Code.FAILED_PRECONDITION, "there is no forwarding pipeline")
            try:
                self._switch.send_packet_out(packet_io.encode_packet_out(pipeline.info, message))
            except P4Error as error:
                return error
            except Refused as refused:
                return P4Error.from_refused(refused)
        return None

    def _acknowledge(self, stream: Stream, message: p4r.DigestListAck) -> None:
        """Handle the acknowledgement of a list of digests."""
        pipeline = self._device.pipeline
        error = None
        with self._lock:
            if not self._arbitration.is_primary(stream):
                error = P4Error(
                    Code.PERMISSION_DENIED, "only the primary client may acknowledge digests"
                )
            elif pipeline is None or message.digest_id not in pipeline.info.digests:
                error = InvalidArgument(f"there is no digest with id {message.digest_id}")
            elif self._lists is not None:
                self._lists[1].acknowledge(message.digest_id, message.list_id)
        if error is not None:
            response = _make_error(error.code, error.message)
            response.error.digest_list_ack.digest_list_ack.CopyFrom(message)
            stream.send(response)

    # Events of the switch.

    def _poll(self) -> None:
        """Poll the switch for events until end_all() is called. The polling thread runs this."""
        while not self._ended:
            pipeline = self._device.pipeline
            with self._lock:
                absences = self._absences
                has_primary = bool(self._arbitration.list_primaries())
            if pipeline is None or not has_primary:
                self._old_events_discarded.clear()
                self._wake_up.wait(0.05)
                self._wake_up.clear()
                continue
            try:
                events = self._events.read_events()
            except Refused as refused:
                _log.warning("no packets, digests or idle timeouts for clients: %s", refused)
                self._old_events_discarded.set()
                if refused.code == UNSUPPORTED:
                    return
                time.sleep(1)
                continue
            except OSError as error:
                self._on_gone(error)
                return
            with self._lock:
                if absences != self._absences:
                    continue  # the events may have occurred without a primary client
                events_are_new = self._old_events_discarded.is_set()
                self._old_events_discarded.set()
                primaries = self._arbitration.list_primaries()
            if events_are_new:
                self._forward(pipeline, events, primaries)
            time.sleep(_POLL_INTERVAL_S)

    def _forward(
        self, pipeline: Pipeline, events: dict[str, Any], primaries: list[tuple[Client, Rights]]
    ) -> None:
        """Send each event of the switch to the primary clients whose rights permit the event.

        Args:
            pipeline: The running pipeline.
            events: The events, as Switch.read_events() returns them.
            primaries: The primary clients and their rights.
        """
        messages: list[p4r.StreamMessageResponse] = []
        for packet in events.get("packets", ()):
            try:
                message = packet_io.decode_packet_in(pipeline.info, bytes.fromhex(packet["bytes"]))
            except P4Error as error:
                _log.warning("a packet to the CPU port is dropped: %s", error.message)
                continue
            messages.append(p4r.StreamMessageResponse(packet=message))
        with self._lock:
            messages += self._collect_digest_lists(pipeline, events.get("digests", ()))
        messages += _make_timeout_messages(pipeline, events.get("timeouts", ()))
        if events.get("lost"):
            _log.warning("the switch lost %d packets, digests or timeouts", events["lost"])
        if not messages:
            return
        for client, rights in primaries:
            assert isinstance(client, Stream)
            lost_messages = sum(
                not client.send_if_room(message)
                for message in messages
                if rights.can_receive(message)
            )
            if lost_messages:
                _log.warning("a client reads too slowly: %d messages lost", lost_messages)

    def _collect_digest_lists(
        self, pipeline: Pipeline, digests: Any
    ) -> list[p4r.StreamMessageResponse]:
        """Add digests of the switch to their lists, and return the lists that are full or due."""
        if self._lists is None or self._lists[0] is not pipeline:
            self._lists = pipeline, DigestLists(pipeline.info, pipeline.memory.digests)
        lists = self._lists[1]
        now_ns = time.monotonic_ns()
        ready = [
            digest_list
            for digest in digests
            for digest_list in lists.add(digest["digest"], digest["values"], now_ns)
        ]
        ready += lists.take_due(now_ns)
        for digest_list in ready:
            digest_list.timestamp = time.time_ns()
        return [p4r.StreamMessageResponse(digest=digest_list) for digest_list in ready]


def _make_timeout_messages(pipeline: Pipeline, timeouts: Any) -> list[p4r.StreamMessageResponse]:
    """Return one message per table with the entries whose idle timeout has expired.

    Tables that the P4Info does not have are left out.
    """
    messages: dict[int, p4r.StreamMessageResponse] = {}
    for timeout in timeouts:
        table = pipeline.info.table_by_name.get(timeout["table"])
        if table is None:
            continue
        message = messages.setdefault(table.id, p4r.StreamMessageResponse())
        notification = message.idle_timeout_notification
        notification.timestamp = time.time_ns()
        entry = notification.table_entry.add()
        entry.table_id = table.id
        key = keys.parse_answer_key(table, timeout)
        keys.write_key(key, table, entry, 0)
        metadata = pipeline.memory.entries.get((table.id, key))
        if metadata is not None:
            write_metadata(metadata, entry)
    return list(messages.values())


def _make_error(code: Code, message: str) -> p4r.StreamMessageResponse:
    response = p4r.StreamMessageResponse()
    response.error.canonical_code = code
    response.error.message = message
    response.error.space = ERROR_SPACE
    return response
