# SPDX-License-Identifier: Apache-2.0
"""The Ansible inventory of a netns lab: its namespaces, interfaces and agents.

`python -m nagi.labs.inventory` writes the example in the Ansible collection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from nagi_contracts import paths

from nagi.labs.lab import HostPlacement
from nagi.labs.programs import ListPrograms, list_local_programs
from nagi.labs.shape import EMULATOR, Interface, Shape
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment

EXAMPLE = paths.COLLECTION / "inventories" / "netns.example.yml"
_EXAMPLE_HEAD = """\
# SPDX-License-Identifier: Apache-2.0
#
# An example of the inventory that nagi gives to Ansible for a netns lab, with one cell of
# experiments/schemas/example. nagi makes such an inventory for every campaign.
---
"""


def make_host_name(cell: str, node: str) -> str:
    """Return the name of a node in Ansible, which is also the name of its network namespace."""
    return f"{cell}_{node}"


def list_interface_names(shape: Shape, node: str) -> dict[str, str] | dict[str, tuple[str, ...]]:
    """Return link -> name of a node's interface.

    For the emulator, return link or medium -> names of its interfaces, one per node.
    """
    if node == EMULATOR:
        return shape.name_emulator_interfaces()
    return {interface.link: interface.link for interface in shape.list_interfaces(node)}


def make_netns_placements(
    shape: Shape,
    cells: list[str],
    spools: Path,
    directory: Path,
    nagi_link: Path,
    list_programs: ListPrograms,
) -> list[HostPlacement]:
    """Return the placement of each node, and of the emulator, of all cells of a netns lab.

    Placements are in the order of cells and nodes. The emulator is the last node of each cell.

    Args:
        shape: The nodes and links of each cell.
        cells: The names of the cells.
        spools: The directory of records, in which each node gets a directory.
        directory: The directory of the lab, in which each agent gets a directory for its state.
        nagi_link: The path of nagi-link.
        list_programs: A function that returns backend -> programs for a node.
    """
    return [
        HostPlacement(
            host=make_host_name(cell, node),
            cell=cell,
            node=node,
            interfaces=list_interface_names(shape, node),
            spool=str(spools / make_host_name(cell, node)),
            state=str(directory / "state" / make_host_name(cell, node)),
            user="nobody",
            nagi_link=str(nagi_link),
            backends=list_programs(node, shape),
        )
        for cell in cells
        for node in (*shape.nodes, EMULATOR)
    ]


def make_netns_inventory(
    shape: Shape,
    placements: list[HostPlacement],
    *,
    keeper_pid: int,
    agent: Path,
    modules: list[str],
) -> dict[str, Any]:
    """Return the inventory of a netns lab.

    Args:
        shape: The nodes and links of each cell.
        placements: The placements of all nodes.
        keeper_pid: The process ID of the keeper, whose namespaces contain the lab.
        agent: The file of the agent.
        modules: The kernel modules to load.
    """
    groups: dict[str, Any] = {}
    agent_command = ["/usr/bin/python3", str(agent)]
    ip_commands = [f"netns add {placement.host}" for placement in placements]
    for placement in placements:
        variables = {
            "nagi_node": placement.node,
            "nagi_namespace": placement.host,
            "nagi_spool": placement.spool,
            "nagi_link_executable": placement.nagi_link,
            "nagi_interfaces": describe_interfaces(shape, placement.node, placement.interfaces),
        }
        groups.setdefault(placement.cell, {"hosts": {}})["hosts"][placement.host] = variables
    for cell in groups:
        ip_commands += _make_veth_commands(shape, cell)
    return {
        "all": {
            "vars": {
                "ansible_connection": "nagi.testbed.netns",
                "ansible_python_interpreter": "/usr/bin/python3",
                "nagi_keeper_pid": keeper_pid,
                "nagi_agent": agent_command,
                "nagi_agent_apart": agent_command,
                "nagi_modules": modules,
            },
            "children": {
                "keeper": {
                    "hosts": {
                        "lab": {
                            "nagi_netns_commands": ip_commands,
                            "nagi_last_namespace": placements[-1].host,
                        }
                    }
                },
                "lab_hosts": {"children": groups},
            },
        }
    }


def _make_veth_commands(shape: Shape, cell: str) -> list[str]:
    """Return the ip(8) commands that make the veth pairs of a cell."""
    return [
        f"link add name {interface.link} netns {make_host_name(cell, interface.node)} "
        f"address {interface.mac} "
        f"type veth peer name {peer} netns {make_host_name(cell, EMULATOR)}"
        for interface, peer in list_veth_pairs(shape)
    ]


def list_veth_pairs(shape: Shape) -> Iterator[tuple[Interface, str]]:
    """Yield each interface of a node, and the name of its veth peer in the emulator."""
    names = shape.name_emulator_interfaces()
    interfaces = {
        node: {interface.link: interface for interface in shape.list_interfaces(node)}
        for node in shape.nodes
    }
    for link, _, nodes, _ in shape.links:
        for node, name in zip(nodes, names[link], strict=True):
            yield interfaces[node][link], name


def describe_interfaces(
    shape: Shape,
    node: str,
    names: dict[str, str] | dict[str, tuple[str, ...]],
    find_mac: Callable[[str, str], str] | None = None,
) -> list[dict[str, object]]:
    """Return the argument `interfaces` of the Ansible module nagi.testbed.interfaces for a node.

    Args:
        shape: The nodes and links of the cell.
        node: The name of the node, or EMULATOR.
        names: Link -> name of the node's interface; for the emulator, names of its interfaces.
        find_mac: A function that returns the MAC address of a node on a link; None if nagi sets the
            addresses that Shape chooses.
    """
    if node == EMULATOR:
        return [{"name": name} for names_of_link in names.values() for name in names_of_link]
    return [
        {
            "name": names[interface.link],
            "address": interface.address,
            "neighbours": {
                neighbour.address: find_mac(neighbour.node, interface.link)
                if find_mac
                else neighbour.mac
                for neighbour in interface.neighbours
            },
            **({} if interface.mtu is None else {"mtu": interface.mtu}),
        }
        for interface in shape.list_interfaces(node)
    ]


class _Indented(yaml.SafeDumper):
    """A dumper that indents lists below their keys, as ansible-lint requires."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)


def format_example() -> str:
    """Return the text of the example inventory."""
    point = read_experiment(paths.SCHEMAS / "example" / "experiment.yaml", None)[0]
    shape = Shape.from_plan(plan_runs(point, None)[0])
    results = Path("results/example")
    lab = results / ".lab"
    inventory = make_netns_inventory(
        shape,
        make_netns_placements(
            shape,
            ["cell0"],
            results / ".records",
            lab,
            Path(".venv/bin/nagi-link"),
            list_local_programs,
        ),
        keeper_pid=4711,
        agent=lab / "nagi-agent.pyz",
        modules=[],
    )
    return _EXAMPLE_HEAD + yaml.dump(inventory, Dumper=_Indented, sort_keys=False)


if __name__ == "__main__":
    EXAMPLE.write_text(format_example(), encoding="utf-8")
