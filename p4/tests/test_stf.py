# SPDX-License-Identifier: Apache-2.0
"""Tests of STF: the files of stf/ pass on nagi-switch, and errors name file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import recompile
from compiler import Compiler, CompilerError
from nagi_contracts.paths import executable
from nagi_p4.operations import Refused
from stf import conformance, execution
from stf.conformance import (
    FAILED,
    LOADS,
    NOT_COMPILED,
    PASSED,
    REFUSED,
    Conformance,
    find_samples,
    format_report,
)
from stf.execution import Failure
from stf.language import parse
from stf.program import Key, Program, UnknownName
from stf.syntax import Location, StfError, Value

STF = Path(__file__).parent / "stf"
FILES = sorted(STF.glob("*.stf"))
MATCHES = Program(STF / "matches.json")


def run(program: Program, text: str) -> None:
    execution.run(program, parse(text, "test.stf"), executable("nagi-switch"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_does_what_the_file_says(file: Path) -> None:
    execution.run_file(file.with_suffix(".json"), file, executable("nagi-switch"))


def test_every_program_has_a_file() -> None:
    programs = {file.stem for file in STF.glob("*.json")}
    assert programs == {file.stem for file in FILES} and len(programs) >= 7


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_that_expects_otherwise_fails(file: Path) -> None:
    """Check that each expected packet matters: with another digit the file fails at its line."""
    lines = file.read_text().splitlines()
    expecting = [n for n, line in enumerate(lines) if line.startswith(("expect ", "@packet_in "))]
    assert expecting
    for number in (expecting[0], expecting[len(expecting) // 2], expecting[-1]):
        keyword, *port, data = lines[number].split(None, 2 if lines[number][0] == "e" else 1)
        other = f"{(int(data[0], 16) + 1) % 16:x}{data[1:]}"
        changed = [*lines[:number], " ".join([keyword, *port, other]), *lines[number + 1 :]]
        statements = parse("\n".join(changed), file.name)
        with pytest.raises(Failure, match=rf"^{file.name}:{number + 1}: "):
            execution.run(Program(file.with_suffix(".json")), statements, executable("nagi-switch"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("packet 0 03 1234 0000 00\nexpect 1 03 1234 0000 02",
         "test.stf:2: port 1: digit 11 (byte 5): expected 2, got 1 (after the statement of line 1)"
         "\n  expected 031234000002\n  got      031234000001"),
        ("packet 0 03 1234 0000 00\nexpect 1 03 1234 0000 01 00", "test.stf:2: port 1: 12 digits"),
        ("packet 0 03 1234 0000 0000\nexpect 1 03 1234 0000 01 $",
         "test.stf:2: port 1: 14 digits"),
        ("packet 0 03 1234 0000 00\npacket 1 03 1234 0000 00\nexpect 1 03",
         "test.stf:2: port 1: a packet that is not expected\n  got      031234000001"),
        ("expect 1 03", "test.stf:1: port 1: nothing left\n  expected 03"),
        ("packet 1 03 1234 0000 00\nno_packet\nexpect 1 03",
         "test.stf:1: port 1: a packet that is not expected"),
        ("@check_table fixed entries == 2",
         "test.stf:1: ingress.fixed: expected entries == 2\n  got      3"),
        ("add fixed 1 a:1 say(answer:1)", "test.stf:1: nagi-switch: "),
        ("@refused not_found add fixed 1 a:1 say(answer:1)",
         "test.stf:1: refused otherwise\n  expected not_found\n  got      failed_precondition: "),
        ("@refused invalid setdefault mixed say(answer:1)",
         "test.stf:1: expected to be refused (invalid), was done"),
    ],
)  # fmt: skip
def test_a_difference_is_said_with_its_line(text: str, message: str) -> None:
    with pytest.raises(Failure) as caught:
        run(MATCHES, text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ad t a:1 b()", "ad: no statement of STF"),
        ("add mixed 1 a:0x12", "an action is missing before 'the end'"),
        ("add mixed 1 a:x say(answer:1)", "a: 'x' is no number"),
        ("add mixed 1 a:1*2 say(answer:1)", "a: '1*2': * stands for digits after 0x"),
        ("add mixed 1 a:1 say(1)", "say: '1': a parameter is NAME:NUMBER"),
        ("packet 0 123", "a packet is pairs of hexadecimal digits"),
        ("packet x 12", "a port: 'x' is no number"),
        ("expect 0 12 $ 34", "an expected packet is hexadecimal digits"),
        ("check_counter c(1) packets = 1", "a comparison is missing before '= 1'"),
        ("@advance 10", "a time: 1000 us, 10 ms, 1 s is missing before '10'"),
        ("wait a moment", "'a moment' is too much"),
        ("add nowhere a:1 say(answer:1)", "no table nowhere; there are: "),
        ("add mixed 1 c:1 say(answer:1)", "ingress.mixed has no key c; its keys: "),
        ("add mixed 1 a:1 drop()", "no action of ingress.mixed drop; there are: ingress.say"),
        ("add mixed 1 a:1 say()", "ingress.say: its parameters are answer, not none"),
        ("add mixed 1 a:1 @member(m)", "no member m: @member makes one"),
        ("add ranges 1 a:1 b:* say(answer:1)", "an exact key matches one value, not *"),
        ("add mixed 1 a:1..2 say(answer:1)", "LOW..HIGH is for keys that are ranges"),
        ("remove it", "no entry it: add ... = it names one"),
        ("mc_node_associate 1 0", "no group 1: mc_mgrp_create makes one"),
        ("register_read r 0", "no register r; there are: none"),
    ],
)
def test_what_is_no_stf_is_said_with_its_line(line: str, message: str) -> None:
    with pytest.raises(StfError) as caught:
        run(MATCHES, f"# a comment\n\n{line}  # another\n")
    assert str(caught.value).startswith("test.stf:3: ") and message in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "text", "match"),
    [
        ("exact", "5", "0x5"),
        ("exact", "0b101", "0x5"),
        ("exact", "0o17", "0xf"),
        ("ternary", "0x12**", {"value": "0x1200", "mask": "0xff00"}),
        ("ternary", "0x*2", {"value": "0x2", "mask": "0xff0f"}),
        ("ternary", "0b1*", {"value": "0x2", "mask": "0xfffe"}),
        ("ternary", "7", {"value": "0x7", "mask": "0xffff"}),
        ("ternary", "0x1234/4", {"value": "0x1000", "mask": "0xf000"}),
        ("ternary", "*", None),
        ("lpm", "0x1234/4", {"value": "0x1234", "prefix": 4}),
        ("lpm", "0x12**", {"value": "0x1200", "prefix": 8}),
        ("lpm", "0x1234", {"value": "0x1234", "prefix": 16}),
        ("lpm", "*", {"value": "0x0", "prefix": 0}),
        ("range", "1..0x10", {"low": "0x1", "high": "0x10"}),
        ("range", "7", {"low": "0x7", "high": "0x7"}),
        ("range", "*", None),
        ("optional", "7", "0x7"),
        ("optional", "*", None),
    ],
)
def test_values_of_keys(kind: str, text: str, match: Any) -> None:
    statement: Any = parse(f"add t k:{text} a()", "test.stf")[0]
    assert Key("k", kind, 16).to_match(statement.keys[0][1]) == match


def test_a_key_that_is_not_given_matches_everything() -> None:
    for kind, match in (("exact", "0x0"), ("lpm", {"value": "0x0", "prefix": 0})):
        assert Key("k", kind, 16).to_match(None) == match
    for kind in ("ternary", "range", "optional"):
        assert Key("k", kind, 16).to_match(None) is None


def test_of_a_prefix_only_the_end_is_open() -> None:
    with pytest.raises(UnknownName, match="only the last digits"):
        Key("k", "lpm", 16).to_match(Value(0x1004, mask=0xF00F))


def test_counters_may_count_more_than_the_packet() -> None:
    program = Program(STF / "numbers.json")
    packets = "packet 0 01000000000001\npacket 0 0100000000000102\n"
    for overhead, count in ((0, 15), (4, 23)):
        text = f"{packets}check_counter tasks(1) bytes == {count}\nexpect 1"
        execution.run(program, parse(text, "test.stf"), executable("nagi-switch"), overhead)


def test_an_empty_packet_is_none() -> None:
    run(
        MATCHES, "packet 1\nno_packet\n@check_table fixed misses == 0\n@check_table fixed hits == 0"
    )


def test_statements_know_their_place() -> None:
    statements = parse("# one\n\n  PACKET 1 00 11\nexpect 2 0* $\n", "a.stf")
    assert [each.location for each in statements] == [Location("a.stf", 3), Location("a.stf", 4)]


COMPILED = (STF / "matches.json").read_text()
FAKE_COMPILER = """#!/bin/sh
# Makes of NAME.p4 what NAME.made has, as p4c does of a program.
case "$1" in --version) echo "p4c-bm2-ss"; echo "Version 1.2.3 (SHA: x)"; exit;; esac
while [ $# -gt 1 ]; do
    case "$1" in -o) output=$2;; --p4runtime-files) echo >"$2";; esac
    shift
