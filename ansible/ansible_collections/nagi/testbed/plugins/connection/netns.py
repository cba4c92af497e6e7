# SPDX-License-Identifier: Apache-2.0
"""Ansible connection to a host of the netns lab, which is a network namespace."""

from __future__ import annotations

DOCUMENTATION = r"""
name: netns
short_description: run on a host of nagi's netns lab
description:
  - The hosts of the netns lab are network namespaces inside the mount and PID namespaces of one
    process, the keeper. The hosts share the file system with the controller, so a file is
    transferred by a local copy.
    When the keeper ends, everything that runs in its namespaces ends with it.
author: the nagi authors
options:
  keeper_pid:
    description: process id of the keeper
    type: int
    required: true
    vars:
      - name: nagi_keeper_pid
  namespace:
    description: the host's network namespace; by default that of the keeper
    type: str
    default: ""
    vars:
      - name: nagi_namespace
"""

import os
import shutil
import subprocess

from ansible.errors import AnsibleConnectionFailure, AnsibleFileNotFound
from ansible.plugins.connection import ConnectionBase
from ansible.utils.display import Display

display = Display()


class Connection(ConnectionBase):
    """A connection that enters the namespaces of keeper and host: nsenter(1), ip-netns(8)."""

    transport = "netns"
    has_pipelining = True

    def _connect(self) -> Connection:
        self._connected = True
        return self

    def exec_command(
        self, cmd: str, in_data: bytes | None = None, sudoable: bool = True
    ) -> tuple[int, bytes, bytes]:
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        pid = self.get_option("keeper_pid")
        if not os.path.exists(f"/proc/{pid}/ns/mnt"):
            raise AnsibleConnectionFailure(f"the keeper of the lab (process {pid}) has ended")
        command = ["nsenter", "--target", str(pid), "--mount", "--pid", "--wdns=/", "--"]
        if namespace := self.get_option("namespace"):
            command += ["ip", "netns", "exec", namespace]
        command += ["/bin/sh", "-c", cmd]
        display.vvv(f"EXEC {command}", host=self._play_context.remote_addr)
        result = subprocess.run(command, input=in_data or b"", capture_output=True, check=False)
        return result.returncode, result.stdout, result.stderr

    def put_file(self, in_path: str, out_path: str) -> None:
        super().put_file(in_path, out_path)
        self._copy(in_path, out_path)

    def fetch_file(self, in_path: str, out_path: str) -> None:
        super().fetch_file(in_path, out_path)
        self._copy(in_path, out_path)

    @staticmethod
    def _copy(origin: str, target: str) -> None:
        if not os.path.exists(origin):
            raise AnsibleFileNotFound(f"no such file: {origin}")
        shutil.copyfile(origin, target)

    def close(self) -> None:
        self._connected = False
