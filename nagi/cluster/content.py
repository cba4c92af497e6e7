# SPDX-License-Identifier: Apache-2.0
"""Files that workers store by content.

Such files are the kernel, the modules and the preloaded library of guests. A worker keeps sets of
files in $XDG_CACHE_HOME/nagi/by-content, one directory per content. A process checks the SHA-256 of
a set before it uses the set for the first time. Sets and run directories are sent as archives (tar,
compressed by zstd).
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

Sums = dict[str, str]  # file -> SHA-256, of one directory


def hash_files(files: list[Path]) -> Sums:
    """Return the checksums of a set of files, whose names must differ."""
    return {file.name: compute_sha256(file) for file in sorted(files)}


def hash_sums(sums: Sums) -> str:
    """Return a key that identifies the content of a set."""
    return digest(sums)


def pack(directory: Path, files: list[Path]) -> bytes:
    """Return files below `directory` as an archive."""
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

    Either the whole directory is created or nothing. No file can land outside of it.

    Raises:
        OSError: the archive is damaged or has more than plain files, or the disk is full
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with make_scratch(target.parent) as directory:
        _extract(archive, directory / "files")
        (directory / "files").rename(target)


def unpack_into(archive: bytes, target: Path) -> None:
    """Replace files of the directory `target` by those of an archive, each of them atomically.

    Raises:
        OSError: the archive is damaged or has more than plain files, or the disk is full
    """
    with make_scratch(target.parent) as directory:
        _extract(archive, directory / "files")
        for file in sorted((directory / "files").iterdir()):
            file.replace(target / file.name)


def _extract(archive: bytes, target: Path) -> None:
    """Extract an archive below `target`. Raises OSError if it has more than plain files."""
    with (
        pa.input_stream(BytesIO(archive), compression="zstd") as stream,
        tarfile.open(fileobj=stream, mode="r|") as tar,
    ):
        for member in tar:
            name = PurePosixPath(member.name)
            if not member.isreg() or name.is_absolute() or ".." in name.parts:
                raise OSError(errno.EBADMSG, "it has more than plain files", str(target))
            content = tar.extractfile(member)
            assert content is not None  # a plain file
            file = target / name
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("xb") as output:
                shutil.copyfileobj(content, output, 1 << 20)
            file.chmod(member.mode & 0o755)


def list_files(run: Path) -> list[Path]:
    """Return all files below a run directory."""
    return [path for path in run.rglob("*") if path.is_file()]


def has_files(sums: Sums) -> bool:
    """Return whether this machine stores a set, undamaged."""
    return _hash_cached_files(hash_sums(sums)) == sums


def ensure_files(sums: Sums, fetch: Callable[[str], bytes]) -> Path:
    """Return the directory in which this machine stores a set, and fetch the set if it is missing.

    Args:
        sums: the checksums of the set
        fetch: returns the archive of the set with a key, from `hash_sums()`

    Raises:
        InputError: `fetch` returned other files
        OSError: the archive is damaged, or the disk is full
    """
    key = hash_sums(sums)
    target = get_user_cache("by-content") / key
    if _hash_cached_files(key) != sums:
        shutil.rmtree(target, ignore_errors=True)
        try:
            unpack(fetch(key), target)
        except OSError:
            if not target.exists():  # otherwise another process was faster
                raise
        _hash_cached_files.cache_clear()
        if _hash_cached_files(key) != sums:
            shutil.rmtree(target, ignore_errors=True)
            raise refuse(f"the files that came for {key[:16]} are others", "restart the scheduler")
    return target


@cache
def _hash_cached_files(key: str) -> Sums:
    """Return the checksums of the files that this machine stores under a key."""
    try:
        return hash_files(
            [file for file in (get_user_cache("by-content") / key).iterdir() if file.is_file()]
        )
    except OSError:
        return {}
