# SPDX-License-Identifier: Apache-2.0
"""The physical lab: real hosts that an inventory names, reached over SSH.

Hosts are held for one campaign at a time. What they were like before is put back when they are let
go, at the latest when the lease runs out because this process has died (nagi_agent/hold.py).
"""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nagi_contracts import paths
from nagi_contracts.doctor import ClockReading
from nagi_contracts.errors import refuse
from nagi_contracts.inspection import Holder, Inspection
from nagi_contracts.plan import RunPlan, digest

from nagi.labs.ansible_runs import Playbooks
from nagi.labs.ansible_variables import Template
from nagi.labs.cells import Cell, LabHost
from nagi.labs.errors import Failure, LabError, Results, Unfit
from nagi.labs.inventory import module_interfaces
from nagi.labs.lab import Batches, Place, SwitchPrograms, make_agent, objects_in
from nagi.labs.shape import EMULATOR, Shape
from nagi.plan.schemes import Scheme, read_receivers, read_schemes

NAME = "physical"
FPGA_IMAGES = "/usr/local/lib/nagi/fpga"  # where the role fpga puts bitstreams
LEASE_S = 900.0  # until the first batch; then its agents renew it
# From choosing the first run's instant to it every agent must have started, over SSH.
_LEAD_S = 3.0
_LEAD_PER_HOST_S = 0.1
_HOME = Template("{{ nagi_home }}")
_AGENT = [Template("{{ ansible_python_interpreter }}"), Template(f"{_HOME}/nagi-agent.pyz")]
# What stays or works on after the connection is a unit of its own where systemd reigns, so that
# logind does not end it with the user's session.
APART = [
    *("sh", "-c"),
    "test -d /run/systemd/system && exec systemd-run --scope --quiet --collect "
    '--unit="nagi-agent-$$" -- "$@"; exec "$@"',
    "nagi-agent",
]


@dataclass(frozen=True)
class Survey:
    """What was found on the hosts of an inventory."""

    cells: list[Cell]
    inspections: dict[str, Inspection]  # by host
    clocks: dict[str, ClockReading]
    failures: list[Failure]  # of hosts that could not be looked at


