# SPDX-License-Identifier: Apache-2.0
"""What hosts can do now: captures, emulator, spare processor time, disk; who has them, and what was
left behind."""

from __future__ import annotations

from collections.abc import Iterator

from nagi_contracts import __version__
from nagi_contracts.doctor import Status
from nagi_contracts.inspection import Holder, Inspection, SwitchFacts
from nagi_contracts.plan import SwitchTarget
from nagi_contracts.units import in_bytes, in_time

from nagi.doctor.observations import Observations, StageFinding
from nagi.plan import fpga, radio

BUSY = 0.2  # share of all processors' time that others use
MIN_FREE_BYTES = 10**9  # where it is not known what a campaign takes


def look_at_captures(seen: Observations) -> Iterator[StageFinding]:
    for host, inspection in seen.nodes():
        if not inspection.is_root:
            yield StageFinding([host], "skipped", "only root can try to capture", "see kernel")
        elif inspection.missing_programs:
            yield StageFinding([host], "skipped", "programs it needs are missing", "see versions")
        elif inspection.capture_error is None:
            yield StageFinding([host], "ok", "tcpdump captures")
        else:
            said = " ".join(inspection.capture_error.split())
            cure = _capture_cure(said.lower())
            yield StageFinding([host], "failure", f"tcpdump cannot capture: {said}", cure)
    yield from seen.not_inspected()


def _capture_cure(said: str) -> str:
    if "no user" in said:
        return "name one that there is as `nagi_user`, such as nobody"
    if "permi" in said:
        return "let root have CAP_NET_RAW there, and look at AppArmor's profile of tcpdump"
    return "try `tcpdump` there by hand"


def look_at_emulators(seen: Observations) -> Iterator[StageFinding]:
    bring = "build it: `make setup`"
    if not seen.is_local:
        bring = f"install that of nagi {__version__} there, or say where it is as `nagi_link`"
    for host, inspection in seen.emulators():
        version = (inspection.nagi_link or "").split()[-1:]
        if not version:
            said = " ".join((inspection.nagi_link_error or "it says no version").split())
            yield StageFinding([host], "failure", f"nagi-link does not run: {said}", bring)
        elif version != [__version__]:
            what = f"its nagi-link is of version {version[0]}, nagi of {__version__}"
            yield StageFinding([host], "failure", what, bring)
        else:
            yield _packet_io(host, inspection, f"nagi-link {version[0]}")
    yield from seen.not_inspected()


def _packet_io(host: str, inspection: Inspection, program: str) -> StageFinding:
    if inspection.io is None:
        what = f"{program}; which packet I/O it takes shows when it runs"
        return StageFinding([host], "skipped", what, "see `ports` in a run's links.json")
    if inspection.io.startswith("af_xdp"):
        return StageFinding([host], "ok", f"{program}, {inspection.io}")
    return StageFinding(
        [host],
        "warning",
        f"{program} takes {inspection.io}",
        "boot a kernel with CONFIG_XDP_SOCKETS, or use an interface whose driver has XDP: "
        "af_packet manages about a third of the packets a second",
    )


def look_at_radios(seen: Observations) -> Iterator[StageFinding]:
    """Whether links can be radios; of this machine `nagi doctor radio` tells more."""
    wanted = seen.wanted.radios if seen.wanted else ()
    cure = radio.INSTALL if seen.is_local else radio.INSTALL_THERE
    for host, inspection in seen.emulators():
        yield _of_some_links(
            host,
            "nagi-sdr",
            (inspection.nagi_sdr, inspection.nagi_sdr_error),
            radio.describe_links(wanted) if wanted else "",
            cure,
        )
    yield from seen.not_inspected()


def look_at_fpgas(seen: Observations) -> Iterator[StageFinding]:
    """Whether an FPGA's core can be simulated."""
    wanted = seen.wanted.fpgas if seen.wanted else ()
    cure = fpga.INSTALL if seen.is_local else fpga.INSTALL_THERE
    for host, inspection in seen.emulators():
        yield _of_some_links(
            host,
            "nagi-fpga",
            (inspection.nagi_fpga, inspection.nagi_fpga_error),
            fpga.describe_links(wanted) if wanted else "",
            cure,
        )
    yield from seen.not_inspected()


def _of_some_links(
    host: str, program: str, found: tuple[str | None, str | None], wanted: str, cure: str
) -> StageFinding:
    """Of a program that only some links need. `found`: its version, or why it does not say it;
    `wanted`: which links need it, empty if none does."""
    version, error = (found[0] or "").split()[-1:], found[1]
    lacking: Status = "failure" if wanted else "warning"
    if error is not None:
        what = f"{program} does not run: {' '.join(error.split())}"
        return StageFinding([host], lacking, what, cure)
    if not version and wanted:
        return StageFinding([host], "failure", f"{wanted}, and there is no {program}", cure)
    if not version:
        return StageFinding([host], "ok", f"no {program} is installed")
    if version != [__version__]:
        what = f"its {program} is of version {version[0]}, nagi of {__version__}"
        return StageFinding([host], lacking, what, cure)
    return StageFinding([host], "ok", f"{program} {version[0]}")


