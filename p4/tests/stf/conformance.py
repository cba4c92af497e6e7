# SPDX-License-Identifier: Apache-2.0
"""Runs the samples of p4c for v1model on nagi-switch, and reports the result of each.

p4c and its samples are no part of nagi: `make test-conformance P4C=... SAMPLES=...` names both.

A sample with an STF file of the same name is compiled, loaded and tested; one without is compiled
and loaded. Samples in a directory whose name begins with p4_14 are in that language, as in p4c's
own runner; of the others, those that include v1model.p4 are used. Those in `parser-inline` are
compiled a second time with the option that p4c tests by them.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from compiler import Compiler, CompilerError
from nagi_contracts.paths import executable
from nagi_p4.operations import Refused

from stf import execution
from stf.execution import Failure
from stf.syntax import StfError

V1MODEL = re.compile(r"^\s*#\s*include\s*[<\"](\S*/)?v1model\.p4[>\"]", re.MULTILINE)

# Samples that check a counter's bytes were written for a target that counts a frame with its frame
# check sequence; p4c's own runner for bmv2 does not look at them.
FCS_BYTES = 4

PASSED, FAILED, LOADS = "passed", "failed", "loads"
REFUSED, NOT_COMPILED, NOT_STF = "refused", "does not compile", "not understood"
MEANING = {
    PASSED: "does what its STF file says",
    FAILED: "does not",
    NOT_STF: "its STF file does not fit the program",
    LOADS: "has no STF file; nagi-switch loads it",
    REFUSED: "nagi-switch does not load it",
    NOT_COMPILED: "p4c does not compile it for v1model",
}


@dataclass(frozen=True)
class Sample:
    name: str  # relative to the directory of samples
    source: Path
    options: tuple[str, ...]

    @property
    def stf(self) -> Path | None:
        file = self.source.with_suffix(".stf")
        return file if file.exists() else None


@dataclass(frozen=True)
class Result:
    sample: str
    has_stf: bool
    outcome: str
    text: str = ""  # the first difference, the construct, what the compiler says


def find_samples(directory: Path) -> list[Sample]:
    """Return the samples below a directory that are for v1model."""
    samples = []
    for source in sorted(directory.rglob("*.p4")):
        inside = source.relative_to(directory.parent)
        is_14 = any(part.startswith("p4_14") for part in source.parts)
        if any(part.endswith(("_outputs", "_errors")) for part in inside.parts):
            continue
        if not is_14 and not V1MODEL.search(source.read_text(encoding="utf-8", errors="replace")):
            continue
        name = str(source.relative_to(directory))
        options = ("--std", "p4-14" if is_14 else "p4-16")
        samples.append(Sample(name, source, options))
        if source.parent.name == "parser-inline":
            inlined = (*options, "--parser-inline-opt")
            samples.append(Sample(f"{name} --parser-inline-opt", source, inlined))
    return samples


class Conformance:
    """Compiles and tests samples.

    Args:
        compiler: The compiler.
        switch: The program nagi-switch.
        work: A directory for compiled samples, which the next run uses again.
    """

    def __init__(self, compiler: Compiler, switch: Path, work: Path) -> None:
        self._compiler = compiler
        self._switch = switch
        self._work = work

    def check(self, sample: Sample) -> Result:
        """Compile, load and test a sample."""
        try:
            compiled = self._compile(sample)
        except CompilerError as error:
            return self._result(sample, NOT_COMPILED, str(error))
        done = subprocess.run(
            [self._switch, "check", compiled],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            return self._result(sample, REFUSED, (done.stderr or done.stdout).strip())
        if sample.stf is None:
            return self._result(sample, LOADS, "")
        try:
            execution.run_file(compiled, sample.stf, self._switch, FCS_BYTES)
        except StfError as error:
            return self._result(sample, NOT_STF, str(error))
        except (Failure, Refused) as error:
            return self._result(sample, FAILED, str(error))
        return self._result(sample, PASSED, "")

    def _compile(self, sample: Sample) -> Path:
        """Compile a sample unless it was compiled before."""
        compiled = self._work / f"{sample.name.replace(' ', '')}.json"
        error_file = compiled.with_suffix(".error")
        newest = max(sample.source.stat().st_mtime, self._compiler.path.stat().st_mtime)
        if compiled.exists() and compiled.stat().st_mtime > newest:
            return compiled
        if error_file.exists() and error_file.stat().st_mtime > newest:
            raise CompilerError(error_file.read_text())
        compiled.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._compiler.compile(sample.source, compiled, None, *sample.options)
        except CompilerError as error:
            compiled.unlink(missing_ok=True)
            error_file.write_text(str(error))
            raise
        return compiled

    @staticmethod
    def _result(sample: Sample, outcome: str, text: str) -> Result:
        return Result(sample.name, sample.stf is not None, outcome, text)


def format_report(results: list[Result]) -> str:
    """Return a text with every sample that failed, and a table of counts."""
    lines = []
    for outcome in (FAILED, NOT_STF, REFUSED):
        for result in results:
            if result.outcome == outcome:
                indented = "\n    ".join(result.text.splitlines())
                lines.append(f"{result.sample}: {outcome}\n    {indented}")
    with_stf = Counter(result.outcome for result in results if result.has_stf)
    others = Counter(result.outcome for result in results if not result.has_stf)
    lines.append(f"\n{'':18} with STF  others")
    for outcome, meaning in MEANING.items():
        if with_stf[outcome] or others[outcome]:
            row = f"{outcome:18} {with_stf[outcome]:8} {others[outcome]:7}"
            lines.append(f"{row}   {meaning}")
    compiled = [result for result in results if result.outcome != NOT_COMPILED]
    loads = sum(result.outcome != REFUSED for result in compiled)
    tested = sum(result.has_stf for result in compiled)
    lines.append(
        f"\n{with_stf[PASSED]} of {tested} STF tests pass; {loads} of {len(compiled)} programs load"
    )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    parser = argparse.ArgumentParser(prog="make test-conformance", description=__doc__)
    parser.add_argument("--samples", type=Path, required=True, help="p4c's testdata, or a part")
    parser.add_argument("--p4c", help="p4c-bm2-ss; else P4C of the environment, else on PATH")
    parser.add_argument("--work", type=Path, default=Path("build/conformance"))
    parser.add_argument("--json", type=Path, help="writes all results there")
    parser.add_argument("--only", default="", help="samples with this in their name")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args(arguments)
    try:
        compiler = Compiler(chosen.p4c)
        version = compiler.find_version()
    except CompilerError as error:
        print(f"nagi: {error}", file=sys.stderr)
        return 2
    if not chosen.samples.is_dir():
        print(
            f"nagi: {chosen.samples}: no directory; SAMPLES=DIRECTORY names testdata of p4c's "
            "sources",
            file=sys.stderr,
        )
        return 2
    samples = [each for each in find_samples(chosen.samples.resolve()) if chosen.only in each.name]
    if not samples:
        named = f" with {chosen.only!r} in its name" if chosen.only else ""
        print(f"nagi: {chosen.samples}: no v1model program{named}", file=sys.stderr)
        return 2
    conformance = Conformance(compiler, executable("nagi-switch"), chosen.work / version.split()[1])
    with ThreadPoolExecutor(chosen.jobs) as pool:
        results = list(pool.map(conformance.check, samples))
    if chosen.json:
        chosen.json.write_text(json.dumps([asdict(each) for each in results], indent=1) + "\n")
    print(f"{version}, {chosen.samples}\n{format_report(results)}")
    return int(any(result.outcome in (FAILED, NOT_STF) for result in results))


if __name__ == "__main__":
    sys.exit(main())
