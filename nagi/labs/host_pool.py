# SPDX-License-Identifier: Apache-2.0
"""Real hosts of an inventory: their examination, reservation and release.

A host is reserved for one campaign at a time, for the time of a lease. When the host is released,
its earlier state is restored. If this process dies, the host restores and releases itself at the
end of the lease (nagi_agent/hold.py).
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

LEASE_S = 900.0  # the first lease; the agents of each batch renew it
# The time from the choice of the first run's start until this start. All agents must be started
# over SSH within this time.
_LEAD_S = 3.0
_LEAD_PER_HOST_S = 0.1
_HOME = Template("{{ nagi_home }}")
_AGENT = [Template("{{ ansible_python_interpreter }}"), Template(f"{_HOME}/nagi-agent.pyz")]
# Under systemd, agents that outlive the SSH connection get their own unit, because logind would
# end them with the user's session.
APART = [
    *("sh", "-c"),
    "test -d /run/systemd/system && exec systemd-run --scope --quiet --collect "
    '--unit="nagi-agent-$$" -- "$@"; exec "$@"',
    "nagi-agent",
]


@dataclass(frozen=True)
class Survey:
    """The results of an examination of all hosts of an inventory.

    Attributes:
        cells: All cells of the pool.
        inspections: Host -> answer of its agent, for hosts whose agent answered.
        clocks: Host -> offset of its clock from this machine's clock.
        failures: The failures of the hosts whose agents did not answer.
    """

    cells: list[Cell]
    inspections: dict[str, Inspection]
    clocks: dict[str, ClockReading]
    failures: list[Failure]


class HostPool:
    """The hosts of some cells, for one campaign or command, which is the owner of reservations.

    At the end of a `with` block, hosts are released and temporary files on hosts are removed.

    Attributes:
        cells: The cells.
        inventory: The file of the inventory.
        directory: The directory for the controller's files.
        token: A text that identifies the owner, and names the directory of its records on hosts.
            Only one process at a time may use a token.
        is_reserved: Whether hosts may have been reserved.
        keep_hosts: Whether hosts stay reserved at the end of the `with` block.
        notify: A function that receives a message if hosts could not be released.
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
        """Pack the agent for the hosts, without contacting a host.

        Args:
            inventory: The user's inventory.
            cells: Cells of this inventory.
            directory: A directory for the controller's files.
            token: The token of the owner, such as make_token() returns.
            interrupted: A function that returns whether the user asked to stop.
            notify: A function that receives a message if hosts could not be released.
            user_schemes: Schemes of the user that the agent needs, in addition to nagi's schemes.
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
        """Release the hosts, unless `keep_hosts` is set.

        If hosts that may be reserved cannot be released, notify the user, and raise no error.
        """
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
        """Return the placement of each host: its node, interfaces and programs.

        Args:
            cells: Cells of the pool.
            shape: The nodes and links in use, or None for all nodes and links of each cell. Hosts
                whose node is not in use have no placement.
            inspections: Host -> inspection, with MAC addresses; necessary if `shape` has media.
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
        """Return the directory on a host for the agent and the records of this owner."""
        return f"{host.spool}/{self.token}"

    def _make_placement(
        self, host: LabHost, shape: Shape, find_mac: Callable[[str, str], str] | None
    ) -> HostPlacement:
        """Return the placement of one host.

        `find_mac` is a function that returns the MAC address of a node on a link, or None if
        addresses are not known.
        """
        interfaces: dict[str, str] | dict[str, tuple[str, ...]]
        macs_on_media: dict[str, tuple[str, ...]] = {}
        if host.node == EMULATOR:
            if find_mac is not None:
                macs_on_media = {
                    link: tuple(find_mac(node, link) for node in nodes)
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
            macs=macs_on_media,
        )

    def make_playbooks(
        self,
        cells: list[Cell],
        shape: Shape | None,
        inspections: dict[str, Inspection],
        modules: list[str],
    ) -> Playbooks:
        """Return an object that runs playbooks on the hosts of some cells.

        Args:
            cells: Cells of the pool.
            shape: The shape whose nodes the hosts are; None for all hosts, without interfaces.
            inspections: Host -> inspection, which has MAC addresses; may be empty without `shape`.
            modules: The kernel modules to load.
        """
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
        """Return an object that ships batches to hosts, starts them, and fetches their records.

        Args:
            cells: Cells of the pool.
            shape: The shape whose nodes the hosts are; None for all hosts.
            playbooks: The playbooks of these hosts, from make_playbooks().
            records: The directory to which records are fetched.
            inspections: Host -> inspection, with MAC addresses; necessary if `shape` has media.
        """
        return Batches(
            self.make_placements(cells, shape, inspections),
            playbooks,
            self.directory,
            records,
            lambda hosts: _LEAD_S + _LEAD_PER_HOST_S * hosts,
            fetch=True,
            collected=self._collected,
            notify=self.notify,
        )

    def survey(self) -> Survey:
        """Copy the agent to all hosts, and examine the hosts.

        A host that fails is in `failures` of the result.

        Raises:
            Interrupted: The user asked to stop.
            LabError: The playbook failed, but not on a particular host.
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
        """Return the fields of a `Holder`, by which agents store who has reserved their hosts.

        Args:
            campaign: The name of the campaign or command, for other users.
            until_s: The end of the lease, in seconds since the epoch.
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
        """Restore the earlier state of hosts, and release the hosts.

        Hosts that survey() could not reach are left out. Records that were not fetched stay.

        Args:
            force: Whether hosts that other owners have reserved are released, too.

        Raises:
            LabError: A host could not be released.
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
    """Return a token for a HostPool: a digest of user, machine and the path of `directory`."""
    return digest([getpass.getuser(), socket.gethostname(), str(directory.absolute())])


def _make_mac_lookup(cell: Cell, inspections: dict[str, Inspection]) -> Callable[[str, str], str]:
    """Return a function that returns the MAC address of a node's interface on a link."""

    def find_mac(node: str, link: str) -> str:
        host = cell.hosts[node]
        return inspections[host.name].interfaces[host.links[link]].mac

    return find_mac


def _list_shipped_programs(host: LabHost, placement: HostPlacement) -> dict[str, object]:
    """Return Ansible's variables with the paths of programs to copy to a host."""
    shipped: dict[str, object] = {}
    if host.node == EMULATOR and host.nagi_link is None:
        shipped["nagi_link_source"] = str(paths.executable("nagi-link"))
    return shipped | list_shipped_programs(host.backends, placement.backends)


def _estimate_clock_offsets(playbooks: Playbooks, results: Results) -> dict[str, ClockReading]:
    """Return host -> offset of its clock from this machine's clock.

    A task reads the host's clock at an unknown time between the task's begin and end. This gives an
    interval for the offset. The offset lies in the intersection of the intervals of all tasks.
    """
    min_offset_s: dict[str, float] = {}
    max_offset_s: dict[str, float] = {}
    for task, answers in results.items():
        if not task.startswith("Read the clock"):
            continue
        for host, result in answers.items():
            reading_s = float(result["stdout"])
            begin_s, end_s = playbooks.windows[task, host]
            min_offset_s[host] = max(min_offset_s.get(host, -1e18), reading_s - end_s)
            max_offset_s[host] = min(max_offset_s.get(host, 1e18), reading_s - begin_s)
    return {
        host: ClockReading(
            offset_s=(min_offset_s[host] + max_offset_s[host]) / 2,
            halfwidth_s=(max_offset_s[host] - min_offset_s[host]) / 2,
        )
        for host in min_offset_s
    }
