# SPDX-License-Identifier: Apache-2.0
"""Plan runs: resolve a point of an experiment completely, so that labs decide nothing."""

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
from nagi.plan.media import plan_media
from nagi.plan.nodes import Nodes
from nagi.plan.radio_links import RadioLinks
from nagi.plan.request import PlanRequest
from nagi.plan.timeline import plan_start_times, plan_timeline, round_to_us
from nagi.spec.points import Point

TCP_INFO_INTERVAL = 0.1


def plan_runs(
    point: Point,
    variant: str | None,
    repeats: range | None = None,
    switch: SwitchTarget = "nagi",
    memo: Memo | None = None,
) -> list[RunPlan]:
    """Return one plan for each repeat of a point, without ids.

    Args:
        point: The point of an experiment.
        variant: Name of the experiment's variant, or None.
        repeats: Numbers of the repeats; None stands for all that the experiment asks for.
        switch: The program that switches run.
        memo: Values that other points of the same experiment, variant and switch share with this
            point.

    Raises:
        InputError: If the experiment cannot be run so; names file, line and key.
    """
    request = PlanRequest(point, switch, memo or Memo())
    radios = RadioLinks(request)
    fpgas = FpgaLinks(request)
    channels = Channels(request, radios)
    flows = Flows(request, channels)
    nodes = Nodes(request, flows)
    start_times = plan_start_times(request, radios.plans)
    directions = Directions(request, radios, channels, flows.loads, start_times.traffic_s)
    fpgas.require_fit(directions)
    links = _plan_links(request, directions, radios.plans, fpgas.plans)
    packets = {name: flows.loads[name].packet for name in request.experiment.shared_media}
    media = plan_media(request, channels.media, start_times.traffic_s, packets)
    flow_plans = flows.plan_flows(start_times.traffic_s)
    timeline = plan_timeline(
        request,
        start_times,
        flows.find_max_rtt_ns() / 1e9,
        max(directions.find_max_queueing_s(), flows.find_max_airtime_s(media)),
        has_radios=bool(radios.plans),
    )
    node_plans = nodes.plan_nodes(directions)
    captures = request.memo.get_or_make(
        flows.plan_captures, ("captures", nodes.settings), request.topology
    )
    switch_shares = _list_switch_shares(node_plans)
    channel_texts = [
        request.memo.get_or_make(partial(_write_link_for_seed, link), "json", link)
        for link in links
    ]
    channel_texts += [
        request.memo.get_or_make(
            partial(_write_medium_for_seed, index, medium), ("json", index), medium
        )
        for index, medium in enumerate(media)
    ]
    experiment = request.experiment
    return [
        RunPlan(
            experiment=ExperimentRef(name=experiment.name, variant=variant),
            point=point.values,
            repeat=repeat,
            seed=_derive_seed(experiment.seed, channel_texts, switch_shares, repeat),
            host_profile=experiment.host_profile,
            switch_target=switch if request.has_switches else None,
            nodes=node_plans,
            links=links,
            media=media,
            flows=flow_plans,
            captures=captures,
            tcp_info_interval_s=TCP_INFO_INTERVAL,
            timeline=timeline,
            measure=Interval(
                start_s=round_to_us(timeline.traffic_s + experiment.warmup.seconds),
                end_s=timeline.traffic_end_s,
            ),
        )
        for repeat in (range(experiment.repeats) if repeats is None else repeats)
    ]


def _plan_links(
    request: PlanRequest,
    directions: Directions,
    radios: dict[str, RadioPlan],
    fpgas: dict[str, FpgaPlan],
) -> list[LinkPlan]:
    """Return the plans of all links; `radios` and `fpgas` carry some of them."""
    return [
        request.memo.get_or_make(
            partial(
                _plan_link, request, directions, (radios.get(name), fpgas.get(name)), index, name
            ),
            ("link", index, name),
            request.topology,
            link,
            *(directions.plans[name, direction] for direction in DIRECTIONS),
        )
        for index, (name, link) in enumerate(request.experiment.links.items())
    ]


def _plan_link(
    request: PlanRequest,
    directions: Directions,
    emulator: tuple[RadioPlan | None, FpgaPlan | None],
    index: int,
    name: str,
) -> LinkPlan:
    """Return the plan of a link with the share of its directions that the emulator shapes."""
    radio, fpga = emulator
    link = request.experiment.links[name]
    first, second = (
        LinkEnd(node=node, address=f"{end.address}/{end.prefix}")
        for node in link.between
        for end in [request.topology.get_attachment(name, node)]
    )
    return LinkPlan(
        name=name,
        id=index,
        ends=(first, second),
        forward=directions.plan_emulator_share(name, "forward"),
        backward=directions.plan_emulator_share(name, "backward"),
        radio=radio,
        fpga=fpga,
        mtu=None if link.mtu is None else link.mtu.value,
    )


def _list_switch_shares(nodes: list[NodePlan]) -> list[Any]:
    """Return the shares of directions that switches shape, as JSON for seeds."""
    shares = []
    for node in nodes:
        for port in node.switch.ports if node.switch else ():
            if port.imposes is None:
                continue
            share = port.model_dump(mode="json", include={"link", "imposes"})
            _restore_format_0_1(share["imposes"])
            shares.append([node.name, share])
    return shares


def _write_link_for_seed(link: LinkPlan) -> str:
    """Return a link as JSON, from which seeds are derived.

    Addresses are IPv4's, so that both versions of IP get the same channel. The FPGA is left out, so
    that an FPGA and nagi-link get the same channel.
    """
    document = link.model_dump(mode="json", exclude={"fpga"})
    for index, end in enumerate(document["ends"], start=1):
        end["address"] = f"{IPV4.format_link_address(link.id, index)}/{IPV4.link_prefix}"
    for direction in DIRECTIONS:
        _restore_format_0_1(document[direction])
    return json.dumps(document, sort_keys=True)


def _write_medium_for_seed(index: int, medium: MediumPlan) -> str:
    """Return a medium as JSON, from which seeds are derived; `index` is its number among media."""
    document = medium.model_dump(mode="json")
    for position, station in enumerate(document["stations"], start=1):
        station["address"] = f"{IPV4.format_medium_address(index, position)}/{IPV4.medium_prefix}"
    return json.dumps(document, sort_keys=True)


def _restore_format_0_1(direction: dict[str, Any]) -> None:
    """Bring a direction into the format of version 0.1.

    Seeds are hashes of that format, so that a campaign keeps its seeds with later versions.
    """
    loss, jitter, mark = direction["loss"], direction.get("jitter"), direction.get("mark")
    for key in ("probability", "packet_loss_rate", "packet_bytes"):
        loss.setdefault(key, None)
    if jitter is not None:
        for key in ("half_width_ns", "deviation_ns", "mean_ns"):
            jitter.setdefault(key, None)
    if mark is not None:
        del mark["packet_bytes"]


def _derive_seed(
    campaign_seed: int, channels: list[str], switch_shares: list[Any], repeat: int
) -> int:
    """Derive the seed of a run from its campaign, channel and repeat alone.

    Schemes therefore get the same channel, and repeats get different ones.

    Args:
        campaign_seed: The seed of the experiment file.
        channels: Links and media, as JSON.
        switch_shares: The shares of directions that switches shape.
        repeat: Number of the repeat.

    Returns:
        A seed of 63 bits.
    """
    inputs = [str(campaign_seed), f"[{', '.join(channels)}]", str(repeat)]
    if switch_shares:
        inputs.append(json.dumps(switch_shares, sort_keys=True))
    text = f"[{', '.join(inputs)}]"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1  # fits an int64
