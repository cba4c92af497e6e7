# SPDX-License-Identifier: Apache-2.0
"""Chaos: injects faults into campaigns at random moments, and checks that nothing is lost.

A fault, a "blow", kills a part of nagi by SIGKILL, fills a disk or sets a link down. Then the same
command resumes the campaign, and is struck again. After each launch of nagi these are checked:

- nagi ended within a bound, with a documented status, and reported what had happened;
- runs that had finished before a blow are unchanged, byte for byte;
- the run that a blow broke has failed, with a reason that names host and part, or is pending;
- nothing is left: processes, namespaces, interfaces, queueing, BPF programs, files.

In the end nagi must finish the campaign.

    python chaos.py --blows 100 --seed 1 --lab netns --lab ssh

prints one line per blow, with the faults that were found (`make test-chaos` does the same). The
same seed strikes the same parts after the same times; the machine decides what happens then.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos_beds import Agent, Bed, SshBed, fill_disk
from controller import Controller, wait_for
from nagi_contracts.records import Verdict
from ssh_hosts import CELLS, MANAGEMENT, SshHosts

# The time that nagi may take after the last blow, beyond the timelines of its runs: it may make a
# lab three times, and wait for hosts that do not answer.
TIMEOUT_S = 120.0
# The time until all parts of a lab have ended: Ansible checks its children now and then.
LEFT_TIMEOUT_S = 30.0
# The effects of a full disk: an error at once, or incomplete files.
_NO_SPACE = r"No space left on device|is the disk full|(links.json|packets.bin|pcap|tcp_info.*):"
_FINISHES = 4
BUSY = re.compile(r"the host is too busy|did not start:? *$")


@dataclass
class Blow:
    """A fault that is injected `delay` seconds after nagi has reached `anchor`."""

    kind: str
    anchor: str  # start, batch (agents run), result (a run has ended)
    delay: float
    choose: random.Random
    # The result of the blow.
    at: str = ""
    what: str = ""
    runs: set[str] = field(default_factory=set)  # the runs that were executed at that moment
    process: int | None = None

    @classmethod
    def draw(cls, kind: str, choose: random.Random) -> Blow:
        """Return a blow of a kind at a random moment."""
        anchor = "batch"
        if kind in ("nagi", "ansible", "disk", "host disk", "management", "sshd"):
            anchor = choose.choice(["start", "batch", "batch", "result"])
        longest = {"start": 10.0, "batch": 8.0, "result": 3.0}[anchor]
        return cls(kind, anchor, choose.uniform(0, longest), random.Random(choose.random()))

    @property
    def is_the_last(self) -> bool:
        """True if the blow may end nagi, so that no other blow can follow."""
        return self.kind in ("nagi", "disk")

    def reason_pattern(self) -> str:
        """Return a regular expression for the reason of a run that this blow broke."""
        return {
            "nagi": "$^",  # a killed nagi reports nothing
            "agent": r"Run the agent: killed",
            "emulator": r"emulator: nagi-link was ended by SIGKILL",
            "tcpdump": r"tcpdump on \w+ was ended by SIGKILL",
            "nagi-tcp": r"nagi-tcp was ended by SIGKILL|events\.\d+\.jsonl: it is damaged",
            "nagi-traffic": r"the (client|server) of flow bulk was ended by SIGKILL",
            "ansible": r"playbook \w+\.yml",
            "disk": _NO_SPACE,
            "host disk": _NO_SPACE,
            "link": r"interface \S+ (is down|has no carrier)|tcpdump on \S+ ended|is unreachable",
            "management": r"cannot be reached|unreachable|timed out|closed|ssh",
            "sshd": r"cannot be reached|unreachable|refused|closed|ssh",
        }[self.kind]


@dataclass
class Launch:
    """One start of nagi, with the blows that struck it and their result."""

    blows: list[Blow]
    status: int | None = None
    said: str = ""
    faults: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)  # of runs that failed
    left: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


class Chaos:
    """Launches nagi on a bed, and strikes it."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self._known: dict[str, dict[str, str]] = {}  # finished run -> file -> checksum

    def launch(self, *blows: Blow) -> Launch:
        """Launch nagi, strike it, and check the result."""
        launch = Launch(list(blows))
        started_s = time.monotonic()
        verdicts_before = self.bed.read_verdicts()
        finished_before = set(verdicts_before)
        process = self.bed.controller.start(*self.bed.make_arguments())
        reader = _Reader(process)
        try:
            for blow in blows:
                if not self._wait(blow, process, finished_before):
                    break
                self._strike(blow, process)
            launch.status = process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            launch.faults.append(f"it did not end within {TIMEOUT_S:.0f} s")
            with suppress(ProcessLookupError):
                os.kill(self.bed.controller.find_pid(process), signal.SIGKILL)
            process.wait()
        launch.said = reader.text()
        launch.seconds = time.monotonic() - started_s
        self._check(launch, verdicts_before)
        return launch

    def _wait(self, blow: Blow, process: subprocess.Popen[str], finished_before: set[str]) -> bool:
        """Wait for the moment of a blow. Return False if nagi ended first."""
        reached: Callable[[], object] = {
            "start": lambda: True,
            "batch": self.bed.find_agents,
            "result": lambda: set(self.bed.read_verdicts()) - finished_before,
        }[blow.anchor]
        while not reached():
            if process.poll() is not None:
                return False
            time.sleep(0.05)
        with suppress(subprocess.TimeoutExpired):
            process.wait(blow.delay)
            return False
        return True

    def _strike(self, blow: Blow, process: subprocess.Popen[str]) -> None:
        """Strike nagi, the disk of its results, or a part of the lab."""
        now = time.time()
        agents = self.bed.find_agents()
        blow.at = _describe_moment(agents, now)
        blow.runs = {run for agent in agents if (run := _current_run_id(agent, now))}
        self._record_finished()
        if blow.kind == "nagi":
            with suppress(ProcessLookupError):  # nagi has just ended
                blow.process = self.bed.controller.find_pid(process)
                os.kill(blow.process, signal.SIGKILL)
                blow.what = "nagi"
        elif blow.kind == "disk":
            blow.what = "the disk results go to"
            with self.bed.fill_disk(), suppress(subprocess.TimeoutExpired):
                process.wait(blow.choose.uniform(0.5, 6))
        elif blow.kind in ("management", "sshd", "host disk"):
            self._strike_host(blow, process)
        else:
            self._strike_part(blow, process)

    def _strike_part(self, blow: Blow, process: subprocess.Popen[str]) -> None:
        """Kill a random process of a kind, or unplug a host on which an agent runs."""
        kind = "agent" if blow.kind == "link" else blow.kind
        while not (victims := self.bed.find_victims(kind)):
            if process.poll() is not None:
                return
            time.sleep(0.05)
        pid, agent = blow.choose.choice(sorted(victims, key=lambda victim: victim[0]))
        now = time.time()
        blow.what = f"{blow.kind} of {agent.host}" if agent else blow.kind
        agents = [agent] if agent else self.bed.find_agents()
        blow.at = _describe_moment(agents, now)
        if blow.kind == "link":
            assert agent is not None
            blow.what = f"{agent.host}'s {self.bed.unplug(agent, blow.choose)}"
        else:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        blow.runs = {
            run for current_agent in agents if (run := _current_run_id(current_agent, now))
        }

    def _strike_host(self, blow: Blow, process: subprocess.Popen[str]) -> None:
        """Strike the management network, the sshd or the disk of a random host."""
        assert isinstance(self.bed, SshBed)
        hosts = self.bed.hosts
        host = blow.choose.choice(sorted(hosts.hosts))
        blow.what = f"{host}'s {blow.kind}"
        seconds = blow.choose.uniform(0.5, 15)
        with suppress(subprocess.TimeoutExpired):
            if blow.kind == "management":
                hosts.unplug(host, MANAGEMENT)
                try:
                    process.wait(seconds)
                finally:
                    hosts.plug(host, MANAGEMENT)
            elif blow.kind == "sshd":
                hosts.stop_sshd(host)
                try:
                    process.wait(seconds)
                finally:
                    hosts.start_sshd(host)
            else:
                with fill_disk(hosts.outside_path(Path("/var/lib/nagi"), host)):
                    process.wait(seconds)

    def _record_finished(self) -> None:
        """Record the files of finished runs, which must not change any more."""
        for run_id, files in self.bed.read_finished().items():
            self._known.setdefault(run_id, {}).update(files)

    def _check(self, launch: Launch, earlier: dict[str, Verdict]) -> None:
        """Append the faults of a launch to `launch.faults`."""
        faults, bed = launch.faults, self.bed
        struck = [blow for blow in launch.blows if blow.what]
        killed = any(blow.kind == "nagi" for blow in struck)
        allowed = {-signal.SIGKILL} if killed else {0, 1, 2}
        if launch.status not in allowed:
            faults.append(f"exit status {launch.status}")
        if "Traceback" in launch.said:
            faults.append("a traceback")
        verdicts = bed.read_verdicts()
        for run_id, files in bed.read_finished().items():
            known_files = self._known.get(run_id, {})
            changed = sorted(name for name in known_files if files.get(name) != known_files[name])
            if changed:
                faults.append(f"finished run {run_id} changed: {', '.join(changed)}")
        for run_id in sorted(set(self._known) - set(verdicts)):
            faults.append(f"finished run {run_id} is gone")
        for run_id in set(self._known) & set(verdicts):
            if verdicts[run_id].status == "failed":
                faults.append(f"finished run {run_id} failed")
        self._record_finished()
        patterns = "|".join(blow.reason_pattern() for blow in struck) or "$^"
        for run_id, verdict in verdicts.items():
            reasons = "; ".join(verdict.reasons)
            if verdict.status != "failed" or verdict == earlier.get(run_id):
                continue
            launch.reasons.append(reasons)
            if BUSY.search(reasons):
                continue
            if not killed and not re.search(patterns, reasons):
                faults.append(f"run {run_id} failed for another reason: {reasons}")
        # A lab that was made again has repeated the runs that another blow had interrupted.
        made_anew = launch.said.count("the lab failed") and len(struck) > 1
        for blow in struck:
            if blow.kind in ("emulator", "tcpdump", "nagi-tcp", "agent") and not made_anew:
                for run_id in blow.runs & set(verdicts):
                    if verdicts[run_id].status != "failed":
                        faults.append(f"{blow.what} was killed at {blow.at}, yet {run_id} is fine")
        launch.counts = _count_statuses(verdicts.values())
        launch.counts["to do"] = len(set(bed.list_expected()) - set(verdicts))
        if not (killed and bed.may_outlast()):
            with suppress(AssertionError):
                wait_for(lambda: not bed.find_leftovers(), "the end of everything", LEFT_TIMEOUT_S)
            launch.left = bed.find_leftovers()
            if launch.left:
                faults.append(f"left: {json.dumps(launch.left)[:1500]}")

    def is_done(self) -> bool:
        """Return whether all runs have finished."""
        return 0 < len(self.bed.list_expected()) == len(self.bed.read_finished())

    def finish(self) -> Launch:
        """Launch nagi without blows: it must finish the campaign and leave nothing behind."""
        for _ in range(_FINISHES):
            launch = self.launch()
            failed = [
                verdict
                for verdict in self.bed.read_verdicts().values()
                if verdict.status == "failed"
            ]
            # Delays by other users of this machine are no fault of nagi.
            if not failed or not all(BUSY.search("; ".join(verdict.reasons)) for verdict in failed):
                break
        verdicts = self.bed.read_verdicts()
        for run_id in self.bed.list_expected():
            verdict = verdicts.get(run_id)
            if verdict is None or verdict.status == "failed":
                launch.faults.append(f"run {run_id} was not done: {verdict and verdict.reasons}")
        expected_status = (
            0 if all(verdict.status == "valid" for verdict in verdicts.values()) else 1
        )
        if launch.status != expected_status:
            launch.faults.append(f"exit status {launch.status} instead of {expected_status}")
        expected_names = {
            "campaign.json",
            "report.pdf",
            "results.parquet",
            "figures",
            "runs",
            ".lock",
        }
        stray = {path.name for path in self.bed.find_results().iterdir()} - expected_names
        stray |= {str(path) for path in self.bed.find_results().rglob("*.partial")}
        stray |= {
            path.name
            for path in (self.bed.find_results() / "runs").iterdir()
            if path.name not in verdicts
        }
        if stray:
            launch.faults.append(f"stray files: {', '.join(sorted(stray))}")
        return launch


