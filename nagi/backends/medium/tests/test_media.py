# SPDX-License-Identifier: Apache-2.0
"""Test media in experiments: messages, addresses, hops, routes, settings, seeds, and labs."""

from __future__ import annotations

import json

import jsonschema
import pytest
from nagi.campaign.estimate import estimate_size
from nagi.labs.inventory import describe_interfaces, list_veth_pairs, make_netns_placements
from nagi.labs.programs import list_local_programs
from nagi.labs.shape import EMULATOR, Shape
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi.spec.schema import make_experiment_schema
from nagi_contracts.errors import InputError
from nagi_contracts.media import MediumTimes
from nagi_contracts.memo import Memo
from nagi_contracts.plan import DirectionPlan, LinkDirection, RunPlan
from nagi_contracts.records import Keep
from nagi_contracts.units import Bitrate
from ruamel.yaml import YAML

# A chain of four stations, 200 m apart, and a wired host behind the last.
CHAIN = """\
schema_version: 1
name: test
title: A chain
seed: 1
nodes: {a: host, b: host, c: host, d: router, w: host}
links:
  cable: {between: [d, w], rate: 100 Mb/s, delay: 5 ms, queue: 100 packets}
media:
  air:
    phy: 802.11b
    data_rate: $rate
    rts_threshold: 0 bytes
    stations:
      a: {at: [0 m, 0 m]}
      b: {at: [200 m, 0 m], trace: {1 s: [210 m, 0 m], 2 s: [220 m, 10 m]}}
      c: {at: [400 m, 0 m]}
      d: {at: [600 m, 0 m]}
    reach: {by: ranges}
flows:
  far: {from: a, to: c, scheme: $scheme}
duration: 10 s
warmup: 5 s
matrix:
  scheme: [newreno]
  rate: [2 Mb/s]
report: {x: rate}
"""
MATRIX = "{by: matrix, decodes: {a: [b], b: [a, c], c: [b, d], d: [c]}"
POSITIONS = [
    " {at: [0 m, 0 m]}",
    " {at: [200 m, 0 m], trace: {1 s: [210 m, 0 m], 2 s: [220 m, 10 m]}}",
    " {at: [400 m, 0 m]}",
    " {at: [600 m, 0 m]}",
]


def read(tmp_path, *changes, base=CHAIN):
    text = base
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    return read_experiment(path, None)


def plan_of(tmp_path, *changes, base=CHAIN) -> RunPlan:
    point, *_ = read(tmp_path, *changes, base=base)
    plan, *_ = plan_runs(point, None)
    return plan


def change_to_matrix(more=""):
    """Return the changes that replace ranges by a matrix."""
    return [(position, " {}") for position in POSITIONS] + [("{by: ranges}", f"{MATRIX}{more}}}")]


def describe_hops(path: list[LinkDirection]) -> list[str]:
    return [
        f"{hop.sender} {hop.receiver}" if hop.is_hop else f"{hop.link} {hop.direction}"
        for hop in path
    ]


