# SPDX-License-Identifier: Apache-2.0
"""Looking at hosts, for `nagi doctor` to judge: what their agents say, and what their links do."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nagi_contracts.batch import Batch
from nagi_contracts.doctor import (
    STAGES_OF_DEVICES,
    STAGES_OF_FPGA,
    STAGES_OF_RADIO,
    Doctor,
    Finding,
    PathReading,
    PortReading,
    Stage,
)
from nagi_contracts.impairments.queues.drop_tail import DropTailPlan
from nagi_contracts.inspection import Inspection
from nagi_contracts.links import Links
from nagi_contracts.media import (
    MatrixReach,
    MediumPlan,
    PhyName,
    StationPlan,
    mac_address,
    phys,
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
from nagi_fpga import stages
from nagi_fpga.loading import BoardLocation

from nagi.doctor import Observations, Wanted, judge
from nagi.doctor.text import TITLES
from nagi.labs.errors import LabError, Results
from nagi.labs.host_pool import HostPool, Survey
from nagi.labs.keeper import Keeper
from nagi.labs.lab import Batches, list_scheme_objects, make_agent
from nagi.labs.netns import NetnsLab
from nagi.labs.physical import PhysicalLab
from nagi.labs.shape import EMULATOR, Shape
from nagi.plan.radio import INSTALL, look_at_stages
from nagi.plan.schemes import receivers, schemes

HERE = "this machine"
_DELAY_NS = 10_000_000  # of the netns lab's link, each way
_LEASE_S = 300.0
_PYTHON = "/usr/bin/python3"


def to_observations(
    survey: Survey, inventory: Path, token: str, wanted: Wanted | None = None
) -> Observations:
    """What a survey of an inventory's hosts tells."""
    hosts = [host for cell in survey.cells for host in cell.hosts.values()]
    return Observations(
        cells={host.name: host.cell for host in hosts},
        inspections=survey.inspections,
        now_s=time.time(),
        inventory=str(inventory),
        unreachable={f.host: f.message for f in survey.failures if f.unreachable},
        silent={f.host: f.message for f in survey.failures if not f.unreachable},
        clocks=survey.clocks,
        wanted=wanted,
        token=token,
    )


def examine_hosts(pool: HostPool) -> Observations:
    """Looks at all hosts of an inventory. If nothing that is seen forbids it, holds them, sets
    their links up without any impairment, and tries each."""
    survey = pool.survey()
    seen = to_observations(survey, pool.inventory, pool.token)
    if judge(seen).status == "failure":
        return replace(seen, paths_left_out="its links were not tried, as something else failed")
    try:
        for cell in pool.cells:
            plan = _plain(cell.make_shape(), 0)
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
            tried = _try_links(plan, lab.batches)
            inspections = {
                host: found.model_copy(update={"io": tried.io.get(host, found.io)})
                for host, found in seen.inspections.items()
            }
            seen = replace(
                seen,
                inspections=inspections,
                paths={**seen.paths, **tried.paths},
                ports={**seen.ports, **tried.ports},
            )
    except LabError as error:
        seen = replace(seen, paths_left_out=f"its links could not be tried: {error}")
    return seen


def examine_this_machine(scratch: Path, interrupted: Callable[[], bool]) -> Observations:
    """Looks at this machine; if it can have a netns lab, tries a link in one."""
    seen = Observations(
        cells={HERE: "netns"}, inspections={HERE: _inspection_here(scratch)}, now_s=time.time()
    )
    if os.geteuid() != 0:
        return replace(seen, no_namespaces="this is not root")
    if judge(seen).status == "failure":
        return seen
    plan = _plain(Shape(("S", "D"), (_LINK,)), _DELAY_NS)
    try:
        with Keeper() as keeper:
            lab = NetnsLab(
                keeper.pid, Shape.from_plan(plan), 1, [], scratch, scratch / "records", interrupted
            )
            lab.prepare([plan])
            tried = _try_links(plan, lab.batches)
    except LabError as error:
        return replace(seen, no_namespaces=str(error))
    (emulator,) = tried.ports
    here = seen.inspections[HERE].model_copy(update={"io": tried.io[emulator]})
    return replace(
        seen,
        inspections={HERE: here},
        paths={HERE: [reading for readings in tried.paths.values() for reading in readings]},
        ports={HERE: tried.ports[emulator]},
    )


_LINK = ("path", 0, ("S", "D"), ("198.18.0.1/30", "198.18.0.2/30"))


def _inspection_here(scratch: Path) -> Inspection:
    """This machine as a host and as an emulator."""
    agent = make_agent(scratch, list_scheme_objects([*schemes().values(), *receivers().values()]))
    nagi_link = str(executable("nagi-link"))
    found = []
    for is_emulator in (False, True):
        request = scratch / "inspect.json"
        Batch(
            node=EMULATOR if is_emulator else HERE,
            is_emulator=is_emulator,
            interfaces={},
            spool=str(scratch),
            state=str(scratch / "state"),
            nagi_link=nagi_link,
            nagi_sdr=str(executable("nagi-sdr")) if is_emulator else None,
            nagi_fpga=str(executable("nagi-fpga")) if is_emulator else None,
            runs=[],
        ).write(request)
        done = subprocess.run(
            [_PYTHON, agent, "inspect", request], capture_output=True, text=True, check=True
        )
        found.append(Inspection.model_validate_json(done.stdout))
    host, emulator = found
    return host.model_copy(
        update={
            "nagi_link": emulator.nagi_link,
            "nagi_link_error": emulator.nagi_link_error,
            "nagi_sdr": emulator.nagi_sdr,
            "nagi_sdr_error": emulator.nagi_sdr_error,
            "nagi_fpga": emulator.nagi_fpga,
            "nagi_fpga_error": emulator.nagi_fpga_error,
            "problems": list(dict.fromkeys(host.problems + emulator.problems)),
        }
    )


