# SPDX-License-Identifier: Apache-2.0
"""Tests of the P4Runtime client, with the server over a simulated nagi-switch.

Operations must do the same there as on nagi-switch itself.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from nagi_p4 import edge
from nagi_p4.operations import (
    ALREADY_EXISTS,
    FAILED_PRECONDITION,
    INVALID,
    NOT_FOUND,
    UNSUPPORTED,
    Refused,
)
from nagi_p4runtime.client import P4RuntimeSwitch
from served import EDGE, EDGE_INFO, WAIT_S, Served, Simulated

PROGRAMS = Path(__file__).parent / "programs"
EVERYTHING, EVERYTHING_INFO = PROGRAMS / "everything.json", PROGRAMS / "everything.p4info.txtpb"
MAC, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"
STATION = bytes.fromhex("02000000000102000000000288b5") + bytes(50)


@pytest.fixture
def served(tmp_path):
    with Served(tmp_path, EVERYTHING, None, ports=(0, 1, 2), cpu_port=255) as it:
        yield it


@pytest.fixture
def switch(served):
    with P4RuntimeSwitch(served.address, program=EVERYTHING, p4info=EVERYTHING_INFO) as it:
        yield it


def read_entries(simulated, table):
    """Return a table's entries from the switch itself, without handles, times and counts."""
    read = simulated.perform({"op": "table_read", "table": table})["entries"]
    hidden = ("handle", "idle_us", "hits", "packets", "bytes")
    return [{key: value for key, value in each.items() if key not in hidden} for each in read]


# Entries of all kinds of keys.
ENTRIES = [
    {"table": "ingress.stations", "match": [MAC], "action": "ingress.counted_send", "data": [2],
     "timeout_us": 5_000_000},
    {"table": "ingress.routes", "match": ["10.1.0.0/16"], "action": "ingress.send", "data": [1]},
    {"table": "ingress.routes", "match": [{"value": "10.0.0.0", "prefix": 8}],
     "action": "ingress.spread", "data": [7]},
    {"table": "ingress.routes", "match": [{"value": 0, "prefix": 0}], "action": "ingress.drop"},
    {"table": "ingress.classes",
     "match": [{"value": "10.0.0.0", "mask": 0xFFFFFF00}, 6, {"low": 100, "high": 200}],
     "action": "ingress.classify", "data": [3], "priority": 5},
    {"table": "ingress.classes", "match": [None, None, None], "action": "ingress.drop",
     "priority": 0},
]  # fmt: skip


def test_entries_are_those_that_nagi_switch_has_of_the_same_operations(served, switch):
    with Simulated(EVERYTHING) as direct:
        operations = [{"op": "table_add", **entry} for entry in ENTRIES]
        answers = switch.perform_all(operations)
        assert [answer["handle"] for answer in answers] == list(range(len(ENTRIES)))
        for operation in operations:
            direct.perform(operation)
        for table in {entry["table"] for entry in ENTRIES}:
            assert read_entries(served.switch, table) == read_entries(direct, table) != []


def test_entries_are_changed_and_removed_by_handle_and_by_key(served, switch):
    handle = switch.add_entry("ingress.routes", ["10.1.0.0/16"], "ingress.send", [1])
    switch.modify_entry("ingress.routes", handle, "ingress.send", [2])
    (entry,) = read_entries(served.switch, "ingress.routes")
    assert (entry["action"], entry["data"]) == ("ingress.send", [2])
    by_key = {"table": "ingress.routes", "match": ["10.1.0.0/16"]}
    switch.perform({"op": "table_modify", **by_key, "action": "ingress.drop"})
    assert read_entries(served.switch, "ingress.routes")[0]["action"] == "ingress.drop"
    switch.delete_entry("ingress.routes", handle)
    assert read_entries(served.switch, "ingress.routes") == []
    with pytest.raises(Refused) as refused:
        switch.delete_entry("ingress.routes", handle)
    assert refused.value.code == NOT_FOUND
    for number in range(3):
        switch.add_entry("ingress.routes", [f"10.{number}.0.0/16"], "ingress.drop")
    switch.clear_table("ingress.routes")
    assert read_entries(served.switch, "ingress.routes") == []