AIR = "media.air"
FARTHER = ("{at: [600 m, 0 m]}", "{at: [651 m, 0 m]}")
# (changes, line, key path, message and cure)
BAD = [
    ([("phy: 802.11b", "phy: 802.11n")], 10, f"{AIR}.phy",
     "unknown value '802.11n'; did you mean `802.11g`? one of: 802.11a, 802.11b, 802.11g"),
    ([("    phy: 802.11b\n", "")], 9, AIR, "missing key `phy`; add `phy: ...`"),
    ([("[2 Mb/s]", "[6 Mb/s]")], 25, "matrix.rate.0",
     "6 Mb/s is no rate of 802.11b; one of: 1 Mb/s, 2 Mb/s, 5.5 Mb/s, 11 Mb/s"),
    ([("802.11b", "802.11g"), ("[2 Mb/s]", "[11 Mb/s]")], 25, "matrix.rate.0",
     "11 Mb/s is no rate of 802.11g; one of: 6 Mb/s, 9 Mb/s, 12 Mb/s, 18 Mb/s"),
    ([("$rate", "$rate\n    basic_rate: 3 Mb/s")], 12, f"{AIR}.basic_rate",
     "3 Mb/s is no rate of 802.11b; one of: 1 Mb/s"),
    ([("$rate", "$rate\n    basic_rate: 11 Mb/s")], 12, f"{AIR}.basic_rate",
     "a basic_rate of 11 Mb/s is more than a data_rate of 2 Mb/s; give 2 Mb/s or less"),
    ([("$rate", "$rate\n    preamble: long"), ("802.11b", "802.11a"), ("[2 Mb", "[6 Mb")], 12,
     f"{AIR}.preamble", "802.11a has no long preamble; remove it, or write `phy: 802.11b`"),
    ([("$rate", "$rate\n    preamble: short\n    basic_rate: 1 Mb/s")], 13, f"{AIR}.basic_rate",
     "1 Mb/s is no rate of 802.11b with a short preamble; one of: 2 Mb/s, 5.5 Mb/s, 11 Mb/s"),
    ([("$rate", "$rate\n    preamble: short"), ("[2 Mb", "[1 Mb")], 26, "matrix.rate.0",
     "1 Mb/s is no rate of 802.11b with a short preamble; one of: 2 Mb/s"),
    ([("$rate", "$rate\n    short_retry_limit: 0")], 12, f"{AIR}.short_retry_limit",
     "0 is out of range; give 1 or more"),
    ([("$rate", "$rate\n    long_retry_limit: 256")], 12, f"{AIR}.long_retry_limit",
     "256 is out of range; give 255 or less"),
    ([("$rate", "$rate\n    cw_min: 32")], 12, f"{AIR}.cw_min",
     "a contention window of 32 is no 2^n - 1; give 31 or 63"),
    ([("$rate", "$rate\n    cw_max: 65535")], 12, f"{AIR}.cw_max",
     "65535 is out of range; give 32767 or less"),
    ([("$rate", "$rate\n    cw_min: 2047")], 12, f"{AIR}.cw_min",
     "a cw_min of 2047 is more than a cw_max of 1023; give 1023 or less"),
    ([("$rate", "$rate\n    cw_max: 15")], 12, f"{AIR}.cw_max",
     "a cw_min of 31 is more than a cw_max of 15; give 31 or more"),
    ([("$rate", "$rate\n    queue: 1 bdp")], 12, f"{AIR}.queue",
     "a queue of 1 bdp on a medium, where no station has a constant rate; give its size"),
    ([("$rate", "$rate\n    loss: {model: bernoulli, rate: 1 %, at: ingress}")], 12,
     f"{AIR}.loss.at",
     "the loss model of a medium always acts at the receivers of frames; remove `at`"),
    ([("$rate", "$rate\n    shaped_by: switch")], 12, f"{AIR}.shaped_by",
     "a switch cannot shape a medium; remove it"),
    ([("$rate", "$rate\n    rate: 5 Mb/s")], 12, f"{AIR}.rate",
     "a medium has the rate of its stations; write `data_rate` instead"),
    ([("$rate", "$rate\n    quue: 5 packets")], 12, f"{AIR}.quue",
     "unknown key `quue`; did you mean `queue`?"),
    ([("  air:", "  cable:")], 9, "media.cable",
     "a link is also called cable; give the medium another name"),
    ([("d: {at", "x: {at")], 17, f"{AIR}.stations.x",
     "there is no node x; hosts and routers: a, b, c, d, w"),
    ([("d: router", "d: switch")], 17, f"{AIR}.stations.d",
     "d is a switch, which has no radio; hosts and routers: a, b, c, w"),
    ([(POSITIONS[3], " {}")], 17, f"{AIR}.stations.d",
     "d has no position, but reach is by ranges; add `at: [0 m, 0 m]`, or give `reach: {by"),
    ([FARTHER], 17, f"{AIR}.stations.d",
     "d is out of reach of all other stations; give it another position, or `reach` longer ranges"),
    ([("{by: ranges}", "{by: ranges, carrier_sense: 200 m}")], 18, f"{AIR}.reach.carrier_sense",
     "a carrier_sense of 200 m is less than a transmission of 250 m, but a station that"),
    ([("{by: ranges}", "{by: ranges, interference: -1 m}")], 18, f"{AIR}.reach.interference",
     "a range of -1 m is out of range; give 0.0 m to"),
    ([("{by: ranges}", "{by: ranges, transmission: 250}")], 18, f"{AIR}.reach.transmission",
     "250 has no unit; write it like '200 m'"),
    ([("{by: ranges}", "{by: ranges, transmission: 250 dBm}")], 18, f"{AIR}.reach.transmission",
     "'dBm' is no unit of a range; one of: m, km"),
    ([("{by: ranges}", "{transmission: 250 m}")], 18, f"{AIR}.reach",
     "no reach model; add `by: ...`, one of: matrix, ranges, sinr"),
    ([("{by: ranges}", "{by: range}")], 18, f"{AIR}.reach.by",
     "unknown reach model 'range'; did you mean `ranges`?"),
    ([("{by: ranges}", "{by: sinr, carrier_sense: -70 dBm}")], 18, f"{AIR}.reach.carrier_sense",
     "a carrier_sense of -70 dBm is more than a sensitivity of -82 dBm, but a station that"),
    ([("{by: ranges}", "{by: sinr, capture: 3 dB, preamble: 4 dB}")], 18, f"{AIR}.reach.preamble",
     "a preamble of 4 dB is more than a capture of 3 dB, but a frame is received only if its"),
    ([("{by: ranges}", "{by: sinr, path_loss_exponent: 30}")], 18,
     f"{AIR}.reach.path_loss_exponent", "30 is out of range; give 20"),
    ([("{by: ranges}", "{by: sinr, tx_power: 0 dBm}")], 14, f"{AIR}.stations.a",
     "a is out of reach of all other stations; give it another position"),
    ([("{by: ranges}", f"{MATRIX}}}")], 14, f"{AIR}.stations.a.at",
     "a medium with a reach matrix does not use positions; remove `at`"),
    ([*change_to_matrix()[:1], ("{by: ranges}", f"{MATRIX}}}"),
      (POSITIONS[1], " {trace: {1 s: [0 m, 0 m]}}")],
     15, f"{AIR}.stations.b.trace",
     "a medium with a reach matrix does not use positions; remove `trace`"),
    ([*change_to_matrix(", senses: {x: [a]}")], 18, f"{AIR}.reach.senses.x",
     "there is no station x; stations: a, b, c, d"),
    ([*change_to_matrix(", interferes: {a: [c, y]}")], 18, f"{AIR}.reach.interferes.a",
     "there is no station y; stations: a, b, c, d"),
    ([*change_to_matrix(", senses: {a: [a]}")], 18, f"{AIR}.reach.senses.a",
     "a is listed as a receiver of itself; remove a"),
    ([*change_to_matrix()[:-1],
      ("{by: ranges}", "{by: matrix, decodes: {a: [b], b: [a, c], c: [b]}}")],
     17, f"{AIR}.stations.d",
     "d is out of reach of all other stations; name it under `decodes`, or remove d"),
    ([("1 s: [2", "0 s: [2")], 15, f"{AIR}.stations.b.trace",
     "a position at 0 s; write it as `at: [0 m, 0 m]`"),
    ([("2 s: [2", "1 s: [2")], 15, "", "key '1 s' is given twice"),
    ([("2 s: [2", "500 ms: [2")], 15, f"{AIR}.stations.b.trace",
     "500 ms is not after 1 s; give every instant once, in order"),
    ([("2 s: [2", "30 h: [2")], 15, f"{AIR}.stations.b.trace",
     "108000 s is too late; give at most 86400 s"),
    ([("1 s: [210 m, 0 m]", "1 s: [210 m]")], 15, f"{AIR}.stations.b.trace.1 s",
     "no entry 2 in the list; add it"),
    ([("to: c", "to: e"), ("w: host}", "w: host, e: host}")], 20, "flows.far.to",
     "there is no path from a to e; join them by links, or by stations in reach of each other"),
    ([("{by: ranges}", "{by: ranges}\n    routes: {x: {c: b}}")], 19, f"{AIR}.routes.x",
     "there is no station x; stations: a, b, c, d"),
    ([("{by: ranges}", "{by: ranges}\n    routes: {a: {x: b}}")], 19, f"{AIR}.routes.a.x",
     "there is no node x; nodes: a, b, c, d, w"),
    ([("{by: ranges}", "{by: ranges}\n    routes: {a: {a: b}}")], 19, f"{AIR}.routes.a.a",
     "a route of a to itself; remove it"),
    ([("{by: ranges}", "{by: ranges}\n    routes: {a: {c: x}}")], 19, f"{AIR}.routes.a.c",
     "no station x; in reach of a: b"),
    ([("{by: ranges}", "{by: ranges}\n    routes: {a: {d: c}}")], 19, f"{AIR}.routes.a.d",
     "c is not in reach of a; in reach of a: b"),
    ([("{by: ranges}", "{by: ranges}\n    routes: {b: {c: a}}")], 19, f"{AIR}.routes.b.c",
     "routes to c loop: a - b - a; give another next hop"),
    ([("{by: ranges}", "{by: sinr, tx_power: 46 dBm}\n    routes: {b: {a: c}, c: {a: b}}")],
     19, f"{AIR}.routes.c.a", "routes to a loop: c - b - c; give another next hop"),
    ([("rate: 100 Mb/s, delay: 5 ms, queue: 100 packets",
       "emulator: sdr, delay: 300 ms, queue: 5 packets, radio: {modem: ofdm, modulation: qpsk, "
       "rate: 2 Mb/s, snr: 12 dB}")], 7, "links.cable.emulator",
     "a radio in a run with a shared medium, which nagi-sdr cannot carry; write"),
    ([("[newreno]", "[newjersey]")], 24, "matrix.scheme.0",
     "newjersey reacts to marks (ECN), and no link marks on its path: air (a to b), air (b to c)"),
    ([("links:\n  cable: {between: [d, w], rate: 100 Mb/s, delay: 5 ms, queue: 100 packets}\n", ""),
      (CHAIN[CHAIN.index("media:"):CHAIN.index("flows:")], "")], 1, "links",
     "no links, and no media; add `links: {NAME: {between: [NODE, NODE], ...}}`, or `media: ...`"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "line", "key", "complaint"), BAD)
