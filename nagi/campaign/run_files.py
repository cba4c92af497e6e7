# SPDX-License-Identifier: Apache-2.0
"""Writes the files of a run directory from the records that agents left.

Functions return "damage": a list of messages about records that are incomplete or damaged. The list
is empty if all records are complete. Arguments of several functions are

- `nodes`: node -> its record (node.json),
- `sources`: node -> the directory of its agent's records,
- `target`: the run directory.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pandas as pd
from nagi_contracts.applications import ApplicationEnds, Applications
from nagi_contracts.errors import InputError
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import FlowRecord, NodeRecord, TcpInfoSample

from nagi.campaign.run_directory import APPLICATIONS, TRANSMISSIONS
from nagi.records.scheme_events import SCHEME_EVENTS, read_events
from nagi.records.transmissions import FILE, Transmissions, read_transmissions
from nagi.records.transmissions import to_table as transmissions_table

_SAMPLES = "tcp_info.jsonl"


def collect_samples(
    plan: RunPlan, nodes: dict[str, NodeRecord], sources: dict[str, Path]
) -> tuple[pd.DataFrame, list[str]]:
    """Return the TCP_INFO samples of all senders, ordered by flow and time, and the damage.

    The damage is a list of messages. Damaged files are left out of the samples. A bulk flow without
    samples is damage, too.
    """
    samples, damage = [], []
    for node, source in sources.items():
        # A user's command may have no samples, because it may use UDP or send nothing.
        bulk_flows = {flow.name for flow in plan.flows if flow.traffic == "bulk"}
        sampled_flows = bulk_flows & {record.flow for record in nodes[node].flows}
        lines = []
        with suppress(FileNotFoundError):
            lines = (source / _SAMPLES).read_bytes().splitlines()
        try:
            node_samples = [json.loads(line) for line in lines]
        except ValueError:
            damage.append(f"{node}: {_SAMPLES}: it is damaged; run it again")
            continue
        samples += node_samples
        missing = sampled_flows - {sample["flow"] for sample in node_samples}
        if missing:
            damage.append(f"{node}: {_SAMPLES}: no sample of flow {', '.join(sorted(missing))}")
    table = pd.DataFrame(samples, columns=list(TcpInfoSample.model_fields))
    return table.sort_values(["flow", "t_s"]), damage


def collect_events(
    plan: RunPlan, nodes: dict[str, NodeRecord], sources: dict[str, Path], target: Path
) -> list[str]:
    """Write scheme_events.parquet if a scheme of `plan` reports events. Return the damage.

    Rows are ordered by flow and time. Events of nodes that failed or whose files are damaged are
    left out. The damage is a list of messages.
    """
    objects = [scheme_object for flow in plan.flows for scheme_object in flow.objects().values()]
    if not any(scheme_object.events for scheme_object in objects):
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
    """Write applications.json, with the results of clients and servers. Return the damage.

    Flows are left out if they have no application, if a node failed, or if a result is damaged. If
    no flow is left, no file is written. The damage is a list of messages.
    """
    ends, damage = [], []
    for flow in plan.flows:
        if flow.application is None:
            continue
        client = flow.receiver if flow.listener == flow.sender else flow.sender
        node_by_role = {"client": client, "server": flow.listener}
        if any(nodes[node].status == "failed" for node in node_by_role.values()):
            continue  # the failed node has reported the reason
        pattern = f"application-{{}}.{flow.name}.json"
        try:
            results = {
                role: json.loads((sources[node] / pattern.format(role)).read_bytes())
                for role, node in node_by_role.items()
            }
            ends.append(ApplicationEnds.model_validate({"flow": flow.name, **results}))
        except (OSError, ValueError):  # pydantic's errors are ValueErrors
            files = " or ".join(
                f"{node}: {pattern.format(role)}" for role, node in node_by_role.items()
            )
            damage.append(f"{files}: it is missing or damaged; run it again")
    if ends:
        Applications(flows=ends).write(target / APPLICATIONS)
    return damage


def collect_logs(sources: dict[str, Path], target: Path) -> None:
    """Copy NAME.log of all nodes to `target`/NODE.NAME.log. Make `target` if there is a log."""
    for node, source in sources.items():
        for log in source.glob("*.log"):
            target.mkdir(exist_ok=True)
            shutil.copyfile(log, target / f"{node}.{log.name}")


def merge_flow_records(nodes: Iterable[NodeRecord]) -> list[FlowRecord]:
    """Return the sender's record of each flow, with end time and exit status of the flow's client.

    The client may run at the receiver. If no client's end was recorded, the record is unchanged.
    """
    nodes = list(nodes)
    exits = {client_exit.flow: client_exit for node in nodes for client_exit in node.ended}
    records = []
    for record in (record for node in nodes for record in node.flows):
        client_exit = exits.get(record.flow)
        if client_exit is not None:
            update = {"ended_s": client_exit.ended_s, "status": client_exit.status}
            record = record.model_copy(update=update)
        records.append(record)
    return records


def collect_transmissions(plan: RunPlan, source: Path, target: Path) -> Transmissions | None:
    """Write transmissions.parquet to `target`, and return the transmissions.

    Return None, without writing, if the plan has no link whose transmissions are recorded.

    Args:
        plan: The plan of the run.
        source: The directory of the emulator's records.
        target: The run directory.

    Raises:
        InputError: The record is missing or damaged.
    """
    if not plan.records_transmissions():
        return None
    transmissions = read_transmissions(source / FILE, plan)
    table = transmissions_table(transmissions, plan)
    table.to_parquet(target / TRANSMISSIONS, index=False, compression="zstd")
    return transmissions
