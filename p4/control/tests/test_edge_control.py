# SPDX-License-Identifier: Apache-2.0
"""From a node of a plan to operations on p4/edge.p4, and nothing that edge.p4 does not have."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import NamedTuple

import nagi_p4
import pytest
from nagi_p4 import edge
from nagi_p4.operations import Refused, parse_number

PACKAGE = Path(nagi_p4.__file__).parent
PROGRAM = json.loads(edge.read_pipeline())
MACS = {
    "wired": edge.Macs("02:00:00:00:00:01", "02:00:00:00:00:0a"),
    "radio": edge.Macs("02:00:00:00:00:02", "02:00:00:00:00:0b"),
}
GILBERT = {
    "model": "gilbert_elliott",
    "good_to_bad": 0.25,
    "bad_to_good": 0.5,
    "loss_in_good": 0.0,
    "loss_in_bad": 1.0,
}


class Route(NamedTuple):
    destination: str
    link: str


class Port(NamedTuple):
    number: int
    link: str
    imposes: dict | None = None
    packet_bytes: int = 1052
    sample_every: int | None = None


ROUTES = [
    Route("198.18.0.1/32", "wired"),
    Route("198.18.1.2/32", "radio"),
    Route("fd6e:6167:6900:1::2/128", "radio"),
]
MTUS = {"wired": 1500, "radio": 1400}


def ports(imposes=None, sample_every=None):
    return [Port(1, "wired"), Port(2, "radio", imposes, sample_every=sample_every)]


def operations(imposes=None, sample_every=None):
    return edge.build_operations(ROUTES, ports(imposes, sample_every), MACS, MTUS)


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.name)
def test_it_imports_the_standard_library_alone(path):
    for each in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(each, ast.Import):
            names = [alias.name for alias in each.names]
        elif isinstance(each, ast.ImportFrom):
            names = [each.module or ""]
        for name in names:
            assert name.split(".")[0] in {"nagi_p4", *sys.stdlib_module_names}, name


def test_routes_go_to_the_neighbour_behind_the_port():
    assert operations() == [
        {
            "op": "table_add",
            "table": f"ingress.ipv{version}_routes",
            "match": [destination],
            "action": "ingress.forward",
            "data": [port, *MACS[link], mtu],
        }
        for version, destination, port, link, mtu in (
            (4, "198.18.0.1/32", 1, "wired", 1500),
            (4, "198.18.1.2/32", 2, "radio", 1400),
            (6, "fd6e:6167:6900:1::2/128", 2, "radio", 1400),
        )
    ]


@pytest.mark.parametrize(
    ("loss", "data"),
    [
        ({"model": "bernoulli", "probability": 0.01}, [0, 0, 42949673, 0]),
        ({"model": "bernoulli", "probability": 1.0}, [0, 0, 2**32, 0]),
        (GILBERT, [2**30, 2**31, 0, 2**32]),
    ],
)
def test_probabilities_become_thresholds_of_32_bits(loss, data):
    (operation,) = operations({"loss": loss})[len(ROUTES) :]
    assert operation == {
        "op": "table_add",
        "table": "egress.ports",
        "match": [2],
        "action": "egress.impose",
        "data": [0, 0, 0, 0, *data],
    }


def test_marking_and_samples_are_set_where_they_are_asked_for():
    mark = {"threshold_packets": 7, "threshold_bytes": None, "weight": 2**-9}
    port, mirror = operations({"mark": mark}, sample_every=24)[len(ROUTES) :]
    assert port["data"] == [24, 1, 7, 9, 0, 0, 0, 0]
    assert mirror == {"op": "mirror_add", "session": 1, "port": 510}
    (port,) = operations({"mark": {**mark, "threshold_packets": 0}})[len(ROUTES) :]
    assert port["data"] == [0, 1, 0, 9, 0, 0, 0, 0]


def test_a_port_that_imposes_nothing_has_no_entry():
    assert len(operations({"loss": {"model": "none"}, "mark": None})) == len(ROUTES)


def test_what_the_program_cannot_do_is_not_left_out():
    with pytest.raises(ValueError, match="no loss model poisson"):
        operations({"loss": {"model": "poisson"}})
    with pytest.raises(ValueError, match="a power of 2"):
        operations({"mark": {"threshold_packets": 7, "weight": 0.3}})


def test_a_port_has_the_queue_that_is_asked_for():
    imposes = {"rate_bps": 10**7, "overhead_bytes": 4, "queue": {"packets": 20, "bytes": None}}
    assert edge.plan_ports(ports(imposes)) == [
        edge.Port(1, "wired", {}, 1052),
        edge.Port(2, "radio", {"rate_bps": 10**7, "overhead_bytes": 4, "depth_packets": 20}, 1052),
    ]


def widths():
    types = {
        each["name"]: dict(field[:2] for field in each["fields"])
        for each in PROGRAM["header_types"]
    }
    return {
        (header["name"], field): bits
        for header in PROGRAM["headers"]
        for field, bits in types[header["header_type"]].items()
    }  # fmt: skip


def test_every_operation_is_one_that_the_program_can_do():
    tables = {
        table["name"]: table for pipeline in PROGRAM["pipelines"] for table in pipeline["tables"]
    }
    actions = {action["name"]: action["runtime_data"] for action in PROGRAM["actions"]}
    mark = {"threshold_packets": 7, "weight": 1.0}
    everything = [
        operation
        for loss in (GILBERT, {"model": "bernoulli", "probability": 1.0})
        for operation in operations({"loss": loss, "mark": mark}, 1)
        if operation["op"] == "table_add"
    ]
    assert {operation["table"] for operation in everything} == {
        edge.IPV4_ROUTES,
        edge.IPV6_ROUTES,
        edge.PORTS,
    }
    entered = {name for name, table in tables.items() if not name.startswith("tbl_")}
    assert entered == {operation["table"] for operation in everything}
    for operation in everything:
        table = tables[operation["table"]]
        assert operation["action"] in table["actions"]
        assert len(operation["match"]) == len(table["key"])
        parameters = actions[operation["action"]]
        assert len(parameters) == len(operation["data"])
        for parameter, value in zip(parameters, operation["data"], strict=True):
            assert parse_number(value) >> parameter["bitwidth"] == 0, operation


def test_samples_are_the_program_s_digest():
    (listed,) = PROGRAM["learn_lists"]
    known = widths()
    bits = [known[tuple(element["value"])] for element in listed["elements"]]
    assert bits == [9, 48, 19, 19, 32] and len(bits) == len(edge.Sample._fields)
    sample = edge.parse_sample({"digest": listed["name"], "values": [2, 1700000, 5, "0x4", 336]})
    assert sample == edge.Sample(2, 1700000, 5, 4, 336)


def test_counters_are_read_of_every_port_and_cause():
    sizes = {each["name"]: each.get("size") for each in PROGRAM["counter_arrays"]}

    class Counting:
        def read_counter(self, counter, index):
            assert index < sizes[counter]
            if counter in (edge.DROPS, edge.REPORTED):
                place, value = (3 * 512 + 2, 1) if counter == edge.DROPS else (5 * 512 + 1, 4)
                return (value if index == place else 0), 0
            if index == edge.CPU_PORT:
                return (4 if counter == edge.RECEIVED else 0), 0
            values = {edge.RECEIVED: 10, edge.SENT: 7, edge.LOSSES: 2, edge.MARKED: 1}
            return values[counter], 0

    found = edge.read_counters(Counting(), ports())
    counts = {"received": 10, "sent": 7, "lost": 2, "marked": 1}
    assert found["ports"] == [{"number": 1, **counts}, {"number": 2, **counts}]
    assert found["drops"] == {**dict.fromkeys(edge.CAUSES, 0), "no route": 1}
    assert found["told"] == {"last hop": 0, "too big": 4}
    assert found["from_controller"] == 4


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5),
        ("0x1ff", 511),
        ("10.0.0.1", 0x0A000001),
        ("2001:db8::1", 0x20010DB8 << 96 | 1),
        ("02:00:00:00:00:01", 0x020000000001),
    ],
)
def test_numbers_may_be_addresses(value, expected):
    assert parse_number(value) == expected


@pytest.mark.parametrize("value", ["ten", "0xg", "1.2.3", True, None, 1.5, "02:00:00:00:00:1"])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(Refused, match="is no number; give an integer"):
        parse_number(value)
