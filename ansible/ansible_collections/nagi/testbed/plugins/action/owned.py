# SPDX-License-Identifier: Apache-2.0
"""Brings the controller's files to a host for the module nagi.testbed.owned, where they differ."""

from __future__ import annotations

import hashlib
import os

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    TRANSFERS_FILES = True

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        arguments["files"] = [
            self._brought(dict(each), number, task_vars) if each.get("source") else each
            for number, each in enumerate(arguments.get("files") or [])
        ]
        directory = arguments.get("directory", "/var/lib/nagi-testbed")
        arguments["debs"] = [
            self._deb(each, directory, number, task_vars)
            for number, each in enumerate(arguments.get("debs") or [])
        ]
        try:
            return self._execute_module(
                module_name="nagi.testbed.owned", module_args=arguments, task_vars=task_vars
            )
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)

    def _deb(self, path: str, directory: str, number: int, task_vars) -> dict:
        """A package, of whose file there is a copy beside the manifest if it is installed."""
        name = os.path.basename(path).partition("_")[0]
        kept = {"path": f"{directory}/debs/{name}.deb", "source": path}
        brought = self._brought(kept, number, task_vars)
        return {
            "name": name,
            **{key: brought[key] for key in ("source", "sha256") if key in brought},
        }

    def _brought(self, file: dict, number: int, task_vars) -> dict:
        """The file with its checksum, and if the host has another one there, where it is now."""
        here = file.pop("source")
        try:
            with open(here, "rb") as opened:
                content = opened.read()
        except OSError as error:
            raise AnsibleActionFail(f"{here}: {error.strerror}") from None
        file["sha256"] = hashlib.sha256(content).hexdigest()
        there = self._execute_remote_stat(
            file["path"], all_vars=task_vars, follow=False, checksum=True
        )
        differs = there.get("checksum") != hashlib.sha1(content).hexdigest()
        if differs and not self._task.check_mode:
            if not self._connection._shell.tmpdir:
                self._make_tmp_path()
            name = f"{number}-{os.path.basename(file['path'])}"
            file["source"] = self._transfer_file(
                here, self._connection._shell.join_path(self._connection._shell.tmpdir, name)
            )
            self._fixup_perms2((self._connection._shell.tmpdir, file["source"]))
        return file
