# SPDX-License-Identifier: Apache-2.0
"""Packages of the distribution and of nagi. Standard library only, for Python 3.9."""

from __future__ import annotations

import hashlib
import os
import re
import time
from typing import TypedDict

from ansible_collections.nagi.testbed.plugins.module_utils.manifest import (
    compute_checksum,
    write_atomically,
)
from ansible_collections.nagi.testbed.plugins.module_utils.system import (
    Failed,
    ManagedResource,
    join_last_lines,
    read_file,
)

_APT = (
    "--quiet",
    "--yes",
    "--no-install-recommends",
    "-o=DPkg::Lock::Timeout=300",
    "-o=Dpkg::Use-Pty=0",
    # dpkg would ask what to do with a configuration file that an operator has edited.
    "-o=Dpkg::Options::=--force-confdef",
    "-o=Dpkg::Options::=--force-confold",
)


# The files of ucf(1): package and path, and MD5 and path of configuration files.
_UCF_REGISTRY, _UCF_CHECKSUMS = "/var/lib/ucf/registry", "/var/lib/ucf/hashfile"


class PackageChange(TypedDict):
    """The changes that apt-get makes when it installs a package.

    Attributes:
        installed: The packages that were not installed before.
        configured: Those of them whose configuration files existed before.
        removed: The packages that it removes.
        removed_versions: Package -> version, for these packages.
        upgraded: Package -> [version before, version after], for packages that it upgrades.
        proposals: The files NAME.dpkg-dist of `upgraded` packages that exist before.
        automatic: Those of `removed` and `upgraded` that apt has marked as automatically installed.
    """

    installed: list
    configured: list
    removed: list
    removed_versions: dict
    upgraded: dict
    proposals: list
    automatic: list


