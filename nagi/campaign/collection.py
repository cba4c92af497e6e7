# SPDX-License-Identifier: Apache-2.0
"""Makes the run directory `runs/RUN_ID/` of a run that has ended, from the records of its hosts."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from nagi_contracts.errors import InputError
from nagi_contracts.links import Links
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Build, FileSum, Flows, Manifest, NodeRecord, Verdict

from nagi.backends.registry import load_verifiers
from nagi.campaign.host_records import NODE, WHOLE, find_records, remove_records
from nagi.campaign.run_directory import (
    DROPS,
    FLOWS,
    LINKS,
    MANIFEST,
    PACKETS,
    TCP_INFO,
    VERDICT,
    make_partial,
    replace_run,
)
from nagi.campaign.run_files import (
    collect_applications,
    collect_events,
    collect_logs,
    collect_samples,
    collect_transmissions,
    merge_flow_records,
)
from nagi.labs.shape import EMULATOR
from nagi.records.files import copy_file
from nagi.records.packets import read_records, sort_records, to_table
from nagi.records.run import RunRecords
from nagi.verdict.certificate import certify, make_failed_verdict
from nagi.verdict.measure import measure_run

_RECORDS = "packets.bin"
_COMMAND_LOGS = "command-*.log"  # output of the user's programs, which is a result


Certifier = Callable[[RunRecords], Verdict]


def certify_run(run: RunRecords) -> Verdict:
    """Measure a completed run, and return the verdict of its certificate.

    Raises:
        InputError: Records or captures are inconsistent.
    """
    return certify(run, measure_run(run))


def collect(
    records: Path,
    runs: Path,
    plan: RunPlan,
    cell: str,
    lab: str,
    build: Build,
    certifier: Certifier = certify_run,
) -> Verdict:
    """Make the run directory of a run that has ended, remove its records, and return its verdict.

    If an agent failed or records are damaged, the verdict is `failed`. If another machine has made
    the run directory, this directory is moved to `runs`. replace_run() says what happens to the
    directory of an earlier attempt.

    Args:
        records: The directory of the records of all hosts.
        runs: The directory of all run directories.
        plan: The plan of the run.
        cell: The cell that executed the run, from find_finished_cell().
        lab: The name of the lab.
        build: The build that executed the run.
        certifier: A function that returns the verdict on a completed run. It is not called if an
            agent failed or records are damaged.

    Raises:
        OSError: The disk is full, for example; the records then still exist.
    """
    if cell == WHOLE:
        return _move_whole(records / WHOLE / plan.run_id, runs / plan.run_id)
    sources = find_records(records, plan, cell)
    partial = make_partial(runs, plan)
    nodes = {node: NodeRecord.read(source / NODE) for node, source in sources.items()}
    samples, damage = collect_samples(plan, nodes, sources)
    damage += collect_events(plan, nodes, sources, partial)
    damage += collect_applications(plan, nodes, sources, partial)
    verdict = _collect_and_certify(plan, nodes, sources, damage, partial, certifier)
    Flows(flows=merge_flow_records(nodes.values())).write(partial / FLOWS)
    samples.to_parquet(partial / TCP_INFO, index=False)
    for source in sources.values():
        for log in source.glob(_COMMAND_LOGS):
            shutil.copyfile(log, partial / log.name)
    if verdict.status == "failed":
        collect_logs(sources, partial / "logs")
    files = {
        path.name: FileSum.from_file(path) for path in sorted(partial.iterdir()) if path.is_file()
    }
    Manifest(
        run_id=plan.run_id,
        point_id=plan.point_id,
        lab=lab,
        cell=cell,
        build=build,
        began_realtime_s=nodes[EMULATOR].began_realtime_s,
        collected_s=round(time.time(), 3),
        nodes=nodes,
        files=files,
    ).write(partial / MANIFEST)
    verdict.write(partial / VERDICT)
    replace_run(partial, runs / plan.run_id)
    remove_records(sources)
    return verdict


def _move_whole(source: Path, target: Path) -> Verdict:
    """Move the run directory `source` of another machine to `target`, and return its verdict."""
    verdict = Verdict.read(source / VERDICT)
    replace_run(source, target)
    return verdict


def _collect_and_certify(
    plan: RunPlan,
    nodes: dict[str, NodeRecord],
    sources: dict[str, Path],
    damage: list[str],
    target: Path,
    certifier: Certifier,
) -> Verdict:
    """Copy captures and other files of agents to the run directory, and return the verdict.

    The run directory is `target`. Tables are written there unless a node failed. The verdict is
    `failed` if a node failed, if `damage` (messages) is not empty, or if a record is damaged.
    """
    for capture in plan.captures:
        copy_file(sources[capture.node], target, capture.file)
    for name in (LINKS, DROPS):
        copy_file(sources[EMULATOR], target, name)
    for verifier in load_verifiers().values():
        verifier.copy_files(plan, sources, target)
    errors = [f"{name}: {node.error}" for name, node in nodes.items() if node.status == "failed"]
    if errors or damage:
        # If one node was late, errors of other nodes are consequences.
        is_late = any(not node.in_time for node in nodes.values())
        return make_failed_verdict(
            plan.run_id, errors or damage, too_late=is_late, nodes=nodes.values()
        )
    try:
        return certifier(_convert_records(plan, nodes, sources, target))
    except InputError as error:
        # Run directories are published, so the reason must not contain local paths.
        reason = str(error).replace(f"{target}/", "")
        for node, source in sources.items():
            reason = reason.replace(f"{source}/", f"{node}: ")
        return make_failed_verdict(plan.run_id, [reason])


def _convert_records(
    plan: RunPlan, nodes: dict[str, NodeRecord], sources: dict[str, Path], target: Path
) -> RunRecords:
    """Write the tables of the run directory `target`, and return all records of the run.

    Raises:
        InputError: A record is missing or damaged.
    """
    links = Links.read(target / LINKS)
    records = read_records(sources[EMULATOR] / _RECORDS)
    to_table(records, plan).to_parquet(target / PACKETS, index=False, compression="zstd")
    began_s = nodes[EMULATOR].began_realtime_s
    parts = {
        backend: verifier.collect(plan, sources, began_s, target)
        for backend, verifier in load_verifiers().items()
    }
    return RunRecords(
        plan=plan,
        directory=target,
        began_s=began_s,
        nodes=nodes,
        links=links,
        packets=sort_records(records),
        transmissions=collect_transmissions(plan, sources[EMULATOR], target),
        parts=parts,
        own_clocks=list_nodes_with_own_clock(nodes),
    )


def list_nodes_with_own_clock(nodes: dict[str, NodeRecord]) -> list[str]:
    """Return the nodes that run another kernel than the emulator, and so have another clock."""
    emulator_boot_id = nodes[EMULATOR].facts.boot_id
    return [name for name, node in nodes.items() if node.facts.boot_id != emulator_boot_id]
