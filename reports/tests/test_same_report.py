# SPDX-License-Identifier: Apache-2.0
"""A report depends on its runs alone.

It depends neither on settings of its user, nor on the characters of its texts.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from nagi_contracts.paths import SCHEMAS, executable
from nagi_reports.glyphs import MISSING, replace_missing_glyphs

EXAMPLE = SCHEMAS / "example" / "campaign"
# What a user may have, and what none of it may change. LaTeX is not installed here.
_MATPLOTLIBRC = "text.usetex: True\nfont.size: 20\naxes.grid: True\nsavefig.dpi: 33\n"


def write_reports(results: Path, home: Path, **environment: str) -> dict[str, bytes]:
    """Return the files of the reports that `nagi report` writes in an environment."""
    for layout in ("pdf", "html"):
        done = subprocess.run(
            [executable("nagi"), "report", results, "--format", layout],
            cwd=home,
            env={"PATH": os.environ["PATH"], "HOME": str(home), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
    files = [results / "report.pdf", results / "report.html", *(results / "figures").iterdir()]
    return {str(file.relative_to(results)): file.read_bytes() for file in files}


def test_no_setting_of_a_user_changes_a_byte(tmp_path):
    plain, hostile = tmp_path / "plain", tmp_path / "hostile"
    for home in (plain, hostile):
        home.mkdir()
    settings = hostile / ".config" / "matplotlib" / "matplotlibrc"
    settings.parent.mkdir(parents=True)
    for file in (settings, hostile / "matplotlibrc"):
        file.write_text(_MATPLOTLIBRC)
    results = Path(shutil.copytree(EXAMPLE, tmp_path / "results"))
    before = write_reports(results, plain)
    after = write_reports(
        results,
        hostile,
        MPLBACKEND="nonsense",
        MATPLOTLIBRC=str(settings),
        LC_ALL="POSIX",
        TZ="Pacific/Kiritimati",
        COLUMNS="0",
        LINES="0",
        PAGER="false",
        FORCE_COLOR="1",
        PYTHONHASHSEED="4",
        SOURCE_DATE_EPOCH="1",
        TYPST_FONT_PATHS=str(hostile),
    )
    assert before.keys() == after.keys()
    assert [name for name in before if before[name] != after[name]] == []


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("Größe $x^2$ \\ #emph[hi] 100 %", "Größe $x^2$ \\ #emph[hi] 100 %"),
        ("安全 \u200b\u202eab", f"{MISSING}{MISSING} ab"),
        ("", "example"),
    ],
)
def test_any_title_makes_a_report(tmp_path, title, shown):
    """PDF/UA has no text without glyphs: a Chinese title caused a traceback after all runs."""
    results = Path(shutil.copytree(EXAMPLE, tmp_path / "results"))
    file = results / "campaign.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "title": title}))
    write_reports(results, tmp_path)
    text = subprocess.run(
        ["pdftotext", "-l", "1", results / "report.pdf", "-"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert text.splitlines()[0] == shown
    assert title.strip() in (results / "report.html").read_text() or "$" in title


def test_what_has_no_glyph_is_shown_to_be_there():
    assert replace_missing_glyphs("a安b") == f"a{MISSING}b"
    assert replace_missing_glyphs("naïve ∞ 10\u00a0ms α") == "naïve ∞ 10\u00a0ms α"
    assert replace_missing_glyphs("a\u0301\u200d") == "a\u0301"
