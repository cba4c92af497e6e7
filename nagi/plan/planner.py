# SPDX-License-Identifier: Apache-2.0
"""From a point of an experiment to run plans: everything resolved, nothing left to the lab."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import Any

from nagi_contracts.media import MediumPlan
from nagi_contracts.memo import Memo
from nagi_contracts.plan import (
    DIRECTIONS,
    ExperimentRef,
    FpgaPlan,
    Interval,
    LinkEnd,
    LinkPlan,
    NodePlan,
    RadioPlan,
    RunPlan,
    SwitchTarget,
)

from nagi.plan.channels import Channels
from nagi.plan.directions import Directions
from nagi.plan.flows import Flows
from nagi.plan.fpga_links import FpgaLinks
from nagi.plan.ip import IPV4
from nagi.plan.media import media_plans
from nagi.plan.nodes import Nodes
from nagi.plan.radio_links import RadioLinks
from nagi.plan.request import PlanRequest
from nagi.plan.timeline import rounded, timeline, traffic_begins
from nagi.spec.points import Point

TCP_INFO_INTERVAL = 0.1


def plan_runs(
    point: Point,
    variant: str | None,
    repeats: range | None = None,
    switch: SwitchTarget = "nagi",
    memo: Memo | None = None,
) -> list[RunPlan]:
    """One plan for every repeat of `point` (None: as many as the experiment says), without ids.
    `switch`: the program that switches run. `memo`: what other points of the same experiment share
    with this one, of the same `variant` and `switch`.

    Raises InputError.
    """
    request = PlanRequest(point, switch, memo or Memo())
    radios = RadioLinks(request)
    fpgas = FpgaLinks(request)
    channels = Channels(request, radios)
    flows = Flows(request, channels)
    nodes = Nodes(request, flows)
    begins = traffic_begins(request, radios.plans)
    directions = Directions(request, radios, channels, flows.crossings, begins.traffic_s)
    fpgas.require_fit(directions)
    links = _links(request, directions, radios.plans, fpgas.plans)
    packets = {name: flows.crossings[name].packet for name in request.experiment.media}
    media = media_plans(request, channels.media, begins.traffic_s, packets)
    flow_plans = flows.plans(begins.traffic_s)
    phases = timeline(
        request,
        begins,
        flows.longest_rtt_ns() / 1e9,
        max(directions.longest_queueing_s(), flows.longest_on_media_s(media)),
        has_radios=bool(radios.plans),
    )
    node_plans = nodes.plans(directions)
    captures = request.memo.of(flows.captures, ("captures", nodes.settings), request.topology)
    imposed = _imposed_by_switches(node_plans)
    texts = [request.memo.of(partial(_json_of, link), "json", link) for link in links]
    texts += [
        request.memo.of(partial(_json_of_medium, index, each), ("json", index), each)
        for index, each in enumerate(media)
    ]
    experiment = request.experiment
    return [
        RunPlan(
            experiment=ExperimentRef(name=experiment.name, variant=variant),
            point=point.values,
            repeat=repeat,
            seed=_seed(experiment.seed, texts, imposed, repeat),
            host_profile=experiment.host_profile,
            switch_target=switch if request.has_switches else None,
            nodes=node_plans,
            links=links,
            media=media,
            flows=flow_plans,
            captures=captures,
            tcp_info_interval_s=TCP_INFO_INTERVAL,
            timeline=phases,
            measure=Interval(
                start_s=rounded(phases.traffic_s + experiment.warmup.seconds),
                end_s=phases.traffic_end_s,
            ),
        )
        for repeat in (range(experiment.repeats) if repeats is None else repeats)
    ]


def _links(
    request: PlanRequest,
    directions: Directions,
    radios: dict[str, RadioPlan],
    fpgas: dict[str, FpgaPlan],
) -> list[LinkPlan]:
    return [
        request.memo.of(
            partial(_link, request, directions, (radios.get(name), fpgas.get(name)), index, name),
            ("link", index, name),
            request.topology,
            link,
            *(directions.plans[name, direction] for direction in DIRECTIONS),
        )
        for index, (name, link) in enumerate(request.experiment.links.items())
    ]


def _link(
    request: PlanRequest,
    directions: Directions,
    emulator: tuple[RadioPlan | None, FpgaPlan | None],
    index: int,
    name: str,
) -> LinkPlan:
    radio, fpga = emulator
    link = request.experiment.links[name]
    first, second = (
        LinkEnd(node=node, address=f"{end.address}/{end.prefix}")
        for node in link.between
        for end in [request.topology.attachment(name, node)]
    )
    return LinkPlan(
        name=name,
        id=index,
        ends=(first, second),
        forward=directions.part_of_emulator(name, "forward"),
        backward=directions.part_of_emulator(name, "backward"),
        radio=radio,
        fpga=fpga,
        mtu=None if link.mtu is None else link.mtu.value,
    )


def _imposed_by_switches(nodes: list[NodePlan]) -> list[Any]:
    """What switches do to links, as JSON."""
    found = []
    for node in nodes:
        for port in node.switch.ports if node.switch else ():
            if port.imposes is None:
                continue
            written = port.model_dump(mode="json", include={"link", "imposes"})
            _restore_first_form(written["imposes"])
            found.append([node.name, written])
    return found


def _json_of(link: LinkPlan) -> str:
    """For seeds: with IPv4's addresses, so that both versions of IP meet the same channel, and
    without what carries it, so that an FPGA and nagi-link do."""
    written = link.model_dump(mode="json", exclude={"fpga"})
    for place, end in enumerate(written["ends"], start=1):
        end["address"] = f"{IPV4.link_address(link.id, place)}/{IPV4.link_prefix}"
    for direction in DIRECTIONS:
        _restore_first_form(written[direction])
    return json.dumps(written, sort_keys=True)


def _json_of_medium(index: int, medium: MediumPlan) -> str:
    """The same of a medium; `index`: among media."""
    written = medium.model_dump(mode="json")
    for place, station in enumerate(written["stations"], start=1):
        station["address"] = f"{IPV4.medium_address(index, place)}/{IPV4.medium_prefix}"
    return json.dumps(written, sort_keys=True)


def _restore_first_form(direction: dict[str, Any]) -> None:
    """Directions as version 0.1 wrote them, for seeds are hashes of that: what was seeded then is
    seeded alike now."""
    loss, jitter, mark = direction["loss"], direction.get("jitter"), direction.get("mark")
    for key in ("probability", "packet_loss_rate", "packet_bytes"):
        loss.setdefault(key, None)
    if jitter is not None:
        for key in ("half_width_ns", "deviation_ns", "mean_ns"):
            jitter.setdefault(key, None)
    if mark is not None:
        del mark["packet_bytes"]


def _seed(campaign_seed: int, links: list[str], imposed: list[Any], repeat: int) -> int:
    """From campaign, links and media (as JSON, and what switches impose on links) and repeat
    alone: schemes meet the same channel, repeats another one."""
    parts = [str(campaign_seed), f"[{', '.join(links)}]", str(repeat)]
    if imposed:
        parts.append(json.dumps(imposed, sort_keys=True))
    text = f"[{', '.join(parts)}]"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1  # fits an int64
