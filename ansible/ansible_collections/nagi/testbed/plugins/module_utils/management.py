# SPDX-License-Identifier: Apache-2.0
"""Find the network interfaces by which this host is reached.

Provisioning and nagi's agent use this file, which hosts/agent/nagi_agent/management.py links to.
Standard library only, for Python 3.9.
"""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
from typing import Any

_NETWORK = "/sys/class/net"
_ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8"}


def find_management_interfaces() -> dict[str, str]:
    """Find the interfaces that must stay as they are, because this host is reached by them.

    They are the interface with the address to which this process's SSH connection goes, the
    interface of the route to the client of this connection, the interfaces of all default routes,
    and all interfaces below one of these, such as the ports of a bridge or bond.

    Returns:
        Name of the interface -> the reason, as a phrase that follows the name.
    """
    reasons = {}
    connection = find_ssh_connection(os.getpid())
    if connection is not None:
        reasons.update(_explain_connection(*connection))
    for interface, family in _list_default_routes():
        reasons.setdefault(interface, f"has the default route ({family})")
    for interface in list(reasons):
        for lower in _list_lower_interfaces(interface):
            reasons.setdefault(lower, f"is below {interface}, which {reasons[interface]}")
    return reasons


def find_ssh_connection(process: int) -> tuple[str, str] | None:
    """Return the addresses (client, server) of the SSH connection in which a process runs, or None.

    sudo removes SSH_CONNECTION from the environment, so the environments of all ancestors of the
    process are searched, too.
    """
    while process > 1:
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                for entry in file.read().split(b"\0"):
                    name, _, value = entry.decode(errors="replace").partition("=")
                    words = value.split()
                    if name == "SSH_CONNECTION" and len(words) == 4:
                        return words[0], words[2]
            with open(f"/proc/{process}/stat", encoding="utf-8") as file:
                process = int(file.read().rpartition(")")[2].split()[1])
        except OSError:  # the process has ended, or belongs to another user
            return None
    return None


def _explain_connection(client: str, server: str) -> dict[str, str]:
    """Return interface -> reason for the interfaces of an SSH connection.

    Args:
        client: The address of the client. Link-local addresses have a zone, as in fe80::1%eth0.
        server: The address of this host. It may differ from the address in the inventory, for
            example behind a NAT.
    """
    address, _, zone = server.partition("%")
    owners = {zone} & set(os.listdir(_NETWORK)) or _find_owners(address)
    reasons = dict.fromkeys(owners, f"has the address {server}, by which this host is reached")
    if not owners:  # not a connection to this network namespace
        return {}
    client_address, _, client_zone = client.partition("%")
    device = ["dev", client_zone] if client_zone else []
    for route in _run_ip("route", "get", client_address, "from", address, *device):
        for interface in _list_route_interfaces(route):
            reasons.setdefault(interface, f"has the route to {client}, the client of SSH")
    reasons.pop("lo", None)
    return reasons


def _find_owners(address: str) -> set[str]:
    """Return the interfaces with an IP address."""
    return {
        entry["ifname"]
        for entry in _run_ip("address", "show")
        for info in entry.get("addr_info", [])
        if _is_same_address(info.get("local"), address)
    }


def _is_same_address(left: str | None, right: str) -> bool:
    try:
        return ipaddress.ip_address(left or "") == ipaddress.ip_address(right)
    except ValueError:
        return False


def _list_default_routes() -> list[tuple[str, str]]:
    """Return (interface, name of the family) of the default routes in all routing tables."""
    return [
        (interface, family)
        for option, family in (("-4", "IPv4"), ("-6", "IPv6"))
        for route in _run_ip(option, "route", "show", "default", "table", "all")
        for interface in _list_route_interfaces(route)
        if interface != "lo"  # a route that rejects packets
    ]


def _list_route_interfaces(route: dict[str, Any]) -> list[str]:
    """Return the interfaces of a route in the format of `ip -json`, which may have several hops."""
    hops = [route, *route.get("nexthops", [])]
    return [hop["dev"] for hop in hops if "dev" in hop]


def _list_lower_interfaces(interface: str) -> list[str]:
    """Return all interfaces below one, such as the card of a VLAN on a bond, and the card's."""
    names = []
    waiting = [interface]
    while waiting:
        directory = f"{_NETWORK}/{waiting.pop()}"
        entries = os.listdir(directory) if os.path.isdir(directory) else []
        lower = [entry[len("lower_") :] for entry in entries if entry.startswith("lower_")]
        waiting += [name for name in lower if name not in names]
        names += [name for name in lower if name not in names]
    return names


def _run_ip(*words: str) -> list[dict[str, Any]]:
    """Run `ip -json`, and return its output; return [] if it fails, as without IPv6."""
    done = subprocess.run(
        ["ip", "-json", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_ENVIRONMENT,
        check=False,
    )
    return json.loads(done.stdout or b"[]") if done.returncode == 0 else []
