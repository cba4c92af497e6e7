# SPDX-License-Identifier: Apache-2.0
"""nagi-link's configuration of a shared medium, and sysctl keys that name an interface by link."""

from __future__ import annotations

import pytest
from agent_inputs import make_batch_json, make_emulator_job, make_plan_json
from nagi_agent.contracts import Batch, RunPlan
from nagi_agent.emulator import build_configuration
from nagi_agent.job import Job
from nagi_agent.settings import resolve_sysctl_key

STATIONS = [
    {
        "node": "S",
        "address": "198.19.0.1/24",
        "mac": "02:6e:67:00:00:01",
        "position_m": [0.0, 0.0],
        "trace": [[5, 1.0, 2.0]],
    },
    {
        "node": "D",
        "address": "198.19.0.2/24",
        "mac": "02:6e:67:00:00:02",
        "position_m": [200.0, 0.0],
    },
]
MEDIUM = {
    "name": "air",
    "id": 0,
    "phy": "802.11g",
    "preamble": None,
    "queue": {"packets": 50, "bytes": None},
    "monitor": None,
    "reach": {"by": "ranges", "transmission_m": 250.0, "capture_db": None},
    "stations": STATIONS,
}
PLAN = RunPlan.from_json({**make_plan_json(), "media": [MEDIUM]})
ENDS = {"air": ("air.S", "air.D"), **{link.name: ("a", "b") for link in PLAN.links}}


def test_nagi_link_gets_stations_and_their_interfaces(tmp_path):
    result = build_configuration(PLAN, make_emulator_job(tmp_path, ENDS), 0.0)
    assert result["transmissions"] == "transmissions.bin"
    assert result["media"] == [
        {
            "name": "air",
            "id": 0,
            "phy": "802.11g",
            "queue": {"packets": 50},
            "reach": {"by": "ranges", "transmission_m": 250.0},
            "stations": [
                {
                    "name": "S",
                    "interface": "air.S",
                    "mac": "02:6e:67:00:00:01",
                    "position_m": [0.0, 0.0],
                    "trace": [[5, 1.0, 2.0]],
                },
                {
                    "name": "D",
                    "interface": "air.D",
                    "mac": "02:6e:67:00:00:02",
                    "position_m": [200.0, 0.0],
                },
            ],
        }
    ]


def test_a_configuration_without_media_has_no_such_key(tmp_path):
    plan = RunPlan.from_json(make_plan_json())
    assert plan.media == []
    assert "media" not in build_configuration(plan, make_emulator_job(tmp_path, ENDS), 0.0)


def test_a_batch_can_replace_the_mac_addresses(tmp_path):
    macs = {"air": ("00:00:5e:00:53:01", "00:00:5e:00:53:02")}
    job = make_emulator_job(tmp_path, ENDS, macs=macs)
    (medium,) = build_configuration(PLAN, job, 0.0)["media"]
    assert tuple(station["mac"] for station in medium["stations"]) == macs["air"]


def test_a_batch_s_interfaces_of_stations(tmp_path):
    batch = make_batch_json(tmp_path)
    batch |= {"is_emulator": True, "interfaces": {"air": ["p1", "p2", "p3"], "wire": ["p4", "p5"]}}
    batch["macs"] = {"air": ["1", "2", "3"]}
    job = Job(Batch.from_json(batch))
    assert job.ends == {"air": ("p1", "p2", "p3"), "wire": ("p4", "p5")}
    assert job.all_interfaces == ["p1", "p2", "p3", "p4", "p5"]
    assert job.macs == {"air": ("1", "2", "3")}


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("net.ipv4.ip_forward", "net.ipv4.ip_forward"),
        ("net.ipv4.conf.all.send_redirects", "net.ipv4.conf.all.send_redirects"),
        ("net.ipv4.conf.{air}.send_redirects", "net/ipv4/conf/enp2s0.10/send_redirects"),
    ],
)
def test_sysctl_keys_name_the_interface_of_a_link(key, expected):
    assert resolve_sysctl_key(key, {"air": "enp2s0.10", "wire": "enp3s0"}) == expected
