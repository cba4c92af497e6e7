# SPDX-License-Identifier: Apache-2.0
"""Operations on simple_switch for controllers: digests, idle entries, packets at the CPU port."""

from __future__ import annotations

import builtins
from typing import Any, Sequence

from nagi_p4 import simple_switch_answers as answers
from nagi_p4.notifications import DigestMessage, IdleMessage
from nagi_p4.operations import FAILED_PRECONDITION, Answer, Refused
from nagi_p4.simple_switch_client import CONTEXT, Connection


def read_digests(connection: Connection) -> Answer:
    """Return the digests since the last call, as {"digests": [...]}.

    Raises:
        Refused: This client has no subscription to the notifications of simple_switch.
    """
    if connection.notifications is None:
        raise Refused(
            "simple_switch does not publish digests; start it with --notifications-addr "
            "ipc://PATH, and give the same path to this client",
            FAILED_PRECONDITION,
        )
    return {"digests": _decode_digests(connection, connection.notifications.receive_all())}


def read_events(connection: Connection) -> Answer:
    """Return the events since the last call, in the form of Switch.read_events().

    Without notifications, there are no digests and no idle entries. Without an interface at the CPU
    port, there are no packets. Idle entries that were deleted in the meantime are left out.
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
                    continue  # a client has deleted the entry
                entry = answers.decode_entry(reply, connection.pipeline.list_keys(table))
                timeouts.append({"table": table, **entry})
    return {
        "packets": [{"bytes": packet.hex()} for packet in packets],
        "digests": _decode_digests(connection, messages),
        "timeouts": timeouts,
        "lost": 0,
    }


def send_packet_out(connection: Connection, bytes: str) -> None:
    """Send a packet into the CPU port.

    Args:
        connection: The connection.
        bytes: The packet, in hexadecimal digits.

    Raises:
        Refused: This client has no interface at the CPU port.
    """
    if connection.packets is None:
        raise Refused(
            "cannot send a packet into the CPU port of simple_switch; give this client the "
            "interface at the other end of the port's veth pair",
            FAILED_PRECONDITION,
        )
    connection.packets.send(builtins.bytes.fromhex(bytes))


def _decode_digests(connection: Connection, messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Convert the digests among the notifications, and acknowledge them."""
    digests = []
    for message in messages:
        if isinstance(message, DigestMessage):
            digests += list(connection.pipeline.decode_digests(message))
            connection.standard.bm_learning_ack_buffer(CONTEXT, message.list_id, message.buffer_id)
    return digests
