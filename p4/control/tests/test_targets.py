# SPDX-License-Identifier: Apache-2.0
"""Tests of the control interface of all targets.

Operations reach a target in its own form, refusals come back as Refused, and a switch that is gone
raises OSError.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from contextlib import suppress
from typing import Any

import pytest
from nagi_p4 import notifications, simple_switch_client
from nagi_p4 import simple_switch_answers as answers
from nagi_p4.nagi_switch import NagiSwitch
from nagi_p4.notifications import Notifications
from nagi_p4.operations import Refused
from nagi_p4.simple_switch import SimpleSwitch, compute_packet_rate
from nagi_p4.simple_switch_client import Connection
from nagi_p4.simple_switch_pipeline import Pipeline

HEADER = struct.Struct("<4sQIiQI")


class Listener:
    """A server at a Unix socket that answers each line with the result of `answer`."""

    def __init__(self, path, answer):
        self.heard = []
        self._answer = answer
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        with self._server, self._server.accept()[0] as client:
            for line in client.makefile("rb"):
                request = json.loads(line)
                self.heard.append(request)
                answer = self._answer(request)
                if answer is None:
                    return
                with suppress(BrokenPipeError):  # who asked has gone
                    client.sendall(json.dumps(answer).encode() + b"\n")

    def join(self):
        self._thread.join(10)


@pytest.fixture
def long_path(tmp_path):
    """Return a path longer than an address of a socket may be."""
    directory = tmp_path
    while len(str(directory)) < 120:
        directory = directory / "directory"
    directory.mkdir(parents=True)
    return directory / "control.sock"


def listening(path, answer, tmp_path, monkeypatch):
    monkeypatch.chdir(path.parent)
    listener = Listener(path.name, answer)
    monkeypatch.chdir(tmp_path)
    return listener


def test_every_operation_is_a_line(long_path, tmp_path, monkeypatch):
    answers = {
        "table_add": {"handle": 7},
        "register_read": {"values": [3]},
        "counter_read": {"packets": 2, "bytes": 100},
        "digests": {"digests": [{"digest": "Sample", "values": [1]}]},
        "batch": {"answers": [{"ok": True}, {"ok": True}]},
        "show": {"account": {"complete": False}},
    }
    listener = listening(
        long_path, lambda said: {"ok": True, **answers.get(said["op"], {})}, tmp_path, monkeypatch
    )
    with NagiSwitch(str(long_path)) as switch:
        assert switch.add_entry("t", ["10.0.0.0/8"], "a", [1], priority=2) == 7
        switch.modify_entry("t", 7, "b")
        switch.delete_entry("t", 7)
        switch.clear_table("t")
        switch.set_default("t", "a", ["02:00:00:00:00:01"])
        assert switch.read_register("r", 0) == [3]
        switch.write_register("r", 0, 5)
        switch.reset_register("r")
        assert switch.read_counter("c", 1) == (2, 100)
        assert switch.read_entry_counter("t", 7) == (2, 100)
        switch.reset_counter("c")
        switch.add_mirror(1, port=2)
        switch.delete_mirror(1)
        switch.create_group(3, [(0, [1, 2])])
        switch.delete_group(3)
        switch.set_queue(1, rate_bps=10**6, depth_packets=None)
        assert switch.read_digests() == [{"digest": "Sample", "values": [1]}]
        assert len(switch.perform_all([{"op": "x"}, {"op": "y"}])) == 2
        assert switch.read_account() == {"complete": False}
        switch.stop()
    listener.join()
    assert listener.heard[0] == {
        "op": "table_add", "table": "t", "match": ["10.0.0.0/8"], "action": "a", "data": [1],
        "priority": 2,
    }  # fmt: skip
    assert listener.heard[15] == {
        "op": "queue_set", "port": 1, "rate_bps": 10**6, "depth_packets": None,
    }  # fmt: skip
    assert [each["op"] for each in listener.heard][-4:] == ["digests", "batch", "show", "stop"]


def test_a_refusal_is_said_and_the_conversation_goes_on(tmp_path, monkeypatch):
    path = tmp_path / "s.sock"
    answers = iter([{"ok": False, "error": "there is no table t"}, {"ok": True, "handle": 1}])
    listener = listening(path, lambda _: next(answers), tmp_path, monkeypatch)
    with NagiSwitch(str(path)) as switch:
        with pytest.raises(Refused, match="nagi-switch: there is no table t"):
            switch.add_entry("t", [1], "a")
        assert switch.add_entry("t2", [1], "a") == 1
    listener.join()


def test_a_switch_that_is_gone_is_no_answer(tmp_path, monkeypatch):
    path = tmp_path / "s.sock"
    with pytest.raises(OSError, match="no nagi-switch listens at this path"):
        NagiSwitch(str(path))
    listener = listening(path, lambda _: None, tmp_path, monkeypatch)
    with NagiSwitch(str(path)) as switch:
        with pytest.raises(OSError, match="ended without an answer"):
            switch.clear_table("t")
        with pytest.raises(OSError, match="the connection has been closed"):
            switch.clear_table("t")
    listener.join()


def test_an_answer_that_is_late_is_never_taken_for_another(tmp_path, monkeypatch):
    path = tmp_path / "s.sock"
    go_on = threading.Event()

    def late(_):
        go_on.wait(10)
        return {"ok": True, "handle": 1}

    listener = listening(path, late, tmp_path, monkeypatch)
    with NagiSwitch(str(path), timeout_s=0.2) as switch:
        with pytest.raises(TimeoutError):
            switch.clear_table("t")
        go_on.set()
        with pytest.raises(OSError, match="the connection has been closed"):
            switch.clear_table("t")
    listener.join()


def test_rates_in_bits_become_rates_of_full_size_packets():
    assert compute_packet_rate(20_000_000, 1250) == 2000
    assert compute_packet_rate(20_000_000, 1212, overhead_bytes=38) == 2000
    assert compute_packet_rate(1000, 1250) == 1


class Recorder:
    """A double of bmv2's Thrift client that records calls."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *given: self.calls.append((name, *given))


