# SPDX-License-Identifier: Apache-2.0
"""The agent's contracts are nagi's: made of them, and with the same keys and answers."""

from __future__ import annotations

import dataclasses
import json

import pytest
from agent_inputs import batch_json, plan_json
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


def test_they_are_made_of_the_models_in_use():
    assert TARGET.read_text(encoding="utf-8") == render(), "run: python -m nagi.json_schemas"


def as_dict(value: object) -> object:
    """A value of the agent's or of nagi's as plain values; directions are JSON to the agent."""
    if isinstance(value, Contract) or dataclasses.is_dataclass(value):
        names = [
            field.name for field in dataclasses.fields(getattr(contracts, type(value).__name__))
        ]
        return {name: as_dict(getattr(value, name)) for name in names}
    if isinstance(value, list | tuple):
        return [as_dict(each) for each in value]
    if isinstance(value, dict):
        return {key: as_dict(each) for key, each in value.items()}
    return value


def without_links(plan: dict) -> dict:
    return {**plan, "links": []}


@pytest.mark.parametrize(
    "interfaces", [{"radio": "eth0"}, {"radio": ("a", "b"), "core": ("c", "d")}]
)
def test_a_batch_is_read_as_nagi_reads_it(tmp_path, interfaces):
    """Also what is left out of its JSON has the same default."""
    written = batch_json(tmp_path, without_links(plan_json()), interfaces=interfaces)
    for key in ("user", "nagi_switch", "virtual", "collected"):
        del written[key]
    text = json.dumps(written)
    theirs, ours = contracts.Batch.from_json(json.loads(text)), Batch.model_validate_json(text)
    assert as_dict(theirs) == as_dict(ours)
    assert contracts.Batch.from_json(json.loads(ours.model_dump_json())) == theirs


def test_a_record_is_written_as_nagi_writes_it():
    (record, *_) = Manifest.read(RUN / "manifest.json").nodes.values()
    for changes in ({}, {"in_time": False, "noise": None}):
        ours = record.model_copy(update=changes)
        values = as_dict(ours)
        theirs = contracts.NodeRecord(
            **{
                **values,
                "facts": contracts.HostFacts(**values["facts"]),
                "captures": [contracts.CaptureCount(**each) for each in values["captures"]],
                "flows": [contracts.FlowRecord(**each) for each in values["flows"]],
                "ended": [contracts.ClientEnd(**each) for each in values["ended"]],
                "noise": values["noise"] and contracts.Noise(**values["noise"]),
            }
        )
        assert theirs.to_json() == json.loads(ours.model_dump_json())


@pytest.mark.parametrize("kind", sorted({*READ, *WRITTEN}, key=lambda kind: kind.__name__))
def test_what_is_read_and_written_cannot_change_and_has_slots(kind):
    theirs = getattr(contracts, kind.__name__)
    assert theirs.__dataclass_params__.frozen and "__dict__" not in theirs.__dict__
    assert hasattr(theirs, "from_json") or kind not in READ
    assert hasattr(theirs, "to_json") or kind not in WRITTEN


def links() -> list[dict]:
    """Each kind of link: plain, with ARQ in either direction, a radio."""
    (plain, _) = plan_json()["links"]
    return [
        plain,
        {**plain, "forward": {**plain["forward"], "arq": ARQ}},
        {**plain, "backward": {**plain["backward"], "arq": ARQ}},
        {**plain, "radio": RADIO},
    ]


@pytest.mark.parametrize("link", links(), ids=["plain", "forward ARQ", "backward ARQ", "radio"])
def test_both_agree_on_what_is_a_radio_and_records_transmissions(link):
    theirs, ours = contracts.LinkPlan.from_json(link), LinkPlan.model_validate(link)
    assert theirs.is_radio == ours.is_radio == ("radio" in link)
    assert emulator.records_transmissions(theirs) == ours.records_transmissions
    assert ours.records_transmissions == (link != links()[0])


def test_both_name_the_same_radios():
    plan = plan_json(links=links())
    (theirs,) = contracts.RunPlan.from_json(plan).radios()
    (ours,) = RunPlan.model_validate(plan).radios()
    assert theirs.name == ours.name


def test_the_emulator_is_told_what_its_work_is_checked_against():
    """Two configurations of one plan, written apart on purpose: the certificate's is a witness."""
    plan = plan_json(links=[{**link, "id": number} for number, link in enumerate(links())])
    ends = {link["name"]: ("a", "b") for link in plan["links"]}
    theirs = emulator.configuration(contracts.RunPlan.from_json(plan), ends, 0.0)
    ours = packets.make_configuration(RunPlan.model_validate(plan))
    assert theirs["seed"] == ours["seed"]
    for told, witnessed in zip(theirs["links"], ours["links"], strict=True):
        for key in ("name", "id", "forward", "backward"):
            assert told[key] == witnessed[key]
