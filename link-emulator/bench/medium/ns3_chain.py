# SPDX-License-Identifier: Apache-2.0
"""nagi's plan of a chain as settings for chain.cpp, which runs ns-3, and for model_chain.cpp."""

from __future__ import annotations

import math
from typing import Any

from nagi_contracts.errors import refuse
from nagi_contracts.impairments.queues.drop_tail import DropTailPlan
from nagi_contracts.media import MediumPlan, SinrReach
from nagi_contracts.plan import RunPlan

MODULES = (
    "core", "network", "internet", "mobility", "propagation", "wifi", "applications",
    "traffic-control",
)  # fmt: skip
MODES = {
    1_000_000: "DsssRate1Mbps",
    2_000_000: "DsssRate2Mbps",
    5_500_000: "DsssRate5_5Mbps",
    11_000_000: "DsssRate11Mbps",
}
THERMAL_DBM = 10 * math.log10(1.3803e-23 * 290 * 22e6 * 1e3)  # of 22 MHz at 290 K, as ns-3 has it
LONGEST_MPDU_BYTES = 2346  # of 802.11: with a threshold as large there is no RTS
# Linux adds so much at least to the smoothed RTT.
LINUX_MIN_RTO_MARGIN_NS = 200_000_000
LINUX_INITIAL_WINDOW = 10
BUFFER_PACKETS = 400  # of sockets: more than a station's queue and the air hold

# What can be changed in ns-3, to see what it is to blame for.
VARIANTS: dict[str, dict[str, Any]] = {
    "as nagi": {},
    "one retry limit": {"retry_limits": None},
    "window kept": {"retry_limits": {"short": 7, "long": 4, "resets_window": False}},
    "own errors": {"capture_db": None},
    "faster ACKs": {"has_basic_rate": False},
    "no delay": {"has_propagation_delay": False},
}


def settings_of(plan: RunPlan, variant: str = "as nagi") -> dict[str, Any]:
    """What chain.cpp is to do. Raises InputError if ns-3 cannot do the same."""
    (medium,) = plan.media
    changed = dict(VARIANTS[variant])
    reach = _reach(medium)
    if "capture_db" in changed:
        reach["capture_db"] = changed.pop("capture_db")
    threshold = medium.rts_threshold_bytes
    return {
        "seed": 1 + plan.seed % 1_000_000_007,
        "hops": len(medium.stations) - 1,
        "queue_packets": _queue_packets(medium),
        "warmup_ns": round((plan.measure.start_s - plan.flows[0].start_s) * 1e9),
        "duration_ns": round((plan.flows[0].end_s - plan.flows[0].start_s) * 1e9),
        "has_propagation_delay": True,
        "has_basic_rate": True,
        "data_mode": MODES[medium.data_rate_bps],
        "control_mode": MODES[medium.basic_rate_bps],
        "uses_rts": threshold is not None and threshold < LONGEST_MPDU_BYTES,
        "retry_limits": {
            "short": medium.short_retry_limit,
            "long": medium.long_retry_limit,
            "resets_window": True,
        },
        "reach": reach,
        **_traffic(plan),
        **changed,
    }


def model_settings_of(plan: RunPlan, settings: dict[str, Any]) -> dict[str, Any]:
    """The same for model_chain.cpp, which takes nagi's own medium."""
    (medium,) = plan.media
    given = medium.model_dump(mode="json", exclude={"name": True, "id": True})
    for station in given["stations"]:
        for key in ("node", "address", "mac"):
            del station[key]
    return settings | {"medium": _without_nulls(given)}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _reach(medium: MediumPlan) -> dict[str, Any]:
    if not isinstance(medium.reach, SinrReach) or medium.phy != "802.11b":
        raise refuse("ns-3 is asked for 802.11b and reach by sinr only", "give these")
    if medium.preamble != "long":
        raise refuse("ns-3 is asked for a long preamble", "remove `preamble`")
    places = [station.position_m for station in medium.stations]
    assert places[0] is not None and places[1] is not None
    spacing = places[1][0] - places[0][0]
    if places != [(index * spacing, 0.0) for index in range(len(places))]:
        raise refuse("the stations are no chain", "give them one distance, along x, from [0, 0]")
    return {
        "spacing_m": spacing,
        "noise_figure_db": medium.reach.noise_dbm - THERMAL_DBM,
        **medium.reach.model_dump(exclude={"by"}),
    }


def _queue_packets(medium: MediumPlan) -> int:
    """ns-3 counts the packet that is being sent among those that wait; nagi does not."""
    if not isinstance(medium.queue, DropTailPlan) or medium.queue.packets is None:
        raise refuse("ns-3 would have another queue", "use drop-tail, in packets")
    return medium.queue.packets + 1


def _traffic(plan: RunPlan) -> dict[str, Any]:
    (flow,) = plan.flows
    if flow.traffic == "bulk":
        sysctls = plan.node(flow.sender).sysctls
        assert flow.scheme == "newreno" and sysctls["net.ipv4.tcp_timestamps"] == "1"
        route = next(route for route in plan.node(flow.sender).routes if route.advmss is not None)
        quickack = any(route.quickack for route in plan.node(flow.receiver).routes)
        return {
            "tcp": {
                "segment_bytes": flow.payload_bytes,
                "initial_window": route.initcwnd or LINUX_INITIAL_WINDOW,
                "segments_an_ack": 1 if quickack else 2,
                "receive_buffer_bytes": (flow.max_window or BUFFER_PACKETS) * flow.payload_bytes,
                "min_rto_margin_ns": LINUX_MIN_RTO_MARGIN_NS,
            }
        }
    application = flow.application
    assert application is not None and application.application == "cbr"
    share = application.payload_bytes / (application.payload_bytes + 28)
    return {
        "udp": {
            "payload_bytes": application.payload_bytes,
            "payload_bps": round(application.rate_bps * share),
        }
    }
