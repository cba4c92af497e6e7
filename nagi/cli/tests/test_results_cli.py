# SPDX-License-Identifier: Apache-2.0
"""The commands that work on results, as users call them, and what `nagi plan` prints.

These are analyze, bundle, compare, metrics and verify. `nagi plan` prints repeats and disk space.
"""

from __future__ import annotations

import json
import shutil

import pandas as pd
import pytest
from nagi.campaign.estimate import Disk
from nagi.campaign.retention import retain
from nagi.commands.plan import Estimate
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.records import Campaign, Keep
from nagi_contracts.results import Metrics

EXAMPLE = SCHEMAS / "example"


@pytest.fixture
def refused(nagi):
    def command(*arguments: object) -> str:
        result = nagi(*arguments)
        assert result.status == 2, result.out + result.err
        assert result.err.startswith("nagi: ") or "Usage" in result.err
        return result.err

    return command


@pytest.fixture
def campaign(tmp_path):
    return shutil.copytree(EXAMPLE / "campaign", tmp_path / "campaign")


def make_campaign(path, agi, *, schemes=("newreno", "cubic"), seed=0, status="valid", name="x"):
    """Make a campaign with the results `agi(scheme, capacity, repeat)` and nothing else."""
    shutil.copytree(EXAMPLE / "campaign", path, ignore=shutil.ignore_patterns("runs"))
    table = pd.read_parquet(EXAMPLE / "campaign" / "results.parquet").iloc[:1]
    table = table.drop(columns=[column for column in table.columns if column.startswith("point.")])
    rows = []
    for scheme in schemes:
        for capacity in range(1, 8):
            for repeat in range(4):
                rows.append(
                    table.assign(
                        run_id=f"{name}-{scheme}-{capacity}-{repeat}",
                        point_id=f"{scheme}-{capacity}",
                        seed=seed + 10 * capacity + repeat,
                        repeat=repeat,
                        status=status,
                        agi=agi(scheme, capacity, repeat),
                        **{"point.capacity": f"{capacity} Mb/s", "point.scheme": scheme},
                    )
                )
    pd.concat(rows).to_parquet(path / "results.parquet", index=False)
    return path


def compute_channel(capacity, repeat):
    return 0.5 + 0.05 * ((capacity * 7 + repeat * 3) % 5)


