# SPDX-License-Identifier: Apache-2.0
"""The manifest of a host: what nagi has made or changed there, and what was there before.

It is below one directory, for root alone:

    manifest.json        things, in the order in which they were made
    manifest.copy.json   the same, for who has edited the first
    saved/SHA256         files that were there before, and what an operator had made of ours

A thing is {"kind", "name", "roles", "before", "ours", "units"}: the roles that want it, what was
there before it (null: nothing), what nagi has made of it (several, if it was made anew), and the
units that read it. It is on disk before the thing is changed. Standard library only, for Python
3.9.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil

_SCHEMA_VERSION = 1


class ManifestError(Exception):
    """The manifest cannot be used; says why, and the cure."""


def checksum_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write_whole(path: str, data: bytes, mode: int, uid: int = 0, gid: int = 0) -> None:
    """Writes a file whole or not at all, and on disk when this returns."""
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
    """The manifest in `directory`. Held by one process at a time from entry to exit. Read without
    being made with `reading`. Raises ManifestError."""

    def __init__(self, directory: str, reading: bool = False) -> None:
        self.directory = directory
        self._reading = reading
        self._path = os.path.join(directory, "manifest.json")
        self._copy = os.path.join(directory, "manifest.copy.json")
        self._lock = None
        self.things: list = []

    def __enter__(self) -> Manifest:
        if not self._reading:
            os.makedirs(os.path.join(self.directory, "saved"), mode=0o700, exist_ok=True)
            os.chmod(self.directory, 0o700)
            self._lock = open(os.path.join(self.directory, "lock"), "w")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._lock.close()
                raise ManifestError(
                    "this host is being provisioned by another; wait until that has ended"
                ) from None
        self.things = self._read()
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.close()

    def _read(self) -> list:
        try:
            with open(self._path, encoding="utf-8") as file:
                found = json.load(file)
            version, things = found["schema_version"], found["things"]
            intact = found["checksum"] == self._checksum(things)
        except FileNotFoundError:
            return []
        except (ValueError, KeyError, TypeError):
            version, intact = _SCHEMA_VERSION, False
        if not intact:
            raise ManifestError(
                f"{self._path}: it is not as nagi wrote it. Files are put back by what it says; "
                f"have it as it was: `cp {self._copy} {self._path}`"
            )
        if version != _SCHEMA_VERSION:
            raise ManifestError(
                f"{self._path}: another version of nagi wrote it (format {version}, this one knows "
                f"{_SCHEMA_VERSION}); use that version"
            )
        return things

    @staticmethod
    def _checksum(things: list) -> str:
        return checksum_of(json.dumps(things, sort_keys=True).encode())

    def save(self) -> None:
        """Has it on disk."""
        whole = {
            "schema_version": _SCHEMA_VERSION,
            "checksum": self._checksum(self.things),
            "things": self.things,
        }
        data = (json.dumps(whole, indent=1) + "\n").encode()
        for path in (self._path, self._copy):
            write_whole(path, data, 0o600)

    def find(self, kind: str, name: str) -> dict | None:
        for thing in self.things:
            if (thing["kind"], thing["name"]) == (kind, name):
                return thing
        return None

    def keep(self, data: bytes) -> str:
        """Keeps a file's content; under which name `kept` has it."""
        name = checksum_of(data)
        path = os.path.join(self.directory, "saved", name)
        if not os.path.exists(path):
            write_whole(path, data, 0o600)
        return name

    def kept(self, name: str) -> bytes:
        with open(os.path.join(self.directory, "saved", name), "rb") as file:
            return file.read()

    def remove(self) -> None:
        """Takes it away, when there is nothing more in it."""
        shutil.rmtree(self.directory)
