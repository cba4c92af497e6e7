# SPDX-License-Identifier: Apache-2.0
"""The contracts: what is published is what is written, and the worked example keeps to it.

The example is a real campaign of experiments/schemas/example/experiment.yaml, captures included.
`make example` records it anew.
"""

from __future__ import annotations

import json
import shutil

import jsonschema
import pandas as pd
import pytest
from nagi.json_schemas import CONTRACTS, TABLES, format_schema, make_schemas
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.batch import Batch, ScheduledRun
from nagi_contracts.errors import InputError
from nagi_contracts.paths import ROOT, SCHEMAS
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Campaign, Manifest, compute_sha256
from nagi_contracts.results import Metrics
from nagi_reports.analysis import analyse_run, build_table
from ruamel.yaml import YAML

EXAMPLE = SCHEMAS / "example"
CAMPAIGN = EXAMPLE / "campaign"
(RUN,) = sorted((CAMPAIGN / "runs").iterdir())


@pytest.mark.parametrize("name", sorted(make_schemas()))
def test_published_schemas_are_the_ones_in_use(name):
    published = (SCHEMAS / name).read_text(encoding="utf-8")
    assert published == format_schema(make_schemas()[name]), "run: python -m nagi.json_schemas"


@pytest.mark.parametrize("name", sorted(make_schemas()))
def test_schemas_are_schemas_and_every_file_has_a_version(name):
    schema = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    if name.removesuffix(".schema.json") not in TABLES:
        assert schema["properties"]["schema_version"]["const"] == 1


@pytest.mark.parametrize("path", [EXAMPLE / "experiment.yaml", *ROOT.glob("experiments/*.yaml")])
def test_experiment_files_keep_to_the_schema(path):
    schema = json.loads((SCHEMAS / "experiment.schema.json").read_text())
    data = YAML(typ="safe").load(path.read_text())
    jsonschema.validate(data, schema)
    read_experiment(path, None)
    data.setdefault("links", {})["surprise"] = {"between": "not a pair"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema)


@pytest.mark.parametrize(
    "name", ["plan", "manifest", "links", "flows", "verdict", "metrics", "campaign"]
)
def test_files_of_the_example_keep_to_schema_and_model(name):
    path = (CAMPAIGN if name == "campaign" else RUN) / f"{name}.json"
    data = json.loads(path.read_text())
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    jsonschema.validate(data, schema)
    read_back = json.loads(CONTRACTS[name].read(path).model_dump_json(by_alias=True))
    assert without_nulls(read_back) == without_nulls(data)
    with pytest.raises(jsonschema.ValidationError):
        del data[schema["required"][0]]
        jsonschema.validate(data, schema)


def without_nulls(value):
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def test_nodes_and_batches_keep_to_their_schemas():
    manifest = Manifest.read(RUN / "manifest.json")
    schema = json.loads((SCHEMAS / "node.schema.json").read_text())
    for node in manifest.nodes.values():
        jsonschema.validate(json.loads(node.model_dump_json()), schema)
    batch = Batch(
        node="client",
        is_emulator=False,
        interfaces={"radio": "radio"},
        spool="/var/lib/nagi",
        state="/run/nagi",
        nagi_link="/usr/bin/nagi-link",
        runs=[ScheduledRun(offset_s=0, plan=RunPlan.read(RUN / "plan.json"))],
    )
    schema = json.loads((SCHEMAS / "batch.schema.json").read_text())
    jsonschema.validate(json.loads(batch.model_dump_json()), schema)


# The example's schemes are those of the kernel, which report no events. The example has no switch
# and no radio, and its flows share no direction of a link.
OTHERS = ("scheme_events", "queue_samples", "transmissions", "frames", "goodput")


@pytest.mark.parametrize("name", [name for name in TABLES if name not in OTHERS])
def test_tables_have_the_columns_that_are_documented(name):
    table = pd.read_parquet((CAMPAIGN if name == "results" else RUN) / f"{name}.parquet")
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    columns = [column for column in table.columns if not column.startswith("point.")]
    # A column that has a default may be younger than the example.
    needed = {*columns, *schema["required"]} - {"point"}
    assert columns == [name for name in schema["properties"] if name in needed]
    assert len(table) > 0


def test_the_example_is_what_its_experiment_asks_for(tmp_path):
    """Check the example, which is a record of iperf's traffic."""
    campaign = Campaign.read(CAMPAIGN / "campaign.json")
    text = (EXAMPLE / "experiment.yaml").read_text()
    iperf = "payload: 1000 bytes, traffic: {application: bulk, program: iperf}"
    spec = tmp_path / "experiment.yaml"
    spec.write_text(text.replace("payload: 1000 bytes", iperf))
    points = read_experiment(spec, campaign.variant)
    plans = [plan for point in points for plan in plan_runs(point, campaign.variant)]
    ids = {plan.with_ids(campaign.build.id).run_id for plan in plans}
    assert {run.run_id for run in campaign.runs} <= ids


def test_the_example_s_files_are_those_of_its_manifest():
    manifest = Manifest.read(RUN / "manifest.json")
    for name, file in manifest.files.items():
        assert compute_sha256(RUN / name) == file.sha256
        assert (RUN / name).stat().st_size == file.bytes


def test_the_example_s_captures_still_give_its_metrics(tmp_path):
    copy = tmp_path / "campaign"
    shutil.copytree(CAMPAIGN, copy)
    run = copy / "runs" / RUN.name
    (run / "metrics.json").unlink()
    again = analyse_run(run)
    assert again == Metrics.read(RUN / "metrics.json")
    table = build_table(copy, Campaign.read(copy / "campaign.json"))
    pd.testing.assert_frame_equal(table, pd.read_parquet(CAMPAIGN / "results.parquet"))


def test_damaged_and_foreign_files_are_refused(tmp_path):
    path = tmp_path / "plan.json"
    with pytest.raises(InputError, match="cannot read it"):
        RunPlan.read(path)
    text = (RUN / "plan.json").read_text()
    path.write_text(text[:200])
    with pytest.raises(InputError, match="damaged, or written by another version"):
        RunPlan.read(path)
    path.write_text(text.replace('"schema_version": 1', '"schema_version": 2'))
    with pytest.raises(InputError, match=r"plan\.json: schema_version: "):
        RunPlan.read(path)
