# SPDX-License-Identifier: Apache-2.0
"""Reads the cells of an inventory, whose hosts state which node of an experiment they can be.

    cells:
      children:
        bench1:                          # a cell: one complete testbed
          hosts:
            alice: {ansible_host: 192.0.2.11, nagi_node: S, nagi_links: {wired: enp2s0}}
            heron: {nagi_node: emulator, nagi_links: {wired: {S: enp2s0, N: enp3s0}}}

If there is only one testbed, its hosts may be in the group `cells` itself. A node has one interface
per link. The emulator has one interface per node of a link or medium:
`nagi_links: {air: {A: enp2s0, B: enp3s0, C: enp4s0}}`. If an FPGA board carries a link, the
emulator has no interface on the link: `nagi_links: {wired: {S: board, N: board}}`. The first node
of the link in the experiment is at the board's first port.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nagi_contracts import paths
from nagi_contracts.errors import BadValue, InputError, Problem, excerpt, join_names, refuse
from pydantic import TypeAdapter, ValidationError

from nagi.backends.interface import Json
from nagi.labs.ansible_runs import CONFIGURATION
from nagi.labs.programs import read_settings
from nagi.labs.shape import EMULATOR, Shape
from nagi.spec.base import MAX_ENDS

GROUP = "cells"
EXAMPLE = paths.COLLECTION / "inventories" / "physical.example.yml"
SPOOL, STATE = "/var/lib/nagi", "/run/nagi"
BOARD = "board"  # written in place of an interface of the emulator
PACKAGED = "/usr/bin"  # the directory in which nagi's Debian packages install programs
_LINKS = TypeAdapter(dict[str, str])
_PORTS = TypeAdapter(dict[str, dict[str, str]])


@dataclass(frozen=True)
class LabHost:
    """A host of a cell.

    Attributes:
        name: The name in the inventory.
        cell: The name of the cell.
        node: The node of an experiment that the host can be, or EMULATOR.
        links: Link -> interface, if the host is a node.
        ports: Link -> node -> interface that faces the node, if the host is the emulator.
        spool: The directory for records.
        state: The directory for the agent's state, such as the reservation.
        user: The user for captures, or None for the agent's default.
        nagi_link: The path of nagi-link, or None for the program in `programs`.
        programs: The directory of nagi's programs, or None if nagi copies them to the host.
        backends: Backend -> settings of the host.
    """

    name: str
    cell: str
    node: str
    links: dict[str, str] = field(default_factory=dict)
    ports: dict[str, dict[str, str]] = field(default_factory=dict)
    spool: str = SPOOL
    state: str = STATE
    user: str | None = None
    nagi_link: str | None = None
    programs: str | None = None
    backends: dict[str, Json] = field(default_factory=dict)

    def list_interfaces(self) -> list[str]:
        """Return the names of all test interfaces of the host, without ports of a board."""
        names = [
            *self.links.values(),
            *(name for interfaces in self.ports.values() for name in interfaces.values()),
        ]
        return [name for name in names if name != BOARD]


@dataclass(frozen=True)
class Cell:
    """A cell: one complete testbed."""

    name: str
    hosts: dict[str, LabHost]  # by node

    def make_shape(self) -> Shape:
        """Return the shape of all nodes and links, with addresses that nagi chooses.

        A link of more than two nodes is a medium.
        """
        nodes = [node for node in self.hosts if node != EMULATOR]
        links = []
        media = []
        for number, (link, ports) in enumerate(self.hosts[EMULATOR].ports.items()):
            network, length = f"198.18.{number}", 30
            if len(ports) > 2:
                network, length = f"198.19.{number}", 24
                media.append(link)
            addresses = tuple(f"{network}.{index}/{length}" for index in range(1, len(ports) + 1))
            links.append((link, number, tuple(ports), addresses))
        return Shape(tuple(nodes), tuple(links), media=tuple(media))

    def list_missing(self, shape: Shape) -> list[str]:
        """Return a text for people about each node and link of `shape` that this cell lacks."""
        missing = [f"no host is node {node}" for node in shape.nodes if node not in self.hosts]
        ports = self.hosts[EMULATOR].ports
        for link, _, nodes, _ in shape.links:
            if link not in ports:
                missing.append(f"the emulator has no link {link}")
            elif set(nodes) != set(ports[link]):
                missing.append(
                    f"link {link} joins {join_names(ports[link])} in place of {join_names(nodes)}"
                )
        return missing


def read_cells(inventory: Path) -> list[Cell]:
    """Return the cells of an inventory, which ansible-inventory reads.

    Raises:
        InputError: The inventory cannot be read, or hosts and links of a cell are wrong.
    """
    listing = list_inventory(inventory)
    names = listing.get(GROUP, {}).get("children", [])
    hosts_without_cell = listing.get(GROUP, {}).get("hosts", [])
    if hosts_without_cell and not names:
        names = [GROUP]  # the only cell
    elif hosts_without_cell:
        raise refuse(
            f"{', '.join(hosts_without_cell)}: the group `{GROUP}` has this host, but none of its "
            "cells has it",
            f"put it into one of {', '.join(names)}",
            file=str(inventory),
        )
    if not names:
        raise refuse(
            f"it has no group `{GROUP}` with hosts, or with a group for each testbed",
            f"write this group as in {EXAMPLE}",
            file=str(inventory),
        )
    variables = _evaluate_templates(inventory, listing["_meta"]["hostvars"])
    cells = []
    problems: list[Problem] = []
    cell_of_host: dict[str, str] = {}
    for name in names:
        hosts: dict[str, LabHost] = {}
        for host in _list_group_hosts(listing, name):
            try:
                if host in cell_of_host:
                    raise _make_error(
                        inventory,
                        host,
                        "",
                        f"it is also in cell {cell_of_host[host]}",
                        "put each host in one cell",
                    )
                cell_of_host[host] = name
                cell_host = _read_host(inventory, host, name, variables.get(host, {}))
                if cell_host.node in hosts:
                    raise _make_error(
                        inventory,
                        host,
                        "nagi_node",
                        f"{hosts[cell_host.node].name} is already node {cell_host.node} of cell "
                        f"{name}",
                        "give each host of a cell a node of its own",
                    )
                hosts[cell_host.node] = cell_host
            except InputError as error:
                problems += error.problems
        if not problems:
            problems += _check_cabling(inventory, name, hosts)
        cells.append(Cell(name, hosts))
    if problems:
        raise InputError(*problems)
    return cells


def list_inventory(inventory: Path) -> dict[str, Any]:
    """Return the JSON object that `ansible-inventory --list` prints for an inventory.

    Raises:
        InputError: The inventory does not exist, or Ansible cannot read it.
    """
    if not inventory.exists():
        raise refuse("there is no such inventory", f"see {EXAMPLE}", file=str(inventory))
    if inventory.is_file() and not os.access(inventory, os.X_OK):  # an executable file is a program
        _require_text(inventory)
    listing: dict[str, Any] = json.loads(_run_ansible("ansible-inventory", inventory, "--list"))
    return listing


def _run_ansible(program: str, inventory: Path, *arguments: str) -> str:
    """Run a program of Ansible with an inventory, and return its output.

    Raises:
        InputError: The program failed.
    """
    process = subprocess.run(
        [str(Path(sys.prefix) / "bin" / program), "-i", str(inventory), *arguments],
        env={
            **os.environ,
            "ANSIBLE_CONFIG": str(CONFIGURATION),
            "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "True",
            "ANSIBLE_NOCOLOR": "True",
            "LC_ALL": "C.UTF-8",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode != 0:
        reason, line = _parse_ansible_error(process.stderr or process.stdout)
        raise refuse(
            f"Ansible cannot read it: {reason}",
            f"write it as in {EXAMPLE}",
            file=str(inventory),
            line=line,
        )
    return process.stdout


def _evaluate_templates(
    inventory: Path, variables: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return host -> variables, with the values of nagi's variables that are templates.

    `ansible-inventory` does not evaluate templates. Ansible's module debug does, on this machine.

    Raises:
        InputError: Ansible cannot evaluate a template.
    """
    names = sorted(
        {
            name
            for values in variables.values()
            for name, value in values.items()
            if name.startswith("nagi_") and re.search(r"{{|{%", json.dumps(value))
        }
    )
    if not names:
        return variables
    items = ", ".join(f"'{name}': {name} | default(none)" for name in names)
    message = json.dumps({"msg": f"{{{{ {{{items}}} }}}}"})
    output = _run_ansible("ansible", inventory, GROUP, "-m", "ansible.builtin.debug", "-a", message)
    evaluated = dict(variables)
    for answer in re.finditer(r"^(\S+) \| SUCCESS => ", output, re.M):
        result, _ = json.JSONDecoder().raw_decode(output, answer.end())
        values = {name: value for name, value in result["msg"].items() if value is not None}
        evaluated[answer[1]] = {**variables[answer[1]], **values}
    return evaluated