done
test -f "${1%.p4}.made" || { echo "$1(1): syntax error" >&2; exit 1; }
cp "${1%.p4}.made" "$output"
"""


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """Programs with what a compiler would make of them, in the layout of p4c's testdata."""
    directory = tmp_path / "testdata" / "p4_16_samples"
    directory.mkdir(parents=True)
    text = '#include <core.p4>\n#include "v1model.p4"\n'
    unloadable = COMPILED.replace('"match_type" : "range"', '"match_type" : "about"')
    assert unloadable != COMPILED
    made = {"passes": COMPILED, "fails": COMPILED, "loads": COMPILED, "refused": unloadable}
    for name in (*made, "broken"):
        (directory / f"{name}.p4").write_text(text)
    for name, json_text in made.items():
        (directory / f"{name}.made").write_text(json_text)
    (directory / "psa.p4").write_text("#include <psa.p4>\n")
    (directory / "passes.stf").write_text("packet 0 03 1234 0000 00\nexpect 1 03 1234 0000 01 $\n")
    (directory / "fails.stf").write_text("packet 0 03 1234 0000 00\nexpect 1 03 1234 0000 02 $\n")
    return directory.parent


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    """Return a script that stands for the compiler."""
    file = tmp_path / "p4c"
    file.write_text(FAKE_COMPILER)
    file.chmod(0o755)
    return file


