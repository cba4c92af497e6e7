# SPDX-License-Identifier: Apache-2.0
"""Ansible callback: writes the outcome of each host for the program that started the playbook."""

from __future__ import annotations

DOCUMENTATION = r"""
name: outcomes
type: notification
short_description: write the outcome of each host to a file
description:
  - Writes one line of JSON per event. Events are tasks that changed a host, that left files to the
    operator, or that failed, hosts that could not be reached, and the end of the playbook.
    `nagi lab` makes its summary of these lines.
  - If a play is interrupted, the lines that were already written stay in the file.
author: the nagi authors
requirements:
  - to be named in C(callbacks_enabled)
options:
  path:
    description: path of the file; without it no events are written
    type: str
    default: ""
    env:
      - name: NAGI_OUTCOMES
"""

import json

from ansible.plugins.callback import CallbackBase

# The keys of a task's result that give the reason of a failure.
_REASONS = ("msg", "stderr", "module_stderr", "stdout", "rc")


class CallbackModule(CallbackBase):
    """A callback that appends one line of JSON per event to the file `path` (an option).

    A line is {"event": ..., "host": ..., "task": ..., ...}. Without `path`, nothing is written.
    """

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "nagi.testbed.outcomes"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_play_start(self, play):
        self._ends_for_all = bool(play.any_errors_fatal)

    def v2_runner_on_ok(self, result):
        if result._result.get("changed"):
            self._write("changed", result)
        if result._result.get("kept"):  # files that nagi.testbed.owned leaves to the operator
            self._write("kept", result, kept=result._result["kept"])

    def v2_runner_on_failed(self, result, ignore_errors=False):
        if ignore_errors:
            return
        outcome = result._result
        if outcome.get("kept"):
            self._write("kept", result, kept=outcome["kept"])
        # The result of a loop has the reasons in the items that failed.
        items = [item for item in outcome.get("results", ()) if item.get("failed")]
        reasons = [
            {key: item[key] for key in _REASONS if item.get(key) not in (None, "")}
            for item in items or [outcome]
        ]
        self._write_failure("failed", result, reasons, action=result._task.action)

    def v2_runner_on_unreachable(self, result):
        reasons = [{"msg": result._result.get("msg", "")}]
        self._write_failure("unreachable", result, reasons)

    def v2_playbook_on_stats(self, stats):
        hosts = sorted(stats.processed)
        failed = {*stats.failures, *stats.dark}
        # On these hosts a task failed, and a rescue block handled the failure.
        rescued = [host for host in hosts if host in stats.rescued and host not in failed]
        self._append({"event": "ended", "hosts": hosts, "rescued": rescued})

    def _write_failure(self, event, result, reasons, **details):
        self._write(event, result, **details, reasons=reasons, ends_for_all=self._ends_for_all)

    def _write(self, event, result, **details):
        task = result._task.get_name()
        self._append({"event": event, "host": result._host.get_name(), "task": task, **details})

    def _append(self, line):
        path = self.get_option("path")
        if path:
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(line, default=str) + "\n")
