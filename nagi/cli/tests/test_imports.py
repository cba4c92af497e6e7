# SPDX-License-Identifier: Apache-2.0
"""A subcommand imports no library that takes long to import and that it does not need."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from nagi.cli.main import COMMANDS, make_whole_command
from nagi_contracts.paths import ROOT, SCHEMAS

CAMPAIGN = SCHEMAS / "example" / "campaign"
CAPTURE = next(CAMPAIGN.glob("runs/*/*.pcap*"))
EXPERIMENT = ROOT / "experiments" / "achievement-2008.yaml"

_TABLES = {"numpy", "pandas", "pyarrow"}
_LARGE = {"matplotlib", "ansible_runner", "distributed"}
# Typer itself imports pydantic when it parses an argument.
_SLOW = {*_TABLES, *_LARGE, "ruamel.yaml", "nagi_contracts.plan", "nagi.spec", "nagi.commands"}

# Prints which modules a command has imported, after the command.
_SCRIPT = """
import atexit, sys
from nagi.cli.main import main
watched, sys.argv = sys.argv[1].split(","), ["nagi", *sys.argv[2:]]
atexit.register(lambda: print("imported:", *(name for name in watched if name in sys.modules)))
main()
"""


def list_imported(modules: set[str], arguments: list[str], **environment: str) -> list[str]:
    """Return those of `modules` that nagi imports for a command line."""
    process = subprocess.run(
        [sys.executable, "-c", _SCRIPT, ",".join(sorted(modules)), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )
    assert "Traceback" not in process.stderr, process.stderr
    last_line = process.stdout.splitlines()[-1]
    assert last_line.startswith("imported:"), process.stdout
    return last_line.split()[1:]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_the_list_of_subcommands_needs_none_of_them(arguments):
    assert list_imported({*_SLOW, "pydantic"}, arguments) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["plam"],
        ["plan"],
        ["plan", "--nonsense"],
        ["lab", "provision", "--nonsense"],
        *([name, "--help"] for name in COMMANDS if name != "metrics"),
    ],
)
def test_help_and_errors_of_usage_need_only_options(arguments):
    assert list_imported(_SLOW, arguments) == []


@pytest.mark.parametrize(
    "words",
    ["nagi ", "nagi pl", "nagi plan --", "nagi run x.yaml --lab ", "nagi doctor ", "nagi lab "],
)
def test_completion_needs_only_options(words):
    imported = list_imported(
        _SLOW,
        [],
        _NAGI_COMPLETE="complete_bash",
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split(" ")) - 1),
    )
    assert imported == []


@pytest.mark.parametrize(
    ("arguments", "unneeded"),
    [
        (["new", "a-path", "--out", "/dev/null/a-path.yaml"], _TABLES | _LARGE),
        (["schemes", "--lab", "netns"], _TABLES | _LARGE),
        (["plan", str(EXPERIMENT), "--lab", "netns"], _TABLES | _LARGE),
        (["show", str(CAMPAIGN)], {*_LARGE, "nagi.spec", "nagi.labs.lab"}),
        (["metrics", str(CAPTURE)], _TABLES | _LARGE),
        (["compare", str(CAMPAIGN), str(CAMPAIGN)], _LARGE),
        (["report", str(CAMPAIGN), "--format", "moon"], {"ansible_runner", "distributed"}),
        (["run", "none.yaml"], _TABLES | _LARGE),
    ],
)
def test_a_subcommand_does_not_import_what_it_does_not_need(arguments, unneeded):
    assert list_imported(unneeded, arguments) == []


def test_the_table_has_the_summaries_of_the_docstrings():
    commands = make_whole_command().commands
    assert {name: command.help for name, command in commands.items()} == {
        name: command.summary for name, command in COMMANDS.items()
    }
