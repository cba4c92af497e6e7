# SPDX-License-Identifier: Apache-2.0
"""Writes the files of a run directory from the records that agents left."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pandas as pd
from nagi_contracts.applications import ApplicationEnds, Applications
from nagi_contracts.errors import InputError
from nagi_contracts.plan import OwnPipelinePlan, RunPlan
from nagi_contracts.records import FlowRecord, NodeRecord, TcpInfoSample
from nagi_contracts.switches import Switches, controller_log, digests_file, program_file

from nagi.campaign.retention import FRAMES, TRANSMISSIONS
from nagi.campaign.run_directory import APPLICATIONS, QUEUE_SAMPLES, SWITCHES
from nagi.records.scheme_events import SCHEME_EVENTS, read_events
from nagi.records.switch_records import CONTROLLER as SWITCH_CONTROLLER
from nagi.records.switch_records import DIGESTS as SWITCH_DIGESTS
from nagi.records.switch_records import read_account, read_samples
from nagi.records.transmissions import Transmissions, frames_table, read_transmissions
from nagi.records.transmissions import to_table as transmissions_table

_SAMPLES = "tcp_info.jsonl"
_TRANSMISSIONS = "transmissions.bin"


def collect_file(source: Path, target: Path, name: str, as_: str = "") -> None:
    """A recorded file, if there is one, at no cost where the file system has hard links; `as_`:
    what it is called from now on. It stays where it was, too, until the run directory is whole."""
    if (source / name).exists():
        try:
            (target / (as_ or name)).hardlink_to(source / name)
        except OSError:
            shutil.copyfile(source / name, target / (as_ or name))


def collect_samples(
    plan: RunPlan, nodes: dict[str, NodeRecord], sources: dict[str, Path]
) -> tuple[pd.DataFrame, list[str]]:
    """All senders' samples, ordered by flow and time; and whose are not whole, as when there was no
    space left."""
    samples, damage = [], []
    for node, source in sources.items():
        # Of a command's flow there need not be any: it may be UDP, or silent.
        bulk = {flow.name for flow in plan.flows if flow.traffic == "bulk"}
        watched = bulk & {record.flow for record in nodes[node].flows}
        lines = []
        with suppress(FileNotFoundError):
            lines = (source / _SAMPLES).read_bytes().splitlines()
        try:
            read = [json.loads(line) for line in lines]
        except ValueError:
            damage.append(f"{node}: {_SAMPLES}: it is damaged; run it again")
            continue
        samples += read
        missing = watched - {sample["flow"] for sample in read}
        if missing:
            damage.append(f"{node}: {_SAMPLES}: nothing of flow {', '.join(sorted(missing))}")
    table = pd.DataFrame(samples, columns=list(TcpInfoSample.model_fields))
    return table.sort_values(["flow", "t_s"]), damage


def collect_events(
    plan: RunPlan, nodes: dict[str, NodeRecord], sources: dict[str, Path], target: Path
) -> list[str]:
    """Writes what schemes told, if any could; returns whose files are not whole."""
    objects = [each for flow in plan.flows for each in flow.objects().values()]
    if not any(each.events for each in objects):
        return []
    tables, damage = [], []
    for node, source in sources.items():
        if nodes[node].status == "failed":
            continue
        try:
            tables.append(read_events(plan, node, source, nodes[node].began_realtime_s))
        except InputError as error:
            damage.append(str(error))
    if tables:
        events = pd.concat(tables).sort_values(["flow", "t_s"], kind="stable")
        events.to_parquet(target / SCHEME_EVENTS, index=False, compression="zstd")
    return damage


def collect_applications(
    plan: RunPlan, nodes: dict[str, NodeRecord], sources: dict[str, Path], target: Path
) -> list[str]:
    """Writes what both ends of applications left, if there are any; returns whose results are not
    whole."""
    ends, damage = [], []
    for flow in plan.flows:
        if flow.application is None:
            continue
        other = flow.receiver if flow.listener == flow.sender else flow.sender
        nodes_of = {"client": other, "server": flow.listener}
        if any(nodes[node].status == "failed" for node in nodes_of.values()):
            continue  # which says why
        name = f"application-{{}}.{flow.name}.json"
        try:
            left = {
                role: json.loads((sources[node] / name.format(role)).read_bytes())
                for role, node in nodes_of.items()
            }
            ends.append(ApplicationEnds.model_validate({"flow": flow.name, **left}))
        except (OSError, ValueError):  # pydantic's errors are ValueErrors
            which = " or ".join(f"{node}: {name.format(role)}" for role, node in nodes_of.items())
            damage.append(f"{which}: it is missing or damaged; run it again")
    if ends:
        Applications(flows=ends).write(target / APPLICATIONS)
    return damage


def collect_logs(sources: dict[str, Path], target: Path) -> None:
    for node, source in sources.items():
        for log in source.glob("*.log"):
            target.mkdir(exist_ok=True)
            shutil.copyfile(log, target / f"{node}.{log.name}")


def merge_flow_records(nodes: Iterable[NodeRecord]) -> list[FlowRecord]:
    """Each flow as its sender saw it, with how its client ended, which may be at the other end."""
    nodes = list(nodes)
    ended = {end.flow: end for node in nodes for end in node.ended}
    records = []
    for record in (record for node in nodes for record in node.flows):
        end = ended.get(record.flow)
        if end is not None:
            update = {"ended_s": end.ended_s, "status": end.status}
            record = record.model_copy(update=update)
        records.append(record)
    return records


def collect_switches(
    plan: RunPlan, sources: dict[str, Path], began: float, target: Path
) -> Switches | None:
    """Writes what switches did and what their queues were like, if there are any. Raises
    InputError."""
    if not plan.switches():
        return None
    accounts, samples = [], []
    for node in plan.switches():
        accounts.append(read_account(plan, node, sources[node.name]))
        own = node.switch is not None and node.switch.own is not None
        if not own and plan.switch_target != "p4runtime":  # which tells of no queues
            samples.append(read_samples(plan, node, sources[node.name], began))
    switches = Switches(switches=accounts)
    switches.write(target / SWITCHES)
    if samples:
        table = pd.concat(samples).sort_values("t_s", kind="stable")
        table.to_parquet(target / QUEUE_SAMPLES, index=False, compression="zstd")
    return switches


def collect_own_program(node: str, own: OwnPipelinePlan, source: Path, target: Path) -> None:
    """What a switch with a program of the user's ran, and what program and controller said."""
    (target / program_file(node)).write_text(own.program, encoding="utf-8")
    collect_file(source, target, SWITCH_DIGESTS, digests_file(node))
    collect_file(source, target, SWITCH_CONTROLLER, controller_log(node))


def collect_transmissions(plan: RunPlan, source: Path, target: Path) -> Transmissions | None:
    """Writes what became of transmissions, if the emulator tells it. Raises InputError."""
    if not plan.records_transmissions() and not plan.media:
        return None
    found = read_transmissions(source / _TRANSMISSIONS, plan)
    if plan.records_transmissions():
        table = transmissions_table(found, plan)
        table.to_parquet(target / TRANSMISSIONS, index=False, compression="zstd")
    if plan.media:
        table = frames_table(found, plan)
        table.to_parquet(target / FRAMES, index=False, compression="zstd")
    return found
