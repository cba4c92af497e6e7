# SPDX-License-Identifier: Apache-2.0
"""Plan runs: resolve all settings of a point, so that labs only execute the plan."""

from __future__ import annotations

from functools import partial
from typing import Any

from nagi_contracts.memo import Memo
from nagi_contracts.plan import (
    DIRECTIONS,
    ExperimentRef,
    Interval,
    LinkEnd,
    LinkPlan,
    RunPlan,
    SwitchTarget,
)

from nagi.plan.channels import Channels
from nagi.plan.directions import Directions
from nagi.plan.flows import Flows
from nagi.plan.nodes import Nodes
from nagi.plan.request import PlanRequest
from nagi.plan.seeds import derive_seed, encode_link_for_seed
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
    """Return one plan for each repeat of a point, in ascending order of the repeats.

    `run_id` and `point_id` are empty; RunPlan.with_ids() sets them.

    Args:
        point: The point of an experiment.
        variant: Name of the variant with which `point` was read; None if without a variant.
        repeats: Numbers of the repeats, from 0; None for all repeats of the point.
        switch: The program that runs the P4 pipelines of switches.
        memo: Results of calls for other points of the same experiment, variant and switch program,
            which this call extends; None shares no results.

    Raises:
        InputError: If the experiment cannot be run; the message names file, line and key.
    """
    request = PlanRequest(point, switch, memo or Memo())
    planners = request.planners
    channels = Channels(request)
    flows = Flows(request, channels)
    nodes = Nodes(request, flows)
    start_times = plan_start_times(request)
    directions = Directions(request, channels, flows.loads, start_times.traffic_s)
    for planner in planners:
        planner.require_fit(directions.plans)
    links = _plan_links(request, directions)
    # Link or medium -> IP bytes of the largest packet of its flows, or None.
    packets = {name: load.packet for name, load in flows.loads.items()}
    media = [
        medium
        for planner in planners
        for medium in planner.plan_media(start_times.traffic_s, packets)
    ]
    flow_plans = flows.plan_flows(start_times.traffic_s)
    timeline = plan_timeline(
        request,
        start_times,
        flows.find_max_rtt_ns() / 1e9,
        max(directions.find_max_queueing_s(), flows.find_max_medium_queueing_s(media)),
    )
    node_plans = nodes.plan_nodes(directions.plans, packets)
    captures = request.memo.get_or_make(
        flows.plan_captures, ("captures", nodes.settings), request.topology
    )
    # Seeds depend on links, media, and the settings of links that nodes such as switches apply.
    ignored_backends = planners.list_ignored_by_seed()
    channel_texts = [
        request.memo.get_or_make(
            partial(encode_link_for_seed, link, ignored_backends), "json", link
        )
        for link in links
    ]
    node_shares = []
    for planner in planners:
        channel_texts += planner.encode_media_for_seed(media)
        node_shares += planner.list_shares_for_seed(node_plans)
    experiment = request.experiment
    return [
        RunPlan(
            experiment=ExperimentRef(name=experiment.name, variant=variant),
            point=point.values,
            repeat=repeat,
            seed=derive_seed(experiment.seed, channel_texts, node_shares, repeat),
            host_profile=experiment.host_profile,
            switch_target=switch if planners.has_forwarders() else None,
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


def _plan_links(request: PlanRequest, directions: Directions) -> list[LinkPlan]:
    links = []
    for index, (name, link) in enumerate(request.experiment.links.items()):
        backend_fields = request.planners.get_link_fields(name)
        plan = request.memo.get_or_make(
            partial(_plan_link, request, directions, backend_fields, index, name),
            ("link", index, name),
            request.topology,
            link,
            *(directions.plans[name, direction] for direction in DIRECTIONS),
            *backend_fields.values(),
        )
        links.append(plan)
    return links


def _plan_link(
    request: PlanRequest,
    directions: Directions,
    backend_fields: dict[str, Any],
    index: int,
    name: str,
) -> LinkPlan:
    """Return the plan of a link; its directions have only the settings that the emulator applies.

    Args:
        request: The point that is planned.
        directions: The directions of all links.
        backend_fields: Fields of the plan, from the backend that carries the link.
        index: Number of the link.
        name: Name of the link.
    """
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
        forward=directions.get_emulator_plan(name, "forward"),
        backward=directions.get_emulator_plan(name, "backward"),
        mtu=None if link.mtu is None else link.mtu.value,
        **backend_fields,
    )
