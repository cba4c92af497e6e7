# SPDX-License-Identifier: Apache-2.0
"""Read or compile users' P4 programs for switches, check them, and put them into the plan."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from nagi_contracts import paths
from nagi_contracts.errors import InputError, Problem, excerpt, refuse
from nagi_contracts.plan import OwnPipelinePlan

from nagi.backends.switch.spec import P4_SUFFIX, OwnProgram
from nagi.backends.switch.targets import Target
from nagi.plan.request import PlanRequest
from nagi.plan.scheme_sources import PLAIN_NAME
from nagi.plan.trace_files import is_file
from nagi.spec.yaml_source import KeyPath

COMPILER, COMPILER_VARIABLE = "p4c-bm2-ss", "P4C"
NAGI_SWITCH = "nagi-switch"
MAX_PROBLEMS = 5  # maximum number of errors of p4c that are shown
MAX_BYTES = 16 << 20  # maximum size of a file, because each plan of the experiment contains it
# nagi's own programs are compiled with the same flags (p4/tests/record.py).
_FLAGS = ("--std", "p4-16", "--arch", "v1model")
_COMPILER_ERROR = re.compile(
    r"^(?P<file>[^\s:(][^:(]*)\((?P<line>\d+)\): (?:\[--Werror=[\w-]+\] )?(?:syntax )?error: "
    r"(?P<message>.*)$",
    re.M,
)


# The names of the files that nagi-switch reads in a check, and the format of its error messages.
_SETTINGS, _PROGRAM, _ENTRIES = "switch.json", "program.json", "entries.jsonl"
_ERROR = re.compile(r"(?P<file>[\w.]+)(?::(?P<line>\d+))?: (?P<message>.*)", re.S)


class Compiled(NamedTuple):
    """The output of p4c: the program as bmv2's JSON, and P4Info in protobuf's text format."""

    program: str
    p4info: str | None


def plan_own_pipeline(
    request: PlanRequest, key_path: KeyPath, settings: OwnProgram, target: Target, port_count: int
) -> OwnPipelinePlan:
    """Return the plan of a user's P4 program for a switch.

    A program in P4 is compiled with p4c. Other programs must be the JSON that p4c writes. For the
    target nagi-switch, nagi-switch checks the program, unless it has not been built.

    Args:
        request: The point that is planned.
        key_path: Key path of the program's settings in the experiment file.
        settings: The program's settings.
        target: The target that executes the program, such as nagi-switch.
        port_count: The number of ports of the switch, one per link.

    Raises:
        InputError: A file is missing or damaged, the target does not support a setting, or
            nagi-switch refuses the program.
    """
    path = _find_named_file(request, (*key_path, "program"), settings.program)
    if path.suffix == P4_SUFFIX:
        program, p4info = _compile_p4(request, (*key_path, "program"), path)
    else:
        program, p4info = _read_text(path), None
        if settings.p4info is not None:
            p4info = _read_text(_find_named_file(request, (*key_path, "p4info"), settings.p4info))
    if p4info is None and target.needs_p4info:
        raise request.error(
            (*key_path, "program"),
            f"{target.title} needs the program's P4Info in addition to its JSON",
            "add `p4info: FILE`, which p4c writes with --p4runtime-files, or use --switch nagi",
        )
    program_json = _minify_json(program, path)
    entries = None
    if settings.entries is not None:
        entries = _read_text(_find_named_file(request, (*key_path, "entries"), settings.entries))
        _check_entries(entries, request.document.resolve_path(settings.entries))
    if settings.cpu_port is not None and not target.has_cpu_port:
        raise request.error(
            (*key_path, "cpu_port"),
            f"{target.title}'s CPU port is an interface, which nagi does not create for your own "
            "program",
            "remove `cpu_port`, or use --switch nagi",
        )
    if target.checks_programs:
        _check_with_nagi_switch(request, key_path, settings, program, entries, port_count)
    files = {}
    for number, name in enumerate(settings.files):
        file = _find_named_file(request, (*key_path, "files", number), name)
        files[file.name] = _read_text(file)
    return OwnPipelinePlan(
        name=path.name,
        program=program_json,
        p4info=p4info,
        entries=entries,
        cpu_port=settings.cpu_port,
        controller=settings.controller,
        files=files,
    )


def hash_text(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def _find_named_file(request: PlanRequest, key_path: KeyPath, name: str) -> Path:
    """Return the path of a file that the experiment file names. Raise InputError if missing."""
    path = request.document.resolve_path(name)
    if not is_file(path):
        raise request.missing_file(key_path, name)
    return path


def _read_text(path: Path) -> str:
    """Read a file of UTF-8 text.

    Raises:
        InputError: The file is larger than MAX_BYTES, is no UTF-8, or cannot be read.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise refuse(
                f"the file has more than {MAX_BYTES >> 20} MiB",
                "use a smaller file",
                file=str(path),
            )
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not UTF-8"
        raise refuse(message, "use a text file", file=str(path)) from None
    except OSError as error:
        message = f"the file cannot be read: {error.strerror}"
        raise refuse(message, "make the file readable", file=str(path)) from None


