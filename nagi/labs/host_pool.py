# SPDX-License-Identifier: Apache-2.0
"""Real hosts of an inventory: their examination, reservation and release.

Hosts are reserved for one campaign at a time. When they are released, their earlier state is
restored, at the latest when the lease ends because this process has died (nagi_agent/hold.py).
"""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from nagi_contracts import paths
from nagi_contracts.doctor import ClockReading
from nagi_contracts.inspection import Holder, Inspection
from nagi_contracts.plan import digest

from nagi.labs.ansible_runs import Playbooks
from nagi.labs.ansible_variables import Template
from nagi.labs.cells import Cell, LabHost
from nagi.labs.errors import Failure, LabError, Results
from nagi.labs.inventory import describe_interfaces
from nagi.labs.lab import Batches, HostPlacement, list_scheme_objects, make_agent
from nagi.labs.programs import list_remote_programs, list_shipped_programs
from nagi.labs.shape import EMULATOR, Shape
from nagi.plan.schemes import Scheme, read_receivers, read_schemes

LEASE_S = 900.0  # until the first batch, whose agents renew the lease
# All agents must start, over SSH, between the choice of the first run's instant and this instant.
_LEAD_S = 3.0
_LEAD_PER_HOST_S = 0.1
_HOME = Template("{{ nagi_home }}")
_AGENT = [Template("{{ ansible_python_interpreter }}"), Template(f"{_HOME}/nagi-agent.pyz")]
# Under systemd, processes that outlive the connection get their own unit: otherwise logind would
# end them with the user's session.
APART = [
    *("sh", "-c"),
    "test -d /run/systemd/system && exec systemd-run --scope --quiet --collect "
    '--unit="nagi-agent-$$" -- "$@"; exec "$@"',
    "nagi-agent",
]


@dataclass(frozen=True)
class Survey:
    """The results of an examination of all hosts of an inventory."""

    cells: list[Cell]
    inspections: dict[str, Inspection]  # by host
    clocks: dict[str, ClockReading]
    failures: list[Failure]  # of hosts that could not be examined


