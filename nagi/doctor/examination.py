# SPDX-License-Identifier: Apache-2.0
"""Examines hosts for `nagi doctor`: inspects them, and sends pings over their links."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from nagi_contracts.batch import Batch
from nagi_contracts.doctor import PathReading, PortReading
from nagi_contracts.impairments.queues.drop_tail import DropTailPlan
from nagi_contracts.inspection import Inspection
from nagi_contracts.links import Links
from nagi_contracts.media import (
    MatrixReach,
    MediumPlan,
    PhyName,
    StationPlan,
    load_phys,
    make_mac_address,
)
from nagi_contracts.paths import executable
from nagi_contracts.plan import (
    DirectionPlan,
    ExperimentRef,
    Interval,
    LinkEnd,
    LinkPlan,
    NodePlan,
    RunPlan,
    Timeline,
)

from nagi.doctor import ExperimentNeeds, Observations, list_findings
from nagi.doctor.observations import HERE
from nagi.labs.errors import LabError, Results
from nagi.labs.host_pool import HostPool, Survey
from nagi.labs.keeper import Keeper
from nagi.labs.lab import Batches, list_scheme_objects, make_agent
from nagi.labs.netns import NetnsLab
from nagi.labs.physical import PhysicalLab
from nagi.labs.programs import list_local_programs
from nagi.labs.shape import EMULATOR, Shape
from nagi.plan.schemes import read_receivers, read_schemes

_DELAY_NS = 10_000_000  # of the netns lab's link, each way
_LEASE_S = 300.0
_PYTHON = "/usr/bin/python3"


def to_observations(
    survey: Survey, inventory: Path, token: str, needs: ExperimentNeeds | None = None
) -> Observations:
    """Convert a survey of an inventory's hosts to observations.

    Args:
        survey: The survey.
        inventory: The file of the inventory.
        token: The token by which hosts recognise the campaign that has reserved them.
        needs: The needs of the experiment, or None without an experiment.
    """
    hosts = [host for cell in survey.cells for host in cell.hosts.values()]
    return Observations(
        cells={host.name: host.cell for host in hosts},
        inspections=survey.inspections,
        now_s=time.time(),
        inventory=str(inventory),
        unreachable={
            failure.host: failure.message for failure in survey.failures if failure.unreachable
        },
        silent={
            failure.host: failure.message for failure in survey.failures if not failure.unreachable
        },
        clocks=survey.clocks,
        needs=needs,
        token=token,
    )


def examine_hosts(pool: HostPool) -> Observations:
    """Inspect all hosts of an inventory. If no finding is a failure, try their links.

    To try the links of a cell, nagi reserves the cell's hosts, sets the links up without
    impairments, and sends pings. If links were not tried, `paths_left_out` of the result has the
    reason.
    """
    survey = pool.survey()
    observations = to_observations(survey, pool.inventory, pool.token)
    if list_findings(observations).status == "failure":
        return replace(
            observations, paths_left_out="its links were not tried, because something else failed"
        )
    try:
        for cell in pool.cells:
            plan = _plan_idle_run(cell.make_shape(), 0)
            lab = PhysicalLab(
                pool,
                [cell],
                Shape.from_plan(plan),
                survey,
                [],
                pool.directory / "records",
                "doctor",
            )
            lab.prepare([plan], _LEASE_S)
            trial = _try_links(plan, lab.batches)
            inspections = {
                host: inspection.model_copy(update={"io": trial.io.get(host, inspection.io)})
                for host, inspection in observations.inspections.items()
            }
            observations = replace(
                observations,
                inspections=inspections,
                paths={**observations.paths, **trial.paths},
                ports={**observations.ports, **trial.ports},
            )
    except LabError as error:
        observations = replace(
            observations, paths_left_out=f"its links could not be tried: {error}"
        )
    return observations


def examine_this_machine(scratch: Path, interrupted: Callable[[], bool]) -> Observations:
    """Inspect this machine. If no finding is a failure, try a link of a netns lab.

    If this machine cannot make a netns lab, such as without root, `no_namespaces` of the result has
    the reason.

    Args:
        scratch: A directory for temporary files.
        interrupted: A function that returns whether the user asked to stop.
    """
    observations = Observations(
        cells={HERE: "netns"}, inspections={HERE: _inspect_this_machine(scratch)}, now_s=time.time()
    )
    if os.geteuid() != 0:
        return replace(observations, no_namespaces="this is not root")
    if list_findings(observations).status == "failure":
        return observations
    plan = _plan_idle_run(Shape(("S", "D"), (_LINK,)), _DELAY_NS)
    try:
        with Keeper() as keeper:
            lab = NetnsLab(
                keeper.pid, Shape.from_plan(plan), 1, [], scratch, scratch / "records", interrupted
            )
            lab.prepare([plan])
            trial = _try_links(plan, lab.batches)
    except LabError as error:
        return replace(observations, no_namespaces=str(error))
    (emulator,) = trial.ports
    inspection = observations.inspections[HERE].model_copy(update={"io": trial.io[emulator]})
    return replace(
        observations,
        inspections={HERE: inspection},
        paths={HERE: [reading for readings in trial.paths.values() for reading in readings]},
        ports={HERE: trial.ports[emulator]},
    )


# The link of the netns lab, as in Shape.links.
_LINK = ("path", 0, ("S", "D"), ("198.18.0.1/30", "198.18.0.2/30"))


def _inspect_this_machine(scratch: Path) -> Inspection:
    """Inspect this machine as a node and as an emulator, and merge both inspections."""
    agent = make_agent(
        scratch, list_scheme_objects([*read_schemes().values(), *read_receivers().values()])
    )
    nagi_link = str(executable("nagi-link"))
    inspections = []
    for is_emulator in (False, True):
        request = scratch / "inspect.json"
        node = EMULATOR if is_emulator else HERE
        Batch(
            node=node,
            is_emulator=is_emulator,
            interfaces={},
            spool=str(scratch),
            state=str(scratch / "state"),
            nagi_link=nagi_link,
            backends=list_local_programs(node, Shape((), ())),
            runs=[],
        ).write(request)
        process = subprocess.run(
            [_PYTHON, agent, "inspect", request], capture_output=True, text=True, check=True
        )
        inspections.append(Inspection.model_validate_json(process.stdout))
    as_node, as_emulator = inspections
    return as_node.model_copy(
        update={
            "nagi_link": as_emulator.nagi_link,
            "nagi_link_error": as_emulator.nagi_link_error,
            "backends": as_node.backends | as_emulator.backends,
            "problems": list(dict.fromkeys(as_node.problems + as_emulator.problems)),
        }
    )


def _plan_idle_run(shape: Shape, delay_ns: int) -> RunPlan:
    """Plan a run without traffic, to try its links.

    Both directions of a link have the delay `delay_ns` and no other impairment. On media, all
    stations receive each other.
    """
    direction = DirectionPlan(delay_ns=delay_ns)
    return RunPlan(
        experiment=ExperimentRef(name="doctor", variant=None),
        point={},
        repeat=0,
        seed=0,
        host_profile="linux",
        nodes=[NodePlan(name=node, kind="host", sysctls={}, routes=[]) for node in shape.nodes],
        links=[
            LinkPlan(
                name=name,
                id=number,
                ends=(
                    LinkEnd(node=nodes[0], address=addresses[0]),
                    LinkEnd(node=nodes[1], address=addresses[1]),
                ),
                forward=direction,
                backward=direction,
            )
            for name, number, nodes, addresses in shape.links
            if name not in shape.media
        ],
        media=[_plan_idle_medium(*link) for link in shape.links if link[0] in shape.media],
        flows=[],
        captures=[],
        tcp_info_interval_s=1,
        timeline=Timeline(
            capture_s=0, serve_s=0, traffic_s=0, traffic_end_s=0, capture_end_s=0, end_s=0
        ),
        measure=Interval(start_s=0, end_s=0),
    )


def _plan_idle_medium(
    name: str, number: int, nodes: tuple[str, ...], addresses: tuple[str, ...]
) -> MediumPlan:
    """Plan a medium on which all stations receive each other."""
    phy: PhyName = "802.11g"
    slowest, fastest = load_phys()[phy].rates_bps[0], load_phys()[phy].rates_bps[-1]
    all_others = [[node != other for other in nodes] for node in nodes]
    return MediumPlan(
        name=name,
        id=number,
        phy=phy,
        preamble=None,
        data_rate_bps=fastest,
        basic_rate_bps=slowest,
        rts_threshold_bytes=None,
        short_retry_limit=7,
        long_retry_limit=4,
        cw_min=load_phys()[phy].cw_min,
        cw_max=load_phys()[phy].cw_max,
        queue=DropTailPlan(packets=1000),
        resets_nav=True,
        eifs_after="frames",
        monitor=None,
        reach=MatrixReach(decodes=all_others, senses=all_others, interferes=all_others),
        stations=[
            StationPlan(node=node, address=address, mac=make_mac_address(number, index))
            for index, (node, address) in enumerate(zip(nodes, addresses, strict=True))
        ],
    )


@dataclass(frozen=True)
class _Trial:
    """Results of trying links.

    Attributes:
        paths: Host of a node -> results of its pings.
        ports: Host of an emulator -> packet counters of its interfaces.
        io: Host of an emulator -> the ways in which nagi-link reads and writes packets.
    """

    paths: dict[str, list[PathReading]]
    ports: dict[str, list[PortReading]]
    io: dict[str, str]


def _try_links(plan: RunPlan, batches: Batches) -> _Trial:
    """Bring up the links of a lab that is prepared for `plan`, and send pings over them.

    Raises:
        LabError: A playbook failed.
    """
    batches.run_playbook("up.yml")
    results = batches.run_playbook("paths.yml")
    placements = {placement.host: placement for placement in batches.placements}
    ports: dict[str, list[PortReading]] = {}
    io: dict[str, str] = {}
    for host, output in _list_outputs(results, "Read the state of nagi-link"):
        node_of_interface = {
            interface: link_end.node
            for link in plan.links
            for interface, link_end in zip(
                placements[host].interfaces[link.name], link.ends, strict=True
            )
        }
        links = Links.model_validate_json(output).links  # nagi-link's counters
        ports_of_links = [(link.name, port) for link in links for port in (link.a, link.b)]
        ports[host] = [
            PortReading(
                link=link,
                node=node_of_interface[port.interface],
                interface=port.interface,
                received=port.received,
                sent=port.sent,
            )
            for link, port in ports_of_links
        ]
        io[host] = ", ".join(sorted({port.io for _, port in ports_of_links}))
    return _Trial(
        paths={
            host: [PathReading.model_validate(reading) for reading in json.loads(output)]
            for host, output in _list_outputs(results, "Ping the neighbours")
        },
        ports=ports,
        io=io,
    )


def _list_outputs(results: Results, task: str) -> Iterator[tuple[str, str]]:
    """Yield each host that executed a task, with the standard output of the task."""
    for host, result in results.get(task, {}).items():
        if "stdout" in result:  # not skipped
            yield host, result["stdout"]
