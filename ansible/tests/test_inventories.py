# SPDX-License-Identifier: Apache-2.0
"""Inventories of real hosts, before anything is asked of a host."""

from __future__ import annotations

from nagi_contracts.paths import COLLECTION
from provisioning import list_inventory, run_playbook

EXAMPLE = COLLECTION / "inventories" / "physical.example.yml"


def test_an_inventory_without_cells_is_refused(tmp_path):
    (tmp_path / "inventory.yml").write_text("all: {hosts: {alice: {}}}\n")
    outcome = run_playbook(tmp_path, "provision")
    assert outcome.status != 0
    assert "no hosts in a group `cells`; see inventories/physical.example.yml" in outcome.output


def test_the_example_inventory_is_a_whole_testbed():
    inventory = list_inventory(EXAMPLE)
    variables = inventory["_meta"]["hostvars"]
    assert inventory["cells"]["children"]
    for cell in inventory["cells"]["children"]:
        nodes = {variables[host]["nagi_node"]: variables[host] for host in inventory[cell]["hosts"]}
        ends = {
            (link, node)
            for link, interfaces in nodes.pop("emulator")["nagi_links"].items()
            for node in interfaces
        }
        assert ends == {(link, node) for node in nodes for link in nodes[node]["nagi_links"]}
        assert len({host["ansible_host"] for host in nodes.values()}) == len(nodes)
