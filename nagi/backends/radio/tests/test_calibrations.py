# SPDX-License-Identifier: Apache-2.0
"""Check losses by a table of `nagi-sdr calibrate`: the plan's settings and the refusals."""

from __future__ import annotations

import json
import math
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from nagi.plan.air_time import load_air_time
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.calibration import Calibration, CalibrationCurve
from nagi_contracts.errors import InputError
from nagi_contracts.impairments.losses.sdr import SdrLossPlan
from nagi_contracts.paths import executable
from specs import two_links


def cells(*lost_of_100: int, first_db: float = 8.0) -> list[dict[str, Any]]:
    return [
        {
            "snr_db": first_db + index,
            "packets": 100,
            "not_detected": 0,
            "header_errors": min(lost, 1),
            "payload_errors": lost - min(lost, 1),
        }
        for index, lost in enumerate(lost_of_100)
    ]


def mode(modulation: str = "qpsk", code_rate: str = "none") -> dict[str, Any]:
    return {
        "modem": "ofdm",
        "modulation": modulation,
        "code_rate": code_rate,
        "digest": load_air_time().compute_modem_digest("ofdm", modulation, code_rate),
        "curves": [
            {"packet_bytes": 40, "cells": cells(100, 40, 0)},
            {"packet_bytes": 1500, "cells": cells(100, 100, 60, 70, 5, 0)},
        ],
    }


def table(path: Path, *modes: dict[str, Any], **changes: Any) -> None:
    path.write_text(
        json.dumps(
            {
                "schema_version": 1,
                "kind": "calibration",
                "device": {"by": "simulated", "name": "gr-nagi channel", "firmware": None},
                "nagi": "0.1.0",
                "gnuradio": "3.10.5.1",
                "date": "2026-01-01T00:00:00+00:00",
                "settings": {
                    "seed": 1,
                    "precision": 0.1,
                    "min_packets": 100,
                    "max_packets": 100,
                    "step_db": 1.0,
                },
                "finished": True,
                "modes": list(modes or [mode()]),
                **changes,
            }
        )
    )