class HostPool:
    """The hosts of some cells, for one owner.

    When the block ends, hosts are released and temporary files are removed, unless `keep_hosts` is
    set. `token` identifies the owner, and names the directory in which hosts keep its records: one
    process at a time may use a token.
    """

    def __init__(
        self,
        inventory: Path,
        cells: list[Cell],
        directory: Path,
        token: str,
        interrupted: Callable[[], bool],
        notify: Callable[[str], None],
        user_schemes: Iterable[Scheme] = (),
    ) -> None:
        """Pack the agent for the hosts.

        Args:
            inventory: the user's inventory
            cells: cells of this inventory
            directory: a directory for the controller's files
            token: identifies the owner, as from make_token()
            interrupted: returns whether the user asked to stop
            notify: receives a message if hosts could not be released
            user_schemes: schemes of the user, in addition to those of nagi
        """
        self.notify = notify
        self.is_reserved = False
        self.keep_hosts = False
        self._unreachable: set[str] = set()
        self._collected: dict[str, list[str]] = {}
        self.cells = cells
        self.token = token
        self.inventory = inventory
        self.directory = directory
        self._interrupted = interrupted
        self._agent = make_agent(
            directory,
            list_scheme_objects(
                [*read_schemes().values(), *read_receivers().values(), *user_schemes]
            ),
        )

    def __enter__(self) -> HostPool:
        return self

    def __exit__(self, *_: object) -> None:
        if self.keep_hosts:
            return
        try:
            self.release()
        except LabError as error:
            if self.is_reserved:
                self.notify(
                    f"{error}; hosts that were not released restore themselves within "
                    f"{LEASE_S / 60:.0f} minutes, or at `nagi down -i {self.inventory} --force`"
                )

    def make_placements(
        self,
        cells: list[Cell],
        shape: Shape | None,
        inspections: dict[str, Inspection] | None = None,
    ) -> list[HostPlacement]:
        """Return the placements of hosts.

        Args:
            cells: cells of the pool
            shape: the nodes and links in use; by default, all of each cell
            inspections: the inspections of hosts, which have the stations' MAC addresses. They are
                necessary if the emulator carries media.
        """
        return [
            self._make_placement(
                host,
                cell.make_shape() if shape is None else shape,
                _make_mac_lookup(cell, inspections) if inspections else None,
            )
            for cell in cells
            for host in cell.hosts.values()
            if shape is None or host.node in (*shape.nodes, EMULATOR)
        ]

    def _find_home(self, host: LabHost) -> str:
        return f"{host.spool}/{self.token}"

    def _make_placement(
        self, host: LabHost, shape: Shape, macs: Callable[[str, str], str] | None
    ) -> HostPlacement:
        """Return the placement of one host."""
        interfaces: dict[str, str] | dict[str, tuple[str, ...]]
        stations: dict[str, tuple[str, ...]] = {}
        if host.node == EMULATOR:
            if macs is not None:
                stations = {
                    link: tuple(macs(node, link) for node in nodes)
                    for link, _, nodes, _ in shape.links
                    if link in shape.media
                }
            interfaces = {
                link: tuple(host.ports[link][node] for node in nodes)
                for link, _, nodes, _ in shape.links
            }
        else:
            interfaces = {
                interface.link: host.links[interface.link]
                for interface in shape.list_interfaces(host.node)
            }
        programs = host.programs or self._find_home(host)
        return HostPlacement(
            host=host.name,
            cell=host.cell,
            node=host.node,
            interfaces=interfaces,
            spool=f"{self._find_home(host)}/runs",
            state=host.state,
            user=host.user,
            nagi_link=host.nagi_link or f"{programs}/nagi-link",
            token=self.token,
            backends=list_remote_programs(host.node, shape, host.backends, programs),
            macs=stations,
        )

    def make_playbooks(
        self,
        cells: list[Cell],
        shape: Shape | None,
        inspections: dict[str, Inspection],
        modules: list[str],
    ) -> Playbooks:
        """Return playbooks for the hosts that are nodes of `shape` (None: for all hosts)."""
        placements = {placement.host: placement for placement in self.make_placements(cells, shape)}
        variables: dict[str, dict[str, object]] = {}
        for cell in cells:
            for host in cell.hosts.values():
                if host.name not in placements:
                    continue
                placement = placements[host.name]
                host_variables: dict[str, object] = {
                    "nagi_home": self._find_home(host),
                    "nagi_spool": placement.spool,
                    "nagi_link_executable": placement.nagi_link,
                    "nagi_journal": f"{host.state}/interfaces.json",
                }
                if shape is not None:
                    host_variables["nagi_interfaces"] = describe_interfaces(
                        shape, host.node, placement.interfaces, _make_mac_lookup(cell, inspections)
                    )
                if host.programs is not None:
                    agent = ["/usr/bin/env", f"NAGI_PROGRAMS={host.programs}", *_AGENT]
                    host_variables |= {"nagi_agent": agent, "nagi_agent_apart": [*APART, *agent]}
                else:
                    host_variables |= _list_shipped_programs(host, placement)
                variables[host.name] = host_variables
        inventory = {
            "all": {
                "children": {
                    "lab_hosts": {
                        "hosts": variables,
                        "vars": {
                            "nagi_agent": _AGENT,
                            "nagi_agent_apart": [*APART, *_AGENT],
                            "nagi_agent_source": str(self._agent),
                            "nagi_modules": modules,
                        },
                    }
                }
            }
        }
        return Playbooks(
            self.directory / "ansible", inventory, self._interrupted, user_inventory=self.inventory
        )

    def make_batches(
        self,
        cells: list[Cell],
        shape: Shape | None,
        playbooks: Playbooks,
        records: Path,
        inspections: dict[str, Inspection] | None = None,
    ) -> Batches:
        """Return the batches for the hosts that are nodes of `shape` (None: for all hosts)."""
        return Batches(
            self.make_placements(cells, shape, inspections),
            playbooks,
            self.directory,
            records,
            lambda hosts: _LEAD_S + _LEAD_PER_HOST_S * hosts,
            fetch=True,
            collected=self._collected,
        )

    def survey(self) -> Survey:
        """Examine all hosts.

        Raises:
            Interrupted: the user asked to stop
            LabError: the examination failed on no particular host
        """
        playbooks = self.make_playbooks(self.cells, None, {}, [])
        batches = self.make_batches(self.cells, None, playbooks, self.directory / "records")
        failures: list[Failure] = []
        try:
            results = batches.run_playbook("inspect.yml")
        except LabError as error:
            results, failures = error.results, error.failures
            if not failures:
                raise
        self._unreachable = {failure.host for failure in failures if failure.unreachable}
        inspections = {
            host: Inspection.model_validate_json(result["stdout"])
            for host, result in results.get("Inspect", {}).items()
        }
        return Survey(
            self.cells, inspections, _estimate_clock_offsets(playbooks, results), failures
        )

    def describe_holder(self, campaign: str, until_s: float) -> dict[str, object]:
        """Return the owner of a reservation, as agents store it.

        Args:
            campaign: the name of the campaign
            until_s: the end of the lease, in seconds since the epoch
        """
        now_s = time.time()
        holder = Holder(
            owner=f"{getpass.getuser()}@{socket.gethostname()}",
            campaign=campaign,
            token=self.token,
            since_s=now_s,
            expires_s=until_s,
            guard=0,
        )
        return holder.model_dump(exclude={"schema_version", "guard"})

    def release(self, *, force: bool = False) -> None:
        """Restore the earlier state of hosts, and release them. Records that were not fetched stay.

        Args:
            force: whether to release the hosts of other owners as well

        Raises:
            LabError: a host could not be released
        """
        playbooks = self.make_playbooks(self.cells, None, {}, [])
        batches = self.make_batches(self.cells, None, playbooks, self.directory / "records")
        hosts = [
            placement.host
            for placement in batches.placements
            if placement.host not in self._unreachable
        ]
        if not hosts:
            return
        batches.run_playbook(
            "release.yml",
            uninterruptible=True,
            limit=",".join(hosts),
            nagi_release_options=[
                *([] if force else ["--token", self.token]),
                *("--tidy", _HOME),
            ],
        )