# Group 3, with two copies, as simple_switch returns it.
TREE = {
    "mgrps": [{"id": 3, "l1_handles": [5, 6]}],
    "l1_handles": [
        {"handle": 5, "rid": 0, "l2_handle": 7},
        {"handle": 6, "rid": 1, "l2_handle": 8},
    ],
    "l2_handles": [
        {"handle": 7, "ports": [1, 2], "lags": []},
        {"handle": 8, "ports": [2], "lags": []},
    ],
}


@pytest.fixture
def bmv2(monkeypatch):
    """Return a SimpleSwitch without simple_switch."""
    connection = object.__new__(Connection)
    broken = type("TTransportException", (Exception,), {})
    connection.modules = {"transport": type("transport", (), {"TTransportException": broken})}
    connection.switch = Recorder()
    connection.standard = Recorder()
    connection.multicast = type(
        "multicast", (), {"bm_mc_get_entries": lambda *_: json.dumps(TREE)}
    )()
    connection.notifications = None
    connection.packets = None
    switch = object.__new__(SimpleSwitch)
    switch._connection = connection
    return switch


def test_bmv2_s_queues_are_set_in_packets(bmv2):
    bmv2.set_queue(2, rate_pps=2000, depth_packets=20)
    bmv2.set_queue(2, rate_pps=None, depth_packets=5)
    assert bmv2._connection.switch.calls == [
        ("set_egress_queue_rate", 2, 2000),
        ("set_egress_queue_depth", 2, 20),
        ("set_egress_queue_rate", 2, 0),
        ("set_egress_queue_depth", 2, 5),
    ]


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"rate_bps": 10**6}, "rates in packets per second, not bits; give rate_pps, or use"),
        ({"depth_bytes": 1000}, "depth_bytes: bmv2's queues count packets; give depth_packets"),
        ({"overhead_bytes": 38}, "overhead_bytes: bmv2's queues count packets"),
        ({"rate_pps": 0}, "rate_pps is 0; give 1 or more, or null"),
        ({"depth_packets": None}, "always have a depth; give depth_packets"),
        ({"depht_packets": 1}, "a queue has no depht_packets"),
    ],
)
def test_what_bmv2_s_queues_cannot_do_is_refused(bmv2, limits, said):
    with pytest.raises(Refused, match=said):
        bmv2.set_queue(2, **limits)
    assert bmv2._connection.switch.calls == []


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        ({"op": "show"}, "there is no operation show for bmv2"),
        ({"op": "digests"}, "does not publish digests"),
        ({"op": "multicast_delete", "group": 4}, "there is no multicast group 4"),
        ({"op": "table_clear", "tabel": "t"}, "table_clear: missing a required argument: 'table'"),
        ({"op": "key", "table": "t"}, "there is no operation key for bmv2"),
    ],
)
def test_what_bmv2_does_not_know_is_refused(bmv2, operation, said):
    with pytest.raises(Refused, match=said):
        bmv2.perform(operation)