@contextmanager
def testbed(lab: str, runs: int, cells: int = 1) -> Iterator[Chaos]:
    """Yield a campaign of `runs` runs in a lab: netns, or ssh with `cells` cells."""
    if lab == "netns":
        with Controller(root=True) as controller:
            yield Chaos(Bed(controller, runs))
    else:
        host_names = {
            f"bench{index}": {node: f"{host}{index}" for node, host in CELLS["bench1"].items()}
            for index in range(1, cells + 1)
        }
        with SshHosts(cells=host_names) as hosts:
            yield Chaos(SshBed(hosts, runs))


def _describe_moment(agents: list[Agent], now: float) -> str:
    """Return which run of a batch is executed, and in which phase it is."""
    for agent in agents:
        current_run = agent.find_current_run(now)
        if current_run is not None:
            index, since = current_run
            timeline = agent.runs[index]["plan"]["timeline"]
            phase = "begin"
            for name in ("capture_s", "serve_s", "traffic_s", "traffic_end_s", "capture_end_s"):
                if since >= timeline[name]:
                    phase = name.removesuffix("_s").replace("_", " ")
            return f"run {index + 1} of {len(agent.runs)}, {since:.2f} s ({phase})"
    return "between runs" if agents else "no agent runs"


def _current_run_id(agent: Agent, now: float) -> str | None:
    current_run = agent.find_current_run(now)
    return agent.runs[current_run[0]]["plan"]["run_id"] if current_run else None


