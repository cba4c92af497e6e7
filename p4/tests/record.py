# SPDX-License-Identifier: Apache-2.0
"""Records again the files that are committed with the P4 programs.

These are their JSON (p4c), entries and packets (corpus.py), and what simple_switch sends. It needs
root, p4c (compiler.py finds it), and simple_switch and simple_switch_CLI on PATH.

    python p4/tests/record.py [NAME...]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import corpus
import simple_switch
from compiler import Compiler
from corpus import Operation
from programs import (
    ALL,
    Program,
    format_digests,
    format_entries,
    format_packets,
    list_in_port_order,
)
from recompile import VERSION, recompile


def read_entries(program: Program) -> list[Operation]:
    return [json.loads(line) for line in program.entries.read_text().splitlines()]


def record(program: Program, compiler: Compiler) -> None:
    case = corpus.make(program.name)
    for file, text in recompile(compiler, program.source).items():
        file.write_text(text)
    program.entries.write_text(format_entries(case.entries))
    program.packets.write_text(format_packets(case.packets))
    if program.is_random:
        return
    with tempfile.TemporaryDirectory() as directory:
        outcome = simple_switch.run(program.compiled, case.entries, case.packets, Path(directory))
    program.expected.write_text(format_packets(list_in_port_order(outcome.sent)))
    if outcome.digests:
        program.digests.write_text(format_digests(outcome.digests))
    else:
        program.digests.unlink(missing_ok=True)
    counts = {port: len(frames) for port, frames in outcome.sent.items()}
    print(f"{program.name}: sent {counts}, {len(outcome.digests)} digests")


def main() -> None:
    names = sys.argv[1:] or [program.name for program in ALL]
    if unknown := set(names) - {program.name for program in ALL}:
        sys.exit(f"no such program: {', '.join(sorted(unknown))}")
    compiler = Compiler()
    if len(names) < len(ALL) and VERSION.read_text().strip() != compiler.find_version():
        sys.exit(f"another p4c than {VERSION.name} says: record all programs with it")
    for program in ALL:
        if program.name in names:
            record(program, compiler)
    VERSION.write_text(compiler.find_version() + "\n")


if __name__ == "__main__":
    main()
