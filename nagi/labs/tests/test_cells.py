# SPDX-License-Identifier: Apache-2.0
"""Read inventories of real hosts, and refuse erroneous ones."""

from __future__ import annotations

import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest
import yaml
from nagi.labs.cells import read_cells
from nagi.labs.host_pool import HostPool
from nagi.labs.shape import EMULATOR
from nagi_contracts.errors import InputError

HOSTS = {
    "alice": {"nagi_node": "S", "nagi_links": {"wired": "enp2s0"}},
    "bob": {"nagi_node": "N", "nagi_links": {"wired": "enp2s0", "radio": "enp3s0"}},
    "carol": {"nagi_node": "D", "nagi_links": {"radio": "enp2s0"}},
    "heron": {
        "nagi_node": "emulator",
        "nagi_links": {
            "wired": {"S": "enp2s0", "N": "enp3s0"},
            "radio": {"N": "enp4s0", "D": "enp5s0"},
        },
    },
}


@pytest.fixture
def inventory(tmp_path):
    path = tmp_path / "inventory.yml"

    def write(spoil=lambda cells: None):
        cells = {"bench1": {"hosts": copy.deepcopy(HOSTS)}}
        spoil(cells)
        children = {"cells": {"children": cells}} if cells else {}
        path.write_text(yaml.safe_dump({"all": {"children": children}}))
        return path

    return write


def test_cells_are_read_as_ansible_reads_them(inventory):
    (cell,) = read_cells(inventory())
    assert cell.name == "bench1"
    assert {host.node: host.name for host in cell.hosts.values()} == {
        "S": "alice", "N": "bob", "D": "carol", "emulator": "heron",
    }  # fmt: skip
    shape = cell.make_shape()
    assert set(shape.nodes) == {"S", "N", "D"}
    joined = {name: set(nodes) for name, _, nodes, _ in shape.links}
    assert joined == {"wired": {"S", "N"}, "radio": {"N", "D"}}
    assert cell.list_missing(shape) == []


def test_the_only_testbed_needs_no_group_of_its_own(inventory):
    def move_hosts(cells):
        cells.clear()

    path = inventory(move_hosts)
    path.write_text(yaml.safe_dump({"all": {"children": {"cells": {"hosts": HOSTS}}}}))
    (cell,) = read_cells(path)
    assert cell.name == "cells" and set(cell.hosts) == {"S", "N", "D", "emulator"}
    stray = {"hosts": {"zoe": HOSTS["alice"]}, "children": {"bench1": {"hosts": HOSTS}}}
    path.write_text(yaml.safe_dump({"all": {"children": {"cells": stray}}}))
    with pytest.raises(InputError, match="zoe: the group `cells` has this host, but none of its"):
        read_cells(path)


def test_variables_may_be_templates(inventory):
    """Ansible evaluates them for playbooks, and so for `nagi lab` and `nagi run`."""

    def use_templates(cells):
        bench = cells["bench1"]
        bench["vars"] = {"first": "enp2s0", "node": "{{ inventory_hostname[0] | upper }}"}
        bench["hosts"]["alice"]["nagi_links"] = {"wired": "{{ first }}"}
        bench["hosts"]["alice"]["nagi_node"] = "{{ {'A': 'S'}[node] }}"

    (cell,) = read_cells(inventory(use_templates))
    assert cell.hosts["S"].name == "alice" and cell.hosts["S"].links == {"wired": "enp2s0"}
    assert cell.hosts["N"].links == {"wired": "enp2s0", "radio": "enp3s0"}

    def misspell(cells):
        cells["bench1"]["hosts"]["alice"]["nagi_links"] = {"wired": "{{ frist }}"}

    with pytest.raises(InputError, match=r"Ansible cannot read it: .*'frist' is undefined"):
        read_cells(inventory(misspell))


def with_a_medium(cells):
    hosts = cells["bench1"]["hosts"]
    for number, name in enumerate(("alice", "bob", "carol")):
        hosts[name]["nagi_links"]["air"] = f"eth{number}"
    air = {"S": "enp6s0", "N": "enp7s0", "D": "enp8s0"}
    hosts["heron"]["nagi_links"]["air"] = air


def test_a_medium_joins_any_number_of_nodes(inventory, tmp_path):
    (cell,) = read_cells(inventory(with_a_medium))
    shape = cell.make_shape()
    assert shape.media == ("air",)
    assert {name: nodes for name, _, nodes, _ in shape.links}["air"] == ("D", "N", "S")
    assert [interface.address for interface in shape.list_interfaces("N")] == [
        "198.19.0.2/24", "198.18.1.2/30", "198.18.2.1/30",
    ]  # fmt: skip
    assert cell.list_missing(shape) == []
    (without,) = read_cells(inventory())
    assert without.list_missing(shape) == ["the emulator has no link air"]
    smaller = replace(shape, links=tuple((*link[:2], link[2][:2], link[3]) for link in shape.links))
    assert cell.list_missing(smaller) == ["link air joins D, N, S in place of D, N"]
    pool = HostPool(tmp_path, [cell], tmp_path, "token", lambda: False, print)
    inspections = {
        host: SimpleNamespace(
            interfaces={name: SimpleNamespace(mac=f"{host} {name}") for name in names}
        )
        for host, names in (("alice", ["enp2s0", "eth0"]), ("bob", ["enp2s0", "enp3s0", "eth1"]),
                            ("carol", ["enp2s0", "eth2"]))
    }  # fmt: skip
    (emulator,) = [
        path for path in pool.make_placements([cell], shape, inspections) if path.node == EMULATOR
    ]
    batch = emulator.make_batch([], [])
    assert batch.interfaces["air"] == ("enp8s0", "enp7s0", "enp6s0")
    assert batch.macs == {"air": ("carol eth2", "bob eth1", "alice eth0")}


