# SPDX-License-Identifier: Apache-2.0
"""Execute one run on one host: each phase at its time, then restore the host's settings.

Agents do not communicate with each other, because all have the plan and the time at which the run
begins. So neither traffic on the network under test nor the controller coordinates them.
"""

from __future__ import annotations

import functools
import heapq
import json
import math
import os
import shutil
import signal
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Callable, Optional

from nagi_agent import flows, host
from nagi_agent.backends import HostPart, Running, find_driver, find_node, make_settings
from nagi_agent.capture import Capture
from nagi_agent.contracts import (
    CaptureCount,
    ClientEnd,
    FlowPlan,
    FlowRecord,
    NodeRecord,
    Noise,
    RunPlan,
)
from nagi_agent.job import Job
from nagi_agent.journal import write_json
from nagi_agent.noise import NoiseMeter
from nagi_agent.schemes import Schemes
from nagi_agent.settings import Settings, read_tcp_sysctls
from nagi_agent.tcp_info import SockDiag
from nagi_agent.watch import Watch

LATEST_BEGIN_S = 0.15  # if an agent is later than this, the run fails on its node


class Stopped(Exception):
    """A signal has asked the agent to stop."""


class NodeRun:
    """The execution of one run on one node.

    Args:
        job: this host's settings.
        plan: the run.
        epoch_s: when the run begins, in seconds since the Unix epoch.
        meter: the meter of the host's noise; None in virtual time.
    """

    def __init__(
        self, job: Job, plan: RunPlan, epoch_s: float, meter: Optional[NoiseMeter]
    ) -> None:
        self._job = job
        self._meter = meter
        self._plan = plan
        self._epoch_s = epoch_s
        self._directory = os.path.join(job.spool, plan.run_id)
        self._max_late_s = 0.0
        self._captures: list[CaptureCount] = []
        self._flows: list[FlowRecord] = []
        self._client_end_records: list[ClientEnd] = []
        self._notices: list[str] = []
        self._offloads: dict[str, list[str]] = {}
        self._memory_pressures: Optional[int] = None
        self._sysctls: dict[str, str] = {}
        self._noise: Optional[Noise] = None
        self._began_in_time = True

    def execute(self) -> bool:
        """Run all phases, and write the record node.json.

        The directory of an earlier attempt is deleted first. An error is written to the record and
        not raised.

        Returns:
            Whether the run succeeded on this node.

        Raises:
            Stopped: A signal asked the agent to stop. No record is written.
        """
        shutil.rmtree(self._directory, ignore_errors=True)  # of an interrupted attempt
        os.makedirs(self._directory)
        error = None
        try:
            with ExitStack() as cleanup:
                # The agent registers schemes before the run begins, because this takes time.
                schemes = cleanup.enter_context(self._make_schemes(cleanup))
                if self._read_run_time() > LATEST_BEGIN_S:
                    self._began_in_time = False
                    late_s = self._read_run_time()
                    raise RuntimeError(
                        f"the agent was {late_s:.1f} s late to begin the run; the host is too busy"
                    )
                self._sleep_until(0.0)
                host.require_up(self._job.all_interfaces)
                driver = find_driver(self._plan, self._job)
                if driver is not None:
                    self._run_driver(driver, cleanup)
                else:
                    self._run_traffic(schemes, cleanup)
        except Stopped:
            raise
        except Exception as failure:  # the run's record must report any error
            is_bug = isinstance(failure, (LookupError, AttributeError, TypeError))
            error = repr(failure) if is_bug or not str(failure) else str(failure)
        if self._noise is None:  # the run failed before the traffic ended
            self._end_noise()
        record = NodeRecord(
            run_id=self._plan.run_id,
            node=self._job.node,
            status="failed" if error else "ok",
            error=error,
            began_realtime_s=self._epoch_s,
            in_time=self._began_in_time,
            late_s=round(self._max_late_s, 6),
            facts=self._job.facts,
            sysctls=self._sysctls,
            offloads=self._offloads,
            memory_pressures=self._memory_pressures,
            captures=self._captures,
            flows=self._flows,
            ended=self._client_end_records,
            processors_busy=self._compute_busy_share(),
            noise=self._noise,
            notices=self._notices,
        )
        write_json(self._make_path("node.json"), record.to_json())
        return error is None

    def _read_run_time(self) -> float:
        """Return the time since the run began, in seconds."""
        return time.time() - self._epoch_s

    def _sleep_until(self, run_time_s: float) -> None:
        while (remaining := run_time_s - self._read_run_time()) > 0:
            time.sleep(remaining)

    def _wait_for_phase(self, run_time_s: float) -> None:
        """Wait until a phase begins. If it has already begun, note by how much this agent is late.

        Args:
            run_time_s: when the phase begins, in seconds since the run began.
        """
        self._max_late_s = max(self._max_late_s, self._read_run_time() - run_time_s)
        self._sleep_until(run_time_s)

    def _begin_noise(self) -> None:
        if self._meter is not None:
            self._meter.start_interval()

    def _end_noise(self) -> None:
        if self._meter is not None:
            self._noise = self._meter.end_interval()

    def _compute_busy_share(self) -> Optional[float]:
        """Return the share (0 to 1) of processor time that was busy, nice or stolen.

        Return None without noise, and on hosts that are not the emulator.
        """
        if self._noise is None or not self._job.is_emulator:
            return None
        shares = (self._noise.busy, self._noise.nice, self._noise.stolen)
        return round(sum(share for share in shares if share is not None), 4)

    def _make_path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    def _make_schemes(self, cleanup: ExitStack) -> Schemes:
        job = self._job
        schemes = Schemes(self._plan, job.node, self._directory, are_modules=job.virtual)
        cleanup.callback(lambda: self._notices.extend(schemes.errors))
        return schemes

    def _run_driver(self, driver: HostPart, cleanup: ExitStack) -> None:
        """Run the phases of the emulator or of a switch, where a backend carries the packets."""
        job, timeline = self._job, self._plan.timeline
        node = find_node(self._plan, job)
        if node is not None:
            cleanup.enter_context(make_settings(driver, node, job))
            self._sysctls = node.sysctls
        running = driver.start(job, self._plan, self._epoch_s, self._directory)
        cleanup.callback(running.kill)
        running.begin()
        if node is not None:
            self._offloads = {
                name: host.list_harmful_offloads(name) for name in sorted(job.interfaces.values())
            }
            self._wait_for_phase(timeline.capture_s)
        self._check_until(timeline.traffic_s, running)
        self._begin_noise()
        self._check_until(timeline.traffic_end_s, running)
        self._end_noise()
        self._check_until(timeline.capture_end_s, running)
        running.finish()

    def _check_until(self, run_time_s: float, running: Running) -> None:
        """Wait until a phase begins, and meanwhile check the emulator or switch at intervals."""
        interval_s = running.check_interval_s
        while interval_s < math.inf and self._read_run_time() + interval_s < run_time_s:
            self._sleep_until(self._read_run_time() + interval_s)
            running.check()
        self._wait_for_phase(run_time_s)

    def _run_traffic(self, schemes: Schemes, cleanup: ExitStack) -> None:
        """Run the phases of a node that is a host or a router."""
        job, timeline = self._job, self._plan.timeline
        node = schemes.rename_in_routes(self._plan.node(job.node))
        own_flows = [
            schemes.rename_in_flow(flow)
            for flow in self._plan.flows
            if job.node in (flow.sender, flow.receiver)
        ]
        # Settings of a guest need not be restored, because the guest is used only once.
        journal = None if job.virtual else job.settings_journal
        cleanup.enter_context(Settings(node, job.interfaces, journal))
        self._sysctls = read_tcp_sysctls() | node.sysctls
        self._offloads = {
            name: host.list_harmful_offloads(name) for name in sorted(job.interfaces.values())
        }
        diag = SockDiag()
        cleanup.callback(diag.close)
        pressures_before = host.count_memory_pressures()

        self._wait_for_phase(timeline.capture_s)
        captures = self._start_captures(cleanup)
        self._wait_for_phase(timeline.serve_s)
        servers = [
            self._start_application(flow, "server", cleanup)
            for flow in own_flows
            if flow.listener == job.node and flows.has_server(flow)
        ]
        watches = [self._make_watch(flow, cleanup) for flow in own_flows if self._is_watched(flow)]
        for server in servers:
            server.wait_until_listening(diag)
        self._begin_noise()  # just before the traffic, which it must not delay
        self._wait_for_phase(timeline.traffic_s)
        client_flows = [flow for flow in own_flows if flow.listener != job.node]
        clients = self._run_clients(client_flows, servers, watches, diag, cleanup)
        self._sleep_until(timeline.traffic_end_s)
        for server in servers:
            server.require_running()
        schemes.require_running()
        for application in clients + servers:
            if not application.waits_for_packets:
                application.kill()
        self._end_noise()
        self._memory_pressures = host.count_memory_pressures() - pressures_before
        end_records = [client.make_end_record() for client in clients]
        self._client_end_records = [record for record in end_records if record is not None]
        records = [watch.make_record() for watch in watches if watch.sends]
        self._flows = [
            replace(record, congestion_control=schemes.get_planned_name(record.congestion_control))
            for record in records
        ]

        self._wait_for_phase(timeline.capture_end_s)
        for application in clients + servers:
            application.kill()
            application.require_result()
        for capture in captures:
            self._captures.append(capture.stop())
        open_connections = flows.reset_leftovers(own_flows, job.node, diag)
        if open_connections:
            self._notices.append(
                f"{open_connections} connections are open after the run and could not be reset"
            )

    def _make_log_path(self, flow: FlowPlan, role: flows.Role) -> str:
        name = flow.traffic if flow.traffic in ("bulk", "command") else "application"
        return self._make_path(f"{name}-{role}.{flow.name}.log")

    def _start_application(
        self, flow: FlowPlan, role: flows.Role, cleanup: ExitStack
    ) -> flows.Application:
        """Start an application of a flow. `cleanup` gets a callback that ends the application."""
        job = self._job
        application = flows.Application(
            flow,
            role,
            self._make_log_path(flow, role),
            job.user,
            self._plan.seed,
            job.files,
            virtual=job.virtual,
        )
        cleanup.callback(application.kill)
        return application

    def _is_watched(self, flow: FlowPlan) -> bool:
        """Return whether this node, the sender or receiver of a flow, watches its connections.

        The sender always does. The receiver does if it may send data (`traffic: command`), or if
        the plan sets the receiver's congestion control.
        """
        is_receiver_watched = flow.command is not None or flow.receiver_control is not None
        return flow.sender == self._job.node or is_receiver_watched

    def _make_watch(self, flow: FlowPlan, cleanup: ExitStack) -> Watch:
        role: flows.Role = "server" if flow.listener == self._job.node else "client"
        watch = Watch(flow, self._job.node, self._make_log_path(flow, role))
        cleanup.callback(watch.close)
        return watch

    def _start_captures(self, cleanup: ExitStack) -> list[Capture]:
        """Start the captures that the plan has for this node, and wait until all of them run."""
        captures = []
        for capture_plan in self._plan.captures:
            if capture_plan.node == self._job.node:
                capture = Capture(
                    self._job.interfaces[capture_plan.link],
                    self._make_path(capture_plan.file),
                    capture_plan.snap_bytes,
                    self._job.user,
                    virtual=self._job.virtual,
                )
                cleanup.callback(capture.kill)
                captures.append(capture)
        for capture in captures:
            capture.wait_until_running()
        return captures

    def _run_clients(
        self,
        client_flows: list[FlowPlan],
        servers: list[flows.Application],
        watches: list[Watch],
        diag: SockDiag,
        cleanup: ExitStack,
    ) -> list[flows.Application]:
        """Start clients, and check applications and sample connections until the traffic ends.

        The samples are written to tcp_info.jsonl.

        Args:
            client_flows: flows whose clients are on this node. A client is started when its flow
                starts.
            servers: the servers on this node.
            watches: the flows whose connections are sampled.
            diag: the kernel's socket monitor.
            cleanup: gets a callback that ends each client.

        Returns:
            The clients; [] without clients and watches.
        """
        clients: list[flows.Application] = []
        if not client_flows and not watches:
            return clients
        interval = self._plan.tcp_info_interval_s
        timeline = self._plan.timeline
        sample_file = cleanup.enter_context(
            open(self._make_path("tcp_info.jsonl"), "w", encoding="utf-8")  # noqa: SIM115
        )

        def start_client(flow: FlowPlan) -> None:
            clients.append(self._start_application(flow, "client", cleanup))

        def sample() -> None:
            """Check applications, sample each connection, and schedule the next call.

            Calls that are already late are left out.
            """
            now = self._read_run_time()
            for application in clients + servers:
                application.check(now)
            # One request reads the connections of all flows. While the agent waits for the kernel's
            # answer, it reads the clock. This takes virtual time, in which hosts do not respond.
            connections = diag.list_connections() if watches else []
            for watch in watches:
                for tcp_sample in watch.sample(connections, now):
                    sample_file.write(json.dumps(tcp_sample.to_json()) + "\n")
            missed_samples = int((self._read_run_time() - due_s) // interval)
            next_s = due_s + (missed_samples + 1) * interval
            # The last sample is taken just before the end of the traffic.
            last_s = timeline.traffic_end_s - interval / 10
            if due_s < last_s:
                heapq.heappush(schedule, (min(next_s, last_s), len(client_flows), sample))

        schedule: list[tuple[float, int, Callable[[], None]]] = [
            (flow.start_s, index, functools.partial(start_client, flow))
            for index, flow in enumerate(client_flows)
        ]
        heapq.heapify(schedule)
        first_s = min([flow.start_s for flow in client_flows], default=timeline.traffic_s)
        heapq.heappush(schedule, (first_s + interval, len(client_flows), sample))
        while schedule:
            due_s, _, action = heapq.heappop(schedule)
            self._sleep_until(due_s)
            action()
        return clients


def stop_on_signals() -> None:
    """Make SIGTERM, SIGINT and SIGHUP raise Stopped, so that all settings are restored."""

    def stop(number: int, frame: object) -> None:
        for stop_signal in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            # A second signal must not interrupt the restoration.
            signal.signal(stop_signal, signal.SIG_IGN)
        raise Stopped

    for stop_signal in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # If nohup(1) started the agent, SIGHUP is ignored and must stay ignored.
        if stop_signal != signal.SIGHUP or signal.getsignal(stop_signal) != signal.SIG_IGN:
            signal.signal(stop_signal, stop)
