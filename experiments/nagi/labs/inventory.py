# SPDX-License-Identifier: Apache-2.0
"""The inventory of a netns lab: what Ansible needs to know to make and provision it.

`python -m nagi.labs.inventory` writes the example in ansible/inventories anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from nagi import paths
from nagi.labs.shape import EMULATOR, Shape
from nagi.planner import plan_runs
from nagi.spec import read_experiment

EXAMPLE = paths.ANSIBLE / "inventories" / "netns.example.yml"
_EXAMPLE_HEAD = """\
# SPDX-License-Identifier: Apache-2.0
#
# What nagi gives Ansible for a netns lab with one cell of experiments/schemas/example. It is made
# for every campaign; this file only shows its form.
---
"""


def hosts_of(shape: Shape, cell: str) -> list[tuple[str, str]]:
    """(host, node) of a cell; hosts are Ansible's names, and the namespaces'."""
    return [(f"{cell}_{node}", node) for node in (*shape.nodes, EMULATOR)]


def interface_names(shape: Shape, node: str) -> dict[str, str] | dict[str, tuple[str, str]]:
    """link -> the node's interface; for the emulator the two that the link joins."""
    if node == EMULATOR:
        return {name: (f"{name}.a", f"{name}.b") for name, *_ in shape.links}
    return {interface.link: interface.link for interface in shape.interfaces(node)}


def netns_inventory(
    shape: Shape,
    cells: list[str],
    *,
    keeper_pid: int,
    spools: dict[str, Path],
    agent: Path,
    modules: list[str],
    shares_files: bool,
) -> dict[str, Any]:
    """The inventory of a lab whose namespaces are the keeper's. `spools`: where each host's agent
    keeps its records."""
    groups: dict[str, Any] = {}
    commands: list[str] = []
    for cell in cells:
        hosts = hosts_of(shape, cell)
        commands += [f"netns add {host}" for host, _ in hosts]
        commands += _veths(shape, cell)
        groups[cell] = {
            "hosts": {
                host: {
                    "nagi_node": node,
                    "nagi_namespace": host,
                    "nagi_spool": str(spools[host]),
                    "nagi_interfaces": _interfaces(shape, node),
                }
                for host, node in hosts
            }
        }
    keeper = {
        "nagi_netns_commands": commands,
        "nagi_last_namespace": hosts_of(shape, cells[-1])[-1][0],
    }
    return {
        "all": {
            "vars": {
                "ansible_connection": "netns",
                "ansible_python_interpreter": "/usr/bin/python3",
                "nagi_keeper_pid": keeper_pid,
                "nagi_shares_files": shares_files,
                "nagi_agent_source": str(agent),
                "nagi_modules": modules,
            },
            "children": {
                "keeper": {"hosts": {"lab": keeper}},
                "cells": {"children": groups},
            },
        }
    }


def _veths(shape: Shape, cell: str) -> list[str]:
    """ip(8) commands for the veth pairs of a cell: one end a node's, the other the emulator's."""
    commands = []
    for name, _, nodes, _ in shape.links:
        for end, node in zip("ab", nodes, strict=True):
            (interface,) = [each for each in shape.interfaces(node) if each.link == name]
            commands.append(
                f"link add {name} netns {cell}_{node} address {interface.mac} type veth "
                f"peer name {name}.{end} netns {cell}_{EMULATOR}"
            )
    return commands


def _interfaces(shape: Shape, node: str) -> list[dict[str, object]]:
    """What the module nagi_interfaces is told of a node's interfaces."""
    if node == EMULATOR:
        return [{"name": f"{name}.{end}"} for name, *_ in shape.links for end in "ab"]
    return [
        {
            "name": interface.link,
            "address": interface.address,
            "neighbours": {interface.neighbour_address: interface.neighbour_mac},
        }
        for interface in shape.interfaces(node)
    ]


class _Indented(yaml.SafeDumper):
    """Lists indented below their keys, as ansible-lint wants them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)


def example_text() -> str:
    """The example inventory."""
    point = read_experiment(paths.SCHEMAS / "example" / "experiment.yaml", None)[0]
    shape = Shape.of(plan_runs(point, None)[0])
    inventory = netns_inventory(
        shape,
        ["cell0"],
        keeper_pid=4711,
        spools={
            host: Path("results/example/.records") / host for host, _ in hosts_of(shape, "cell0")
        },
        agent=Path("results/example/.lab/nagi-agent.pyz"),
        modules=[],
        shares_files=True,
    )
    return _EXAMPLE_HEAD + yaml.dump(inventory, Dumper=_Indented, sort_keys=False)


if __name__ == "__main__":
    EXAMPLE.write_text(example_text(), encoding="utf-8")