class HostPool:
    """The hosts of some cells, for one owner.

    `directory` is the controller's own for this. `token` says for whom hosts are held, and names
    the directory in which they keep records: one process at a time may use it. On exit hosts are
    let go and what is not needed any more is removed, unless they are to stay; `say` is told of
    hosts that could not be.
    """

    def __init__(
        self,
        inventory: Path,
        cells: list[Cell],
        directory: Path,
        token: str,
        interrupted: Callable[[], bool],
        say: Callable[[str], None],
        wanted: Iterable[Scheme] = (),
    ) -> None:
        self.say = say
        self.held = False
        self.stay = False
        self._unreachable: set[str] = set()
        self._collected: dict[str, list[str]] = {}
        self.cells = cells
        self.token = token
        self.inventory = inventory
        self.directory = directory
        self._interrupted = interrupted
        self._agent = make_agent(
            directory, objects_in([*read_schemes().values(), *read_receivers().values(), *wanted])
        )

    def __enter__(self) -> HostPool:
        return self

    def __exit__(self, *_: object) -> None:
        if self.stay:
            return
        try:
            self.release()
        except LabError as error:
            if self.held:
                self.say(
                    f"{error}; hosts that were not let go put themselves back within "
                    f"{LEASE_S / 60:.0f} minutes, or at `nagi down -i {self.inventory} --force`"
                )

    def hosts(self) -> list[LabHost]:
        return [host for cell in self.cells for host in cell.hosts.values()]

    def places(
        self,
        cells: list[Cell],
        shape: Shape | None,
        inspections: dict[str, Inspection] | None = None,
    ) -> list[Place]:
        """The hosts of `cells`: those that are nodes of `shape`, or all. `inspections`: what hosts
        said, if their media are to be used: stations have MAC addresses of their own."""
        return [
            self._place(
                host,
                cell.shape() if shape is None else shape,
                _macs(cell, inspections) if inspections else None,
            )
            for cell in cells
            for host in cell.hosts.values()
            if shape is None or host.node in (*shape.nodes, EMULATOR)
        ]

    def _home(self, host: LabHost) -> str:
        return f"{host.spool}/{self.token}"

    def _place(self, host: LabHost, shape: Shape, macs: Callable[[str, str], str] | None) -> Place:
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
            interfaces = {each.link: host.links[each.link] for each in shape.interfaces(host.node)}
        return Place(
            host=host.name,
            cell=host.cell,
            node=host.node,
            interfaces=interfaces,
            spool=f"{self._home(host)}/runs",
            state=host.state,
            user=host.user,
            nagi_link=host.nagi_link or f"{host.programs or self._home(host)}/nagi-link",
            # It comes with GNU Radio, and is not shipped.
            nagi_sdr=host.nagi_sdr or "nagi-sdr",
            nagi_fpga=host.nagi_fpga or "nagi-fpga",
            fpga_images=host.fpga_images or FPGA_IMAGES,
            token=self.token,
            switch=SwitchPrograms(
                host.nagi_switch or f"{host.programs or self._home(host)}/nagi-switch"
            )
            if host.nagi_switch or host.node in shape.switches
            else None,
            p4runtime=host.p4runtime,
            macs=stations,
        )

    def playbooks(
        self,
        cells: list[Cell],
        shape: Shape | None,
        inspections: dict[str, Inspection],
        modules: list[str],
    ) -> Playbooks:
        """Playbooks for the hosts of `cells` that are nodes of `shape`, or for all."""
        places = {place.host: place for place in self.places(cells, shape)}
        variables: dict[str, dict[str, object]] = {}
        for cell in cells:
            for host in cell.hosts.values():
                if host.name not in places:
                    continue
                place = places[host.name]
                mine: dict[str, object] = {
                    "nagi_home": self._home(host),
                    "nagi_spool": place.spool,
                    "nagi_link_executable": place.nagi_link,
                    "nagi_journal": f"{host.state}/interfaces.json",
                }
                if shape is not None:
                    mine["nagi_interfaces"] = module_interfaces(
                        shape, host.node, place.interfaces, _macs(cell, inspections)
                    )
                if host.programs is not None:
                    agent = ["/usr/bin/env", f"NAGI_PROGRAMS={host.programs}", *_AGENT]
                    mine |= {"nagi_agent": agent, "nagi_agent_apart": [*APART, *agent]}
                else:
                    mine |= _shipped(host, place)
                variables[host.name] = mine
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
            self.directory / "ansible", inventory, self._interrupted, beside=self.inventory
        )

    def batches(
        self,
        cells: list[Cell],
        shape: Shape | None,
        playbooks: Playbooks,
        records: Path,
        inspections: dict[str, Inspection] | None = None,
    ) -> Batches:
        return Batches(
            self.places(cells, shape, inspections),
            playbooks,
            self.directory,
            records,
            lambda hosts: _LEAD_S + _LEAD_PER_HOST_S * hosts,
            fetch=True,
            collected=self._collected,
        )

    def survey(self) -> Survey:
        """Looks at all hosts. Raises Interrupted."""
        playbooks = self.playbooks(self.cells, None, {}, [])
        batches = self.batches(self.cells, None, playbooks, self.directory / "records")
        failures: list[Failure] = []
        try:
            results = batches.play("inspect.yml")
        except LabError as error:
            results, failures = error.results, error.failures
            if not failures:
                raise
        self._unreachable = {failure.host for failure in failures if failure.unreachable}
        inspections = {
            host: Inspection.model_validate_json(result["stdout"])
            for host, result in results.get("Inspect", {}).items()
        }
        return Survey(self.cells, inspections, _clocks(playbooks, results), failures)

    def holder(self, campaign: str, until_s: float) -> dict[str, object]:
        """For whom hosts are held, as far as the controller says it."""
        now = time.time()
        said = Holder(
            owner=f"{getpass.getuser()}@{socket.gethostname()}",
            campaign=campaign,
            token=self.token,
            since_s=now,
            expires_s=until_s,
            guard=0,
        )
        return said.model_dump(exclude={"schema_version", "guard"})

    def release(self, *, force: bool = False) -> None:
        """Puts everything back and lets hosts go: those held for us, or with `force` for anybody.
        Records that nobody has fetched stay. Raises LabError."""
        playbooks = self.playbooks(self.cells, None, {}, [])
        batches = self.batches(self.cells, None, playbooks, self.directory / "records")
        hosts = [place.host for place in batches.places if place.host not in self._unreachable]
        if not hosts:
            return
        batches.play(
            "release.yml",
            to_the_end=True,
            limit=",".join(hosts),
            nagi_release_options=[
                *([] if force else ["--token", self.token]),
                *("--tidy", _HOME),
            ],
        )