def test_what_makes_no_sense_is_refused_with_line_place_and_cure(
    tmp_path, changes, line, key, complaint
):
    with pytest.raises(InputError) as refused:
        plan_of(tmp_path, *changes)
    problem, *_ = refused.value.problems
    assert complaint in str(problem)
    assert (problem.line, problem.key) == (line, key)
    assert problem.cure and str(problem).startswith(str(tmp_path))


def test_ids_addresses_and_macs(tmp_path):
    plan = plan_of(tmp_path)
    medium = plan.medium("air")
    assert (plan.link("cable").id, medium.id) == (0, 1)
    assert [(station.node, station.address, station.mac) for station in medium.stations] == [
        ("a", "198.19.0.1/24", "02:6e:67:00:01:01"),
        ("b", "198.19.0.2/24", "02:6e:67:00:01:02"),
        ("c", "198.19.0.3/24", "02:6e:67:00:01:03"),
        ("d", "198.19.0.4/24", "02:6e:67:00:01:04"),
    ]
    second = """\
media:
  first:
    phy: 802.11g
    data_rate: 54 Mb/s
    stations: {b: {at: [0 m, 0 m]}, w: {at: [1 m, 0 m]}}
"""
    stations = plan_of(tmp_path, ("media:\n", second)).medium("first").stations
    assert [station.address for station in stations] == ["198.19.0.1/24", "198.19.0.2/24"]
    assert plan_of(tmp_path, ("media:\n", second)).medium("air").stations[0].address == (
        "198.19.1.1/24"
    )


