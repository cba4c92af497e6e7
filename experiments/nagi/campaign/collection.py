# SPDX-License-Identifier: Apache-2.0
"""From what agents recorded to run directories.

Agents leave `records/HOST/RUN_ID/`, with node.json written last. A run all of whose agents have
left one is over, whatever became of the batch it was in; it becomes `runs/RUN_ID/`.

A run that another machine has done comes as the run directory that was made there,
`records/whole/RUN_ID/`.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import pandas as pd
from nagi_contracts.applications import ApplicationEnds, Applications
from nagi_contracts.errors import InputError
from nagi_contracts.links import Links
from nagi_contracts.plan import OwnPipelinePlan, RunPlan
from nagi_contracts.records import (
    Build,
    FileSum,
    FlowRecord,
    Flows,
    Manifest,
    NodeRecord,
    TcpInfoSample,
    Verdict,
)
from nagi_contracts.switches import (
    Switches,
    controller_log,
    digests_file,
    drops_file,
    program_file,
)

from nagi.campaign.retention import FRAMES, PACKETS, TRANSMISSIONS
from nagi.labs.guest import CONSOLE
from nagi.labs.shape import EMULATOR
from nagi.records.packets import Records, read_records, to_table
from nagi.records.scheme_events import SCHEME_EVENTS, read_events
from nagi.records.switch_records import CONTROLLER as SWITCH_CONTROLLER
from nagi.records.switch_records import DIGESTS as SWITCH_DIGESTS
from nagi.records.switch_records import DROPS as SWITCH_DROPS
from nagi.records.switch_records import read_account, read_samples
from nagi.records.transmissions import Transmissions, frames_table, read_transmissions
from nagi.records.transmissions import to_table as transmissions_table
from nagi.verdict.certificate import certify, failed, most_late_ns
from nagi.verdict.evidence import RADIOS, Evidence, gather

PLAN, MANIFEST, VERDICT = "plan.json", "manifest.json", "verdict.json"
LINKS, FLOWS, TCP_INFO = "links.json", "flows.json", "tcp_info.parquet"
APPLICATIONS = "applications.json"
DROPS = "drops.pcapng"
SWITCHES, QUEUE_SAMPLES = "switches.json", "queue_samples.parquet"
_NODE, _SAMPLES, _RECORDS = "node.json", "tcp_info.jsonl", "packets.bin"
_TRANSMISSIONS = "transmissions.bin"
WHOLE = "whole"
_COMMAND_LOGS = "command-*.log"  # what programs of the user's own said is a result


def finished_cell(records: Path, runs: Path, plan: RunPlan) -> str | None:
    """Return the cell that completed `plan` and still holds its records, or None. WHOLE: it was run
    elsewhere, and its directory is there."""
    if (records / WHOLE / plan.run_id).exists():
        return WHOLE
    for first in records.glob(f"*_{EMULATOR}/{plan.run_id}"):
        cell = first.parent.name.removesuffix(f"_{EMULATOR}")
        sources = _sources(records, plan, cell)
        begun = {_began(source / _NODE) for source in sources.values()}
        # What agents left of a try that was broken off is no part of this one.
        if None not in begun and len(begun) == 1:
            return cell
    return None


def remove_collected(records: Path, runs: Path, plan: RunPlan) -> None:
    """Remove the records of a run that have been collected, by a process that ended before it had
    removed them. All that agents recorded is compared: runs in guests begin at the same instant."""
    try:
        collected = Manifest.read(runs / plan.run_id / MANIFEST)
    except InputError:
        return
    for first in records.glob(f"*_{EMULATOR}/{plan.run_id}"):
        sources = _sources(records, plan, first.parent.name.removesuffix(f"_{EMULATOR}"))
        try:
            nodes = {node: NodeRecord.read(source / _NODE) for node, source in sources.items()}
        except InputError:
            continue
        began = nodes[EMULATOR].began_realtime_s
        if (began, nodes) == (collected.began_realtime_s, collected.nodes):
            _remove(sources)


# What a run is worth, of what was recorded: as judge() says it. Raises InputError if that makes no
# sense.
Judge = Callable[
    [
        RunPlan,
        Links,
        dict[str, NodeRecord],
        Records,
        Path,
        Switches | None,
        Transmissions | None,
    ],
    Verdict,
]


def judge(
    plan: RunPlan,
    links: Links,
    nodes: dict[str, NodeRecord],
    records: Records,
    target: Path,
    switches: Switches | None,
    transmissions: Transmissions | None,
) -> Verdict:
    """The certificate's verdict."""
    evidence = evidence_of(plan, links, nodes, records, target, switches, transmissions)
    return certify(plan, links, nodes.values(), evidence, switches)


