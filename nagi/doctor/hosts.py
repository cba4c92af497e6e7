# SPDX-License-Identifier: Apache-2.0
"""Which hosts there are, and what they are: SSH, versions, kernels, schemes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nagi_contracts.doctor import Status
from nagi_contracts.inspection import Inspection

from nagi.doctor.observations import Observations, StageFinding, Wanted
from nagi.labs.complaints import find_cure
from nagi.plan.schemes import Scheme, check_availability_on_host, read_schemes

OLDEST_PYTHON = (3, 9)
_PYTHON_CURE = "install Python 3.9 or newer there; see `ansible_python_interpreter`"
# Debian's packages that are not called as what is in them.
_PACKAGES = {
    "ip": "iproute2",
    "ping": "iputils-ping",
    "setpriv": "util-linux",
    "sh": "dash",
    "sysctl": "procps",
    "unshare": "util-linux",
}


def look_at_ssh(seen: Observations) -> Iterator[StageFinding]:
    for host in () if seen.is_local else seen.cells:
        if host in seen.unreachable:
            said = " ".join(seen.unreachable[host].split())
            cure = find_cure(said, "try `ssh` to it by hand, as the inventory has it")
            yield StageFinding([host], "failure", said, cure)
        else:
            yield StageFinding([host], "ok", "reached")


def look_at_versions(seen: Observations) -> Iterator[StageFinding]:
    for host, inspection in seen.inspected():
        wrong = list(_wrong_versions(inspection, seen.wanted))
        yield from (StageFinding([host], "failure", what, cure) for what, cure in wrong)
        if not wrong:
            yield StageFinding([host], "ok", _versions(inspection))
    for host in seen.without_agent():
        said = " ".join(seen.silent.get(host, "").split()) or "it said nothing"
        cure = find_cure(said, _PYTHON_CURE)
        yield StageFinding([host], "failure", f"nagi-agent cannot run there: {said}", cure)
    yield from seen.without_ssh()


def package_of(program: str) -> str:
    """Debian's package that has `program`."""
    return _PACKAGES.get(program, program)


def _wrong_versions(inspection: Inspection, wanted: Wanted | None) -> Iterator[tuple[str, str]]:
    """Yield what is wrong, and its cure. `wanted`: by an experiment; None: none was named."""
    facts, missing = inspection.facts, inspection.missing_programs
    if tuple(int(part) for part in facts.python.split(".")[:2]) < OLDEST_PYTHON:
        yield f"Python {facts.python} is too old for nagi-agent", _PYTHON_CURE
    if missing:
        packages = sorted({package_of(program) for program in missing})
        are = "is" if len(missing) == 1 else "are"
        yield f"{', '.join(missing)} {are} missing", f"install there: {', '.join(packages)}"
    iperf = facts.programs.get("iperf", "")
    if wanted and wanted.iperf and re.match(r"iperf3?( version)? 3", iperf):
        yield f"its iperf is {iperf}", "install iperf 2 there; Debian's package is called iperf"


def _versions(inspection: Inspection) -> str:
    found = [f"Python {inspection.facts.python}"]
    for program in ("iperf", "tcpdump"):
        if number := re.search(r"\d+(\.\d+)+", inspection.facts.programs.get(program, "")):
            found.append(f"{program} {number[0]}")
    return ", ".join(found)


def look_at_kernels(seen: Observations) -> Iterator[StageFinding]:
    for host, inspection in seen.inspected():
        found = list(_kernel(seen, host, inspection))
        yield from found or [StageFinding([host], "ok", f"Linux {inspection.facts.kernel}")]
    yield from _differing_kernels(dict(seen.traffic()))
    yield from seen.not_inspected()


def _kernel(seen: Observations, host: str, inspection: Inspection) -> Iterator[StageFinding]:
    if not inspection.is_root:
        cure = "connect as root, or give it `ansible_become: true`"
        if seen.is_local:
            cure = "run the same command with sudo"
        who = "nagi" if seen.is_local else "nagi-agent"
        yield StageFinding([host], "failure", f"{who} is not root", cure)
    elif seen.no_namespaces:
        what = f"it cannot make network namespaces: {seen.no_namespaces}"
        yield StageFinding([host], "failure", what, _namespaces_cure(seen.no_namespaces.lower()))
    if not inspection.cgroup2 and (seen.wanted is None or seen.wanted.window_cap):
        yield StageFinding(
            [host],
            "warning" if seen.wanted is None else "failure",
            "its kernel has no cgroup2, which `max_window` needs",
            "boot a kernel with CONFIG_CGROUP_BPF, or leave `max_window` out of experiments",
        )


def _namespaces_cure(why: str) -> str:
    if "no space" in why:
        return "raise its sysctl user.max_net_namespaces"
    if "permitted" in why or "denied" in why:
        return "give the container you are in CAP_SYS_ADMIN, or leave it"
    return "boot a kernel with CONFIG_NET_NS"


def _differing_kernels(traffic: dict[str, Inspection]) -> Iterator[StageFinding]:
    """Results of different kernels are not results of one campaign."""
    by_kernel: dict[str, list[str]] = {}
    for host, inspection in traffic.items():
        by_kernel.setdefault(inspection.facts.kernel, []).append(host)
    if len(by_kernel) > 1:
        which = "; ".join(f"{kernel} on {', '.join(on)}" for kernel, on in by_kernel.items())
        what = f"kernels differ between hosts with traffic: {which}"
        yield StageFinding(list(traffic), "failure", what, "boot the same kernel on all of them")


def look_at_schemes(seen: Observations) -> Iterator[StageFinding]:
    hosts = dict(seen.traffic())
    status: Status = "warning" if seen.wanted is None else "failure"
    ready = []
    for name in seen.wanted.schemes if seen.wanted else read_schemes():
        if name not in read_schemes():
            continue  # a user's own object, which agents are asked about before a campaign begins
        lacking = _lacking(read_schemes()[name], hosts)
        if not lacking:
            ready.append(name)
        for (reason, cure), on in lacking.items():
            yield StageFinding(on, status, f"{name} is not available: {reason}", cure)
    if hosts and ready:
        yield StageFinding(list(hosts), "ok", ", ".join(ready))
    yield from seen.not_inspected()


def _lacking(scheme: Scheme, hosts: dict[str, Inspection]) -> dict[tuple[str, str], list[str]]:
    """Hosts on which a scheme is not available, by the reason and its cure."""
    found: dict[tuple[str, str], list[str]] = {}
    for host, inspection in hosts.items():
        here = check_availability_on_host(scheme, inspection)
        if not here.available:
            found.setdefault((here.reason, here.cure), []).append(host)
    return found
