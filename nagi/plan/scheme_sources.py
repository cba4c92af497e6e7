# SPDX-License-Identifier: Apache-2.0
"""Compile users' own schemes in C: a file, or a directory NAME with a file NAME.c.

A scheme is compiled with the headers of hosts/tcp to an eBPF object. For the virtual lab, it is
also compiled to a module of the guest kernel. Compiled schemes are kept in
$XDG_CACHE_HOME/nagi/schemes, in a directory whose name is a hash of the sources.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from nagi_contracts import paths
from nagi_contracts.errors import InputError, Problem, excerpt, refuse

from nagi.sandbox import Sandbox
from nagi.scratch import get_user_cache

SUFFIX = ".c"
# Names of congestion controls have up to 15 characters in the kernel; the prefix nagi_ has five.
NAME_PATTERN = r"[a-z][a-z0-9_]{0,9}"
NAME_CURE = "use 1 to 10 of a-z, 0-9 and _, and begin with a letter"
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")  # has no special meaning to make or shells
MAX_PROBLEMS = 5
# CMake compiles nagi's own schemes with the same flags (cmake/bpf.cmake).
_FLAGS = (
    *("--target=bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror=implicit-function-declaration"),
    "-DNAGI_BPF",
)
_ERROR = re.compile(
    r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):\d+: (?:fatal )?error: (?P<message>.*)$", re.M
)


def find_source(path: Path) -> Path:
    """Return the C file of a scheme: `path`, or NAME.c if `path` is a directory NAME."""
    return path / f"{path.name}{SUFFIX}" if path.is_dir() else path


def compile_scheme(path: Path) -> Path:
    """Return the path of a C scheme's eBPF object; compile it unless the cache has the object.

    Raises:
        InputError: If the source does not exist or does not compile, or if its name cannot be the
            name of a scheme. Errors of the compiler have file and line.
    """
    source = find_source(path)
    if re.fullmatch(NAME_PATTERN, source.stem) is None:
        raise refuse(f"{source.stem} is no name of a scheme", NAME_CURE, file=str(source))
    try:
        state = tuple((file.name, file.stat().st_mtime_ns) for file in _list_source_files(source))
        return _compile_version(source, state)
    except OSError as error:
        message = f"it cannot be read: {error.strerror}"
        raise refuse(message, "give the path of a C file", file=str(source)) from None


def list_sources(object_file: Path) -> list[Path]:
    """Return the sources of a compiled object: the C file, then the headers beside it.

    The list is empty if nagi did not compile the object.
    """
    directory = object_file.parent / "sources"
    own_source = directory / f"{object_file.name.partition('.')[0]}{SUFFIX}"
    return [own_source, *sorted(directory.glob("*.h"))] if own_source.exists() else []


def _list_source_files(source: Path) -> list[Path]:
    """Return the C file and the headers in its directory.

    Raises:
        InputError: If the name of a header has characters that are special for make or a shell,
            which compile the scheme for the virtual lab.
    """
    headers = sorted(source.parent.glob("*.h"))
    for header in headers:
        if PLAIN_NAME.fullmatch(header.name) is None:
            raise refuse(
                "the kernel's build does not support this name of a header",
                "use only letters, digits, `.`, `_`, `+` and `-`, or move it to another directory",
                file=str(header),
            )
    return [source, *headers]


@cache
def _compile_version(source: Path, _state: tuple[tuple[str, int], ...]) -> Path:
    """Compile a scheme unless its eBPF object is in the cache directory, and return the object.

    `_state` has the name and the time of change of each file, so that a call is repeated only after
    a change.
    """
    files = _list_source_files(source)
    directory = get_user_cache("schemes") / _hash_sources(files)
    object_file = directory / f"{source.stem}.bpf.o"
    if object_file.exists():
        return object_file
    sources = directory / "sources"
    sources.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copyfile(file, sources / file.name)
    new_file = object_file.with_suffix(f".{os.getpid()}")
    headers = f"/usr/include/{platform.machine()}-linux-gnu"
    command = ["clang", *_FLAGS, f"-I{paths.TCP}", "-idirafter", headers, "-c", "-o", str(new_file)]
    result = compile_in_sandbox(
        [*command, str(sources / source.name)],
        writable={directory: directory},
        readable={paths.TCP: paths.TCP},
    )
    if result.returncode != 0:
        raise InputError(*parse_problems(result.stdout, source))
    new_file.replace(object_file)
    return object_file


def compile_in_sandbox(
    command: list[str], *, writable: Mapping[Path, Path], readable: Mapping[Path, Path]
) -> subprocess.CompletedProcess[str]:
    """Run a compiler in a sandbox, because a scheme may come from a stranger.

    Args:
        command: The compiler and its arguments.
        writable: Directories that the compiler may write: path in the sandbox -> path on this
            machine.
        readable: Files and directories that the compiler may read, in addition to the system's:
            path in the sandbox -> path on this machine.

    Returns:
        The finished process. Its messages are in English, all of them in `stdout`.

    Raises:
        InputError: If the compiler is not installed, or if this machine cannot make a sandbox.
    """
    program = shutil.which(command[0])
    if program is None:
        raise refuse(
            f"there is no {command[0]}, which compiles schemes",
            f"install it: `apt-get install {command[0]}`",
        )
    if not Path(program).is_relative_to("/usr"):
        program = str(Path(program).resolve())
    if not Path(program).is_relative_to("/usr"):
        raise refuse(
            f"{command[0]} is {program}, which is not below /usr, the part that the sandbox shows",
            f"install the distribution's {command[0]}, or set PATH so that it comes first",
        )
    environment = {"LC_ALL": "C", "TMPDIR": "/dev/shm"}
    sandbox = Sandbox(writable=writable, readable=readable)
    return sandbox.run([program, *command[1:]], environment)


def parse_problems(messages: str, source: Path) -> list[Problem]:
    """Return the first MAX_PROBLEMS errors in the messages of a compiler, at least one.

    A problem in a file of the user has the file and the line. A problem in another file has the
    file `source` without a line, and its message names the other file and the line. If no message
    names a line, return one problem that quotes the first three lines of `messages`.

    Args:
        messages: The output of the compiler.
        source: The C file of the scheme.
    """
    problems = []
    for error in list(_ERROR.finditer(messages))[:MAX_PROBLEMS]:
        name = Path(error["file"]).name.removeprefix("nagi_")
        user_file, line = source.with_name(name), int(error["line"])
        is_user_file = user_file.exists()
        file_and_line = (str(user_file), line) if is_user_file else (str(source), 0)
        location = "" if is_user_file else f" ({Path(error['file']).name}, line {line})"
        cure = "correct it (hosts/tcp/glue/hooks.h lists the functions that a scheme defines)"
        problems.append(Problem(f"{error['message']}{location}", cure, *file_and_line))
    if not problems:
        output = excerpt(" / ".join(messages.strip().splitlines()[:3]))
        problems.append(Problem(f"it does not compile: {output}", "correct it", str(source)))
    return problems


def _hash_sources(files: list[Path]) -> str:
    """Return a hash of a scheme's files, nagi's headers and the version of the compiler."""
    headers = [*paths.TCP.glob("glue/*.h"), *paths.TCP.glob("arithmetic/*.h")]
    digest = hashlib.sha256(_read_compiler_version().encode())
    for file in [*files, *sorted(headers)]:
        digest.update(f"\n{file.name} ".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


@cache
def _read_compiler_version() -> str:
    result = compile_in_sandbox(["clang", "--version"], writable={}, readable={})
    if result.returncode != 0:
        output = excerpt(" / ".join(result.stdout.strip().splitlines()[:3]))
        raise refuse(f"clang does not work: {output}", "install it: `apt-get install clang`")
    return result.stdout
