# SPDX-License-Identifier: Apache-2.0
"""Live topologies: nodes and links of an experiment that stay up for the user's own programs."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nagi_contracts.errors import InputError, refuse
from nagi_contracts.live import Live, LiveNode
from nagi_contracts.plan import RunPlan

from nagi.labs import keeper
from nagi.labs.cells import list_inventory
from nagi.labs.host_pool import HostPool, Survey
from nagi.labs.lab import HostPlacement
from nagi.labs.names import NETNS, PHYSICAL
from nagi.labs.netns import NetnsLab
from nagi.labs.physical import PhysicalLab
from nagi.labs.shape import Shape


class LiveLab:
    """The live topology of this user, if there is one.

    Its description and the controller's files are in the directory `state`.
    """

    def __init__(self, state: Path) -> None:
        self._state = state
        self._file = state / "live.json"

    def get(self) -> Live:
        """Return the description of the topology that is up. Raises InputError if none is up."""
        live = self._read()
        if live is None or not _is_alive(live):
            raise refuse("no topology is up", "bring a topology up with `nagi up SPEC`")
        return live

    def require_none(self) -> None:
        """Raise InputError if a topology is up. If not, remove the files of an earlier topology."""
        live = self._read()
        if live is not None and _is_alive(live):
            raise refuse(f"{live.experiment} is up already", "take it down with `nagi down`")
        self._forget(live)

    def bring_up_in_netns(self, plan: RunPlan, interrupted: Callable[[], bool]) -> Live:
        """Bring the topology of a plan up on this machine, and return its description.

        Args:
            plan: The plan.
            interrupted: A function that returns whether the user asked to stop.

        Raises:
            LabError: The topology could not be made; all changes are undone.
            Interrupted: The user asked to stop; all changes are undone.
        """
        directory = self.make_directory()
        pid = keeper.start_keeper()
        try:
            lab = NetnsLab(
                pid,
                Shape.from_plan(plan),
                1,
                [plan],
                directory,
                directory / "records",
                interrupted,
            )
            live = Live(
                lab=NETNS,
                experiment=plan.experiment.name,
                point=plan.point,
                directory=str(directory),
                nodes=_list_nodes(plan, lab.batches.placements),
                keeper=pid,
                keeper_started=keeper.read_start_ticks(pid),
                cell=lab.cells[0],
            )
            live.write(self._file)
            lab.prepare([plan])
            lab.batches.run_playbook("up.yml")
        except BaseException:
            keeper.end_keeper(pid)
            self._forget(self._read())
            raise
        return live

    def bring_up_on_hosts(
        self, plan: RunPlan, pool: HostPool, survey: Survey, directory: Path, lease_s: float
    ) -> Live:
        """Bring the topology of a plan up on the first cell with its nodes and links.

        Args:
            plan: The plan, whose nodes and links at least one cell must have.
            pool: The hosts, which stay reserved.
            survey: The results of the examination of the hosts.
            directory: A directory for the controller's files.
            lease_s: How long the hosts stay reserved, in seconds.

        Raises:
            LabError: The topology could not be made; the pool then releases the hosts.
            Interrupted: The user asked to stop.
        """
        shape = Shape.from_plan(plan)
        (cell, *_) = [cell for cell in pool.cells if not cell.list_missing(shape)]
        lab = PhysicalLab(
            pool, [cell], shape, survey, [], directory / "records", f"up {plan.experiment.name}"
        )
        expires_s = time.time() + lease_s
        live = Live(
            lab=PHYSICAL,
            experiment=plan.experiment.name,
            point=plan.point,
            directory=str(directory),
            nodes=_list_nodes(plan, lab.batches.placements),
            inventory=str(pool.inventory),
            cell=cell.name,
            expires_s=expires_s,
        )
        live.write(self._file)
        try:
            lab.prepare([plan], lease_s)
            lab.batches.run_playbook("up.yml")
        except BaseException:
            self._forget(live)
            raise
        pool.keep_hosts = True
        return live

    def take_down(self, make_pool: Callable[[Live], HostPool]) -> Live:
        """Take the live topology down, and return its description.

        Args:
            make_pool: A function that returns the pool of hosts of a topology on real hosts.

        Raises:
            InputError: There is no live topology.
            LabError: Hosts could not be released; they restore themselves when the lease ends.
        """
        live = self.get()
        if live.lab == NETNS:
            assert live.keeper is not None
            keeper.end_keeper(live.keeper)
        else:
            make_pool(live).release()
        self._forget(live)
        return live

    def make_directory(self) -> Path:
        """Make and return a new directory for the controller's files of a topology."""
        self._state.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Path(tempfile.mkdtemp(prefix="lab-", dir=self._state))

    def _read(self) -> Live | None:
        """Return the stored description of a topology, or None if none can be read.

        The topology may be down.
        """
        try:
            return Live.read(self._file)
        except InputError:
            return None

    def _forget(self, live: Live | None) -> None:
        """Remove the description of the topology, and the directory of `live` with its files."""
        if live is not None:
            shutil.rmtree(live.directory, ignore_errors=True)
        self._file.unlink(missing_ok=True)


