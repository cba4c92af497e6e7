# SPDX-License-Identifier: Apache-2.0
"""Lists of digests (P4Runtime specification, "DigestEntry").

Digests are collected into a list until the list is full or its oldest digest has waited for the
maximum time. A digest that was sent is not sent again until the client acknowledges the list or the
timeout of the acknowledgement expires. This module has no clock: callers pass times in nanoseconds,
of a clock that never goes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nagi_p4runtime.bytestrings import encode_signed, encode_unsigned, parse_answer_number
from nagi_p4runtime.p4info import DataType, Digest, P4Info
from nagi_p4runtime.protos import p4d, p4r

_MAX_LIST = 1000  # digests per list if the client gives no size

Data = tuple[Any, ...]  # the values of a digest in the answer of a switch


@dataclass
class _Buffer:
    """Digests of one kind that wait to be sent, or to be acknowledged."""

    waiting: dict[Data, None] = field(default_factory=dict)  # the next list, without duplicates
    since_ns: int = 0  # when the first digest of `waiting` was added
    # Lists that were sent and not acknowledged, by list id: time of sending, and content.
    sent: dict[int, tuple[int, frozenset[Data]]] = field(default_factory=dict)

    def has(self, data: Data) -> bool:
        return data in self.waiting or any(data in content for _, content in self.sent.values())


class DigestLists:
    """Lists into which the digests of a switch are collected.

    Args:
        info: The P4Info.
        configs: Settings of the digests to which clients subscribed, by id. The caller may change
            this dict at any time.
    """

    def __init__(self, info: P4Info, configs: Mapping[int, p4r.DigestEntry.Config]) -> None:
        self._info = info
        self._configs = configs
        self._buffers: dict[int, _Buffer] = {}
        self._next_list = 1

    def add(self, name: str, values: Sequence[Any], now_ns: int) -> list[p4r.DigestList]:
        """Add a digest of the switch to its list.

        Digests to which no client subscribed, and duplicates of digests that wait or are not
        acknowledged, are ignored.

        Args:
            name: Name of the digest.
            values: Its values, in the order of the P4 program.
            now_ns: The current time.

        Returns:
            [] if the digest is ignored or its list is not full yet; otherwise the full list as the
            only element.
        """
        digest = self._info.digest_by_name.get(name)
        config = self._configs.get(digest.id) if digest is not None else None
        if digest is None or config is None:
            return []
        self._forget_expired(digest.id, config, now_ns)
        buffer = self._buffers.setdefault(digest.id, _Buffer())
        data = tuple(values)
        if buffer.has(data):
            return []
        if not buffer.waiting:
            buffer.since_ns = now_ns
        buffer.waiting[data] = None
        limit = config.max_list_size or _MAX_LIST
        if len(buffer.waiting) >= limit or config.max_timeout_ns == 0:
            return [self._make_list(digest, config, buffer, now_ns)]
        return []

    def take_due(self, now_ns: int) -> list[p4r.DigestList]:
        """Return and remove the lists whose oldest digest has waited for the maximum time.

        Digests to which no client subscribes any more are deleted.
        """
        lists = []
        for id, buffer in self._buffers.items():
            config = self._configs.get(id)
            if config is None:
                buffer.waiting.clear()
            elif buffer.waiting and now_ns - buffer.since_ns >= config.max_timeout_ns:
                lists.append(self._make_list(self._info.digests[id], config, buffer, now_ns))
        return lists

    def acknowledge(self, digest_id: int, list_id: int) -> None:
        """Record that the client has acknowledged a list; ignore unknown lists."""
        buffer = self._buffers.get(digest_id)
        if buffer is not None:
            buffer.sent.pop(list_id, None)

    def forget_sent(self) -> None:
        """Forget which digests were sent, so that a new primary client can receive them again."""
        for buffer in self._buffers.values():
            buffer.sent.clear()

    def _forget_expired(self, id: int, config: p4r.DigestEntry.Config, now_ns: int) -> None:
        """Forget the sent lists of a digest whose timeout for acknowledgements has expired."""
        buffer = self._buffers.get(id)
        if buffer is not None:
            for list_id in [
                list_id
                for list_id, (sent_ns, _) in buffer.sent.items()
                if now_ns - sent_ns >= config.ack_timeout_ns
            ]:
                del buffer.sent[list_id]

    def _make_list(
        self, digest: Digest, config: p4r.DigestEntry.Config, buffer: _Buffer, now_ns: int
    ) -> p4r.DigestList:
        """Move the waiting digests to a new list, and return the list as a message.

        If the config has a timeout for acknowledgements, remember the list until then.
        """
        message = p4r.DigestList(digest_id=digest.id, list_id=self._next_list)
        for data in buffer.waiting:
            _write_data(digest.type, iter(data), message.data.add())
        if config.ack_timeout_ns:
            buffer.sent[self._next_list] = now_ns, frozenset(buffer.waiting)
        buffer.waiting.clear()
        self._next_list += 1
        return message


def _write_data(type: DataType, values: Iterator[Any], data: p4d.P4Data) -> None:
    """Write a digest into `data`.

    Args:
        type: The type of the digest.
        values: The values of the digest's innermost members, in order. This function consumes them.
        data: The message to fill.
    """
    if type.kind in ("struct", "tuple"):
        members = data.struct.members if type.kind == "struct" else data.tuple.members
        for member in type.members:
            _write_data(member, values, members.add())
    elif type.kind == "header":
        data.header.is_valid = True
        for _ in type.members:
            data.header.bitstrings.append(encode_unsigned(parse_answer_number(next(values))))
    elif type.kind == "bool":
        data.bool = bool(parse_answer_number(next(values)))
    elif type.kind == "signed":
        data.bitstring = encode_signed(parse_answer_number(next(values)), type.bits)
    else:
        data.bitstring = encode_unsigned(parse_answer_number(next(values)))
