# SPDX-License-Identifier: Apache-2.0
"""The playbook for real hosts, as engineers run it, against throw-away hosts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from nagi_contracts.paths import executable

PLAYBOOK = f"{sys.prefix}/bin/ansible-playbook"


@dataclass
class Outcome:
    """How a run of the playbook ended."""

    status: int
    said: str

    @property
    def changed(self) -> dict[str, int]:
        """Host -> how many tasks changed it."""
        return {
            host: int(count)
            for host, count in re.findall(r"^(\w+) +: ok=\d+ +changed=(\d+)", self.said, re.M)
        }


class Provision:
    """Runs the playbook against hosts, each with its variables. `machines`: host -> machine."""

    def __init__(self, machines, directory: Path) -> None:
        self._machines = machines
        self._directory = directory

    def __call__(self, *options: str, machines=None, **wanted: dict[str, object]) -> Outcome:
        write_inventory(self._directory / "inventory.yml", machines or self._machines, wanted)
        return playbook(self._directory, "provision", *options)

    def start(self, **wanted: dict[str, object]) -> subprocess.Popen[str]:
        """Begins a call, in a session of its own."""
        write_inventory(self._directory / "inventory.yml", self._machines, wanted)
        return start_playbook(self._directory, "provision", start_new_session=True)

    def back(self, *options: str) -> Outcome:
        """Has the hosts of the last call put back."""
        return playbook(self._directory, "deprovision", *options)


def write_inventory(path: Path, machines, wanted: dict[str, dict[str, object]]) -> None:
    """An inventory of the machines that `wanted` names, each with the variables it has there."""
    variables = {
        "ansible_python_interpreter": "/usr/bin/python3",
        "nagi_link_source": str(executable("nagi-link")),
        "nagi_switch_source": str(executable("nagi-switch")),
        "nagi_clock": "none",
    }
    cells = {name: {**machines[name].variables, **wanted[name]} for name in wanted}
    inventory = {"all": {"vars": variables, "children": {"cells": {"hosts": cells}}}}
    path.write_text(yaml.safe_dump(inventory))


def start_playbook(directory: Path, name: str, *options: str, **how: Any) -> subprocess.Popen[str]:
    """Begins a playbook of the collection with the inventory in `directory`."""
    return subprocess.Popen(
        [PLAYBOOK, "-i", directory / "inventory.yml", f"nagi.testbed.{name}", *options],
        cwd=directory,
        env={
            **os.environ,
            "ANSIBLE_HOME": str(directory / "home"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "1000",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **how,
    )


def playbook(directory: Path, name: str, *options: str) -> Outcome:
    """A playbook of the collection with the inventory in `directory`, to its end."""
    with start_playbook(directory, name, *options) as running:
        said = running.communicate()[0]
    return Outcome(running.returncode, said)


def list_inventory(inventory: Path) -> dict[str, Any]:
    """An inventory as Ansible reads it."""
    shown = subprocess.run(
        [f"{sys.prefix}/bin/ansible-inventory", "--list", "-i", inventory],
        capture_output=True,
        text=True,
        check=True,
    )
    listed: dict[str, Any] = json.loads(shown.stdout)
    return listed
