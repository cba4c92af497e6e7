# SPDX-License-Identifier: Apache-2.0
"""Plan when the phases of a run begin."""

from __future__ import annotations

from typing import NamedTuple

from nagi_contracts.plan import RadioPlan, Timeline

from nagi.plan.request import PlanRequest

# Time that agents have, in seconds. First from the start of the run to the start of captures:
SETUP_S = 0.25  # settings of nodes, and an emulator with two links
SETUP_PER_LINK_S = 0.2  # interfaces of each further link in the emulator, or of two stations
SWITCH_START_S = 1.0  # more time if there are switches
P4RUNTIME_START_S = 4.0  # more time for P4Runtime: server and client import gRPC
CONTROLLER_START_S = 2.0  # more time for users' controllers, which nagi does not know
RADIO_START_S = 3.5  # more time for radios: importing GNU Radio takes 1 s on an idle machine
START_PER_RADIO_S = 0.5  # flowgraphs of each link
RADIO_PROCESS_START_S = 3.0  # processes of virtual radios, which import GNU Radio, too
DEVICE_START_S = 8.0  # UHD's devices: they load images, and both ends are measured
# From captures to servers, and from servers to clients:
CAPTURE_START_S = 0.15
SERVER_START_S = 0.3
COMMAND_SERVER_START_S = 2.0  # users' servers, which nagi does not know
# From the end of the traffic to the end of the run:
DRAIN_S = 0.1  # reserve after the time that the path itself needs
FLUSH_S = 1.05  # tcpdump reads a packet within a second (the kernel's block timeout, packet(7))
FINISH_S = 0.3
RADIO_FINISH_S = 2.0  # more time for radios: flowgraphs stop, and their processes end


def round_to_us(seconds: float) -> float:
    """Round a time to whole microseconds, as plans have it."""
    return round(seconds, 6)


class StartTimes(NamedTuple):
    """The times at which phases begin, in seconds since the start of the run."""

    capture_s: float
    serve_s: float
    traffic_s: float


def plan_start_times(request: PlanRequest, radios: dict[str, RadioPlan]) -> StartTimes:
    """Return when the phases up to the traffic begin."""
    has_commands = any(flow.server is not None for _, flow in request.list_flows())
    stations = sum(len(medium.stations) for medium in request.experiment.shared_media.values())
    further_links = max(0, len(request.experiment.links) + stations / 2 - 2)
    capture_s = SETUP_S + SETUP_PER_LINK_S * further_links
    if request.has_switches:
        capture_s += SWITCH_START_S
        if request.switch == "p4runtime":
            capture_s += P4RUNTIME_START_S
    if any(program.controller is not None for program in request.list_own_programs()):
        capture_s += CONTROLLER_START_S
    if radios:
        capture_s += RADIO_START_S + START_PER_RADIO_S * len(radios)
    if any(radio.by == "uhd" for radio in radios.values()):
        capture_s += DEVICE_START_S
    if any(radio.by == "virtual" for radio in radios.values()):
        capture_s += RADIO_PROCESS_START_S
    serve_s = capture_s + CAPTURE_START_S
    traffic_s = serve_s + (COMMAND_SERVER_START_S if has_commands else SERVER_START_S)
    return StartTimes(capture_s, serve_s, traffic_s)


def plan_timeline(
    request: PlanRequest,
    start_times: StartTimes,
    rtt_s: float,
    queueing_s: float,
    *,
    has_radios: bool,
) -> Timeline:
    """Return when all phases of a run begin.

    Args:
        request: The point that is planned.
        start_times: Start times of the phases up to the traffic.
        rtt_s: Largest round-trip time of a path: packets in flight may still arrive.
        queueing_s: Longest time in which queues empty after the traffic.
        has_radios: Whether links are radios.
    """
    traffic_end = start_times.traffic_s + request.experiment.duration.seconds
    capture_end = traffic_end + rtt_s + queueing_s + DRAIN_S + FLUSH_S
    return Timeline(
        capture_s=round_to_us(start_times.capture_s),
        serve_s=round_to_us(start_times.serve_s),
        traffic_s=round_to_us(start_times.traffic_s),
        traffic_end_s=round_to_us(traffic_end),
        capture_end_s=round_to_us(capture_end),
        end_s=round_to_us(capture_end + FINISH_S + (RADIO_FINISH_S if has_radios else 0)),
    )
