# SPDX-License-Identifier: Apache-2.0
"""The operation that returns digests, and tasks that receive digests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from finsy import p4entity
from nagi_p4.operations import Answer

from nagi_p4runtime.client.context import ClientContext


def read_digests(context: ClientContext) -> Answer:
    """Return {"digests": [...]}: the digests since the last call.

    The first call subscribes to all digests, and therefore returns few or none.
    """
    if not context.is_subscribed and len(context.connection.p4info.digests):
        context.connection.wait(_subscribe(context))
    digests, context.digests = context.digests, []
    return {"digests": digests}


async def _subscribe(context: ClientContext) -> None:
    """Subscribe to all kinds of digests, with one digest per list.

    Start a task per kind that receives the lists.
    """
    switch = context.connection.finsy_switch
    for digest in context.connection.p4info.digests:
        await switch.write([+p4entity.P4DigestEntry(digest.name, max_list_size=1)])
        context.connection.start_task(_receive(context, digest.name))
        context.is_subscribed = True


async def _receive(context: ClientContext, name: str) -> None:
    """Receive the digests of kind `name`, store them, and acknowledge their lists, endlessly."""
    switch = context.connection.finsy_switch
    async for digest_list in switch.read_digests(name):
        context.digests += [{"digest": name, "values": _flatten(data)} for data in digest_list]
        await switch.write([digest_list.ack()])


def _flatten(data: Any) -> list[Any]:
    """Return the numbers in the nested data of a digest, in the order of the P4 program."""
    if isinstance(data, Mapping):
        return [number for member in data.values() for number in _flatten(member)]
    if isinstance(data, tuple | list):
        return [number for member in data for number in _flatten(member)]
    return [int(data)]
