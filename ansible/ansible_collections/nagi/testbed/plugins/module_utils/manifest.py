# SPDX-License-Identifier: Apache-2.0
"""The manifest of a host: the resources that nagi has created or changed, and their earlier states.

The manifest is in a directory that only root can read:

    manifest.json        one entry per resource, in the order in which nagi changed them
    manifest.copy.json   a copy, to replace a manifest.json that was edited
    saved/SHA256         original files, and nagi's files that operators have edited

An entry is {"kind", "name", "roles", "before", "ours", "units"}: the kind and name of the resource,
the roles that require the resource, the state before nagi's first change (null if the resource did
not exist), all changes that nagi made, and the units that read the resource. An entry is on disk
before its resource is changed.

Standard library only, for Python 3.9.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil

from ansible_collections.nagi.testbed.plugins.module_utils.lease import renew

MANIFEST_DIRECTORY = "/var/lib/nagi-testbed"
_SCHEMA_VERSION = 1


class ManifestError(Exception):
    """The manifest cannot be used. The message has the reason and the cure."""


def compute_checksum(data: bytes) -> str:
    """Compute the SHA-256 of data, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def write_atomically(path: str, data: bytes, mode: int, uid: int = 0, gid: int = 0) -> None:
    """Write a file completely or not at all. The file is on disk when this function returns.

    Args:
        path: The path of the file.
        data: The content.
        mode: The permissions.
        uid: The owner; ignored unless this process is root.
        gid: The group; ignored unless this process is root.
    """
    partial = path + ".nagi-partial"
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        if os.geteuid() == 0:
            os.fchown(file.fileno(), uid, gid)
        os.fchmod(file.fileno(), mode)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


class Manifest:
    """The manifest in a directory, as a context manager.

    Only one process at a time can enter the context, unless `read_only` is true.

    Args:
        directory: The directory of the manifest. It is created if necessary.
        read_only: Whether the manifest is only read. If so, no lock is needed, and no directory is
            created.

    Raises:
        ManifestError: On entry, if another process holds the lock or the manifest is damaged.
    """

    def __init__(self, directory: str, read_only: bool = False) -> None:
        self.directory = directory
        self._read_only = read_only
        self._path = os.path.join(directory, "manifest.json")
        self._copy = os.path.join(directory, "manifest.copy.json")
        self._lock = None
        self.entries: list = []

    def __enter__(self) -> Manifest:
        if not self._read_only:
            os.makedirs(os.path.join(self.directory, "saved"), mode=0o700, exist_ok=True)
            os.chmod(self.directory, 0o700)
            self._lock = open(os.path.join(self.directory, "lock"), "w")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._lock.close()
                raise ManifestError(
                    "another process is provisioning this host; wait until it has ended"
                ) from None
            renew()
        self.entries = self._read()
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.close()

    def _read(self) -> list:
        """Return the entries in manifest.json, or [] if there is no such file.

        Raises:
            ManifestError: The file was edited, or another version of nagi wrote it.
        """
        try:
            with open(self._path, encoding="utf-8") as file:
                manifest = json.load(file)
            version, entries = manifest["schema_version"], manifest["things"]
            is_intact = manifest["checksum"] == self._checksum(entries)
        except FileNotFoundError:
            return []
        except (ValueError, KeyError, TypeError):
            version, is_intact = _SCHEMA_VERSION, False
        if not is_intact:
            raise ManifestError(
                f"{self._path}: the file was changed since nagi wrote it. nagi needs the original "
                f"file to restore the host, so run `cp {self._copy} {self._path}` first"
            )
        if version != _SCHEMA_VERSION:
            raise ManifestError(
                f"{self._path}: another version of nagi wrote it (format {version}, this version "
                f"supports {_SCHEMA_VERSION}); use that version"
            )
        return entries

    @staticmethod
    def _checksum(entries: list) -> str:
        return compute_checksum(json.dumps(entries, sort_keys=True).encode())

    def save(self) -> None:
        """Write the manifest and its copy to disk."""
        manifest = {
            "schema_version": _SCHEMA_VERSION,
            "checksum": self._checksum(self.entries),
            "things": self.entries,
        }
        data = (json.dumps(manifest, indent=1) + "\n").encode()
        for path in (self._path, self._copy):
            write_atomically(path, data, 0o600)

    def find(self, kind: str, name: str) -> dict | None:
        """Return the entry of a resource, or None if the manifest has no such entry."""
        for entry in self.entries:
            if (entry["kind"], entry["name"]) == (kind, name):
                return entry
        return None

    def save_content(self, data: bytes) -> str:
        """Save the content of a file, and return the content's SHA-256 for read_content()."""
        name = compute_checksum(data)
        path = os.path.join(self.directory, "saved", name)
        if not os.path.exists(path):
            write_atomically(path, data, 0o600)
        return name

    def read_content(self, name: str) -> bytes:
        """Return the content that save_content() saved under `name`."""
        with open(os.path.join(self.directory, "saved", name), "rb") as file:
            return file.read()

    def remove(self) -> None:
        """Remove the directory of the manifest, with all saved files."""
        shutil.rmtree(self.directory)