def test_what_is_not_given_is_the_phy_s_and_the_standard_s(tmp_path):
    medium = plan_of(tmp_path).medium("air")
    fields = medium.model_dump(mode="json")
    assert fields.pop("reach") == {
        "by": "ranges",
        "transmission_m": 250.0,
        "carrier_sense_m": 550.0,
        "interference_m": 550.0,
        "capture_db": None,
    }
    stations = fields.pop("stations")
    assert stations[0]["position_m"] == [0.0, 0.0] and "trace" not in stations[0]
    assert stations[1]["trace"] == [[10**9, 210.0, 0.0], [2 * 10**9, 220.0, 10.0]]
    assert fields == {
        "name": "air",
        "id": 1,
        "phy": "802.11b",
        "preamble": "long",
        "data_rate_bps": 2_000_000,
        "basic_rate_bps": 1_000_000,
        "rts_threshold_bytes": 0,
        "short_retry_limit": 7,
        "long_retry_limit": 4,
        "cw_min": 31,
        "cw_max": 1023,
        "queue": {"packets": 50, "bytes": None},
        "loss": {"at": "egress", "model": "none"},
        "resets_nav": True,
        "eifs_after": "frames",
        "monitor": None,
    }
    of_others = plan_of(
        tmp_path, ("phy: 802.11b", "phy: 802.11g\n    monitor: true"), ("[2 Mb", "[54 Mb")
    ).medium("air")
    assert (of_others.preamble, of_others.basic_rate_bps) == (None, 6_000_000)
    assert (of_others.cw_min, of_others.monitor) == (15, "monitor.air.pcapng")
    short = plan_of(tmp_path, ("$rate", "$rate\n    preamble: short")).medium("air")
    assert (short.preamble, short.basic_rate_bps) == ("short", 2_000_000)


def test_everything_may_be_an_axis(tmp_path):
    changes = [
        ("{at: [600 m, 0 m]}", "{at: [$x, 0 m]}"),
        ("rts_threshold: 0 bytes", "rts_threshold: 0 bytes\n    eifs_after: $eifs"),
        ("{by: ranges}", "{by: $by}"),
        ("matrix:", "matrix:\n  x: [600 m, 0.62 km]\n  eifs: [frames, signals]\n  by: [ranges]"),
    ]
    points = read(tmp_path, *changes)
    media = [plan_runs(point, None)[0].medium("air") for point in points]
    assert [(medium.stations[3].position_m, medium.eifs_after) for medium in media] == [
        ((600.0, 0.0), "frames"), ((600.0, 0.0), "signals"),
        ((620.0, 0.0), "frames"), ((620.0, 0.0), "signals"),
    ]  # fmt: skip
    data = YAML(typ="safe").load((tmp_path / "spec.yaml").read_text())
    jsonschema.validate(data, make_experiment_schema())


