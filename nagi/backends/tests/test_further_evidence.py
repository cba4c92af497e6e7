# SPDX-License-Identifier: Apache-2.0
"""A further backend records and is certified, although no file of nagi knows it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest
from nagi import backends
from nagi.backends.names import list_backends
from nagi.campaign.collection import collect
from nagi.campaign.rechecking import recheck
from nagi.cli.main import make_app
from nagi.records.packets import from_table, write_records
from nagi.verdict.limits import LIMITS, get_limits, list_limits
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Check, Manifest, Verdict
from typer.testing import CliRunner

(RECORDED,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())
PLAN, MANIFEST = RunPlan.read(RECORDED / "plan.json"), Manifest.read(RECORDED / "manifest.json")
EVIDENCE = '''\
"""What the certificate checks of echoes."""

import json

from nagi.backends.interface import Verifier
from nagi.records.files import copy_file
from nagi.verdict.limits import Limit
from nagi.verdict.values import Evidence

LIMITS = {"echoes_missing": Limit(0, "echoes", "echoes that nobody heard")}


class EchoVerifier(Verifier):
    limits = {"Runs with echoes": LIMITS}

    def get_limits(self, plan):
        return LIMITS if plan.carried_by("echo") else {}

    def copy_files(self, plan, sources, target):
        copy_file(sources["emulator"], target, "echo.json")

    def collect(self, plan, sources, began_s, target):
        return self.load(plan, target)

    def load(self, plan, directory):
        return json.loads((directory / "echo.json").read_text()) if self.get_limits(plan) else None

    def measure(self, run):
        missing = (run.parts["echo"] or {}).items()
        return Evidence({"echoes_missing": [(count, link) for link, count in missing]})


part = EchoVerifier()
'''


@pytest.fixture
def echo(tmp_path, monkeypatch) -> None:
    """Put a backend `echo` beside those of nagi."""
    folder = tmp_path / "further" / "echo"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "evidence.py").write_text(EVIDENCE)
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(folder.parent)])
    yield
    for module in [name for name in sys.modules if name.startswith("nagi.backends.echo")]:
        del sys.modules[module]
    if hasattr(backends, "echo"):
        del backends.echo


@pytest.fixture
def plan() -> RunPlan:
    """Return the plan of the worked example, in which `echo` carries the first link."""
    first, *others = PLAN.links
    return PLAN.model_copy(
        update={"links": [first.model_copy(update={"parts": {"echo": {}}}), *others]}
    )


def collect_run(directory: Path, plan: RunPlan, echoes_missing: int) -> tuple[Verdict, Path]:
    """Collect the records of the worked example; return the verdict and the run directory."""
    records = directory / "records"
    samples = pd.read_parquet(RECORDED / "tcp_info.parquet")
    for node, record in MANIFEST.nodes.items():
        source = records / f"cell0_{node}" / plan.run_id
        source.mkdir(parents=True)
        record.write(source / "node.json")
        for capture in plan.captures:
            if capture.node == node:
                (source / capture.file).write_bytes((RECORDED / capture.file).read_bytes())
    for flow in plan.flows:
        file = records / f"cell0_{flow.sender}" / plan.run_id / "tcp_info.jsonl"
        samples[samples["flow"] == flow.name].to_json(file, orient="records", lines=True)
    emulator = records / "cell0_emulator" / plan.run_id
    (emulator / "links.json").write_bytes((RECORDED / "links.json").read_bytes())
    packets = from_table(pd.read_parquet(RECORDED / "packets.parquet"), plan)
    write_records(packets, emulator / "packets.bin")
    (emulator / "echo.json").write_text(f'{{"{plan.links[0].name}": {echoes_missing}}}')
    verdict = collect(records, directory / "runs", plan, "cell0", "netns", MANIFEST.build)
    return verdict, directory / "runs" / plan.run_id


@pytest.mark.usefixtures("echo")
def test_a_further_backend_is_in_the_certificate(tmp_path, plan):
    assert list_backends()[-1] == "echo"
    assert list(get_limits(plan)) == [*LIMITS, "echoes_missing"]
    assert list(get_limits(PLAN)) == [*LIMITS]
    verdict, run = collect_run(tmp_path, plan, 0)
    assert verdict.status == "valid", verdict.reasons
    assert verdict.checks[-1] == Check(
        name="echoes_missing",
        description="echoes that nobody heard",
        value=0,
        limit=0,
        unit="echoes",
        ok=True,
        subject=plan.links[0].name,
    )
    assert "echo.json" in Manifest.read(run / "manifest.json").files
    assert recheck(run, "echoes_missing").values == [(0, plan.links[0].name)]
    shutil.copy(RECORDED.parents[1] / "campaign.json", tmp_path)
    for arguments in ([], ["--check", "echoes_missing"]):
        shown = CliRunner().invoke(make_app(), ["show", str(run), *arguments])
        assert shown.exit_code == 0 and "echoes_missing" in shown.output


@pytest.mark.usefixtures("echo")
def test_a_further_backend_makes_a_run_invalid(tmp_path, plan):
    verdict, _ = collect_run(tmp_path, plan, 3)
    name = plan.links[0].name
    assert verdict.reasons == [f"echoes_missing: 3 echoes at {name} (limit 0)"]


@pytest.mark.usefixtures("echo")
def test_a_further_backend_is_in_the_manual():
    headings = list(list_limits())
    assert headings[0] == "Every run" and headings[-2] == "Runs with echoes"
    assert list(list_limits()["Runs with echoes"]) == ["echoes_missing"]


def test_the_manual_has_its_order():
    assert list(list_limits()) == [
        "Every run",
        "Runs with switches",
        "Runs with radios",
        "Runs with radios that are devices",
        "Runs with FPGAs",
        "Runs with a scheme that both ends run",
    ]
