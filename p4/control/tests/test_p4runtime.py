# SPDX-License-Identifier: Apache-2.0
"""Tests of the P4Runtime server over a simulated nagi-switch, by a client.

What is written can be read back, packets meet it, and wrong requests are refused with the codes of
the specification.
"""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest
from nagi_p4runtime.errors import Code
from nagi_p4runtime.protos import p4d, p4r, stratum
from served import EDGE, EDGE_INFO, Served, config_of, decode_errors, make_insertion, read_info

PROGRAMS = Path(__file__).parent / "programs"
EVERYTHING, EVERYTHING_INFO = PROGRAMS / "everything.json", PROGRAMS / "everything.p4info.txtpb"
CPU_PORT = 255
INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE


class Names:
    """Ids by the names of a P4Info, without the control's name."""

    def __init__(self, info):
        self._ids = {}
        for kind in (
            *("tables", "actions", "action_profiles", "counters", "meters", "registers"),
            *("value_sets", "digests"),
        ):
            for each in getattr(info, kind):
                name = each.preamble.name.rpartition(".")[2]
                self._ids[kind.rstrip("s"), name] = each.preamble.id

    def __getitem__(self, kind_and_name):
        return self._ids[kind_and_name]


IDS = Names(read_info(EVERYTHING_INFO))


@pytest.fixture
def served(tmp_path):
    with Served(tmp_path, EVERYTHING, EVERYTHING_INFO, ports=(0, 1, 2), cpu_port=CPU_PORT) as it:
        yield it


@pytest.fixture
def client(served):
    return served.session()


def action(name, *values):
    call = p4r.Action(action_id=IDS["action", name])
    for number, value in enumerate(values, 1):
        call.params.add(param_id=number, value=value)
    return call


def entry(table, *matches, do=None, **rest):
    message = p4r.TableEntry(table_id=IDS["table", table], match=matches, **rest)
    if isinstance(do, p4r.Action):
        message.action.action.CopyFrom(do)
    elif do is not None:
        message.action.CopyFrom(do)
    return message


def exact(id, value):
    return p4r.FieldMatch(field_id=id, exact={"value": value})


def lpm(id, value, prefix_len):
    return p4r.FieldMatch(field_id=id, lpm={"value": value, "prefix_len": prefix_len})


def ternary(id, value, mask):
    return p4r.FieldMatch(field_id=id, ternary={"value": value, "mask": mask})


def optional(id, value):
    return p4r.FieldMatch(field_id=id, optional={"value": value})


def between(id, low, high):
    return p4r.FieldMatch(field_id=id, range={"low": low, "high": high})


def station(number, **rest):
    return entry("stations", exact(1, bytes([number])), do=action("counted_send", b"\1"), **rest)


def check_refused(call, code, *said):
    """Check that the one update of a Write, or the request of a Read, is refused."""
    with pytest.raises(grpc.RpcError) as error:
        call()
    ((found, message),) = decode_errors(error.value)
    assert found == code, message
    for each in said:
        assert each in message
    return message


def frame(destination=b"\0\0\0\0\0\x09", ethertype=b"\x12\x34", payload=b""):
    return destination + b"\0\0\0\0\0\x07" + ethertype + payload


def ipv4(destination="0a000001", source="0b000001", tos="00", length="0014"):
    header = f"45{tos}{length}00000000401100 00{source}{destination}".replace(" ", "")
    return frame(ethertype=b"\x08\0", payload=bytes.fromhex(header))


# --- tables -------------------------------------------------------------------------------------

ENTRIES = [
    station(9, metadata=b"mine", idle_timeout_ns=5_000_000_001),
    entry("routes", lpm(1, b"\x0a\0\0\0", 8), do=action("send", b"\1\1")),
    entry("routes", do=action("send", b"\2"), controller_metadata=7),  # any destination
    entry(
        "classes",
        ternary(1, b"\x0b\0\0\0", b"\xff\0\0\0"),
        optional(2, b"\x11"),
        between(3, b"\0", b"\x05\xdc"),
        do=action("classify", b"\3"),
        priority=10,
        meter_config={"cir": 1000, "cburst": 100, "pir": 2_000_000, "pburst": 200},
    ),
    entry("classes", optional(2, b"\x06"), do=action("drop"), priority=2**31 - 1),
    entry("classes", do=action("drop"), priority=1),
]


@pytest.mark.parametrize("written", ENTRIES)
def test_an_entry_is_read_as_it_was_written(client, written):
    client.insert(table_entry=written)
    wanted = p4r.TableEntry(table_id=written.table_id)
    if written.HasField("meter_config"):
        wanted.meter_config.SetInParent()
    assert client.read(table_entry=wanted) == [written]
    wanted.match.extend(written.match)
    wanted.priority = written.priority
    assert client.read(table_entry=wanted) == [written]
    client.delete(table_entry=entry_key(written))
    assert client.read(table_entry=wanted) == []


def entry_key(written):
    return p4r.TableEntry(table_id=written.table_id, match=written.match, priority=written.priority)


def test_all_entries_of_all_tables_are_read_and_filters_hold(client):
    client.write(*[make_insertion(table_entry=each) for each in ENTRIES])
    everything = client.read(table_entry=p4r.TableEntry())
    constant = [each for each in everything if each.is_const]
    assert len(everything) == len(ENTRIES) + len(constant)
    assert [(each.priority, each.action.action.action_id) for each in constant] == [
        (2, IDS["action", "copy"]),
        (1, 21257015),
    ]
    classes = IDS["table", "classes"]
    for filter_, count in (
        ({"priority": 10}, 1),
        ({"priority": 11}, 0),
        ({"action": {"action": {"action_id": IDS["action", "drop"]}}}, 2),
        ({"match": [optional(2, b"\6")]}, 1),
        ({"match": [optional(2, b"\7")]}, 0),
    ):
        wanted = p4r.TableEntry(table_id=classes, **filter_)
        assert len(client.read(table_entry=wanted)) == count, filter_
    stations, routes = IDS["table", "stations"], IDS["table", "routes"]
    assert client.read(table_entry=p4r.TableEntry(table_id=stations, metadata=b"x")) == []
    assert len(client.read(table_entry=p4r.TableEntry(table_id=stations, metadata=b"mine"))) == 1
    assert len(client.read(table_entry=p4r.TableEntry(table_id=routes, controller_metadata=7))) == 1