def make_token(directory: Path) -> str:
    """Return an identifier of a directory of this user on this machine."""
    return digest([getpass.getuser(), socket.gethostname(), str(directory.absolute())])


def _make_mac_lookup(cell: Cell, inspections: dict[str, Inspection]) -> Callable[[str, str], str]:
    """Return a function that returns the MAC address of a node's interface on a link."""

    def find_mac(node: str, link: str) -> str:
        host = cell.hosts[node]
        return inspections[host.name].interfaces[host.links[link]].mac

    return find_mac


def _list_shipped_programs(host: LabHost, placement: HostPlacement) -> dict[str, object]:
    """Return the variables with the programs that are shipped to a host."""
    shipped: dict[str, object] = {}
    if host.node == EMULATOR and host.nagi_link is None:
        shipped["nagi_link_source"] = str(paths.executable("nagi-link"))
    return shipped | list_shipped_programs(host.backends, placement.backends)


def _estimate_clock_offsets(playbooks: Playbooks, results: Results) -> dict[str, ClockReading]:
    """Return the offset of each host's clock from this machine's clock.

    Each reading of a host's clock was made at an unknown instant between begin and end of its task.
    The offset lies in the intersection of the intervals of all readings.
    """
    minimum: dict[str, float] = {}
    maximum: dict[str, float] = {}
    for task, answers in results.items():
        if not task.startswith("Read the clock"):
            continue
        for host, result in answers.items():
            reading_s = float(result["stdout"])
            begin_s, end_s = playbooks.windows[task, host]
            minimum[host] = max(minimum.get(host, -1e18), reading_s - end_s)
            maximum[host] = min(maximum.get(host, 1e18), reading_s - begin_s)
    return {
        host: ClockReading(
            offset_s=(minimum[host] + maximum[host]) / 2,
            halfwidth_s=(maximum[host] - minimum[host]) / 2,
        )
        for host in minimum
    }
