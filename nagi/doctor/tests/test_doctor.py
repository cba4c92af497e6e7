# SPDX-License-Identifier: Apache-2.0
"""The findings of `nagi doctor`: from observations of hosts to problems with cures."""

from __future__ import annotations

import json
import subprocess

import jsonschema
import pytest
import yaml
from agent_inputs import make_batch_json
from nagi.doctor import ExperimentNeeds, Observations, collect_failures, list_findings, list_stages
from nagi.doctor.hosts import get_package
from nagi.doctor.text import describe_readiness, print_findings
from nagi.plan.scheme_objects import make_object_name
from nagi.plan.schemes import read_schemes
from nagi_agent.contracts import Batch
from nagi_agent.inspection import list_missing_programs
from nagi_contracts import __version__
from nagi_contracts.doctor import ClockReading, Doctor, Finding, PathReading, PortReading
from nagi_contracts.errors import InputError
from nagi_contracts.inspection import (
    ClockFacts,
    Holder,
    Inspection,
    InterfaceFacts,
)
from nagi_contracts.paths import ROOT, SCHEMAS
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import HostFacts
from pydantic import ValidationError
from rich.console import Console

NOW = 1_700_000_000.0
STAGES = tuple(list_stages())
# A cell: two hosts at either end, a router between them, the emulator that their links go through.
HOSTS = {"alice": "S", "relay": "N", "bob": "D", "heron": "emulator"}
LINKS = {"wired": ("S", "N"), "radio": ("N", "D")}


TAHOE = make_object_name(read_schemes()["tahoe"].object_file)


def make_interface(**changes) -> InterfaceFacts:
    facts = InterfaceFacts(
        mac="02:00:00:00:00:01",
        mtu=1500,
        up=True,
        carrier=True,
        speed_mbps=1000,
        driver="igb",
        queues=4,
        addresses=[],
        offloads=[],
        fixed_offloads=[],
        management="",
    )
    return facts.model_copy(update=changes)


def make_inspection(host: str, **changes) -> Inspection:
    """Make the inspection of a host without problems.

    `kernel`, `boot_id`, `python` and `programs` in `changes` are facts of the host.
    """
    node = HOSTS[host]
    facts = {
        "kernel": "6.12.3-amd64",
        "machine": "x86_64",
        "processors": 4,
        "python": "3.11.2",
        "programs": {
            "iperf": "iperf version 2.1.8 (12 August 2022) pthreads",
            "tcpdump": "tcpdump version 4.99.3",
        },
        "boot_id": f"boot of {host}",
    }
    facts |= {name: changes.pop(name) for name in list(changes) if name in facts}
    whole = Inspection(
        node=node,
        hostname=host,
        is_root=True,
        facts=HostFacts(**facts),
        congestion_controls=sorted(
            {scheme.congestion_control for scheme in read_schemes().values()}
        ),
        clock=ClockFacts(synchronised=True, max_error_s=0.002, keeper="chronyd"),
        interfaces={"enp2s0": make_interface()},
        missing_interfaces=[],
        nagi_link=f"nagi-link {__version__}" if node == "emulator" else None,
        nagi_link_error=None,
        io="af_xdp (driver)" if node == "emulator" else None,
        capture_error=None,
        missing_programs=[],
        processors_busy=0.03,
        free_bytes=40 * 10**9,
        cgroup2=True,
        btf=True,
        holder=None,
        to_restore=False,
        problems=[],
    )
    return whole.model_copy(update=changes)


def make_path(link: str, first: str, second: str, **changes) -> PathReading:
    reading = PathReading(
        link=link,
        from_node=first,
        to_node=second,
        sent=10,
        answered=10,
        rtt_min_ms=0.21,
        rtt_median_ms=0.25,
        mtu=1500,
        full_size_answered=10,
    )
    return reading.model_copy(update=changes)


def make_paths(host: str, **changes) -> list[PathReading]:
    node = HOSTS[host]
    return [
        make_path(link, node, ends[1 - ends.index(node)], **changes)
        for link, ends in LINKS.items()
        if node in ends
    ]


def make_port(link: str, node: str, **changes) -> PortReading:
    reading = PortReading(link=link, node=node, interface=f"to{node}", received=40, sent=40)
    return reading.model_copy(update=changes)


def see(*, hosts: dict[str, dict] | None = None, but=(), cells=None, **changes) -> Observations:
    """Make observations of a testbed without problems, but with `changes`.

    Args:
        hosts: Changes to the inspections of hosts.
        but: Hosts that were not inspected.
        cells: Host -> cell.
        changes: Other fields of the observations.
    """
    inspected = [host for host in HOSTS if host not in but]
    fields = {
        "cells": cells or dict.fromkeys(HOSTS, "bench1"),
        "inspections": {
            host: make_inspection(host, **(hosts or {}).get(host, {})) for host in inspected
        },
        "now_s": NOW,
        "inventory": "lab.yml",
        "clocks": {host: ClockReading(offset_s=0.01, halfwidth_s=0.4) for host in inspected},
        "paths": {host: make_paths(host) for host in inspected if HOSTS[host] != "emulator"},
        "ports": {
            "heron": [make_port(link, node) for link, ends in LINKS.items() for node in ends]
        },
    }
    return Observations(**(fields | changes))


