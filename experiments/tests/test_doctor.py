# SPDX-License-Identifier: Apache-2.0
"""The judgement of `nagi doctor`: from what is seen of hosts to what is wrong, and what helps."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
from agent_inputs import batch_json
from nagi.doctor import Observations, Wanted, failures, judge
from nagi.doctor.hosts import package_of
from nagi.doctor.text import last_line, show
from nagi.plan.scheme_objects import object_name
from nagi.plan.schemes import schemes
from nagi_agent.contracts import Batch
from nagi_agent.inspection import missing_programs
from nagi_contracts import __version__
from nagi_contracts.doctor import STAGES, ClockReading, Doctor, Finding, PathReading, PortReading
from nagi_contracts.errors import InputError
from nagi_contracts.inspection import (
    ClockFacts,
    Holder,
    Inspection,
    InterfaceFacts,
    SwitchFacts,
)
from nagi_contracts.paths import ROOT, SCHEMAS
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import HostFacts
from pydantic import ValidationError
from rich.console import Console

NOW = 1_700_000_000.0
# A cell: two hosts at either end, a router between them, the emulator that their links go through.
HOSTS = {"alice": "S", "relay": "N", "bob": "D", "heron": "emulator"}
LINKS = {"wired": ("S", "N"), "radio": ("N", "D")}


TAHOE = object_name(schemes()["tahoe"].object_file)


def interface(**changes) -> InterfaceFacts:
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
        is_management=False,
    )
    return facts.model_copy(update=changes)


def inspection(host: str, **changes) -> Inspection:
    """A host with which all is well. `kernel`, `boot_id`, `python`, `programs`: of its facts."""
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
    found = Inspection(
        node=node,
        hostname=host,
        is_root=True,
        facts=HostFacts(**facts),
        congestion_controls=sorted({each.congestion_control for each in schemes().values()}),
        clock=ClockFacts(synchronised=True, max_error_s=0.002, keeper="chronyd"),
        interfaces={"enp2s0": interface()},
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
    return found.model_copy(update=changes)


def path(link: str, one: str, other: str, **changes) -> PathReading:
    reading = PathReading(
        link=link,
        from_node=one,
        to_node=other,
        sent=10,
        answered=10,
        rtt_min_ms=0.21,
        rtt_median_ms=0.25,
        mtu=1500,
        full_size_answered=10,
    )
    return reading.model_copy(update=changes)


def paths_of(host: str, **changes) -> list[PathReading]:
    node = HOSTS[host]
    return [
        path(link, node, ends[1 - ends.index(node)], **changes)
        for link, ends in LINKS.items()
        if node in ends
    ]


def port(link: str, node: str, **changes) -> PortReading:
    reading = PortReading(link=link, node=node, interface=f"to{node}", received=40, sent=40)
    return reading.model_copy(update=changes)


def seen(*, hosts: dict[str, dict] | None = None, but=(), cells=None, **changes) -> Observations:
    """A testbed with which all is well, but for `changes` to the inspections of `hosts`; `but` some
    hosts are not inspected at all."""
    there = [host for host in HOSTS if host not in but]
    known = {
        "cells": cells or dict.fromkeys(HOSTS, "bench1"),
        "inspections": {host: inspection(host, **(hosts or {}).get(host, {})) for host in there},
        "now_s": NOW,
        "inventory": "lab.yml",
        "clocks": {host: ClockReading(offset_s=0.01, halfwidth_s=0.4) for host in there},
        "paths": {host: paths_of(host) for host in there if HOSTS[host] != "emulator"},
        "ports": {"heron": [port(link, node) for link, ends in LINKS.items() for node in ends]},
    }
    return Observations(**(known | changes))


def here(**changes) -> Observations:
    """This machine, for the netns lab."""
    host = inspection("heron", node="here", interfaces={}, io=None, **changes.pop("host", {}))
    return Observations(
        **({"cells": {"here": "netns"}, "inspections": {"here": host}, "now_s": NOW} | changes)
    )


def of_stage(doctor: Doctor, stage: str, status: str) -> list[Finding]:
    return [each for each in doctor.findings if (each.stage, each.status) == (stage, status)]


def holder(**changes) -> Holder:
    held = Holder.model_construct(
        owner="carol@desk",
        campaign="achievement",
        token="hers",
        since_s=NOW - 600,
        expires_s=NOW + 300,
    )
    return held.model_copy(update=changes)


def wanted(*names: str, **changes) -> Wanted:
    return Wanted(**({"schemes": names, "traffic_nodes": frozenset("SD")} | changes))


def lost(host: str, link: str, **ports: PortReading) -> dict:
    """No ping of `host` on `link` was answered."""
    none = {"answered": 0, "full_size_answered": 0, "rtt_min_ms": None, "rtt_median_ms": None}
    readings = {each: paths_of(each) for each in ("alice", "relay", "bob")}
    readings[host] = [
        each.model_copy(update=none) if each.link == link else each for each in readings[host]
    ]
    said = seen().ports["heron"]
    counts = [ports.get(each.node, each) if each.link == link else each for each in said]
    return {"paths": readings, "ports": {"heron": counts}}


REFUSED = "Failed to connect to the host via ssh: ssh: connect to host 192.0.2.7 port 22: "
RELAY_GONE = {"but": ["relay"], "unreachable": {"relay": REFUSED + "Connection timed out"}}
FPGA = f"nagi-fpga {__version__}"
SDR = f"nagi-sdr {__version__}"
BY_P4RUNTIME = {"p4runtime": SwitchFacts(version="P4Runtime, by finsy 0.30.0", problem=None)}
SWITCHES = {
    "nagi": SwitchFacts(version="nagi-switch 0.1.0", problem=None),
    "bmv2": SwitchFacts(version="1.15.5", problem=None),
}
NO_LIBRARY = {
    "nagi": SwitchFacts(
        version="",
        problem="nagi-switch does not run: libxdp.so.1: cannot open; provision this host with "
        "nagi_switch_target: nagi",
    )
}
NO_CARRIER = {"enp2s0": interface(carrier=False)}

# (stage, status, what is seen, hosts, words of what is said, words of the cure)
CASES = [
    # SSH
    ("ssh", "ok", seen(), ["relay"], "reached", ""),
    ("ssh", "failure", seen(**RELAY_GONE), ["relay"], "Connection timed out", "switch it on"),
    *(
        ("ssh", "failure", seen(but=["bob"], unreachable={"bob": said}), ["bob"], said[-20:], cure)
        for said, cure in [
            (REFUSED + "Connection refused", "start sshd"),
            (REFUSED + "No route to host", "management network"),
            ("root@192.0.2.7: Permission denied (publickey).", "ansible_ssh_private_key_file"),
            ("WARNING: UNPROTECTED PRIVATE KEY FILE! ... Permission denied", "chmod 600"),
            ("ssh: Could not resolve hostname bobb: Name or service not known", "ansible_host"),
            ("Host key verification failed.", "ssh-keygen -R"),
            ("Missing sudo password", "ansible_become_password"),
            ("kex_exchange_identification: banner line too long", "try `ssh` to it by hand"),
        ]
    ),
    # Versions
    ("versions", "ok", seen(), ["bob"], "Python 3.11.2, iperf 2.1.8, tcpdump 4.99.3", ""),
    ("versions", "skipped", seen(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("versions", "failure", seen(hosts={"bob": {"python": "3.8.10"}}), ["bob"],
     "Python 3.8.10 is too old", "3.9 or newer"),
    ("versions", "failure", seen(hosts={"bob": {"missing_programs": ["iperf", "setpriv"]}}),
     ["bob"], "iperf, setpriv are missing", "install there: iperf, util-linux"),
    ("versions", "ok", seen(hosts={"bob": {"programs": {"iperf": "iperf 3.12 (cJSON)"}}}),
     ["bob"], "iperf 3.12", ""),
    ("versions", "failure", seen(hosts={"bob": {"programs": {"iperf": "iperf 3.12 (cJSON)"}}},
     wanted=wanted("cubic", iperf=True)), ["bob"], "its iperf is iperf 3.12", "install iperf 2"),
    ("versions", "failure", seen(but=["bob"], silent={"bob": "python3: not found"}), ["bob"],
     "nagi-agent cannot run there: python3: not found", "ansible_python_interpreter"),
    ("versions", "failure", seen(but=["bob"]), ["bob"], "it said nothing", "Python 3.9"),
    ("versions", "failure", seen(but=["bob"], silent={"bob": "sudo: a password is required"}),
     ["bob"], "a password is required", "NOPASSWD"),
    # Kernels
    ("kernel", "ok", seen(), ["bob"], "Linux 6.12.3-amd64", ""),
    ("kernel", "skipped", seen(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("kernel", "skipped", seen(but=["bob"]), ["bob"], "no answer", "see versions"),
    ("kernel", "warning", seen(hosts={"bob": {"cgroup2": False}}), ["bob"], "no cgroup2",
     "CONFIG_CGROUP_BPF"),
    ("kernel", "failure",
     seen(hosts={"bob": {"cgroup2": False}}, wanted=wanted("cubic", window_cap=True)), ["bob"],
     "no cgroup2", "CONFIG_CGROUP_BPF"),
    ("kernel", "failure", seen(hosts={"bob": {"is_root": False}}), ["bob"], "is not root",
     "ansible_become"),
    ("kernel", "failure", here(host={"is_root": False}), ["here"], "is not root", "with sudo"),
    ("kernel", "failure", here(no_namespaces="unshare: Operation not permitted"), ["here"],
     "cannot make network namespaces: unshare", "CAP_SYS_ADMIN"),
    ("kernel", "failure", here(no_namespaces="No space left on device"), ["here"],
     "cannot make network namespaces", "user.max_net_namespaces"),
    ("kernel", "failure", here(no_namespaces="Invalid argument"), ["here"],
     "cannot make network namespaces", "CONFIG_NET_NS"),
    ("kernel", "failure", seen(hosts={"bob": {"kernel": "6.1.0"}}), ["alice", "relay", "bob"],
     "6.12.3-amd64 on alice, relay; 6.1.0 on bob", "the same kernel"),
    # Schemes
    ("schemes", "ok", seen(), ["alice", "relay", "bob"], "newreno, sack, cubic, bbr", ""),
    ("schemes", "ok", seen(wanted=wanted("bbr")), ["alice", "bob"], "bbr", ""),
    ("schemes", "ok", here(wanted=wanted("cubic")), ["here"], "cubic", ""),
    ("schemes", "ok", seen(), ["alice", "relay", "bob"], "tahoe, reno, vegas, westwood", ""),
    ("schemes", "skipped", seen(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("schemes", "warning", seen(hosts={"bob": {"congestion_controls": [
        name for name in inspection("bob").congestion_controls if name != "bbr"]}}),
     ["bob"], "bbr is not available: kernel 6.12.3-amd64 has no tcp_bbr", "CONFIG_TCP_CONG_BBR"),
    ("schemes", "failure",
     seen(hosts={"bob": {"congestion_controls": ["reno"]}}, wanted=wanted("cubic")),
     ["bob"], "cubic is not available", "CONFIG_TCP_CONG_CUBIC"),
    ("schemes", "warning", seen(hosts={"bob": {"refused_objects": {TAHOE: "tahoe: no"}}}), ["bob"],
     "tahoe is not available: tahoe: no", "another kernel"),
    ("schemes", "failure", seen(hosts={"alice": {"refused_objects": {TAHOE: "kernel 6.1 has no "
        "links; boot Linux 6.10 or newer"}}}, wanted=wanted("tahoe")),
     ["alice"], "tahoe is not available: kernel 6.1 has no links", "boot Linux 6.10"),
    # Interfaces
    ("interfaces", "ok", seen(), ["heron"], "enp2s0", ""),
    ("interfaces", "ok", seen(hosts={"bob": {"interfaces": {"eth1": interface(offloads=["gro"])}}}),
     ["bob"], "eth1 (for runs, nagi switches off: gro)", ""),
    ("interfaces", "skipped", seen(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("interfaces", "skipped",
     seen(hosts={"bob": {"interfaces": {"eth1": interface(up=False, carrier=None)}}}, paths={}),
     ["bob"],
     "eth1: down", "`nagi doctor` tries links"),
    ("interfaces", "failure", seen(hosts={"bob": {"interfaces": NO_CARRIER}}), ["bob"],
     "enp2s0 has no carrier", "plug its cable in"),
    ("interfaces", "failure", seen(hosts={"bob": {"missing_interfaces": ["enp9s0"]}}), ["bob"],
     "it has no interface enp9s0", "nagi_links"),
    ("interfaces", "failure",
     seen(hosts={"bob": {"interfaces": {"eth0": interface(is_management=True)}}}), ["bob"],
     "eth0 is the interface by which it is reached", "tests need one of their own"),
    ("interfaces", "failure",
     seen(hosts={"bob": {"interfaces": {"eth1": interface(
         fixed_offloads=["generic-receive-offload"], driver="r8169")}}}), ["bob"],
     "generic-receive-offload on and cannot switch it off", "driver r8169"),
    # Clocks
    ("clocks", "ok", seen(), ["bob"], "synchronised by chronyd", ""),
    ("clocks", "ok", here(host={"clock": ClockFacts(
        synchronised=False, max_error_s=16.0, keeper=None)}), ["here"], "one clock", ""),
    ("clocks", "ok", seen(hosts={host: {"boot_id": "one", "clock": ClockFacts(
        synchronised=False, max_error_s=16.0, keeper=None)} for host in HOSTS}), ["bob"],
     "one clock", ""),
    ("clocks", "skipped", seen(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("clocks", "skipped", seen(clocks={}), ["bob"], "was not compared", "look again"),
    ("clocks", "warning", seen(hosts={"bob": {"clock": ClockFacts(
        synchronised=False, max_error_s=16.0, keeper="chronyd")}}), ["bob"],
     "not synchronised, though chronyd runs", "chrony"),
    ("clocks", "warning", seen(hosts={"bob": {"clock": ClockFacts(
        synchronised=True, max_error_s=0.12, keeper="chronyd")}}), ["bob"],
     "wrong by 0.12 s", "time server that is nearer"),
    ("clocks", "failure",
     seen(clocks={**seen().clocks, "bob": ClockReading.from_exchange(100, 101, 98)}),
     ["bob"], "2.50 s (± 0.5 s) behind this machine's", "chrony"),
    ("clocks", "failure", seen(clocks={
        **{host: ClockReading(offset_s=0.0, halfwidth_s=0.01) for host in HOSTS},
        "alice": ClockReading(offset_s=0.055, halfwidth_s=0.01),
        "bob": ClockReading(offset_s=-0.055, halfwidth_s=0.01)}),
     ["alice", "bob"], "their clocks are 0.11 s (± 0.02 s) apart", "chrony"),
    # Paths
    ("paths", "ok", seen(), ["bob"], "N on link radio: 0.21 ms, median 0.25 ms", ""),
    ("paths", "skipped", seen(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("paths", "skipped", seen(paths={}, paths_left_out="bob is held by carol"),
     ["alice", "relay", "bob"], "bob is held by carol", "look again"),
    ("paths", "warning", seen(paths={**seen().paths, "bob": paths_of("bob", answered=8)}), ["bob"],
     "2 of 10 pings to N on link radio were lost", "cables"),
    ("paths", "failure", seen(**(lost("bob", "radio") | {"ports": {}})), ["bob"],
     "no answer from N on link radio: heron did not say", "cables"),
    ("paths", "failure", seen(**lost("bob", "radio", D=port("radio", "D", received=0))), ["bob"],
     "nothing came in at heron's toD", "`nagi_links` with heron's"),
    ("paths", "failure", seen(**lost("bob", "radio", N=port("radio", "N", sent=0))), ["bob"],
     "heron sent nothing on at toN", "nagi-link.log"),
    ("paths", "failure", seen(**lost("bob", "radio", N=port("radio", "N", received=0))), ["bob"],
     "heron sent it on at toN", "Are two swapped?"),
    # MTU
    ("mtu", "ok", seen(), ["bob"], "1500 bytes to N on link radio", ""),
    ("mtu", "skipped", seen(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("mtu", "skipped", seen(**lost("bob", "radio")), ["bob"], "no answer from N", "see paths"),
    ("mtu", "warning", seen(paths={**seen().paths, "bob": paths_of("bob", full_size_answered=7)}),
     ["bob"], "only 7 of 10 packets of 1500 bytes to N on link radio", "cables"),
    ("mtu", "failure", seen(paths={**seen().paths, "bob": paths_of("bob", full_size_answered=0)}),
     ["bob"], "packets of 1500 bytes to N on link radio are lost", "an MTU of 1500 bytes"),
    # Captures
    ("capture", "ok", seen(), ["bob"], "tcpdump captures", ""),
    ("capture", "skipped", seen(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("capture", "skipped", seen(hosts={"bob": {"is_root": False}}), ["bob"], "root", "see kernel"),
    ("capture", "skipped", seen(hosts={"bob": {"missing_programs": ["tcpdump"]}}), ["bob"],
     "missing", "see versions"),
    *(
        ("capture", "failure", seen(hosts={"bob": {"capture_error": said}}), ["bob"], said, cure)
        for said, cure in [
            ("there is no user nagi", "nagi_user"),
            ("You don't have permission to perform this capture", "CAP_NET_RAW"),
            ("enp2s0: No such device exists", "by hand"),
        ]
    ),
    # Emulator
    ("emulator", "ok", seen(), ["heron"], f"nagi-link {__version__}, af_xdp (driver)", ""),
    ("emulator", "skipped", seen(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("emulator", "skipped", here(), ["here"], "packet I/O", "links.json"),
    ("emulator", "warning", seen(hosts={"heron": {"io": "af_packet: no XDP sockets here"}}),
     ["heron"], "takes af_packet: no XDP sockets here", "CONFIG_XDP_SOCKETS"),
    ("emulator", "failure", seen(hosts={"heron": {
        "nagi_link": None, "nagi_link_error": "libbpf.so.1: cannot open"}}), ["heron"],
     "does not run: libbpf.so.1", "`nagi_link`"),
    ("emulator", "failure", here(host={"nagi_link": None, "nagi_link_error": "No such file"}),
     ["here"], "does not run: No such file", "make setup"),
    ("emulator", "failure", seen(hosts={"heron": {"nagi_link": "nagi-link 0.0.1"}}), ["heron"],
     f"of version 0.0.1, nagi of {__version__}", "install that of"),
    # Radios
    ("radio", "ok", seen(), ["heron"], "no nagi-sdr is installed", ""),
    ("radio", "ok", seen(hosts={"heron": {"nagi_sdr": SDR}}, wanted=wanted(radios=("radio",))),
     ["heron"], SDR, ""),
    ("radio", "skipped", seen(but=["heron"]), ["heron"], "no answer", "see versions"),
    ("radio", "warning", seen(hosts={"heron": {"nagi_sdr_error": "No module named gnuradio"}}),
     ["heron"], "does not run: No module named gnuradio", "make sdr"),
    ("radio", "warning", seen(hosts={"heron": {"nagi_sdr": "nagi-sdr 0.0.1"}}), ["heron"],
     f"of version 0.0.1, nagi of {__version__}", "`nagi_sdr`"),
    ("radio", "failure", seen(wanted=wanted(radios=("radio", "core"))), ["heron"],
     "links radio, core are radios, and there is no nagi-sdr", "`make sdr` there"),
    ("radio", "failure", seen(hosts={"heron": {"nagi_sdr_error": "No module named gnuradio"}},
     wanted=wanted(radios=("radio",))), ["heron"], "No module named gnuradio", "make sdr"),
    ("radio", "failure", seen(hosts={"heron": {"nagi_sdr": "nagi-sdr 0.0.1"}},
     wanted=wanted(radios=("radio",))), ["heron"], "of version 0.0.1", "make sdr"),
    # Simulated FPGAs
    ("fpga", "ok", seen(), ["heron"], "no nagi-fpga is installed", ""),
    ("fpga", "ok", seen(hosts={"heron": {"nagi_fpga": FPGA}}, wanted=wanted(fpgas=("radio",))),
     ["heron"], FPGA, ""),
    ("fpga", "skipped", seen(but=["heron"]), ["heron"], "no answer", "see versions"),
    ("fpga", "warning", seen(hosts={"heron": {"nagi_fpga": "nagi-fpga 0.0.1"}}), ["heron"],
     f"of version 0.0.1, nagi of {__version__}", "`nagi_fpga`"),
    ("fpga", "failure", seen(wanted=wanted(fpgas=("radio",))), ["heron"],
     "link radio is an FPGA's, and there is no nagi-fpga", "`nagi_fpga`"),
    ("fpga", "failure", seen(hosts={"heron": {"nagi_fpga_error": "killed"}},
     wanted=wanted(fpgas=("radio",))), ["heron"], "does not run: killed", "`nagi_fpga`"),
    # Switches
    ("switch", "ok", seen(), ["bob"], "none is installed", ""),
    ("switch", "ok", seen(hosts={"relay": {"switches": SWITCHES}}, wanted=wanted(
        switches=frozenset({("N", "bmv2")}))), ["relay"], "nagi-switch 0.1.0, simple_switch 1.15.5",
     ""),
    ("switch", "ok", here(host={"switches": SWITCHES}), ["here"], "simple_switch 1.15.5", ""),
    ("switch", "skipped", seen(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("switch", "skipped", seen(wanted=wanted(switches=frozenset({("N", "nagi")}))), ["relay"],
     "comes with the campaign", "nagi_switch_target: nagi"),
    ("switch", "warning", seen(hosts={"relay": {"switches": NO_LIBRARY}}), ["relay"],
     "nagi-switch does not run: libxdp.so.1: cannot open", "nagi_switch_target: nagi"),
    ("switch", "failure", seen(hosts={"relay": {"switches": NO_LIBRARY}}, wanted=wanted(
        switches=frozenset({("N", "nagi")}))), ["relay"], "libxdp.so.1: cannot open", "provision"),
    ("switch", "failure", seen(hosts={"relay": {"switches": {"nagi": SWITCHES["nagi"]}}},
     wanted=wanted(switches=frozenset({("N", "bmv2")}))), ["relay"], "there is no simple_switch",
     "nagi_switch_target: bmv2, or use --switch nagi"),
    ("switch", "ok", seen(hosts={"relay": {"switches": BY_P4RUNTIME}}), ["relay"],
     "P4Runtime, by finsy 0.30.0", ""),
    ("switch", "failure", seen(wanted=wanted(switches=frozenset({("N", "p4runtime")}))), ["relay"],
     "it is not said where its switch is", "set nagi_p4runtime in the inventory, or use"),
    # Spare processor time
    ("processors", "ok", seen(hosts={"bob": {"processors_busy": 0.2}}), ["bob"], "20 % busy", ""),
    ("processors", "skipped", seen(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("processors", "warning", seen(hosts={"bob": {"processors_busy": 0.5}}), ["bob"], "50 % busy",
     "`top`"),
    # Disk
    ("disk", "ok", seen(), ["bob"], "40 GB free", ""),
    ("disk", "ok", seen(hosts={"bob": {"free_bytes": 10**6}}, wanted=wanted(free_bytes=10**6)),
     ["bob"], "1.0 MB free", ""),
    ("disk", "skipped", seen(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("disk", "warning", seen(hosts={"bob": {"free_bytes": 10**9 - 1}}), ["bob"], "only 1000 MB",
     "`nagi plan`"),
    ("disk", "failure", seen(
        hosts={"bob": {"free_bytes": 3 * 10**9}}, wanted=wanted(free_bytes=5 * 10**9)), ["bob"],
     "3.0 GB are free where records go, 5.0 GB are needed", "nagi_spool"),
    # Lock
    ("lock", "ok", seen(), ["bob"], "free", ""),
    ("lock", "ok", seen(hosts={"bob": {"holder": holder()}}, token="hers"), ["bob"],
     "held by this campaign", ""),
    ("lock", "skipped", seen(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("lock", "failure", seen(hosts={"bob": {"holder": holder()}}, token="mine"), ["bob"],
     "carol@desk has had it for 10 min, for achievement; the lease runs for 5 min more",
     "wait, or take it away by `nagi down -i lab.yml --force`"),
    ("lock", "failure", seen(hosts={"bob": {"holder": holder(expires_s=NOW - 7200)}}), ["bob"],
     "the lease ran out 2.0 h ago, yet it was not let go", "`nagi down -i lab.yml --force`"),
    ("lock", "failure", seen(
        hosts={"bob": {"holder": holder(since_s=NOW - 300, expires_s=NOW + 300)}},
        clocks={"bob": ClockReading(offset_s=-300.0, halfwidth_s=0.1)}), ["bob"],
     "for 0 s, for achievement; the lease runs for 10 min more", "wait"),
    # Leftovers
    ("leftovers", "ok", seen(), ["bob"], "none", ""),
    ("leftovers", "skipped", seen(**RELAY_GONE), ["relay"], "not reached", "see SSH"),
    ("leftovers", "warning", seen(hosts={"bob": {"to_restore": True}}), ["bob"],
     "has left its settings behind", "nagi down -i lab.yml"),
    ("leftovers", "failure", seen(hosts={"bob": {"problems": [
        "port 5001 of 198.18.1.2 cannot be used: Address already in use; end the program"]}}),
     ["bob"], "port 5001 of 198.18.1.2 cannot be used: Address already in use",
     "end the program"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("stage", "status", "what_is_seen", "hosts", "what", "cure"),
    CASES,
    ids=[f"{stage}-{status}-{what[:30]}" for stage, status, _, _, what, _ in CASES],
)
def test_what_is_seen_and_what_is_found(stage, status, what_is_seen, hosts, what, cure):
    doctor = judge(what_is_seen)
    found = of_stage(doctor, stage, status)
    (mine,) = [each for each in found if each.hosts == hosts and what in each.what]
    assert cure in mine.cure
    if status in ("warning", "failure"):  # and nothing else is
        assert found == [mine]
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
    doctor = judge(seen())
    assert doctor.status == "ok" and doctor.exit_status == 0
    assert tuple(dict.fromkeys(each.stage for each in doctor.findings)) == STAGES
    assert {each.cell for each in doctor.findings} == {"bench1"}
    assert failures(doctor) is None


def test_a_host_that_is_not_reached_is_in_every_stage():
    doctor = judge(seen(**RELAY_GONE))
    for stage in STAGES:
        (mine,) = [e for e in doctor.findings if e.stage == stage and "relay" in e.hosts]
        assert mine.status == ("failure" if stage == "ssh" else "skipped")
    assert doctor.count("failure") == 1


def test_this_machine_has_no_stages_of_other_hosts():
    doctor = judge(here())
    stages = {each.stage for each in doctor.findings}
    assert set(STAGES) - stages == {"ssh", "interfaces", "paths", "mtu"}
    assert doctor.exit_status == 0


def test_kernels_of_routers_and_emulators_may_differ():
    other = {host: {"kernel": "6.1.0"} for host in ("relay", "heron")}
    assert judge(seen(hosts=other, wanted=wanted("cubic"))).exit_status == 0
    assert judge(seen(hosts=other)).exit_status == 2  # it is not known what relay will be


def test_kernels_are_compared_across_cells_and_clocks_within():
    cells = {"alice": "bench1", "relay": "bench1", "bob": "bench2", "heron": "bench2"}
    doctor = judge(
        seen(
            hosts={"bob": {"kernel": "6.1.0"}},
            cells=cells,
            clocks={
                host: ClockReading(offset_s=0.04 if cell == "bench1" else -0.04, halfwidth_s=0)
                for host, cell in cells.items()
            },
        )
    )
    (kernels,) = of_stage(doctor, "kernel", "failure")
    assert kernels.cell is None and set(kernels.hosts) == {"alice", "relay", "bob"}
    assert not of_stage(doctor, "clocks", "failure")


def test_of_clocks_that_are_apart_the_farthest_are_named():
    offsets = {"alice": 0.05, "relay": 0.02, "bob": -0.05, "heron": -0.02}
    clocks = {h: ClockReading(offset_s=each, halfwidth_s=0.001) for h, each in offsets.items()}
    (found,) = of_stage(judge(seen(clocks=clocks)), "clocks", "failure")
    assert found.hosts == ["alice", "bob"]


def test_hosts_that_share_a_clock_are_not_apart():
    """Readings of one clock may differ by the way they were made."""
    clocks = {
        "alice": ClockReading(offset_s=0.05, halfwidth_s=0.0),
        "bob": ClockReading(offset_s=-0.05, halfwidth_s=0.0),
    }
    same = {host: {"boot_id": "same"} for host in ("alice", "bob")}
    assert of_stage(judge(seen(clocks=clocks)), "clocks", "failure")
    assert not of_stage(judge(seen(clocks=clocks, hosts=same)), "clocks", "failure")


def test_an_agent_s_problems_are_not_said_twice():
    problems = ["the agent is not root; connect as a user who is", "iperf is not installed; do"]
    doctor = judge(
        seen(hosts={"bob": {"is_root": False, "missing_programs": ["iperf"], "problems": problems}})
    )
    assert [each.stage for each in doctor.findings if each.status == "failure"] == [
        "versions",
        "kernel",
    ]


def test_what_an_experiment_wants_follows_from_its_plans():
    plan = RunPlan.read(
        SCHEMAS / "example" / "campaign" / "runs" / "6ca9af3cee70cdc8" / "plan.json"
    )
    found = Wanted.of([plan], free_bytes=7)
    assert found.schemes == tuple(dict.fromkeys(flow.scheme for flow in plan.flows))
    assert found.traffic_nodes == {"client", "server"}
    assert found.window_cap and found.free_bytes == 7
    uncapped = [flow.model_copy(update={"max_window": None}) for flow in plan.flows]
    assert not Wanted.of([plan.model_copy(update={"flows": uncapped})]).window_cap


def test_failures_are_problems_with_host_cause_and_cure():
    doctor = judge(seen(hosts={"bob": {"interfaces": NO_CARRIER, "processors_busy": 0.3}}))
    error = failures(doctor, "lab.yml")
    assert isinstance(error, InputError)
    assert str(error).startswith("lab.yml: bob: enp2s0 has no carrier; plug its cable in")
    assert len(error.problems) == 1


def test_json_keeps_to_its_schema():
    schema = json.loads((SCHEMAS / "doctor.schema.json").read_text())
    for doctor in (judge(seen()), judge(seen(**RELAY_GONE)), judge(here())):
        text = doctor.model_dump_json()
        jsonschema.validate(json.loads(text), schema)
        assert Doctor.model_validate_json(text) == doctor


def test_a_finding_has_a_cure_unless_all_is_well():
    finding = {"stage": "disk", "cell": None, "hosts": ["bob"], "what": "said"}
    for status, cure in (("ok", "a cure"), ("warning", ""), ("skipped", "")):
        with pytest.raises(ValidationError):
            Finding(**finding, status=status, cure=cure)


def shown(doctor: Doctor, width: int = 80) -> str:
    console = Console(width=width, record=True, highlight=False, emoji=False, file=None)
    with console.capture() as captured:
        show(console, doctor)
    return captured.get()


def test_text_has_a_line_a_stage_where_all_is_well():
    lines = shown(judge(seen(wanted=wanted("cubic", "bbr")))).splitlines()
    assert [line.split()[0] for line in lines[:-2]] == [
        *("SSH", "versions", "kernel", "schemes", "interfaces", "clocks", "paths", "MTU"),
        *("capture", "emulator", "radio", "FPGA", "switch", "spare", "disk", "lock", "leftovers"),
    ]
    assert all(" ok " in line for line in lines[:-2])
    assert "4 hosts: Linux 6.12.3-amd64" in lines[2]
    assert lines[-1] == "ready"


@pytest.mark.parametrize("width", [60, 80, 200])
def test_text_says_everything_else_in_full(width):
    doctor = judge(
        seen(
            hosts={
                "bob": {"holder": holder(), "interfaces": NO_CARRIER, "kernel": "6.1.0"},
                "heron": {"io": "af_packet: AF_XDP is not supported", "processors_busy": 0.3},
            },
            **RELAY_GONE,
        )
    )
    text = shown(doctor, width)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    words = " ".join(text.split())
    for finding in doctor.findings:
        if finding.status != "ok":
            between = ";" if finding.status == "skipped" else " cure:"
            assert f"{finding.what}{between} {finding.cure}" in words
    assert text.splitlines()[-1] == "not ready: 4 failures"
    assert "\x1b" not in text  # no terminal


def test_the_last_line_counts_warnings():
    assert last_line(judge(seen(hosts={"bob": {"to_restore": True}}))) == "ready with 1 warning"
    two = {"bob": {"to_restore": True, "processors_busy": 0.4}}
    assert last_line(judge(seen(hosts=two))) == "ready with 2 warnings"


def test_a_terminal_has_colours():
    console = Console(width=80, force_terminal=True, color_system="standard")
    with console.capture() as captured:
        show(console, judge(seen(**RELAY_GONE)))
    assert "\x1b[1;31mfailure" in captured.get()


def test_words_of_hosts_are_not_taken_for_markup():
    said = "[bold]ssh[/bold]: connect to host [2001:db8::1]: Connection refused"
    text = shown(judge(seen(but=["bob"], unreachable={"bob": said})))
    assert said in " ".join(text.split())


@pytest.mark.parametrize(("virtual", "variable"), [(True, "RUN_PACKAGES"), (False, "PACKAGES")])
def test_make_installs_every_program_that_agents_ask_for(virtual, variable, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "")  # all are missing
    batch = batch_json(tmp_path, virtual=virtual)
    missing = missing_programs(Batch.from_json(batch))
    makefile = (ROOT / "Makefile").read_text()
    assigned = dict(re.findall(r"^(\w+) := ((?:.*\\\n)*.*)", makefile, re.M))
    installed = assigned[variable].replace("$(RUN_PACKAGES)", assigned["RUN_PACKAGES"]).split()
    assert missing and {package_of(program) for program in missing} <= {*installed}
