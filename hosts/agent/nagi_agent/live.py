# SPDX-License-Identifier: Apache-2.0
"""Keep a topology up for interactive use, and test whether links connect the right nodes."""

from __future__ import annotations

import os
import re
import subprocess
import time
from contextlib import ExitStack
from typing import NoReturn, Optional

from nagi_agent import host
from nagi_agent.backends import Running, find_driver, find_node, make_settings
from nagi_agent.contracts import PathReading, RunPlan
from nagi_agent.job import Job
from nagi_agent.schemes import Schemes
from nagi_agent.settings import Settings

_CHECK_INTERVAL_S = 1.0
_PINGS = 10
_PING_INTERVAL_S = 0.02
_PING_TIMEOUT_S = 3
_IP_HEADER, _IPV6_HEADER, _ICMP_HEADER = 20, 40, 8


def stay_up(job: Job, plan: RunPlan) -> NoReturn:
    """Set up this node as in a run of `plan`, without flows, until a signal raises Stopped.

    Print "up" to stdout when the node is set up.

    Args:
        job: this host's settings.
        plan: the run.

    Raises:
        RuntimeError: The node cannot be set up, or its emulator or switch has ended.
    """
    with ExitStack() as cleanup:
        running: Optional[Running] = None
        driver = find_driver(plan, job)
        if driver is not None:
            os.makedirs(job.spool, exist_ok=True)
            planned_node = find_node(plan, job)
            if planned_node is not None:
                cleanup.enter_context(make_settings(driver, planned_node, job))
            running = driver.start(job, plan, time.time(), job.spool, live=True)
            cleanup.callback(running.kill)
            running.begin()
            cleanup.callback(running.finish)
        else:
            schemes = cleanup.enter_context(Schemes(plan, job.node, None))
            node = schemes.rename_in_routes(plan.node(job.node))
            cleanup.enter_context(Settings(node, job.interfaces, job.settings_journal))
        print("up", flush=True)
        while True:
            time.sleep(_CHECK_INTERVAL_S if running is None else running.check_interval_s)
            if running is not None:
                running.check()


def measure_paths(job: Job, plan: RunPlan) -> list[PathReading]:
    """Ping the neighbour on each link of this node, with small packets and with full-size packets.

    On a shared medium, ping the next station in the plan's order. Return one reading per link, then
    one per shared medium, each in the plan's order.

    Args:
        job: this host's settings.
        plan: the run whose topology is up.
    """
    links = [(link.name, [(end.node, end.address) for end in link.ends]) for link in plan.links] + [
        (medium["name"], [(station["node"], station["address"]) for station in medium["stations"]])
        for medium in plan.media
    ]
    readings = []
    for name, ends in links:
        nodes = [node for node, _ in ends]
        if job.node not in nodes:
            continue
        neighbour, prefix = ends[(nodes.index(job.node) + 1) % len(ends)]
        address = prefix.split("/")[0]
        interface = job.interfaces[name]
        mtu = host.read_mtu(interface)
        headers = (_IPV6_HEADER if ":" in address else _IP_HEADER) + _ICMP_HEADER
        small, large = (_ping(interface, address, size) for size in (56, mtu - headers))
        readings.append(
            PathReading(
                link=name,
                from_node=job.node,
                to_node=neighbour,
                sent=_PINGS,
                answered=len(small),
                rtt_min_ms=min(small, default=None),
                rtt_median_ms=sorted(small)[len(small) // 2] if small else None,
                mtu=mtu,
                full_size_answered=len(large),
            )
        )
    return readings


def _ping(interface: str, address: str, size: int) -> list[float]:
    """Return the round-trip times, in ms, of the pings that were answered.

    Args:
        interface: the interface that sends.
        address: the address to ping.
        size: payload, in bytes.
    """
    command = f"ping -n -I {interface} -M do -s {size} -c {_PINGS} -i {_PING_INTERVAL_S} -W 1"
    result = subprocess.run(
        [*command.split(), "-w", str(_PING_TIMEOUT_S), address],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return [float(value) for value in re.findall(r"time=([\d.]+) ms", result.stdout)]
