# SPDX-License-Identifier: Apache-2.0
"""Tests of parts of the P4Runtime server that need no switch.

They are numbers, arbitration, packet headers, lists of digests, and P4Info.
"""

from __future__ import annotations

import pytest
from google.protobuf import any_pb2
from nagi_p4runtime import bytestrings, packet_io
from nagi_p4runtime.arbitration import MAX_CLIENTS, Arbitration, Client
from nagi_p4runtime.digests import DigestLists
from nagi_p4runtime.errors import Code, P4Error
from nagi_p4runtime.memory import Memory, Numbers
from nagi_p4runtime.p4info import P4Info
from nagi_p4runtime.protos import p4i, p4r, stratum


@pytest.mark.parametrize(
    ("value", "bits", "number", "shortest"),
    [  # the specification's examples of valid bytestrings
        (b"\x63", 8, 99, b"\x63"),
        (b"\x00\x63", 16, 99, b"\x63"),
        (b"\x30\x64", 16, 12388, b"\x30\x64"),
        (b"\x00\x30\x64", 16, 12388, b"\x30\x64"),
        (b"\x00\x00\x63", 12, 99, b"\x63"),
        (b"\x00", 9, 0, b"\x00"),
    ],
)
def test_numbers_are_read_in_any_length_and_told_in_the_shortest(value, bits, number, shortest):
    assert bytestrings.decode_unsigned(value, bits, "x") == number
    assert bytestrings.encode_unsigned(number) == shortest


@pytest.mark.parametrize(
    ("value", "bits", "number", "shortest"),
    [
        (b"\x63", 8, 99, b"\x63"),
        (b"\x9d", 8, -99, b"\x9d"),
        (b"\xff\x9d", 8, -99, b"\x9d"),
        (b"\xfd\x1d", 12, -739, b"\xfd\x1d"),
        (b"\x00\x00", 16, 0, b"\x00"),
        (b"\x00\x80", 16, 128, b"\x00\x80"),
    ],
)
def test_numbers_with_a_sign_too(value, bits, number, shortest):
    found = bytestrings.decode_signed(value, bits, "x")
    assert found == number % (1 << bits)
    assert bytestrings.encode_signed(found, bits) == shortest


@pytest.mark.parametrize(
    ("read", "value", "bits"),
    [  # the specification's examples of invalid ones
        (bytestrings.decode_unsigned, b"\x01\x63", 8),
        (bytestrings.decode_unsigned, b"", 8),
        (bytestrings.decode_unsigned, b"\x01\x00\x63", 16),
        (bytestrings.decode_unsigned, b"\x10\x63", 12),
        (bytestrings.decode_unsigned, b"\x00\x40\x63", 12),
        (bytestrings.decode_signed, b"\x00\x9d", 8),
        (bytestrings.decode_signed, b"\x8d\x1d", 12),
        (bytestrings.decode_signed, b"", 16),
    ],
)
def test_numbers_that_do_not_fit_are_out_of_range(read, value, bits):
    with pytest.raises(P4Error) as refused:
        read(value, bits, "table t: key x")
    assert refused.value.code == Code.OUT_OF_RANGE
    assert "table t: key x: " in refused.value.message


def test_large_numbers_go_to_the_switch_in_hexadecimal_digits():
    assert bytestrings.to_operation_number((1 << 64) - 1) == (1 << 64) - 1
    assert bytestrings.to_operation_number(1 << 64) == "0x10000000000000000"
    assert bytestrings.parse_answer_number("0x10000000000000000") == 1 << 64


# --- arbitration --------------------------------------------------------------------------------


def update(election_id=None, role="", device_id=7):
    message = p4r.MasterArbitrationUpdate(device_id=device_id)
    if election_id is not None:
        message.election_id.high = election_id >> 64
        message.election_id.low = election_id & ((1 << 64) - 1)
    if role:
        message.role.name = role
    return message


