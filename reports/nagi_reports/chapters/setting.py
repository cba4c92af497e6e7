# SPDX-License-Identifier: Apache-2.0
"""The setup: topology, links, lab, machine, programs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from nagi_contracts.errors import InputError
from nagi_contracts.impairments.losses import LossPlan
from nagi_contracts.impairments.queues import name_disciplines
from nagi_contracts.links import Links
from nagi_contracts.media import MatrixReach, MediumPlan, RangeReach
from nagi_contracts.plan import (
    DIRECTIONS,
    DirectionPlan,
    FlowPlan,
    LinkDirection,
    RunPlan,
    SwitchTarget,
)
from nagi_contracts.switches import Switches
from nagi_contracts.units import count_of

from nagi_reports import figures
from nagi_reports.chapters import radios
from nagi_reports.chapters.material import Material
from nagi_reports.content import (
    Block,
    Column,
    Facts,
    Figure,
    Table,
)

_FEW = 4  # stations without links that the topology shows


def blocks(material: Material) -> list[Block]:
    links = _links(material) if material.plan.links else []
    return [*links, Facts(_facts(material))]


def _links(material: Material) -> list[Block]:
    """The topology drawn, and its links. Stations of media that have no link are in the drawings
    of media, unless they are few."""
    plan = material.plan
    plans = list(material.plans.values())
    linked = {end.node for link in plan.links for end in link.ends}
    alone = {each.node for medium in plan.media for each in medium.stations} - linked
    hidden = alone if len(alone) > _FEW else set()
    kinds = {node.name: node.kind for node in plan.nodes if node.name not in hidden}
    links = [
        figures.DrawnLink(
            (link.ends[0].node, link.ends[1].node),
            link.name,
            tuple(_short(plans, index)),
        )
        for index, link in enumerate(plan.links)
    ]
    attached = [
        figures.DrawnLink((medium.name, each.node), "", ())
        for medium in plan.media
        for each in medium.stations
        if each.node not in hidden
    ]
    media: dict[str, str] = dict.fromkeys((medium.name for medium in plan.media), "medium")
    first = plan.flows[0].sender
    drawn = figures.topology(
        kinds | media, [*links, *attached], first if first in kinds else plan.links[0].ends[0].node
    )
    flows = material.flows_in_words()
    chain = ", ".join(
        f"{a} and {b} joined by {link.name}" for link in links for a, b in [link.ends]
    )
    rows = []
    for link in plan.links:
        directions: dict[str, LinkDirection] = {
            direction: LinkDirection(link=link.name, direction=direction)
            for direction in DIRECTIONS
        }
        forward, backward = directions.values()
        both = all(
            p.channel(forward) == p.channel(backward)
            and p.switch_share(forward) is None
            and p.switch_share(backward) is None
            for p in plans
        )
        for name in ("both ways",) if both else DIRECTIONS:
            direction = directions.get(name, forward)
            by_switch = "; shaped by the switch" if plan.switch_share(direction) is not None else ""
            rate, *others = _in_words([p.channel(direction) for p in plans])
            rows.append(
                [
                    link.name,
                    _arrow(link.ends[0].node, link.ends[1].node, name),
                    rate + by_switch,
                    *others,
                ]
            )
    round_boxes = "routers and switches" if plan.switches() else "routers"
    shared = ""
    if plan.media:
        shared = ", dashed boxes shared media"
        chain += "".join(f", {_attached(medium)}" for medium in plan.media)
    if hidden:
        shared += f" ({count_of(len(hidden), 'station')} without links left out)"
    return [
        Figure(
            "topology",
            figures.svg(drawn),
            f"The topology: squares are hosts, round boxes {round_boxes}{shared}. Flows: {flows}.",
            f"Diagram of the topology: {chain}. Flows: {flows}.",
        ),
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
            rows,
            small=True,
        ),
    ]


def _attached(medium: MediumPlan) -> str:
    nodes = [each.node for each in medium.stations]
    return f"{', '.join(nodes[:-1])} and {nodes[-1]} on {medium.name}"


def _arrow(one: str, other: str, direction: str) -> str:
    return {"forward": f"{one} → {other}", "backward": f"{other} → {one}"}.get(
        direction, f"{one} ↔ {other}"
    )


def _short(plans: list[RunPlan], index: int) -> Iterator[str]:
    """Rate and delay of a link, for the diagram."""
    direction = LinkDirection(link=plans[0].links[index].name, direction="forward")
    forward = [plan.channel(direction) for plan in plans]
    rate = _rates(forward)
    if rate != "not limited":
        yield rate
    yield _delays(forward)


def _in_words(directions: list[DirectionPlan]) -> list[str]:
    queues = [direction.queue for direction in directions]
    counts = [queue.packets for queue in queues if queue and queue.packets is not None]
    sizes = [queue.bytes for queue in queues if queue and queue.bytes is not None]
    waits = [_range(counts, "packets"), _range(sizes, "bytes")]
    if any(queue is None for queue in queues):
        waits.append("no limit")
    marks = "; marks CE" if any(direction.mark for direction in directions) else ""
    rate = _rates(directions)
    overheads = {direction.overhead_bytes for direction in directions} - {0}
    if overheads:
        rate += f", framing {_range(list(overheads), 'bytes')}"
    return [
        rate,
        _delays(directions),
        " or ".join(each for each in waits if each) + name_disciplines(queues) + marks,
        _losses([direction.loss for direction in directions])
        + _effects(directions)
        + _repeats(directions),
    ]


def _effects(directions: list[DirectionPlan]) -> str:
    """What else happens to packets on the way."""
    found = dict.fromkeys(effect.describe() for each in directions for effect in each.effects)
    return "".join(f"; {words}" for words in found)


def _repeats(directions: list[DirectionPlan]) -> str:
    """What the link does itself about losses."""
    retries = [0 if each.arq is None else each.arq.retries for each in directions]
    if not any(retries):
        return ""
    return f"; link-layer ARQ, up to {_range(retries, 'retries')}"


def _rates(directions: list[DirectionPlan]) -> str:
    rates = [rate / 1e6 for each in directions if (rate := each.mean_rate_bps) is not None]
    if not rates:
        return "not limited"
    trace = any(each.rate_trace is not None for each in directions)
    bursts = [each.burst_bytes for each in directions if each.burst_bytes is not None]
    return (
        _range(rates, "Mb/s")
        + (" (mean of a trace)" if trace else "")
        + (f" (token bucket of {_range(bursts, 'bytes')})" if bursts else "")
    )


def _delays(directions: list[DirectionPlan]) -> str:
    delays = [each.min_delay_ns / 1e6 for each in directions]
    delays += [each.max_delay_ns / 1e6 for each in directions]
    jitter = {each.jitter.distribution for each in directions if each.jitter}
    return _range(delays, "ms") + (f", {' or '.join(sorted(jitter))} jitter" if jitter else "")


def _range(values: Iterable[float], unit: str) -> str:
    known = sorted(values)
    if not known:
        return ""
    if known[0] == known[-1]:
        return f"{_plain(known[0])} {unit}"
    return f"{_plain(known[0])} to {_plain(known[-1])} {unit}"


def _plain(value: float) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"


def _losses(losses: list[LossPlan]) -> str:
    found = list(dict.fromkeys(_loss(loss) for loss in losses))
    if len(found) > 4:
        return f"{found[0]} to {found[-1]} ({len(found)} settings)"
    return "; ".join(found)


def _loss(loss: LossPlan) -> str:
    words = loss.describe()
    return words + (" (before the queue)" if loss.at == "ingress" and words != "none" else "")


def _facts(material: Material) -> list[tuple[str, str]]:
    campaign, plan = material.campaign, material.plan
    facts = [node.facts for each in material.manifests.values() for node in each.nodes.values()]
    programs = sorted({version for each in facts for version in each.programs.values()})
    machines = {f"{each.machine}, {count_of(each.processors, 'processor')}" for each in facts}
    dates = sorted(each.date_s for each in material.manifests.values())
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
            f"{campaign.lab}; {_carried(plan)} emulated by nagi-link{_emulator(material)}"
            + (", which nagi-sdr runs for radios" if plan.radios() else ""),
        ),
        *_switches(material),
        *_radios(material),
        *_media(material),
        ("Machine", "; ".join(sorted(machines))),
        ("Kernel", "; ".join(sorted({f"Linux {each.kernel}" for each in facts}))),
        ("Programs", "; ".join(programs)),
        (
            "nagi",
            f"{campaign.build.version}, commit {campaign.build.commit or 'unknown'}, build "
            f"{campaign.build.id}",
        ),
        (
            "Hosts",
            f"profile {plan.host_profile}; {versions}; "
            f"{_range(payloads, 'bytes')} of payload a segment"
            + (f"; windows capped at {_range(windows, 'packets')}" if windows else ""),
        ),
        (
            "Measured",
            f"{plan.measure.end_s - plan.measure.start_s:g} s of each run, from "
            f"{plan.measure.start_s - plan.timeline.traffic_s:g} s after the traffic began"
            + ("; a transfer until it was complete" if material.has_transfers else ""),
        ),
        *_programs(material),
        *((f"Flow {flow.name}", _command(flow)) for flow in plan.flows if flow.command),
        *(
            (f"Flow {flow.name}", flow.application.describe())
            for flow in plan.flows
            if flow.application
        ),
        ("When", _period(_when(dates[0]), _when(dates[-1]))),
    ]
    return items


def _programs(material: Material) -> list[tuple[str, str]]:
    """The schemes that are eBPF programs, with their parameters over all runs."""
    values: dict[str, dict[str, set[int]]] = {}
    for flow in (flow for plan in material.plans.values() for flow in plan.flows):
        for control, scheme_object in flow.objects().items():
            mine = values.setdefault(control.removeprefix("nagi_"), {})
            for name, value in scheme_object.parameters.items():
                mine.setdefault(name, set()).add(value)
    if not values:
        return []
    schemes = [
        " ".join([scheme, *(f"{name} {_range(given, '').strip()}" for name, given in mine.items())])
        for scheme, mine in values.items()
    ]
    return [("eBPF schemes", "; ".join(schemes))]


def _command(flow: FlowPlan) -> str:
    """Whose traffic a flow of traffic `command` is, as the first run has it."""
    assert flow.command is not None
    ends = {"sender": (flow.sender, flow.receiver), "receiver": (flow.receiver, flow.sender)}
    listener, other = ends[flow.command.listens]
    programs = [(other, flow.command.client)]
    if flow.command.server is not None:
        programs.append((listener, flow.command.server))
    said = "; ".join(f"on {node} {shlex.join(line)}" for node, line in programs)
    return f"{said}. The ceiling is TCP's"


def _emulator(material: Material) -> str:
    for run_id in material.plans:
        try:
            links = Links.read(material.directory(run_id) / "links.json")
        except InputError:
            continue
        if material.in_virtual_time:
            return f" {links.version}, in virtual time"
        ports = [port for link in links.links for port in (link.a, link.b)]
        ports += [station.port for medium in links.media for station in medium.stations]
        io = sorted({port.io for port in ports})
        pinned = "" if links.cpu_pinned is None else f", processor {links.cpu_pinned} to itself"
        return f" {links.version} ({', '.join(io)}; {links.scheduling}{pinned})"
    return ""


_SWITCHES: dict[SwitchTarget, str] = {
    "nagi": "on nagi-switch",
    "bmv2": "on bmv2's simple_switch",
    "p4runtime": "by P4Runtime on",
}


def _switches(material: Material) -> list[tuple[str, str]]:
    """What ran on nodes that are switches, and what that could not do as asked."""
    for run_id, plan in material.plans.items():
        if not plan.switches():
            return []
        try:
            found = Switches.read(material.directory(run_id) / "switches.json").switches
        except InputError:
            continue
        said = []
        for switch in found:
            program = _SWITCHES[switch.target]
            timed = switch.scheduling and not material.in_virtual_time
            how = f" ({switch.scheduling})" if timed else ""
            notes = "".join(f"; {notice}" for notice in switch.notices)
            planned = plan.node(switch.node).switch
            own = None if planned is None else planned.own
            pipeline = "edge.p4" if own is None else own.name
            said.append(f"{switch.node}: {pipeline} {program} {switch.version}{how}{notes}")
        return [("Switches", ". ".join(said))]
    return []


def _radios(material: Material) -> list[tuple[str, str]]:
    """What radios are, and what their channels do, over all runs."""
    said: dict[str, None] = {}
    for plan in material.plans.values():
        for link in plan.radios():
            radio = link.radio
            assert radio is not None
            words = [f"{link.name}: {radio.by}, {radios.radio_in_words(radio)}"]
            for direction in DIRECTIONS:
                beside = radios.direction_in_words(radio, direction)
                if beside:
                    words.append(f"{direction} {beside}")
            said["; ".join(words)] = None
    return [("Radios", ". ".join(said))] if said else []


def _carried(plan: RunPlan) -> str:
    """What the emulator has to do."""
    if not plan.media:
        return "every link"
    return "every link and medium" if plan.links else "every medium"


def _media(material: Material) -> list[tuple[str, str]]:
    """What media are, over all runs."""
    by_name: dict[str, list[MediumPlan]] = {}
    for plan in material.plans.values():
        for medium in plan.media:
            by_name.setdefault(medium.name, []).append(medium)
    said = [". ".join([_medium(each), *_reach(each)]) for each in by_name.values()]
    return [("Shared media", ". ".join(said))] if said else []


def _medium(plans: list[MediumPlan]) -> str:
    """PHY and MAC of a medium, over all runs."""
    first = plans[0]
    stations = _range({len(each.stations) for each in plans}, "stations")
    words = [" or ".join(dict.fromkeys(each.phy for each in plans))]
    if preambles := dict.fromkeys(each.preamble for each in plans if each.preamble is not None):
        words.append(f"{' or '.join(preambles)} preamble")
    words.append(f"data at {_range([each.data_rate_bps / 1e6 for each in plans], 'Mb/s')}")
    words.append(
        "control frames and broadcasts at "
        f"{_range([each.basic_rate_bps / 1e6 for each in plans], 'Mb/s')}"
    )
    longer = [each.rts_threshold_bytes for each in plans if each.rts_threshold_bytes is not None]
    if not longer:
        words.append("no RTS and CTS")
    elif len(longer) == len(plans) and not any(longer):
        words.append("RTS and CTS before every packet")
    else:
        without = "" if len(longer) == len(plans) else " in some runs"
        words.append(f"RTS and CTS before MPDUs longer than {_range(longer, 'bytes')}{without}")
    words.append(
        f"retry limits {_range({each.short_retry_limit for each in plans}, '').strip()} (short) "
        f"and {_range({each.long_retry_limit for each in plans}, '').strip()} (long)"
    )
    words.append(
        f"CW from {_range({each.cw_min for each in plans}, '').strip()} "
        f"to {_range({each.cw_max for each in plans}, '').strip()}"
    )
    waits = _in_words([DirectionPlan(queue=each.queue, loss=each.loss) for each in plans])[2:]
    words.append(f"queue of {waits[0]} at each station")
    if waits[1] != "none":
        words.append(f"frames lost: {waits[1]}")
    if not first.resets_nav:
        words.append("a NAV set by an RTS is not reset")
    if first.eifs_after == "signals":
        words.append("EIFS also after what was only sensed")
    return f"{first.name}: {stations}, {'; '.join(words)}"


def _reach(plans: list[MediumPlan]) -> list[str]:
    """Who hears whom on a medium, over all runs."""
    said: dict[str, None] = {}
    for reach in (each.reach for each in plans):
        if isinstance(reach, RangeReach):
            capture = "" if reach.capture_db is None else f", capture {reach.capture_db:g} dB"
            words = (
                f"Ranges: transmission {reach.transmission_m:g} m, carrier sense "
                f"{reach.carrier_sense_m:g} m, interference {reach.interference_m:g} m{capture}"
            )
        elif isinstance(reach, MatrixReach):
            words = "Who hears whom is given as a matrix"
        else:
            words = (
                f"Reach by SINR: {reach.tx_power_dbm:g} dBm sent, path loss exponent "
                f"{reach.path_loss_exponent:g} with {reach.reference_loss_db:g} dB at 1 m, noise "
                f"{reach.noise_dbm:g} dBm, sensitivity {reach.sensitivity_dbm:g} dBm, carrier "
                f"sense {reach.carrier_sense_dbm:g} dBm, capture {reach.capture_db:g} dB"
            )
        said[words] = None
    return list(said)


def _period(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"


def _when(realtime_s: float) -> str:
    return f"{datetime.fromtimestamp(realtime_s, UTC):%Y-%m-%d %H:%M} UTC"
