# SPDX-License-Identifier: Apache-2.0
"""The section Setup: topology, links, lab, machine, programs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime

from nagi_contracts.errors import InputError
from nagi_contracts.links import Links
from nagi_contracts.media import MediumPlan
from nagi_contracts.plan import (
    DIRECTIONS,
    FlowPlan,
    LinkDirection,
    RunPlan,
)
from nagi_contracts.units import format_count

from nagi_reports import figures
from nagi_reports.chapters.backends import Notes
from nagi_reports.chapters.material import Material
from nagi_reports.chapters.ranges import (
    describe_delays,
    describe_directions,
    describe_rates,
    format_range,
)
from nagi_reports.content import (
    Block,
    Column,
    Facts,
    Figure,
    Table,
)

_MAX_UNLINKED = 4  # if more stations have no links, the diagram leaves out all of them


def compose_blocks(
    material: Material, backend_rows: list[tuple[str, str]], notes: Notes
) -> list[Block]:
    """Return the blocks of the section Setup.

    Args:
        material: The records of the campaign.
        backend_rows: Rows of backends for the table of facts, as name and value.
        notes: Subject -> text of backends. The text on "emulator" is appended to the row Lab.
    """
    links = _compose_links(material) if material.plan.links else []
    return [*links, Facts(_collect_facts(material, backend_rows, notes))]


def _compose_links(material: Material) -> list[Block]:
    """Return the diagram of the topology and the table of links."""
    return [
        _draw_topology(material),
        Table(
            "The links. Ranges are over all runs. A queue's limit does not count the packet in "
            "transmission.",
            [
                Column("Link"),
                Column("Direction"),
                Column("Rate", weight=2),
                Column("Delay", weight=2),
                Column("Queue", weight=2),
                Column("Loss", weight=3),
            ],
            _make_link_rows(material),
            small=True,
        ),
    ]


def _draw_topology(material: Material) -> Figure:
    """Return the diagram of the topology.

    If more than _MAX_UNLINKED stations of media have no links, the diagram leaves them out, because
    the figures of media show them.
    """
    plan = material.plan
    plans = list(material.plans.values())
    linked_nodes = {end.node for link in plan.links for end in link.ends}
    unlinked = {station.node for medium in plan.media for station in medium.stations} - linked_nodes
    hidden = unlinked if len(unlinked) > _MAX_UNLINKED else set()
    kinds = {node.name: node.kind for node in plan.nodes if node.name not in hidden}
    links = [
        figures.DrawnLink(
            (link.ends[0].node, link.ends[1].node),
            link.name,
            tuple(_make_diagram_lines(plans, index)),
        )
        for index, link in enumerate(plan.links)
    ]
    attachments = [
        figures.DrawnLink((medium.name, station.node), "", ())
        for medium in plan.media
        for station in medium.stations
        if station.node not in hidden
    ]
    medium_kinds: dict[str, str] = dict.fromkeys((medium.name for medium in plan.media), "medium")
    first_node = plan.flows[0].sender
    diagram = figures.make_topology_diagram(
        kinds | medium_kinds,
        [*links, *attachments],
        first_node if first_node in kinds else plan.links[0].ends[0].node,
    )
    flows = material.describe_flows()
    connections = ", ".join(
        f"{a} and {b} joined by {link.name}" for link in links for a, b in [link.ends]
    )
    round_boxes = "routers and switches" if plan.switches() else "routers"
    legend = ""
    if plan.media:
        legend = ", dashed boxes shared media"
        connections += "".join(f", {_describe_attachments(medium)}" for medium in plan.media)
    if hidden:
        legend += f" ({format_count(len(hidden), 'station')} without links left out)"
    return Figure(
        "topology",
        figures.render_svg(diagram),
        f"The topology: squares are hosts, round boxes {round_boxes}{legend}. Flows: {flows}.",
        f"Diagram of the topology: {connections}. Flows: {flows}.",
    )


def _make_link_rows(material: Material) -> list[list[str]]:
    """Return one row per link, or per direction if the directions of a link differ."""
    plan = material.plan
    plans = list(material.plans.values())
    rows = []
    for link in plan.links:
        directions: dict[str, LinkDirection] = {
            direction: LinkDirection(link=link.name, direction=direction)
            for direction in DIRECTIONS
        }
        forward, backward = directions.values()
        is_symmetric = all(
            p.channel(forward) == p.channel(backward)
            and p.switch_settings(forward) is None
            and p.switch_settings(backward) is None
            for p in plans
        )
        for name in ("both ways",) if is_symmetric else DIRECTIONS:
            direction = directions.get(name, forward)
            switch_note = (
                "; shaped by the switch" if plan.switch_settings(direction) is not None else ""
            )
            rate, *cells = describe_directions([p.channel(direction) for p in plans])
            rows.append(
                [
                    link.name,
                    _format_direction(link.ends[0].node, link.ends[1].node, name),
                    rate + switch_note,
                    *cells,
                ]
            )
    return rows


def _describe_attachments(medium: MediumPlan) -> str:
    nodes = [station.node for station in medium.stations]
    return f"{', '.join(nodes[:-1])} and {nodes[-1]} on {medium.name}"


def _format_direction(one: str, other: str, direction: str) -> str:
    return {"forward": f"{one} → {other}", "backward": f"{other} → {one}"}.get(
        direction, f"{one} ↔ {other}"
    )


def _make_diagram_lines(plans: list[RunPlan], index: int) -> Iterator[str]:
    """Yield rate and delay of a link, for the diagram."""
    direction = LinkDirection(link=plans[0].links[index].name, direction="forward")
    forward = [plan.channel(direction) for plan in plans]
    rate = describe_rates(forward)
    if rate != "not limited":
        yield rate
    yield describe_delays(forward)


def _collect_facts(
    material: Material, backend_rows: list[tuple[str, str]], notes: Notes
) -> list[tuple[str, str]]:
    """Return the rows of the table of facts on the setup, as name and value."""
    campaign, plan = material.campaign, material.plan
    facts = [
        node.facts for manifest in material.manifests.values() for node in manifest.nodes.values()
    ]
    programs = sorted({version for node_facts in facts for version in node_facts.programs.values()})
    machines = {
        f"{node_facts.machine}, {format_count(node_facts.processors, 'processor')}"
        for node_facts in facts
    }
    dates = sorted(manifest.date_s for manifest in material.manifests.values())
    payloads = sorted({flow.payload_bytes for p in material.plans.values() for flow in p.flows})
    versions = " and ".join(sorted({f"IPv{p.ip_version()}" for p in material.plans.values()}))
    windows = sorted(
        {
            flow.max_window
            for p in material.plans.values()
            for flow in p.flows
            if flow.max_window is not None
        }
    )
    items = [
        (
            "Lab",
            f"{campaign.lab}; {_name_emulated_parts(plan)} emulated by nagi-link"
            + _describe_emulator(material)
            + notes["emulator"],
        ),
        *backend_rows,
        ("Machine", "; ".join(sorted(machines))),
        ("Kernel", "; ".join(sorted({f"Linux {node_facts.kernel}" for node_facts in facts}))),
        ("Programs", "; ".join(programs)),
        (
            "nagi",
            f"{campaign.build.version}, commit {campaign.build.commit or 'unknown'}, build "
            f"{campaign.build.id}",
        ),
        (
            "Hosts",
            f"profile {plan.host_profile}; {versions}; "
            f"{format_range(payloads, 'bytes')} of payload per segment"
            + (f"; windows capped at {format_range(windows, 'packets')}" if windows else ""),
        ),
        (
            "Measured",
            f"{plan.measure.end_s - plan.measure.start_s:g} s of each run, from "
            f"{plan.measure.start_s - plan.timeline.traffic_s:g} s after the traffic began"
            + ("; a transfer until it was complete" if material.has_transfers else ""),
        ),
        *_make_ebpf_rows(material),
        *((f"Flow {flow.name}", _describe_command(flow)) for flow in plan.flows if flow.command),
        *(
            (f"Flow {flow.name}", flow.application.describe())
            for flow in plan.flows
            if flow.application
        ),
        ("When", _format_period(_format_date(dates[0]), _format_date(dates[-1]))),
    ]
    return items


def _make_ebpf_rows(material: Material) -> list[tuple[str, str]]:
    """Return the row on schemes that are eBPF programs, with the ranges of their parameters.

    Return no row if no flow has such a scheme.
    """
    values: dict[str, dict[str, set[int]]] = {}
    for flow in (flow for plan in material.plans.values() for flow in plan.flows):
        for control, scheme_object in flow.objects().items():
            parameters = values.setdefault(control.removeprefix("nagi_"), {})
            for name, value in scheme_object.parameters.items():
                parameters.setdefault(name, set()).add(value)
    if not values:
        return []
    schemes = [
        " ".join(
            [
                scheme,
                *(
                    f"{name} {format_range(parameter_values, '').strip()}"
                    for name, parameter_values in parameters.items()
                ),
            ]
        )
        for scheme, parameters in values.items()
    ]
    return [("eBPF schemes", "; ".join(schemes))]


def _describe_command(flow: FlowPlan) -> str:
    """Return the commands of a flow with traffic `command`, and a note on the flow's ceiling."""
    assert flow.command is not None
    nodes = {"sender": (flow.sender, flow.receiver), "receiver": (flow.receiver, flow.sender)}
    server_node, client_node = nodes[flow.command.listens]
    programs = [(client_node, flow.command.client)]
    if flow.command.server is not None:
        programs.append((server_node, flow.command.server))
    commands = "; ".join(f"on {node} {shlex.join(line)}" for node, line in programs)
    return f"{commands}. The flow's ceiling is computed as for TCP segments"


def _describe_emulator(material: Material) -> str:
    """Return version, I/O and scheduling of the emulator, from the first run with links.json.

    In virtual time, return only the version. Return an empty text if no run has a links.json.
    """
    for run_id in material.plans:
        try:
            links = Links.read(material.run_directory(run_id) / "links.json")
        except InputError:
            continue
        if material.in_virtual_time:
            return f" {links.version}, in virtual time"
        ports = [port for link in links.links for port in (link.a, link.b)]
        ports += [station.port for medium in links.media for station in medium.stations]
        io = sorted({port.io for port in ports})
        pinned = "" if links.cpu_pinned is None else f", alone on processor {links.cpu_pinned}"
        return f" {links.version} ({', '.join(io)}; {links.scheduling}{pinned})"
    return ""


def _name_emulated_parts(plan: RunPlan) -> str:
    """Return a phrase that says whether the emulator carries links, media or both."""
    if not plan.media:
        return "every link"
    return "every link and medium" if plan.links else "every medium"


def _format_period(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"


def _format_date(realtime_s: float) -> str:
    return f"{datetime.fromtimestamp(realtime_s, UTC):%Y-%m-%d %H:%M} UTC"
