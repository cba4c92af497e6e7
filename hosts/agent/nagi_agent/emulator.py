# SPDX-License-Identifier: Apache-2.0
"""Run the emulator of one run: nagi-link, configured from the run's plan.

Backends add their keys to the configuration, and start programs that run together with nagi-link
(companions). In place of nagi-link, a backend can start a program of its own. That program takes
the same configuration, starts nagi-link itself, and leaves the same files.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, Optional

from nagi_agent import host
from nagi_agent.backends import Companion, load_parts
from nagi_agent.contracts import Json, LinkPlan, ProgramFacts, RunPlan
from nagi_agent.daemons import START_TIMEOUT_S, Daemon, name_control_socket
from nagi_agent.job import Job

NAME = "nagi-link"
LINK_TIMEOUT_S = 0.4  # added per link, whose two interfaces are set up and restored
LIVE_CHECK_INTERVAL_S = 1.0
ACCOUNT = "links.json"  # the counters of each link
PACKETS = "packets.bin"
TRANSMISSIONS = "transmissions.bin"
DROPS = "drops.pcapng"


def drop_nulls(value: Any) -> Any:
    """Return a JSON value without the keys whose value is null, at any depth."""
    if isinstance(value, dict):
        return {key: drop_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [drop_nulls(item) for item in value]
    return value


def record_transmissions(configuration: Json) -> None:
    """Set the key of `configuration` that makes nagi-link record transmissions.

    nagi-link records each transmission on links with ARQ, on radio links and on shared media.
    """
    configuration["transmissions"] = TRANSMISSIONS


def read_program_facts(job: Job, program: Optional[str]) -> Json:
    """Return the facts about a program that only some links need, as JSON of ProgramFacts.

    `program` is its path, or None if the batch has no path of it. Version and error are null if the
    program is not installed. Return {} on hosts that are not the emulator.
    """
    if not job.is_emulator:
        return {}
    version = error = None
    if program is not None and shutil.which(program) is not None:
        version, error = host.try_to_read_version(program)
    return ProgramFacts(version=version, error=error).to_json()


def find_missing_program(
    links: Iterable[LinkPlan],
    predicates: tuple[str, str],
    path: Optional[str],
    name: str,
    cure: str,
) -> Optional[str]:
    """Return a message with a cure if links need a program that is not installed, else None.

    Args:
        links: the links that need the program; a link may occur several times.
        predicates: predicate of the message for one link and for several, such as
            ("is a radio", "are radios").
        path: path of the program, or None if the batch has no path of it.
        name: name of the program.
        cure: how to install the program.
    """
    names = list(dict.fromkeys(link.name for link in links))
    if not names or (path is not None and shutil.which(path) is not None):
        return None
    subject = f"link {names[0]}" if len(names) == 1 else f"links {', '.join(names)}"
    predicate = predicates[0] if len(names) == 1 else predicates[1]
    return f"{subject} {predicate}, and there is no {path or name}; {cure}"


def build_configuration(plan: RunPlan, job: Job, epoch_s: float) -> Json:
    """Return nagi-link's configuration for a run.

    Args:
        plan: the run.
        job: the settings of the emulator's host.
        epoch_s: the instant 0 of the emulator's clock, in seconds since the Unix epoch.
    """
    configuration: Json = {
        "schema_version": 1,
        "seed": plan.seed,
        "epoch_realtime_ns": int(epoch_s * 1e9),
        "virtual_time": job.virtual,
        "account": ACCOUNT,
        "packets": PACKETS,
        "drops": DROPS,
        "control_socket": name_control_socket(NAME),
        "links": [_configure_link(link, job.ends[link.name]) for link in plan.links],
    }
    # This condition must agree with LinkPlan.records_transmissions of nagi_contracts.
    if any(
        direction.get("arq") is not None
        for link in plan.links
        for direction in (link.forward, link.backward)
    ):
        record_transmissions(configuration)
    for part in load_parts().values():
        part.configure(configuration, plan, job)
    return configuration


def _configure_link(link: LinkPlan, ends: tuple[str, ...]) -> Json:
    return {
        "name": link.name,
        "id": link.id,
        "a": ends[0],
        "b": ends[1],
        "forward": drop_nulls(link.forward),
        "backward": drop_nulls(link.backward),
    }


class Emulator(Daemon):
    """A running nagi-link, or a program that runs in its place and has the same control socket.

    Args:
        job: the settings of the emulator's host.
        plan: the run.
        epoch_s: see build_configuration().
        directory: working directory, and directory of the files.
        live: whether the topology is set up for interactive use. Then the agent calls check()
            regularly. In a run, finish() is enough to detect that nagi-link has ended too early.
        name: name of the program that is started, and of its configuration and log.
        program: path of the program; None for the job's nagi-link.
        timeout_s: time limit to start, in seconds; half of it is the limit to end. None for the
            limit of nagi-link.
        environment: variables to add to the agent's environment.

    Raises:
        RuntimeError: A companion cannot be started.
    """

    def __init__(
        self,
        job: Job,
        plan: RunPlan,
        epoch_s: float,
        directory: str,
        *,
        live: bool = False,
        name: str = NAME,
        program: Optional[str] = None,
        timeout_s: Optional[float] = None,
        environment: Optional[dict[str, str]] = None,
    ) -> None:
        self.check_interval_s = LIVE_CHECK_INTERVAL_S if live else math.inf
        if timeout_s is None:
            timeout_s = START_TIMEOUT_S + LINK_TIMEOUT_S * len(job.ends)
        configuration = build_configuration(plan, job, epoch_s)
        self._companions: list[Companion] = []
        with ExitStack() as undo:
            for part in load_parts().values():
                for companion in part.start_companions(configuration, plan, job, directory):
                    undo.callback(companion.kill)
                    self._companions.append(companion)
            super().__init__(
                name,
                program or job.nagi_link,
                configuration,
                directory,
                socket=name_control_socket(NAME),
                timeout_s=timeout_s,
                environment=environment,
                pass_fds=tuple(
                    descriptor
                    for companion in self._companions
                    for descriptor in companion.descriptors
                ),
                user=job.daemon_user,
            )
            undo.pop_all()
        for companion in self._companions:
            companion.close_descriptors()

    def check(self) -> None:
        # nagi-link ends when a companion ends. The companion's message has the cause, so companions
        # are checked first.
        for companion in self._companions:
            companion.check()
        super().check()

    def finish(self) -> None:
        super().finish()
        for companion in self._companions:
            companion.finish()

    def kill(self) -> None:
        super().kill()
        for companion in self._companions:
            companion.kill()
