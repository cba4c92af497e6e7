# SPDX-License-Identifier: Apache-2.0
"""Whole campaigns with known answers, without runs.

Plans are made by the real planner, records follow the recorded example, and numbers follow from the
point and the repeat.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from nagi.plan.planner import plan_runs
from nagi.records.packets import RECORD, to_table
from nagi.spec.points import read_experiment
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import (
    Build,
    Campaign,
    CampaignRun,
    Explanation,
    Manifest,
    Verdict,
)
from nagi_contracts.results import ResultRow

RECORDED = SCHEMAS / "example" / "campaign" / "runs" / "6ca9af3cee70cdc8"
BUILD = Build(
    id="0123456789abcdef", version="0.1.0", commit="abc123", nagi_link="1" * 64, nagi_agent="2" * 64
)
STOLEN = Explanation(
    cause="stolen time",
    description="the hypervisor took 20 % of the processors' time (stolen time)",
    cure="give the virtual machine processors of its own",
)
TABLE_COLUMNS = [name for name in ResultRow.model_fields if name != "point"]
FACTORS = (1.0, 0.97, 0.94, 0.8, 0.9, 1.6, 1.1, 0.7)  # of a scheme's AGI under loss, by its place

SPEC = """\
schema_version: 1
name: synthetic
title: {title}
reference: Nobody, "A made-up campaign", 2008
seed: 7
repeats: {repeats}
nodes: {{S: host, N: router, D: host}}
links:
  wired: {{between: [S, N], rate: 100 Mb/s, delay: 45 ms, queue: 1 bdp}}
  wireless:
    between: [N, D]
    rate: $capacity
    delay: 5 ms
    queue: 1 bdp
    forward:
      loss: {{model: poisson, rate: $error_rate}}
flows:
  bulk: {{from: S, to: D, scheme: $scheme, payload: 1000 bytes}}
host_profile: ns2
max_window: 1000 packets
duration: {duration} s
matrix:
  error_rate: [{error_rates}]
  capacity: [{capacities}]
  scheme: [{schemes}]
report:
  x: capacity
  series: scheme
  {panels}
