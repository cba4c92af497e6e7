# SPDX-License-Identifier: Apache-2.0
"""Checks of hosts and their software: SSH, versions, kernels, schemes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nagi_contracts.doctor import Status
from nagi_contracts.inspection import Inspection

from nagi.doctor.observations import ExperimentNeeds, Observations, StageFinding
from nagi.labs.complaints import find_cure
from nagi.plan.schemes import Scheme, check_availability_on_host, read_schemes

OLDEST_PYTHON = (3, 9)
_PYTHON_CURE = (
    "install Python 3.9 or newer there, or name another interpreter by `ansible_python_interpreter`"
)
# Program -> Debian's package that has the program, if the names differ.
_PACKAGES = {
    "ip": "iproute2",
    "ping": "iputils-ping",
    "setpriv": "util-linux",
    "sh": "dash",
    "sysctl": "procps",
    "unshare": "util-linux",
}


def check_ssh(observations: Observations) -> Iterator[StageFinding]:
    """Check whether each host was reached. This machine alone has no such finding."""
    for host in () if observations.is_local else observations.cells:
        if host in observations.unreachable:
            text = " ".join(observations.unreachable[host].split())
            cure = find_cure(text, "try `ssh` by hand, with the settings of the inventory")
            yield StageFinding([host], "failure", text, cure)
        else:
            yield StageFinding([host], "ok", "reached")


def check_versions(observations: Observations) -> Iterator[StageFinding]:
    """Check whether each host has the programs that its agent needs, in the right versions.

    A host whose agent did not answer has a failure with the output of the command.
    """
    for host, inspection in observations.list_inspected():
        problems = list(_list_version_problems(inspection, observations.needs))
        yield from (StageFinding([host], "failure", message, cure) for message, cure in problems)
        if not problems:
            yield StageFinding([host], "ok", _describe_versions(inspection))
    for host in observations.list_silent():
        text = " ".join(observations.silent.get(host, "").split()) or "it printed nothing"
        cure = find_cure(text, _PYTHON_CURE)
        yield StageFinding([host], "failure", f"nagi-agent cannot run on this host: {text}", cure)
    yield from observations.skip_unreachable()


def get_package(program: str) -> str:
    """Return the name of Debian's package that has `program`."""
    return _PACKAGES.get(program, program)


def _list_version_problems(
    inspection: Inspection, needs: ExperimentNeeds | None
) -> Iterator[tuple[str, str]]:
    """Yield a message and a cure for each program that is missing or has a wrong version.

    `needs` are the needs of an experiment, or None without an experiment.
    """
    facts, missing = inspection.facts, inspection.missing_programs
    if tuple(int(part) for part in facts.python.split(".")[:2]) < OLDEST_PYTHON:
        yield f"Python {facts.python} is too old for nagi-agent", _PYTHON_CURE
    if missing:
        packages = sorted({get_package(program) for program in missing})
        are = "is" if len(missing) == 1 else "are"
        yield f"{', '.join(missing)} {are} missing", f"install there: {', '.join(packages)}"
    iperf = facts.programs.get("iperf", "")
    if needs and needs.uses_iperf and re.match(r"iperf3?( version)? 3", iperf):
        yield f"its iperf is {iperf}", "install iperf 2 there; Debian's package is called iperf"


def _describe_versions(inspection: Inspection) -> str:
    versions = [f"Python {inspection.facts.python}"]
    for program in ("iperf", "tcpdump"):
        if number := re.search(r"\d+(\.\d+)+", inspection.facts.programs.get(program, "")):
            versions.append(f"{program} {number[0]}")
    return ", ".join(versions)