def test_of_several_operations_bmv2_says_how_far_it_came(bmv2):
    operations = [{"op": "register_reset", "register": "r"}, {"op": "show"}]
    with pytest.raises(Refused, match=r"operation 1 of 2: .*cannot undo"):
        bmv2.perform_all(operations)
    assert bmv2._connection.standard.calls == [("bm_register_reset", 0, "r")]


PROGRAM = {
    "header_types": [{"name": "h_t", "fields": [["port", 9, False], ["address", 32, False]]}],
    "headers": [{"name": "h", "header_type": "h_t"}],
    "pipelines": [
        {
            "tables": [
                {
                    "name": "routes",
                    "key": [
                        {"match_type": "lpm", "target": ["h", "address"]},
                        {"match_type": "exact", "target": ["h", "$valid$"]},
                    ],
                }
            ]
        }
    ],
    "actions": [{"name": "go", "runtime_data": [{"name": "port", "bitwidth": 9}]}],
    "parse_vsets": [],
    "learn_lists": [
        {
            "id": 1,
            "name": "Sample",
            "elements": [
                {"type": "field", "value": ["h", "port"]},
                {"type": "field", "value": ["h", "address"]},
            ],
        }
    ],
}


def test_bmv2_is_given_as_many_octets_as_the_program_has_bits():
    pipeline = Pipeline(PROGRAM)
    assert pipeline.list_keys_for("routes", [1, 1]) == [("lpm", 32), ("exact", 1)]
    assert pipeline.encode_data("go", [511]) == [b"\x01\xff"]
    for given, said in (
        (lambda: pipeline.encode_data("go", [512]), "go: 512 does not fit 9 bits"),
        (lambda: pipeline.encode_data("go", []), "action go has 1 parameters; 0 are given"),
        (lambda: pipeline.encode_data("went", []), "there is no action went"),
        (lambda: pipeline.list_keys_for("routes", [1]), "table routes has 2 keys; 1 are given"),
        (lambda: pipeline.list_keys_for("roads", [1]), "there is no table roads"),
    ):
        with pytest.raises(Refused, match=said):
            given()