def _require_text(inventory: Path) -> None:
    """Raise InputError if an inventory is not a readable file in UTF-8."""
    try:
        inventory.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise refuse(
            "it is not a text in UTF-8", f"write it as in {EXAMPLE}", file=str(inventory)
        ) from None
    except OSError as error:
        raise refuse(
            f"cannot read it: {error.strerror}", "give another inventory", file=str(inventory)
        ) from None


def _parse_ansible_error(output: str) -> tuple[str, int]:
    """Return the error in Ansible's output, and the line in the inventory (0 if not stated)."""
    text = " ".join(output.replace("[ERROR]:", "").split())
    if reason := re.search(r"YAML parsing failed: (.+?)(?= Origin:| <<<| \[|$)", text):
        line = re.search(r" Origin: \S+?:(\d+):\d+", text)
        return reason[1].rstrip("."), int(line[1]) if line else 0
    return text[:400], 0


def _list_group_hosts(listing: dict[str, Any], group: str) -> list[str]:
    """Return the hosts of a group and of its child groups."""
    entry = listing.get(group, {})
    hosts = list(entry.get("hosts", []))
    for child in entry.get("children", []):
        hosts += [host for host in _list_group_hosts(listing, child) if host not in hosts]
    return hosts


def _make_error(inventory: Path, host: str, key: str, message: str, cure: str) -> InputError:
    name = f"{host}.{key}" if key else host
    return refuse(message, cure, file=str(inventory), key=name)


