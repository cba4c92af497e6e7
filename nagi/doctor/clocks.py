# SPDX-License-Identifier: Apache-2.0
"""Checks that the clocks of hosts show the same time.

This is necessary because agents begin each phase of a run at a time of their hosts' clocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from nagi_contracts.doctor import ClockReading
from nagi_contracts.inspection import Inspection
from nagi_contracts.units import format_time

from nagi.doctor.observations import Observations, StageFinding

MAX_OFFSET_S = 0.05  # a run is invalid if an agent is 0.1 s late (nagi/verdict/limits.py)
_CHRONY = "run chrony (`apt install chrony`) with the same server on all hosts"


def check_clocks(observations: Observations) -> Iterator[StageFinding]:
    """Check the offset of each host's clock from this machine's, and offsets within each cell.

    An offset above MAX_OFFSET_S is a failure. If the offset from this machine's clock is smaller,
    also check whether the host's clock is synchronised; if it is not, the finding is a warning.
    """
    inspected = dict(observations.list_inspected())
    boots = {inspection.facts.boot_id for inspection in inspected.values()}
    have_one_clock = len(boots) == 1 and None not in boots
    readings: dict[str, ClockReading] = {}  # of hosts whose offset from this machine is small
    for host, inspection in inspected.items():
        reading = observations.clocks.get(host)
        if observations.is_local:
            yield StageFinding([host], "ok", "one clock")
        elif reading is not None and _is_too_far(reading.offset_s, reading.halfwidth_s):
            ahead = "ahead of" if reading.offset_s > 0 else "behind"
            message = f"its clock is {_describe_offset(reading)} {ahead} this machine's"
            yield StageFinding([host], "failure", message, _CHRONY)
        else:
            yield _check_synchronisation(host, inspection, reading, have_one_clock)
            if reading is not None:
                readings[host] = reading
    for cell in dict.fromkeys(observations.cells.values()):
        yield from _check_offsets(
            {host: inspected[host] for host in readings if observations.cells[host] == cell},
            readings,
        )
    yield from observations.skip_uninspected()


def _check_synchronisation(
    host: str, inspection: Inspection, reading: ClockReading | None, have_one_clock: bool
) -> StageFinding:
    """Return a finding: whether a host's clock is synchronised, as the host's kernel reports.

    The finding is `skipped` if `reading` is None.

    Args:
        host: The host.
        inspection: The inspection of the host.
        reading: The offset from this machine's clock, or None if it was not measured.
        have_one_clock: Whether all hosts share one clock, because they are one machine.
    """
    clock = inspection.clock
    if reading is None:
        message = "its clock was not compared with this machine's"
        return StageFinding([host], "skipped", message, "fix the earlier failure, then check again")
    if have_one_clock:
        return StageFinding([host], "ok", "one clock")
    if not clock.synchronised:
        keeper = f", though {clock.keeper} runs" if clock.keeper else ""
        return StageFinding([host], "warning", f"its clock is not synchronised{keeper}", _CHRONY)
    if clock.max_error_s > MAX_OFFSET_S:
        message = f"its kernel reports a clock error of up to {clock.max_error_s:.2g} s"
        return StageFinding([host], "warning", message, "configure a closer time server in chrony")
    return StageFinding([host], "ok", f"synchronised by {clock.keeper or 'an unknown program'}")


def _check_offsets(
    hosts: dict[str, Inspection], readings: dict[str, ClockReading]
) -> Iterator[StageFinding]:
    """Yield a failure for the two hosts whose clocks differ most, if by more than MAX_OFFSET_S.

    Args:
        hosts: Host of one cell -> inspection.
        readings: Host -> offset from this machine's clock.
    """
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
    """Return whether an offset is too large even if the error of its measurement is subtracted."""
    return abs(offset_s) - halfwidth_s > MAX_OFFSET_S


def _describe_offset(reading: ClockReading) -> str:
    offset_s = abs(reading.offset_s)
    text = f"{offset_s:.2f} s" if offset_s < 100 else format_time(offset_s)
    return f"{text} (± {reading.halfwidth_s:.2g} s)"
