# SPDX-License-Identifier: Apache-2.0
"""Checks of the current state of hosts.

These are captures, busy processors, disk space, reservations, and changes that other runs left.
"""

from __future__ import annotations

from collections.abc import Iterator

from nagi_contracts.inspection import Holder, Inspection
from nagi_contracts.units import format_bytes, format_time

from nagi.doctor.observations import Observations, StageFinding

MAX_BUSY_SHARE = 0.2  # of all processors' time, which other programs may use
MIN_FREE_BYTES = 10**9  # on hosts that are checked without an experiment


def check_captures(observations: Observations) -> Iterator[StageFinding]:
    """Check that tcpdump can capture on each node, by the capture that each agent has tried."""
    for host, inspection in observations.list_nodes():
        if not inspection.is_root:
            yield StageFinding([host], "skipped", "only root can try to capture", "see kernel")
        elif inspection.missing_programs:
            yield StageFinding([host], "skipped", "its programs are missing", "see versions")
        elif inspection.capture_error is None:
            yield StageFinding([host], "ok", "tcpdump captures")
        else:
            text = " ".join(inspection.capture_error.split())
            cure = _cure_capture(text.lower())
            yield StageFinding([host], "failure", f"tcpdump cannot capture: {text}", cure)
    yield from observations.skip_uninspected()


def _cure_capture(error: str) -> str:
    if "no user" in error:
        return "set `nagi_user` to an existing user, such as nobody"
    if "permi" in error:
        return "let root have CAP_NET_RAW there, and look at AppArmor's profile of tcpdump"
    return "try `tcpdump` there by hand"


def check_processors(observations: Observations) -> Iterator[StageFinding]:
    """Check that other programs use at most MAX_BUSY_SHARE of each host's processor time.

    If they use more, the finding is a warning.
    """
    for host, inspection in observations.list_inspected():
        busy_share = inspection.processors_busy
        busy = f"{100 * busy_share:.0f} % busy"
        if busy_share <= MAX_BUSY_SHARE:
            yield StageFinding([host], "ok", busy)
        else:
            cure = "end the programs that keep them busy (see `top` there), or wait"
            yield StageFinding([host], "warning", f"its processors are {busy} without a run", cure)
    yield from observations.skip_uninspected()


def check_disks(observations: Observations) -> Iterator[StageFinding]:
    """Check that each host has space for records.

    If the space that the experiment needs is not known, or there is no experiment, the limit is
    MIN_FREE_BYTES, and less space is only a warning.
    """
    needed_bytes = observations.needs.free_bytes if observations.needs else None
    cure = "free disk space"
    if not observations.is_local:
        cure = "free disk space there, or name another `nagi_spool`"
    for host, inspection in observations.list_inspected():
        free = format_bytes(inspection.free_bytes)
        if needed_bytes is not None and inspection.free_bytes < needed_bytes:
            message = f"{free} are free for records, and {format_bytes(needed_bytes)} are needed"
            yield StageFinding([host], "failure", message, cure)
        elif needed_bytes is None and inspection.free_bytes < MIN_FREE_BYTES:
            message = f"only {free} are free for records"
            yield StageFinding(
                [host], "warning", message, f"{cure}; `nagi plan` shows what runs need"
            )
        else:
            yield StageFinding([host], "ok", f"{free} free")
    yield from observations.skip_uninspected()


def check_reservations(observations: Observations) -> Iterator[StageFinding]:
    """Check that no other campaign has reserved a host."""
    for host, inspection in observations.list_inspected():
        if inspection.holder is None:
            yield StageFinding([host], "ok", "free")
        elif inspection.holder.token == observations.token:
            yield StageFinding([host], "ok", "reserved by this campaign")
        else:
            message, cure = _describe_holder(observations, host, inspection.holder)
            yield StageFinding([host], "failure", message, cure)
    yield from observations.skip_uninspected()


def _describe_holder(observations: Observations, host: str, holder: Holder) -> tuple[str, str]:
    """Return a message about the holder of a host's reservation, and the cure.

    The times in `holder` are by the host's clock.
    """
    now_s = observations.now_s + (
        observations.clocks[host].offset_s if host in observations.clocks else 0.0
    )
    since = format_time(max(0.0, now_s - holder.since_s))
    holder_text = f"{holder.owner} reserved it {since} ago, for {holder.campaign}"
    command = f"`{_make_down_command(observations)} --force`"
    left_s = holder.expires_s - now_s
    if left_s > 0:
        lease = f"the lease ends in {format_time(left_s)}, if it is not renewed"
        return f"{holder_text}; {lease}", f"wait, or release the host with {command}"
    lease = f"the lease expired {format_time(-left_s)} ago, but the host was not released"
    return (
        f"{holder_text}; {lease}",
        f"check again in a minute; if it is still reserved, release the host with {command}",
    )


def check_leftovers(observations: Observations) -> Iterator[StageFinding]:
    """Check for settings that an earlier agent did not restore, and for other obstacles.

    Such settings are a warning, because the next run restores them. Other obstacles are failures.
    """
    for host, inspection in observations.list_inspected():
        findings = [
            StageFinding([host], "failure", message, cure)
            for message, cure in _list_obstacles(inspection)
        ]
        if inspection.to_restore:
            message = "an agent that died did not restore the host's settings"
            cure = (
                "the next run restores the settings; to restore them now: "
                f"`{_make_down_command(observations)}`"
            )
            findings.append(StageFinding([host], "warning", message, cure))
        yield from findings or [StageFinding([host], "ok", "none")]
    yield from observations.skip_uninspected()


def _list_obstacles(inspection: Inspection) -> Iterator[tuple[str, str]]:
    """Yield a message and a cure for each obstacle that an agent reports, such as a used port.

    Yield nothing if privileges or programs are missing, which earlier stages report.
    """
    if inspection.is_root and not inspection.missing_programs and not inspection.nagi_link_error:
        for problem in inspection.problems:
            message, _, cure = problem.partition("; ")
            yield message, cure or "fix this, then check again"


def _make_down_command(observations: Observations) -> str:
    return "nagi down" if observations.is_local else f"nagi down -i {observations.inventory}"
