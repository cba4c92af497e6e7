# SPDX-License-Identifier: Apache-2.0
"""Action plugin of nagi.testbed.lease: says which run of ansible-playbook reserves a host."""

from __future__ import annotations

import getpass
import os
import socket
from pathlib import Path

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """The part of nagi.testbed.lease that runs on the controller."""

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        arguments = {
            **self._task.args,
            "owner": f"{getpass.getuser()}@{socket.gethostname()}",
            "token": _make_token(os.getppid()),  # Ansible executes tasks in child processes
        }
        result = self._execute_lease(arguments, task_vars)
        token = (result.get("holder") or {}).get("token", "")
        if result.get("failed") and _is_over(token):
            result = self._execute_lease({**arguments, "replaced_token": token}, task_vars)
        return result

    def _execute_lease(self, arguments, task_vars):
        return self._execute_module(
            module_name="nagi.testbed.lease", module_args=arguments, task_vars=task_vars
        )


def _make_token(process: int) -> str:
    """Return a text that identifies a process of this machine for all time; "" if it has ended."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    start_time = status.rpartition(")")[2].split()[19]  # field 22 of proc(5)
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{_identify_machine()} {boot_id} {process} {start_time}"


def _identify_machine() -> str:
    """Return a text that identifies this machine, and the PID namespace of this process."""
    machine_id = Path("/etc/machine-id")
    number = machine_id.read_text(encoding="ascii").strip() if machine_id.exists() else ""
    return f"{socket.gethostname()}/{number}/{os.readlink('/proc/self/ns/pid')}"


def _is_over(token: str) -> bool:
    """Return whether a token identifies a process of this machine that has ended."""
    words = token.split(" ")
    if len(words) != 4 or words[0] != _identify_machine():
        return False
    try:
        os.kill(int(words[2]), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # another user's process, whose entry in /proc may be hidden
        return False
    return _make_token(int(words[2])) != token
