# SPDX-License-Identifier: Apache-2.0
"""Call nagi as a new user does, from `nagi new` to results, in the default lab."""

from __future__ import annotations

import json
import subprocess

import pandas as pd
from marks import needs_root
from nagi_contracts.links import Links
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Verdict
from specs import two_links
from test_virtual_lab import NAGI, no_guest_left, pytestmark  # noqa: F401 - a fixture, and marks


def nagi(directory, *arguments: str, status: int = 0) -> tuple[str, str]:
    """Run nagi in `directory`; return its standard output and standard error."""
    done = subprocess.run(
        [NAGI, *arguments], cwd=directory, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout, done.stderr


def test_a_new_experiment_is_planned_run_and_shown(tmp_path):
    nagi(tmp_path, "new", "first")
    said, _ = nagi(tmp_path, "plan", "first.yaml")
    assert "2 runs, 2 of them possible in the virtual lab; about " in said
    said, _ = nagi(tmp_path, "run", "first.yaml")
    out = tmp_path / "results" / "first"
    announced = said.splitlines()
    assert announced[0].startswith("first: 2 runs in the virtual lab, ")
    assert announced[1] == f"results: {out}"
    assert announced[2].startswith("to run: 2; about ")
    assert "2 runs: 2 valid, 0 invalid, 0 failed" in said
    # Again, as JSON: nothing is run, and nothing else is on standard output.
    said, text = nagi(tmp_path, "run", "first.yaml", "--json")
    assert "done before: 2" in text and "to run" not in text
    found = json.loads(said)
    assert (found["lab"], found["counts"]["valid"]) == ("virtual", 2)
    assert found["report"] == str(out / "report.pdf")
    shown = json.loads(nagi(tmp_path, "show", "results/first", "--json")[0])
    assert shown == found
    run_id = found["runs"][0]["run_id"]
    said, _ = nagi(tmp_path, "show", "results/first", run_id[:6])
    assert f"{run_id} of first" in said and "replay_differences" in said
    analysed = json.loads(nagi(tmp_path, "analyze", "results/first", "--json")[0])
    assert analysed["panels"] == found["panels"]


@needs_root
def test_its_campaign_is_not_continued_in_another_lab(tmp_path):
    nagi(tmp_path, "new", "first")
    only = ("--only", "scheme=cubic")
    nagi(tmp_path, "run", "first.yaml", *only)
    before = sorted((tmp_path / "results" / "first").rglob("*"))
    _, said = nagi(tmp_path, "run", "first.yaml", *only, "--lab", "netns", status=2)
    assert (
        "are of the virtual lab, and the new runs would be of the netns lab; continue with --lab"
        in said
    )
    assert sorted((tmp_path / "results" / "first").rglob("*")) == before


def test_names_may_be_words_of_ip(tmp_path):
    """Use names that are keywords of ip(8): `ip link set link up` would fail."""
    nagi(tmp_path, "new", "words")
    spec = tmp_path / "words.yaml"
    text = spec.read_text().replace("bottleneck", "link").replace("sender", "dev")
    spec.write_text(text.replace("duration: 10 s", "duration: 3 s").replace("receiver", "type"))
    said, _ = nagi(tmp_path, "run", "words.yaml", "--only", "scheme=cubic")
    assert "1 run: 1 valid" in said


def test_everything_a_link_can_do_is_done_and_certified(tmp_path):
    out = tmp_path / "out"
    said, _ = nagi(tmp_path, "run", "impairments", "--variant", "short", "--out", str(out))
    assert "1 run: 1 valid, 0 invalid, 0 failed" in said
    (directory,) = (out / "runs").iterdir()
    packets = pd.read_parquet(directory / "packets.parquet")
    there = packets[(packets["link"] == "satellite") & (packets["direction"] == "forward")]
    assert (there["fate"] == "channel loss").sum() > 0
    # The jitter reordered, the other links did not.
    delivered = there[there["fate"] == "delivered"].sort_values("index")
    assert (delivered["left_ns"].diff() < 0).any()
    access = packets[(packets["link"] == "access") & (packets["direction"] == "forward")]
    assert (
        access[access["fate"] == "delivered"]
        .sort_values("index")["left_ns"]
        .is_monotonic_increasing
    )


BURSTS = two_links(
    "bursts",
    "rate: 1 Gb/s, delay: 5 ms",
    "rate: 1 Gb/s, delay: 5 ms, queue: 5000 packets",
    "scheme: cubic, traffic: command, client: [/usr/bin/python3, -c, CODE, $packets]",
    """\
duration: 2 s
matrix: {packets: ["600", "1500", "3000"]}
report: {x: packets, series: packets}
""",
).replace("queue: 1 bdp", "queue: 5000 packets")
BURST = """
import socket, sys, time
sender = socket.socket(type=socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
for _ in range(3):
    for _ in range(int(sys.argv[1])):
        sender.sendto(bytes(1000), ("{receiver}", {port}))
    time.sleep(0.3)
"""


def test_packets_of_a_burst_are_not_late(tmp_path):
    """Send bursts of any size: nagi-link reads all packets before it sleeps."""
    spec = tmp_path / "spec.yaml"
    spec.write_text(BURSTS.replace("CODE", json.dumps(BURST)))
    nagi(tmp_path, "run", "spec.yaml", "--out", "out")
    for run in (tmp_path / "out" / "runs").iterdir():
        packets = int(RunPlan.read(run / "plan.json").point["packets"])
        for link in Links.read(run / "links.json").links:
            assert link.forward.packets.delivered == 3 * packets
            assert link.forward.arrival_lateness_ns.max == 0
            assert link.forward.transit_error_ns.max == 0
        verdict = Verdict.read(run / "verdict.json")
        subjects = {check.name: check.subject for check in verdict.checks}
        reason = "no packet of both captures has an identity of its own"
        assert reason in subjects["capture_transit_max"]