class ObservedArbitration:
    """An Arbitration, and the last notice of each client."""

    def __init__(self):
        self.arbitration = Arbitration(7)
        self.last = {}

    def join(self, **given):
        client = Client()
        self.update(client, **given)
        return client

    def update(self, client, **given):
        self.last = {}
        for notice in self.arbitration.update(client, update(**given)):
            self.last[notice.client] = notice.message.arbitration

    def leave(self, client):
        self.last = {n.client: n.message.arbitration for n in self.arbitration.remove(client)}

    def codes(self, *clients):
        return [
            self.last[client].status.code if client in self.last else None for client in clients
        ]


PRIMARY, BACKUP, NOBODY = Code.OK, Code.ALREADY_EXISTS, Code.NOT_FOUND


def test_the_highest_election_id_is_primary():
    observed = ObservedArbitration()
    first = observed.join(election_id=10)
    assert observed.codes(first) == [PRIMARY]
    second = observed.join(election_id=5)
    assert observed.codes(first, second) == [None, BACKUP]
    third = observed.join(election_id=(1 << 64) + 1)
    assert observed.codes(first, second, third) == [BACKUP, BACKUP, PRIMARY]
    assert observed.last[first].election_id == p4r.Uint128(high=1, low=1)
    assert list(observed.last)[-1] is third
    observed.arbitration.check_primary("", (1 << 64) + 1)
    with pytest.raises(P4Error, match="PERMISSION_DENIED: the request has election id 10, but"):
        observed.arbitration.check_primary("", 10)


def test_a_backup_follows_only_with_an_id_as_high_as_the_last_primary_s():
    observed = ObservedArbitration()
    first, second = observed.join(election_id=10), observed.join(election_id=5)
    observed.leave(first)
    assert observed.codes(second) == [NOBODY]
    assert observed.last[second].election_id.low == 10
    with pytest.raises(P4Error, match="has no primary client"):
        observed.arbitration.check_primary("", 5)
    observed.update(second, election_id=9)
    assert observed.codes(second) == [NOBODY]
    observed.update(second, election_id=10)
    assert observed.codes(second) == [PRIMARY]


def test_a_primary_may_step_down():
    observed = ObservedArbitration()
    first, second = observed.join(election_id=10), observed.join(election_id=5)
    observed.update(first, election_id=1)
    assert observed.codes(first, second) == [NOBODY, NOBODY]


def test_a_client_without_election_id_stays_backup():
    observed = ObservedArbitration()
    client = observed.join()
    assert observed.codes(client) == [NOBODY]
    assert not observed.last[client].HasField("election_id")
    zero = observed.join(election_id=0)
    assert observed.codes(client, zero) == [BACKUP, PRIMARY]


def test_roles_have_primaries_of_their_own():
    observed = ObservedArbitration()
    observed.join(election_id=10)
    other = observed.join(election_id=1, role="packets")
    assert observed.codes(other) == [PRIMARY]
    assert observed.last[other].role.name == "packets"
    observed.arbitration.check_primary("packets", 1)
    with pytest.raises(P4Error, match="NOT_FOUND: there is no role 'other'"):
        observed.arbitration.check_primary("other", 1)
    assert len(observed.arbitration.list_primaries()) == 2


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"election_id": 10}, Code.INVALID_ARGUMENT),
        ({"election_id": 11, "device_id": 8}, Code.NOT_FOUND),
    ],
)
def test_a_client_that_cannot_join_is_refused(given, code):
    observed = ObservedArbitration()
    observed.join(election_id=10)
    with pytest.raises(P4Error) as refused:
        observed.join(**given)
    assert refused.value.code == code


@pytest.mark.parametrize("given", [{"role": "x", "election_id": 10}, {"device_id": 8}])
def test_a_client_cannot_change_its_role_or_device(given):
    observed = ObservedArbitration()
    client = observed.join(election_id=10)
    with pytest.raises(P4Error) as refused:
        observed.update(client, **given)
    assert refused.value.code == Code.FAILED_PRECONDITION