def see_here(**changes) -> Observations:
    """Make observations of this machine, for the netns lab."""
    host = make_inspection("heron", node="here", interfaces={}, io=None, **changes.pop("host", {}))
    return Observations(
        **({"cells": {"here": "netns"}, "inspections": {"here": host}, "now_s": NOW} | changes)
    )


def select_stage(doctor: Doctor, stage: str, status: str) -> list[Finding]:
    return [item for item in doctor.findings if (item.stage, item.status) == (stage, status)]


def make_holder(**changes) -> Holder:
    held = Holder.model_construct(  # type: ignore[call-arg]
        owner="carol@desk",
        campaign="achievement",
        token="hers",
        since_s=NOW - 600,
        expires_s=NOW + 300,
    )
    return held.model_copy(update=changes)


def needs(*names: str, **changes) -> ExperimentNeeds:
    return ExperimentNeeds(**({"schemes": names, "traffic_nodes": frozenset("SD")} | changes))


def lose(host: str, link: str, **ports: PortReading) -> dict:
    """Return observations in which no ping of `host` on `link` was answered."""
    none = {"answered": 0, "full_size_answered": 0, "rtt_min_ms": None, "rtt_median_ms": None}
    readings = {item: make_paths(item) for item in ("alice", "relay", "bob")}
    readings[host] = [
        item.model_copy(update=none) if item.link == link else item for item in readings[host]
    ]
    counts_before = see().ports["heron"]
    counts = [ports.get(item.node, item) if item.link == link else item for item in counts_before]
    return {"paths": readings, "ports": {"heron": counts}}


REFUSED = "Failed to connect to the host via ssh: ssh: connect to host 192.0.2.7 port 22: "
RELAY_GONE = {"but": ["relay"], "unreachable": {"relay": REFUSED + "Connection timed out"}}
FPGA = f"nagi-fpga {__version__}"
SDR = f"nagi-sdr {__version__}"


def facts_of(backend: str, **facts) -> dict:
    """Return what an inspection has of a backend, as changes of make_inspection()."""
    return {"backends": {backend: facts}}


BY_P4RUNTIME = {"p4runtime": {"version": "P4Runtime, by finsy 0.30.0", "problem": None}}
SWITCHES = {
    "nagi": {"version": "nagi-switch 0.1.0", "problem": None},
    "bmv2": {"version": "1.15.5", "problem": None},
}
NO_LIBRARY = {
    "nagi": {
        "version": "",
        "problem": "nagi-switch does not run: libxdp.so.1: cannot open; provision this host with "
        "nagi_switch_target: nagi",
    }
}
NO_CARRIER = {"enp2s0": make_interface(carrier=False)}