def test_defaults_are_set_and_go_back_to_the_program_s_own(served, switch):
    def default():
        return served.switch.perform({"op": "default_read", "table": "ingress.routes"})

    switch.set_default("ingress.routes", "ingress.send", [2])
    assert (default()["action"], default()["is_initial"]) == ("ingress.send", False)
    switch.perform({"op": "table_default", "table": "ingress.routes"})
    assert (default()["action"], default()["is_initial"]) == ("ingress.drop", True)


def test_counters_are_read_and_written(served, switch):
    handle = switch.add_entry("ingress.stations", [MAC], "ingress.counted_send", [2])
    for _ in range(3):
        served.switch.send_packet(1, STATION)
    assert switch.read_counter("ingress.by_port", 1) == (3, 192)
    assert switch.read_entry_counter("ingress.stations", handle) == (3, 192)
    by_key = {"op": "counter_read", "table": "ingress.stations", "match": [MAC]}
    assert switch.perform(by_key)["packets"] == 3
    everything = switch.perform({"op": "counter_read", "counter": "ingress.by_port"})["counts"]
    assert everything == [[0, 0], [3, 192], *[[0, 0]] * 6]
    what = {"op": "counter_write", "counter": "ingress.by_port", "index": 2}
    switch.perform({**what, "packets": 5, "bytes": 6})
    assert served.switch.read_counter("ingress.by_port", 2) == (5, 6)
    switch.reset_counter("ingress.by_port")
    assert switch.read_counter("ingress.by_port", 1) == (0, 0)


def test_meters_have_rates_per_second(served, switch):
    rates = [{"per_us": 0.5, "burst": 10}, {"per_us": 1, "burst": 20}]
    switch.perform({"op": "meter_rates", "meter": "ingress.limits", "index": 1, "rates": rates})
    read = {"op": "meter_read", "meter": "ingress.limits", "index": 1}
    assert served.switch.perform(read)["rates"] == rates
    switch.perform({"op": "meter_rates", "meter": "ingress.limits", "index": 1, "rates": []})
    assert served.switch.perform(read)["rates"] == []
    with pytest.raises(Refused, match="1 rates for a meter; give two rates, or none"):
        what = {"op": "meter_rates", "meter": "ingress.limits", "index": 1}
        switch.perform({**what, "rates": rates[:1]})


def test_members_and_groups_have_ids_of_the_client_s(served, switch):
    members = [
        switch.perform(
            {"op": "member_add", "profile": "ingress.paths", "action": "ingress.send",
             "data": [port]}
        )["member"]
        for port in (1, 2)
    ]  # fmt: skip
    group = switch.perform({"op": "group_create", "profile": "ingress.paths"})["group"]
    of_group = {"profile": "ingress.paths", "group": group}
    for member in members:
        switch.perform({"op": "group_add_member", **of_group, "member": member})
    switch.perform(
        {"op": "table_add", "table": "ingress.groups", "match": ["10.0.0.1"], "group": group}
    )

    def sizes():
        read = served.switch.perform({"op": "group_read", "profile": "ingress.paths"})
        return [len(each["members"]) for each in read["groups"]]

    assert sizes() == [2]
    switch.perform({"op": "group_remove_member", **of_group, "member": members[0]})
    assert sizes() == [1]
    with pytest.raises(Refused, match="has no member"):
        switch.perform({"op": "group_remove_member", **of_group, "member": members[0]})
    switch.clear_table("ingress.groups")
    switch.perform({"op": "group_delete", **of_group})
    assert sizes() == []
    for member in members:
        what = {"profile": "ingress.paths", "member": member}
        switch.perform({"op": "member_delete", **what})