def _read_host(inventory: Path, name: str, cell: str, variables: dict[str, Any]) -> LabHost:
    """Return a host of a cell from the host's inventory variables.

    Raises:
        InputError: A variable is missing or wrong.
    """
    node = variables.get("nagi_node")
    if not isinstance(node, str):
        raise _make_error(
            inventory, name, "nagi_node", "it is missing", f"give a node's name, or {EMULATOR}"
        )
    links = variables.get("nagi_links")
    format_ = (
        "{link: {node: interface, node: interface}}" if node == EMULATOR else "{link: interface}"
    )
    try:
        link_fields = {
            "ports" if node == EMULATOR else "links": (
                _PORTS if node == EMULATOR else _LINKS
            ).validate_python(links)
        }
    except ValidationError:
        problem = (
            "it is missing"
            if links is None
            else f"{excerpt(json.dumps(links))} has the wrong structure"
        )
        raise _make_error(
            inventory, name, "nagi_links", problem, f"write it as {format_}"
        ) from None
    host = LabHost(
        name,
        cell,
        node,
        **link_fields,  # type: ignore[arg-type]
        spool=str(variables.get("nagi_spool", SPOOL)),
        state=str(variables.get("nagi_state", STATE)),
        user=variables.get("nagi_user"),
        nagi_link=variables.get("nagi_link"),
        programs=PACKAGED if variables.get("nagi_packages") else None,
        backends=_read_settings(inventory, name, variables),
    )
    names = host.list_interfaces()
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise _make_error(
            inventory,
            name,
            "nagi_links",
            f"{', '.join(duplicates)} is used twice",
            "give each link an interface of its own",
        )
    return host


def _read_settings(inventory: Path, name: str, variables: dict[str, Any]) -> dict[str, Json]:
    """Return backend -> settings from a host's variables. Raises InputError if one is wrong."""
    try:
        return read_settings(variables)
    except BadValue as error:
        raise _make_error(inventory, name, error.key, error.what, error.cure) from None


def _check_cabling(inventory: Path, cell: str, hosts: dict[str, LabHost]) -> list[Problem]:
    """Return a problem for each contradiction between `nagi_links` of emulator and nodes.

    A link with a wrong number of nodes, and a cell without an emulator, are problems, too.
    """

    def make_problem(host: str, message: str, cure: str) -> Problem:
        return Problem(message, cure, file=str(inventory), key=f"{cell}.{host}.nagi_links")

    emulator = hosts.get(EMULATOR)
    if emulator is None:
        return [make_problem("", "no host is the emulator", f"give one `nagi_node: {EMULATOR}`")]
    problems = []
    for link, ports in emulator.ports.items():
        if not 2 <= len(ports) <= MAX_ENDS:
            message = f"link {link} joins {len(ports)} node" + ("" if len(ports) == 1 else "s")
            cure = f"name two nodes of a link, or 2 to {MAX_ENDS} nodes of a medium"
            problems.append(make_problem(emulator.name, message, cure))
        for node in ports:
            if node not in hosts:
                cure = f"nodes: {', '.join(hosts)}"
                problems.append(
                    make_problem(
                        emulator.name, f"link {link} leads to {node}, but no host is {node}", cure
                    )
                )
            elif link not in hosts[node].links:
                message = f"the emulator's link {link} leads to this host, which has no such link"
                problems.append(make_problem(hosts[node].name, message, f"add `{link}: INTERFACE`"))
    for node, host in hosts.items():
        problems += [
            make_problem(
                host.name,
                f"link {link} does not lead to the emulator",
                f"give {emulator.name} `{link}: {{{node}: INTERFACE, ...}}`",
            )
            for link in host.links
            if node not in emulator.ports.get(link, {})
        ]
    return problems
