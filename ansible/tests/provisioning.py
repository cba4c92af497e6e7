# SPDX-License-Identifier: Apache-2.0
"""Runs of the collection's playbooks, as engineers run them, with throw-away hosts."""

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
    """The exit status and the output of a playbook."""

    status: int
    output: str

    @property
    def changed(self) -> dict[str, int]:
        """The number of tasks that changed each host."""
        return {
            host: int(count)
            for host, count in re.findall(r"^(\w+) +: ok=\d+ +changed=(\d+)", self.output, re.M)
        }


class Provision:
    """A function that provisions hosts, given as keywords with their variables.

    Args:
        machines: Host -> throw-away host.
        directory: The directory for the inventory and Ansible's files.
    """

    def __init__(self, machines, directory: Path) -> None:
        self._machines = machines
        self._directory = directory

    def __call__(self, *options: str, machines=None, **hosts: dict[str, object]) -> Outcome:
        write_inventory(self._directory / "inventory.yml", machines or self._machines, hosts)
        return run_playbook(self._directory, "provision", *options)

    def start(self, **hosts: dict[str, object]) -> subprocess.Popen[str]:
        """Start to provision hosts, in a new session."""
        write_inventory(self._directory / "inventory.yml", self._machines, hosts)
        return start_playbook(self._directory, "provision", start_new_session=True)

    def deprovision(self, *options: str) -> Outcome:
        """Deprovision the hosts of the last call."""
        return run_playbook(self._directory, "deprovision", *options)


def write_inventory(path: Path, machines, hosts: dict[str, dict[str, object]]) -> None:
    """Write an inventory of hosts, each with its variables and those to reach its machine."""
    variables = {
        "ansible_python_interpreter": "/usr/bin/python3",
        "nagi_link_source": str(executable("nagi-link")),
        "nagi_switch_source": str(executable("nagi-switch")),
        "nagi_clock": "none",
    }
    cells = {name: {**machines[name].variables, **hosts[name]} for name in hosts}
    inventory = {"all": {"vars": variables, "children": {"cells": {"hosts": cells}}}}
    path.write_text(yaml.safe_dump(inventory))


def make_environment(directory: Path) -> dict[str, str]:
    """Return the environment for a program of Ansible whose files are in `directory`."""
    return {
        **os.environ,
        "ANSIBLE_HOME": str(directory / "home"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "LC_ALL": "C.UTF-8",
    }


def start_playbook(
    directory: Path, name: str, *options: str, **popen_options: Any
) -> subprocess.Popen[str]:
    """Start a playbook of the collection with the inventory in `directory`."""
    return subprocess.Popen(
        [PLAYBOOK, "-i", directory / "inventory.yml", f"nagi.testbed.{name}", *options],
        cwd=directory,
        env=make_environment(directory) | {"COLUMNS": "1000"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **popen_options,
    )


def run_playbook(directory: Path, name: str, *options: str) -> Outcome:
    """Run a playbook of the collection with the inventory in `directory`."""
    with start_playbook(directory, name, *options) as process:
        output = process.communicate()[0]
    return Outcome(process.returncode, output)


def list_inventory(inventory: Path) -> dict[str, Any]:
    """Return an inventory as Ansible reads it."""
    done = subprocess.run(
        [f"{sys.prefix}/bin/ansible-inventory", "--list", "-i", inventory],
        capture_output=True,
        text=True,
        check=True,
    )
    groups: dict[str, Any] = json.loads(done.stdout)
    return groups
