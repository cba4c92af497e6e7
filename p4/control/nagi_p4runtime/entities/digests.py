# SPDX-License-Identifier: Apache-2.0
"""Settings of digests: which digests clients want to receive, and in what lists.

They are no state of the switch: the server's memory has them.
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
    """Record the settings of a digest, or delete them. There are no operations to plan."""
    digest = find_by_id(context.info.digests, message.digest_id, "digest")
    configs = context.memory.digests
    if update_type == INSERT and digest.id in configs:
        raise P4Error(Code.ALREADY_EXISTS, f"{digest.name}: it is asked for; MODIFY it")
    if update_type != INSERT and digest.id not in configs:
        raise P4Error(Code.NOT_FOUND, f"{digest.name}: it is not asked for; INSERT it")
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
    """Read the settings of a digest, or of all digests that clients asked for."""
    for digest in context.select(context.info.digests, request.digest_id, "digest"):
        config = context.memory.digests.get(digest.id)
        if config is not None:
            message = context.responses.add_entity().digest_entry
            message.digest_id = digest.id
            message.config.CopyFrom(config)
