# SPDX-License-Identifier: Apache-2.0
"""One host's part of one run: its phases, each at its instant, and everything put back after.

Agents do not talk to each other. They share the plan and the instant the run begins, so a run needs
nothing of the network under test, and nothing of the controller while it goes on.
"""

from __future__ import annotations

import functools
import heapq
import json
import os
import shutil
import signal
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Callable, Optional, Union

from nagi_agent import cpu_port, emulator, flows, host, switches
from nagi_agent.board_links import BoardLinks
from nagi_agent.capture import Capture
from nagi_agent.contracts import (
    CaptureCount,
    ClientEnd,
    FlowPlan,
    FlowRecord,
    NodePlan,
    NodeRecord,
    Noise,
    RunPlan,
)
from nagi_agent.job import Job
from nagi_agent.journal import write_json
from nagi_agent.noise import NoiseMeter
from nagi_agent.schemes import Schemes
from nagi_agent.settings import Settings, tcp_sysctls
from nagi_agent.tcp_info import SockDiag
from nagi_agent.watch import Watch

LATEST_BEGIN_S = 0.15  # a run is not begun later than this


class Stopped(Exception):
    """The agent was told to stop."""


class NodeRun:
    """One node's part of one run. `meter`: measures noise; None: there is none, in virtual time."""

    def __init__(self, job: Job, plan: RunPlan, begins: float, meter: Optional[NoiseMeter]) -> None:
        self._job = job
        self._meter = meter
        self._plan = plan
        self._begins = begins
        self._directory = os.path.join(job.spool, plan.run_id)
        self._late_s = 0.0
        self._captures: list[CaptureCount] = []
        self._flows: list[FlowRecord] = []
        self._ended: list[ClientEnd] = []
        self._notices: list[str] = []
        self._offloads: dict[str, list[str]] = {}
        self._memory_pressures: Optional[int] = None
        self._sysctls: dict[str, str] = {}
        self._noise: Optional[Noise] = None
        self._in_time = True

    def execute(self) -> bool:
        """Runs all phases and leaves node.json. Returns whether all went well."""
        shutil.rmtree(self._directory, ignore_errors=True)  # of a try that was broken off
        os.makedirs(self._directory)
        error = None
        try:
            with ExitStack() as cleanup:
                # Before the run begins, as it may take a moment.
                schemes = cleanup.enter_context(self._schemes(cleanup))
                if self._now() > LATEST_BEGIN_S:
                    self._in_time = False
                    raise RuntimeError(
                        f"the agent was {self._now():.1f} s late to begin; the host is too busy"
                    )
                self._sleep_until(0.0)
                host.require_up(self._job.all_interfaces)
                switch = switches.edge_node(self._plan, self._job.node)
                if self._job.is_emulator:
                    self._emulate(cleanup)
                elif switch is not None:
                    self._forward(switch, cleanup)
                else:
                    self._take_part(schemes, cleanup)
        except Stopped:
            raise
        except Exception as failure:  # whatever it is, the run's record must say so
            error = str(failure) or repr(failure)
        if self._noise is None:  # it failed before its traffic was over
            self._end_noise()
        record = NodeRecord(
            run_id=self._plan.run_id,
            node=self._job.node,
            status="failed" if error else "ok",
            error=error,
            began_realtime_s=self._begins,
            in_time=self._in_time,
            late_s=round(self._late_s, 6),
            facts=self._job.facts,
            sysctls=self._sysctls,
            offloads=self._offloads,
            memory_pressures=self._memory_pressures,
            captures=self._captures,
            flows=self._flows,
            ended=self._ended,
            processors_busy=self._processors_busy(),
            noise=self._noise,
            notices=self._notices,
        )
        write_json(self._path("node.json"), record.to_json())
        return error is None

    def _now(self) -> float:
        """Seconds since the run began."""
        return time.time() - self._begins

    def _sleep_until(self, at: float) -> None:
        while (remaining := at - self._now()) > 0:
            time.sleep(remaining)

    def _phase(self, at: float) -> None:
        """Waits for the beginning of a phase; notes by how much it was missed."""
        self._late_s = max(self._late_s, self._now() - at)
        self._sleep_until(at)

    def _begin_noise(self) -> None:
        if self._meter is not None:
            self._meter.begin()

    def _end_noise(self) -> None:
        if self._meter is not None:
            self._noise = self._meter.end()

    def _processors_busy(self) -> Optional[float]:
        """The share of all processors' time that was not idle, where the emulator is."""
        if self._noise is None or not self._job.is_emulator:
            return None
        taken = (self._noise.busy, self._noise.nice, self._noise.stolen)
        return round(sum(share for share in taken if share is not None), 4)

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    def _schemes(self, cleanup: ExitStack) -> Schemes:
        job = self._job
        schemes = Schemes(self._plan, job.node, self._directory, loaded=job.virtual)
        cleanup.callback(lambda: self._notices.extend(schemes.complaints))
        return schemes

    def _emulate(self, cleanup: ExitStack) -> None:
        timeline = self._plan.timeline
        job = self._job
        running: Union[emulator.Emulator, BoardLinks]
        if self._plan.on_boards():
            running = BoardLinks(job.fpga_images, self._plan, self._begins, self._directory)
        else:
            running = emulator.Emulator(
                job.nagi_link,
                job.nagi_sdr,
                self._plan,
                job.ends,
                self._begins,
                self._directory,
                nagi_fpga=job.nagi_fpga,
                virtual=job.virtual,
                macs=job.macs,
                user=job.daemon_user,
            )
        cleanup.callback(running.kill)
        running.wait_until_ready()
        self._phase(timeline.traffic_s)
        self._begin_noise()
        self._phase(timeline.traffic_end_s)
        self._end_noise()
        self._phase(timeline.capture_end_s)
        running.stop()

    def _forward(self, node: NodePlan, cleanup: ExitStack) -> None:
        """As a switch: the kernel forwards nothing, its program does."""
        job, timeline = self._job, self._plan.timeline
        journal = None if job.virtual else job.settings_journal
        bare = replace(node, routes=[])
        cleanup.enter_context(Settings(bare, job.interfaces, journal, cpu_port.UNDO))
        self._sysctls = node.sysctls
        running = switches.started(job, self._plan, node, self._directory, self._begins)
        cleanup.callback(running.kill)
        running.begin()
        self._offloads = {
            name: host.harmful_offloads(name) for name in sorted(job.interfaces.values())
        }
        self._phase(timeline.capture_s)
        self._look_until(timeline.traffic_s, running)
        self._begin_noise()
        self._look_until(timeline.traffic_end_s, running)
        self._end_noise()
        self._look_until(timeline.capture_end_s, running)
        running.finish()

    def _look_until(self, at: float, running: switches.RunningSwitch) -> None:
        """Waits for the beginning of a phase, and sees whether a switch still runs."""
        while self._now() + running.looking_s < at:
            self._sleep_until(self._now() + running.looking_s)
            running.look()
        self._phase(at)

    def _take_part(self, schemes: Schemes, cleanup: ExitStack) -> None:
        job, timeline = self._job, self._plan.timeline
        node = schemes.in_routes(self._plan.node(job.node))
        mine = [
            schemes.in_flow(flow)
            for flow in self._plan.flows
            if job.node in (flow.sender, flow.receiver)
        ]
        # A guest is thrown away.
        journal = None if job.virtual else job.settings_journal
        cleanup.enter_context(Settings(node, job.interfaces, journal))
        self._sysctls = tcp_sysctls() | node.sysctls
        self._offloads = {
            name: host.harmful_offloads(name) for name in sorted(job.interfaces.values())
        }
        diag = SockDiag()
        cleanup.callback(diag.close)
        pressures = host.memory_pressures()

        self._phase(timeline.capture_s)
        captures = self._start_captures(cleanup)
        self._phase(timeline.serve_s)
        servers = [
            self._application(flow, "server", cleanup)
            for flow in mine
            if flow.listener == job.node and flows.has_server(flow)
        ]
        watches = [self._watch(flow, cleanup) for flow in mine if self._is_watched(flow)]
        for server in servers:
            server.wait_until_listening(diag)
        self._begin_noise()  # a moment before the traffic, which it must not hold up
        self._phase(timeline.traffic_s)
        connects = [flow for flow in mine if flow.listener != job.node]
        clients = self._traffic(connects, servers, watches, diag, cleanup)
        self._sleep_until(timeline.traffic_end_s)
        for server in servers:
            server.require_running()
        schemes.require_running()
        for application in clients + servers:
            if not application.waits_for_packets:
                application.kill()
        self._end_noise()
        self._memory_pressures = host.memory_pressures() - pressures
        ended = [client.record() for client in clients]
        self._ended = [record for record in ended if record is not None]
        reports = [watch.report() for watch in watches if watch.sends]
        self._flows = [
            replace(report, congestion_control=schemes.planned(report.congestion_control))
            for report in reports
        ]

        self._phase(timeline.capture_end_s)
        for application in clients + servers:
            application.kill()
            application.require_result()
        for capture in captures:
            self._captures.append(capture.stop())
        left = flows.reset_leftovers(mine, job.node, diag)
        if left:
            self._notices.append(f"{left} connections outlived the run and could not be reset")

    def _log(self, flow: FlowPlan, role: flows.Role) -> str:
        name = flow.traffic if flow.traffic in ("bulk", "command") else "application"
        return self._path(f"{name}-{role}.{flow.name}.log")

    def _application(
        self, flow: FlowPlan, role: flows.Role, cleanup: ExitStack
    ) -> flows.Application:
        job = self._job
        application = flows.Application(
            flow,
            role,
            self._log(flow, role),
            job.user,
            self._plan.seed,
            job.files,
            virtual=job.virtual,
        )
        cleanup.callback(application.kill)
        return application

    def _is_watched(self, flow: FlowPlan) -> bool:
        """Return whether samples are taken here: where data come from, which with commands may be
        both ends, and where the receiver's control matters."""
        has_two = flow.command is not None or flow.receiver_control is not None
        return flow.sender == self._job.node or has_two

    def _watch(self, flow: FlowPlan, cleanup: ExitStack) -> Watch:
        role: flows.Role = "server" if flow.listener == self._job.node else "client"
        watch = Watch(flow, self._job.node, self._log(flow, role))
        cleanup.callback(watch.close)
        return watch

    def _start_captures(self, cleanup: ExitStack) -> list[Capture]:
        captures = []
        for wanted in self._plan.captures:
            if wanted.node == self._job.node:
                capture = Capture(
                    self._job.interfaces[wanted.link],
                    self._path(wanted.file),
                    wanted.snap_bytes,
                    self._job.user,
                    virtual=self._job.virtual,
                )
                cleanup.callback(capture.kill)
                captures.append(capture)
        for capture in captures:
            capture.wait_until_running()
        return captures

    def _traffic(
        self,
        connects: list[FlowPlan],
        servers: list[flows.Application],
        watches: list[Watch],
        diag: SockDiag,
        cleanup: ExitStack,
    ) -> list[flows.Application]:
        """Starts the clients of `connects`, each at its flow's start, and looks after applications
        and connections until the traffic ends. Returns the clients."""
        clients: list[flows.Application] = []
        if not connects and not watches:
            return clients
        interval = self._plan.tcp_info_interval_s
        timeline = self._plan.timeline
        lines = cleanup.enter_context(
            open(self._path("tcp_info.jsonl"), "w", encoding="utf-8")  # noqa: SIM115
        )

        def begin(flow: FlowPlan) -> None:
            clients.append(self._application(flow, "client", cleanup))

        def sample() -> None:
            now = self._now()
            for application in clients + servers:
                application.check(now)
            # Once for all: in virtual time each reading of the clock, which waiting for an answer
            # takes, is time in which hosts do not respond.
            connections = diag.connections() if watches else []
            for watch in watches:
                for found in watch.sample(connections, now):
                    lines.write(json.dumps(found.to_json()) + "\n")
            missed = int((self._now() - at) // interval)
            following = at + (missed + 1) * interval
            # The last sample comes just before the end.
            last = timeline.traffic_end_s - interval / 10
            if at < last:
                heapq.heappush(schedule, (min(following, last), len(connects), sample))

        schedule: list[tuple[float, int, Callable[[], None]]] = [
            (flow.start_s, index, functools.partial(begin, flow))
            for index, flow in enumerate(connects)
        ]
        heapq.heapify(schedule)
        first = min([flow.start_s for flow in connects], default=timeline.traffic_s)
        heapq.heappush(schedule, (first + interval, len(connects), sample))
        while schedule:
            at, _, action = heapq.heappop(schedule)
            self._sleep_until(at)
            action()
        return clients


def stop_on_signals() -> None:
    """From now on SIGTERM, SIGINT and SIGHUP raise Stopped, so that everything is put back."""

    def stop(number: int, frame: object) -> None:
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)  # putting back must not be interrupted
        raise Stopped

    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN:  # nohup(1)
            signal.signal(each, stop)