def test_group_variables_count(inventory, tmp_path):
    path = inventory()
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "bench1.yml").write_text("nagi_spool: /srv/nagi\nnagi_user: nagi\n")
    (cell,) = read_cells(path)
    assert {(host.spool, host.user) for host in cell.hosts.values()} == {("/srv/nagi", "nagi")}


def changed(host: str, **variables):
    return lambda cells: cells["bench1"]["hosts"][host].update(variables)


@pytest.mark.parametrize(
    "spoil, complaint",
    [
        (lambda cells: cells["bench1"].update(children={"bench1": None}), "Ansible cannot read it"),
        (
            lambda cells: cells.update(
                bench1={"children": {"bench2": None}}, bench2={"children": {"bench1": None}}
            ),
            "Ansible cannot read it",
        ),
        (changed("carol", nagi_node=None), "carol.nagi_node: it is missing"),
        (changed("carol", nagi_links=None), "carol.nagi_links: it is missing"),
        (changed("carol", nagi_links="enp2s0"), 'carol.nagi_links: "enp2s0" has the wrong'),
        (changed("heron", nagi_links={"wired": "enp2s0"}), "write it as {link: {node: interface"),
        (
            changed("bob", nagi_links={"wired": "x", "radio": "x"}),
            "bob.nagi_links: x is used twice",
        ),
        (lambda cells: cells["bench1"]["hosts"].pop("heron"), "no host is the emulator"),
        (lambda cells: cells["bench1"]["hosts"].pop("carol"), "leads to D, but no host is D"),
        (changed("carol", nagi_node="S"), "alice is already node S of cell bench1"),
        (
            changed("carol", nagi_links={}),
            "the emulator's link radio leads to this host, which has no such",
        ),
        (
            changed("carol", nagi_links={"radio": "enp2s0", "fibre": "enp3s0"}),
            "link fibre does not lead to the emulator",
        ),
        (
            lambda cells: cells.update(bench2={"hosts": {"alice": None}}),
            "alice: it is also in cell bench1",
        ),
        (lambda cells: cells.clear(), "no group `cells`"),
        (
            changed("heron", nagi_links={"wired": {"S": "x"}, "radio": {"N": "y", "D": "z"}}),
            "link wired joins 1 node; name two nodes of a link, or 2 to 250",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(inventory, spoil, complaint):
    path = inventory(spoil)
    with pytest.raises(InputError) as error:
        read_cells(path)
    assert complaint in str(error.value) and str(path) in str(error.value)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"\x7fELF\xff\xfe", "lab.yml: it is not a text in UTF-8; write it as in /"),
        ("cells:\n".encode("utf-16"), "lab.yml: it is not a text in UTF-8; write it as"),
        (
            b"cells:\n  hosts:\n    a: {\n",
            "lab.yml:4: Ansible cannot read it: While parsing a flow",
        ),
        (b"- a\n", "lab.yml: Ansible cannot read it: "),
        (b"", "lab.yml: it has no group `cells`"),
    ],
)
def test_files_that_are_no_inventories_are_refused(tmp_path, content, complaint):
    path = tmp_path / "lab.yml"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        read_cells(path)
    assert str(error.value).startswith(f"{tmp_path}/{complaint}"), str(error.value)


def test_an_inventory_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no such inventory"):
        read_cells(tmp_path / "nothing.yml")


ACCESS = {"address": "10.0.0.9:9559", "device_id": 2, "ports": {"wired": 17, "radio": 400}}


def test_a_switch_that_p4runtime_reaches_is_its_host_s(inventory):
    def with_a_switch(cells):
        cells["bench1"]["hosts"]["bob"]["nagi_p4runtime"] = ACCESS

    (cell,) = read_cells(inventory(with_a_switch))
    result = cell.hosts["N"].backends["switch"]["p4runtime"]
    assert result == ACCESS | {"pipeline": "set"}
    assert cell.hosts["S"].backends["switch"]["p4runtime"] is None


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"device_id": 2}, "address"),
        (ACCESS | {"ports": {"wired": "one"}}, "ports.wired"),
        (ACCESS | {"pipeline": "mine"}, "pipeline"),
        (ACCESS | {"adress": "a:1"}, "adress"),
    ],
)
def test_what_is_wrong_with_it_is_said_by_host_and_key(inventory, given, key):
    def spoil(cells):
        cells["bench1"]["hosts"]["bob"]["nagi_p4runtime"] = given

    with pytest.raises(InputError) as error:
        read_cells(inventory(spoil))
    (problem,) = error.value.problems
    assert problem.file.endswith("inventory.yml")
    assert problem.key == f"bob.nagi_p4runtime.{key}"
    assert problem.cure.startswith("write it as {address: ")