class Package(ManagedResource):
    """A package, given by a name or pattern that apt-get accepts.

    The manifest records what apt-get does when it installs the package (see PackageChange).
    """

    kind = "package"

    def read_state(self) -> dict | None:
        status, out, _ = self.system.try_run(
            "dpkg-query", "--show", "--showformat", r"${db:Status-Status}\n", self.name
        )
        return {} if status == 0 and "installed" in out.splitlines() else None

    def needs_change(self, state: dict | None) -> bool:
        return state is None

    def describe_change(self) -> PackageChange:
        self._update()
        return self._simulate_install(self._get_target())

    def list_effects(self, change: PackageChange | None) -> list:
        if change is None:
            try:
                change = self._simulate_install(self._get_target())
            except Failed:
                return [f"package {self.name}: more is known once apt's lists are updated"]
        return [
            *(f"package {name}: installed" for name in change["installed"] if name != self.name),
            *(
                f"package {name}: upgraded from {old_version} to {new_version}"
                for name, (old_version, new_version) in change["upgraded"].items()
            ),
            *(f"package {name}: removed" for name in change["removed"]),
        ]

    def list_restore_effects(self, changes: list) -> list:
        return [
            line
            for change in changes
            for line in (
                *(f"package {name}: removed" for name in change["installed"] if name != self.name),
                *(
                    f"package {name}: version {versions[0]} again"
                    for name, versions in change.get("upgraded", {}).items()
                ),
                *(f"package {name}: installed again" for name in change["removed"]),
            )
        ]

    def _get_target(self) -> str:
        """Return what apt-get installs: the name of the package, or the path of its file."""
        return self.name

    def _simulate_install(self, package: str) -> PackageChange:
        output = self.system.run("apt-get", *_APT, "--simulate", "install", package)
        new_names, upgrades = [], {}
        line = r"^Inst (\S+)(?: \[(\S+)\])? \((\S+)"
        for name, old_version, new_version in re.findall(line, output, re.M):
            if old_version:
                upgrades[name] = [old_version, new_version]
            else:
                new_names.append(name)
        removed_names = _find_removed_names(output)
        return {
            "installed": sorted(new_names),
            "configured": [name for name in new_names if self._has_configuration(name)],
            "removed": removed_names,
            "removed_versions": {name: self._find_version(name) for name in removed_names},
            "upgraded": upgrades,
            "proposals": [path for name in upgrades for path in self._list_proposals(name)],
            "automatic": self._select_automatic([*removed_names, *upgrades]),
        }

    def _update(self) -> None:
        """Update apt's lists, unless nagi has updated them within the last hour.

        Errors are ignored here, because the installation reports them.
        """
        stamp = os.path.join(self.system.manifest.directory, "updated")
        if not os.path.exists(stamp) or time.time() - os.stat(stamp).st_mtime > 3600:
            self.system.try_run("apt-get", *_APT, "update")
            write_atomically(stamp, b"", 0o600)

    def _has_configuration(self, name: str) -> bool:
        """Return whether configuration files of a package exist that is no longer installed."""
        _, out, _ = self.system.try_run(
            "dpkg-query", "--show", "--showformat", "${db:Status-Status}", name
        )
        return out == "config-files"

    def _select_automatic(self, names: list) -> list:
        """Return those packages that were installed only because others depend on them."""
        if not names:
            return []
        return self.system.run("apt-mark", "showauto", *names).split()

    def apply(self, state: dict | None) -> None:
        self.system.run("apt-get", *_APT, "install", self.name)

    def restore(self, original: dict | None, changes: list, other_entries: list) -> str:
        """Remove the packages that nagi installed, and restore those that it removed or upgraded.

        A package stays if another resource needs it, or if packages depend on it that nagi did not
        install. A configuration file that an operator has edited stays when its package is removed.
        """
        used_by_others = {
            name
            for entry in other_entries
            if entry["kind"] in (Package.kind, Deb.kind)
            for change in entry["ours"]
            for name in change["installed"]
        }
        installed_names = {name for change in changes for name in change["installed"]}
        added_names = installed_names - used_by_others
        removed_names = {name for change in changes for name in change["removed"]}
        if removed_names or any(change.get("upgraded") for change in changes):
            self._update()
        present_names = sorted(name for name in added_names if self._is_installed(name))
        missing_names = sorted(name for name in removed_names if not self._is_installed(name))
        # apt-get would also remove the packages that depend on a removed package.
        needed_names = [name for name in present_names if not self._is_removable(name, added_names)]
        unneeded_names = [name for name in present_names if name not in needed_names]
        messages = self._exchange_packages(unneeded_names, missing_names, changes)
        if needed_names:
            messages.append(f"packages {' '.join(needed_names)}: other packages depend on them now")
        messages += self._restore_upgraded(changes, installed_names)
        self.system.restore_kept_files()
        return "; ".join(messages)

    def _exchange_packages(self, names: list, missing_names: list, changes: list) -> list:
        """Remove packages that nagi installed, and install those that it removed.

        Args:
            names: The packages to remove.
            missing_names: The packages to install.
            changes: The records of all changes.

        Returns:
            Messages about files and packages that are not as before.
        """
        configured_names = {name for change in changes for name in change.get("configured", [])}
        if removals := [f"{name}-" for name in names if name in configured_names]:
            self.system.run("apt-get", *_APT, "install", *removals)
        purged_names = [name for name in names if name not in configured_names]
        messages = self._keep_edited_configurations(purged_names)
        purges = [f"{name}-" for name in purged_names]
        returning, unavailable_names = self._choose_versions(missing_names, changes, purges)
        if unavailable_names:
            messages.append(
                f"packages {' '.join(unavailable_names)}: they were there before, but apt cannot "
                "install them any more, or would remove others"
            )
        try:
            if purges or returning:
                self.system.run("apt-get", *_APT, "--purge", "install", *returning, *purges)
        finally:
            self.system.restore_kept_files()
        automatic_names = {name for change in changes for name in change.get("automatic", [])}
        if marked_names := sorted(automatic_names & {*missing_names} - {*unavailable_names}):
            self.system.run("apt-mark", "auto", *marked_names)
        return messages

    def _restore_upgraded(self, changes: list, installed_names: set) -> list:
        """Install the earlier versions of packages that nagi's installations have upgraded.

        Args:
            changes: The records of all changes.
            installed_names: The packages that nagi has installed, which were not there before.

        Returns:
            Messages about packages that stay at another version.
        """
        upgrades: dict = {}  # package -> version before the first change, version after the last
        for change in changes:
            for name, (old_version, new_version) in change.get("upgraded", {}).items():
                if name not in installed_names:
                    upgrades[name] = (upgrades.get(name, (old_version,))[0], new_version)
        old_proposals = {path for change in changes for path in change.get("proposals", [])}
        automatic_names = {name for change in changes for name in change.get("automatic", [])}
        messages = []
        for name, versions in upgrades.items():
            if message := self._downgrade(name, *versions):
                messages.append(message)
                continue
            if name in automatic_names:
                self.system.run("apt-mark", "auto", name)
            for path in self._list_proposals(name):
                if path not in old_proposals:
                    os.unlink(path)
        return messages

    def _list_configurations(self, name: str) -> list:
        """Return (path, MD5 of the packaged content) of the configuration files of a package.

        Some packages, such as chrony, have files that ucf(1) manages in place of dpkg.
        """
        listing = self.system.run("dpkg-query", "--show", "--showformat", "${Conffiles}", name)
        files = re.findall(r"^ (/.+) ([0-9a-f]{32})(?: obsolete)?$", listing, re.M)
        owners = dict(reversed(line.split(None, 1)) for line in _read_lines(_UCF_REGISTRY))
        checksums = dict(reversed(line.split(None, 1)) for line in _read_lines(_UCF_CHECKSUMS))
        paths = [path for path, owner in owners.items() if owner == name and path in checksums]
        return [*files, *((path, checksums[path]) for path in paths)]

    def _list_proposals(self, name: str) -> list:
        """Return the new configuration files that dpkg has put beside edited files of a package."""
        paths = [f"{path}.dpkg-dist" for path, _ in self._list_configurations(name)]
        return [path for path in paths if os.path.exists(path)]

    def _keep_edited_configurations(self, names: list) -> list:
        """Keep the configuration files of packages that an operator has edited; return messages."""
        messages = []
        for name in names:
            for path, checksum in self._list_configurations(name):
                is_edited = os.path.isfile(path) and _compute_md5(path) != checksum
                if is_edited and self.system.keep_file(path):
                    messages.append(f"{path}: the file was edited since package {name} came")
        return messages

    def _choose_versions(self, names: list, changes: list, purges: list) -> tuple:
        """Choose the versions of removed packages that apt-get can install.

        Args:
            names: The packages.
            changes: The records of all changes, which have the earlier versions.
            purges: The packages that are purged at the same time, as words for apt-get.

        Returns:
            Words for apt-get; and the packages that it cannot install, or not without removing
            packages besides `purges`.
        """
        versions: dict = {}
        for change in changes:
            versions.update(change.get("removed_versions", {}))
        words, unavailable_names = [], []
        purged_names = {purge[:-1] for purge in purges}
        for name in names:
            for word in ([f"{name}={versions[name]}"] if versions.get(name) else []) + [name]:
                command = ["apt-get", *_APT, "--simulate", "install", word, *purges]
                status, output, _ = self.system.try_run(*command)
                if status == 0 and set(_find_removed_names(output)) <= purged_names:
                    words.append(word)
                    break
            else:
                unavailable_names.append(name)
        return words, unavailable_names

    def _find_version(self, name: str) -> str:
        """Return the version of an installed package; "" if it is not installed."""
        return self.system.try_run("dpkg-query", "--show", "--showformat", "${Version}", name)[1]

    def _downgrade(self, name: str, version: str, nagi_version: str) -> str:
        """Install an earlier version of a package.

        Args:
            name: The package.
            version: The version before nagi's changes.
            nagi_version: The version to which nagi's changes have upgraded the package.

        Returns:
            A message if the package stays at another version, and "" if not.
        """
        current_version = self._find_version(name)
        if current_version in ("", version):
            return ""
        stays = f"package {name}: it stays at version {current_version}, because"
        if current_version != nagi_version:
            return f"{stays} somebody else has installed this version since"
        install = ["--allow-downgrades", "install", f"{name}={version}"]
        status, output, _ = self.system.try_run("apt-get", *_APT, "--simulate", *install)
        if status != 0 or _find_removed_names(output):
            return f"{stays} apt can no longer install version {version}, which was there before"
        status, output, error = self.system.try_run("apt-get", *_APT, *install)
        if status != 0:
            return f"{stays} apt failed: {join_last_lines(error or output)}"
        return ""

    def _is_installed(self, name: str) -> bool:
        return Package(self.system, name).read_state() is not None

    def _is_removable(self, name: str, added_names: set) -> bool:
        """Return whether apt-get would remove, with a package, only packages of `added_names`."""
        output = self.system.run("apt-get", *_APT, "--simulate", "remove", name)
        return set(_find_removed_names(output)) <= added_names


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

    def _get_target(self) -> str:
        return self.settings.get("source") or self._path()

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


def _find_removed_names(output: str) -> list:
    """Return the packages that apt-get --simulate would remove, from its output."""
    return sorted(re.findall(r"^Remv (\S+)", output, re.M))


def _read_lines(path: str) -> list:
    """Return the lines of a file that are not empty; [] if it does not exist."""
    if not os.path.exists(path):
        return []
    return [line for line in read_file(path).decode().splitlines() if line.strip()]


def _compute_md5(path: str) -> str:
    return hashlib.md5(read_file(path), usedforsecurity=False).hexdigest()