def evidence_of(
    plan: RunPlan,
    links: Links,
    nodes: dict[str, NodeRecord],
    records: Records,
    run: Path,
    switches: Switches | None,
    transmissions: Transmissions | None,
) -> Evidence:
    """Gather the evidence of a run whose captures are in `run`. Raises InputError if records or
    captures make no sense."""
    return gather(
        plan,
        nodes[EMULATOR].began_realtime_s,
        records,
        run,
        own_clocks(nodes),
        switches,
        transmissions,
        late_ns=most_late_ns(links.virtual_time),
    )


def collect(
    records: Path,
    runs: Path,
    plan: RunPlan,
    cell: str,
    lab: str,
    build: Build,
    judge: Judge = judge,
) -> Verdict:
    """Makes the run directory of a run that is over, and then removes the records it is made from.

    Raises OSError, such as for want of space; the records are then still there.
    """
    if cell == WHOLE:
        return _take_over(records / WHOLE / plan.run_id, runs / plan.run_id)
    sources = _sources(records, plan, cell)
    partial = _new(runs, plan)
    nodes = {node: NodeRecord.read(source / _NODE) for node, source in sources.items()}
    samples, damage = _samples(plan, nodes, sources)
    damage += _bring_events(plan, nodes, sources, partial)
    damage += _bring_applications(plan, nodes, sources, partial)
    verdict = _verdict(plan, nodes, sources, damage, partial, judge)
    Flows(flows=_flow_records(nodes.values())).write(partial / FLOWS)
    samples.to_parquet(partial / TCP_INFO, index=False)
    for source in sources.values():
        for log in source.glob(_COMMAND_LOGS):
            shutil.copyfile(log, partial / log.name)
    if verdict.status == "failed":
        _keep_logs(sources, partial / "logs")
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
    _replace(partial, runs / plan.run_id)
    _remove(sources)
    return verdict


def _take_over(whole: Path, target: Path) -> Verdict:
    """Puts a run directory that was made elsewhere in its place."""
    verdict = Verdict.read(whole / VERDICT)
    _replace(whole, target)
    return verdict


def record_failure(runs: Path, plan: RunPlan, reason: str, console: Path | None = None) -> Verdict:
    """Make the directory of a run that was begun but is not over: its plan, why it failed, and the
    end of its guest's console, if there is one. Return the verdict."""
    partial = _new(runs, plan)
    if console is not None and console.is_file():
        (partial / "logs").mkdir()
        shutil.copyfile(console, partial / "logs" / CONSOLE)
        reason += f" (more of it: logs/{CONSOLE} of the run)"
    verdict = failed(plan.run_id, [reason])
    verdict.write(partial / VERDICT)
    _replace(partial, runs / plan.run_id)
    return verdict


def attempts(runs: Path, run_id: str) -> int:
    """How often a run has been found invalid before."""
    return len(list(runs.glob(f"{run_id}.invalid-*")))


def _replace(new: Path, old: Path) -> None:
    """Puts `new` in the place of `old`. An invalid run is kept beside it, a failed one is not."""
    before = verdict_of(old.parent, old.name)
    if before is not None and before.status == "invalid":
        old.rename(old.with_name(f"{old.name}.invalid-{attempts(old.parent, old.name) + 1}"))
    shutil.rmtree(old, ignore_errors=True)
    new.rename(old)


def is_to_do(verdict: Verdict | None) -> bool:
    """Return whether a run with this verdict (None: no verdict) is to be done, or done again."""
    return verdict is None or verdict.status == "failed"


def verdict_of(runs: Path, run_id: str) -> Verdict | None:
    """The verdict on a run, if it has been run."""
    try:
        return Verdict.read(runs / run_id / VERDICT)
    except InputError:
        return None