def test_digests_come_by_notifications_whole_or_in_pieces(long_path, tmp_path, monkeypatch):
    monkeypatch.chdir(long_path.parent)
    server = socket.socket(socket.AF_UNIX)
    server.bind(long_path.name)
    server.listen()
    monkeypatch.chdir(tmp_path)
    publisher = []

    def publish():
        client, _ = server.accept()
        client.sendall(b"\0SP\0\0\x20\0\0")
        publisher.append((client, client.recv(8, socket.MSG_WAITALL)))

    thread = threading.Thread(target=publish)
    thread.start()
    subscription = Notifications(str(long_path))
    thread.join(10)
    ((client, hello),) = publisher
    assert hello == b"\0SP\0\0\x21\0\0"

    samples = b"\x00\x02" + b"\x0a\0\0\x01" + b"\x01\xff" + b"\0\0\0\x05"
    message = HEADER.pack(b"LEA|", 0, 0, 1, 9, 2) + samples
    other = b"PRT|" + bytes(28)
    framed = b"".join(struct.pack(">BQ", 1, len(each)) + each for each in (other, message))
    client.sendall(framed[:50])
    assert subscription.receive_all() == []
    client.sendall(framed[50:])
    (learned,) = subscription.receive_all()
    assert (learned.list_id, learned.buffer_id, learned.samples) == (1, 9, 2)
    assert list(Pipeline(PROGRAM).decode_digests(learned)) == [
        {"digest": "Sample", "values": [2, 0x0A000001]},
        {"digest": "Sample", "values": [511, 5]},
    ]
    subscription.close()
    client.close()
    server.close()


def test_without_bmv2_it_is_said_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "there is no simple_switch; install bmv2" in simple_switch_client.find_problem()
    monkeypatch.setenv(simple_switch_client.CLIENT_VARIABLE, "/somewhere")
    assert simple_switch_client.find_client_directory() == "/somewhere"