def test_copies_and_value_sets_are_made(served, switch):
    switch.add_mirror(7, port=2)
    assert served.switch.perform({"op": "mirror_read"})["sessions"] == [{"session": 7, "port": 2}]
    switch.delete_mirror(7)
    with pytest.raises(Refused, match="to ports, not to a multicast group"):
        switch.add_mirror(7, group=1)
    switch.create_group(3, [(0, [1, 2]), (5, [2])])
    (group,) = served.switch.perform({"op": "multicast_read"})["groups"]
    assert sum(len(copy["ports"]) for copy in group["copies"]) == 3
    switch.delete_group(3)
    of_set = {"set": "parsing.ipv4_types"}
    for value in (0x88B6, "0x88b7"):
        switch.perform({"op": "value_set_add", **of_set, "value": value})
    read = served.switch.perform({"op": "value_set_read", **of_set})
    assert sorted(read["values"]) == [0x88B6, 0x88B7]
    switch.perform({"op": "value_set_clear", **of_set})
    assert served.switch.perform({"op": "value_set_read", **of_set})["values"] == []


def test_registers_are_read_and_written(served, switch):
    switch.write_register("ingress.last_source", 1, MAC)
    assert served.switch.read_register("ingress.last_source", 1) == [0x020000000001]
    assert switch.read_register("ingress.last_source") == [0, 0x020000000001, 0, 0]
    switch.reset_register("ingress.last_source")
    assert switch.read_register("ingress.last_source") == [0, 0, 0, 0]


def test_digests_come_to_who_asks(served, switch):
    assert switch.read_digests() == []  # from now on
    end = time.monotonic() + WAIT_S
    while not (found := switch.read_digests()):
        assert time.monotonic() < end
        served.switch.send_packet(1, STATION)  # the server may not have listened to the last
        time.sleep(0.01)
    assert found[0]["values"] == [0x020000000002, 1, 0]


REFUSED = [
    ({"op": "table_add", "table": "none", "match": [], "action": "ingress.drop"}, NOT_FOUND,
     "there is no table none"),
    ({"op": "table_add", "table": "ingress.routes", "match": [], "action": "ingress.drop"},
     INVALID, "table ingress.routes has 1 keys; 0 are given"),
    ({"op": "table_add", "table": "ingress.routes", "match": ["10.0.0.0/8"], "action": "none"},
     NOT_FOUND, "there is no action none"),
    ({"op": "table_add", "table": "ingress.routes", "match": ["10.0.0.0/8"],
      "action": "ingress.send"}, INVALID, "has 1 parameters; 0 are given"),
    ({"op": "table_add", "table": "ingress.routes", "match": ["10.0.0.0/8"],
      "action": "ingress.send", "data": [512]}, INVALID, "512"),
    ({"op": "table_add", "table": "ingress.stations", "match": [None],
      "action": "ingress.counted_send", "data": [1]}, INVALID, "kind exact; give a value"),
    ({"op": "queue_set", "port": 1, "rate_bps": 1}, UNSUPPORTED,
     "P4Runtime has no operation queue_set; set the queues on the switch itself"),
    ({"op": "register_read", "register": "none"}, NOT_FOUND, "there is no register none"),
    ({"op": "counter_read", "wrong": 1}, INVALID, "counter_read: "),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "code", "said"), REFUSED, ids=[each[2] for each in REFUSED])
def test_what_cannot_be_is_refused(switch, operation, code, said):
    with pytest.raises(Refused) as refused:
        switch.perform(operation)
    assert said in str(refused.value) and refused.value.code == code


def test_of_several_operations_the_refused_one_is_named(served, switch):
    add = {"op": "table_add", "table": "ingress.routes", "action": "ingress.drop"}
    wrong = [{**add, "match": [f"10.{number}.0.0/16"]} for number in (0, 1, 1, 2)]
    with pytest.raises(Refused) as refused:
        switch.perform_all(wrong)
    assert (refused.value.code, refused.value.index) == (ALREADY_EXISTS, 2)
    assert "operation 2 of 4: " in str(refused.value)
    assert "there is an entry with this key already" in str(refused.value)


