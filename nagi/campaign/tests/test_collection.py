# SPDX-License-Identifier: Apache-2.0
"""Collection: records become run directories.

No record is lost, even if the collection is interrupted. Damaged records make a failed run, not an
error.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
from nagi.campaign.collection import Certifier, certify_run, collect
from nagi.campaign.host_records import find_finished_cell, remove_collected
from nagi.campaign.run_directory import read_verdict, record_failure
from nagi.records.packets import from_table, write_records
from nagi.records.scheme_events import read_events
from nagi_contracts.applications import Applications
from nagi_contracts.applications.transfer import TransferPlan
from nagi_contracts.errors import InputError
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Manifest, SchemeEvent, Verdict

(RECORDED,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())
PLAN, MANIFEST = RunPlan.read(RECORDED / "plan.json"), Manifest.read(RECORDED / "manifest.json")
RUN = PLAN.run_id
# The events that change files; a process is killed between two of them.
STEPS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "shutil.copyfile"}


@pytest.fixture
def records(tmp_path) -> Path:
    """Return the records of the agents of the worked example's run, in cell0."""
    records = tmp_path / ".records"
    for node, record in MANIFEST.nodes.items():
        source = records / f"cell0_{node}" / RUN
        source.mkdir(parents=True)
        record.write(source / "node.json")
        for capture in PLAN.captures:
            if capture.node == node:
                shutil.copy(RECORDED / capture.file, source)
    samples = pd.read_parquet(RECORDED / "tcp_info.parquet")
    for flow in PLAN.flows:
        flow_samples = samples[samples["flow"] == flow.name]
        source = records / f"cell0_{flow.sender}" / RUN
        flow_samples.to_json(source / "tcp_info.jsonl", orient="records", lines=True)
    emulator = records / "cell0_emulator" / RUN
    for name in ("links.json", "drops.pcapng"):
        shutil.copy(RECORDED / name, emulator)
    packets = from_table(pd.read_parquet(RECORDED / "packets.parquet"), PLAN)
    write_records(packets, emulator / "packets.bin")
    return records


@pytest.fixture
def runs(tmp_path) -> Path:
    return tmp_path / "runs"


def collect_all(records: Path, runs: Path, certifier: Certifier = certify_run) -> Verdict | None:
    """Collect a run as a campaign does."""
    remove_collected(records, runs, PLAN)
    cell = find_finished_cell(records, PLAN)
    if cell is not None:
        collect(records, runs, PLAN, cell, "netns", MANIFEST.build, certifier)
    return read_verdict(runs, RUN)


def same_files(run: Path, names: list[str]) -> bool:
    return all((run / name).read_bytes() == (RECORDED / name).read_bytes() for name in names)


def test_a_run_directory_is_made_of_records(records, runs):
    before = time.time()
    verdict = collect_all(records, runs)
    assert verdict is not None and verdict.status == "valid", verdict
    captures = [capture.file for capture in PLAN.captures]
    assert same_files(runs / RUN, [*captures, "links.json", "drops.pcapng", "plan.json"])
    result = Manifest.read(runs / RUN / "manifest.json")
    assert result.nodes == MANIFEST.nodes and set(result.files) >= set(captures)
    assert before - 0.001 <= result.date_s <= time.time() + 0.001  # not by the hosts' clocks
    assert not list(records.glob("*/*"))


