# SPDX-License-Identifier: Apache-2.0
"""Schemes of nagi in this machine's kernel, while a test holds them by nagi-tcp."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nagi_contracts.paths import executable, scheme_object

NAGI_TCP = str(executable("nagi-tcp"))
# The interpreter behind this environment, which other users may not enter.
PYTHON = str(Path(sys.executable).resolve())


@contextmanager
def hold_scheme(
    program: str | Path, name: str, *arguments: str, sets: Sequence[str] = ()
) -> Iterator[subprocess.Popen[str]]:
    """Register a scheme under `name` until the context ends.

    Args:
        program: The scheme's name, or the path of an eBPF object.
        name: The scheme's name in the kernel.
        arguments: Further arguments of `nagi-tcp hold`.
        sets: Parameters, each as NAME=VALUE.
    """
    given = program if isinstance(program, Path) else scheme_object(program)
    parameters = [each for setting in sets for each in ("--set", setting)]
    process = subprocess.Popen(
        [NAGI_TCP, "hold", str(given), "--as", name, *parameters, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        line = process.stdout.readline()
        assert line == f"{name} ready\n", line + process.stderr.read()
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=10)


def make_kernel_name(prefix: str) -> str:
    """Return a name for the kernel that no other test has."""
    return f"{prefix[:7]}_{os.getpid()}"