def test_a_role_has_the_rights_of_its_config():
    observed = ObservedArbitration()
    message = update(election_id=1, role="x")
    message.role.config.Pack(
        stratum.P4RoleConfig(
            exclusive_p4_ids=[1],
            shared_p4_ids=[2],
            receives_packet_ins=True,
            packet_in_filter={"metadata_id": 3, "value": b"\0\7"},
        )
    )
    client = Client()
    (notice,) = observed.arbitration.update(client, message)
    assert notice.message.arbitration.role == message.role
    rights = observed.arbitration.check_primary("x", 1)
    assert [rights.can_access(id) for id in (0, 1, 2, 3)] == [False, True, True, False]
    assert not rights.can_set_pipelines
    packet = {"metadata": [{"metadata_id": 3, "value": b"\7"}]}
    assert rights.can_receive(p4r.StreamMessageResponse(packet=packet))
    packet["metadata"][0]["value"] = b"\6"
    assert not rights.can_receive(p4r.StreamMessageResponse(packet=packet))
    assert not rights.can_receive(p4r.StreamMessageResponse(digest={"digest_id": 3}))
    assert observed.arbitration.find_reserved_ids("") == {1}
    assert observed.arbitration.find_reserved_ids("x") == frozenset()
    message.role.config.CopyFrom(any_pb2.Any(type_url="type.googleapis.com/other"))
    with pytest.raises(P4Error, match=r"INVALID_ARGUMENT: a role config of type .*other"):
        observed.arbitration.update(client, message)


def test_a_role_has_so_many_clients():
    observed = ObservedArbitration()
    for number in range(MAX_CLIENTS):
        observed.join(election_id=number)
    with pytest.raises(P4Error, match="RESOURCE_EXHAUSTED"):
        observed.join(election_id=MAX_CLIENTS)


# --- packets ------------------------------------------------------------------------------------


def info_with(**given):
    return P4Info(p4i.P4Info(**given))


def header(name, *fields):
    return p4i.ControllerPacketMetadata(
        preamble={"id": 1, "name": name},
        metadata=[{"id": n, "name": f, "bitwidth": b} for n, (f, b) in enumerate(fields, 1)],
    )


def test_headers_of_packets_are_metadata():
    info = info_with(
        controller_packet_metadata=[
            header("packet_in", ("ingress_port", 9), ("reason", 7)),
            header("packet_out", ("egress_port", 9), ("padding", 7)),
        ]
    )
    message = packet_io.decode_packet_in(info, bytes.fromhex("8083aabb"))
    assert message.payload == b"\xaa\xbb"
    assert [(m.metadata_id, m.value) for m in message.metadata] == [(1, b"\x01\x01"), (2, b"\x03")]
    out = p4r.PacketOut(payload=b"\xaa", metadata=[{"metadata_id": 1, "value": b"\x01\x01"}])
    with pytest.raises(P4Error, match="no value for padding"):
        packet_io.encode_packet_out(info, out)
    out.metadata.add(metadata_id=2, value=b"\0")
    assert packet_io.encode_packet_out(info, out) == bytes.fromhex("8080aa")
    out.metadata.add(metadata_id=7, value=b"\0")
    with pytest.raises(P4Error, match="no metadata with id 7"):
        packet_io.encode_packet_out(info, out)
    out.metadata[0].value = b"\x02\x00"
    with pytest.raises(P4Error, match="OUT_OF_RANGE: packet_out: egress_port"):
        packet_io.encode_packet_out(info, out)
    with pytest.raises(P4Error, match="too short"):
        packet_io.decode_packet_in(info, b"\0")


def test_a_program_without_controller_headers_gets_whole_packets():
    message = packet_io.decode_packet_in(info_with(), b"\xaa\xbb")
    assert message == p4r.PacketIn(payload=b"\xaa\xbb")
    assert packet_io.encode_packet_out(info_with(), p4r.PacketOut(payload=b"\xcc")) == b"\xcc"


