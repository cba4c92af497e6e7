# SPDX-License-Identifier: Apache-2.0
"""The agent's contracts are generated from nagi's, and read and write the same JSON."""

from __future__ import annotations

import dataclasses
import json

import pytest
from agent_inputs import make_batch_json, make_emulator_job, make_plan_json
from nagi.agent_contracts import READ, TARGET, WRITTEN, render
from nagi.records import packets
from nagi_agent import contracts, emulator
from nagi_contracts.base import Contract
from nagi_contracts.batch import Batch
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.plan import LinkPlan, RunPlan
from nagi_contracts.records import Manifest

(RUN,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())
ARQ = {"retries": 3, "feedback_ns": 1_000_000}
RADIO = {
    "by": "simulated", "modem": "ofdm", "modulation": "qpsk", "sample_rate_hz": 10**6,
    "code_rate": "none", "forward": {"snr_db": 12.0}, "backward": {"snr_db": 12.0},
}  # fmt: skip


def test_the_file_of_contracts_is_up_to_date():
    assert TARGET.read_text(encoding="utf-8") == render(), "run: python -m nagi.json_schemas"


def to_plain(value: object) -> object:
    """Return a contract as plain values, so that the agent's and nagi's can be compared."""
    if isinstance(value, Contract) or dataclasses.is_dataclass(value):
        names = [
            field.name for field in dataclasses.fields(getattr(contracts, type(value).__name__))
        ]
        return {name: to_plain(getattr(value, name)) for name in names}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    return value


def without_links(plan: dict) -> dict:
    return {**plan, "links": []}


@pytest.mark.parametrize(
    "interfaces", [{"radio": "eth0"}, {"radio": ("a", "b"), "core": ("c", "d")}]
)
def test_a_batch_is_read_as_nagi_reads_it(tmp_path, interfaces):
    """Missing keys have the same defaults."""
    written = make_batch_json(tmp_path, without_links(make_plan_json()), interfaces=interfaces)
    for key in ("user", "virtual", "collected"):
        del written[key]
    text = json.dumps(written)
    agent_value, nagi_value = (
        contracts.Batch.from_json(json.loads(text)),
        Batch.model_validate_json(text),
    )
    assert to_plain(agent_value) == to_plain(nagi_value)
    assert contracts.Batch.from_json(json.loads(nagi_value.model_dump_json())) == agent_value


def test_a_record_is_written_as_nagi_writes_it():
    (record, *_) = Manifest.read(RUN / "manifest.json").nodes.values()
    for changes in ({}, {"in_time": False, "noise": None}):
        nagi_value = record.model_copy(update=changes)
        values = to_plain(nagi_value)
        agent_value = contracts.NodeRecord(
            **{
                **values,
                "facts": contracts.HostFacts(**values["facts"]),
                "captures": [contracts.CaptureCount(**count) for count in values["captures"]],
                "flows": [contracts.FlowRecord(**flow) for flow in values["flows"]],
                "ended": [contracts.ClientEnd(**end) for end in values["ended"]],
                "noise": values["noise"] and contracts.Noise(**values["noise"]),
            }
        )
        assert agent_value.to_json() == json.loads(nagi_value.model_dump_json())


@pytest.mark.parametrize("kind", sorted({*READ, *WRITTEN}, key=repr))
def test_contracts_are_frozen_and_have_slots(kind):
    agent_value = getattr(contracts, kind.__name__)
    assert agent_value.__dataclass_params__.frozen and "__dict__" not in agent_value.__dict__
    assert hasattr(agent_value, "from_json") or kind not in READ
    assert hasattr(agent_value, "to_json") or kind not in WRITTEN


def make_links() -> list[dict]:
    """Return one link of each kind: plain, with ARQ in either direction, a radio."""
    (plain, _) = make_plan_json()["links"]
    return [
        plain,
        {**plain, "forward": {**plain["forward"], "arq": ARQ}},
        {**plain, "backward": {**plain["backward"], "arq": ARQ}},
        {**plain, "radio": RADIO},
    ]


@pytest.mark.parametrize(
    "link", make_links(), ids=["plain", "forward ARQ", "backward ARQ", "radio"]
)
def test_both_agree_on_who_carries_links_and_which_record_transmissions(tmp_path, link):
    agent_value, nagi_value = contracts.LinkPlan.from_json(link), LinkPlan.model_validate(link)
    assert agent_value.backend == nagi_value.backend == ("radio" if "radio" in link else "link")
    plan = contracts.RunPlan.from_json(make_plan_json(links=[link]))
    job = make_emulator_job(tmp_path, {link["name"]: ("a", "b")})
    is_recorded = "transmissions" in emulator.build_configuration(plan, job, 0.0)
    assert is_recorded == nagi_value.records_transmissions == (link != make_links()[0])


def test_both_name_the_same_radios():
    plan = make_plan_json(links=make_links())
    (agent_value,) = contracts.RunPlan.from_json(plan).carried_by("radio")
    (nagi_value,) = RunPlan.model_validate(plan).carried_by("radio")
    assert agent_value.name == nagi_value.name


def test_the_emulator_gets_the_configuration_that_the_replay_uses(tmp_path):
    """Compare both configurations; separate code makes them, so the replay checks the emulator."""
    plan = make_plan_json(
        links=[{**link, "id": number} for number, link in enumerate(make_links())]
    )
    ends = {link["name"]: ("a", "b") for link in plan["links"]}
    job = make_emulator_job(tmp_path, ends)
    agent_value = emulator.build_configuration(contracts.RunPlan.from_json(plan), job, 0.0)
    nagi_value = packets.make_configuration(RunPlan.model_validate(plan))
    assert agent_value["seed"] == nagi_value["seed"]
    for agent_link, nagi_link in zip(agent_value["links"], nagi_value["links"], strict=True):
        for key in ("name", "id", "forward", "backward"):
            assert agent_link[key] == nagi_link[key]