def check_kernels(observations: Observations) -> Iterator[StageFinding]:
    """Check that each kernel can run nodes, and that hosts with traffic have the same kernel.

    The agent must be root, and the kernel must have network namespaces. A kernel without cgroup2 is
    a failure only if the experiment has `max_window`; without an experiment, it is a warning.
    """
    for host, inspection in observations.list_inspected():
        findings = list(_list_kernel_problems(observations, host, inspection))
        yield from findings or [StageFinding([host], "ok", f"Linux {inspection.facts.kernel}")]
    yield from _check_same_kernel(dict(observations.list_traffic_hosts()))
    yield from observations.skip_uninspected()


def _list_kernel_problems(
    observations: Observations, host: str, inspection: Inspection
) -> Iterator[StageFinding]:
    """Yield findings if the agent is not root, or if the kernel lacks a feature that runs need."""
    if not inspection.is_root:
        cure = "connect as root, or set `ansible_become: true`"
        if observations.is_local:
            cure = "run the same command with sudo"
        who = "nagi" if observations.is_local else "nagi-agent"
        yield StageFinding([host], "failure", f"{who} is not root", cure)
    elif observations.no_namespaces:
        message = f"it cannot make network namespaces: {observations.no_namespaces}"
        yield StageFinding(
            [host], "failure", message, _cure_namespaces(observations.no_namespaces.lower())
        )
    if not inspection.cgroup2 and (observations.needs is None or observations.needs.has_max_window):
        yield StageFinding(
            [host],
            "warning" if observations.needs is None else "failure",
            "its kernel has no cgroup2, which `max_window` needs",
            "boot a kernel with CONFIG_CGROUP_BPF, or leave `max_window` out of experiments",
        )


def _cure_namespaces(reason: str) -> str:
    if "no space" in reason:
        return "raise its sysctl user.max_net_namespaces"
    if "permitted" in reason or "denied" in reason:
        return "give this container CAP_SYS_ADMIN, or run outside of it"
    return "boot a kernel with CONFIG_NET_NS"


def _check_same_kernel(traffic: dict[str, Inspection]) -> Iterator[StageFinding]:
    """Yield a failure if hosts with traffic have different kernels.

    Results of different kernels are not comparable.
    """
    hosts_by_kernel: dict[str, list[str]] = {}
    for host, inspection in traffic.items():
        hosts_by_kernel.setdefault(inspection.facts.kernel, []).append(host)
    if len(hosts_by_kernel) > 1:
        kernels = "; ".join(
            f"{kernel} on {', '.join(hosts)}" for kernel, hosts in hosts_by_kernel.items()
        )
        message = f"kernels differ between hosts with traffic: {kernels}"
        yield StageFinding(list(traffic), "failure", message, "boot the same kernel on all of them")


def check_schemes(observations: Observations) -> Iterator[StageFinding]:
    """Check which schemes the hosts with traffic can run.

    The schemes are those of the experiment, without the user's own schemes, which agents check.
    Without an experiment, all schemes are checked, and a missing scheme is only a warning.
    """
    hosts = dict(observations.list_traffic_hosts())
    status: Status = "warning" if observations.needs is None else "failure"
    available = []
    for name in observations.needs.schemes if observations.needs else read_schemes():
        if name not in read_schemes():
            continue  # a user's scheme object, which agents check before a campaign begins
        lacking = _find_lacking_hosts(read_schemes()[name], hosts)
        if not lacking:
            available.append(name)
        for (reason, cure), lacking_hosts in lacking.items():
            yield StageFinding(lacking_hosts, status, f"{name} is not available: {reason}", cure)
    if hosts and available:
        yield StageFinding(list(hosts), "ok", ", ".join(available))
    yield from observations.skip_uninspected()


def _find_lacking_hosts(
    scheme: Scheme, hosts: dict[str, Inspection]
) -> dict[tuple[str, str], list[str]]:
    """Return (reason, cure) -> hosts on which a scheme is not available for this reason."""
    lacking: dict[tuple[str, str], list[str]] = {}
    for host, inspection in hosts.items():
        availability = check_availability_on_host(scheme, inspection)
        if not availability.available:
            lacking.setdefault((availability.reason, availability.cure), []).append(host)
    return lacking
