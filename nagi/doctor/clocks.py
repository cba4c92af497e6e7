# SPDX-License-Identifier: Apache-2.0
"""Checks whether hosts agree on the time.

Agents begin each phase of a run by their hosts' clocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from nagi_contracts.doctor import ClockReading
from nagi_contracts.inspection import Inspection
from nagi_contracts.units import format_time

from nagi.doctor.observations import Observations, StageFinding

APART_S = 0.05  # a run is invalid if an agent is 0.1 s late (certificate.py)
_CHRONY = "run chrony (`apt install chrony`) with the same server on all hosts"


def check_clocks(observations: Observations) -> Iterator[StageFinding]:
    """Check how far the clock of each host is from this machine's, and from those of its cell."""
    inspected = dict(observations.list_inspected())
    boots = {inspection.facts.boot_id for inspection in inspected.values()}
    is_only_one = len(boots) == 1 and None not in boots
    readings: dict[str, ClockReading] = {}  # of hosts near this machine's clock
    for host, inspection in inspected.items():
        reading = observations.clocks.get(host)
        if observations.is_local:
            yield StageFinding([host], "ok", "one clock")
        elif reading is not None and _is_too_far(reading.offset_s, reading.halfwidth_s):
            ahead = "ahead of" if reading.offset_s > 0 else "behind"
            message = f"its clock is {_describe_offset(reading)} {ahead} this machine's"
            yield StageFinding([host], "failure", message, _CHRONY)
        else:
            yield _check_synchronisation(host, inspection, reading, is_only_one)
            if reading is not None:
                readings[host] = reading
    for cell in dict.fromkeys(observations.cells.values()):
        yield from _check_offsets(
            {host: inspected[host] for host in readings if observations.cells[host] == cell},
            readings,
        )
    yield from observations.skip_uninspected()


def _check_synchronisation(
    host: str, inspection: Inspection, reading: ClockReading | None, is_only_one: bool
) -> StageFinding:
    """Check what a host's kernel reports of its clock.

    Args:
        host: The host.
        inspection: Its agent's inspection.
        reading: The offset from this machine's clock, or None if it was not measured.
        is_only_one: Whether all hosts share one clock.
    """
    clock = inspection.clock
    if reading is None:
        message = "its clock was not compared with this machine's"
        return StageFinding([host], "skipped", message, "fix the earlier failure, then check again")
    if is_only_one:
        return StageFinding([host], "ok", "one clock")
    if not clock.synchronised:
        keeper = f", though {clock.keeper} runs" if clock.keeper else ""
        return StageFinding([host], "warning", f"its clock is not synchronised{keeper}", _CHRONY)
    if clock.max_error_s > APART_S:
        message = f"its kernel reports a clock error of up to {clock.max_error_s:.2g} s"
        return StageFinding([host], "warning", message, "configure a nearer time server in chrony")
    return StageFinding([host], "ok", f"synchronised by {clock.keeper or 'an unknown program'}")


def _check_offsets(
    hosts: dict[str, Inspection], readings: dict[str, ClockReading]
) -> Iterator[StageFinding]:
    """Check the two hosts of a cell whose clocks are farthest apart."""
    worst: tuple[float, str, str, ClockReading] | None = None
    for first, second in combinations(hosts, 2):
        boot_id = hosts[first].facts.boot_id
        if boot_id is not None and boot_id == hosts[second].facts.boot_id:
            continue  # both hosts have one clock
        offset = ClockReading(
            offset_s=abs(readings[first].offset_s - readings[second].offset_s),
            halfwidth_s=readings[first].halfwidth_s + readings[second].halfwidth_s,
        )
        min_offset_s = offset.offset_s - offset.halfwidth_s
        if _is_too_far(offset.offset_s, offset.halfwidth_s) and (
            not worst or min_offset_s > worst[0]
        ):
            worst = min_offset_s, first, second, offset
    if worst is not None:
        _, first, second, offset = worst
        yield StageFinding(
            [first, second],
            "failure",
            f"their clocks are {_describe_offset(offset)} apart",
            _CHRONY,
        )


def _is_too_far(offset_s: float, halfwidth_s: float) -> bool:
    return abs(offset_s) - halfwidth_s > APART_S


def _describe_offset(reading: ClockReading) -> str:
    offset_s = abs(reading.offset_s)
    text = f"{offset_s:.2f} s" if offset_s < 100 else format_time(offset_s)
    return f"{text} (± {reading.halfwidth_s:.2g} s)"
