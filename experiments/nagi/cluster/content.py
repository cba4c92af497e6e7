# SPDX-License-Identifier: Apache-2.0
"""Files that workers have by their content: kernel, modules and preloaded library of guests, and
directories of runs as one piece of bytes.

A worker keeps sets of files in $XDG_CACHE_HOME/nagi/by-content, a directory for each content. What
is there is checked by SHA-256 before a process uses it for the first time.
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
from nagi_contracts.records import sha256_of

from nagi.scratch import get_user_cache, make_scratch

Sums = dict[str, str]  # file -> SHA-256, of one directory


def sums_of(files: list[Path]) -> Sums:
    """Of a set of files with different names."""
    return {file.name: sha256_of(file) for file in sorted(files)}


def key_of(sums: Sums) -> str:
    """Stands for the content of a set."""
    return digest(sums)


def packed(directory: Path, files: list[Path]) -> bytes:
    """Files of a directory as a tar archive, compressed by zstd."""
    sink = pa.BufferOutputStream()
    with (
        pa.CompressedOutputStream(sink, "zstd") as stream,
        tarfile.open(fileobj=stream, mode="w|") as tar,
    ):
        for file in sorted(files):
            tar.add(file, str(file.relative_to(directory)), recursive=False)
    return bytes(sink.getvalue().to_pybytes())


def unpack(archive: bytes, target: Path) -> None:
    """Unpacks what packed() made into `target`, which is whole or not there. Nothing can land
    outside. Raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with make_scratch(target.parent) as beside:
        _extract(archive, beside / "files")
        (beside / "files").rename(target)


def unpack_into(archive: bytes, target: Path) -> None:
    """Puts files of an archive in the place of those in a directory, each whole or not at all.
    Raises OSError."""
    with make_scratch(target.parent) as beside:
        _extract(archive, beside / "files")
        for file in sorted((beside / "files").iterdir()):
            file.replace(target / file.name)


def _extract(archive: bytes, target: Path) -> None:
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
            with file.open("xb") as made:
                shutil.copyfileobj(content, made, 1 << 20)
            file.chmod(member.mode & 0o755)


def files_of(run: Path) -> list[Path]:
    """All files of a run directory."""
    return [path for path in run.rglob("*") if path.is_file()]


def has(sums: Sums) -> bool:
    """Whether this machine has a set, undamaged."""
    return _checked(key_of(sums)) == sums


def kept(sums: Sums, fetch: Callable[[str], bytes]) -> Path:
    """The directory in which this machine keeps a set. `fetch` gives its archive, by its key, if it
    is not there yet. Raises InputError if what it gives is something else."""
    key = key_of(sums)
    target = get_user_cache("by-content") / key
    if _checked(key) != sums:
        shutil.rmtree(target, ignore_errors=True)
        try:
            unpack(fetch(key), target)
        except OSError:
            if not target.exists():  # another process was first
                raise
        _checked.cache_clear()
        if _checked(key) != sums:
            shutil.rmtree(target, ignore_errors=True)
            raise refuse(f"what came for {key[:16]} is something else", "start the scheduler anew")
    return target


@cache
def _checked(key: str) -> Sums:
    """What the files of a set are by now."""
    try:
        return sums_of(
            [file for file in (get_user_cache("by-content") / key).iterdir() if file.is_file()]
        )
    except OSError:
        return {}