class PhysicalLab:
    """A lab of some cells for plans of one shape."""

    in_real_time = True

    def __init__(
        self,
        pool: HostPool,
        cells: list[Cell],
        shape: Shape,
        survey: Survey,
        modules: list[str],
        records: Path,
        campaign: str,
    ) -> None:
        self._pool = pool
        self._campaign = campaign
        playbooks = pool.playbooks(cells, shape, survey.inspections, modules)
        self.batches = pool.batches(cells, shape, playbooks, records, survey.inspections)

    @property
    def cells(self) -> list[str]:
        return self.batches.cells

    def prepare(self, plans: list[RunPlan], lease_s: float = LEASE_S) -> None:
        self._pool.held = True
        holder = self._pool.holder(self._campaign, time.time() + lease_s)
        self.batches.prepare("physical_lab.yml", plans, nagi_holder=holder)

    def run_batch(self, plans: dict[str, list[RunPlan]]) -> dict[str, str]:
        self.batches.run(plans)
        return {}

    def lead_s(self) -> float:
        return self.batches.lead_s()


class PhysicalLabs:
    """Makes labs of the cells of an inventory, which are held from entry to exit."""

    name = NAME

    def __init__(
        self,
        pool: HostPool,
        survey: Survey,
        records: Path,
        campaign: str,
    ) -> None:
        self._pool = pool
        self._survey = survey
        self._records = records
        self._campaign = campaign
        self._given_up: set[str] = set()

    def __enter__(self) -> PhysicalLabs:
        """Holds the hosts and brings what an earlier process left on them. Raises InputError."""
        playbooks = self._pool.playbooks(self._pool.cells, None, {}, [])
        batches = self._pool.batches(self._pool.cells, None, playbooks, self._records)
        self._pool.held = True
        try:
            batches.play(
                "hold.yml",
                nagi_holder=self._pool.holder(self._campaign, time.time() + LEASE_S),
            )
        except LabError as error:
            raise refuse(str(error), "see `nagi doctor`; nothing was run") from None
        batches.bring_records()
        return self

    def __exit__(self, *_: object) -> None:
        pass  # the pool lets the hosts go

    @contextmanager
    def open(self, shape: Shape, plans: list[RunPlan], jobs: int) -> Iterator[PhysicalLab]:
        """Of the cells that have all nodes and links of `shape`."""
        cells = [cell for cell in self._pool.cells if cell.name not in self._given_up]
        fitting = [cell for cell in cells if not cell.lacks(shape)]
        if not fitting:
            raise Unfit(
                "; ".join(
                    f"{cell.name}: {', '.join(cell.lacks(shape))}" for cell in self._pool.cells
                )
            )
        yield PhysicalLab(
            self._pool,
            fitting[: min(jobs, len(plans))],
            shape,
            self._survey,
            [],
            self._records,
            self._campaign,
        )

    def give_up(self, trouble: LabError) -> list[str]:
        failed = {failure.host for failure in trouble.failures}
        cells = [cell for cell in self._pool.cells if cell.name not in self._given_up]
        broken = sorted(
            cell.name for cell in cells if failed & {host.name for host in cell.hosts.values()}
        )
        if len(broken) == len(cells):
            return []
        self._given_up.update(broken)
        return broken


def token_for(directory: Path) -> str:
    """Stands for a campaign's directory of this user on this machine."""
    return digest([getpass.getuser(), socket.gethostname(), str(directory.absolute())])


def _macs(cell: Cell, inspections: dict[str, Inspection]) -> Callable[[str, str], str]:
    def mac(node: str, link: str) -> str:
        host = cell.hosts[node]
        return inspections[host.name].interfaces[host.links[link]].mac

    return mac


def _shipped(host: LabHost, place: Place) -> dict[str, object]:
    """Programs of the controller's that a host is brought."""
    shipped: dict[str, object] = {}
    if host.node == EMULATOR and host.nagi_link is None:
        shipped["nagi_link_source"] = str(paths.executable("nagi-link"))
    if place.switch is not None and host.nagi_switch is None:
        shipped["nagi_switch_source"] = str(paths.executable("nagi-switch"))
    return shipped


def _clocks(playbooks: Playbooks, results: Results) -> dict[str, ClockReading]:
    """From what each host read off its clock, and when that was by ours: the offset lies in all of
    the readings' intervals."""
    minimum: dict[str, float] = {}
    maximum: dict[str, float] = {}
    for task, answers in results.items():
        if not task.startswith("Read the clock"):
            continue
        for host, result in answers.items():
            read = float(result["stdout"])
            began, ended = playbooks.windows[task, host]
            minimum[host] = max(minimum.get(host, -1e18), read - ended)
            maximum[host] = min(maximum.get(host, 1e18), read - began)
    return {
        host: ClockReading(
            offset_s=(minimum[host] + maximum[host]) / 2,
            halfwidth_s=(maximum[host] - minimum[host]) / 2,
        )
        for host in minimum
    }
