# SPDX-License-Identifier: Apache-2.0
"""Sets of files that workers store by content.

A set has, for example, the kernel, the modules and the preloaded library of guests. A worker stores
each set in a directory of $XDG_CACHE_HOME/nagi/by-content, whose name is a checksum of the set. A
process checks the SHA-256 of all files of a set before it uses the set for the first time. Sets and
run directories are sent as archives (tar, compressed by zstd).
"""

from __future__ import annotations

import errno
import shutil
import tarfile
from collections.abc import Callable
from functools import cache
from io import BytesIO
from pathlib import Path, PurePosixPath

import pyarrow as pa
from nagi_contracts.errors import refuse
from nagi_contracts.plan import digest
from nagi_contracts.records import compute_sha256

from nagi.scratch import get_user_cache, make_scratch

Sums = dict[str, str]  # name of a file of a set -> SHA-256


def hash_files(files: list[Path]) -> Sums:
    """Return the checksums of a set of files. The names of the files must differ."""
    return {file.name: compute_sha256(file) for file in sorted(files)}


def hash_sums(sums: Sums) -> str:
    """Return the key of a set: one checksum of the names and checksums of its files."""
    return digest(sums)


def pack(directory: Path, files: list[Path]) -> bytes:
    """Return an archive of `files`. Paths in the archive are relative to `directory`."""
    sink = pa.BufferOutputStream()
    with (
        pa.CompressedOutputStream(sink, "zstd") as stream,
        tarfile.open(fileobj=stream, mode="w|") as tar,
    ):
        for file in sorted(files):
            tar.add(file, str(file.relative_to(directory)), recursive=False)
    return bytes(sink.getvalue().to_pybytes())


def unpack(archive: bytes, target: Path) -> None:
    """Create the directory `target` from an archive that `pack()` made.

    After an error, `target` does not exist. No file is written outside of `target`.

    Raises:
        OSError: `target` exists, the archive is damaged, an entry is not a plain file, or the disk
            is full.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with make_scratch(target.parent) as directory:
        _extract(archive, directory / "files")
        (directory / "files").rename(target)


def unpack_into(archive: bytes, target: Path) -> None:
    """Write the files of an archive to the directory `target`, each of them atomically.

    Files of the same name are replaced; other files stay.

    Raises:
        OSError: The archive is damaged, an entry is not a plain file, or the disk is full.
    """
    with make_scratch(target.parent) as directory:
        _extract(archive, directory / "files")
        for file in sorted((directory / "files").iterdir()):
            file.replace(target / file.name)


def _extract(archive: bytes, target: Path) -> None:
    """Extract an archive below `target`. Raises OSError if an entry is not a plain file."""
    with (
        pa.input_stream(BytesIO(archive), compression="zstd") as stream,
        tarfile.open(fileobj=stream, mode="r|") as tar,
    ):
        for member in tar:
            name = PurePosixPath(member.name)
            if not member.isreg() or name.is_absolute() or ".." in name.parts:
                raise OSError(errno.EBADMSG, "the archive has more than plain files", str(target))
            content = tar.extractfile(member)
            assert content is not None  # a plain file
            file = target / name
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("xb") as output:
                shutil.copyfileobj(content, output, 1 << 20)
            file.chmod(member.mode & 0o755)


def list_files(run: Path) -> list[Path]:
    """Return the paths of all files below a run directory, in no particular order."""
    return [path for path in run.rglob("*") if path.is_file()]


def has_files(sums: Sums) -> bool:
    """Return whether this machine stores a set whose files have these checksums."""
    return _hash_cached_files(hash_sums(sums)) == sums


def ensure_files(sums: Sums, fetch: Callable[[str], bytes]) -> Path:
    """Return the directory in which this machine stores a set of files.

    The set is fetched if it is missing, or if a stored file has another checksum.

    Args:
        sums: The checksums of the set.
        fetch: A function that returns the archive of the set with a given key (`hash_sums()`).

    Raises:
        InputError: The archive of `fetch` has files with other checksums.
        OSError: The archive is damaged, or the disk is full.
    """
    key = hash_sums(sums)
    target = get_user_cache("by-content") / key
    if _hash_cached_files(key) != sums:
        shutil.rmtree(target, ignore_errors=True)
        try:
            unpack(fetch(key), target)
        except OSError:
            if not target.exists():  # if the set exists, another process has stored it meanwhile
                raise
        _hash_cached_files.cache_clear()
        if _hash_cached_files(key) != sums:
            shutil.rmtree(target, ignore_errors=True)
            raise refuse(
                f"the scheduler sent files with wrong checksums for the set {key[:16]}",
                "restart the scheduler",
            )
    return target


@cache
def _hash_cached_files(key: str) -> Sums:
    """Return the checksums of the set that this machine stores under a key; {} if it stores none.

    The files are read once per process.
    """
    try:
        return hash_files(
            [file for file in (get_user_cache("by-content") / key).iterdir() if file.is_file()]
        )
    except OSError:
        return {}
