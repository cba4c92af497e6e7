# SPDX-License-Identifier: Apache-2.0
"""p4c for v1model, `p4c-bm2-ss`: finds the compiler, its version, and compiles programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

NAME = "p4c-bm2-ss"
LIMIT_S = 300.0


class CompilerError(Exception):
    """There is no compiler, or it does not compile a program."""


class Compiler:
    """The compiler.

    Args:
        path: Path or name of p4c-bm2-ss; None for the one that the environment variable P4C names,
            or that is on PATH.

    Raises:
        CompilerError: There is none.
    """

    def __init__(self, path: str | None = None) -> None:
        name = path or os.environ.get("P4C") or NAME
        path_found = shutil.which(name)
        if path_found is None:
            raise CompilerError(f"no {name} here; name it: P4C=/path/of/{NAME}")
        self.path = Path(path_found).absolute()  # not resolved: p4include is in the same directory

    def find_version(self) -> str:
        """Return the version as compiled-with.txt has it: "p4c" and the number.

        What follows the number differs between builds of one version, so it is left out.
        """
        output = self._run(["--version"], Path.cwd())
        match = re.search(r"Version (\S+)", output)
        if not match:
            raise CompilerError(f"{self.path} does not print its version")
        return f"p4c {match[1]}"

    def compile(
        self, source: Path, compiled: Path, p4info: Path | None = None, *options: str
    ) -> None:
        """Compile a program, and write `compiled` and `p4info`.

        The compiler runs in the program's directory, so that the JSON names files relative to it.

        Raises:
            CompilerError: The compiler failed; the error has its message.
        """
        more = ["--p4runtime-files", str(p4info.absolute())] if p4info is not None else []
        standard = [] if "--std" in options else ["--std", "p4-16"]
        self._run(
            [
                *standard,
                *options,
                "--arch",
                "v1model",
                *more,
                "-o",
                str(compiled.absolute()),
                source.name,
            ],
            source.parent,
        )

    def _run(self, options: list[str], directory: Path) -> str:
        try:
            done = subprocess.run(
                [self.path, *options],
                cwd=directory,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CompilerError(f"{self.path} takes longer than {LIMIT_S:g} s") from None
        if done.returncode != 0:
            raise CompilerError((done.stderr or done.stdout).strip() or f"status {done.returncode}")
        return done.stdout + done.stderr
