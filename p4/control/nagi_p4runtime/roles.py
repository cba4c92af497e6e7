# SPDX-License-Identifier: Apache-2.0
"""What a role may do. Without a config, everything; else what Stratum's P4RoleConfig says, which is
the scheme that P4Runtime's clients use (stratum, p4_role_config.proto)."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf import any_pb2

from nagi_p4runtime.bytestrings import encoded
from nagi_p4runtime.errors import invalid
from nagi_p4runtime.protos import p4r, stratum

_NO_IDS: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Rights:
    """`ids`: of tables, profiles and so on that the role may read and write; None: all.
    `exclusive`: those that no other role may write. `packet_filter`: metadata that packets must
    have to go to the role, and its value."""

    ids: frozenset[int] | None = None
    exclusive: frozenset[int] = _NO_IDS
    gets_packets: bool = True
    sets_pipelines: bool = True
    packet_filter: tuple[int, bytes] | None = None

    def has(self, id: int) -> bool:
        """Of what has no id (0), as multicast groups, only roles that may do everything."""
        return self.ids is None or id in self.ids

    def may_get(self, message: p4r.StreamMessageResponse) -> bool:
        """A packet, a list of digests, or idle entries of one table."""
        kind = message.WhichOneof("update")
        if kind == "packet":
            return self.gets_packets and self._passes(message.packet)
        if kind == "digest":
            return self.has(message.digest.digest_id)
        return self.has(message.idle_timeout_notification.table_entry[0].table_id)

    def _passes(self, packet: p4r.PacketIn) -> bool:
        if self.packet_filter is None:
            return True
        return any((each.metadata_id, each.value) == self.packet_filter for each in packet.metadata)


EVERYTHING = Rights()


def rights_of(role: p4r.Role) -> Rights:
    """Raises P4Error if the config is of another scheme."""
    if not role.HasField("config"):
        return EVERYTHING
    config = stratum.P4RoleConfig()
    if not _unpacked(role.config, config):
        raise invalid(
            f"a role config of type {role.config.type_url or 'none'}; give a "
            "stratum.P4RoleConfig, or none: the role may do everything then"
        )
    packets = config.packet_in_filter
    value = encoded(int.from_bytes(packets.value, "big"))
    exclusive = frozenset(config.exclusive_p4_ids)
    return Rights(
        exclusive | frozenset(config.shared_p4_ids),
        exclusive,
        config.receives_packet_ins,
        config.can_push_pipeline,
        (packets.metadata_id, value) if config.HasField("packet_in_filter") else None,
    )


def _unpacked(config: any_pb2.Any, into: stratum.P4RoleConfig) -> bool:
    try:
        return bool(config.Unpack(into))
    except Exception:  # protobuf's DecodeError, which has no public name here
        return False


def id_of(entity: p4r.Entity) -> int:
    """Of the table, profile and so on that an entity is of; 0: it has none."""
    kind = entity.WhichOneof("entity")
    if kind is None or kind in ("extern_entry", "packet_replication_engine_entry"):
        return 0
    message = getattr(entity, kind)
    if kind.startswith("direct_"):
        return int(message.table_entry.table_id)
    for name in (
        *("table_id", "action_profile_id", "counter_id", "meter_id", "register_id"),
        *("value_set_id", "digest_id"),
    ):
        if name in message.DESCRIPTOR.fields_by_name:
            return int(getattr(message, name))
    return 0