def _minify_json(program: str, path: Path) -> str:
    """Return the JSON of a program in one line without white space.

    Raises:
        InputError: The text is no JSON, or not the JSON that p4c writes for bmv2.
    """
    try:
        document = json.loads(program)
    except ValueError as error:
        line = getattr(error, "lineno", 0)
        message = f"the file is not JSON: {getattr(error, 'msg', error)}"
        raise refuse(message, f"use the JSON of {COMPILER}", file=str(path), line=line) from None
    if not isinstance(document, dict) or not {"pipelines", "parsers"} <= document.keys():
        message = f"the file is not the JSON of {COMPILER}: `pipelines` or `parsers` is missing"
        raise refuse(message, f"use the JSON of {COMPILER}", file=str(path))
    return json.dumps(document, separators=(",", ":"))


def _check_entries(text: str, path: Path) -> None:
    """Check that each line is an operation of a switch: a JSON object with the key `op`.

    Args:
        text: The contents of the file.
        path: The path of the file, for messages.

    Raises:
        InputError: A line is neither empty nor an operation.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            operation = json.loads(line)
        except ValueError as error:
            message = f"the line is not JSON: {getattr(error, 'msg', error)}"
            cure = "write one operation per line (p4/switch/daemon/operations.hpp)"
            raise refuse(message, cure, file=str(path), line=number) from None
        if not isinstance(operation, dict) or not isinstance(operation.get("op"), str):
            cure = 'write an operation, such as {"op": "table_add", ...}'
            raise refuse("`op` is missing", cure, file=str(path), line=number, key="op")


def _check_with_nagi_switch(
    request: PlanRequest,
    key_path: KeyPath,
    settings: OwnProgram,
    program: str,
    entries: str | None,
    port_count: int,
) -> None:
    """Check program, entries and CPU port by running nagi-switch.

    If nagi-switch has not been built, nothing is checked, because other code of a campaign reports
    that nagi-switch is missing.

    Raises:
        InputError: nagi-switch refuses the program, the entries or the CPU port.
    """
    executable = paths.executable(NAGI_SWITCH)
    if not executable.exists():
        return
    changed_ns = executable.stat().st_mtime_ns
    refusal = _find_refusal(executable, changed_ns, program, entries, settings.cpu_port, port_count)
    if refusal is None:
        return
    message, _, cure = refusal.message.partition("; ")
    cure = cure or "see p4/README.md"
    if refusal.file == _SETTINGS:
        raise request.error((*key_path, "cpu_port"), message.removeprefix("cpu_port: "), cure)
    refused_file = settings.program if refusal.file == _PROGRAM else str(settings.entries)
    file = str(request.document.resolve_path(refused_file))
    raise refuse(message, cure, file=file, line=refusal.line)


class _Refusal(NamedTuple):
    """An error that nagi-switch reports in one of its input files."""

    file: str  # name of the file
    line: int  # 0 if the error has no line
    message: str  # with the cure after "; "


@cache
def _find_refusal(
    executable: Path,
    _changed_ns: int,
    program: str,
    entries: str | None,
    cpu_port: int | None,
    port_count: int,
) -> _Refusal | None:
    """Run `nagi-switch simulate` on a program, and return its error, or None if it succeeds.

    `_changed_ns` is part of the cache's key, so that a new build of nagi-switch checks again.
    """
    settings: dict[str, object] = {
        "schema_version": 1,
        "seed": 1,
        "pipeline": _PROGRAM,
        "ports": [{"number": number} for number in range(1, port_count + 1)],
    }
    texts = {_PROGRAM: program}
    if entries is not None:
        texts[_ENTRIES] = entries
        settings["entries"] = _ENTRIES
    if cpu_port is not None:
        settings["cpu_port"] = cpu_port
    with tempfile.TemporaryDirectory(prefix="nagi-p4-") as directory:
        for name, text in {**texts, _SETTINGS: json.dumps(settings)}.items():
            (Path(directory) / name).write_text(text, encoding="utf-8")
        result = subprocess.run(
            [executable, "simulate", _SETTINGS],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    if result.returncode == 0:
        return None
    output = (result.stderr or result.stdout).strip().removeprefix(f"{NAGI_SWITCH}: ")
    match = _ERROR.match(output)
    if match is None or match["file"] not in (*texts, _SETTINGS):
        return _Refusal(_PROGRAM, 0, output)
    return _Refusal(match["file"], int(match["line"] or 0), match["message"])


def _compile_p4(request: PlanRequest, key_path: KeyPath, path: Path) -> Compiled:
    """Compile a P4 program with p4c.

    Raises:
        InputError: p4c is missing (the error names `key_path`), or p4c reports errors (each error
            names its line of the program).
    """
    compiler = find_compiler()
    if compiler is None:
        json_name = path.with_suffix(".json").name
        raise request.error(
            key_path,
            f"there is no {COMPILER} here, which compiles P4",
            f"set {COMPILER_VARIABLE} to its path; or compile the program on another machine, with "
            f"`{COMPILER} {' '.join(_FLAGS)} -o {json_name} {path.name}`, and write "
            f"`program: {json_name}`",
        )
    _require_plain_name(path)
    return _compile_version(compiler, path, path.stat().st_mtime_ns)


def find_compiler() -> str | None:
    """Return the path of p4c for bmv2, or None if it is not installed.

    The environment variable P4C has priority over the PATH.
    """
    return shutil.which(os.environ.get(COMPILER_VARIABLE) or COMPILER)


def _require_plain_name(path: Path) -> None:
    """Refuse file names with characters that are special to the shell, to which p4c passes them."""
    if PLAIN_NAME.fullmatch(path.name) is None:
        raise refuse(
            "p4c does not support this name of a file",
            "rename the file: use only letters, digits, `.`, `_`, `+` and `-`",
            file=str(path),
        )


@cache
def _compile_version(compiler: str, path: Path, _changed_ns: int) -> Compiled:
    """Run p4c on a P4 program.

    `_changed_ns`, the file's time of modification, is part of the cache's key, so that a changed
    program is compiled again.

    Raises:
        InputError: p4c reports errors.
    """
    with tempfile.TemporaryDirectory(prefix="nagi-p4-") as directory:
        json_path = Path(directory) / "out.json"
        p4info_path = Path(directory) / "out.p4info.txt"  # p4c writes text because of .txt
        # p4c runs in the program's directory, so that the JSON names files relative to it.
        result = subprocess.run(
            [compiler, *_FLAGS, "--p4runtime-files", p4info_path, "-o", json_path, path.name],
            cwd=path.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode != 0 or not json_path.exists():
            raise InputError(*_parse_problems(result.stderr, path))
        return Compiled(
            json_path.read_text(encoding="utf-8"), p4info_path.read_text(encoding="utf-8")
        )


def _parse_problems(messages: str, path: Path) -> list[Problem]:
    """Return the first MAX_PROBLEMS errors in p4c's output, with file and line.

    If no error is recognised, return one problem that contains the first lines of the output.
    """
    cure = "correct it"
    problems = [
        Problem(error["message"], cure, str(path.parent / error["file"]), int(error["line"]))
        for error in list(_COMPILER_ERROR.finditer(messages))[:MAX_PROBLEMS]
    ]
    if not problems:
        output = excerpt(" / ".join(messages.strip().splitlines()[:3]))
        problems.append(Problem(f"the program does not compile: {output}", cure, str(path)))
    return problems
