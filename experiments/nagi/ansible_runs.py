# SPDX-License-Identifier: Apache-2.0
"""Running playbooks, and telling in plain words what went wrong on which host."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ansible_runner
import yaml

from nagi import paths


class LabError(Exception):
    """A lab could not do its part. Nothing is left behind; finished runs are kept."""


class Interrupted(Exception):
    """The user asked to stop."""


@dataclass(frozen=True)
class Failure:
    """A task that failed on a host."""

    host: str
    task: str
    message: str

    def __str__(self) -> str:
        return f"{self.host}: {self.task}: {self.message}"


class Playbooks:
    """Runs playbooks against one inventory. Ansible's own records go to `directory`."""

    def __init__(
        self, directory: Path, inventory: dict[str, Any], interrupted: Callable[[], bool]
    ) -> None:
        self._directory = directory
        self._interrupted = interrupted
        directory.mkdir(parents=True, exist_ok=True)
        self._inventory = directory / "inventory.yml"
        self._inventory.write_text(yaml.safe_dump(inventory, sort_keys=False))

    def run(self, playbook: str, **variables: object) -> dict[str, dict[str, dict[str, Any]]]:
        """Runs a playbook. Returns the results of its tasks, by task and host.

        Raises LabError naming host, task and complaint, or Interrupted.
        """
        results: dict[str, dict[str, dict[str, Any]]] = {}
        failures: list[Failure] = []

        def note(event: dict[str, Any]) -> bool:
            kind, data = event.get("event"), event.get("event_data", {})
            if kind == "runner_on_ok":
                results.setdefault(data["task"], {})[data["host"]] = data.get("res", {})
            elif kind in ("runner_on_failed", "runner_on_unreachable") and not data.get(
                "ignore_errors"
            ):
                failures.append(
                    Failure(data["host"], data.get("task", ""), _complaint(data.get("res", {})))
                )
            return True

        done = ansible_runner.run(
            private_data_dir=str(self._directory),
            project_dir=str(paths.ANSIBLE),
            playbook=str(Path("playbooks") / playbook),
            inventory=str(self._inventory),
            extravars=variables,
            envvars={
                "ANSIBLE_CONFIG": str(paths.ANSIBLE / "ansible.cfg"),
                "ANSIBLE_HOME": str(self._directory / "home"),
                "ANSIBLE_DEPRECATION_WARNINGS": "False",
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
            cancel_callback=self._interrupted,
            settings={"idle_timeout": 0, "suppress_env_files": True},
        )
        if self._interrupted():
            raise Interrupted
        if failures:
            raise LabError("; ".join(str(failure) for failure in failures[:3]))
        if done.status != "successful":
            said = done.stdout.read() if done.stdout else ""
            raise LabError(f"playbook {playbook}: {done.status}: {_tail(said)}")
        return results


def _complaint(result: dict[str, Any]) -> str:
    for key in ("stderr", "msg", "module_stderr", "stdout"):
        text = result.get(key)
        if text:
            return _tail(text if isinstance(text, str) else json.dumps(text))
    return "failed without a word"


def _tail(text: str, length: int = 300) -> str:
    return " ".join(text.split())[-length:]
