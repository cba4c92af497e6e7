# SPDX-License-Identifier: Apache-2.0
"""A user's own scheme as C: one file, or a directory with one of its name. It is compiled with the
headers of ours (hosts/tcp) to an eBPF object, and for the virtual lab to a module of its kernel.

What is compiled is kept in $XDG_CACHE_HOME/nagi/schemes, a directory for each content.
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
NAME_PATTERN = r"[a-z][a-z0-9_]{0,9}"  # the kernel has 15 characters, of which nagi_ is five
NAME_CURE = "begin with a lower-case letter; then also digits and _, at most 10 in all"
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")  # as make and shells leave it alone
MAX_PROBLEMS = 5
# As CMake compiles ours (cmake/bpf.cmake).
_FLAGS = (
    *("--target=bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror=implicit-function-declaration"),
    "-DNAGI_BPF",
)
_ERROR = re.compile(
    r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):\d+: (?:fatal )?error: (?P<what>.*)$", re.M
)


def source_of(path: Path) -> Path:
    """The C file that is meant: of a directory the one of its name."""
    return path / f"{path.name}{SUFFIX}" if path.is_dir() else path


def compiled(path: Path) -> Path:
    """The eBPF object of a scheme in C, compiled if it has not been. Raises InputError with the
    file and line of what the compiler refuses."""
    source = source_of(path)
    if re.fullmatch(NAME_PATTERN, source.stem) is None:
        raise refuse(f"{source.stem} is no name of a scheme", NAME_CURE, file=str(source))
    try:
        state = tuple((file.name, file.stat().st_mtime_ns) for file in _files(source))
        return _compiled(source, state)
    except OSError as error:
        what = f"it cannot be read: {error.strerror}"
        raise refuse(what, "give the path of a C file", file=str(source)) from None


def sources_beside(made: Path) -> list[Path]:
    """The sources from which an object was compiled, first the scheme's own file; none: it was not
    compiled by nagi."""
    directory = made.parent / "sources"
    own = directory / f"{made.name.partition('.')[0]}{SUFFIX}"
    return [own, *sorted(directory.glob("*.h"))] if own.exists() else []


def _files(source: Path) -> list[Path]:
    """Return the file and the headers beside it. Raises InputError if a header has a name that the
    kernel's build would give to make and a shell."""
    headers = sorted(source.parent.glob("*.h"))
    for header in headers:
        if PLAIN_NAME.fullmatch(header.name) is None:
            raise refuse(
                "a header beside a scheme has a name that the kernel's build cannot have",
                "give it letters, digits, `.`, `_`, `+` and `-` alone, or move it elsewhere",
                file=str(header),
            )
    return [source, *headers]


@cache
def _compiled(source: Path, _state: tuple[tuple[str, int], ...]) -> Path:
    files = _files(source)
    directory = get_user_cache("schemes") / _digest(files)
    made = directory / f"{source.stem}.bpf.o"
    if made.exists():
        return made
    sources = directory / "sources"
    sources.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copyfile(file, sources / file.name)
    partial = made.with_suffix(f".{os.getpid()}")
    headers = f"/usr/include/{platform.machine()}-linux-gnu"
    command = ["clang", *_FLAGS, f"-I{paths.TCP}", "-idirafter", headers, "-c", "-o", str(partial)]
    done = compile_in_sandbox(
        [*command, str(sources / source.name)],
        writable={directory: directory},
        readable={paths.TCP: paths.TCP},
    )
    if done.returncode != 0:
        raise InputError(*problems_in(done.stdout, source))
    partial.replace(made)
    return made


def compile_in_sandbox(
    command: list[str], *, writable: Mapping[Path, Path], readable: Mapping[Path, Path]
) -> subprocess.CompletedProcess[str]:
    """Run a compiler over a scheme that may be a stranger's. It can read the given files (path
    inside -> path outside) and the system's, no others. Its messages are in English, all of them
    in `stdout`. Raises InputError if there is no sandbox or no such compiler."""
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
            f"{command[0]} is {program}, which the compilers' sandbox does not show",
            "install the distribution's, or set PATH so that it comes first",
        )
    environment = {"LC_ALL": "C", "TMPDIR": "/dev/shm"}
    sandbox = Sandbox(writable=writable, readable=readable)
    return sandbox.run([program, *command[1:]], environment)


def problems_in(messages: str, source: Path) -> list[Problem]:
    """What a compiler complains of, at the user's own file where it is about that."""
    found = []
    for each in list(_ERROR.finditer(messages))[:MAX_PROBLEMS]:
        name = Path(each["file"]).name.removeprefix("nagi_")
        own = source.with_name(name)
        place = (str(own), int(each["line"])) if own.exists() else (str(source), 0)
        where = "" if own.exists() else f" ({Path(each['file']).name}, line {each['line']})"
        cure = "mend it (hosts/tcp/glue/hooks.h says what a scheme defines)"
        found.append(Problem(f"{each['what']}{where}", cure, *place))
    if not found:
        said = excerpt(" / ".join(messages.strip().splitlines()[:3]))
        found.append(Problem(f"it does not compile: {said}", "mend it", str(source)))
    return found


def _digest(files: list[Path]) -> str:
    ours = [*paths.TCP.glob("glue/*.h"), *paths.TCP.glob("arithmetic/*.h")]
    total = hashlib.sha256(_compiler().encode())
    for file in [*files, *sorted(ours)]:
        total.update(f"\n{file.name} ".encode() + hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()[:16]


@cache
def _compiler() -> str:
    done = compile_in_sandbox(["clang", "--version"], writable={}, readable={})
    if done.returncode != 0:
        said = excerpt(" / ".join(done.stdout.strip().splitlines()[:3]))
        raise refuse(f"clang does not work: {said}", "install it: `apt-get install clang`")
    return done.stdout