def look_at_switches(seen: Observations) -> Iterator[StageFinding]:
    for host, inspection in seen.nodes():
        wanted = {
            target
            for node, target in (seen.wanted.switches if seen.wanted else ())
            if node == inspection.node
        }
        for target in sorted(wanted - inspection.switches.keys()):
            yield _missing_switch(host, target)
        for target, facts in inspection.switches.items():
            if facts.problem is not None:
                what, _, cure = facts.problem.partition("; ")
                status: Status = "failure" if target in wanted else "warning"
                yield StageFinding([host], status, what, cure)
        versions = [
            _version(target, facts)
            for target, facts in inspection.switches.items()
            if facts.problem is None
        ]
        if versions or not (wanted or inspection.switches):
            yield StageFinding([host], "ok", ", ".join(versions) or "none is installed")
    yield from seen.not_inspected()


def _missing_switch(host: str, target: SwitchTarget) -> StageFinding:
    cure = f"provision it with nagi_switch_target: {target}"
    if target == "p4runtime":
        what = "it is not said where its switch is"
        return StageFinding(
            [host], "failure", what, "set nagi_p4runtime in the inventory, or use --switch nagi"
        )
    if target == "nagi":
        what = "nagi-switch comes with the campaign; whether the host has its libraries shows then"
        return StageFinding([host], "skipped", what, cure)
    return StageFinding(
        [host], "failure", "there is no simple_switch", f"{cure}, or use --switch nagi"
    )


def _version(target: SwitchTarget, facts: SwitchFacts) -> str:
    if target == "p4runtime":
        return facts.version
    name = "nagi-switch" if target == "nagi" else "simple_switch"
    return " ".join([name, *facts.version.split()[-1:]])


def look_at_processors(seen: Observations) -> Iterator[StageFinding]:
    for host, inspection in seen.inspected():
        share = inspection.processors_busy
        busy = f"{100 * share:.0f} % busy"
        if share <= BUSY:
            yield StageFinding([host], "ok", busy)
        else:
            cure = "end what keeps them busy (`top` there names it), or wait"
            yield StageFinding([host], "warning", f"its processors are {busy} without a run", cure)
    yield from seen.not_inspected()


def look_at_disks(seen: Observations) -> Iterator[StageFinding]:
    needed = seen.wanted.free_bytes if seen.wanted else None
    room = "make room" if seen.is_local else "make room there, or name another `nagi_spool`"
    for host, inspection in seen.inspected():
        free = in_bytes(inspection.free_bytes)
        if needed is not None and inspection.free_bytes < needed:
            what = f"{free} are free where records go, {in_bytes(needed)} are needed"
            yield StageFinding([host], "failure", what, room)
        elif needed is None and inspection.free_bytes < MIN_FREE_BYTES:
            what = f"only {free} are free where records go"
            yield StageFinding([host], "warning", what, f"{room}; `nagi plan` says what runs take")
        else:
            yield StageFinding([host], "ok", f"{free} free")
    yield from seen.not_inspected()


def look_at_locks(seen: Observations) -> Iterator[StageFinding]:
    for host, inspection in seen.inspected():
        if inspection.holder is None:
            yield StageFinding([host], "ok", "free")
        elif inspection.holder.token == seen.token:
            yield StageFinding([host], "ok", "held by this campaign")
        else:
            what, cure = _held(seen, host, inspection.holder)
            yield StageFinding([host], "failure", what, cure)
    yield from seen.not_inspected()


def _held(seen: Observations, host: str, holder: Holder) -> tuple[str, str]:
    """Who has the host, and how to get it. Its holder's times are by its own clock."""
    now_s = seen.now_s + (seen.clocks[host].offset_s if host in seen.clocks else 0.0)
    since = in_time(max(0.0, now_s - holder.since_s))
    who = f"{holder.owner} has had it for {since}, for {holder.campaign}"
    force = f"`{_down(seen)} --force`"
    left_s = holder.expires_s - now_s
    if left_s > 0:
        lease = f"the lease runs for {in_time(left_s)} more, if it is not renewed"
        return f"{who}; {lease}", f"wait, or take it away by {force}"
    lease = f"the lease ran out {in_time(-left_s)} ago, yet it was not let go"
    return f"{who}; {lease}", f"look again in a minute; if it is stale, free it by {force}"


def look_at_leftovers(seen: Observations) -> Iterator[StageFinding]:
    for host, inspection in seen.inspected():
        found = [
            StageFinding([host], "failure", what, cure) for what, cure in _obstacles(inspection)
        ]
        if inspection.to_restore:
            what = "an agent that died has left its settings behind"
            cure = f"the next run puts back what was before, or do so now: `{_down(seen)}`"
            found.append(StageFinding([host], "warning", what, cure))
        yield from found or [StageFinding([host], "ok", "none")]
    yield from seen.not_inspected()


def _obstacles(inspection: Inspection) -> Iterator[tuple[str, str]]:
    """What else the agent says would keep it from running, such as ports in use. It looks for that
    only where nothing is missing, which earlier stages have said."""
    if inspection.is_root and not inspection.missing_programs and not inspection.nagi_link_error:
        for problem in inspection.problems:
            what, _, cure = problem.partition("; ")
            yield what, cure or "mend that, and look again"


def _down(seen: Observations) -> str:
    return "nagi down" if seen.is_local else f"nagi down -i {seen.inventory}"
