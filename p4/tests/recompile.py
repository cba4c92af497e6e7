# SPDX-License-Identifier: Apache-2.0
"""Compiles the programs below p4 again whose JSON, and P4Info if any, is committed: `make p4`.

All are compiled with the version of p4c that p4/compiled-with.txt names, so that files change only
if programs change.

    python p4/tests/recompile.py [--check] [PROGRAM.p4...]

--check writes nothing, and ends with status 1 if a file differs from the compiler's output.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from compiler import Compiler, CompilerError

P4 = Path(__file__).resolve().parents[1]
VERSION = P4 / "compiled-with.txt"


def find_programs() -> list[Path]:
    """Return the programs whose JSON is committed; other .p4 files are only included."""
    return [each for each in sorted(P4.rglob("*.p4")) if each.with_suffix(".json").exists()]


def recompile(compiler: Compiler, source: Path) -> dict[Path, str]:
    """Return the texts that the files of a program must have: its JSON, and its P4Info if any.

    Raises:
        CompilerError: The compiler failed.
    """
    with tempfile.TemporaryDirectory() as directory:
        compiled = Path(directory) / "out.json"
        p4info = Path(directory) / "out.p4info.txt"  # by which p4c knows that it is to be text
        compiler.compile(source, compiled, p4info)
        texts = {source.with_suffix(".json"): compiled.read_text()}
        if (committed := source.with_suffix(".p4info.txtpb")).exists():
            texts[committed] = p4info.read_text()
    return texts


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    parser = argparse.ArgumentParser(prog="make p4", description=__doc__)
    parser.add_argument("programs", type=Path, nargs="*")
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args(arguments)
    try:
        compiler = Compiler()
        version = compiler.find_version()
        required = VERSION.read_text().strip()
        if version != required:
            print(
                f"nagi: {compiler.path} is {version}, {VERSION.name} says {required}: compile with "
                f"that one, or change {VERSION.name} and record all expectations again "
                "(p4/tests/record.py)",
                file=sys.stderr,
            )
            return 2
        stale = []
        for source in [each.resolve() for each in chosen.programs] or find_programs():
            for file, text in recompile(compiler, source).items():
                if file.exists() and file.read_text() == text:
                    continue
                stale.append(file)
                if not chosen.check:
                    file.write_text(text)
    except (CompilerError, OSError) as error:
        print(f"nagi: {error}", file=sys.stderr)
        return 2
    for file in stale:
        print(f"{os.path.relpath(file)}: {'stale' if chosen.check else 'written'}")
    if not stale:
        print(f"{version}: everything is as it is compiled")
    return int(chosen.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