def test_paths_are_hops_from_station_to_station_and_on_over_links(tmp_path):
    plan = plan_of(tmp_path, ("to: c", "to: w"))
    (flow,) = plan.flows
    assert describe_hops(flow.path) == ["a b", "b c", "c d", "cable forward"]
    assert describe_hops(flow.path_back()) == ["cable backward", "d c", "c b", "b a"]
    assert [plan.sender_of(hop) for hop in flow.path] == ["a", "b", "c", "d"]
    assert [plan.receiver_of(hop) for hop in flow.path] == ["b", "c", "d", "w"]
    assert flow.path[1].model_dump() == {
        "link": "air", "direction": "forward", "sender": "b", "receiver": "c",
    }  # fmt: skip
    assert flow.path[3].model_dump() == {"link": "cable", "direction": "forward"}
    assert plan.port(flow.path[0]) is None and plan.switch_settings(flow.path[0]) is None
    medium = plan.medium("air")
    assert plan.channel(flow.path[0]) == DirectionPlan(
        rate_bps=2_000_000, overhead_bytes=36, queue=medium.queue
    )
    assert (flow.sender_address, flow.receiver_address) == ("198.19.0.1", "198.18.0.2")
    assert flow.bottleneck_bps == 2_000_000
    assert {(capture.node, capture.link) for capture in plan.captures} == {
        ("a", "air"),
        ("w", "cable"),
    }


def test_a_way_back_that_is_another_one_is_in_the_plan(tmp_path):
    # All in reach of all: straight there, and by b back.
    near = ("{by: ranges}", "{by: ranges, transmission: 600 m, carrier_sense: 600 m}\n"
            "    routes: {c: {a: b}}")  # fmt: skip
    (flow,) = plan_of(tmp_path, near).flows
    assert describe_hops(flow.path) == ["a c"]
    assert describe_hops(flow.path_back()) == describe_hops(flow.back) == ["c b", "b a"]
    (flow,) = plan_of(tmp_path).flows
    assert "back" not in flow.model_dump()


def test_routes_lead_hop_by_hop_and_only_stations_on_the_path_have_them(tmp_path):
    plan = plan_of(tmp_path)
    routes = {
        node.name: [(route.destination, route.via, route.link) for route in node.routes]
        for node in plan.nodes
    }
    assert routes == {
        "a": [("198.19.0.3/32", "198.19.0.2", "air")],
        "b": [("198.19.0.3/32", None, "air"), ("198.19.0.1/32", None, "air")],
        "c": [("198.19.0.1/32", "198.19.0.2", "air")],
        "d": [],
        "w": [],
    }
    (route,) = plan.node("a").routes
    assert (route.mtu, route.advmss) == (1052, 1012)
    longer = plan_of(tmp_path, ("to: c", "to: w"))
    assert [(route.destination, route.via, route.link) for route in longer.node("d").routes] == [
        ("198.18.0.2/32", None, "cable"), ("198.19.0.1/32", "198.19.0.3", "air"),
    ]  # fmt: skip


def test_given_routes_count(tmp_path):
    # Without them c reaches a directly.
    near = "{by: ranges, transmission: 410 m}"
    (flow,) = plan_of(tmp_path, ("{by: ranges}", near)).flows
    assert describe_hops(flow.path) == ["a c"]
    routes = near + "\n    routes: {a: {c: b}, c: {a: b}}"
    (flow,) = plan_of(tmp_path, ("{by: ranges}", routes)).flows
    assert describe_hops(flow.path) == ["a b", "b c"]
    assert "back" not in flow.model_dump()


def test_stations_forward_and_send_no_redirects(tmp_path):
    plan = plan_of(tmp_path)
    for name in ("a", "d"):
        sysctls = plan.node(name).sysctls
        assert next(iter(sysctls)) == "net.ipv4.ip_forward"  # the kernel resets others with it
        assert {key: value for key, value in sysctls.items() if ".tcp_" not in key} == {
            "net.ipv4.ip_forward": "1",
            "net.ipv4.conf.all.rp_filter": "0",
            "net.ipv4.conf.all.send_redirects": "0",
            "net.ipv4.conf.{air}.send_redirects": "0",
            "net.ipv4.conf.all.accept_redirects": "0",
        }
    assert "net.ipv4.tcp_sack" in plan.node("a").sysctls
    assert not any(".tcp_" in key for key in plan.node("d").sysctls)
    assert "net.ipv4.ip_forward" not in plan.node("w").sysctls