def examine_radio(devices: Sequence[str] = ()) -> Doctor:
    """How far links of this machine can be radios, stage by stage; those after one that fails are
    skipped. `devices`: options of `nagi-sdr doctor`, of radio hardware."""
    looked = look_at_stages(devices)
    return _in_stages(
        [(each.stage, each.ok, each.detail, each.cure or INSTALL) for each in looked],
        STAGES_OF_DEVICES if devices else STAGES_OF_RADIO,
    )


def examine_fpga(place: BoardLocation, images: str) -> Doctor:
    """How far a board can be used from this machine, stage by stage; those after one that fails are
    skipped."""
    looked = [
        (stage, each.is_ok, each.detail, each.cure)
        for each in stages.examine_board(place, images)
        for stage in STAGES_OF_FPGA
        if stage == each.name
    ]
    return _in_stages(looked, STAGES_OF_FPGA)


def _in_stages(looked: Sequence[tuple[Stage, bool, str, str]], known: Sequence[Stage]) -> Doctor:
    """Findings of stages that build on each other: (stage, whether it is well, what was found,
    cure), and those of `known` that were not looked at."""
    findings = [
        Finding(
            stage=stage,
            cell=None,
            hosts=[HERE],
            status="ok" if is_ok else "failure",
            what=detail,
            cure="" if is_ok else cure,
        )
        for stage, is_ok, detail, cure in looked
    ]
    failed = next((stage for stage, is_ok, *_ in looked if not is_ok), None)
    if failed is not None:
        findings += [
            Finding(
                stage=stage,
                cell=None,
                hosts=[HERE],
                status="skipped",
                what="it builds on what failed",
                cure=f"see {TITLES[failed]}",
            )
            for stage in known[len(looked) :]
        ]
    return Doctor.of(findings)


def _plain(shape: Shape, delay_ns: int) -> RunPlan:
    """A run in which nothing happens, over links that do nothing but delay, and media on which all
    hear each other."""
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
        media=[_plain_medium(*link) for link in shape.links if link[0] in shape.media],
        flows=[],
        captures=[],
        tcp_info_interval_s=1,
        timeline=Timeline(
            capture_s=0, serve_s=0, traffic_s=0, traffic_end_s=0, capture_end_s=0, end_s=0
        ),
        measure=Interval(start_s=0, end_s=0),
    )


def _plain_medium(
    name: str, number: int, nodes: tuple[str, ...], addresses: tuple[str, ...]
) -> MediumPlan:
    phy: PhyName = "802.11g"
    slowest, fastest = phys()[phy].rates_bps[0], phys()[phy].rates_bps[-1]
    others = [[one != other for other in nodes] for one in nodes]
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
        cw_min=phys()[phy].cw_min,
        cw_max=phys()[phy].cw_max,
        queue=DropTailPlan(packets=1000),
        resets_nav=True,
        eifs_after="frames",
        monitor=None,
        reach=MatrixReach(decodes=others, senses=others, interferes=others),
        stations=[
            StationPlan(node=node, address=address, mac=mac_address(number, index))
            for index, (node, address) in enumerate(zip(nodes, addresses, strict=True))
        ],
    )


@dataclass(frozen=True)
class _Tried:
    """What trying links told, by host."""

    paths: dict[str, list[PathReading]]
    ports: dict[str, list[PortReading]]
    io: dict[str, str]


def _try_links(plan: RunPlan, batches: Batches) -> _Tried:
    """Tries the links of a lab that is prepared for `plan`. Raises LabError."""
    batches.run_playbook("up.yml")
    results = batches.run_playbook("paths.yml")
    places = {place.host: place for place in batches.placements}
    ports: dict[str, list[PortReading]] = {}
    io: dict[str, str] = {}
    for host, said in _said(results, "Ask nagi-link"):
        faces = {
            interface: end.node
            for link in plan.links
            for interface, end in zip(places[host].interfaces[link.name], link.ends, strict=True)
        }
        account = Links.model_validate_json(said)
        found = [(link.name, port) for link in account.links for port in (link.a, link.b)]
        ports[host] = [
            PortReading(
                link=link,
                node=faces[port.interface],
                interface=port.interface,
                received=port.received,
                sent=port.sent,
            )
            for link, port in found
        ]
        io[host] = ", ".join(sorted({port.io for _, port in found}))
    return _Tried(
        paths={
            host: [PathReading.model_validate(reading) for reading in json.loads(said)]
            for host, said in _said(results, "Ask the far ends")
        },
        ports=ports,
        io=io,
    )


def _said(results: Results, task: str) -> Iterator[tuple[str, str]]:
    """What each host's command printed."""
    for host, result in results.get(task, {}).items():
        if "stdout" in result:  # not skipped
            yield host, result["stdout"]
