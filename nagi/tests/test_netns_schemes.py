# SPDX-License-Identifier: Apache-2.0
"""Run campaigns with nagi's schemes and a user's own scheme.

Each scheme is registered for a run, is active in the run, and is removed afterwards.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from bpf_objects import list_nagi_objects, wait_until_gone
from kernels import needs_our_schemes
from marks import needs_root
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Flows, SchemeEvent, Verdict
from own_schemes import OWN_SCHEME, compile_scheme
from specs import two_links
from test_netns_campaign import nothing_left_behind, run  # noqa: F401 - a fixture

pytestmark = [
    pytest.mark.realtime,
    needs_root,
    needs_our_schemes,
    pytest.mark.timeout(900),
]  # several tries

SPEC = two_links(
    "ours",
    "rate: 20 Mb/s, delay: 8 ms",
    "rate: 4 Mb/s, delay: 2 ms, queue: 20 packets, forward: {loss: {model: bernoulli, rate: 2 %}}",
    "scheme: $scheme",
    """\
parameters:
  westwoodvt: {alpha: 13, beta: 17}
host_profile: ns2
duration: 4 s
matrix:
  scheme: [SCHEMES]
report: {x: scheme}
""",
)


@pytest.fixture(autouse=True)
def no_object_left():
    before = list_nagi_objects()
    yield
    wait_until_gone(before)


def written(tmp_path: Path, schemes: str) -> Path:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC.replace("SCHEMES", schemes))
    return spec


@pytest.mark.slow
def test_two_of_ours_side_by_side_say_what_they_made_of_losses(tmp_path):
    out = tmp_path / "out"
    assert "2 valid" in run(written(tmp_path, "tahoe, westwoodvt"), out, "--jobs", "2")
    verdicts = {}
    for directory in (out / "runs").iterdir():
        plan = RunPlan.read(directory / "plan.json")
        if Verdict.read(directory / "verdict.json").status != "valid":
            continue  # a try that the machine has spoilt
        (flow,) = plan.flows
        assert Flows.read(directory / "flows.json").flows[0].congestion_control == (
            f"nagi_{flow.scheme}"
        )
        told = pd.read_parquet(directory / "scheme_events.parquet")
        assert list(told.columns) == list(SchemeEvent.model_fields)
        for row in json.loads(told.to_json(orient="records")):
            SchemeEvent.model_validate(row)
        assert set(told["flow"]) == {"bulk"} and set(told["connection"]) == {0}
        assert told["event"].iloc[0] == "started"
        assert told["t_s"].is_monotonic_increasing
        assert told["t_s"].between(flow.start_s, flow.end_s + 1).all()
        losses = told[told["event"] == "three_duplicates"]
        assert len(losses) > 5
        verdicts[flow.scheme] = set(losses["verdict"])
        if flow.scheme == "westwoodvt":
            assert flow.scheme_object is not None and flow.scheme_object.parameters["alpha"] == 13
            assert (losses["backlog_segments"] > 0).any()
        # The scheme's window and the kernel's are the same, but for the moment of a retransmission.
        # Nothing is told of growth after the last event.
        samples = pd.read_parquet(directory / "tcp_info.parquet")
        windows = samples["snd_cwnd"][samples["t_s"] <= told["t_s"].iloc[-1]]
        assert windows.max() == pytest.approx(told["cwnd"].max(), abs=3)
    assert verdicts["tahoe"] == {"congestion"}
    assert "channel" in verdicts["westwoodvt"]


def test_a_user_s_own_object_runs_or_is_refused_before_anything_is_run(tmp_path):
    body = "((struct tcp_sock *)ctx[0])->snd_cwnd = 9;"
    compile_scheme(tmp_path, OWN_SCHEME.format(section=".struct_ops", body=body))
    spec = written(tmp_path, "own.o")
    out = tmp_path / "out"
    assert "1 valid" in run(spec, out)
    (directory,) = [d for d in (out / "runs").iterdir() if ".invalid-" not in d.name]
    # In recovery the kernel has it smaller.
    assert pd.read_parquet(directory / "tcp_info.parquet")["snd_cwnd"].max() == 9
    assert not (directory / "scheme_events.parquet").exists()

    wrong = "((struct tcp_sock *)ctx[0])->srtt_us = 1;"
    compile_scheme(tmp_path, OWN_SCHEME.format(section=".struct_ops", body=wrong))
    said = run(spec, tmp_path / "refused", status=2)
    assert "own.o" in said and "verifier of kernel" in said and "no write support" in said
    assert not (tmp_path / "refused").exists()
