# SPDX-License-Identifier: Apache-2.0
"""The module nagi.testbed.owned, run by Ansible on this machine or on a throw-away host."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from provisioning import make_environment
from throw_away import Host

ANSIBLE = f"{sys.prefix}/bin/ansible"


class Module:
    """The module nagi.testbed.owned.

    Args:
        scratch: A directory for Ansible's files.
        directory: The directory of the manifest.
        machine: The host on which the module runs; None for this machine.
    """

    def __init__(self, scratch: Path, directory: Path, machine: Host | None = None) -> None:
        self.directory = directory
        self._scratch = scratch
        self._target = ["localhost", "-c", "local"]
        if machine is not None:
            inventory = scratch / "host.yml"
            inventory.write_text(yaml.safe_dump({"all": {"hosts": {"host": machine.variables}}}))
            self._target = ["host", "-i", str(inventory)]

    def start(self, *options: str, **arguments: Any) -> subprocess.Popen[str]:
        """Start the module."""
        given = {"directory": str(self.directory), "start": False, **arguments}
        return subprocess.Popen(
            [
                *(ANSIBLE, *self._target, *options, "-m", "nagi.testbed.owned"),
                *("-e", "ansible_python_interpreter=/usr/bin/python3", "-a", json.dumps(given)),
            ],
            cwd=self._scratch,
            env=make_environment(self._scratch) | {"ANSIBLE_INVENTORY_UNPARSED_WARNING": "False"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __call__(self, *options: str, fails: bool = False, **arguments: Any) -> dict[str, Any]:
        """Run the module, and return its result."""
        called = self.start(*options, **arguments)
        out = called.communicate()[0]
        assert (called.returncode != 0) == fails, out
        result: dict[str, Any] = json.JSONDecoder().raw_decode(out, out.index("=> {") + 3)[0]
        return result

    def things(self) -> list[tuple[str, str]]:
        whole = json.loads((self.directory / "manifest.json").read_text())
        return [(thing["kind"], thing["name"]) for thing in whole["things"]]
