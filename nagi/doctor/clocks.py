# SPDX-License-Identifier: Apache-2.0
"""Whether hosts agree on the time: agents begin each phase of a run by their own clocks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from nagi_contracts.doctor import ClockReading
from nagi_contracts.inspection import Inspection
from nagi_contracts.units import in_time

from nagi.doctor.observations import Observations, StageFinding

APART_S = 0.05  # an agent that is 0.1 s late fails its run (certificate.py)
_CHRONY = "let chrony keep it (`apt install chrony`), by the same server on all hosts"


def look_at_clocks(seen: Observations) -> Iterator[StageFinding]:
    inspected = dict(seen.inspected())
    boots = {inspection.facts.boot_id for inspection in inspected.values()}
    is_only_one = len(boots) == 1 and None not in boots
    near: dict[str, ClockReading] = {}  # to this machine's clock
    for host, inspection in inspected.items():
        reading = seen.clocks.get(host)
        if seen.is_local:
            yield StageFinding([host], "ok", "one clock")
        elif reading is not None and _is_too_far(reading.offset_s, reading.halfwidth_s):
            ahead = "ahead of" if reading.offset_s > 0 else "behind"
            what = f"its clock is {_seconds(reading)} {ahead} this machine's"
            yield StageFinding([host], "failure", what, _CHRONY)
        else:
            yield _kept(host, inspection, reading, is_only_one)
            if reading is not None:
                near[host] = reading
    for cell in dict.fromkeys(seen.cells.values()):
        yield from _apart({h: inspected[h] for h in near if seen.cells[h] == cell}, near)
    yield from seen.not_inspected()


def _kept(
    host: str, inspection: Inspection, reading: ClockReading | None, is_only_one: bool
) -> StageFinding:
    """What a host's kernel says of its clock. `is_only_one`: all hosts have the same."""
    clock = inspection.clock
    if reading is None:
        what = "its clock was not compared with this machine's"
        return StageFinding([host], "skipped", what, "mend what failed before it, and look again")
    if is_only_one:
        return StageFinding([host], "ok", "one clock")
    if not clock.synchronised:
        keeper = f", though {clock.keeper} runs" if clock.keeper else ""
        return StageFinding([host], "warning", f"its clock is not synchronised{keeper}", _CHRONY)
    if clock.max_error_s > APART_S:
        what = f"its clock may be wrong by {clock.max_error_s:.2g} s, its kernel says"
        return StageFinding([host], "warning", what, "give chrony a time server that is nearer")
    return StageFinding([host], "ok", f"synchronised by {clock.keeper or 'an unknown program'}")


def _apart(
    hosts: dict[str, Inspection], readings: dict[str, ClockReading]
) -> Iterator[StageFinding]:
    """The two hosts of a cell whose clocks are the farthest apart, if that is too far."""
    worst: tuple[float, str, str, ClockReading] | None = None
    for one, other in combinations(hosts, 2):
        boot = hosts[one].facts.boot_id
        if boot is not None and boot == hosts[other].facts.boot_id:
            continue  # the same clock
        apart = ClockReading(
            offset_s=abs(readings[one].offset_s - readings[other].offset_s),
            halfwidth_s=readings[one].halfwidth_s + readings[other].halfwidth_s,
        )
        surely = apart.offset_s - apart.halfwidth_s
        if _is_too_far(apart.offset_s, apart.halfwidth_s) and (not worst or surely > worst[0]):
            worst = surely, one, other, apart
    if worst is not None:
        _, one, other, apart = worst
        yield StageFinding(
            [one, other], "failure", f"their clocks are {_seconds(apart)} apart", _CHRONY
        )


def _is_too_far(offset_s: float, halfwidth_s: float) -> bool:
    return abs(offset_s) - halfwidth_s > APART_S


def _seconds(reading: ClockReading) -> str:
    apart = abs(reading.offset_s)
    said = f"{apart:.2f} s" if apart < 100 else in_time(apart)
    return f"{said} (± {reading.halfwidth_s:.2g} s)"