def _sources(records: Path, plan: RunPlan, cell: str) -> dict[str, Path]:
    """node -> where its agent left its record of a run."""
    nodes = (*(node.name for node in plan.nodes), EMULATOR)
    return {node: records / f"{cell}_{node}" / plan.run_id for node in nodes}


def _began(file: Path) -> float | None:
    """Return when a run began, by a node's record; None if there is none, or no whole one."""
    try:
        return NodeRecord.read(file).began_realtime_s
    except InputError:
        return None


def _new(runs: Path, plan: RunPlan) -> Path:
    """A run directory that is not in its place yet."""
    partial = runs / f"{plan.run_id}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    plan.write(partial / PLAN)
    return partial


def _remove(sources: dict[str, Path]) -> None:
    for source in sources.values():
        shutil.rmtree(source)


def _verdict(
    plan: RunPlan,
    nodes: dict[str, NodeRecord],
    sources: dict[str, Path],
    damage: list[str],
    target: Path,
    judge: Judge,
) -> Verdict:
    """Brings captures and account over, and judges the run."""
    for capture in plan.captures:
        _bring(sources[capture.node], target, capture.file)
    monitors = [medium.monitor for medium in plan.media if medium.monitor is not None]
    for name in (LINKS, DROPS, RADIOS, *monitors):
        _bring(sources[EMULATOR], target, name)
    for switch in plan.switches():
        _bring(sources[switch.name], target, SWITCH_DROPS, drops_file(switch.name))
        if switch.switch is not None and switch.switch.own is not None:
            _bring_own_program(switch.name, switch.switch.own, sources[switch.name], target)
    errors = [f"{name}: {node.error}" for name, node in nodes.items() if node.status == "failed"]
    if errors or damage:
        # What else failed then is for want of the one that was late.
        too_late = any(not node.in_time for node in nodes.values())
        return failed(plan.run_id, errors or damage, too_late=too_late, nodes=nodes.values())
    try:
        links = Links.read(target / LINKS)
        records = read_records(sources[EMULATOR] / _RECORDS)
        to_table(records, plan).to_parquet(target / PACKETS, index=False, compression="zstd")
        began = nodes[EMULATOR].began_realtime_s
        switches = _bring_switches(plan, sources, began, target)
        transmissions = _bring_transmissions(plan, sources[EMULATOR], target)
        return judge(plan, links, nodes, records, target, switches, transmissions)
    except InputError as error:
        # Without where the campaign is: run directories are published.
        said = str(error).replace(f"{target}/", "")
        for node, source in sources.items():
            said = said.replace(f"{source}/", f"{node}: ")
        return failed(plan.run_id, [said])


def _bring_switches(
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


def _bring_own_program(node: str, own: OwnPipelinePlan, source: Path, target: Path) -> None:
    """What a switch with a program of the user's ran, and what program and controller said."""
    (target / program_file(node)).write_text(own.program, encoding="utf-8")
    _bring(source, target, SWITCH_DIGESTS, digests_file(node))
    _bring(source, target, SWITCH_CONTROLLER, controller_log(node))


def _bring_transmissions(plan: RunPlan, source: Path, target: Path) -> Transmissions | None:
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


def _flow_records(nodes: Iterable[NodeRecord]) -> list[FlowRecord]:
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


def own_clocks(nodes: dict[str, NodeRecord]) -> list[str]:
    """The nodes whose clock is not the emulator's: another kernel keeps it."""
    shared = nodes[EMULATOR].facts.boot_id
    return [name for name, node in nodes.items() if node.facts.boot_id != shared]


def _bring(source: Path, target: Path, name: str, as_: str = "") -> None:
    """A recorded file, if there is one, at no cost where the file system has hard links; `as_`:
    what it is called from now on. It stays where it was, too, until the run directory is whole."""
    if (source / name).exists():
        try:
            (target / (as_ or name)).hardlink_to(source / name)
        except OSError:
            shutil.copyfile(source / name, target / (as_ or name))


def _samples(
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


def _bring_events(
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


def _bring_applications(
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


def _keep_logs(sources: dict[str, Path], target: Path) -> None:
    for node, source in sources.items():
        for log in source.glob("*.log"):
            target.mkdir(exist_ok=True)
            shutil.copyfile(log, target / f"{node}.{log.name}")