def test_reach_by_powers_and_by_matrix(tmp_path):
    # 16 - 46.7 - 30 log10(200) = -99.7 dBm; with 30 dBm more it is -69.7 dBm, and -78.8 at 400 m.
    medium = plan_of(tmp_path, ("{by: ranges}", "{by: sinr, tx_power: 46 dBm}")).medium("air")
    assert medium.list_neighbours() == {"a": ["b", "c"], "b": ["a", "c", "d"],
                                 "c": ["a", "b", "d"], "d": ["b", "c"]}  # fmt: skip
    deaf = "{by: sinr, tx_power: 46 dBm, capture: 20 dB}"  # 15.2 dB over the noise at 400 m
    medium = plan_of(tmp_path, ("{by: ranges}", deaf)).medium("air")
    assert medium.list_neighbours()["a"] == ["b"]
    assert medium.senses("a", "c") and not medium.decodes("a", "c")
    plan = plan_of(tmp_path, *change_to_matrix(", senses: {a: [c]}, interferes: {a: [d], d: [a]}"))
    medium = plan.medium("air")
    yes, no = True, False
    assert medium.reach.model_dump() == {
        "by": "matrix",
        "decodes": [[no, yes, no, no], [yes, no, yes, no], [no, yes, no, yes], [no, no, yes, no]],
        "senses": [[no, yes, yes, no], [yes, no, yes, no], [no, yes, no, yes], [no, no, yes, no]],
        "interferes": [
            [no, yes, no, yes], [yes, no, yes, no], [no, yes, no, yes], [yes, no, yes, no],
        ],
    }  # fmt: skip
    assert medium.senses("a", "c") and not medium.senses("c", "a")
    assert all(station.position_m is None for station in medium.stations)
    assert describe_hops(plan.flows[0].path) == ["a b", "b c"]
    # A frame that is decoded is of no use if its ACK is not.
    one_way = ("a: [b], b: [a, c]", "a: [b, c], b: [a, c]")
    plan = plan_of(tmp_path, *change_to_matrix(), one_way)
    assert describe_hops(plan.flows[0].path) == ["a b", "b c"]


def test_a_station_that_comes_into_reach_later_is_in_reach(tmp_path):
    plan = plan_of(tmp_path, (POSITIONS[3], " {at: [5 km, 0 m], trace: {5 s: [600 m, 0 m]}}"))
    medium = plan.medium("air")
    assert medium.list_neighbours()["d"] == []
    assert medium.list_neighbours(5 * 10**9)["d"] == ["c"]
    with pytest.raises(InputError, match="there is no path from a to w"):
        plan_of(
            tmp_path,
            ("to: c", "to: w"),
            (POSITIONS[3], " {at: [5 km, 0 m], trace: {5 s: [600 m, 0 m]}}"),
        )


@pytest.mark.parametrize(
    ("phy", "preamble", "rate", "basic", "rts", "ip", "expected_us"),
    [
        # DIFS 50; long preamble 192; (1052 + 36) x 8 / 2; SIFS 10; ACK 192 + 112.
        ("802.11b", "long", 2, 1, None, 1052, 50 + 192 + 4352 + 10 + 304),
        # RTS 192 + 160 and CTS 192 + 112, each with a SIFS.
        ("802.11b", "long", 2, 1, 0, 1052, 50 + 352 + 10 + 304 + 10 + 192 + 4352 + 10 + 304),
        ("802.11b", "long", 2, 1, 1088, 1052, 50 + 192 + 4352 + 10 + 304),
        ("802.11b", "long", 2, 1, 1087, 1052, 50 + 352 + 10 + 304 + 10 + 192 + 4352 + 10 + 304),
        # 8704 bits at 5.5 Mb/s are 1582.5 us; ACK at 2 Mb/s 96 + 56.
        ("802.11b", "short", 5.5, 2, None, 1052, 50 + 96 + 1583 + 10 + 152),
        # DIFS 16 + 18; 22 + 8704 bits in 41 symbols of 216; ACK 22 + 112 in 6 of 24.
        ("802.11a", None, 54, 6, None, 1052, 34 + 20 + 41 * 4 + 16 + 20 + 6 * 4),
        # DIFS 10 + 18; the signal extension of 6 us behind both.
        ("802.11g", None, 54, 6, None, 1052, 28 + 20 + 41 * 4 + 6 + 10 + 20 + 6 * 4 + 6),
    ],
)
def test_an_undisturbed_exchange_takes_what_the_standard_says(
    phy, preamble, rate, basic, rts, ip, expected_us
):
    times = MediumTimes(
        phy=phy,
        preamble=preamble,
        data_rate_bps=round(rate * 1e6),
        basic_rate_bps=basic * 10**6,
        rts_threshold_bytes=rts,
    )
    assert times.exchange_ns(ip) == expected_us * 1000


