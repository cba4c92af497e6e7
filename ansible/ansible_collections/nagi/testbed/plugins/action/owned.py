# SPDX-License-Identifier: Apache-2.0
"""Action plugin of nagi.testbed.owned: copies changed files from the controller to a host."""

from __future__ import annotations

import hashlib
import os

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """The part of nagi.testbed.owned that runs on the controller, and copies files to hosts."""

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        arguments["files"] = [
            self._transfer(dict(file), number, task_vars) if file.get("source") else file
            for number, file in enumerate(arguments.get("files") or [])
        ]
        directory = arguments.get("directory", "/var/lib/nagi-testbed")
        arguments["debs"] = [
            self._transfer_deb(path, directory, number, task_vars)
            for number, path in enumerate(arguments.get("debs") or [])
        ]
        try:
            return self._execute_module(
                module_name="nagi.testbed.owned", module_args=arguments, task_vars=task_vars
            )
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)

    def _transfer_deb(self, path: str, directory: str, number: int, task_vars) -> dict:
        """Copy a package to the host unless the host already has a copy with equal content.

        Args:
            path: The package's file on the controller.
            directory: The directory of the manifest on the host. The module keeps copies there.
            number: A number that makes the temporary path unique.
            task_vars: Ansible's variables.

        Returns:
            The settings for the module: `name` and `sha256`, and `source`, the temporary path, if
            the file was copied.
        """
        name = os.path.basename(path).partition("_")[0]
        copy_settings = {"path": f"{directory}/debs/{name}.deb", "source": path}
        file = self._transfer(copy_settings, number, task_vars)
        return {
            "name": name,
            **{key: file[key] for key in ("source", "sha256") if key in file},
        }

    def _transfer(self, file: dict, number: int, task_vars) -> dict:
        """Copy a file to a temporary path on the host if it differs from the file to replace.

        Args:
            file: Settings of the file: `source` is a path on the controller, `path` the path of the
                file to replace on the host.
            number: A number that makes the temporary path unique.
            task_vars: Ansible's variables.

        Returns:
            `file` with `sha256`. `source` is the temporary path on the host if the file was copied,
            and is missing otherwise. In check mode, nothing is copied.
        """
        local_path = file.pop("source")
        try:
            with open(local_path, "rb") as local_file:
                content = local_file.read()
        except OSError as error:
            raise AnsibleActionFail(f"{local_path}: {error.strerror}") from None
        file["sha256"] = hashlib.sha256(content).hexdigest()
        remote = self._execute_remote_stat(
            file["path"], all_vars=task_vars, follow=False, checksum=True
        )
        differs = remote.get("checksum") != hashlib.sha1(content).hexdigest()
        if differs and not self._task.check_mode:
            if not self._connection._shell.tmpdir:
                self._make_tmp_path()
            name = f"{number}-{os.path.basename(file['path'])}"
            file["source"] = self._transfer_file(
                local_path, self._connection._shell.join_path(self._connection._shell.tmpdir, name)
            )
            self._fixup_perms2((self._connection._shell.tmpdir, file["source"]))
        return file
