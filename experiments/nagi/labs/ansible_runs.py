# SPDX-License-Identifier: Apache-2.0
"""Running playbooks, and telling in plain words what went wrong on which host."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ansible_runner
from nagi_contracts import paths

from nagi.labs.ansible_variables import to_yaml
from nagi.labs.complaints import describe_failure, shorten_to_end
from nagi.labs.errors import Failure, Interrupted, LabError, Results

# With a configuration file Ansible leaves that of the user alone.
CONFIGURATION = Path(__file__).with_name("ansible.cfg")
_TIMEOUT_S = 10.0


Window = tuple[float, float]  # seconds since the epoch, by the controller's clock


class Playbooks:
    """Runs playbooks against one inventory. Ansible's own records go to `directory`."""

    def __init__(
        self,
        directory: Path,
        inventory: dict[str, Any],
        interrupted: Callable[[], bool],
        beside: Path | None = None,
    ) -> None:
        """`beside`: another inventory, of the user's; `inventory` adds to it."""
        self._directory = directory
        self._interrupted = interrupted
        (directory / "tmp").mkdir(parents=True, exist_ok=True)
        added = directory / "inventory.yml"
        added.write_text(to_yaml(inventory))
        self._home = directory / "home"
        kill_workers(_home_mark(self._home))  # of a process that was killed
        self._inventories = [str(path.absolute()) for path in (beside, added) if path is not None]
        self.windows: dict[tuple[str, str], Window] = {}  # task and host -> when it was carried out

    def run(
        self,
        playbook: str,
        *,
        to_the_end: bool = False,
        stop_at_failure: bool = False,
        limit: str | None = None,
        **variables: object,
    ) -> Results:
        """Runs a playbook; `to_the_end`, even if the user asks to stop; `stop_at_failure`, without
        waiting for the other hosts when a task has failed on one; `limit`, on these hosts alone.

        Raises LabError naming host, task and complaint, or Interrupted.
        """
        results: Results = {}
        failures: list[Failure] = []

        def note(event: dict[str, Any]) -> bool:
            kind, data = event.get("event"), event.get("event_data", {})
            if kind == "runner_on_ok":
                results.setdefault(data["task"], {})[data["host"]] = data.get("res", {})
                self.windows[data["task"], data["host"]] = _task_window(data)
            elif kind in ("runner_on_failed", "runner_on_unreachable") and not data.get(
                "ignore_errors"
            ):
                failures.append(
                    Failure(
                        data["host"],
                        data.get("task", ""),
                        describe_failure(data.get("res", {})),
                        unreachable=kind == "runner_on_unreachable",
                    )
                )
            return True

        given = self._directory / "variables.yml"
        given.write_text(to_yaml(variables))
        with kill_workers_on_exit(_home_mark(self._home)):
            done = ansible_runner.run(
                private_data_dir=str(self._directory),
                project_dir=str(paths.COLLECTION),
                playbook=str(Path("playbooks/runs") / playbook),
                inventory=self._inventories,
                cmdline=shlex.join(["--extra-vars", f"@{given.absolute()}"]),
                limit=limit,
                envvars={
                    "ANSIBLE_CONFIG": str(CONFIGURATION),
                    "ANSIBLE_HOME": str(self._home),
                    # Modules that are killed, with the lab they run in, leave their files.
                    "TMPDIR": str(self._directory / "tmp"),
                    "ANSIBLE_DEPRECATION_WARNINGS": "False",
                    "ANSIBLE_NOCOLOR": "True",
                    # Ansible refuses to work in a locale that is not UTF-8.
                    "LC_ALL": "C.UTF-8",
                    "PATH": ":".join(
                        [
                            f"{sys.prefix}/bin",
                            os.environ.get("PATH", "/usr/bin:/bin"),
                            "/usr/sbin:/sbin",
                        ]
                    ),
                },
                quiet=True,
                rotate_artifacts=10,
                event_handler=note,
                cancel_callback=lambda: (
                    (bool(failures) and stop_at_failure) or (self._interrupted() and not to_the_end)
                ),
                settings={"idle_timeout": 0, "suppress_env_files": True},
            )
        if self._interrupted() and not to_the_end:
            raise Interrupted
        if failures:
            said = "; ".join(str(failure) for failure in failures[:3])
            raise LabError(said, failures, results)
        if done.status != "successful":
            said = done.stdout.read() if done.stdout else ""
            how = done.status if done.rc is not None else "ansible-playbook was killed"
            raise LabError(f"playbook {playbook}: {how}: {shorten_to_end(said)}")
        return results


def _home_mark(home: Path) -> str:
    return f"ANSIBLE_HOME={home}"


@contextmanager
def kill_workers_on_exit(mark: str) -> Iterator[None]:
    """When a playbook was broken off, Ansible's workers, which are in sessions of their own, wait
    for ever to tell a result to a parent that is gone. `mark`: see `end_workers`."""
    try:
        yield
    finally:
        kill_workers(mark)


def kill_workers(mark: str) -> None:
    """Ends what runs with `mark` (NAME=VALUE) in its environment, but for connections that are kept
    open: those have written over their environment."""
    marked = mark.encode()
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        left = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):  # it has just ended, or is another user's
                if entry.name.isdigit() and marked in (entry / "environ").read_bytes().split(b"\0"):
                    left.append(int(entry.name))
                    os.kill(left[-1], signal.SIGKILL)
        if not left:
            return
        time.sleep(0.02)


def _task_window(data: dict[str, Any]) -> Window:
    """When a task was carried out, from an event of ansible-runner (UTC without saying so)."""
    began, ended = (
        datetime.fromisoformat(data[key]).replace(tzinfo=UTC).timestamp()
        for key in ("start", "end")
    )
    return began, ended