def test_what_is_modified_is_read_so_and_what_is_not_given_stays(client):
    client.insert(table_entry=station(9, metadata=b"old"))
    client.modify(table_entry=entry("stations", exact(1, b"\x09"), metadata=b"new"))
    (found,) = client.read(table_entry=p4r.TableEntry(table_id=IDS["table", "stations"]))
    assert found == station(9, metadata=b"new")
    client.modify(
        table_entry=entry("stations", exact(1, b"\x09"), do=action("counted_send", b"\2"))
    )
    (found,) = client.read(table_entry=p4r.TableEntry(table_id=IDS["table", "stations"]))
    assert found.action.action == action("counted_send", b"\2")
    assert found.metadata == b""
    no = entry("stations", exact(1, b"\x0a"))
    check_refused(lambda: client.modify(table_entry=no), Code.NOT_FOUND, "ingress.stations")
    no.action.action.CopyFrom(action("counted_send", b"\2"))
    check_refused(lambda: client.modify(table_entry=no), Code.NOT_FOUND, "nagi-switch: ")
    check_refused(lambda: client.delete(table_entry=no), Code.NOT_FOUND, "nagi-switch: ")


def test_packets_meet_entries_by_priority(served, client):
    """Check that the larger priority wins, as in P4Runtime."""
    for priority, port in ((5, b"\1"), (6, b"\2")):
        client.insert(table_entry=entry("classes", do=action("classify", port), priority=priority))
    client.insert(table_entry=entry("routes", lpm(1, b"\x0a\0\0\0", 8), do=action("send", b"\1")))
    client.insert(table_entry=entry("routes", lpm(1, b"\x0a\0\0\1", 32), do=action("send", b"\2")))
    assert [port for port, _ in served.switch.send_packet(0, ipv4("0a000002"))] == [1]
    assert [port for port, _ in served.switch.send_packet(0, ipv4("0a000001"))] == [2]
    hits = {
        each["data"][0]: each["hits"]
        for page in served.switch.read_entries("ingress.classes")
        for each in page
    }
    assert hits == {1: 0, 2: 2}


def test_counters_of_entries_are_written_and_read(served, client):
    given = station(9, counter_data={"packet_count": 5, "byte_count": 500})
    client.insert(table_entry=given)
    wanted = p4r.TableEntry(table_id=given.table_id, counter_data={})
    served.switch.send_packet(0, frame())
    (found,) = client.read(table_entry=wanted)
    assert (found.counter_data.packet_count, found.counter_data.byte_count) == (6, 514)
    direct = p4r.DirectCounterEntry(table_entry=entry_key(given))
    (found,) = client.read(direct_counter_entry=direct)
    assert found.data == p4r.CounterData(packet_count=6, byte_count=514)
    direct.data.packet_count = 1
    client.modify(direct_counter_entry=direct)
    assert client.read(direct_counter_entry=p4r.DirectCounterEntry()) == [direct]
    direct.table_entry.match[0].exact.value = b"\x0a"
    check_refused(lambda: client.read(direct_counter_entry=direct), Code.NOT_FOUND)
    check_refused(lambda: client.insert(direct_counter_entry=direct), Code.INVALID_ARGUMENT)


def test_meters_of_entries_are_written_and_read(client):
    client.insert(table_entry=ENTRIES[3])
    meter = p4r.DirectMeterEntry(
        table_entry=entry_key(ENTRIES[3]),
        config={"cir": 7, "cburst": 1, "pir": 9, "pburst": 2},
    )
    client.modify(direct_meter_entry=meter)
    assert client.read(direct_meter_entry=p4r.DirectMeterEntry()) == [meter]
    client.modify(table_entry=without(ENTRIES[3], "meter_config"))
    meter.ClearField("config")
    assert client.read(direct_meter_entry=p4r.DirectMeterEntry()) == [meter]


def without(message, field):
    copy = type(message)()
    copy.CopyFrom(message)
    copy.ClearField(field)
    return copy


def test_the_default_entry(served, client):
    wanted = p4r.TableEntry(table_id=IDS["table", "routes"], is_default_action=True)
    (initial,) = client.read(table_entry=wanted)
    assert initial.action.action == action("drop")
    new = entry("routes", do=action("send", b"\1"), is_default_action=True, metadata=b"x")
    client.modify(table_entry=new)
    assert client.read(table_entry=wanted) == [new]
    client.insert(table_entry=entry("classes", do=action("classify", b"\1"), priority=1))
    assert [port for port, _ in served.switch.send_packet(0, ipv4())] == [1]
    client.modify(table_entry=wanted)
    assert client.read(table_entry=wanted) == [initial]
    assert served.switch.send_packet(0, ipv4()) == []
    assert len(client.read(table_entry=p4r.TableEntry(is_default_action=True))) == 7


def change(message, **fields):
    copy = type(message)()
    copy.CopyFrom(message)
    for name, value in fields.items():
        copy.ClearField(name)
        if isinstance(value, list):
            getattr(copy, name).extend(value)
        elif value is None:
            getattr(copy, name).SetInParent()
        elif hasattr(value, "CopyFrom"):
            getattr(copy, name).CopyFrom(value)
        else:
            setattr(copy, name, value)
    return copy