class ThriftObject:
    """A double of Thrift's objects: fields that are not given are None."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def __getattr__(self, name):
        return None


def test_bmv2_s_entries_are_told_as_nagi_switch_tells_its_own():
    key = [
        ThriftObject(lpm=ThriftObject(key=b"\x0a\0\0\0", prefix_length=8)),
        ThriftObject(exact=ThriftObject(key=bytes(8) + b"\1" + bytes(7))),
        ThriftObject(ternary=ThriftObject(key=b"\x06", mask=b"\xff")),
        ThriftObject(ternary=ThriftObject(key=b"\0", mask=b"\0")),
        ThriftObject(range=ThriftObject(start=b"\1", end_=b"\5")),
    ]
    kinds = [("lpm", 32), ("exact", 128), ("ternary", 8), ("optional", 8), ("range", 8)]
    entry = ThriftObject(
        match_key=key,
        entry_handle=5,
        options=ThriftObject(priority=7),
        action_entry=ThriftObject(action_type=1, action_name="go", action_data=[b"\x01\xff"]),
        life=ThriftObject(timeout_ms=1000, time_since_hit_ms=20),
    )
    assert answers.decode_entry(entry, kinds) == {
        "handle": 5,
        "match": [
            {"value": 0x0A000000, "prefix": 8},
            1 << 56,
            {"value": 6, "mask": 255},
            None,
            {"low": 1, "high": 5},
        ],
        "action": "go",
        "data": [511],
        "priority": 7,
        "idle_us": 20_000,
        "timeout_us": 1_000_000,
    }
    assert answers.decode_action(ThriftObject(action_type=2, mbr_handle=3)) == {"member": 3}
    assert answers.decode_action(ThriftObject(action_type=3, grp_handle=4)) == {"group": 4}
    assert answers.decode_action(ThriftObject(action_type=0)) == {}
    assert answers.decode_number(b"\1" + bytes(8)) == "0x10000000000000000"


def test_bmv2_s_multicast_is_read_and_deleted_whoever_made_it(bmv2):
    copies = [{"rid": 0, "ports": [1, 2]}, {"rid": 1, "ports": [2]}]
    assert bmv2.read_multicast() == [{"group": 3, "copies": copies}]
    calls: Any = Recorder()
    calls.bm_mc_get_entries = lambda *_: json.dumps(TREE)
    bmv2._connection.multicast = calls
    bmv2.delete_group(3)
    assert [call[0] for call in calls.calls] == [
        *["bm_mc_node_dissociate", "bm_mc_node_destroy"] * 2,
        "bm_mc_mgrp_destroy",
    ]


def test_bmv2_takes_entries_by_their_key(bmv2):
    types = {
        **{name: lambda **given: given for name in ("BmAddEntryOptions", "BmMatchParam")},
        **{f"BmMatchParam{kind}": lambda *given: given for kind in ("LPM", "Exact")},
        "BmMatchParamType": ThriftObject(EXACT=0, LPM=1),
        "InvalidTableOperation": KeyError,
    }
    bmv2._connection.modules["types"] = ThriftObject(**types)
    bmv2._connection.pipeline = Pipeline(PROGRAM)
    calls: Any = Recorder()
    calls.bm_mt_get_entry_from_key = lambda *_: ThriftObject(entry_handle=9)
    bmv2._connection.standard = calls
    key = {"table": "routes", "match": ["10.0.0.0/8", 1]}
    bmv2.perform({"op": "table_modify", **key, "action": "go", "data": [1], "timeout_us": 1500})
    bmv2.perform({"op": "table_delete", **key})
    assert calls.calls == [
        ("bm_mt_modify_entry", 0, "routes", 9, "go", [b"\x00\x01"]),
        ("bm_mt_set_entry_ttl", 0, "routes", 9, 2),
        ("bm_mt_delete_entry", 0, "routes", 9),
    ]
    with pytest.raises(Refused, match="give the handle or the match") as refused:
        bmv2.perform({"op": "table_delete", "table": "routes"})
    assert refused.value.code == "invalid"


@pytest.mark.parametrize(
    ("operation", "code", "said"),
    [
        ({"op": "packet_out", "bytes": "00"}, "failed_precondition", "the port's veth pair"),
        (
            {"op": "mirror_add", "session": 1, "port": 1, "max_bytes": 9},
            "unsupported",
            "cannot truncate clones",
        ),
        ({"op": "pipeline_check", "program": "{}", "name": "x.json"}, "invalid", "not the JSON"),
    ],
)
def test_what_bmv2_cannot_do_is_refused_by_name(bmv2, operation, code, said):
    with pytest.raises(Refused, match=said) as refused:
        bmv2.perform(operation)
    assert refused.value.code == code


def test_idle_entries_come_by_notifications():
    header = struct.pack("<4sQIQiI", b"AGE|", 0, 0, 1, 4, 2)
    for size in ("I", "Q"):
        message = header + struct.pack(f"<2{size}", 7, 1 << 24)
        assert notifications._parse_message(message) == notifications.IdleMessage(4, (7, 1 << 24))


def test_a_refusal_of_nagi_switch_says_why_and_which(tmp_path, monkeypatch):
    error = "operations.3: t: it is full"
    answer = {"ok": False, "error": error, "code": "resource_exhausted"}
    listener = listening(tmp_path / "s.sock", lambda _: answer, tmp_path, monkeypatch)
    with NagiSwitch(str(tmp_path / "s.sock")) as switch:
        with pytest.raises(Refused) as refused:
            switch.perform_all([{"op": "x"}] * 5)
        assert (refused.value.code, refused.value.index) == ("resource_exhausted", 3)
    listener.join()


def test_bmv2_s_meters_without_rates_let_everything_pass(bmv2):
    bmv2._connection.modules["types"] = ThriftObject(
        BmMeterRateConfig=lambda **given: ThriftObject(**given)
    )
    calls = bmv2._connection.standard
    bmv2.perform({"op": "meter_rates", "meter": "m", "index": 1, "rates": []})
    ((name, *_, given),) = calls.calls
    assert name == "bm_meter_set_rates" and len(given) == 2
    assert answers.decode_rates(given) == []
    some = [ThriftObject(units_per_micros=0.5, burst_size=7)]
    assert answers.decode_rates(some) == [{"per_us": 0.5, "burst": 7}]


def test_bmv2_s_multicast_groups_are_not_added_to(bmv2):
    with pytest.raises(Refused, match="there is a multicast group 3") as refused:
        bmv2.create_group(3, [(0, [1])])
    assert refused.value.code == "already_exists"
