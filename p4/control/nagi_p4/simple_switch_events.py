# SPDX-License-Identifier: Apache-2.0
"""Operations of simple_switch for controllers: digests, idle entries, packets of the CPU port."""

from __future__ import annotations

import builtins
from typing import Any, Sequence

from nagi_p4 import simple_switch_answers as answers
from nagi_p4.notifications import DigestMessage, IdleMessage
from nagi_p4.operations import FAILED_PRECONDITION, Answer, Refused
from nagi_p4.simple_switch_client import CONTEXT, Connection


def read_digests(connection: Connection) -> Answer:
    """Return the digests since the last call."""
    if connection.notifications is None:
        raise Refused(
            "simple_switch does not publish digests; start it with --notifications-addr "
            "ipc://PATH, and give that path here",
            FAILED_PRECONDITION,
        )
    return {"digests": _decode_digests(connection, connection.notifications.receive_all())}


def read_events(connection: Connection) -> Answer:
    """Return the events since the last call.

    There are digests and idle entries only if simple_switch publishes notifications, and packets
    only if there is an interface at its CPU port.
    """
    packets = [] if connection.packets is None else connection.packets.receive_all()
    messages = [] if connection.notifications is None else connection.notifications.receive_all()
    if messages:
        # Another connection may have replaced the pipeline.
        connection.pipeline = connection.read_pipeline()
    timeouts = []
    for message in messages:
        if isinstance(message, IdleMessage):
            table = connection.pipeline.find_table(message.table_id)
            for handle in message.handles:
                try:
                    reply = connection.standard.bm_mt_get_entry(CONTEXT, table, handle)
                except connection.modules["types"].InvalidTableOperation:
                    continue  # somebody has deleted it since
                entry = answers.decode_entry(reply, connection.pipeline.list_keys(table))
                timeouts.append({"table": table, **entry})
    return {
        "packets": [{"bytes": packet.hex()} for packet in packets],
        "digests": _decode_digests(connection, messages),
        "timeouts": timeouts,
        "lost": 0,
    }


def send_packet_out(connection: Connection, bytes: str) -> None:
    """Send a packet, in hexadecimal digits, into the CPU port."""
    if connection.packets is None:
        raise Refused(
            "packets for simple_switch need the interface at the other end of its CPU port",
            FAILED_PRECONDITION,
        )
    connection.packets.send(builtins.bytes.fromhex(bytes))


def _decode_digests(connection: Connection, messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Decode and acknowledge the digests among the notifications."""
    digests = []
    for message in messages:
        if isinstance(message, DigestMessage):
            digests += list(connection.pipeline.decode_digests(message))
            connection.standard.bm_learning_ack_buffer(CONTEXT, message.list_id, message.buffer_id)
    return digests
