# SPDX-License-Identifier: Apache-2.0
"""A user's own P4 program for a switch: read or compiled, checked, and put into the plan whole."""

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

from nagi.plan.request import PlanRequest
from nagi.plan.scheme_sources import PLAIN_NAME
from nagi.plan.trace_files import is_file
from nagi.spec.nodes import P4_SUFFIX, OwnProgram
from nagi.spec.yaml_source import Place

COMPILER, COMPILER_VARIABLE = "p4c-bm2-ss", "P4C"
NAGI_SWITCH = "nagi-switch"
MAX_PROBLEMS = 5
MAX_BYTES = 16 << 20  # of a file, which every plan of the experiment has in it
# As those of nagi's own programs are made (p4/tests/record.py).
_FLAGS = ("--std", "p4-16", "--arch", "v1model")
_AT_LINE = re.compile(
    r"^(?P<file>[^\s:(][^:(]*)\((?P<line>\d+)\): (?:\[--Werror=[\w-]+\] )?(?:syntax )?error: "
    r"(?P<what>.*)$",
    re.M,
)


# nagi-switch's files, and how it names one.
_SETTINGS, _PROGRAM, _ENTRIES = "switch.json", "program.json", "entries.jsonl"
_WHERE = re.compile(r"(?P<file>[\w.]+)(?::(?P<line>\d+))?: (?P<said>.*)", re.S)


class Compiled(NamedTuple):
    """What p4c made: bmv2's JSON, and P4Info in protobuf's text format."""

    program: str
    p4info: str | None


def own_pipeline(
    request: PlanRequest, place: Place, own: OwnProgram, ports: int
) -> OwnPipelinePlan:
    """What the plan has of the program that `place` of the experiment file asks for, for a switch
    with so many ports. Raises InputError."""
    path = _file(request, (*place, "program"), own.program)
    if path.suffix == P4_SUFFIX:
        program, p4info = _compiled_at(request, (*place, "program"), path)
    else:
        program, p4info = _text(path), None
        if own.p4info is not None:
            p4info = _text(_file(request, (*place, "p4info"), own.p4info))
    if p4info is None and request.switch == "p4runtime":
        raise request.error(
            (*place, "program"),
            "P4Runtime needs the program's P4Info beside its JSON",
            "add `p4info: FILE`, which p4c makes with --p4runtime-files, or use --switch nagi",
        )
    checked = _compact(program, path)
    entries = None
    if own.entries is not None:
        entries = _text(_file(request, (*place, "entries"), own.entries))
        _check_entries(entries, request.document.beside(own.entries))
    if own.cpu_port is not None and request.switch == "bmv2":
        raise request.error(
            (*place, "cpu_port"),
            "bmv2's CPU port is an interface, which experiments do not make",
            "remove it, or use --switch nagi",
        )
    if request.switch == "nagi":
        _check_with_nagi_switch(request, place, own, program, entries, ports)
    files = {}
    for number, name in enumerate(own.files):
        file = _file(request, (*place, "files", number), name)
        files[file.name] = _text(file)
    return OwnPipelinePlan(
        name=path.name,
        program=checked,
        p4info=p4info,
        entries=entries,
        cpu_port=own.cpu_port,
        controller=own.controller,
        files=files,
    )


def sha256_of_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _file(request: PlanRequest, place: Place, name: str) -> Path:
    path = request.document.beside(name)
    if not is_file(path):
        raise request.no_file(place, name)
    return path


def _text(path: Path) -> str:
    """Raises InputError if a file is too large or no text."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise refuse(
                f"it has more than {MAX_BYTES >> 20} MiB", "give a smaller one", file=str(path)
            )
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        what = f"byte {error.start} is not UTF-8"
        raise refuse(what, "give a text file", file=str(path)) from None
    except OSError as error:
        raise refuse(f"cannot read it: {error.strerror}", "permit it", file=str(path)) from None


def _compact(program: str, path: Path) -> str:
    """The program's JSON in one line, always the same. Raises InputError if it is none of p4c's."""
    try:
        found = json.loads(program)
    except ValueError as error:
        line = getattr(error, "lineno", 0)
        what = f"it is no JSON: {getattr(error, 'msg', error)}"
        raise refuse(what, f"name what {COMPILER} made", file=str(path), line=line) from None
    if not isinstance(found, dict) or not {"pipelines", "parsers"} <= found.keys():
        what = "it is not what p4c makes for bmv2: it has no `pipelines` and `parsers`"
        raise refuse(what, f"name what {COMPILER} made", file=str(path))
    return json.dumps(found, separators=(",", ":"))


def _check_entries(text: str, path: Path) -> None:
    """Raises InputError for the first line that is no operation."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            operation = json.loads(line)
        except ValueError as error:
            what = f"it is no JSON: {getattr(error, 'msg', error)}"
            cure = "write one operation a line (p4/switch/daemon/operations.hpp)"
            raise refuse(what, cure, file=str(path), line=number) from None
        if not isinstance(operation, dict) or not isinstance(operation.get("op"), str):
            cure = 'write it like {"op": "table_add", ...}'
            raise refuse("it has no `op`", cure, file=str(path), line=number, key="op")


