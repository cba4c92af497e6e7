# SPDX-License-Identifier: Apache-2.0
"""Ansible callback: what became of each host, for the program that started the playbook."""

from __future__ import annotations

DOCUMENTATION = r"""
name: outcomes
type: notification
short_description: write what became of each host to a file
description:
  - Writes a line of JSON for each task that changed a host, left things to its operator or failed,
    for each host that could not be reached, and for the end of the playbook. `nagi lab` makes its
    summary of them.
  - A play that is broken off leaves the lines that it has written.
author: the nagi authors
requirements:
  - to be named in C(callbacks_enabled)
options:
  path:
    description: the file; without it nothing is written
    type: str
    default: ""
    env:
      - name: NAGI_OUTCOMES
"""

import json

from ansible.plugins.callback import CallbackBase

# Of a task's result, what says why it failed.
_REASONS = ("msg", "stderr", "module_stderr", "stdout", "rc")


class CallbackModule(CallbackBase):
    """A line an event: {"event": ..., "host": ..., "task": ..., ...}."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "nagi.testbed.outcomes"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_play_start(self, play):
        self._ends_for_all = bool(play.any_errors_fatal)

    def v2_runner_on_ok(self, result):
        if result._result.get("changed"):
            self._write("changed", result)
        if result._result.get("kept"):  # what nagi.testbed.owned leaves to the operator
            self._write("kept", result, kept=result._result["kept"])

    def v2_runner_on_failed(self, result, ignore_errors=False):
        if ignore_errors:
            return
        found = result._result
        # Of a loop, the items that failed say why.
        items = [each for each in found.get("results", ()) if each.get("failed")]
        reasons = [
            {key: each[key] for key in _REASONS if each.get(key) not in (None, "")}
            for each in items or [found]
        ]
        self._write("failed", result, action=result._task.action, **self._failure(reasons))

    def v2_runner_on_unreachable(self, result):
        said = [{"msg": result._result.get("msg", "")}]
        self._write("unreachable", result, **self._failure(said))

    def v2_playbook_on_stats(self, stats):
        hosts = sorted(stats.processed)
        wrong = {*stats.failures, *stats.dark}
        # Where a task failed, but another mended it.
        rescued = [host for host in hosts if host in stats.rescued and host not in wrong]
        self._append({"event": "ended", "hosts": hosts, "rescued": rescued})

    def _failure(self, reasons):
        return {"reasons": reasons, "ends_for_all": self._ends_for_all}

    def _write(self, event, result, **more):
        task = result._task.get_name()
        self._append({"event": event, "host": result._host.get_name(), "task": task, **more})

    def _append(self, line):
        path = self.get_option("path")
        if path:
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(line, default=str) + "\n")
