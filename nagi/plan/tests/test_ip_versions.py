# SPDX-License-Identifier: Apache-2.0
"""Plans of experiments over IPv4 and IPv6, and MTUs of links."""

from __future__ import annotations

import re

import pytest
from nagi.labs.inventory import describe_interfaces, list_interface_names
from nagi.labs.shape import Shape
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.errors import InputError
from nagi_contracts.plan import RunPlan

SPEC = """\
schema_version: 1
name: ip
title: Versions of IP
seed: 1
ip_version: VERSION
nodes: {S: host, N: NODE, D: host}
links:
  wired: {between: [S, N], rate: 10 Mb/s, delay: 5 ms, queue: 20 packets}
  radio: {between: [N, D], rate: 10 Mb/s, delay: 5 ms, queue: 20 packetsMORE}
flows:
  bulk: {from: S, to: D, scheme: $schemeFLOW}
duration: 4 s
matrix: {scheme: [SCHEME]}
report: {x: scheme}
"""
COMMAND = ", traffic: command, client: [ping, -c, 3, '{receiver}']"


def make_plan(tmp_path, version=6, node="router", more="", flow="", scheme="cubic") -> RunPlan:
    path = tmp_path / "spec.yaml"
    text = SPEC.replace("VERSION", str(version)).replace("NODE", node).replace("MORE", more)
    path.write_text(text.replace("FLOW", flow).replace("SCHEME", scheme))
    (found,) = plan_runs(read_experiment(path, None)[0], None)
    return found


def test_ipv6_has_addresses_routes_and_headers_of_its_own(tmp_path):
    found = make_plan(tmp_path)
    assert [end.address for link in found.links for end in link.ends] == [
        "fd6e:6167:6900::1/64",
        "fd6e:6167:6900::2/64",
        "fd6e:6167:6900:1::1/64",
        "fd6e:6167:6900:1::2/64",
    ]
    (flow,) = found.flows
    assert (flow.sender_address, flow.receiver_address) == (
        "fd6e:6167:6900::1",
        "fd6e:6167:6900:1::2",
    )
    # 40 bytes of IPv6, 20 of TCP, 12 of timestamps.
    assert (flow.payload_bytes, flow.packet_bytes) == (1000, 1072)
    (route,) = found.node("S").routes
    assert route.destination == "fd6e:6167:6900:1::2/128" and route.via == "fd6e:6167:6900::2"
    assert (route.mtu, route.advmss) == (1072, 1012)
    assert found.node("N").sysctls == {"net.ipv6.conf.all.forwarding": "1"}
    assert found.ip_version() == 6


def test_ipv4_is_as_it_was(tmp_path):
    said, unsaid = make_plan(tmp_path, 4), make_plan(tmp_path, 4)
    assert said.links[1].ends[1].address == "198.18.1.2/30" and said.ip_version() == 4
    path = tmp_path / "spec.yaml"
    path.write_text(path.read_text().replace("ip_version: 4\n", ""))
    (unsaid,) = plan_runs(read_experiment(path, None)[0], None)
    assert unsaid == said and "mtu" not in said.links[0].model_dump()


def test_a_switch_keeps_the_kernel_from_forwarding_its_version(tmp_path):
    assert make_plan(tmp_path, 6, "switch").node("N").sysctls == {
        "net.ipv6.conf.all.forwarding": "0"
    }
    assert make_plan(tmp_path, 4, "switch").node("N").sysctls == {"net.ipv4.ip_forward": "0"}


def test_both_versions_have_the_same_seed(tmp_path):
    assert make_plan(tmp_path, 6).seed == make_plan(tmp_path, 4).seed


def test_datagrams_count_the_headers_of_their_version(tmp_path):
    for version, packet in ((4, 200), (6, 220)):
        call = ", traffic: {application: cbr, codec: g711}"
        (flow,) = make_plan(tmp_path, version, flow=call).flows
        assert flow.application.rate_bps == 50 * 8 * packet
        assert flow.packet_bytes == packet


def test_an_mtu_is_that_of_both_interfaces(tmp_path):
    found = make_plan(tmp_path, 4, more=", mtu: 1200 bytes")
    shape = Shape.from_plan(found)
    mtus = {
        (node, each["name"]): each.get("mtu")
        for node in shape.nodes
        for each in describe_interfaces(shape, node, list_interface_names(shape, node))
    }
    assert mtus == {
        ("S", "wired"): None, ("N", "wired"): None, ("N", "radio"): 1200, ("D", "radio"): 1200,
    }  # fmt: skip
    assert Shape.from_plan(make_plan(tmp_path, 4)) != shape


def test_commands_may_find_the_mtu_of_their_path(tmp_path):
    """Check that no route has a locked MTU, which would prevent path MTU discovery."""
    there = {
        mtu: make_plan(tmp_path, 4, more=f", mtu: {mtu} bytes", flow=COMMAND)
        .node("S")
        .routes[0]
        .mtu
        for mtu in (1500, 1052, 1051)
    }
    assert there == {1500: 1052, 1052: 1052, 1051: None}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"more": ", mtu: 1000 bytes"},
            r"spec.yaml:9: links.radio.mtu: hosts and emulator do not support an MTU of 1000 "
            r"bytes; give 1280 to 1500 bytes",
        ),
        (
            {"more": ", mtu: 9000 bytes", "version": 4},
            r"spec.yaml:9: links.radio.mtu: .* give 68 to 1500 bytes",
        ),
        (
            {"more": ", mtu: 1051 bytes", "version": 4},
            r"spec.yaml:11: flows.bulk.payload: its packets of 1052 bytes do not fit the path, "
            r"whose MTU is 1051; give `payload: 999 bytes` or less",
        ),
        (
            {"flow": ", payload: 1448 bytes"},
            r"spec.yaml:11: flows.bulk.payload: its packets of 1520 bytes do not fit the path, "
            r"whose MTU is 1500; give `payload: 1428 bytes` or less",
        ),
        (
            {"version": 5},
            r"spec.yaml:5: ip_version: unknown version of IP 5; give 4 or 6",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_line_and_key(tmp_path, changes, said):
    with pytest.raises(InputError) as caught:
        make_plan(tmp_path, **changes)
    assert re.search(said, str(caught.value)), str(caught.value)


def test_schemes_that_look_at_packets_of_ipv4_are_refused(tmp_path):
    assert make_plan(tmp_path, 4, scheme="newreno-ackthin").flows[0].receiver_control
    with pytest.raises(InputError, match=r"spec.yaml:13: .*: ackthin, .* supports IPv4 only"):
        make_plan(tmp_path, 6, scheme="newreno-ackthin")
