# SPDX-License-Identifier: Apache-2.0
"""Settings of digests: which digests clients want to receive, and how long their lists may be.

The settings are stored in the server's memory, because switches have no such state.
"""

from __future__ import annotations

from nagi_p4runtime.errors import Code, InvalidArgument, P4Error
from nagi_p4runtime.p4info import find_by_id
from nagi_p4runtime.plan import DELETE, INSERT, Plan, UpdateContext
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.responses import ReadContext


def plan_digest(
    context: UpdateContext, plan: Plan, update_type: int, message: p4r.DigestEntry
) -> None:
    """Store or delete the settings of a digest in the memory. The plan gets no operations."""
    digest = find_by_id(context.info.digests, message.digest_id, "digest")
    configs = context.memory.digests
    if update_type == INSERT and digest.id in configs:
        raise P4Error(
            Code.ALREADY_EXISTS, f"{digest.name}: there is already a DigestEntry; MODIFY it"
        )
    if update_type != INSERT and digest.id not in configs:
        raise P4Error(Code.NOT_FOUND, f"{digest.name}: there is no DigestEntry; INSERT one")
    if update_type == DELETE:
        context.memory.drop(configs, digest.id)
        return
    config = message.config
    if min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
        raise InvalidArgument(f"{digest.name}: a time or size below 0; give 0 or more")
    stored = p4r.DigestEntry.Config()
    stored.CopyFrom(config)
    context.memory.put(configs, digest.id, stored)


def read_digests(context: ReadContext, request: p4r.DigestEntry) -> None:
    """Read the settings of a digest, or of all digests if the id is 0.

    Digests without settings are left out.
    """
    for digest in context.select(context.info.digests, request.digest_id, "digest"):
        config = context.memory.digests.get(digest.id)
        if config is not None:
            message = context.responses.add_entity().digest_entry
            message.digest_id = digest.id
            message.config.CopyFrom(config)
