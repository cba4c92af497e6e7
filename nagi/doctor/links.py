# SPDX-License-Identifier: Apache-2.0
"""Checks of interfaces, and of the links between hosts."""

from __future__ import annotations

from collections.abc import Iterator

from nagi_contracts.doctor import PathReading
from nagi_contracts.inspection import Inspection

from nagi.doctor.observations import Observations, StageFinding
from nagi.labs.shape import EMULATOR

_OTHER_INTERFACE = "name another interface in its `nagi_links`"


def check_interfaces(observations: Observations) -> Iterator[StageFinding]:
    """Check that the test interfaces of each host exist, have a carrier, and are fit for tests.

    An interface that is down has no carrier to check, so the finding is `skipped`, unless the links
    were tried. This machine alone has no test interfaces, so it has no finding `ok`.
    """
    for host, inspection in observations.list_inspected():
        findings = list(_list_interface_problems(host, inspection))
        down = [name for name, interface in inspection.interfaces.items() if not interface.up]
        if (
            not findings
            and down
            and host not in observations.paths.keys() | observations.ports.keys()
        ):
            message = f"{', '.join(down)}: down, so cables cannot be checked"
            cure = (
                "repair other failures, then `nagi doctor` tries the links; runs set interfaces up"
            )
            findings = [StageFinding([host], "skipped", message, cure)]
        elif not findings and not observations.is_local:
            findings = [StageFinding([host], "ok", _describe_interfaces(inspection))]
        yield from findings
    if not observations.is_local:
        yield from observations.skip_uninspected()


def _describe_interfaces(inspection: Inspection) -> str:
    offloads = {name for interface in inspection.interfaces.values() for name in interface.offloads}
    note = f" (for runs, nagi switches off: {', '.join(sorted(offloads))})" if offloads else ""
    return ", ".join(inspection.interfaces) + note


def _list_interface_problems(host: str, inspection: Inspection) -> Iterator[StageFinding]:
    """Yield findings about a host's test interfaces that are missing or not fit for tests."""
    for name in inspection.missing_interfaces:
        cure = f"{_OTHER_INTERFACE}; `ip link` there lists all interfaces"
        yield StageFinding([host], "failure", f"it has no interface {name}", cure)
    for name, interface in inspection.interfaces.items():
        if interface.management:
            message = f"{name} {interface.management}"
            yield StageFinding(
                [host],
                "failure",
                message,
                f"{_OTHER_INTERFACE}: test traffic needs an interface of its own",
            )
            continue  # nagi leaves this interface alone
        if interface.fixed_offloads:
            message = (
                f"{name} has {', '.join(interface.fixed_offloads)} on and cannot switch it off"
            )
            driver = interface.driver or "unknown"
            yield StageFinding(
                [host],
                "failure",
                message,
                f"{_OTHER_INTERFACE}; runs over this interface are invalid (driver {driver})",
            )
        if interface.carrier is False:
            cure = f"plug its cable in, at both ends, or {_OTHER_INTERFACE}"
            yield StageFinding([host], "failure", f"{name} has no carrier", cure)


def check_paths(observations: Observations) -> Iterator[StageFinding]:
    """Check that the pings of each node reached its neighbours through the emulator.

    If a neighbour answered only some of the pings, the finding is a warning.
    """
    for host, reading in _list_readings(observations):
        neighbour = f"{reading.to_node} on link {reading.link}"
        if reading.answered == 0:
            message, cure = _locate_loss(observations, observations.cells[host], reading)
            yield StageFinding([host], "failure", f"no answer from {neighbour}: {message}", cure)
        elif reading.answered < reading.sent:
            yield StageFinding(
                [host],
                "warning",
                f"{reading.sent - reading.answered} of {reading.sent} pings to {neighbour} were "
                "lost, though it was idle",
                "check the link's cables and connectors, and whether the link has other traffic",
            )
        else:
            minimum, median = reading.rtt_min_ms, reading.rtt_median_ms
            yield StageFinding(
                [host], "ok", f"{neighbour}: {minimum:.2f} ms, median {median:.2f} ms"
            )
    yield from _list_untried(observations)


def check_mtu(observations: Observations) -> Iterator[StageFinding]:
    """Check that pings with full-sized packets passed each link.

    If only some of them passed, the finding is a warning. If no short ping passed, it is `skipped`.
    """
    for host, reading in _list_readings(observations):
        neighbour = f"{reading.to_node} on link {reading.link}"
        size, answered = f"{reading.mtu} bytes", reading.full_size_answered
        if reading.answered == 0:
            yield StageFinding([host], "skipped", f"no answer from {neighbour}", "see paths")
        elif answered == 0:
            yield StageFinding(
                [host],
                "failure",
                f"packets of {size} to {neighbour} are lost, and short packets are not",
                f"set an MTU of {size} on all interfaces of the link and on switches between them, "
                "or a smaller MTU on both nodes",
            )
        elif answered < reading.answered:
            message = (
                f"only {answered} of {reading.sent} packets of {size} to {neighbour} were answered"
            )
            yield StageFinding([host], "warning", message, "check the link's cables and connectors")
        else:
            yield StageFinding([host], "ok", f"{size} to {neighbour}")
    yield from _list_untried(observations)


def _list_readings(observations: Observations) -> Iterator[tuple[str, PathReading]]:
    """Yield the results of all pings, each with the host that sent the pings."""
    for host, _ in observations.list_nodes():
        for reading in observations.paths.get(host, []):
            yield host, reading


def _list_untried(observations: Observations) -> Iterator[StageFinding]:
    """Yield findings `skipped` for nodes whose links were not tried, and for uninspected hosts.

    This machine alone has no such finding, because the netns lab makes links for each run.
    """
    if observations.is_local:
        return
    hosts = [host for host, _ in observations.list_nodes() if host not in observations.paths]
    if hosts:
        cure = "fix the earlier failure, then check again"
        yield StageFinding(hosts, "skipped", observations.paths_left_out, cure)
    yield from observations.skip_uninspected()


def _locate_loss(observations: Observations, cell: str, reading: PathReading) -> tuple[str, str]:
    """Return where pings were lost, according to the emulator's counters, and the cure.

    Args:
        observations: The observations, with the counters.
        cell: The name of the cell of both nodes.
        reading: The result of the pings, none of which was answered.
    """
    emulator = next(
        (host for host, _ in observations.list_emulators() if observations.cells[host] == cell),
        EMULATOR,
    )
    ports = {
        port.node: port
        for port in observations.ports.get(emulator, [])
        if port.link == reading.link
    }
    from_port, to_port = ports.get(reading.from_node), ports.get(reading.to_node)
    if from_port is None or to_port is None:
        return (
            f"{emulator} reported no counters",
            f"check the link's cables, and `nagi_links` of both nodes and of {emulator}",
        )
    if from_port.received == 0:
        return (
            f"nothing arrived at {emulator}'s {from_port.interface}",
            f"check that the cable of {reading.from_node} leads to this interface: compare its "
            f"`nagi_links` with {emulator}'s",
        )
    if to_port.sent == 0:
        return (
            f"{emulator} sent nothing at {to_port.interface}",
            f"set {to_port.interface} of {emulator} up; if it is up already, read {emulator}'s "
            "nagi-link.log",
        )
    return (
        f"{emulator} sent the packets at {to_port.interface}",
        f"check that the cable at {emulator}'s {to_port.interface} leads to {reading.to_node}, and "
        f"that no cables are swapped: compare `nagi_links` of {reading.to_node} with {emulator}'s",
    )