def test_base_rtts_windows_and_searches_follow_from_exchanges(tmp_path):
    plan = plan_of(tmp_path, ("to: c", "to: w"))
    # 1052 bytes take 5,584 us; 40 bytes take 50 + 352 + 10 + 304 + 10 + 192 + 304 + 10 + 304 us.
    assert plan.flows[0].base_rtt_s == pytest.approx(3 * (5584e-6 + 1536e-6) + 2 * 5e-3)
    optimal = [("[newreno]", "[newreno-optwin]"), ("to: c", "to: d"), ("d: router", "d: host")]
    # One of three hops is busy at a time: 1 + 1536 / 5584, rounded up to two packets.
    assert plan_of(tmp_path, *optimal).flows[0].max_window == 2
    changes = [*optimal, ("matrix:", "parameters: {newreno-optwin: {window: 3}}\nmatrix:")]
    assert plan_of(tmp_path, *changes).flows[0].max_window == 3
    paced = [("[newreno]", "[paced-udp]"), ("warmup: 5 s", "warmup: 8 s")]
    # No more than one exchange after the other.
    assert plan_of(tmp_path, *paced).flows[0].application.rate_bps == 1052 * 8 * 10**6 // 5584
    # 26 trains of 25 packets, two exchanges each, 28 bytes of headers in place of 52.
    with pytest.raises(InputError, match=r"set `warmup: 7.1\d* s` or more"):
        plan_of(tmp_path, paced[0])


def test_setting_up_stations_takes_time(tmp_path):
    begins = plan_of(tmp_path).timeline.capture_s
    stations = "".join(f"      n{i}: {{at: [{i} m, 0 m]}}\n" for i in range(16))
    nodes = "".join(f", n{i}: host" for i in range(16))
    more = [("w: host}", f"w: host{nodes}}}"), ("      a: {at", stations + "      a: {at")]
    # A link is two interfaces, a medium one for each station.
    assert plan_of(tmp_path, *more).timeline.capture_s == pytest.approx(begins + 16 * 0.1)


def test_a_run_ends_when_stations_can_have_sent_all_that_waits(tmp_path):
    timeline = plan_of(tmp_path).timeline
    more = plan_of(tmp_path, ("rts_threshold", "queue: 150 packets\n    rts_threshold")).timeline
    # Packets that wait at the first have two hops to go, at the second one.
    added = (more.capture_end_s - more.traffic_end_s) - (
        timeline.capture_end_s - timeline.traffic_end_s
    )
    assert added == pytest.approx(3 * 100 * 5584e-6)


@pytest.mark.parametrize(
    ("rate", "rts", "loss", "simulated_ms"),
    [
        ("2 Mb/s", "0 bytes", "35 %", 31.6),
        ("11 Mb/s", "0 bytes", "35 %", 24),
        ("11 Mb/s", "0 bytes", "60 %", 66),
        ("11 Mb/s", "2000 bytes", "35 %", 6.3),
        ("11 Mb/s", "2000 bytes", "60 %", 19.6),
    ],
)
def test_a_packet_takes_the_tries_that_losses_make(tmp_path, rate, rts, loss, simulated_ms):
    """Compare with a simulation of DCF for one sender, which resets windows by the standard."""
    more = ("rts_threshold: 0 bytes", f"loss: {loss}\n    rts_threshold: {rts}")
    (medium,) = plan_of(tmp_path, more, ("2 Mb/s", rate)).media
    assert 0.95 * simulated_ms <= medium.mean_sending_ns(1052) / 1e6 <= 4 * simulated_ms


def test_without_losses_a_packet_takes_an_exchange(tmp_path):
    (medium,) = plan_of(tmp_path).media
    assert medium.mean_sending_ns(1052) == medium.exchange_ns(1052)


def test_seeds_follow_from_the_medium_and_not_from_the_scheme(tmp_path):
    schemes = read(tmp_path, ("[newreno]", "[newreno, vegas]"))
    seeds = {plan_runs(point, None)[0].seed for point in schemes}
    assert len(seeds) == 1
    other = plan_of(tmp_path, ("{at: [400 m, 0 m]}", "{at: [401 m, 0 m]}"))
    assert {other.seed} != seeds
    again, third = plan_runs(read(tmp_path, ("seed: 1\n", "seed: 1\nrepeats: 2\n"))[0], None)
    assert again.seed in seeds and third.seed not in seeds


def test_memos_change_nothing_and_plans_are_what_their_json_says(tmp_path):
    changes = [("[2 Mb/s]", "[2 Mb/s, 11 Mb/s]"), ("[newreno]", "[newreno, vegas]")]
    memo = Memo()
    shared = [plan_runs(point, None, memo=memo)[0] for point in read(tmp_path, *changes)]
    apart = [plan_runs(point, None)[0] for point in read(tmp_path, *changes)]
    assert shared == apart
    assert [plan.with_ids("b", memo) for plan in shared] == [p.with_ids("b") for p in apart]
    assert len({plan.with_ids("b").run_id for plan in shared}) == 4
    for plan in shared:
        written = plan.model_dump_json()
        assert RunPlan.model_validate_json(written).model_dump_json() == written


