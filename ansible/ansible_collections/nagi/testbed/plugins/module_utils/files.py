# SPDX-License-Identifier: Apache-2.0
"""Directories, files, and the permissions of packages' files.

Standard library only, for Python 3.9.
"""

from __future__ import annotations

import fnmatch
import grp
import os
import shutil
import stat
from contextlib import suppress
from typing import TypedDict

from ansible_collections.nagi.testbed.plugins.module_utils.manifest import (
    compute_checksum,
    write_atomically,
)
from ansible_collections.nagi.testbed.plugins.module_utils.system import (
    Failed,
    ManagedResource,
    read_attributes,
    read_file,
    write_attributes,
)

UNITS = "/etc/systemd/system"
_LABEL = "security.selinux"


class Directory(ManagedResource):
    """A directory. The setting `contents` has patterns for the entries that belong to nagi.

    An existing directory is not changed, even if its mode differs.
    """

    kind = "directory"

    def read_state(self) -> dict | None:
        return {} if os.path.isdir(self.name) else None

    def needs_change(self, state: dict | None) -> bool:
        return state is None

    def describe_change(self) -> dict:
        return {"contents": self.settings.get("contents", [])}

    def apply(self, state: dict | None) -> None:
        os.mkdir(self.name)
        os.chmod(self.name, int(self.settings.get("mode", "0755"), 8))

    def restore(self, original: dict | None, changes: list, other_entries: list) -> str:
        """Remove the directory if nagi created it, with the entries that `contents` permits.

        If there are other entries, the directory stays with them. Empty directories do not count.
        """
        if original is not None or not os.path.isdir(self.name):
            return ""
        patterns = [pattern for change in changes for pattern in _list_patterns(change["contents"])]
        for entry in os.scandir(self.name):
            if any(fnmatch.fnmatchcase(entry.name, pattern) for pattern in patterns):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    os.unlink(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    os.rmdir(entry.path)
        try:
            os.rmdir(self.name)
        except OSError:
            names = sorted(os.listdir(self.name))
            listing = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")
            return f"{self.name}: the directory has files that nagi did not make: {listing}"
        return ""


def _list_patterns(contents: list | bool) -> list:
    """Return the recorded patterns. Earlier versions recorded whether all entries are nagi's."""
    if isinstance(contents, bool):
        return ["*"] if contents else []
    return contents


class FileState(TypedDict, total=False):
    """The state of a file; the state of a symbolic link has the key `link` only."""

    link: str
    sha256: str
    mode: str
    uid: int
    gid: int
    mtime_ns: int
    attributes: dict


class File(ManagedResource):
    """A file with its content and mode."""

    kind = "file"

    def read_state(self) -> FileState | None:
        try:
            status = os.lstat(self.name)
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(status.st_mode):
            return {"link": os.readlink(self.name)}
        if not stat.S_ISREG(status.st_mode):
            raise Failed(f"{self.name}: not a regular file or symbolic link")
        return {
            "sha256": compute_checksum(read_file(self.name)),
            "mode": f"{stat.S_IMODE(status.st_mode):04o}",
            "uid": status.st_uid,
            "gid": status.st_gid,
        }

    def back_up(self, state: FileState | None) -> FileState | None:
        if state is None or "sha256" not in state:
            return state
        self.system.manifest.save_content(read_file(self.name))
        attributes = read_attributes(self.name)
        return {**state, "mtime_ns": os.stat(self.name).st_mtime_ns, "attributes": attributes}

    def has_content(self) -> bool:
        """Return whether the settings have the new content, as text or as a file on this host.

        The action plugin sends no content if the file on the host is already equal.
        """
        return self.settings.get("content") is not None or self.settings.get("source") is not None

    def _read_content(self) -> bytes:
        if self.settings.get("content") is not None:
            return self.settings["content"].encode()
        return read_file(self.settings["source"])

    def _get_mode(self) -> str:
        return self.settings.get("mode") or "0644"

    def describe_change(self) -> FileState:
        checksum = self.settings.get("sha256") or compute_checksum(self._read_content())
        return {"sha256": checksum, "mode": self._get_mode()}

    def needs_change(self, state: FileState | None) -> bool:
        change = self.describe_change()
        return state is None or any(state.get(key) != change[key] for key in change)

    def was_edited(
        self, state: FileState | None, original: FileState | None, changes: list
    ) -> bool:
        """Return whether the file exists and somebody has changed its content since nagi wrote it.

        Args:
            state: The current state.
            original: The state before nagi's first change.
            changes: The records of all changes that nagi made.
        """
        checksums = [change["sha256"] for change in changes]
        if original is not None:
            checksums.append(original.get("sha256"))
        return state is not None and state.get("sha256") not in checksums

    def _validate(self) -> None:
        """Check the new content with the command `validate` of the settings, if there is one.

        Raises:
            Failed: The command refuses the content.
        """
        if not self.settings.get("validate"):
            return
        draft = os.path.join(self.system.manifest.directory, os.path.basename(self.name))
        write_atomically(draft, self._read_content(), int(self._get_mode(), 8))
        try:
            self.system.run(*(word.replace("%s", draft) for word in self.settings["validate"]))
        except Failed as error:
            raise Failed(f"{self.name}: refused: {str(error).replace(draft, self.name)}") from None
        finally:
            os.unlink(draft)

    def apply(self, state: FileState | None) -> None:
        self._validate()
        label = {}
        if state is not None and "sha256" in state:
            attributes = read_attributes(self.name)
            label = {name: attributes[name] for name in attributes if name == _LABEL}
        write_atomically(self.name, self._read_content(), int(self._get_mode(), 8))
        write_attributes(self.name, label)

    def make_diff(self, state: FileState | None) -> tuple[str, str]:
        exists = state is not None and "sha256" in state
        current = _decode(read_file(self.name)) if exists else ""
        return current, _decode(self._read_content())

    def restore(self, original: FileState | None, changes: list, other_entries: list) -> str:
        """Restore the original file.

        If somebody has edited nagi's file, the edited file stays, and the original, if there was
        one, is written to NAME.before-nagi. Without an original, nagi's file is deleted.
        """
        state = self.read_state()
        message = ""
        if self.was_edited(state, original, changes):
            self.system.keep_file(self.name)
            message = f"{self.name}: the file was edited since nagi wrote it"
            if original is None or "sha256" not in original:
                return message
            path = f"{self.name}.before-nagi"
            message += f"; the original is {path}"
        else:
            path = self.name
        if original is None:
            if state is not None:
                self._stop_instances()
                os.unlink(self.name)
        elif "link" in original:
            if state != original:
                os.unlink(self.name)
                os.symlink(original["link"], self.name)
        else:
            content = self.system.manifest.read_content(original["sha256"])
            owner = (original["uid"], original["gid"])
            write_atomically(path, content, int(original["mode"], 8), *owner)
            write_attributes(path, original.get("attributes", {}))
            os.utime(path, ns=(original["mtime_ns"], original["mtime_ns"]))
            if path != self.name:
                self.system.keep_file(path)
        return message

    def _stop_instances(self) -> None:
        """Disable and stop all instances of the unit if the file is a template (NAME@.service)."""
        template = os.path.basename(self.name)
        if os.path.dirname(self.name) != UNITS or not template.endswith("@.service"):
            return
        instances = template.replace("@.", "@*.")
        for directory, _, names in os.walk(UNITS):
            for name in fnmatch.filter(names, instances):
                if os.path.islink(os.path.join(directory, name)):
                    self.system.systemctl("disable", "--quiet", name)
        if self.system.started:
            self.system.systemctl("stop", instances)


def _decode(data: bytes) -> str:
    """Return a file's content as text for --diff; for binary data, return size and checksum."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"({len(data)} bytes, sha256 {compute_checksum(data)})\n"


class OverrideState(TypedDict):
    """The permissions of a file.

    `override` is the file's line in the output of dpkg-statoverride; "" if it has none.
    """

    override: str
    group: str
    mode: str
    capabilities: str


class Override(ManagedResource):
    """Owner, group, mode and capabilities of a file that belongs to a package.

    dpkg-statoverride keeps owner, group and mode when the package is upgraded. An upgrade removes
    the capabilities; the next run of the role sets them again.
    """

    kind = "override"

    def read_state(self) -> OverrideState | None:
        try:
            status = os.stat(self.name)
        except FileNotFoundError:
            return None
        _, override, _ = self.system.try_run("dpkg-statoverride", "--list", self.name)
        _, capabilities, _ = self.system.try_run("getcap", self.name)
        return {
            "override": override.strip(),
            "group": _find_group_name(status.st_gid),
            "mode": f"{stat.S_IMODE(status.st_mode):04o}",
            "capabilities": capabilities.strip().rpartition(" ")[2] if capabilities else "",
        }

    def _make_override_line(self) -> str:
        mode = self.settings["mode"].lstrip("0")
        return f"root {self.settings['group']} {mode} {self.name}"

    def needs_change(self, state: OverrideState | None) -> bool:
        return (
            state is None
            or state["override"] != self._make_override_line()
            or state["capabilities"] != self.settings["capabilities"]
        )

    def apply(self, state: OverrideState | None) -> None:
        if state is None:
            raise Failed(f"{self.name}: the file does not exist")
        if state["override"] != self._make_override_line():
            self.system.run(
                *("dpkg-statoverride", "--update", "--force-statoverride-add", "--add", "root"),
                *(self.settings["group"], self.settings["mode"], self.name),
            )
        self.system.run("setcap", self.settings["capabilities"], self.name)

    def restore(self, original: OverrideState | None, changes: list, other_entries: list) -> str:
        """Restore the entry of dpkg-statoverride, group, mode and capabilities."""
        state = self.read_state()
        if state is None or original is None:
            return ""
        if state["override"]:
            self.system.run("dpkg-statoverride", "--remove", self.name)
        if original["override"]:
            words = original["override"].split()[:3]
            self.system.run("dpkg-statoverride", "--add", *words, self.name)
        shutil.chown(self.name, "root", original["group"])
        os.chmod(self.name, int(original["mode"], 8))
        if original["capabilities"]:
            self.system.run("setcap", original["capabilities"], self.name)
        elif self.read_state()["capabilities"]:
            self.system.run("setcap", "-r", self.name)
        return ""


def _find_group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
