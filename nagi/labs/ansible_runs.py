# SPDX-License-Identifier: Apache-2.0
"""Runs playbooks, and reports their failures by host, task and message."""

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

from nagi_contracts import paths

from nagi.labs.ansible_variables import to_yaml
from nagi.labs.complaints import describe_failure, shorten_to_end
from nagi.labs.errors import Failure, Interrupted, LabError, Results

# Ansible does not read the user's configuration file if this one is given.
CONFIGURATION = Path(__file__).with_name("ansible.cfg")
_TIMEOUT_S = 10.0


Window = tuple[float, float]  # begin and end of a task, in seconds since the epoch


class Playbooks:
    """Runs playbooks with one inventory. Ansible's own records go to `directory`.

    `windows` says when each task was executed on each host, by the controller's clock.
    """

    def __init__(
        self,
        directory: Path,
        inventory: dict[str, Any],
        interrupted: Callable[[], bool],
        user_inventory: Path | None = None,
    ) -> None:
        """Write the inventory.

        Args:
            directory: the directory for Ansible's files
            inventory: the inventory, as Ansible reads it from YAML
            interrupted: returns whether the user asked to stop
            user_inventory: another inventory, to which `inventory` adds variables
        """
        self._directory = directory
        self._interrupted = interrupted
        (directory / "tmp").mkdir(parents=True, exist_ok=True)
        added = directory / "inventory.yml"
        added.write_text(to_yaml(inventory))
        self._home = directory / "home"
        kill_workers(_make_home_mark(self._home))  # workers of an earlier process that was killed
        self._inventories = [
            str(path.absolute()) for path in (user_inventory, added) if path is not None
        ]
        self.windows: dict[tuple[str, str], Window] = {}  # by task and host

    def run(
        self,
        playbook: str,
        *,
        uninterruptible: bool = False,
        stop_at_failure: bool = False,
        limit: str | None = None,
        **variables: object,
    ) -> Results:
        """Run a playbook, and return the results of its tasks.

        Args:
            playbook: the name of a playbook in playbooks/runs
            uninterruptible: whether it continues when the user asks to stop
            stop_at_failure: whether it ends when a task has failed on one host, without the others
            limit: the hosts on which it runs; by default, all
            **variables: variables for the playbook

        Raises:
            LabError: a task failed; the message has host, task and error
            Interrupted: the user asked to stop
        """
        results: Results = {}
        failures: list[Failure] = []

        def handle_event(event: dict[str, Any]) -> bool:
            kind, data = event.get("event"), event.get("event_data", {})
            if kind == "runner_on_ok":
                results.setdefault(data["task"], {})[data["host"]] = data.get("res", {})
                self.windows[data["task"], data["host"]] = _read_task_window(data)
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

        import ansible_runner  # takes long to import, and most commands run no playbook

        variables_file = self._directory / "variables.yml"
        variables_file.write_text(to_yaml(variables))
        with kill_workers_on_exit(_make_home_mark(self._home)):
            runner = ansible_runner.run(
                private_data_dir=str(self._directory),
                project_dir=str(paths.COLLECTION),
                playbook=str(Path("playbooks/runs") / playbook),
                inventory=self._inventories,
                cmdline=shlex.join(["--extra-vars", f"@{variables_file.absolute()}"]),
                limit=limit,
                envvars={
                    "ANSIBLE_CONFIG": str(CONFIGURATION),
                    "ANSIBLE_HOME": str(self._home),
                    # Modules that are killed together with their lab leave temporary files.
                    "TMPDIR": str(self._directory / "tmp"),
                    "ANSIBLE_DEPRECATION_WARNINGS": "False",
                    "ANSIBLE_NOCOLOR": "True",
                    # Ansible requires a UTF-8 locale.
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
                event_handler=handle_event,
                cancel_callback=lambda: (
                    (bool(failures) and stop_at_failure)
                    or (self._interrupted() and not uninterruptible)
                ),
                settings={"idle_timeout": 0, "suppress_env_files": True},
            )
        if self._interrupted() and not uninterruptible:
            raise Interrupted
        if failures:
            message = "; ".join(str(failure) for failure in failures[:3])
            raise LabError(message, failures, results)
        if runner.status != "successful":
            message = runner.stdout.read() if runner.stdout else ""
            status = runner.status if runner.rc is not None else "ansible-playbook was killed"
            raise LabError(f"playbook {playbook}: {status}: {shorten_to_end(message)}")
        return results


def _make_home_mark(home: Path) -> str:
    """Return the mark of kill_workers() for Ansible's processes."""
    return f"ANSIBLE_HOME={home}"


@contextmanager
def kill_workers_on_exit(mark: str) -> Iterator[None]:
    """Kill the workers of a playbook when the block ends.

    After an interruption, Ansible's workers would wait forever to send results to a parent that has
    ended; they are in sessions of their own. `mark` is that of kill_workers().
    """
    try:
        yield
    finally:
        kill_workers(mark)


def kill_workers(mark: str) -> None:
    """Kill all processes with `mark` (NAME=VALUE) in their environment.

    Persistent connections of ssh survive: they overwrite their environment.
    """
    marked = mark.encode()
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        pids = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):  # the process has just ended, or belongs to another user
                if entry.name.isdigit() and marked in (entry / "environ").read_bytes().split(b"\0"):
                    pids.append(int(entry.name))
                    os.kill(pids[-1], signal.SIGKILL)
        if not pids:
            return
        time.sleep(0.02)


def _read_task_window(data: dict[str, Any]) -> Window:
    """Return when a task was executed, from an event of ansible-runner, whose times are UTC."""
    begin, end = (
        datetime.fromisoformat(data[key]).replace(tzinfo=UTC).timestamp()
        for key in ("start", "end")
    )
    return begin, end
