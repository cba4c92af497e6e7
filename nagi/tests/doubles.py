# SPDX-License-Identifier: Apache-2.0
"""Writes executables that replace programs of nagi and contain the original program.

A guest sees a program but no files next to it.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

_UNPACK = """\
#!/bin/sh
program=$(mktemp) && tail -n +{first} "$0" >"$program" && chmod 0700 "$program" || exit
{script}
exit
"""
_MAIN = """\
import os, sys, tempfile, zipfile
descriptor, program = tempfile.mkstemp()
with zipfile.ZipFile(sys.argv[0]) as archive, os.fdopen(descriptor, "wb") as file:
    file.write(archive.read("program"))
os.chmod(program, 0o700)
{code}
os.execv(program, [program, *sys.argv[1:]])
"""


def write_shell_double(path: Path, script: str, program: Path) -> None:
    """Write an executable that executes `script` by sh; PROGRAM in it is `program`."""
    text = _UNPACK.replace("{script}", script.replace("PROGRAM", '"$program"'))
    text = text.format(first=text.count("\n") + 1)
    path.write_bytes(text.encode() + program.read_bytes())
    path.chmod(0o755)


def write_python_double(path: Path, code: str, program: Path) -> None:
    """Write an executable that executes `code` by Python, and then `program`."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("__main__.py", _MAIN.format(code=code))
        archive.writestr("program", program.read_bytes())
    path.write_bytes(b"#!/usr/bin/python3\n" + packed.getvalue())
    path.chmod(0o755)