# --- digests ------------------------------------------------------------------------------------


def lists(**config):
    digest = p4i.Digest(preamble={"id": 5, "name": "Seen"})
    digest.type_spec.bitstring.bit.bitwidth = 48
    configs = {5: p4r.DigestEntry.Config(**config)}
    return DigestLists(info_with(digests=[digest]), configs), configs


def told_by(found):
    return [[data.bitstring for data in each.data] for each in found]


def test_digests_are_told_at_once_or_when_a_list_is_full():
    at_once, _ = lists()
    assert told_by(at_once.add("Seen", [7], 0)) == [[b"\x07"]]
    assert told_by(at_once.add("Seen", [7], 0)) == [[b"\x07"]]
    full, _ = lists(max_list_size=2, max_timeout_ns=100)
    assert full.add("Seen", [7], 0) == [] == full.add("Seen", [7], 1)
    assert told_by(full.add("Seen", [8], 2)) == [[b"\x07", b"\x08"]]
    assert full.add("Unknown", [7], 0) == []


def test_a_list_does_not_wait_longer_than_it_may():
    waiting, configs = lists(max_list_size=10, max_timeout_ns=100)
    waiting.add("Seen", [7], 1000)
    waiting.add("Seen", [8], 1050)
    assert waiting.take_due(1099) == []
    assert told_by(waiting.take_due(1100)) == [[b"\x07", b"\x08"]]
    assert waiting.take_due(5000) == []
    waiting.add("Seen", [9], 6000)
    configs.clear()
    assert waiting.take_due(7000) == []


def test_what_is_not_acknowledged_is_not_told_again_until_its_time_is_over():
    lists_, _ = lists(ack_timeout_ns=100)
    (first,) = lists_.add("Seen", [7], 0)
    assert lists_.add("Seen", [7], 99) == []
    (second,) = lists_.add("Seen", [7], 100)
    assert second.list_id != first.list_id
    lists_.acknowledge(5, first.list_id)
    assert lists_.add("Seen", [7], 150) == []
    lists_.acknowledge(5, second.list_id)
    assert len(lists_.add("Seen", [7], 150)) == 1
    lists_.forget_sent()
    assert len(lists_.add("Seen", [7], 151)) == 1


# --- the rest -----------------------------------------------------------------------------------


def test_what_a_p4info_asks_for_and_is_not_there_is_refused_by_name():
    info = p4i.P4Info()
    translated = info.type_info.new_types["port_id_t"].translated_type
    translated.uri, translated.sdn_bitwidth = "x", 32
    with pytest.raises(P4Error, match="UNIMPLEMENTED: type port_id_t has @p4runtime_translation"):
        P4Info(info)
    with pytest.raises(P4Error, match="table t of the P4Info refers to action 9"):
        info_with(tables=[{"preamble": {"id": 1, "name": "t"}, "action_refs": [{"id": 9}]}])
    with pytest.raises(
        P4Error, match="INVALID_ARGUMENT: the P4Info has counter c, but the program"
    ):
        info_with(counters=[{"preamble": {"id": 1, "name": "c"}}]).check_pipeline({})


def test_numbers_are_the_lowest_that_are_free_also_after_taking_back():
    memory, numbers = Memory(), Numbers()
    assert [memory.allocate(numbers, owner) for owner in (1, 2, None)] == [0, 1, 2]
    memory.commit()
    memory.free(numbers, 1)
    assert memory.allocate(numbers, 9) == 1
    assert memory.allocate(numbers, 9) == 3
    memory.roll_back()
    assert numbers.ids == {0: 1, 1: 2, 2: None}
    assert numbers.find_free() == 3
    memory.free(numbers, 0)
    memory.free(numbers, 2)
    assert [memory.allocate(numbers, 1) for _ in range(3)] == [0, 2, 3]