def test_samples_of_a_compiler_are_judged(samples: Path, fake: Path, tmp_path: Path) -> None:
    compiler = Compiler(str(fake))
    assert compiler.find_version() == "p4c 1.2.3"
    check = Conformance(compiler, executable("nagi-switch"), tmp_path / "work").check
    results = [check(sample) for sample in find_samples(samples)]
    outcomes = {Path(result.sample).stem: result.outcome for result in results}
    assert outcomes == {
        "broken": NOT_COMPILED, "fails": FAILED, "loads": LOADS, "passes": PASSED,
        "refused": REFUSED,
    }  # fmt: skip
    texts = {Path(result.sample).stem: result.text for result in results}
    assert "fails.stf:2: port 1: digit 11" in texts["fails"]
    assert "about" in texts["refused"]
    assert texts["broken"] == "broken.p4(1): syntax error"
    assert "1 of 2 STF tests pass; 3 of 4 programs load" in format_report(results)
    # what was compiled once is not compiled again
    again = [check(sample) for sample in find_samples(samples)]
    assert again == results


def test_the_command_fails_if_a_sample_does(
    samples: Path, fake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def status(*options: str, directory: Path = samples) -> int:
        common = ["--p4c", str(fake), "--work", str(tmp_path / "work")]
        return conformance.main([*common, "--samples", str(directory), *options])

    assert status("--json", str(tmp_path / "results.json")) == 1
    assert "fails.p4: failed\n    " in capsys.readouterr().out
    results = json.loads((tmp_path / "results.json").read_text())
    assert {result["outcome"] for result in results} == {
        PASSED, FAILED, LOADS, REFUSED, NOT_COMPILED,
    }  # fmt: skip
    assert status("--only", "passes") == 0
    assert "1 of 1 STF tests pass; 1 of 1 programs load" in capsys.readouterr().out
    assert status("--only", "nobody") == 2
    assert status(directory=tmp_path / "nowhere") == 2
    assert "SAMPLES=DIRECTORY" in capsys.readouterr().err


def test_programs_are_compiled_anew(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, compiled = tmp_path / "a.p4", tmp_path / "a.json"
    source.write_text("")
    source.with_suffix(".made").write_text("{}\n")
    monkeypatch.setenv("P4C", str(fake))
    assert recompile.main([str(source)]) == 2  # another version than the one that is committed
    assert "compiled-with.txt says p4c" in capsys.readouterr().err
    monkeypatch.setattr(recompile, "VERSION", tmp_path / "compiled-with.txt")
    recompile.VERSION.write_text("p4c 1.2.3\n")
    assert recompile.main([str(source), "--check"]) == 1
    assert "a.json: stale" in capsys.readouterr().out and not compiled.exists()
    assert recompile.main([str(source)]) == 0
    assert compiled.read_text() == "{}\n"
    assert recompile.main([str(source), "--check"]) == 0
    source.with_suffix(".made").unlink()
    assert recompile.main([str(source)]) == 2
    assert "a.p4(1): syntax error" in capsys.readouterr().err


def test_there_must_be_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P4C", "/proc/nowhere/p4c-bm2-ss")
    with pytest.raises(CompilerError, match="no /proc/nowhere/p4c-bm2-ss here; name it: P4C="):
        Compiler()


def test_a_program_that_does_not_load_is_refused(tmp_path: Path) -> None:
    text = COMPILED.replace('"match_type" : "range"', '"match_type" : "about"')
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(Refused, match="about"):
        execution.run(
            Program(tmp_path / "bad.json"), parse("wait", "x.stf"), executable("nagi-switch")
        )