def planned(tmp_path: Path, loss: str, payload: str = "1000 bytes") -> SdrLossPlan:
    path = tmp_path / "spec.yaml"
    path.write_text(
        two_links(
            "calibrated",
            "rate: 10 Mb/s, delay: 10 ms",
            "rate: 1 Gb/s, delay: 15 ms, queue: 20 packets, "
            f"forward: {{loss: {{model: sdr, table: table.json, {loss}}}}}",
            f"scheme: $scheme, payload: {payload}",
            "duration: 5 s\nwarmup: 1 s\nmatrix: {scheme: [newreno]}\nreport: {x: scheme}\n",
        )
    )
    (point,) = read_experiment(path, None)
    (plan,) = plan_runs(point, None)
    forward = plan.link("radio").forward
    assert isinstance(forward.loss, SdrLossPlan)
    config = tmp_path / "config.json"
    described = forward.model_dump(mode="json", exclude_none=True)
    link = {"name": "l", "id": 0, "a": "e0", "b": "e1", "forward": described, "backward": {}}
    config.write_text(json.dumps({"schema_version": 1, "seed": 0, "links": [link]}))
    done = subprocess.run(
        [executable("nagi-link"), "check", config], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return forward.loss


def test_the_plan_has_the_table_s_curves(tmp_path):
    table(tmp_path / "table.json")
    fading = "fading: {kind: rician, doppler: 5 Hz, k_factor: 6 dB}"
    loss = planned(
        tmp_path, f"snr: 12 dB, {fading}, shadowing: {{deviation: 8 dB, decorrelation: 2 s}}"
    )
    assert [curve.packet_bytes for curve in loss.curves] == [40, 1500]
    assert loss.curves[0].per == [1, 0.4, 0]
    # The rates at 10 and 11 dB are no monotone ones: both cells count together.
    assert loss.curves[1].per == [1, 1, 0.65, 0.65, 0.05, 0]
    assert loss.snr_db == 12
    assert loss.fading is not None and loss.fading.k_factor_db == 6
    assert loss.shadowing is not None and loss.shadowing.decorrelation_ns == 2 * 10**9
    assert loss.loss_probability(1000, 0) is None
    assert "12 dB, Rician fading of 5 Hz, shadowing of 8 dB" in loss.describe()


def test_the_snr_may_follow_a_trace(tmp_path):
    table(tmp_path / "table.json")
    (tmp_path / "walk").write_text("0 s, 12.5 dB\n1 s, -3 dB\n4 s, end\n")
    written = "snr_trace: {steps: {0 s: 12.5 dB, 1 s: -3 dB}, period: 4 s}"
    for loss in (written, "snr_trace: {file: walk}"):
        found = planned(tmp_path, loss).snr_trace
        assert found is not None
        assert (found.steps, found.period_ns) == ([(0, 12.5), (10**9, -3.0)], 4 * 10**9)


def test_a_constant_channel_has_a_probability(tmp_path):
    table(tmp_path / "table.json")
    loss = planned(tmp_path, "snr: 12 dB")
    assert loss.loss_probability(1500, 0) == pytest.approx(0.05)
    assert loss.loss_probability(40, 0) == 0
    # Exponents are linear in the length.
    assert loss.loss_probability(770, 0) == pytest.approx(-math.expm1(0.5 * math.log1p(-0.05)))
    # And ln E is linear in dB: between 0.65 at 11 dB and 0.05 at 12 dB.
    between = planned(tmp_path, "snr: 11.5 dB").loss_probability(1500, 0)
    ends = math.log1p(-0.65) * math.log1p(-0.05)
    assert between == pytest.approx(-math.expm1(-math.sqrt(ends)))


def test_pooled_rates_never_rise():
    curve = CalibrationCurve(packet_bytes=1, cells=cells(100, 50, 60, 70, 10, 20, 0))
    rates = curve.packet_error_rates()
    assert rates == pytest.approx([1, 0.6, 0.6, 0.6, 0.15, 0.15, 0])


def test_one_of_several_modems_is_named(tmp_path):
    table(tmp_path / "table.json", mode(), mode("16qam", "1/2"))
    assert planned(tmp_path, "snr: 9 dB, modulation: 16qam").curves
    with pytest.raises(InputError, match="several modes: ofdm, qpsk, code rate none; ofdm, 16qam"):
        planned(tmp_path, "snr: 9 dB")


@pytest.mark.parametrize(
    ("changes", "loss", "complaint"),
    [
        ({}, "snr: 9 dB, modulation: bpsk",
         "no mode with modulation bpsk, only these modes: ofdm, qpsk"),
        ({"digest": "0"}, "snr: 9 dB",
         "the table is for another modem: ofdm, qpsk, code rate none of"),
        ({"modulation": "1024qam"}, "snr: 9 dB", "the table is for another modem: modulation is"),
        ({"curves": []}, "snr: 9 dB", "written by another version of nagi"),
        ({"curves": [{"packet_bytes": 1500, "cells": cells(100, 90)}]}, "snr: 9 dB",
         "error rates from 1 to 0.9 only"),
        ({"curves": [{"packet_bytes": 500, "cells": cells(100, 0)}]}, "snr: 9 dB",
         "packets of 1052 bytes are longer than the table's longest packets, 500 bytes"),
        ({"curves": [{"packet_bytes": 1500, "cells": cells(100, 0)[::-1]}]}, "snr: 9 dB",
         "the SNRs do not increase"),
        ({}, "at: egress", "no `snr` and no `snr_trace`"),
        ({}, "snr: 9 dB, snr_trace: {file: walk}", "snr and snr_trace are both given"),
        ({}, "snr: 9 dB, fading: rayleigh", "fading rayleigh without its settings"),
        ({}, "snr: 9 dB, shadowing: {deviation: 50 dB, decorrelation: 1 s}", "out of range"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path, changes, loss, complaint):
    table(tmp_path / "table.json", {**mode(), **changes})
    with pytest.raises(InputError, match=re.escape(complaint)):
        planned(tmp_path, loss)


def test_a_file_that_is_no_table_is_refused(tmp_path):
    with pytest.raises(InputError, match="table"):
        planned(tmp_path, "snr: 9 dB")
    (tmp_path / "table.json").write_text("{}")
    with pytest.raises(InputError, match="written by another version of nagi"):
        planned(tmp_path, "snr: 9 dB")


def test_media_have_no_such_losses(tmp_path):
    table(tmp_path / "table.json")
    assert Calibration.read(tmp_path / "table.json").finished
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        """\
schema_version: 1
name: media
title: A medium
seed: 1
nodes: {S: host, D: host}
media:
  air:
    phy: 802.11b
    data_rate: 11 Mb/s
    stations: {S: {at: [0 m, 0 m]}, D: {at: [1 m, 0 m]}}
    loss: {model: sdr, table: table.json, snr: 9 dB}
flows: {bulk: {from: S, to: D, scheme: $scheme}}
duration: 5 s
matrix: {scheme: [newreno]}
report: {x: scheme}
"""
    )
    (point,) = read_experiment(spec, None)
    with pytest.raises(InputError, match="loss model sdr on a medium: a radio's table"):
        plan_runs(point, None)