# (stage, status, observations, hosts, words of the message, words of the cure)
CASES = [
    # SSH
    ("ssh", "ok", see(), ["relay"], "reached", ""),
    ("ssh", "failure", see(**RELAY_GONE), ["relay"], "Connection timed out", "switch it on"),
    *(
        ("ssh", "failure", see(but=["bob"], unreachable={"bob": text}), ["bob"], text[-20:], cure)
        for text, cure in [
            (REFUSED + "Connection refused", "start sshd"),
            (REFUSED + "No route to host", "management network"),
            ("root@192.0.2.7: Permission denied (publickey).", "ansible_ssh_private_key_file"),
            ("WARNING: UNPROTECTED PRIVATE KEY FILE! ... Permission denied", "chmod 600"),
            ("ssh: Could not resolve hostname bobb: Name or service not known", "ansible_host"),
            ("Host key verification failed.", "ssh-keygen -R"),
            ("Missing sudo password", "ansible_become_password"),
            ("kex_exchange_identification: banner line too long", "try `ssh` by hand"),
        ]
    ),
    # Versions
    ("versions", "ok", see(), ["bob"], "Python 3.11.2, iperf 2.1.8, tcpdump 4.99.3", ""),
    ("versions", "skipped", see(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("versions", "failure", see(hosts={"bob": {"python": "3.8.10"}}), ["bob"],
     "Python 3.8.10 is too old", "3.9 or newer"),
    ("versions", "failure", see(hosts={"bob": {"missing_programs": ["iperf", "setpriv"]}}),
     ["bob"], "iperf, setpriv are missing", "install there: iperf, util-linux"),
    ("versions", "ok", see(hosts={"bob": {"programs": {"iperf": "iperf 3.12 (cJSON)"}}}),
     ["bob"], "iperf 3.12", ""),
    ("versions", "failure", see(hosts={"bob": {"programs": {"iperf": "iperf 3.12 (cJSON)"}}},
     needs=needs("cubic", uses_iperf=True)), ["bob"], "its iperf is iperf 3.12", "install iperf 2"),
    ("versions", "failure", see(but=["bob"], silent={"bob": "python3: not found"}), ["bob"],
     "nagi-agent cannot run on this host: python3: not found", "ansible_python_interpreter"),
    ("versions", "failure", see(but=["bob"]), ["bob"], "it printed nothing", "Python 3.9"),
    ("versions", "failure", see(but=["bob"], silent={"bob": "sudo: a password is required"}),
     ["bob"], "a password is required", "NOPASSWD"),
    # Kernels
    ("kernel", "ok", see(), ["bob"], "Linux 6.12.3-amd64", ""),
    ("kernel", "skipped", see(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("kernel", "skipped", see(but=["bob"]), ["bob"], "no answer", "see versions"),
    ("kernel", "warning", see(hosts={"bob": {"cgroup2": False}}), ["bob"], "no cgroup2",
     "CONFIG_CGROUP_BPF"),
    ("kernel", "failure",
     see(hosts={"bob": {"cgroup2": False}}, needs=needs("cubic", has_max_window=True)), ["bob"],
     "no cgroup2", "CONFIG_CGROUP_BPF"),
    ("kernel", "failure", see(hosts={"bob": {"is_root": False}}), ["bob"], "is not root",
     "ansible_become"),
    ("kernel", "failure", see_here(host={"is_root": False}), ["here"], "is not root", "with sudo"),
    ("kernel", "failure", see_here(no_namespaces="unshare: Operation not permitted"), ["here"],
     "cannot make network namespaces: unshare", "CAP_SYS_ADMIN"),
    ("kernel", "failure", see_here(no_namespaces="No space left on device"), ["here"],
     "cannot make network namespaces", "user.max_net_namespaces"),
    ("kernel", "failure", see_here(no_namespaces="Invalid argument"), ["here"],
     "cannot make network namespaces", "CONFIG_NET_NS"),
    ("kernel", "failure", see(hosts={"bob": {"kernel": "6.1.0"}}), ["alice", "relay", "bob"],
     "6.12.3-amd64 on alice, relay; 6.1.0 on bob", "the same kernel"),
    # Schemes
    ("schemes", "ok", see(), ["alice", "relay", "bob"], "newreno, sack, cubic, bbr", ""),
    ("schemes", "ok", see(needs=needs("bbr")), ["alice", "bob"], "bbr", ""),
    ("schemes", "ok", see_here(needs=needs("cubic")), ["here"], "cubic", ""),
    ("schemes", "ok", see(), ["alice", "relay", "bob"], "tahoe, reno, vegas, westwood", ""),
    ("schemes", "skipped", see(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("schemes", "warning", see(hosts={"bob": {"congestion_controls": [
        name for name in make_inspection("bob").congestion_controls if name != "bbr"]}}),
     ["bob"], "bbr is not available: kernel 6.12.3-amd64 has no tcp_bbr", "CONFIG_TCP_CONG_BBR"),
    ("schemes", "failure",
     see(hosts={"bob": {"congestion_controls": ["reno"]}}, needs=needs("cubic")),
     ["bob"], "cubic is not available", "CONFIG_TCP_CONG_CUBIC"),
    ("schemes", "warning", see(hosts={"bob": {"refused_objects": {TAHOE: "tahoe: no"}}}), ["bob"],
     "tahoe is not available: tahoe: no", "another kernel"),
    ("schemes", "failure", see(hosts={"alice": {"refused_objects": {TAHOE: "kernel 6.1 has no "
        "links; boot Linux 6.10 or newer"}}}, needs=needs("tahoe")),
     ["alice"], "tahoe is not available: kernel 6.1 has no links", "boot Linux 6.10"),
    # Interfaces
    ("interfaces", "ok", see(), ["heron"], "enp2s0", ""),
    ("interfaces", "ok", see(hosts={
        "bob": {"interfaces": {"eth1": make_interface(offloads=["gro"])}}}),
     ["bob"], "eth1 (for runs, nagi switches off: gro)", ""),
    ("interfaces", "skipped", see(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("interfaces", "skipped",
     see(hosts={"bob": {"interfaces": {"eth1": make_interface(up=False, carrier=None)}}}, paths={}),
     ["bob"],
     "eth1: down", "`nagi doctor` tries the links"),
    ("interfaces", "failure", see(hosts={"bob": {"interfaces": NO_CARRIER}}), ["bob"],
     "enp2s0 has no carrier", "plug its cable in"),
    ("interfaces", "failure", see(hosts={"bob": {"missing_interfaces": ["enp9s0"]}}), ["bob"],
     "it has no interface enp9s0", "nagi_links"),
    ("interfaces", "failure",
     see(hosts={"bob": {"interfaces": {"eth0": make_interface(
         management="has the default route (IPv4)")}}}), ["bob"],
     "eth0 has the default route (IPv4)",
     "test traffic needs an interface of its own"),
    ("interfaces", "failure",
     see(hosts={"bob": {"interfaces": {"eth1": make_interface(
         fixed_offloads=["generic-receive-offload"], driver="r8169")}}}), ["bob"],
     "generic-receive-offload on and cannot switch it off", "driver r8169"),
    # Clocks
    ("clocks", "ok", see(), ["bob"], "synchronised by chronyd", ""),
    ("clocks", "ok", see_here(host={"clock": ClockFacts(
        synchronised=False, max_error_s=16.0, keeper=None)}), ["here"], "one clock", ""),
    ("clocks", "ok", see(hosts={host: {"boot_id": "one", "clock": ClockFacts(
        synchronised=False, max_error_s=16.0, keeper=None)} for host in HOSTS}), ["bob"],
     "one clock", ""),
    ("clocks", "skipped", see(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("clocks", "skipped", see(clocks={}), ["bob"], "was not compared", "check again"),
    ("clocks", "warning", see(hosts={"bob": {"clock": ClockFacts(
        synchronised=False, max_error_s=16.0, keeper="chronyd")}}), ["bob"],
     "not synchronised, though chronyd runs", "chrony"),
    ("clocks", "warning", see(hosts={"bob": {"clock": ClockFacts(
        synchronised=True, max_error_s=0.12, keeper="chronyd")}}), ["bob"],
     "clock error of up to 0.12 s", "closer time server"),
    ("clocks", "failure",
     see(clocks={**see().clocks, "bob": ClockReading.from_exchange(100, 101, 98)}),
     ["bob"], "2.50 s (± 0.5 s) behind this machine's", "chrony"),
    ("clocks", "failure", see(clocks={
        **{host: ClockReading(offset_s=0.0, halfwidth_s=0.01) for host in HOSTS},
        "alice": ClockReading(offset_s=0.055, halfwidth_s=0.01),
        "bob": ClockReading(offset_s=-0.055, halfwidth_s=0.01)}),
     ["alice", "bob"], "their clocks are 0.11 s (± 0.02 s) apart", "chrony"),
    # Paths
    ("paths", "ok", see(), ["bob"], "N on link radio: 0.21 ms, median 0.25 ms", ""),
    ("paths", "skipped", see(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("paths", "skipped", see(paths={}, paths_left_out="bob is held by carol"),
     ["alice", "relay", "bob"], "bob is held by carol", "check again"),
    ("paths", "warning", see(paths={**see().paths, "bob": make_paths("bob", answered=8)}), ["bob"],
     "2 of 10 pings to N on link radio were lost", "cables"),
    ("paths", "failure", see(**(lose("bob", "radio") | {"ports": {}})), ["bob"],
     "no answer from N on link radio: heron reported no counters", "cables"),
    ("paths", "failure", see(**lose(
        "bob", "radio", D=make_port("radio", "D", received=0))), ["bob"],
     "nothing arrived at heron's toD", "`nagi_links` with heron's"),
    ("paths", "failure", see(**lose("bob", "radio", N=make_port("radio", "N", sent=0))), ["bob"],
     "heron sent nothing at toN", "nagi-link.log"),
    ("paths", "failure", see(**lose(
        "bob", "radio", N=make_port("radio", "N", received=0))), ["bob"],
     "heron sent the packets at toN", "no cables are swapped"),
    # MTU
    ("mtu", "ok", see(), ["bob"], "1500 bytes to N on link radio", ""),
    ("mtu", "skipped", see(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("mtu", "skipped", see(**lose("bob", "radio")), ["bob"], "no answer from N", "see paths"),
    ("mtu", "warning", see(paths={**see().paths, "bob": make_paths("bob", full_size_answered=7)}),
     ["bob"], "only 7 of 10 packets of 1500 bytes to N on link radio", "cables"),
    ("mtu", "failure", see(paths={**see().paths, "bob": make_paths("bob", full_size_answered=0)}),
     ["bob"], "packets of 1500 bytes to N on link radio are lost", "an MTU of 1500 bytes"),
    # Captures
    ("capture", "ok", see(), ["bob"], "tcpdump captures", ""),
    ("capture", "skipped", see(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("capture", "skipped", see(hosts={"bob": {"is_root": False}}), ["bob"], "root", "see kernel"),
    ("capture", "skipped", see(hosts={"bob": {"missing_programs": ["tcpdump"]}}), ["bob"],
     "missing", "see versions"),
    *(
        ("capture", "failure", see(hosts={"bob": {"capture_error": text}}), ["bob"], text, cure)
        for text, cure in [
            ("there is no user nagi", "nagi_user"),
            ("You don't have permission to perform this capture", "CAP_NET_RAW"),
            ("enp2s0: No such device exists", "by hand"),
        ]
    ),
    # Emulator
    ("emulator", "ok", see(), ["heron"], f"nagi-link {__version__}, af_xdp (driver)", ""),
    ("emulator", "skipped", see(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("emulator", "skipped", see_here(), ["here"], "packet I/O", "links.json"),
    ("emulator", "warning", see(hosts={"heron": {"io": "af_packet: no XDP sockets here"}}),
     ["heron"], "uses af_packet: no XDP sockets here", "CONFIG_XDP_SOCKETS"),
    ("emulator", "failure", see(hosts={"heron": {
        "nagi_link": None, "nagi_link_error": "libbpf.so.1: cannot open"}}), ["heron"],
     "does not run: libbpf.so.1", "`nagi_link`"),
    ("emulator", "failure", see_here(host={"nagi_link": None, "nagi_link_error": "No such file"}),
     ["here"], "does not run: No such file", "make setup"),
    ("emulator", "failure", see(hosts={"heron": {"nagi_link": "nagi-link 0.0.1"}}), ["heron"],
     f"nagi-link 0.0.1, but this is nagi {__version__}", "install nagi-link"),
    # Radios
    ("radio", "ok", see(), ["heron"], "no nagi-sdr is installed", ""),
    ("radio", "ok", see(hosts={"heron": facts_of("radio", version=SDR)},
     needs=needs(parts={"radio": ("radio",)})),
     ["heron"], SDR, ""),
    ("radio", "skipped", see(but=["heron"]), ["heron"], "no answer", "see versions"),
    ("radio", "warning", see(hosts={"heron": facts_of("radio", error="No module named gnuradio")}),
     ["heron"], "does not run: No module named gnuradio", "make sdr"),
    ("radio", "warning", see(hosts={"heron": facts_of("radio", version="nagi-sdr 0.0.1")}),
     ["heron"], f"nagi-sdr 0.0.1, but this is nagi {__version__}", "`nagi_sdr`"),
    ("radio", "failure", see(needs=needs(parts={"radio": ("radio", "core")})), ["heron"],
     "links radio, core are radios, and there is no nagi-sdr", "`make sdr` there"),
    ("radio", "failure", see(hosts={"heron": facts_of("radio", error="No module named gnuradio")},
     needs=needs(parts={"radio": ("radio",)})), ["heron"], "No module named gnuradio", "make sdr"),
    ("radio", "failure", see(hosts={"heron": facts_of("radio", version="nagi-sdr 0.0.1")},
     needs=needs(parts={"radio": ("radio",)})), ["heron"], "nagi-sdr 0.0.1", "make sdr"),
    # Simulated FPGAs
    ("fpga", "ok", see(), ["heron"], "no nagi-fpga is installed", ""),
    ("fpga", "ok", see(hosts={"heron": facts_of("fpga", version=FPGA)},
     needs=needs(parts={"fpga": ("radio",)})),
     ["heron"], FPGA, ""),
    ("fpga", "skipped", see(but=["heron"]), ["heron"], "no answer", "see versions"),
    ("fpga", "warning", see(hosts={"heron": facts_of("fpga", version="nagi-fpga 0.0.1")}),
     ["heron"], f"nagi-fpga 0.0.1, but this is nagi {__version__}", "`nagi_fpga`"),
    ("fpga", "failure", see(needs=needs(parts={"fpga": ("radio",)})), ["heron"],
     "link radio is an FPGA link, and there is no nagi-fpga", "`nagi_fpga`"),
    ("fpga", "failure", see(hosts={"heron": facts_of("fpga", error="killed")},
     needs=needs(parts={"fpga": ("radio",)})), ["heron"], "does not run: killed", "`nagi_fpga`"),
    # Switches
    ("switch", "ok", see(), ["bob"], "none is installed", ""),
    ("switch", "ok", see(hosts={"relay": facts_of("switch", **SWITCHES)}, needs=needs(
        parts={"switch": (("N", "bmv2"),)})), ["relay"], "nagi-switch 0.1.0, simple_switch 1.15.5",
     ""),
    ("switch", "ok", see_here(host=facts_of("switch", **SWITCHES)), ["here"],
     "simple_switch 1.15.5", ""),
    ("switch", "skipped", see(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("switch", "skipped", see(needs=needs(parts={"switch": (("N", "nagi"),)})), ["relay"],
     "campaigns copy nagi-switch to the host", "nagi_switch_target: nagi"),
    ("switch", "warning", see(hosts={"relay": facts_of("switch", **NO_LIBRARY)}), ["relay"],
     "nagi-switch does not run: libxdp.so.1: cannot open", "nagi_switch_target: nagi"),
    ("switch", "failure", see(hosts={"relay": facts_of("switch", **NO_LIBRARY)}, needs=needs(
        parts={"switch": (("N", "nagi"),)})), ["relay"], "libxdp.so.1: cannot open", "provision"),
    ("switch", "failure", see(hosts={"relay": facts_of("switch", nagi=SWITCHES["nagi"])},
     needs=needs(parts={"switch": (("N", "bmv2"),)})), ["relay"], "there is no simple_switch",
     "nagi_switch_target: bmv2, or use --switch nagi"),
    ("switch", "ok", see(hosts={"relay": facts_of("switch", **BY_P4RUNTIME)}), ["relay"],
     "P4Runtime, by finsy 0.30.0", ""),
    ("switch", "failure", see(needs=needs(parts={"switch": (("N", "p4runtime"),)})), ["relay"],
     "the inventory does not contain the host's switch", "set nagi_p4runtime in the inventory"),
    # Spare processor time
    ("processors", "ok", see(hosts={"bob": {"processors_busy": 0.2}}), ["bob"], "20 % busy", ""),
    ("processors", "skipped", see(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("processors", "warning", see(hosts={"bob": {"processors_busy": 0.5}}), ["bob"], "50 % busy",
     "`top`"),
    # Disk
    ("disk", "ok", see(), ["bob"], "40 GB free", ""),
    ("disk", "ok", see(hosts={"bob": {"free_bytes": 10**6}}, needs=needs(free_bytes=10**6)),
     ["bob"], "1.0 MB free", ""),
    ("disk", "skipped", see(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("disk", "warning", see(hosts={"bob": {"free_bytes": 10**9 - 1}}), ["bob"], "only 1000 MB",
     "`nagi plan`"),
    ("disk", "failure", see(
        hosts={"bob": {"free_bytes": 3 * 10**9}}, needs=needs(free_bytes=5 * 10**9)), ["bob"],
     "3.0 GB are free for records, and 5.0 GB are needed", "nagi_spool"),
    # Lock
    ("lock", "ok", see(), ["bob"], "free", ""),
    ("lock", "ok", see(hosts={"bob": {"holder": make_holder()}}, token="hers"), ["bob"],
     "reserved by this campaign", ""),
    ("lock", "skipped", see(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("lock", "failure", see(hosts={"bob": {"holder": make_holder()}}, token="mine"), ["bob"],
     "carol@desk reserved it 10 min ago, for achievement; the lease ends in 5 min",
     "wait, or release the host with `nagi down -i lab.yml --force`"),
    ("lock", "failure", see(hosts={"bob": {"holder": make_holder(expires_s=NOW - 7200)}}), ["bob"],
     "the lease expired 2.0 h ago, but the host was not released",
     "`nagi down -i lab.yml --force`"),
    ("lock", "failure", see(
        hosts={"bob": {"holder": make_holder(since_s=NOW - 300, expires_s=NOW + 300)}},
        clocks={"bob": ClockReading(offset_s=-300.0, halfwidth_s=0.1)}), ["bob"],
     "reserved it 0 s ago, for achievement; the lease ends in 10 min", "wait"),
    # Leftovers
    ("leftovers", "ok", see(), ["bob"], "none", ""),
    ("leftovers", "skipped", see(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("leftovers", "warning", see(hosts={"bob": {"to_restore": True}}), ["bob"],
     "did not restore the host", "nagi down -i lab.yml"),
    ("leftovers", "failure", see(hosts={"bob": {"problems": [
        "port 5001 of 198.18.1.2 cannot be used: Address already in use; end the program"]}}),
     ["bob"], "port 5001 of 198.18.1.2 cannot be used: Address already in use",
     "end the program"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("stage", "status", "observations", "hosts", "what", "cure"),
    CASES,
    ids=[f"{stage}-{status}-{what[:30]}" for stage, status, _, _, what, _ in CASES],
)
def test_what_is_seen_and_what_is_found(stage, status, observations, hosts, what, cure):
    doctor = list_findings(observations)
    findings = select_stage(doctor, stage, status)
    (finding,) = [item for item in findings if item.hosts == hosts and what in item.what]
    assert cure in finding.cure
    if status in ("warning", "failure"):  # and nothing else is
        assert findings == [finding]
        assert doctor.status == status
    assert doctor.exit_status == (2 if doctor.count("failure") else 0)


def test_every_stage_has_a_case_for_every_status_that_it_knows():
    statuses = {"ok", "skipped", "warning", "failure"}
    never = {("ssh", "skipped"), ("ssh", "warning"), ("versions", "warning"),
             ("interfaces", "warning"), ("capture", "warning"), ("lock", "warning"),
             ("processors", "failure")}  # fmt: skip
    cases = {(stage, status) for stage, status, *_ in CASES}
    assert cases | never == {(stage, status) for stage in STAGES for status in statuses}
    assert not cases & never


def test_a_testbed_with_which_all_is_well_is_ready():
    doctor = list_findings(see())
    assert doctor.status == "ok" and doctor.exit_status == 0
    assert tuple(dict.fromkeys(item.stage for item in doctor.findings)) == STAGES
    assert {item.cell for item in doctor.findings} == {"bench1"}
    assert collect_failures(doctor) is None


def test_a_host_that_is_not_reached_is_in_every_stage():
    doctor = list_findings(see(**RELAY_GONE))
    for stage in STAGES:
        (finding,) = [
            finding
            for finding in doctor.findings
            if finding.stage == stage and "relay" in finding.hosts
        ]
        assert finding.status == ("failure" if stage == "ssh" else "skipped")
    assert doctor.count("failure") == 1


def test_this_machine_has_no_stages_of_other_hosts():
    doctor = list_findings(see_here())
    stages = {item.stage for item in doctor.findings}
    assert set(STAGES) - stages == {"ssh", "interfaces", "paths", "mtu"}
    assert doctor.exit_status == 0


def test_kernels_of_routers_and_emulators_may_differ():
    other = {host: {"kernel": "6.1.0"} for host in ("relay", "heron")}
    assert list_findings(see(hosts=other, needs=needs("cubic"))).exit_status == 0
    assert list_findings(see(hosts=other)).exit_status == 2  # it is not known what relay will be


def test_kernels_are_compared_across_cells_and_clocks_within():
    cells = {"alice": "bench1", "relay": "bench1", "bob": "bench2", "heron": "bench2"}
    doctor = list_findings(
        see(
            hosts={"bob": {"kernel": "6.1.0"}},
            cells=cells,
            clocks={
                host: ClockReading(offset_s=0.04 if cell == "bench1" else -0.04, halfwidth_s=0)
                for host, cell in cells.items()
            },
        )
    )
    (kernels,) = select_stage(doctor, "kernel", "failure")
    assert kernels.cell is None and set(kernels.hosts) == {"alice", "relay", "bob"}
    assert not select_stage(doctor, "clocks", "failure")


def test_of_clocks_that_are_apart_the_farthest_are_named():
    offsets = {"alice": 0.05, "relay": 0.02, "bob": -0.05, "heron": -0.02}
    clocks = {
        host: ClockReading(offset_s=offset, halfwidth_s=0.001) for host, offset in offsets.items()
    }
    (finding,) = select_stage(list_findings(see(clocks=clocks)), "clocks", "failure")
    assert finding.hosts == ["alice", "bob"]


def test_hosts_that_share_a_clock_are_not_apart():
    """Readings of one clock may differ by the way they were made."""
    clocks = {
        "alice": ClockReading(offset_s=0.05, halfwidth_s=0.0),
        "bob": ClockReading(offset_s=-0.05, halfwidth_s=0.0),
    }
    same = {host: {"boot_id": "same"} for host in ("alice", "bob")}
    assert select_stage(list_findings(see(clocks=clocks)), "clocks", "failure")
    assert not select_stage(list_findings(see(clocks=clocks, hosts=same)), "clocks", "failure")


def test_an_agent_s_problems_are_not_said_twice():
    problems = ["the agent is not root; connect as root", "iperf is not installed; do"]
    doctor = list_findings(
        see(hosts={"bob": {"is_root": False, "missing_programs": ["iperf"], "problems": problems}})
    )
    assert [item.stage for item in doctor.findings if item.status == "failure"] == [
        "versions",
        "kernel",
    ]


def test_what_an_experiment_wants_follows_from_its_plans():
    plan = RunPlan.read(
        SCHEMAS / "example" / "campaign" / "runs" / "6ca9af3cee70cdc8" / "plan.json"
    )
    experiment_needs = ExperimentNeeds.from_plans([plan], free_bytes=7)
    assert experiment_needs.schemes == tuple(dict.fromkeys(flow.scheme for flow in plan.flows))
    assert experiment_needs.traffic_nodes == {"client", "server"}
    assert experiment_needs.has_max_window and experiment_needs.free_bytes == 7
    uncapped = [flow.model_copy(update={"max_window": None}) for flow in plan.flows]
    uncapped_plan = plan.model_copy(update={"flows": uncapped})
    assert not ExperimentNeeds.from_plans([uncapped_plan]).has_max_window


def test_failures_are_problems_with_host_cause_and_cure():
    doctor = list_findings(see(hosts={"bob": {"interfaces": NO_CARRIER, "processors_busy": 0.3}}))
    error = collect_failures(doctor, "lab.yml")
    assert isinstance(error, InputError)
    assert str(error).startswith("lab.yml: bob: enp2s0 has no carrier; plug its cable in")
    assert len(error.problems) == 1


def test_json_keeps_to_its_schema():
    schema = json.loads((SCHEMAS / "doctor.schema.json").read_text())
    for doctor in (
        list_findings(see()),
        list_findings(see(**RELAY_GONE)),
        list_findings(see_here()),
    ):
        text = doctor.model_dump_json()
        jsonschema.validate(json.loads(text), schema)
        assert Doctor.model_validate_json(text) == doctor


def test_a_finding_has_a_cure_unless_all_is_well():
    finding = {"stage": "disk", "cell": None, "hosts": ["bob"], "what": "said"}
    for status, cure in (("ok", "a cure"), ("warning", ""), ("skipped", "")):
        with pytest.raises(ValidationError):
            Finding(**finding, status=status, cure=cure)


def print_to_text(doctor: Doctor, width: int = 80) -> str:
    console = Console(width=width, record=True, highlight=False, emoji=False, file=None)
    with console.capture() as captured:
        print_findings(console, doctor)
    return captured.get()


def test_text_has_a_line_a_stage_where_all_is_well():
    lines = print_to_text(list_findings(see(needs=needs("cubic", "bbr")))).splitlines()
    assert [line.split()[0] for line in lines[:-2]] == [
        *("SSH", "versions", "kernel", "schemes", "interfaces", "clocks", "paths", "MTU"),
        *("capture", "emulator", "radio", "FPGA", "switch", "spare", "disk", "lock", "leftovers"),
    ]
    assert all(" ok " in line for line in lines[:-2])
    assert "4 hosts: Linux 6.12.3-amd64" in lines[2]
    assert lines[-1] == "ready"


@pytest.mark.parametrize("width", [60, 80, 200])
def test_text_says_everything_else_in_full(width):
    doctor = list_findings(
        see(
            hosts={
                "bob": {"holder": make_holder(), "interfaces": NO_CARRIER, "kernel": "6.1.0"},
                "heron": {"io": "af_packet: AF_XDP is not supported", "processors_busy": 0.3},
            },
            **RELAY_GONE,
        )
    )
    text = print_to_text(doctor, width)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    words = " ".join(text.split())
    for finding in doctor.findings:
        if finding.status != "ok":
            between = ";" if finding.status == "skipped" else " cure:"
            assert f"{finding.what}{between} {finding.cure}" in words
    assert text.splitlines()[-1] == "not ready: 4 failures"
    assert "\x1b" not in text  # no terminal


def test_the_last_line_counts_warnings():
    assert (
        describe_readiness(list_findings(see(hosts={"bob": {"to_restore": True}})))
        == "ready with 1 warning"
    )
    two = {"bob": {"to_restore": True, "processors_busy": 0.4}}
    assert describe_readiness(list_findings(see(hosts=two))) == "ready with 2 warnings"


def test_a_terminal_has_colours():
    console = Console(width=80, force_terminal=True, color_system="standard")
    with console.capture() as captured:
        print_findings(console, list_findings(see(**RELAY_GONE)))
    assert "\x1b[1;31mfailure" in captured.get()


def test_words_of_hosts_are_not_taken_for_markup():
    error = "[bold]ssh[/bold]: connect to host [2001:db8::1]: Connection refused"
    text = print_to_text(list_findings(see(but=["bob"], unreachable={"bob": error})))
    assert error in " ".join(text.split())


@pytest.mark.parametrize(("virtual", "lists"), [(True, ["run"]), (False, ["run", "build"])])
def test_make_installs_every_program_that_agents_ask_for(virtual, lists, monkeypatch, tmp_path):
    install = [ROOT / "tools" / "install_packages.sh", "--list", *lists]
    installed = subprocess.check_output(install, text=True).split()
    monkeypatch.setenv("PATH", "")  # all are missing
    batch = make_batch_json(tmp_path, virtual=virtual)
    missing = list_missing_programs(Batch.from_json(batch))
    assert missing and {get_package(program) for program in missing} <= {*installed}


def test_provisioning_installs_every_program_that_agents_ask_for(monkeypatch, tmp_path):
    role = ROOT / "ansible/ansible_collections/nagi/testbed/roles/packages/defaults/main.yml"
    installed = yaml.safe_load(role.read_text())["nagi_host_packages"]
    monkeypatch.setenv("PATH", "")  # all are missing
    missing = list_missing_programs(Batch.from_json(make_batch_json(tmp_path, virtual=False)))
    assert missing and {get_package(program) for program in missing} <= {*installed}
