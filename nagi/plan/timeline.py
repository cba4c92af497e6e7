# SPDX-License-Identifier: Apache-2.0
"""When the phases of a run begin."""

from __future__ import annotations

from typing import NamedTuple

from nagi_contracts.plan import RadioPlan, Timeline

from nagi.plan.request import PlanRequest

# Phases before and after the traffic, in seconds: how long agents have to set up and to finish.
SETTING_UP = 0.25  # settings, emulator with two links
SETTING_UP_A_LINK = 0.2  # each further link's interfaces, in the emulator; of a medium, two
CAPTURING = 0.15  # captures are running before servers are
STARTING_SWITCHES = 1.0  # beside that, if there are any
STARTING_P4RUNTIME = 4.0  # the same: Python imports gRPC, in the server and in the client
STARTING_CONTROLLERS = 2.0  # the same, of programs that are not ours to know
STARTING_RADIOS = 3.5  # the same: Python imports GNU Radio, in about a second on an idle machine
STARTING_A_RADIO = 0.5  # each link's flowgraphs
STARTING_PROCESSES = 3.0  # of a virtual radio's stations and channel, which import it once more
STARTING_DEVICES = 8.0  # of UHD: they load images, and both ends are measured
SERVING = 0.3  # servers are running before clients are
SERVING_COMMANDS = 2.0  # the same of programs that are not ours to know
DRAINING = 0.1  # beside what the path itself needs
FLUSHING = 1.05  # tcpdump reads a packet within a second (the kernel's block timeout, packet(7))
FINISHING = 0.3
FINISHING_RADIOS = 2.0  # beside that: flowgraphs stop, and their processes end


def rounded(seconds: float) -> float:
    """As plans have times: whole microseconds."""
    return round(seconds, 6)


class Begins(NamedTuple):
    """When phases begin, in seconds since the run does."""

    capture_s: float
    serve_s: float
    traffic_s: float


def traffic_begins(request: PlanRequest, radios: dict[str, RadioPlan]) -> Begins:
    """The phases up to the traffic."""
    commands = any(flow.server is not None for _, flow in request.flows())
    stations = sum(len(medium.stations) for medium in request.experiment.media.values())
    further = max(0, len(request.experiment.links) + stations / 2 - 2)
    capture_s = SETTING_UP + SETTING_UP_A_LINK * further
    if request.has_switches:
        capture_s += STARTING_SWITCHES
        if request.switch == "p4runtime":
            capture_s += STARTING_P4RUNTIME
    if any(program.controller is not None for program in request.own_programs()):
        capture_s += STARTING_CONTROLLERS
    if radios:
        capture_s += STARTING_RADIOS + STARTING_A_RADIO * len(radios)
    if any(each.by == "uhd" for each in radios.values()):
        capture_s += STARTING_DEVICES
    if any(each.by == "virtual" for each in radios.values()):
        capture_s += STARTING_PROCESSES
    serve_s = capture_s + CAPTURING
    traffic_s = serve_s + (SERVING_COMMANDS if commands else SERVING)
    return Begins(capture_s, serve_s, traffic_s)


def timeline(
    request: PlanRequest, begins: Begins, rtt_s: float, queued_s: float, *, has_radios: bool
) -> Timeline:
    """Phases one after the other; after the traffic, what is on the way (`rtt_s`) or in queues
    (`queued_s`) may still arrive."""
    traffic_end = begins.traffic_s + request.experiment.duration.seconds
    capture_end = traffic_end + rtt_s + queued_s + DRAINING + FLUSHING
    return Timeline(
        capture_s=rounded(begins.capture_s),
        serve_s=rounded(begins.serve_s),
        traffic_s=rounded(begins.traffic_s),
        traffic_end_s=rounded(traffic_end),
        capture_end_s=rounded(capture_end),
        end_s=rounded(capture_end + FINISHING + (FINISHING_RADIOS if has_radios else 0)),
    )