@pytest.mark.parametrize(
    ("name", "damage", "line"),
    [
        ("campaign.json", lambda content: content[:100], "campaign.json: "),
        ("campaign.json", lambda _: b"[" * 100_000, "campaign.json: "),
        ("campaign.json", lambda _: b"", "campaign.json: "),
        ("campaign.json", None, "campaign.json: "),
        ("plan.json", lambda content: content[:1000], "plan.json: "),
        ("metrics.json", lambda content: content[:1000], "metrics.json: "),
        ("tcp_info.parquet", lambda content: content[: len(content) // 2], "tcp_info.parquet: "),
        ("packets.parquet", lambda content: content[: len(content) // 2], "packets.parquet: "),
        ("packets.parquet", lambda _: b"", "packets.parquet: "),
        ("results.parquet", None, "Failed to open local file"),
    ],
)
def test_a_damaged_campaign_is_refused_by_its_file(refused, campaign, name, damage, line):
    (path,) = campaign.rglob(name)
    content = path.read_bytes()
    path.unlink()
    if damage is None:
        path.mkdir()
    else:
        path.write_bytes(damage(content))
    output = refused("report", campaign, "--format", "html")
    assert output.startswith("nagi: ") and line in output
    assert output.count("\n") == 1 and "; " in output


def test_a_table_that_is_cut_off_is_made_again(nagi, refused, campaign):
    table = campaign / "results.parquet"
    whole = table.read_bytes()
    table.write_bytes(whole[:100])
    assert "cannot read the table" in refused("compare", campaign, campaign)
    assert nagi("analyze", campaign).status == 0
    assert table.stat().st_size > 100


def test_compare_two_campaigns(nagi, tmp_path):
    one = make_campaign(tmp_path / "one", lambda s, c, r: compute_channel(c, r))
    two = make_campaign(
        tmp_path / "two",
        lambda s, c, r: (
            compute_channel(c, r) + (0.05 + 0.001 * r if s == "cubic" else 0.001 * (-1) ** r)
        ),
    )
    result = nagi("compare", one, two)
    assert result.status == 0
    assert "7 of 14 points tested differ (paired t test, corrected by Holm, 95 %)." in result.out
    rows = [line for line in result.out.splitlines() if "Mb/s" in line]
    assert len(rows) == 14
    assert all(("differs" in row) == ("cubic" in row) for row in rows)
    data = json.loads(nagi("compare", one, two, "--json").out)
    assert (data["metric"], len(data["points"])) == ("agi", 14)
    assert data["first"] == {"name": "one", "labs": ["netns"], "builds": ["a85736b8df0dbb95"]}
    cubic = [point for point in data["points"] if point["point"]["scheme"] == "cubic"]
    assert all(point["difference"] == pytest.approx(0.0515) for point in cubic)
    assert all(point["p_value_holm"] < 0.05 for point in cubic)
    assert data["overall"]["difference"] == pytest.approx(0.0515 / 2)
    assert data["overall"]["p_value"] < 0.05


def test_a_comparison_as_a_report(nagi, refused, tmp_path):
    one = make_campaign(tmp_path / "one", lambda s, c, r: compute_channel(c, r))
    two = make_campaign(
        tmp_path / "two",
        lambda s, c, r: compute_channel(c, r) + (0.05 + 0.001 * r) * (s == "cubic"),
    )
    page = tmp_path / "both.html"
    result = nagi("compare", one, two, "--out", page)
    assert result.status == 0
    assert str(page) in result.out
    output = page.read_text()
    assert "<h1>one compared with two</h1>" in output
    assert "7 of 14 points tested differ" in output
    assert output.count(">differs</td>") == 7
    assert output.count("<svg") == 1
    for name in ("once", "again"):
        assert nagi("compare", one, two, "--out", tmp_path / f"{name}.pdf").status == 0
    assert (tmp_path / "once.pdf").read_bytes() == (tmp_path / "again.pdf").read_bytes()
    assert (tmp_path / "once.pdf").read_bytes().startswith(b"%PDF")
    assert "name a file *.pdf or *.html" in refused("compare", one, two, "--out", "both.doc")
    assert "no such directory" in refused("compare", one, two, "--out", tmp_path / "no" / "b.pdf")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("again.pdf", "both.html", "once.pdf", "one", "two")
    ]


def test_compare_within_a_campaign(nagi, refused, tmp_path):
    one = make_campaign(
        tmp_path / "one",
        lambda s, c, r: compute_channel(c, r) + (0.1 if s == "cubic" else 0.001 * r),
    )
    result = nagi("compare", one, "--by", "scheme=newreno,cubic")
    assert "agi: cubic - newreno" in result.out
    assert "7 of 7 points tested differ" in result.out
    assert "Wilcoxon signed-rank test over points" in result.out
    assert "not AXIS=VALUE,VALUE" in refused("compare", one, "--by", "scheme=cubic")
    assert "there is no such axis; axes: capacity, scheme" in refused(
        "compare", one, "--by", "height=1,2"
    )
    assert "no such value" in refused("compare", one, "--by", "scheme=cubic,tahoe")
    output = refused("compare", one, "--by", "capacity=1 Mb/s,2 Mb/s")
    assert "no two valid runs differ in capacity only" in output


def test_what_cannot_be_compared_is_refused(refused, nagi, tmp_path):
    one = make_campaign(tmp_path / "one", lambda s, c, r: 0.5)
    other_seed = make_campaign(tmp_path / "two", lambda s, c, r: 0.5, seed=5000)
    other = make_campaign(tmp_path / "three", lambda s, c, r: 0.5, schemes=("bbr",))
    invalid = make_campaign(tmp_path / "four", lambda s, c, r: 0.5, status="invalid")
    assert "give their experiments the same `seed`" in refused("compare", one, other_seed)
    assert "have no point in common" in refused("compare", one, other)
    assert "no valid run with the same point and seed" in refused("compare", one, invalid)
    assert "either two campaigns or --by" in refused("compare", one)
    assert "either two campaigns or --by" in refused("compare", one, other, "--by", "scheme=a,b")
    assert "has no results.parquet" in refused("compare", one, tmp_path)
    assert "there is no metric 'speed'; one of: " in refused(
        "compare", one, one, "--metric", "speed"
    )
    table = pd.read_parquet(one / "results.parquet").drop(columns="rtt_mean_s")
    table.to_parquet(one / "results.parquet")
    output = refused("compare", one, other_seed, "--metric", "rtt_mean_s")
    assert f"write it again with `nagi analyze {one}`" in output
    (one / "results.parquet").write_bytes(b"PAR1")
    assert "cannot read the table" in refused("compare", one, other)


def test_analyze_computes_the_same_again(nagi, campaign):
    (run,) = (campaign / "runs").iterdir()
    content_before = (
        (run / "metrics.json").read_bytes(),
        (campaign / "results.parquet").read_bytes(),
    )
    (run / "metrics.json").unlink()
    (campaign / "results.parquet").unlink()
    result = nagi("analyze", campaign)
    assert result.status == 0
    assert "1 run: 1 valid, 0 invalid, 0 failed" in result.out
    after = (run / "metrics.json").read_bytes(), (campaign / "results.parquet").read_bytes()
    assert after == content_before


def test_analyze_without_captures_keeps_the_metrics_and_says_so(nagi, campaign):
    (run,) = (campaign / "runs").iterdir()
    rows = Metrics.read(run / "metrics.json").rows
    retain(run, Keep(captures="none"))
    result = nagi("analyze", campaign)
    assert result.status == 0
    assert "1 run without captures (the experiment's `keep`): metrics unchanged" in result.out
    assert Metrics.read(run / "metrics.json").rows == rows
    assert len(pd.read_parquet(campaign / "results.parquet")) == 2


def test_a_bundle_is_made_and_read_back(nagi, refused, campaign, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = nagi("bundle", campaign)
    assert result.out.startswith("example-short.tar.zst: ")
    assert "exists already" in refused("bundle", campaign)
    result = nagi("analyze", "example-short.tar.zst")
    assert result.status == 0
    assert "unpacked to example-short" in result.err
    (run,) = (tmp_path / "example-short" / "runs").iterdir()
    assert (run / "metrics.json").read_bytes() == (
        campaign / "runs" / run.name / "metrics.json"
    ).read_bytes()
    assert "would be unpacked to example-short, which exists" in refused(
        "analyze", "example-short.tar.zst"
    )
    result = nagi("report", "example-short.tar.zst", "--out", "elsewhere")
    assert result.status == 0
    assert (tmp_path / "elsewhere" / "report.pdf").exists()
    assert "this is not a bundle" in refused("analyze", campaign, "--out", "x")
    assert "this directory has no campaign" in refused("bundle", tmp_path)
    data = bytearray((tmp_path / "example-short.tar.zst").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "bad.tar.zst").write_bytes(data)
    output = refused("analyze", "bad.tar.zst")
    assert "bad.tar.zst: " in output
    assert not (tmp_path / "bad").exists()


SPEC = """\
schema_version: 1
name: small
title: Small
seed: 1
repeats: 3
until: {metric: agi, halfwidth: 0.02, at_most: 20}
nodes: {a: host, b: host}
links: {l: {between: [a, b], rate: $rate, delay: 10 ms, queue: 1 bdp}}
flows: {f: {from: a, to: b, scheme: reno-like}}
duration: 10 s
matrix: {rate: [10 Mb/s, 20 Mb/s]}
report: {x: rate, series: rate}
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SPEC.replace("reno-like", "cubic"))
    return path


def test_plan_says_least_and_most(nagi, spec, tmp_path):
    result = nagi("plan", spec, "--lab", "netns", "--out", tmp_path / "x")
    assert result.status == 0
    assert "3 to 20" in result.out
    assert "6 to 40 runs, 6 to 40 of them possible in the netns lab; about " in result.out
    assert "disk: about " in result.out
    assert f"are free at {tmp_path / 'x'}" in result.out
    assert "fit" not in result.out
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "free, start",
    [(1_000, "this does not fit: "), (150_000_000, "this may not fit, if points"), (10**12, "")],
)
def test_plan_says_what_does_not_fit(tmp_path, free, start):
    disk = (Disk(80_000_000, 20_000_000), Disk(180_000_000, 20_000_000))
    taken = Estimate(tmp_path, 2, (6, 40), (6, 40), (10.0, 60.0), disk, free)
    _, _, *last = taken.describe("netns")
    assert [line.startswith(start) for line in last] == ([True] if start else [])


def test_campaign_json_has_what_is_kept():
    assert Campaign.read(EXAMPLE / "campaign" / "campaign.json").keep == Keep(compress="none")


def test_what_is_published_holds_runs_that_are_done_again(nagi, refused, campaign, tmp_path):
    published = tmp_path / "published"
    assert "no publication.json" in refused("verify", campaign, tmp_path)
    result = nagi("publish", campaign, published)
    assert (
        result.status == 0 and f"{published}: 1 run; reports, checksums and bundle " in result.out
    )
    release = ("--release", campaign / "release")
    result = nagi("verify", campaign, published)
    assert (result.status, result.err) == (0, "")
    values, hint = result.out.splitlines()
    assert values == f"1 run, compared with {published}: all equal" and "--release" in hint
    result = nagi("verify", campaign, published, *release)
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith("1 run, ") and result.out.endswith(": all equal\n")
    (run,) = (campaign / "runs").iterdir()
    (run / "tcp_info.parquet").unlink()
    manifest = run / "manifest.json"
    manifest.write_text(manifest.read_text().replace("tcpdump version", "tcpdump of mine, version"))
    result = nagi("verify", campaign, published, *release)
    assert result.status == 1
    different, programs, verdict = result.out.splitlines()
    assert different.endswith("repeat 1: tcp_info.parquet is missing")
    assert "your runs: made by" in programs and "tcpdump of mine" in programs
    assert verdict.endswith(": 1 not equal")
    data = json.loads(nagi("verify", campaign, published, *release, "--json").out)
    assert data["differing"][0]["differences"] == ["tcp_info.parquet is missing"]
