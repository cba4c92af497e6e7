# SPDX-License-Identifier: Apache-2.0
"""Plan the times at which the phases of a run begin and end."""

from __future__ import annotations

from typing import NamedTuple

from nagi_contracts.plan import Timeline

from nagi.plan.request import PlanRequest

# Time that agents have for each phase, in seconds. Backends may add time before the start and after
# the end of captures. From the start of the run to the start of captures:
SETUP_S = 0.25  # configuration of nodes, and start of an emulator with two links
SETUP_PER_LINK_S = 0.2  # interfaces of a further link in the emulator, or of two stations
# From the start of captures to the start of servers, and from there to the start of clients:
CAPTURE_START_S = 0.15
SERVER_START_S = 0.3
COMMAND_SERVER_START_S = 2.0  # for users' servers, whose start may take longer
# From the end of the traffic to the end of the run:
DRAIN_S = 0.1  # margin, in addition to the RTT and the time in which queues empty
FLUSH_S = 1.05  # tcpdump reads a packet within a second (the kernel's block timeout, packet(7))
FINISH_S = 0.3


def round_to_us(seconds: float) -> float:
    """Round a time in seconds to whole microseconds, the resolution of plans."""
    return round(seconds, 6)


class StartTimes(NamedTuple):
    """The times at which phases begin, in seconds since the start of the run."""

    capture_s: float
    serve_s: float
    traffic_s: float


def plan_start_times(request: PlanRequest) -> StartTimes:
    """Return the times at which captures, servers and traffic begin.

    The time for the setup grows with the numbers of links and stations, and with the time that
    backends need.
    """
    has_commands = any(flow.server is not None for _, flow in request.list_flows())
    stations = sum(len(medium.stations) for medium in request.experiment.shared_media.values())
    further_links = max(0, len(request.experiment.links) + stations / 2 - 2)
    capture_s = SETUP_S + SETUP_PER_LINK_S * further_links
    capture_s += sum(planner.start_s for planner in request.planners)
    serve_s = capture_s + CAPTURE_START_S
    traffic_s = serve_s + (COMMAND_SERVER_START_S if has_commands else SERVER_START_S)
    return StartTimes(capture_s, serve_s, traffic_s)


def plan_timeline(
    request: PlanRequest,
    start_times: StartTimes,
    rtt_s: float,
    queueing_s: float,
) -> Timeline:
    """Return the start and end times of all phases, in seconds since the start of the run.

    Args:
        request: The point that is planned.
        start_times: Start times of the phases up to the traffic.
        rtt_s: Largest round-trip time of a path. Captures wait for packets that are in flight at
            the end of the traffic.
        queueing_s: Longest time that a full queue needs to empty. Captures wait for its packets.
    """
    traffic_end_s = start_times.traffic_s + request.experiment.duration.seconds
    finish_s = FINISH_S + sum(planner.finish_s for planner in request.planners)
    capture_end_s = traffic_end_s + rtt_s + queueing_s + DRAIN_S + FLUSH_S
    return Timeline(
        capture_s=round_to_us(start_times.capture_s),
        serve_s=round_to_us(start_times.serve_s),
        traffic_s=round_to_us(start_times.traffic_s),
        traffic_end_s=round_to_us(traffic_end_s),
        capture_end_s=round_to_us(capture_end_s),
        end_s=round_to_us(capture_end_s + finish_s),
    )
