# SPDX-License-Identifier: Apache-2.0
"""Converts nagi's plan of a chain into settings for chain.cpp (ns-3) and model_chain.cpp."""

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
THERMAL_DBM = 10 * math.log10(
    1.3803e-23 * 290 * 22e6 * 1e3
)  # thermal noise of 22 MHz at 290 K, with ns-3's constants
LONGEST_MPDU_BYTES = 2346  # in 802.11; an RTS threshold of this size disables RTS
# Linux adds at least this time to the smoothed RTT.
LINUX_MIN_RTO_MARGIN_NS = 200_000_000
LINUX_INITIAL_WINDOW = 10
BUFFER_PACKETS = 400  # size of socket buffers; more than a station's queue and the medium hold

# Changes of ns-3's settings, by name. They show the causes of differences between nagi and ns-3.
VARIANTS: dict[str, dict[str, Any]] = {
    "as nagi": {},
    "one retry limit": {"retry_limits": None},
    "window kept": {"retry_limits": {"short": 7, "long": 4, "resets_window": False}},
    "own errors": {"capture_db": None},
    "faster ACKs": {"has_basic_rate": False},
    "no delay": {"has_propagation_delay": False},
}


def make_settings(plan: RunPlan, variant: str = "as nagi") -> dict[str, Any]:
    """Return the settings of a run of chain.cpp.

    Args:
        plan: The plan of nagi's run.
        variant: A key of VARIANTS.

    Raises:
        InputError: ns-3 cannot run the plan.
    """
    (medium,) = plan.media
    changes = dict(VARIANTS[variant])
    reach = _make_reach(medium)
    if "capture_db" in changes:
        reach["capture_db"] = changes.pop("capture_db")
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
        **_make_traffic(plan),
        **changes,
    }


def make_model_settings(plan: RunPlan, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings for model_chain.cpp: those for ns-3, and nagi's plan of the medium."""
    (medium,) = plan.media
    medium_settings = medium.model_dump(mode="json", exclude={"name": True, "id": True})
    for station in medium_settings["stations"]:
        for key in ("node", "address", "mac"):
            del station[key]
    return settings | {"medium": _without_nulls(medium_settings)}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _make_reach(medium: MediumPlan) -> dict[str, Any]:
    if not isinstance(medium.reach, SinrReach) or medium.phy != "802.11b":
        raise refuse("ns-3 runs only 802.11b with `reach: {by: sinr}`", "use these")
    if medium.preamble != "long":
        raise refuse("ns-3 runs only with a long preamble", "remove `preamble`")
    positions = [station.position_m for station in medium.stations]
    assert positions[0] is not None and positions[1] is not None
    spacing = positions[1][0] - positions[0][0]
    if positions != [(index * spacing, 0.0) for index in range(len(positions))]:
        raise refuse("the stations are no chain", "place them at equal distances on x from [0, 0]")
    return {
        "spacing_m": spacing,
        "noise_figure_db": medium.reach.noise_dbm - THERMAL_DBM,
        **medium.reach.model_dump(exclude={"by"}),
    }


def _queue_packets(medium: MediumPlan) -> int:
    """Return the queue limit for ns-3, whose queue includes the packet in transmission."""
    if not isinstance(medium.queue, DropTailPlan) or medium.queue.packets is None:
        raise refuse("ns-3 cannot run this queue", "use drop-tail, in packets")
    return medium.queue.packets + 1


def _make_traffic(plan: RunPlan) -> dict[str, Any]:
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
