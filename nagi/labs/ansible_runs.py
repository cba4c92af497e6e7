# SPDX-License-Identifier: Apache-2.0
"""Runs playbooks, and reports host, task and message of each failure."""

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

# With this configuration file, Ansible does not read the user's configuration file.
CONFIGURATION = Path(__file__).with_name("ansible.cfg")
_TIMEOUT_S = 10.0


Window = tuple[float, float]  # begin and end of a task on a host, in seconds since the epoch


class Playbooks:
    """Runs playbooks with one inventory.

    Attributes:
        windows: (Task, host) -> begin and end of the last execution, by this machine's clock.
    """

    def __init__(
        self,
        directory: Path,
        inventory: dict[str, Any],
        interrupted: Callable[[], bool],
        user_inventory: Path | None = None,
    ) -> None:
        """Write the inventory, and end Ansible's processes of an earlier nagi with this directory.

        Args:
            directory: The directory for Ansible's files.
            inventory: The inventory, in the structure of Ansible's YAML inventories.
            interrupted: A function that returns whether the user asked to stop.
            user_inventory: The file of another inventory, to which `inventory` adds variables.
        """
        self._directory = directory
        self._interrupted = interrupted
        (directory / "tmp").mkdir(parents=True, exist_ok=True)
        inventory_file = directory / "inventory.yml"
        inventory_file.write_text(to_yaml(inventory))
        self._home = directory / "home"
        # An earlier nagi with this directory may have been killed while its workers ran.
        kill_workers(_make_home_mark(self._home))
        self._inventories = [
            str(path.absolute()) for path in (user_inventory, inventory_file) if path is not None
        ]
        self.windows: dict[tuple[str, str], Window] = {}

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
            playbook: The name of a playbook in playbooks/runs.
            uninterruptible: Whether the playbook continues when the user asks to stop.
            stop_at_failure: Whether the playbook ends for all hosts when a task failed on one host.
            limit: The hosts on which the playbook runs, separated by commas; by default, all.
            **variables: Variables for the playbook.

        Returns:
            Task -> host -> Ansible's result, for tasks that succeeded. Of tasks with one name, the
            last one counts.

        Raises:
            LabError: A task failed; the message has hosts, tasks and errors.
            Interrupted: The user asked to stop.
        """
        results: Results = {}
        failures: list[Failure] = []

        def handle_event(event: dict[str, Any]) -> bool:
            """Store the result or the failure of a task. Return True to keep the event."""
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
                    # Modules that are killed leave temporary files, which are removed with the lab.
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
    """Return the variable NAME=VALUE by which kill_workers() finds Ansible's processes."""
    return f"ANSIBLE_HOME={home}"


@contextmanager
def kill_workers_on_exit(mark: str) -> Iterator[None]:
    """Kill the processes with `mark` in their environment when the block ends (kill_workers()).

    After an interruption, Ansible's workers would wait forever to send results to a parent that has
    ended. Signals to nagi's process group do not reach workers, because each has its own session.
    """
    try:
        yield
    finally:
        kill_workers(mark)


def kill_workers(mark: str) -> None:
    """Kill all processes with the variable `mark` (NAME=VALUE) in their environment.

    Return when no such process is left, or after _TIMEOUT_S. Persistent connections of ssh survive,
    because ssh overwrites its environment.
    """
    variable = mark.encode()
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        pids = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):  # the process has just ended, or belongs to another user
                if not entry.name.isdigit():
                    continue
                if variable in (entry / "environ").read_bytes().split(b"\0"):
                    pids.append(int(entry.name))
                    os.kill(pids[-1], signal.SIGKILL)
        if not pids:
            return
        time.sleep(0.02)


def _read_task_window(data: dict[str, Any]) -> Window:
    """Return begin and end of a task from an event of ansible-runner, whose times are in UTC."""
    begin, end = (
        datetime.fromisoformat(data[key]).replace(tzinfo=UTC).timestamp()
        for key in ("start", "end")
    )
    return begin, end