@pytest.mark.parametrize("damage", ["cut", "empty", "missing", "other"])
@pytest.mark.parametrize(
    ("node", "file", "status", "said"),
    [
        ("emulator", "packets.bin", "failed", "emulator: packets.bin"),
        ("emulator", "links.json", "failed", "links.json"),
        ("client", "tcp_info.jsonl", "failed", "client: tcp_info.jsonl"),
        ("client", "client.radio.pcap", "failed|invalid", "c"),  # as far as it can be read
        ("server", "server.core.pcap", "failed|invalid", "c"),
    ],
)
def test_damaged_records_make_a_failed_run(records, runs, node, file, status, said, damage):
    path = records / f"cell0_{node}" / RUN / file
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        spoiled = {"cut": content[: len(content) // 2 + 7], "empty": b"", "other": b"{]\xff" * 99}
        path.write_bytes(spoiled[damage])
    verdict = collect_all(records, runs)
    assert verdict is not None
    assert verdict.status in status.split("|"), verdict
    assert said in "; ".join(verdict.reasons)
    assert not list(records.glob("*/*"))


BEGAN = {"schema_version": 1, "began_realtime_s": 1.0, "ended": "complete"}
CLIENT = {**BEGAN, "application": "transfer", "role": "client", "size_bytes": 9}
CLIENT |= {"connect_s": 0.1, "completed": True, "completion_s": 0.2, "duration_s": 0.2}
SERVER = {**BEGAN, "application": "transfer", "role": "server", "received_bytes": 9}
SERVER |= {"accepted_s": 0.1, "first_byte_s": 0.1, "last_byte_s": 0.2}


@pytest.mark.parametrize("damage", [None, "missing", b"", b"{", b"[]", b'{"role": "client"}'])
def test_what_applications_left_is_whole_or_the_run_has_failed(records, runs, damage):
    settings = TransferPlan(size_bytes=9)
    flow = PLAN.flows[0].model_copy(update={"traffic": "transfer", "application": settings})
    plan = PLAN.model_copy(update={"flows": [flow, *PLAN.flows[1:]]})
    for role, node, left in (("client", flow.sender, CLIENT), ("server", flow.receiver, SERVER)):
        path = records / f"cell0_{node}" / RUN / f"application-{role}.{flow.name}.json"
        path.write_text(json.dumps(left))
        if role == "client" and isinstance(damage, bytes):
            path.write_bytes(damage)
        elif role == "client" and damage == "missing":
            path.unlink()
    verdict = collect(records, runs, plan, "cell0", "netns", MANIFEST.build)
    if damage is None:
        (ends,) = Applications.read(runs / RUN / "applications.json").flows
        assert (ends.client.completion_s, ends.server.received_bytes) == (0.2, 9)
        assert "applications.json" in Manifest.read(runs / RUN / "manifest.json").files
    else:
        assert verdict.status == "failed"
        assert f"application-client.{flow.name}.json" in verdict.reasons[0]


@pytest.mark.parametrize("damage", [b"", b'{"schema_version": 1, "run_id"'])
def test_a_run_is_not_over_before_every_agent_has_said_so(records, runs, damage):
    (records / "cell0_server" / RUN / "node.json").write_bytes(damage)
    assert find_finished_cell(records, PLAN) is None
    assert (records / "cell0_server" / RUN / "server.core.pcap").exists()


def test_what_is_left_of_another_try_is_no_part_of_a_run(records, runs):
    path = records / "cell0_server" / RUN / "node.json"
    earlier = MANIFEST.nodes["server"].model_copy(
        update={"began_realtime_s": MANIFEST.began_realtime_s - 60}
    )
    earlier.write(path)
    assert find_finished_cell(records, PLAN) is None


class Killed(BaseException):
    """The end of the process. No code catches it."""


class Killer:
    """Ends code that changes files, at a given step (an audit hook, see PEP 578)."""

    def __init__(self) -> None:
        self.steps_left: int | None = None
        self.taken = 0
        self._under = ""
        sys.addaudithook(self._handle_event)

    @contextmanager
    def kill_after(self, step: int | None, under: Path) -> Iterator[None]:
        """Raise Killed in the block after `step` steps; None only counts them."""
        self.steps_left, self.taken, self._under = step, 0, str(under)
        try:
            yield
        finally:
            self._under = ""

    def _handle_event(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self._under or event not in STEPS:
            return
        if event == "open":
            mode = arguments[1]
            if not isinstance(mode, str) or not set(mode) & set("wax+"):
                return
        if self.steps_left == self.taken:
            raise Killed
        self.taken += 1


@pytest.fixture(scope="module")
def killer() -> Killer:
    return Killer()


@pytest.mark.parametrize("status", ["valid", "invalid"])
@pytest.mark.parametrize("before", [None, "invalid", "failed"])
def test_collecting_can_be_broken_off_at_any_step(records, runs, tmp_path, killer, status, before):
    # This test does not examine the verdict, and certificates take long.
    verdict = Verdict.read(RECORDED / "verdict.json").model_copy(update={"status": status})

    def return_verdict(*_) -> Verdict:
        return verdict

    kept = tmp_path / "kept"
    if before == "failed":
        record_failure(runs, PLAN, "the agent died")
    elif before == "invalid":
        shutil.copytree(RECORDED, runs / RUN)
        earlier = {"began_realtime_s": MANIFEST.began_realtime_s - 60}
        MANIFEST.model_copy(update=earlier).write(runs / RUN / "manifest.json")
        invalid = Verdict.read(RECORDED / "verdict.json").model_copy(update={"status": "invalid"})
        invalid.write(runs / RUN / "verdict.json")
    else:
        runs.mkdir()
    for directory in (records, runs):
        shutil.copytree(directory, kept / directory.name)

    step = 0
    while True:
        for directory in (records, runs):
            shutil.rmtree(directory)
            shutil.copytree(kept / directory.name, directory)
        try:
            with killer.kill_after(step, tmp_path):
                collect_all(records, runs, return_verdict)
        except Killed:
            pass
        else:
            break
        # The next process collects the remaining records, and the run is complete.
        result = collect_all(records, runs, return_verdict)
        assert result is not None and result.status == status, f"step {step}: {result}"
        captures = [capture.file for capture in PLAN.captures]
        assert same_files(runs / RUN, [*captures, "links.json", "drops.pcapng"])
        earlier_tries = [f"{RUN}.invalid-1"] if before == "invalid" else []
        assert sorted(path.name for path in runs.iterdir()) == [RUN, *earlier_tries], step
        assert find_finished_cell(records, PLAN) is None
        step += 1
    assert step > 20


OPENED = {"event": "opened", "t_ns": 5_000, "realtime_ns": 1_000_000_005_000}
CLOSED = {"event": "closed", "t_ns": 9_000_000, "told": 2, "lost": 0}
TOLD = {
    "event": "three_duplicates",
    "t_ns": 2_000_000_000,
    "local_port": 40_000,
    "remote_port": PLAN.flows[0].port,
    "verdict": "channel",
    "una": 4_294_967_295,
    "next": 12,
    "flight": 9,
    "cwnd_before": 9,
    "cwnd": 9,
    "ssthresh_before": None,
    "ssthresh": 5,
    "rtt_us": 20_100,
    "min_rtt_us": 20_000,
    "bandwidth_bytes_per_second": 125_000,
    "backlog_segments": 0.25,
}


def read_events_of(directory: Path, *lines: dict) -> pd.DataFrame:
    (directory / "events.0.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_events(PLAN, PLAN.flows[0].sender, directory, began_realtime_s=999.0)


def test_what_a_scheme_told_becomes_rows_of_its_flows(tmp_path):
    other = TOLD | {"local_port": 40_001, "t_ns": 1_000_000_000}
    lost = {"event": "lost", "t_ns": 7, "count": 3}
    stranger = TOLD | {"remote_port": 9}
    table = read_events_of(tmp_path, OPENED, TOLD, lost, other, stranger, TOLD, CLOSED)
    assert list(table["t_s"]) == [3.0, 2.0, 3.0]  # by the clock that the run's instants are on
    assert list(table["connection"]) == [0, 1, 0]
    assert set(table["flow"]) == {PLAN.flows[0].name}
    assert table["una"].iloc[0] == 2**32 - 1 and table["ssthresh_before"].isna().all()
    for row in json.loads(table.to_json(orient="records")):
        SchemeEvent.model_validate(row)
    assert read_events_of(tmp_path, OPENED, CLOSED).empty


@pytest.mark.parametrize("damaged", [(), (OPENED,), (OPENED, TOLD), (TOLD, CLOSED)])
def test_what_a_scheme_told_is_whole_or_refused(tmp_path, damaged):
    with pytest.raises(InputError, match=r"events\.0\.jsonl: it is damaged"):
        read_events_of(tmp_path, *damaged)