def test_more_operations_than_one_write_takes_are_several(served, switch):
    add = {"op": "table_add", "table": "ingress.routes", "action": "ingress.drop"}
    many = [{**add, "match": [f"10.{n >> 8}.{n & 255}.0/24"]} for n in range(1100)]
    assert len(switch.perform_all(many)) == 1100
    assert len(read_entries(served.switch, "ingress.routes")) == 1000  # of a page


def test_one_client_is_primary(served, switch):
    with pytest.raises(Refused) as refused:
        P4RuntimeSwitch(served.address, p4info=EVERYTHING_INFO)
    assert refused.value.code == FAILED_PRECONDITION
    assert "another controller is the primary client" in str(refused.value)
    with P4RuntimeSwitch(served.address, is_primary=False) as reader:  # with what runs
        assert reader.read_counter("ingress.by_port", 1) == (0, 0)
        with pytest.raises(Refused):
            reader.add_entry("ingress.routes", ["10.0.0.0/8"], "ingress.drop")
    switch.add_entry("ingress.routes", ["10.0.0.0/8"], "ingress.drop")


def test_a_switch_that_runs_already_is_cleared(served, switch):
    switch.add_entry("ingress.routes", ["10.0.0.0/8"], "ingress.drop")
    switch.add_mirror(7, port=2)
    switch.close()
    with P4RuntimeSwitch(served.address) as again:
        again.clear()
        assert read_entries(served.switch, "ingress.routes") == []
        assert served.switch.perform({"op": "mirror_read"})["sessions"] == []
        again.add_entry("ingress.routes", ["10.0.0.0/8"], "ingress.drop")


def test_who_is_not_there_and_what_is_no_pipeline_is_said(served, tmp_path):
    with pytest.raises(OSError, match=r"unix:.*/nobody: no P4Runtime server answers at"):
        P4RuntimeSwitch(f"unix:{tmp_path}/nobody")
    with pytest.raises(Refused, match="pipeline"):
        P4RuntimeSwitch(served.address)  # it was given none by P4Runtime
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    with pytest.raises(Refused):
        P4RuntimeSwitch(served.address, program=broken, p4info=EVERYTHING_INFO)
    (tmp_path / "p4info.txtpb").write_text("nonsense")
    with pytest.raises(Refused, match=r"p4info.txtpb: not a P4Info"):
        P4RuntimeSwitch(served.address, program=EVERYTHING, p4info=tmp_path / "p4info.txtpb")


def test_a_closed_client_is_gone(switch):
    switch.close()
    switch.close()
    with pytest.raises(OSError, match="the connection has been closed"):
        switch.read_counter("ingress.by_port", 1)


def test_edge_p4_is_filled_and_its_counters_are_read(tmp_path):
    """As the agent does it. Its actions' names occur in two controls."""

    class Port:
        def __init__(self, number, link):
            self.number, self.link = number, link
            self.imposes = self.packet_bytes = self.sample_every = None

    class Route:
        destination, link = "10.0.0.0/8", "radio"

    ports = [Port(1, "wired"), Port(2, "radio")]
    macs = {name: edge.Macs(MAC, OTHER) for name in ("wired", "radio")}
    with (
        Served(tmp_path, EDGE, None) as served,
        P4RuntimeSwitch(served.address, program=EDGE, p4info=EDGE_INFO) as switch,
    ):
        switch.perform_all(edge.build_operations([Route()], ports, macs, dict.fromkeys(macs, 1500)))
        (entry,) = read_entries(served.switch, edge.IPV4_ROUTES)
        assert entry["data"] == [2, 0x020000000001, 0x020000000002, 1500]
        served.switch.send_packet(1, STATION)
        counters = edge.read_counters(switch, ports)
        assert counters == edge.read_counters(served.switch, ports)
        assert counters["ports"][0]["received"] == 1