def find_state_directory() -> Path:
    """Return this user's directory for LiveLab: `nagi` in $XDG_STATE_HOME."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "nagi"


def make_shell_command(live: Live, node: str, command: list[str]) -> list[str]:
    """Return the command line that executes `command` on a node.

    Args:
        live: The live topology.
        node: The name of the node.
        command: The command; empty for a shell.

    Raises:
        InputError: The topology has no such node.
    """
    nodes = {live_node.node: live_node for live_node in live.nodes}
    if node not in nodes:
        raise refuse(f"there is no node {node}", f"nodes: {', '.join(nodes)}")
    host = nodes[node].host
    if live.lab == NETNS:
        shell = command or [os.environ.get("SHELL", "/bin/sh")]
        enter = [
            "nsenter",
            "--target",
            str(live.keeper),
            "--mount",
            "--pid",
            f"--wdns={Path.cwd()}",
        ]
        return [*enter, "--", "ip", "netns", "exec", host, *shell]
    assert live.inventory is not None
    variables = list_inventory(Path(live.inventory))["_meta"]["hostvars"].get(host, {})
    return [*_make_ssh_command(variables, host), *([shlex.join(command)] if command else [])]


def _make_ssh_command(variables: dict[str, Any], host: str) -> list[str]:
    """Return the ssh command line for a host, with the settings in its Ansible variables."""
    command = ["ssh", "-t"]
    for variable, option in (
        ("ansible_user", "-l"),
        ("ansible_port", "-p"),
        ("ansible_ssh_private_key_file", "-i"),
    ):
        if variable in variables:
            command += [option, str(variables[variable])]
    for variable in ("ansible_ssh_common_args", "ansible_ssh_extra_args"):
        command += shlex.split(str(variables.get(variable, "")))
    return [*command, str(variables.get("ansible_host", host))]


def _list_nodes(plan: RunPlan, placements: list[HostPlacement]) -> list[LiveNode]:
    """Return the description of each node of a live topology."""
    addresses: dict[str, dict[str, str]] = {}
    for link in plan.links:
        for link_end in link.ends:
            addresses.setdefault(link_end.node, {})[link.name] = link_end.address
    for medium in plan.media:
        for station in medium.stations:
            addresses.setdefault(station.node, {})[medium.name] = station.address
    return [
        LiveNode(
            node=placement.node,
            host=placement.host,
            addresses=addresses.get(placement.node, {}),
            spool=placement.spool,
            nagi_link=placement.nagi_link,
        )
        for placement in placements
    ]


def _is_alive(live: Live) -> bool:
    """Return whether a topology exists: its keeper runs, or its lease has not ended."""
    if live.lab == NETNS:
        assert live.keeper is not None
        return keeper.read_start_ticks(live.keeper) == live.keeper_started
    assert live.expires_s is not None
    return time.time() < live.expires_s
