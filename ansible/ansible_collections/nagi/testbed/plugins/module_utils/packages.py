# SPDX-License-Identifier: Apache-2.0
"""Packages of the distribution and of nagi. Standard library only, for Python 3.9."""

from __future__ import annotations

import os
import re
import time

from ansible_collections.nagi.testbed.plugins.module_utils.manifest import (
    compute_checksum,
    write_atomically,
)
from ansible_collections.nagi.testbed.plugins.module_utils.system import ManagedResource, read_file

_APT = (
    "--quiet",
    "--yes",
    "--no-install-recommends",
    "-o=DPkg::Lock::Timeout=300",
    "-o=Dpkg::Use-Pty=0",
)


class Package(ManagedResource):
    """A package, given by a name or pattern that apt-get accepts.

    The manifest records all packages that apt-get installs and removes together with the package.
    """

    kind = "package"

    def read_state(self) -> dict | None:
        status, out, _ = self.system.try_run(
            "dpkg-query", "--show", "--showformat", r"${db:Status-Status}\n", self.name
        )
        return {} if status == 0 and "installed" in out.splitlines() else None

    def needs_change(self, state: dict | None) -> bool:
        return state is None

    def describe_change(self) -> dict:
        return self._simulate_install(self.name)

    def _simulate_install(self, package: str) -> dict:
        self._update()
        output = self.system.run("apt-get", *_APT, "--simulate", "install", package)
        return {"installed": _find_names("Inst", output), "removed": _find_names("Remv", output)}

    def _update(self) -> None:
        """Update apt's lists, unless nagi has updated them within the last hour.

        Errors are ignored here, because the installation reports them.
        """
        stamp = os.path.join(self.system.manifest.directory, "updated")
        if not os.path.exists(stamp) or time.time() - os.stat(stamp).st_mtime > 3600:
            self.system.try_run("apt-get", *_APT, "update")
            write_atomically(stamp, b"", 0o600)

    def apply(self, state: dict | None) -> None:
        self.system.run("apt-get", *_APT, "install", self.name)

    def restore(self, original: dict | None, changes: list, other_entries: list) -> str:
        """Remove the packages that nagi installed, and install the packages that nagi removed.

        A package stays if another resource needs it, or if packages depend on it that nagi did not
        install.
        """
        used_by_others = {
            name
            for entry in other_entries
            if entry["kind"] in (Package.kind, Deb.kind)
            for change in entry["ours"]
            for name in change["installed"]
        }
        added_names = {name for change in changes for name in change["installed"]} - used_by_others
        removed_names = {name for change in changes for name in change["removed"]}
        present_names = sorted(name for name in added_names if self._is_installed(name))
        missing_names = sorted(name for name in removed_names if not self._is_installed(name))
        # apt-get would also remove the packages that depend on a removed package.
        needed_names = [name for name in present_names if not self._is_removable(name, added_names)]
        removals = [f"{name}-" for name in present_names if name not in needed_names]
        if removals or missing_names:
            self.system.run("apt-get", *_APT, "--purge", "install", *missing_names, *removals)
        if needed_names:
            return f"packages {' '.join(needed_names)}: other packages depend on them now"
        return ""

    def _is_installed(self, name: str) -> bool:
        return Package(self.system, name).read_state() is not None

    def _is_removable(self, name: str, added_names: set) -> bool:
        """Return whether apt-get would remove, with a package, only packages of `added_names`."""
        output = self.system.run("apt-get", *_APT, "--simulate", "remove", name)
        return set(_find_names("Remv", output)) <= added_names


class Deb(Package):
    """A package of nagi, which the controller sent as a file.

    A copy of the installed file is kept next to the manifest. The checksum of the copy shows
    whether the controller has another build.
    """

    kind = "deb"

    def _path(self) -> str:
        return os.path.join(self.system.manifest.directory, "debs", f"{self.name}.deb")

    def _draft_path(self) -> str:
        return os.path.join(self.system.manifest.directory, "debs", f"{self.name}.new.deb")

    def needs_change(self, state: dict | None) -> bool:
        return state is None or not self._has_this_build()

    def _has_this_build(self) -> bool:
        path = self._path()
        return os.path.exists(path) and compute_checksum(read_file(path)) == self.settings["sha256"]

    def describe_change(self) -> dict:
        return self._simulate_install(self.settings.get("source") or self._path())

    def apply(self, state: dict | None) -> None:
        if not self._has_this_build():
            os.makedirs(os.path.dirname(self._path()), mode=0o700, exist_ok=True)
            write_atomically(self._draft_path(), read_file(self.settings["source"]), 0o600)
            self._install(self._draft_path())
            os.replace(self._draft_path(), self._path())
        else:
            self._install(self._path())

    def _install(self, path: str) -> None:
        # --reinstall, because two builds can have the same version.
        self.system.run("apt-get", *_APT, "--reinstall", "--allow-downgrades", "install", path)

    def restore(self, original: dict | None, changes: list, other_entries: list) -> str:
        message = super().restore(original, changes, other_entries)
        if os.path.exists(self._path()):
            os.unlink(self._path())
        return message


def _find_names(action: str, output: str) -> list:
    """Return the packages that apt-get --simulate would install (Inst) or remove (Remv)."""
    return sorted(re.findall(rf"^{action} (\S+)", output, re.M))