ROUTE, CLASS = ENTRIES[1], ENTRIES[3]
STATION = station(9)
DEFAULT = entry("routes", do=action("drop"), is_default_action=True)
BAD_ENTRIES = [
    (INSERT, change(ROUTE, table_id=5), Code.NOT_FOUND, "no table with id 5"),
    (INSERT, without(STATION, "match"), Code.INVALID_ARGUMENT, "headers.ethernet.destination"),
    (INSERT, change(STATION, match=[exact(2, b"\1")]), Code.INVALID_ARGUMENT, "is missing"),
    (INSERT, change(STATION, match=[lpm(1, b"\1", 8)]), Code.INVALID_ARGUMENT, "kind exact"),
    (INSERT, change(STATION, match=[exact(1, b"\1" + bytes(6))]), Code.OUT_OF_RANGE, "48 bits"),
    (INSERT, change(STATION, match=[exact(1, b"")]), Code.OUT_OF_RANGE, "an empty value"),
    (INSERT, change(STATION, priority=1), Code.INVALID_ARGUMENT, "a priority of 1"),
    (INSERT, without(STATION, "action"), Code.INVALID_ARGUMENT, "without an action"),
    (INSERT, change(STATION, is_const=True), Code.INVALID_ARGUMENT, "is_const"),
    (INSERT, change(STATION, time_since_last_hit=None), Code.INVALID_ARGUMENT, "time_since"),
    (INSERT, change(STATION, meter_config=None), Code.INVALID_ARGUMENT, "no direct meter"),
    (INSERT, change(STATION, meter_counter_data=None), Code.UNIMPLEMENTED, "by color"),
    (INSERT, change(ROUTE, counter_data=None), Code.INVALID_ARGUMENT, "no direct counter"),
    (INSERT, change(ROUTE, idle_timeout_ns=1), Code.INVALID_ARGUMENT, "no idle timeouts"),
    (INSERT, change(ROUTE, match=[lpm(1, b"\x0a\0\0\1", 8)]), Code.INVALID_ARGUMENT, "bits after"),
    (INSERT, change(ROUTE, match=[lpm(1, b"\0", 0)]), Code.INVALID_ARGUMENT, "leave the field out"),
    (INSERT, change(ROUTE, match=[lpm(1, b"\0", 33)]), Code.INVALID_ARGUMENT, "33 bits"),
    (INSERT, change(CLASS, priority=0), Code.INVALID_ARGUMENT, "a priority of 0"),
    (INSERT, change(CLASS, priority=-1), Code.INVALID_ARGUMENT, "a priority of -1"),
    (INSERT, change(CLASS, match=[ternary(1, b"\0", b"\0")]), Code.INVALID_ARGUMENT, "mask of 0"),
    (INSERT, change(CLASS, match=[ternary(1, b"\3", b"\1")]), Code.INVALID_ARGUMENT, "outside"),
    (INSERT, change(CLASS, match=[between(3, b"\2", b"\1")]), Code.INVALID_ARGUMENT, "bound first"),
    (INSERT, change(CLASS, match=[between(3, b"\0", b"\xff\xff")]), Code.INVALID_ARGUMENT, "all"),
    (INSERT, change(CLASS, match=[exact(9, b"\1")]), Code.INVALID_ARGUMENT, "with id 9"),
    (INSERT, entry("unkeyed", do=action("copy")), Code.INVALID_ARGUMENT, "without a key"),
    (INSERT, DEFAULT, Code.INVALID_ARGUMENT, "MODIFY it"),
    (DELETE, DEFAULT, Code.INVALID_ARGUMENT, "MODIFY it"),
    (MODIFY, change(DEFAULT, priority=1), Code.INVALID_ARGUMENT, "neither match"),
    (MODIFY, change(DEFAULT, action=ROUTE.action, table_id=IDS["table", "classes"]),
     Code.PERMISSION_DENIED, "const"),
    (INSERT, entry("services", ternary(1, b"\1", b"\1"), do=action("copy"), priority=1),
     Code.PERMISSION_DENIED, "const entries"),
    (DELETE, entry("services", ternary(1, b"\x10", b"\x30"), priority=2),
     Code.PERMISSION_DENIED, "const entries"),
    (INSERT, entry("stations", exact(1, b"\1"), do=action("ask", b"\1")),
     Code.PERMISSION_DENIED, "the default entry only"),
    (INSERT, entry("stations", exact(1, b"\1"), do=action("spread", b"\1")),
     Code.INVALID_ARGUMENT, "ingress.spread is not permitted here"),
    (INSERT, entry("stations", exact(1, b"\1"), do=p4r.Action(action_id=3)),
     Code.INVALID_ARGUMENT, "no action with id 3"),
    (INSERT, entry("stations", exact(1, b"\1"), do=action("counted_send")),
     Code.INVALID_ARGUMENT, "counted_send: port: no value"),
    (INSERT, entry("stations", exact(1, b"\1"), do=action("counted_send", b"\1", b"\1")),
     Code.INVALID_ARGUMENT, "no parameter with id 2"),
    (INSERT, entry("stations", exact(1, b"\1"), do=action("counted_send", b"\2\0")),
     Code.OUT_OF_RANGE, "9 bits"),
    (INSERT, entry("neighbours", exact(1, b"\1"), do=action("send", b"\1")),
     Code.INVALID_ARGUMENT, "need a member"),
    (INSERT, entry("stations", exact(1, b"\1"), do=p4r.TableAction(action_profile_member_id=1)),
     Code.INVALID_ARGUMENT, "need an action"),
    (INSERT, entry("neighbours", exact(1, b"\1"), do=p4r.TableAction(action_profile_member_id=1)),
     Code.NOT_FOUND, "no member 1"),
    (INSERT, entry("groups", exact(1, b"\1"), do=p4r.TableAction(action_profile_group_id=1)),
     Code.NOT_FOUND, "no group 1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("type", "bad", "code", "said"), BAD_ENTRIES, ids=[each[3] for each in BAD_ENTRIES]
)
def test_an_entry_that_is_no_good_is_refused(served, type, bad, code, said):
    client = served.session()
    update = p4r.Update(type=type, entity=p4r.Entity(table_entry=bad))
    check_refused(lambda: client.write(update), code, said)
    assert [each for each in client.read(table_entry=p4r.TableEntry()) if not each.is_const] == []


def test_a_duplicate_and_a_full_table(client):
    client.insert(table_entry=STATION)
    check_refused(lambda: client.insert(table_entry=STATION), Code.ALREADY_EXISTS, "nagi-switch: ")
    client.write(*[make_insertion(table_entry=station(number)) for number in range(10, 17)])
    full = check_refused(lambda: client.insert(table_entry=station(20)), Code.RESOURCE_EXHAUSTED)
    assert "nagi-switch: ingress.stations" in full


def test_every_update_of_a_write_is_answered_for(client):
    with pytest.raises(grpc.RpcError) as error:
        client.write(
            make_insertion(table_entry=station(1)),
            make_insertion(table_entry=station(1)),
            p4r.Update(type=p4r.Update.DELETE, entity=p4r.Entity(table_entry=station(5))),
            make_insertion(table_entry=station(2)),
            p4r.Update(type=p4r.Update.INSERT),
        )
    codes = [code for code, _ in decode_errors(error.value)]
    assert codes == [0, Code.ALREADY_EXISTS, Code.NOT_FOUND, 0, Code.INVALID_ARGUMENT]
    assert len(client.read(table_entry=p4r.TableEntry(table_id=STATION.table_id))) == 2


@pytest.mark.parametrize("atomicity", ["ROLLBACK_ON_ERROR", "DATAPLANE_ATOMIC"])
def test_a_batch_is_done_whole_or_not_at_all(client, atomicity):
    group = p4r.ActionProfileGroup(action_profile_id=IDS["action_profile", "paths"], group_id=4)
    group.members.add(member_id=3, weight=2)
    group.max_size = 2
    good = [
        make_insertion(table_entry=station(1, metadata=b"x")),
        make_insertion(action_profile_member=member("paths", 3, b"\1")),
        make_insertion(action_profile_group=group),
        make_insertion(
            table_entry=entry(
                "groups", exact(1, b"\1"), do=p4r.TableAction(action_profile_group_id=4)
            )
        ),
    ]
    with pytest.raises(grpc.RpcError) as error:
        client.write(*good, make_insertion(table_entry=station(1)), atomicity=atomicity)
    assert [code for code, _ in decode_errors(error.value)] == [
        *[Code.ABORTED] * 4, Code.ALREADY_EXISTS
    ]  # fmt: skip
    assert [each for each in client.read(table_entry=p4r.TableEntry()) if not each.is_const] == []
    assert client.read(action_profile_member=p4r.ActionProfileMember()) == []
    client.write(*good, atomicity=atomicity)
    (found,) = client.read(table_entry=p4r.TableEntry(table_id=STATION.table_id))
    assert found.metadata == b"x"
    assert client.read(action_profile_group=p4r.ActionProfileGroup()) == [group]


# --- action profiles ----------------------------------------------------------------------------


def member(profile, id, port):
    return p4r.ActionProfileMember(
        action_profile_id=IDS["action_profile", profile], member_id=id, action=action("send", port)
    )


def test_members_have_the_clients_ids(served, client):
    seven, one = member("next_hops", 7, b"\1"), member("next_hops", 1, b"\2")
    client.insert(action_profile_member=seven)
    client.insert(action_profile_member=one)
    assert client.read(action_profile_member=p4r.ActionProfileMember()) == [seven, one]
    neighbour = entry("neighbours", exact(1, b"\7"), do=p4r.TableAction(action_profile_member_id=7))
    client.insert(table_entry=neighbour)
    assert client.read(table_entry=p4r.TableEntry(table_id=neighbour.table_id)) == [neighbour]
    assert [port for port, _ in served.switch.send_packet(0, frame())] == [1]
    client.modify(action_profile_member=member("next_hops", 7, b"\2"))
    assert [port for port, _ in served.switch.send_packet(0, frame())] == [2]
    insert, modify, delete = client.insert, client.modify, client.delete
    eight = member("next_hops", 8, b"\1")
    for call, bad, code in (
        (insert, seven, Code.ALREADY_EXISTS),
        (delete, seven, Code.FAILED_PRECONDITION),
        (delete, eight, Code.NOT_FOUND),
        (modify, without(seven, "action"), Code.INVALID_ARGUMENT),
        (insert, without(seven, "member_id"), Code.INVALID_ARGUMENT),
    ):
        check_refused(lambda call=call, bad=bad: call(action_profile_member=bad), code)
    client.delete(table_entry=neighbour)
    client.delete(action_profile_member=seven)
    assert client.read(action_profile_member=p4r.ActionProfileMember()) == [one]
    for number in range(2, 17):
        client.insert(action_profile_member=member("next_hops", number, b"\1"))
    full = member("next_hops", 20, b"\1")
    check_refused(lambda: client.insert(action_profile_member=full), Code.RESOURCE_EXHAUSTED)


def group_of(id, *weighted, max_size=16):
    group = p4r.ActionProfileGroup(
        action_profile_id=IDS["action_profile", "paths"], group_id=id, max_size=max_size
    )
    for member_id, weight in weighted:
        group.members.add(member_id=member_id, weight=weight)
    return group


def count_flows(served, destination):
    """Return how many of 400 flows leave by each port."""
    counts = {}
    for number in range(400):
        packet = ipv4(destination, source=f"{number * 2654435761 % 2**32:08x}")
        for port, _ in served.switch.send_packet(0, packet):
            counts[port] = counts.get(port, 0) + 1
    return counts


def test_groups_have_weights(served, client):
    for id, port in ((1, b"\1"), (2, b"\2")):
        client.insert(action_profile_member=member("paths", id, port))
    client.insert(action_profile_group=group_of(1, (1, 1), (2, 3)))
    client.insert(action_profile_group=group_of(2, (1, 1)))
    both = [group_of(1, (1, 1), (2, 3)), group_of(2, (1, 1))]
    assert client.read(action_profile_group=p4r.ActionProfileGroup()) == both
    chosen = entry("groups", exact(1, b"\x0a\0\0\1"), do=p4r.TableAction(action_profile_group_id=1))
    client.insert(table_entry=chosen)
    client.insert(table_entry=entry("classes", do=action("classify", b"\1"), priority=1))
    counts = count_flows(served, "0a000001")
    assert 250 < counts[2] < 350 and counts[1] + counts[2] == 400
    client.modify(action_profile_group=group_of(1, (2, 1)))
    assert count_flows(served, "0a000001") == {2: 400}
    client.modify(action_profile_member=member("paths", 2, b"\1"))
    assert count_flows(served, "0a000001") == {1: 400}
    # Units of weight that no group needs any more have gone.
    assert len(served.switch.read_members("ingress.paths")) == 2
    for call, bad, code in (
        (client.insert, group_of(1, (1, 1)), Code.ALREADY_EXISTS),
        (client.modify, group_of(9, (1, 1)), Code.NOT_FOUND),
        (client.insert, group_of(9, (8, 1)), Code.NOT_FOUND),
        (client.insert, group_of(9, (1, 0)), Code.INVALID_ARGUMENT),
        (client.insert, group_of(9, (1, 1), (1, 1)), Code.INVALID_ARGUMENT),
        (client.insert, group_of(9, (1, 5), max_size=4), Code.RESOURCE_EXHAUSTED),
        (client.modify, group_of(1, (1, 1), max_size=3), Code.INVALID_ARGUMENT),
        (client.delete, group_of(1), Code.FAILED_PRECONDITION),
    ):
        check_refused(lambda call=call, bad=bad: call(action_profile_group=bad), code)
    used = member("paths", 2, b"\1")
    check_refused(lambda: client.delete(action_profile_member=used), Code.FAILED_PRECONDITION)
    watched = group_of(9, (1, 1))
    watched.members[0].watch_port = b"\1"
    check_refused(
        lambda: client.insert(action_profile_group=watched), Code.UNIMPLEMENTED, "watch port"
    )
    client.delete(table_entry=chosen)
    client.delete(action_profile_group=group_of(1))
    client.delete(action_profile_group=group_of(2))
    assert client.read(action_profile_group=p4r.ActionProfileGroup()) == []


def one_shot(destination, *weighted):
    target = p4r.TableAction()
    for port, weight in weighted:
        each = target.action_profile_action_set.action_profile_actions.add(weight=weight)
        each.action.CopyFrom(action("send", port))
    return entry("groups", exact(1, destination), do=target)


def test_one_shot_action_sets(served, client):
    client.insert(table_entry=entry("classes", do=action("classify", b"\1"), priority=1))
    first = one_shot(b"\x0a\0\0\1", (b"\1", 1), (b"\2", 2))
    client.insert(table_entry=first)
    groups = p4r.TableEntry(table_id=first.table_id)
    assert client.read(table_entry=groups) == [first]
    assert client.read(action_profile_member=p4r.ActionProfileMember()) == []
    assert client.read(action_profile_group=p4r.ActionProfileGroup()) == []
    counts = count_flows(served, "0a000001")
    assert set(counts) == {1, 2} and sum(counts.values()) == 400
    second = one_shot(b"\x0a\0\0\1", (b"\2", 1))
    client.modify(table_entry=second)
    assert client.read(table_entry=groups) == [second]
    assert count_flows(served, "0a000001") == {2: 400}
    check_refused(lambda: client.insert(table_entry=first), Code.ALREADY_EXISTS)
    assert len(served.switch.read_members("ingress.paths")) == 1
    check_refused(
        lambda: client.insert(action_profile_member=member("paths", 1, b"\1")),
        Code.INVALID_ARGUMENT, "action sets",
    )  # fmt: skip
    client.delete(table_entry=second)
    assert served.switch.read_members("ingress.paths") == []
    assert served.switch.read_groups("ingress.paths") == []


# --- counters, meters, registers, replication, value sets ---------------------------------------


def test_counters(served, client):
    served.switch.send_packet(2, frame())
    id = IDS["counter", "by_port"]
    cells = client.read(counter_entry=p4r.CounterEntry(counter_id=id))
    assert [each.index.index for each in cells] == list(range(8))
    assert cells[2].data == p4r.CounterData(packet_count=1, byte_count=14)
    given = p4r.CounterEntry(counter_id=id, index={"index": 3}, data={"packet_count": 4})
    client.modify(counter_entry=given)
    wanted = p4r.CounterEntry(counter_id=id, index={"index": 3})
    assert client.read(counter_entry=wanted) == [given]
    for index, code in ((-1, Code.INVALID_ARGUMENT), (8, Code.OUT_OF_RANGE)):
        wanted.index.index = index
        check_refused(lambda: client.read(counter_entry=wanted), code)
        check_refused(lambda: client.modify(counter_entry=change(given, index=wanted.index)), code)
    check_refused(lambda: client.insert(counter_entry=given), Code.INVALID_ARGUMENT)
    check_refused(lambda: client.delete(counter_entry=given), Code.INVALID_ARGUMENT)
    check_refused(lambda: client.modify(counter_entry=change(given, counter_id=1)), Code.NOT_FOUND)


def test_meters(client):
    id = IDS["meter", "limits"]
    given = p4r.MeterEntry(
        meter_id=id, index={"index": 1}, config={"cir": 3, "cburst": 1, "pir": 5, "pburst": 2}
    )
    client.modify(meter_entry=given)
    cells = client.read(meter_entry=p4r.MeterEntry())
    assert cells[1] == given and not cells[0].HasField("config") and len(cells) == 4
    everywhere = without(given, "index")
    client.modify(meter_entry=everywhere)
    assert all(each.config == given.config for each in client.read(meter_entry=p4r.MeterEntry()))
    client.modify(meter_entry=without(given, "config"))
    assert not client.read(meter_entry=p4r.MeterEntry(meter_id=id, index={"index": 1}))[0].HasField(
        "config"
    )
    for config in ({"cir": -1}, {"cir": 5, "pir": 4}):
        bad = p4r.MeterEntry(meter_id=id, index={"index": 1}, config=config)
        check_refused(lambda bad=bad: client.modify(meter_entry=bad), Code.INVALID_ARGUMENT)
    counted = p4r.MeterEntry(meter_id=id, counter_data={})
    check_refused(lambda: client.read(meter_entry=counted), Code.UNIMPLEMENTED)


def test_registers_with_and_without_sign(served, client):
    served.switch.send_packet(2, frame())
    source = IDS["register", "last_source"]
    cells = client.read(register_entry=p4r.RegisterEntry(register_id=source))
    assert [each.data.bitstring for each in cells] == [b"\x07", b"\0", b"\0", b"\0"]
    offsets = IDS["register", "offsets"]
    given = p4r.RegisterEntry(
        register_id=offsets, index={"index": 1}, data=p4d.P4Data(bitstring=b"\xfd\x1d")
    )
    client.modify(register_entry=given)
    assert served.switch.read_register("ingress.offsets") == [0, -739 % 4096]
    assert client.read(
        register_entry=p4r.RegisterEntry(register_id=offsets, index={"index": 1})
    ) == [given]
    given.data.bitstring = b"\x0f\xff"
    check_refused(lambda: client.modify(register_entry=given), Code.OUT_OF_RANGE)
    check_refused(
        lambda: client.modify(register_entry=without(given, "data")), Code.INVALID_ARGUMENT
    )


def replicas(*pairs):
    return [p4r.Replica(port=bytes([port]), instance=instance) for port, instance in pairs]


def pre(**kind):
    return p4r.PacketReplicationEngineEntry(**kind)


def test_multicast_groups(served, client):
    group = pre(
        multicast_group_entry={
            "multicast_group_id": 5, "replicas": replicas((1, 7), (2, 7), (1, 0)), "metadata": b"m",
        }
    )  # fmt: skip
    client.insert(packet_replication_engine_entry=group)
    everything = pre(multicast_group_entry={})
    assert client.read(packet_replication_engine_entry=everything) == [group]
    client.insert(table_entry=entry("classes", do=action("classify", b"\1"), priority=1))
    client.insert(table_entry=entry("routes", do=action("spread", b"\5")))
    assert sorted(port for port, _ in served.switch.send_packet(0, ipv4())) == [1, 1, 2]
    group.multicast_group_entry.replicas.pop()
    client.modify(packet_replication_engine_entry=group)
    assert client.read(packet_replication_engine_entry=everything) == [group]
    check_refused(lambda: client.insert(packet_replication_engine_entry=group), Code.ALREADY_EXISTS)
    for bad, code in (
        ({"multicast_group_id": 0}, Code.INVALID_ARGUMENT),
        ({"multicast_group_id": 6, "replicas": replicas((1, 1), (1, 1))}, Code.INVALID_ARGUMENT),
        ({"multicast_group_id": 6, "replicas": [{"instance": 1}]}, Code.INVALID_ARGUMENT),
        ({"multicast_group_id": 6, "replicas": [{"port": b"\2\0"}]}, Code.INVALID_ARGUMENT),
        ({"multicast_group_id": 6, "replicas": [
            {"port": b"\1", "backup_replicas": [{"port": b"\2"}]}]}, Code.UNIMPLEMENTED),
    ):  # fmt: skip
        call = pre(multicast_group_entry=bad)
        check_refused(lambda call=call: client.insert(packet_replication_engine_entry=call), code)
    client.delete(packet_replication_engine_entry=group)
    check_refused(lambda: client.delete(packet_replication_engine_entry=group), Code.NOT_FOUND)
    check_refused(lambda: client.modify(packet_replication_engine_entry=group), Code.NOT_FOUND)
    assert client.read(packet_replication_engine_entry=everything) == []


@pytest.mark.parametrize("copies", [[(1, 0)], [(1, 0), (2, 3)]])
def test_clone_sessions(served, client, copies):
    session = pre(
        clone_session_entry={
            "session_id": 7, "replicas": replicas(*copies), "packet_length_bytes": 20,
        }
    )  # fmt: skip
    client.insert(packet_replication_engine_entry=session)
    assert client.read(packet_replication_engine_entry=pre(clone_session_entry={})) == [session]
    assert client.read(packet_replication_engine_entry=pre(multicast_group_entry={})) == []
    client.insert(table_entry=entry("classes", do=action("drop"), priority=1))
    client.modify(table_entry=entry("unkeyed", do=action("copy"), is_default_action=True))
    sent = served.switch.send_packet(0, ipv4())
    assert sorted(port for port, _ in sent) == sorted(port for port, _ in copies)
    assert {len(packet) for _, packet in sent} == {20}
    session.clone_session_entry.packet_length_bytes = 0
    client.modify(packet_replication_engine_entry=session)
    assert {len(packet) for _, packet in served.switch.send_packet(0, ipv4())} == {34}
    check_refused(
        lambda: client.insert(packet_replication_engine_entry=session), Code.ALREADY_EXISTS
    )
    client.delete(packet_replication_engine_entry=session)
    assert served.switch.send_packet(0, ipv4()) == []
    assert served.switch.read_multicast() == []
    session.clone_session_entry.class_of_service = 1
    check_refused(
        lambda: client.insert(packet_replication_engine_entry=session), Code.UNIMPLEMENTED
    )


def test_value_sets(served, client):
    id = IDS["value_set", "ipv4_types"]

    def values(*types):
        return p4r.ValueSetEntry(
            value_set_id=id, members=[{"match": [exact(1, each)]} for each in types]
        )

    assert client.read(value_set_entry=p4r.ValueSetEntry()) == [values()]
    client.modify(value_set_entry=values(b"\x12\x34", b"\7"))
    assert client.read(value_set_entry=p4r.ValueSetEntry()) == [values(b"\x12\x34", b"\7")]
    client.insert(table_entry=entry("classes", do=action("classify", b"\1"), priority=1))
    client.insert(table_entry=entry("routes", do=action("send", b"\1")))
    packet = frame(payload=ipv4()[14:])
    assert [port for port, _ in served.switch.send_packet(0, packet)] == [1]
    client.modify(value_set_entry=values())
    assert [port for port, _ in served.switch.send_packet(0, packet)] == [0]
    many = values(*[bytes([each]) for each in range(5)])
    check_refused(lambda: client.modify(value_set_entry=many), Code.RESOURCE_EXHAUSTED)
    check_refused(lambda: client.modify(value_set_entry=values(b"\1", b"\1")), Code.ALREADY_EXISTS)
    check_refused(lambda: client.insert(value_set_entry=values()), Code.INVALID_ARGUMENT)


# --- streams ------------------------------------------------------------------------------------


def test_packets_go_to_the_primary_and_come_from_it(served, client):
    client.modify(table_entry=entry("stations", do=action("ask", b"\x2a"), is_default_action=True))
    assert served.switch.send_packet(2, frame()) == []
    packet = client.receive_next("packet")
    assert packet.payload == frame()
    assert [(m.metadata_id, m.value) for m in packet.metadata] == [(1, b"\2"), (2, b"\x2a")]
    client.send(
        packet={
            "payload": frame(),
            "metadata": [{"metadata_id": 1, "value": b"\1"}, {"metadata_id": 2, "value": b"\0"}],
        }
    )
    client.send(packet={"payload": b"x", "metadata": [{"metadata_id": 1, "value": b"\1"}]})
    error = client.receive_next("error")
    assert error.canonical_code == Code.INVALID_ARGUMENT and "padding" in error.message
    assert error.packet_out.packet_out.payload == b"x"
    assert served.switch.advance(0) == [(1, frame())]
    backup = served.session(election_id=0, join=False)
    assert backup.arbitrate() == Code.ALREADY_EXISTS
    backup.send(packet={"payload": b"x"})
    assert backup.receive_next("error").canonical_code == Code.PERMISSION_DENIED


def test_what_happened_before_there_was_a_primary_is_not_told(served):
    first = served.session()
    first.modify(table_entry=entry("stations", do=action("ask", b"\x2a"), is_default_action=True))
    first.close()
    watcher = served.session(election_id=0)
    while watcher.arbitrate() != Code.NOT_FOUND:  # until the first has left
        pass
    served.switch.send_packet(1, frame())
    second = served.session(election_id=9)
    served.switch.send_packet(2, frame())
    assert second.receive_next("packet").metadata[0].value == b"\2"


def test_digests_come_in_lists(served, client):
    id = IDS["digest", "Learned"]
    served.switch.send_packet(1, frame())  # nobody asks yet
    config = p4r.DigestEntry.Config(max_timeout_ns=10**12, max_list_size=2, ack_timeout_ns=10**15)
    given = p4r.DigestEntry(digest_id=id, config=config)
    check_refused(lambda: client.modify(digest_entry=given), Code.NOT_FOUND)
    client.insert(digest_entry=given)
    check_refused(lambda: client.insert(digest_entry=given), Code.ALREADY_EXISTS)
    assert client.read(digest_entry=p4r.DigestEntry()) == [given]
    served.switch.send_packet(1, frame())
    served.switch.send_packet(1, frame())  # the same thing
    served.switch.send_packet(2, ipv4())
    told = client.receive_next("digest")
    assert told.digest_id == id and told.list_id
    assert [[each.bitstring or each.bool for each in one.struct.members] for one in told.data] == [
        [b"\x07", b"\x01", False],
        [b"\x07", b"\x02", True],
    ]
    client.send(digest_ack={"digest_id": id, "list_id": told.list_id})
    client.send(digest_ack={"digest_id": 5, "list_id": 1})
    assert client.receive_next("error").canonical_code == Code.INVALID_ARGUMENT
    served.switch.send_packet(2, ipv4())
    served.switch.send_packet(1, frame())
    assert len(client.receive_next("digest").data) == 2
    client.delete(digest_entry=given)
    assert client.read(digest_entry=p4r.DigestEntry()) == []
    check_refused(lambda: client.delete(digest_entry=given), Code.NOT_FOUND)


def test_idle_entries_are_told_of(served, client):
    client.insert(table_entry=station(9, metadata=b"m", idle_timeout_ns=2_000_000))
    client.insert(table_entry=station(8, idle_timeout_ns=3_600_000_000_000))
    served.switch.advance(1900)
    served.switch.send_packet(0, frame())  # a hit
    served.switch.advance(1900)
    wanted = p4r.TableEntry(table_id=STATION.table_id, time_since_last_hit={})
    idle = {
        each.match[0].exact.value: each.time_since_last_hit.elapsed_ns
        for each in client.read(table_entry=wanted)
    }
    assert idle[b"\x09"] < 2_000_000 < idle[b"\x08"]
    served.switch.advance(200)
    told = client.receive_next("idle_timeout_notification")
    (found,) = told.table_entry
    assert found == change(entry_key(STATION), metadata=b"m", idle_timeout_ns=2_000_000)
    assert told.timestamp > 0
    wanted.table_id = ROUTE.table_id
    check_refused(lambda: client.read(table_entry=wanted), Code.INVALID_ARGUMENT)


def test_arbitration_over_streams(served, client):
    second = served.session(election_id=5)
    assert client.receive_next("arbitration").status.code == Code.ALREADY_EXISTS
    with pytest.raises(grpc.RpcError) as error:
        client.insert(table_entry=STATION)
    assert error.value.code() == grpc.StatusCode.PERMISSION_DENIED
    second.insert(table_entry=STATION)
    assert client.read(table_entry=entry_key(STATION)) == [STATION]  # all may read
    second.close()
    assert client.receive_next("arbitration").status.code == Code.NOT_FOUND
    assert client.arbitrate(election_id=6) == Code.OK
    same = served.session(election_id=6, join=False)
    same.send(arbitration={"device_id": 1, "election_id": {"low": 6}})
    assert same.next().code() == grpc.StatusCode.INVALID_ARGUMENT
    other = served.session(join=False)
    other.send(arbitration={"device_id": 9, "election_id": {"low": 7}})
    assert other.next().code() == grpc.StatusCode.NOT_FOUND


def test_a_role_has_a_primary_of_its_own(served, client):
    role = served.session(election_id=3, role="stations")
    role.insert(table_entry=STATION)
    client.delete(table_entry=STATION)
    role.election_id = 4
    with pytest.raises(grpc.RpcError, match="PERMISSION_DENIED"):
        role.insert(table_entry=STATION)


def test_a_role_with_a_config_may_do_what_it_says(served, client):
    role = served.session(election_id=3, role="stations", join=False)
    message = p4r.MasterArbitrationUpdate(device_id=1, election_id={"low": 3})
    message.role.name = "stations"
    message.role.config.Pack(stratum.P4RoleConfig(exclusive_p4_ids=[STATION.table_id]))
    role.send(arbitration=message)
    assert role.receive_next("arbitration").status.code == Code.OK
    client.insert(table_entry=ROUTE)
    check_refused(lambda: client.insert(table_entry=STATION), Code.PERMISSION_DENIED)
    role.insert(table_entry=STATION)
    check_refused(lambda: role.insert(table_entry=ENTRIES[2]), Code.PERMISSION_DENIED)
    with pytest.raises(grpc.RpcError, match="PERMISSION_DENIED"):
        role.set_pipeline(EVERYTHING_CONFIG)
    assert role.read(table_entry=p4r.TableEntry()) == [STATION]
    assert ROUTE in client.read(table_entry=p4r.TableEntry())


def test_another_device_is_not_here(client):
    client.device_id = 2
    for call in (
        lambda: client.insert(table_entry=STATION),
        lambda: client.read(table_entry=STATION),
        client.get_pipeline,
        lambda: client.stub.Capabilities(p4r.CapabilitiesRequest(device_id=2)),
    ):
        with pytest.raises(grpc.RpcError) as error:
            call()
        assert error.value.code() == grpc.StatusCode.NOT_FOUND
    answer = client.stub.Capabilities(p4r.CapabilitiesRequest())
    assert answer.p4runtime_api_version.startswith("1.4.")


# --- pipelines ----------------------------------------------------------------------------------

EVERYTHING_CONFIG = config_of(EVERYTHING, EVERYTHING_INFO, cookie=42)
EDGE_CONFIG = config_of(EDGE, EDGE_INFO)


@pytest.fixture
def bare(tmp_path):
    """Yield a server over edge.p4 that knows no pipeline."""
    with Served(tmp_path, info=None, ports=(0, 1, 2), cpu_port=CPU_PORT) as it:
        yield it


def test_without_a_pipeline_nothing_is_written_or_read(bare):
    client = bare.session()
    assert not client.get_pipeline().HasField("config")
    for call in (
        lambda: client.insert(table_entry=STATION),
        lambda: client.read(table_entry=STATION),
    ):
        with pytest.raises(grpc.RpcError) as error:
            call()
        assert error.value.code() == grpc.StatusCode.FAILED_PRECONDITION


def test_a_pipeline_is_set_and_read_back(bare):
    client = bare.session()
    client.set_pipeline(EVERYTHING_CONFIG)
    assert client.get_pipeline().config == EVERYTHING_CONFIG
    config = client.get_pipeline("COOKIE_ONLY").config
    assert config.cookie.cookie == 42
    assert not config.HasField("p4info") and not config.p4_device_config
    config = client.get_pipeline("P4INFO_AND_COOKIE").config
    assert config.p4info == EVERYTHING_CONFIG.p4info and not config.p4_device_config
    config = client.get_pipeline("DEVICE_CONFIG_AND_COOKIE").config
    assert not config.HasField("p4info")
    assert config.p4_device_config == EVERYTHING_CONFIG.p4_device_config
    client.insert(table_entry=STATION)
    assert bare.switch.send_packet(0, frame()) == [(1, frame())]
    client.set_pipeline(EVERYTHING_CONFIG)
    assert client.read(table_entry=entry_key(STATION)) == []


def test_verify_changes_nothing(bare):
    client = bare.session()
    client.set_pipeline(EDGE_CONFIG)
    client.set_pipeline(EVERYTHING_CONFIG, "VERIFY")
    assert client.get_pipeline().config == EDGE_CONFIG
    assert "ipv4_routes" in bare.switch.read_pipeline()


def test_a_saved_pipeline_waits_for_commit_with_what_is_written(bare):
    client = bare.session()
    with pytest.raises(grpc.RpcError) as error:
        client.set_pipeline(action="COMMIT")
    assert error.value.code() == grpc.StatusCode.NOT_FOUND
    client.set_pipeline(EVERYTHING_CONFIG, "VERIFY_AND_SAVE")
    client.insert(table_entry=STATION)
    check_refused(lambda: client.insert(table_entry=change(STATION, table_id=5)), Code.NOT_FOUND)
    assert "ipv4_routes" in bare.switch.read_pipeline()
    with pytest.raises(grpc.RpcError) as error:
        client.set_pipeline(EVERYTHING_CONFIG, "COMMIT")
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    client.set_pipeline(action="COMMIT")
    assert client.read(table_entry=entry_key(STATION)) == [STATION]


def broken(**changes):
    program = json.loads(EVERYTHING.read_text())
    program.update(changes)
    return json.dumps(program).encode()


@pytest.mark.parametrize(
    "action_", ["VERIFY", "VERIFY_AND_SAVE", "VERIFY_AND_COMMIT", "RECONCILE_AND_COMMIT"]
)
@pytest.mark.parametrize(
    ("config", "said"),
    [
        (None, "without a config"),
        (without(EVERYTHING_CONFIG, "p4info"), "p4info is missing"),
        (without(EVERYTHING_CONFIG, "p4_device_config"), "p4_device_config is missing"),
        (change(EVERYTHING_CONFIG, p4_device_config=b"{"), "not JSON"),
        (change(EVERYTHING_CONFIG, p4_device_config=b"[]"), "is no JSON object"),
        (change(EVERYTHING_CONFIG, p4_device_config=EDGE.read_bytes()), "the P4Info has table"),
        (change(EVERYTHING_CONFIG, p4_device_config=broken(parsers=[])), "nagi-switch: "),
    ],
)
def test_a_pipeline_that_does_not_load_leaves_the_old_one(served, config, said, action_):
    client = served.session()
    client.insert(table_entry=STATION)
    with pytest.raises(grpc.RpcError) as error:
        client.set_pipeline(config, action_)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert said in error.value.details()
    assert client.read(table_entry=entry_key(STATION)) == [STATION]
    assert served.switch.send_packet(0, frame()) == [(1, frame())]


def test_reconciling_keeps_what_was_written(served, client):
    client.write(*[make_insertion(table_entry=each) for each in ENTRIES])
    client.insert(action_profile_member=member("paths", 3, b"\1"))
    client.insert(action_profile_group=group_of(4, (3, 2)))
    client.insert(
        packet_replication_engine_entry=pre(
            clone_session_entry={"session_id": 7, "replicas": replicas((1, 0), (2, 0))}
        )
    )
    client.modify(table_entry=DEFAULT)
    client.modify(
        counter_entry={"counter_id": IDS["counter", "by_port"], "index": {"index": 1},
                       "data": {"packet_count": 9}}
    )  # fmt: skip
    everything = [
        {"table_entry": p4r.TableEntry(meter_config={}, counter_data={})},
        {"table_entry": p4r.TableEntry(is_default_action=True)},
        {"action_profile_member": p4r.ActionProfileMember()},
        {"action_profile_group": p4r.ActionProfileGroup()},
        {"packet_replication_engine_entry": pre()},
        {"counter_entry": p4r.CounterEntry()},
    ]
    before = [client.read(**each) for each in everything]
    program = json.loads(EVERYTHING.read_text())
    program["program"] = "another.p4"
    other = change(EVERYTHING_CONFIG, p4_device_config=json.dumps(program).encode())
    client.set_pipeline(other, "RECONCILE_AND_COMMIT")
    assert "another.p4" in served.switch.read_pipeline()
    assert [client.read(**each) for each in everything] == before


def test_reconciling_with_what_cannot_be_kept_leaves_the_old_pipeline(served, client):
    client.insert(table_entry=STATION)
    with pytest.raises(grpc.RpcError) as error:
        client.set_pipeline(EDGE_CONFIG, "RECONCILE_AND_COMMIT")
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "the old pipeline keeps running" in error.value.details()
    assert client.read(table_entry=entry_key(STATION)) == [STATION]
    assert served.switch.send_packet(0, frame()) == [(1, frame())]


def test_only_the_primary_sets_a_pipeline(served, client):
    backup = served.session(election_id=0)
    with pytest.raises(grpc.RpcError) as error:
        backup.set_pipeline(EDGE_CONFIG)
    assert error.value.code() == grpc.StatusCode.PERMISSION_DENIED
    assert backup.get_pipeline().HasField("config")


def test_what_another_controller_made_gets_ids(tmp_path):
    """Members and groups that the switch has before the server comes, or beside it."""
    with Served(tmp_path, EVERYTHING, None) as it:
        switch = it.switch
        switch.perform(
            {"op": "member_add", "profile": "ingress.paths", "action": "ingress.send", "data": [1]}
        )
        switch.perform({"op": "group_create", "profile": "ingress.paths"})
        switch.perform(
            {"op": "group_add_member", "profile": "ingress.paths", "group": 0, "member": 0}
        )
        it.adopt(EVERYTHING_INFO)
        client = it.session()
        (found,) = client.read(action_profile_member=p4r.ActionProfileMember())
        assert found == member("paths", 1, b"\1")
        (found,) = client.read(action_profile_group=p4r.ActionProfileGroup())
        assert found == group_of(1, (1, 1), max_size=0)
        client.insert(action_profile_member=member("paths", 2, b"\2"))
        assert len(client.read(action_profile_member=p4r.ActionProfileMember())) == 2


def test_a_switch_that_ends_is_unavailable(served, client):
    served.switch.close()
    with pytest.raises(grpc.RpcError) as error:
        client.insert(table_entry=STATION)
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE
    assert served.gone
