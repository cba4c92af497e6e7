# SPDX-License-Identifier: Apache-2.0
"""Provide fixtures to tests of several files."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from nagi.cli import main as cli


@pytest.fixture
def nagi(monkeypatch, capsys):
    """Provide a function that runs nagi in this process.

    The function returns the exit status, the output and the error output.
    """

    def command(*arguments: object) -> SimpleNamespace:
        monkeypatch.setattr(sys, "argv", ["nagi", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as left:
            cli.main()
        said = capsys.readouterr()
        return SimpleNamespace(status=left.value.code, out=said.out, err=said.err)

    return command