def _check_with_nagi_switch(
    request: PlanRequest,
    place: Place,
    own: OwnProgram,
    program: str,
    entries: str | None,
    ports: int,
) -> None:
    """Raises InputError with what nagi-switch refuses of program, entries or CPU port, if it is
    there to say so: a campaign asks for it before anything runs."""
    executable = paths.executable(NAGI_SWITCH)
    if not executable.exists():
        return
    changed_ns = executable.stat().st_mtime_ns
    refused = _refusal(executable, changed_ns, program, entries, own.cpu_port, ports)
    if refused is None:
        return
    what, _, cure = refused.said.partition("; ")
    cure = cure or "see p4/README.md"
    if refused.file == _SETTINGS:
        raise request.error((*place, "cpu_port"), what.removeprefix("cpu_port: "), cure)
    named = own.program if refused.file == _PROGRAM else str(own.entries)
    file = str(request.document.beside(named))
    raise refuse(what, cure, file=file, line=refused.line)


class _Refusal(NamedTuple):
    """What nagi-switch says against one of its files."""

    file: str
    line: int  # 0: it names none
    said: str


@cache
def _refusal(
    executable: Path,
    _changed_ns: int,
    program: str,
    entries: str | None,
    cpu_port: int | None,
    ports: int,
) -> _Refusal | None:
    """None: it takes them."""
    settings: dict[str, object] = {
        "schema_version": 1,
        "seed": 1,
        "pipeline": _PROGRAM,
        "ports": [{"number": number} for number in range(1, ports + 1)],
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
        done = subprocess.run(
            [executable, "simulate", _SETTINGS],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode == 0:
        return None
    said = (done.stderr or done.stdout).strip().removeprefix(f"{NAGI_SWITCH}: ")
    found = _WHERE.match(said)
    if found is None or found["file"] not in (*texts, _SETTINGS):
        return _Refusal(_PROGRAM, 0, said)
    return _Refusal(found["file"], int(found["line"] or 0), found["said"])


def _compiled_at(request: PlanRequest, place: Place, path: Path) -> Compiled:
    """What p4c makes of P4. Raises InputError, at `place` if there is no p4c, else at the line of
    the P4 that it refuses."""
    compiler = find_compiler()
    if compiler is None:
        made = path.with_suffix(".json").name
        raise request.error(
            place,
            f"there is no {COMPILER} here, which compiles P4",
            f"set {COMPILER_VARIABLE} to its path; or compile it elsewhere, with `{COMPILER} "
            f"{' '.join(_FLAGS)} -o {made} {path.name}`, and write `program: {made}`",
        )
    _require_plain(path)
    return _compiled(compiler, path, path.stat().st_mtime_ns)


def find_compiler() -> str | None:
    """p4c for bmv2: the program that the environment's P4C names, else the one on PATH."""
    return shutil.which(os.environ.get(COMPILER_VARIABLE) or COMPILER)


def _require_plain(path: Path) -> None:
    """Raise InputError if p4c, which gives a name to a shell, would have it taken apart."""
    if PLAIN_NAME.fullmatch(path.name) is None:
        raise refuse(
            "p4c cannot have such a name",
            "give it letters, digits, `.`, `_`, `+` and `-` alone",
            file=str(path),
        )


@cache
def _compiled(compiler: str, path: Path, _changed_ns: int) -> Compiled:
    with tempfile.TemporaryDirectory(prefix="nagi-p4-") as directory:
        made = Path(directory) / "out.json"
        p4info = Path(directory) / "out.p4info.txt"  # .txt: by that p4c knows that it is to be text
        # In the program's own directory, so that the JSON names files relative to it.
        done = subprocess.run(
            [compiler, *_FLAGS, "--p4runtime-files", p4info, "-o", made, path.name],
            cwd=path.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0 or not made.exists():
            raise InputError(*_problems_in(done.stderr, path))
        return Compiled(made.read_text(encoding="utf-8"), p4info.read_text(encoding="utf-8"))


def _problems_in(messages: str, path: Path) -> list[Problem]:
    """What p4c complains of, with file and line as it names them."""
    cure = "mend it"
    found = [
        Problem(each["what"], cure, str(path.parent / each["file"]), int(each["line"]))
        for each in list(_AT_LINE.finditer(messages))[:MAX_PROBLEMS]
    ]
    if not found:
        said = excerpt(" / ".join(messages.strip().splitlines()[:3]))
        found.append(Problem(f"it does not compile: {said}", cure, str(path)))
    return found