def test_a_plan_without_media_does_not_mention_them(tmp_path):
    text = CHAIN[: CHAIN.index("media:")] + CHAIN[CHAIN.index("flows:") :]
    wired = plan_of(
        tmp_path,
        ("from: a, to: c", "from: w, to: d"),
        ("d: router", "d: host"),
        ("rate: 100 Mb/s", "rate: $rate"),
        base=text,
    )
    assert "media" not in wired.model_dump()
    assert "sender" not in json.dumps(wired.model_dump()["flows"][0]["path"])


def shape_of(tmp_path, *changes) -> Shape:
    return Shape.from_plan(plan_of(tmp_path, *changes))


def test_a_lab_has_an_interface_for_each_station(tmp_path):
    shape = shape_of(tmp_path)
    assert shape.media == ("air",)
    (interface,) = shape.list_interfaces("b")
    assert (interface.link, interface.address) == ("air", "198.19.0.2/24")
    assert interface.mac == "02:6e:67:00:01:02"
    assert [(entry.node, entry.address, entry.mac) for entry in interface.neighbours] == [
        ("a", "198.19.0.1", "02:6e:67:00:01:01"),
        ("c", "198.19.0.3", "02:6e:67:00:01:03"),
        ("d", "198.19.0.4", "02:6e:67:00:01:04"),
    ]
    assert [each.link for each in shape.list_interfaces("d")] == ["cable", "air"]
    assert [(end.node, end.link, peer) for end, peer in list_veth_pairs(shape)] == [
        ("d", "cable", "cable.a"), ("w", "cable", "cable.b"),
        ("a", "air", "air.a"), ("b", "air", "air.b"), ("c", "air", "air.c"), ("d", "air", "air.d"),
    ]  # fmt: skip
    (told,) = describe_interfaces(shape, "a", {"air": "air"})
    assert told["neighbours"] == {
        "198.19.0.2": "02:6e:67:00:01:02",
        "198.19.0.3": "02:6e:67:00:01:03",
        "198.19.0.4": "02:6e:67:00:01:04",
    }


def test_names_of_the_emulator_s_interfaces_are_no_longer_than_linux_allows(tmp_path):
    plan = plan_of(tmp_path)
    longest = "m" * 11
    medium = plan.medium("air").model_copy(update={"name": longest})
    names = Shape.from_plan(plan.model_copy(update={"media": [medium]})).name_emulator_interfaces()
    assert names[longest] == tuple(f"{longest}.{end}" for end in "abcd")
    stations = [
        station.model_copy(update={"node": f"node{station.node}"}) for station in medium.stations
    ]
    medium = medium.model_copy(update={"stations": stations})
    names = Shape.from_plan(plan.model_copy(update={"media": [medium]})).name_emulator_interfaces()
    assert names[longest] == tuple(f"{longest}.{number}" for number in (1, 2, 3, 4))


def test_an_emulator_s_batch_names_the_interfaces_of_all_stations(tmp_path):
    shape = shape_of(tmp_path)
    places = make_netns_placements(
        shape, ["cell0"], tmp_path, tmp_path, tmp_path / "nagi-link", list_local_programs
    )
    batches = {place.node: place.make_batch([], []) for place in places}
    assert batches[EMULATOR].interfaces == {
        "cable": ("cable.a", "cable.b"),
        "air": ("air.a", "air.b", "air.c", "air.d"),
    }
    assert batches["d"].interfaces == {"cable": "cable", "air": "air"}
    assert "macs" not in batches[EMULATOR].model_dump()


def test_disk_counts_the_frames_of_exchanges(tmp_path):
    keep = Keep()
    plan = plan_of(tmp_path)
    with_rts = estimate_size(plan, keep)
    without = estimate_size(plan_of(tmp_path, ("    rts_threshold: 0 bytes\n", "")), keep)
    # An exchange without RTS takes less time, so there are more; but they have half the frames.
    assert with_rts.raw > without.raw > 0.6 * with_rts.raw
    monitored = plan_of(tmp_path, ("$rate", "$rate\n    monitor: true"))
    assert estimate_size(monitored, keep).raw > with_rts.raw
    (flow,) = plan.flows
    faster = plan_of(tmp_path, ("[2 Mb/s]", "[11 Mb/s]"))
    assert str(Bitrate(faster.flows[0].bottleneck_bps)) == "11 Mb/s"
    assert estimate_size(faster, keep).raw < 11 / 2 * with_rts.raw  # headers do not become faster
    assert flow.path != []
