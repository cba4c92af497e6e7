# SPDX-License-Identifier: Apache-2.0
"""Makes anew what is committed beside the P4 programs: their JSON (p4c), entries and packets
(corpus.py), and what simple_switch sends. Needs root and p4c-bm2-ss, simple_switch and
simple_switch_CLI on the path.

    python p4/tests/record.py [NAME...]"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import corpus
import simple_switch
from corpus import Operation
from programs import ALL, P4, Program, digests_text, entries_text, in_port_order, packets_text

VERSION_FILE = "compiled-with.txt"  # beside edge.json: the version of p4c


def compiler_version() -> str:
    """The number alone: builds of one version say different things behind it."""
    command = ["p4c-bm2-ss", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"Version (\S+)", done.stdout + done.stderr)
    if not found:
        sys.exit("p4c-bm2-ss does not say its version")
    return f"p4c {found[1]}"


def compile_program(program: Program, into: Path) -> tuple[str, str]:
    """JSON and P4Info of a program. It is compiled in its own directory, so that the JSON names
    files relative to it."""
    output, p4info = into / "out.json", into / "out.p4info.txt"
    options = ["--std", "p4-16", "--arch", "v1model", "--p4runtime-files", str(p4info)]
    subprocess.run(
        ["p4c-bm2-ss", *options, "-o", str(output), program.source.name],
        cwd=program.source.parent,
        check=True,
    )
    return output.read_text(), p4info.read_text()


def read_entries(program: Program) -> list[Operation]:
    return [json.loads(line) for line in program.entries.read_text().splitlines()]


def record(program: Program) -> None:
    case = corpus.make(program.name)
    with tempfile.TemporaryDirectory() as directory:
        text, p4info = compile_program(program, Path(directory))
    program.compiled.write_text(text)
    if program.p4info:
        program.p4info.write_text(p4info)
    program.entries.write_text(entries_text(case.entries))
    program.packets.write_text(packets_text(case.packets))
    if program.is_random:
        return
    with tempfile.TemporaryDirectory() as directory:
        outcome = simple_switch.run(program.compiled, case.entries, case.packets, Path(directory))
    program.expected.write_text(packets_text(in_port_order(outcome.sent)))
    if outcome.digests:
        program.digests.write_text(digests_text(outcome.digests))
    else:
        program.digests.unlink(missing_ok=True)
    counts = {port: len(frames) for port, frames in outcome.sent.items()}
    print(f"{program.name}: sent {counts}, {len(outcome.digests)} digests")


def main() -> None:
    names = sys.argv[1:] or [program.name for program in ALL]
    if unknown := set(names) - {program.name for program in ALL}:
        sys.exit(f"no such program: {', '.join(sorted(unknown))}")
    version = P4 / VERSION_FILE
    if len(names) < len(ALL) and version.read_text().strip() != compiler_version():
        sys.exit(f"another p4c than {VERSION_FILE} says: record all programs with it")
    for program in ALL:
        if program.name in names:
            record(program)
    version.write_text(compiler_version() + "\n")


if __name__ == "__main__":
    main()