"""


@dataclass
class Synthetic:
    """A made-up campaign; `rename` replaces names of schemes that nagi does not know."""

    schemes: tuple[str, ...] = ("newreno", "cubic")
    capacities: tuple[int, ...] = (10, 50, 100)  # Mb/s
    error_rates: tuple[str, ...] = ("0 %", "1 %")
    repeats: int = 3
    duration: int = 10
    title: str = "A made-up campaign"
    panels: bool = True
    series: bool = True  # whether there are records over time
    told: tuple[str, ...] = ()  # schemes that tell what they take losses for
    inferred: tuple[str, ...] = ()  # schemes of which it is inferred
    statements: str = ""  # YAML, as under `report:`
    rename: dict[str, str] = field(default_factory=dict)  # scheme -> what it is called
    invalid: tuple[int, ...] = ()  # runs by their number
    failed: tuple[int, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)

    def agi(self, point: dict[str, str], repeat: int) -> float:
        """Return AGI / ceiling of a run: 0.99 up to 80 Mb/s without loss, else by the loss."""
        capacity = float(point["capacity"].split()[0])
        loss = float(point["error_rate"].split()[0]) / 100
        names = [self.rename.get(name, name) for name in self.schemes]
        factor = FACTORS[names.index(point["scheme"]) % len(FACTORS)]
        possible = 0.99 * min(capacity, 80.0)
        if loss:
            possible = min(possible, factor * 0.096 / math.sqrt(loss))
        return possible / min(capacity, 100.0) * (1 + 0.01 * (repeat - (self.repeats - 1) / 2))

    def write(self, out: Path) -> tuple[Path, Campaign, pd.DataFrame]:
        """Write the campaign, and return its directory, the campaign and its table."""
        out.mkdir(parents=True, exist_ok=True)
        spec = out / "spec.yaml"
        spec.write_text(self._spec())
        points = read_experiment(spec, None)
        settings = points[0].experiment.report
        plans = [self._named(plan) for point in points for plan in plan_runs(point, None)]
        plans = [plan.with_ids(BUILD.id) for plan in plans]
        rows = []
        for number, plan in enumerate(plans):
            directory = out / "runs" / plan.run_id
            directory.mkdir(parents=True)
            status = "valid"
            if number in self.invalid:
                status = "invalid"
            if number in self.failed:
                status = "failed"
            self._verdict(plan, status).write(directory / "verdict.json")
            if status == "failed":
                continue
            rows.append(self._row(plan, status))
            self._records(plan, directory, number)
        campaign = Campaign(
            experiment="synthetic",
            variant=None,
            title=self.title,
            reference=points[0].experiment.reference,
            lab="netns",
            build=BUILD,
            x=settings.x,
            series=settings.series,
            panels=settings.panels,
            runs=[
                CampaignRun(
                    run_id=plan.run_id, point_id=plan.point_id, point=plan.point, repeat=plan.repeat
                )
                for plan in plans
            ],
            left_out=self.left_out,
            statements=settings.statements,
        )
        table = pd.DataFrame(rows)
        return out, campaign, table

    def _spec(self) -> str:
        text = SPEC.format(
            title=json.dumps(self.title),
            repeats=self.repeats,
            duration=self.duration,
            error_rates=", ".join(self.error_rates),
            capacities=", ".join(f"{capacity} Mb/s" for capacity in self.capacities),
            schemes=", ".join(self.schemes),
            panels="panels: error_rate" if self.panels else "",
        )
        lines = self.statements.splitlines()
        return text + "".join(f"  {line}\n" for line in lines)

    def _named(self, plan: RunPlan) -> RunPlan:
        scheme = self.rename.get(plan.point["scheme"], plan.point["scheme"])
        flows = [flow.model_copy(update={"scheme": scheme}) for flow in plan.flows]
        return plan.model_copy(update={"point": plan.point | {"scheme": scheme}, "flows": flows})

    def _row(self, plan: RunPlan, status: str) -> dict[str, object]:
        flow = plan.flows[0]
        ceiling = flow.payload_bytes / flow.packet_bytes
        value = self.agi(plan.point, plan.repeat) * ceiling
        sent = int(value * flow.bottleneck_bps * self.duration / 8000)
        known = {
            "run_id": plan.run_id,
            "point_id": plan.point_id,
            "lab": "netns",
            "build": BUILD.id,
            "status": status,
            "repeat": plan.repeat,
            "seed": plan.seed,
            "flow": flow.name,
            "scheme": flow.scheme,
            "congestion_control": flow.congestion_control,
            "bottleneck_bps": flow.bottleneck_bps,
            "base_rtt_s": flow.base_rtt_s,
            "measured_s": float(self.duration),
            "goodput_bps": value * flow.bottleneck_bps,
            "agi": value,
            "agi_ceiling": ceiling,
            "segments_sent": sent,
            "segments_retransmitted": sent // 100,
            "queue_overflows": sent // 200,
            "channel_losses": sent // 300,
            "channel_packets": 2 * sent,
            "loss_rate": 0.01,
            "rtt_mean_s": flow.base_rtt_s * 1.5,
        }
        known |= self._classified_losses(plan)
        known = {name: known.get(name) for name in TABLE_COLUMNS}
        return known | {f"point.{axis}": value for axis, value in plan.point.items()}

    def _classified_losses(self, plan: RunPlan) -> dict[str, object]:
        """Return the columns of losses and their classification.

        Of 40 losses on a channel with losses, 10 x the scheme's position are classified as
        congestion, and as many as the repeat's number were not noticed. Queues drop 7 from 50 Mb/s
        on, all classified as congestion.
        """
        scheme = plan.flows[0].scheme
        if scheme not in (*self.told, *self.inferred):
            return {}
        names = [self.rename.get(name, name) for name in self.schemes]
        channel = 40 if plan.point["error_rate"] != "0 %" else 0
        wrong = min(channel - plan.repeat, 10 * names.index(scheme)) if channel else 0
        unseen = plan.repeat if channel else 0
        queue = 7 if float(plan.point["capacity"].split()[0]) >= 50 else 0
        return {
            "reactions": "told" if scheme in self.told else "inferred",
            "channel_taken_for_congestion": wrong,
            "channel_taken_for_channel": channel - wrong - unseen,
            "channel_undecided": 0,
            "channel_not_noticed": unseen,
            "channel_mistaken": wrong / channel if channel else None,
            "queue_taken_for_congestion": queue,
            "queue_taken_for_channel": 0,
            "queue_undecided": 0,
            "queue_not_noticed": 0,
            "queue_mistaken": 0.0 if queue else None,
            "mark_reactions": plan.repeat if scheme in self.told else None,
        }

    def _verdict(self, plan: RunPlan, status: str) -> Verdict:
        recorded = Verdict.read(RECORDED / "verdict.json")
        reasons = {
            "valid": [],
            "invalid": [
                "transit_error_p99: 3.2 ms at wireless forward (limit 1)",
                "host_response_p99: 4.2 ms at S, bulk (limit 1)",
            ],
            "failed": ["an agent left no record"],
        }[status]
        checks = recorded.checks if status != "failed" else []
        if status == "invalid":
            checks = [
                check.model_copy(update={"value": 3.2, "ok": False, "subject": "wireless forward"})
                if check.name == "transit_error_p99"
                else check
                for check in checks
            ]
        return recorded.model_copy(
            update={
                "run_id": plan.run_id,
                "status": status,
                "reasons": reasons,
                "checks": checks,
                "explanations": [STOLEN] if status == "invalid" else [],
            }
        )

    def _records(self, plan: RunPlan, directory: Path, number: int) -> None:
        plan.write(directory / "plan.json")
        recorded = Manifest.read(RECORDED / "manifest.json")
        recorded.model_copy(
            update={
                "run_id": plan.run_id,
                "build": BUILD,
                "began_realtime_s": 1.7e9 + 20.0 * number,
            }
        ).write(directory / "manifest.json")
        (directory / "links.json").write_bytes((RECORDED / "links.json").read_bytes())
        if self.series:
            samples, packets = self._write_time_series(plan)
            samples.to_parquet(directory / "tcp_info.parquet")
            packets.to_parquet(directory / "packets.parquet")
            if plan.flows[0].scheme in self.told:
                self._events(plan).to_parquet(directory / "scheme_events.parquet")

    def _events(self, plan: RunPlan) -> pd.DataFrame:
        """Return one verdict in each eighth of the run, of each kind in turn."""
        flow = plan.flows[0]
        step = (flow.end_s - flow.start_s) / 8
        rows = [
            {
                "t_s": flow.start_s + (number + 1) * step,
                "flow": flow.name,
                "connection": 0,
                "event": "three_duplicates",
                "verdict": ("congestion", "channel", "undecided")[number % 3],
                "una": number * 10_000,
                "next": (number + 1) * 10_000,
            }
            for number in range(7)
        ]
        return pd.DataFrame(rows)

    def _write_time_series(self, plan: RunPlan) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Write a sawtooth of the window, and packets that arrive in windows at the bottleneck."""
        flow = plan.flows[0]
        time = np.arange(flow.start_s + 0.1, flow.end_s, 0.1)
        top = max(4.0, flow.bottleneck_bps * flow.base_rtt_s / 8000 * 1.5)
        phase = (time - flow.start_s) % (self.duration / 4) / (self.duration / 4)
        window = top * (0.5 + 0.5 * phase)
        samples = pd.DataFrame(
            {
                "t_s": time,
                "flow": flow.name,
                "snd_cwnd": window.astype(np.int64),
                "snd_ssthresh": np.where(
                    time < flow.start_s + self.duration / 4, 2**31 - 1, int(top / 2)
                ),
                "rtt": (flow.base_rtt_s * 1e6 * (0.8 + 0.5 * window / top)).astype(np.int64),
            }
        )
        wireless = plan.link("wireless").forward
        wired = plan.link("wired").forward
        slow = min((wired, wireless), key=lambda each: each.rate_bps)
        number = 0 if slow is wired else 2
        service = 8 * 1052 * 10**9 // slow.rate_bps
        # Bursts of 20 packets, spread over the run; of each 20 in the whole run two are lost.
        begin, apart = int(flow.start_s * 1e9), self.duration * 10**9 // 20
        arrived = begin + np.repeat(np.arange(20), 20) * apart + np.tile(np.arange(20), 20) * 1000
        records = np.zeros(400, RECORD)
        records["arrived_ns"] = arrived
        end = 0
        for index, at in enumerate(arrived):
            end = max(end, int(at)) + service
            records["left_ns"][index] = end + slow.delay_ns
            if index % 50 == 49:
                records["fate"][index], records["left_ns"][index] = 2, end
        records["index"] = np.arange(400)
        records["bytes"], records["direction"] = 1052, number
        return samples, to_table(records, plan)


@pytest.fixture
def synthetic(tmp_path: Path) -> Callable[..., tuple[Path, Campaign, pd.DataFrame]]:
    """Write a made-up campaign with the given settings; return directory, campaign and table."""
    numbers = itertools.count()

    def make(**settings: object) -> tuple[Path, Campaign, pd.DataFrame]:
        return Synthetic(**settings).write(tmp_path / f"campaign{next(numbers)}")

    return make