def _count_statuses(verdicts: Any) -> dict[str, int]:
    counts = dict.fromkeys(("valid", "invalid", "failed"), 0)
    for verdict in verdicts:
        counts[verdict.status] += 1
    return counts


class _Reader:
    """Reads the output of a process while it runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._lines: list[str] = []
        self._thread = threading.Thread(target=self._read, args=(process,), daemon=True)
        self._thread.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self._lines.extend(process.stdout)

    def text(self) -> str:
        self._thread.join(5)  # orphans may hold the pipe
        return "".join(self._lines)


def series(
    labs: Sequence[str], blows: int, seed: int, kinds: Sequence[str] = ()
) -> Iterator[tuple[str, Launch]]:
    """Strike `blows` times, once or twice per launch, and finish every campaign.

    All kinds occur about equally often.

    Yields:
        the lab and the launch
    """
    choose = random.Random(seed)
    pending_kinds: dict[str, list[str]] = {lab: [] for lab in labs}
    struck, labs_in_turn = 0, itertools.cycle(labs)
    while struck < blows:
        lab = next(labs_in_turn)
        with testbed(lab, runs=choose.randint(4, 6), cells=choose.randint(1, 2)) as chaos:
            while struck < blows and not chaos.is_done():
                launch_blows: list[Blow] = []
                for _ in range(min(choose.randint(1, 2), blows - struck)):
                    if not pending_kinds[lab]:
                        pending_kinds[lab] = list(kinds or chaos.bed.kinds)
                        choose.shuffle(pending_kinds[lab])
                    launch_blows.append(Blow.draw(pending_kinds[lab].pop(), choose))
                    if launch_blows[-1].is_the_last:
                        break
                launch = chaos.launch(*launch_blows)
                struck += sum(blow.what != "" for blow in launch_blows)
                yield lab, launch
            yield lab, chaos.finish()


def format_rows(lab: str, launch: Launch) -> Iterator[str]:
    """Yield the lines of the table: one per blow, or one for a launch without blows."""
    last_line = [line for line in launch.said.splitlines() if line.strip()][-1:] or ["nothing"]
    summary = " | ".join(launch.reasons or last_line)
    counts = ", ".join(f"{count} {name}" for name, count in launch.counts.items() if count)
    faults = "; ".join(launch.faults) or "nothing"
    struck = [(blow.what or f"{blow.kind}: too late", blow.at) for blow in launch.blows]
    for part, moment in struck or [("undisturbed", "")]:
        yield (
            f"{lab:5}  {part:26} {moment:36} {launch.status!s:>4} {launch.seconds:5.0f}  "
            f"{summary[:90]:90}  {counts:32}  {faults}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--blows", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lab", action="append", choices=["netns", "ssh"])
    parser.add_argument("--only", action="append", help="kinds of blows", default=[])
    parser.add_argument("--verbose", action="store_true", help="print the output of nagi")
    options = parser.parse_args()
    wrong = struck = 0
    print(
        f"{'lab':5}  {'struck':26} {'when':36} exit  secs  {'what nagi said':90}  "
        f"{'then there were':32}  what was wrong"
    )
    for lab, launch in series(
        options.lab or ["netns", "ssh"], options.blows, options.seed, options.only
    ):
        struck += sum(blow.what != "" for blow in launch.blows)
        wrong += bool(launch.faults)
        for row in format_rows(lab, launch):
            print(row, flush=True)
        if options.verbose or launch.faults:
            print(launch.said, flush=True)
    print(f"{struck} blows, {wrong} launches with something wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
