# SPDX-License-Identifier: Apache-2.0
"""What joins hosts: interfaces, and the links between them."""

from __future__ import annotations

from collections.abc import Iterator

from nagi_contracts.doctor import PathReading
from nagi_contracts.inspection import Inspection

from nagi.doctor.observations import Observations, StageFinding
from nagi.labs.shape import EMULATOR

_ANOTHER = "name another in its `nagi_links`"


def look_at_interfaces(seen: Observations) -> Iterator[StageFinding]:
    for host, inspection in seen.inspected():
        found = list(_wrong_interfaces(host, inspection))
        down = [name for name, each in inspection.interfaces.items() if not each.up]
        if not found and down and host not in seen.paths.keys() | seen.ports.keys():
            what = f"{', '.join(down)}: down, so that cables cannot be seen"
            cure = (
                "`nagi doctor` tries links where nothing else fails; runs bring them up themselves"
            )
            found = [StageFinding([host], "skipped", what, cure)]
        elif not found and not seen.is_local:
            found = [StageFinding([host], "ok", _interfaces(inspection))]
        yield from found
    if not seen.is_local:
        yield from seen.not_inspected()


def _interfaces(inspection: Inspection) -> str:
    on = {name for interface in inspection.interfaces.values() for name in interface.offloads}
    off = f" (for runs, nagi switches off: {', '.join(sorted(on))})" if on else ""
    return ", ".join(inspection.interfaces) + off


def _wrong_interfaces(host: str, inspection: Inspection) -> Iterator[StageFinding]:
    for name in inspection.missing_interfaces:
        cure = f"{_ANOTHER}; `ip link` there lists what there is"
        yield StageFinding([host], "failure", f"it has no interface {name}", cure)
    for name, interface in inspection.interfaces.items():
        if interface.is_management:
            what = f"{name} is the interface by which it is reached"
            yield StageFinding([host], "failure", what, f"{_ANOTHER}: tests need one of their own")
            continue  # it shall not be touched
        if interface.fixed_offloads:
            what = f"{name} has {', '.join(interface.fixed_offloads)} on and cannot switch it off"
            driver = interface.driver or "that is not known"
            yield StageFinding(
                [host], "failure", what, f"{_ANOTHER}: driver {driver} spoils every run"
            )
        if interface.carrier is False:
            cure = f"plug its cable in, at both ends, or {_ANOTHER}"
            yield StageFinding([host], "failure", f"{name} has no carrier", cure)


def look_at_paths(seen: Observations) -> Iterator[StageFinding]:
    for host, reading in _readings(seen):
        there = f"{reading.to_node} on link {reading.link}"
        if reading.answered == 0:
            what, cure = _where_lost(seen, seen.cells[host], reading)
            yield StageFinding([host], "failure", f"no answer from {there}: {what}", cure)
        elif reading.answered < reading.sent:
            yield StageFinding(
                [host],
                "warning",
                f"{reading.sent - reading.answered} of {reading.sent} pings to {there} were lost, "
                "though it was idle",
                "look at the link's cables and connectors, and for other traffic on it",
            )
        else:
            minimum, median = reading.rtt_min_ms, reading.rtt_median_ms
            yield StageFinding([host], "ok", f"{there}: {minimum:.2f} ms, median {median:.2f} ms")
    yield from _untried(seen)


def look_at_mtu(seen: Observations) -> Iterator[StageFinding]:
    for host, reading in _readings(seen):
        there = f"{reading.to_node} on link {reading.link}"
        size, came = f"{reading.mtu} bytes", reading.full_size_answered
        if reading.answered == 0:
            yield StageFinding([host], "skipped", f"no answer from {there}", "see paths")
        elif came == 0:
            yield StageFinding(
                [host],
                "failure",
                f"packets of {size} to {there} are lost, short ones are not",
                f"give all interfaces of the link an MTU of {size}, and all that is between them; "
                "or give its ends a smaller one",
            )
        elif came < reading.answered:
            what = f"only {came} of {reading.sent} packets of {size} to {there} were answered"
            yield StageFinding([host], "warning", what, "look at the link's cables and connectors")
        else:
            yield StageFinding([host], "ok", f"{size} to {there}")
    yield from _untried(seen)


def _readings(seen: Observations) -> Iterator[tuple[str, PathReading]]:
    for host, _ in seen.nodes():
        for reading in seen.paths.get(host, []):
            yield host, reading


def _untried(seen: Observations) -> Iterator[StageFinding]:
    """Nodes whose links were not tried. The netns lab makes its links itself, for its runs."""
    if seen.is_local:
        return
    hosts = [host for host, _ in seen.nodes() if host not in seen.paths]
    if hosts:
        cure = "mend what failed before it, and look again"
        yield StageFinding(hosts, "skipped", seen.paths_left_out, cure)
    yield from seen.not_inspected()


def _where_lost(seen: Observations, cell: str, reading: PathReading) -> tuple[str, str]:
    """Where packets of a path were lost, as far as the emulator's counts tell; and the cure."""
    emulator = next((h for h, _ in seen.emulators() if seen.cells[h] == cell), EMULATOR)
    ports = {port.node: port for port in seen.ports.get(emulator, []) if port.link == reading.link}
    near, far = ports.get(reading.from_node), ports.get(reading.to_node)
    if near is None or far is None:
        return (
            f"{emulator} did not say what it saw",
            f"look at the link's cables, and at `nagi_links` of both ends and of {emulator}",
        )
    if near.received == 0:
        return (
            f"nothing came in at {emulator}'s {near.interface}",
            f"does the cable lead there? Compare its `nagi_links` with {emulator}'s",
        )
    if far.sent == 0:
        return (
            f"{emulator} sent nothing on at {far.interface}",
            f"bring {far.interface} up there; if it is, read nagi-link.log there",
        )
    return (
        f"{emulator} sent it on at {far.interface}",
        f"does the cable at {emulator}'s {far.interface} lead to {reading.to_node}? Are two "
        f"swapped? Compare `nagi_links` of {reading.to_node} with {emulator}'s",
    )
