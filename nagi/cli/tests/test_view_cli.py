# SPDX-License-Identifier: Apache-2.0
"""The command `nagi view`, as users call it."""

from __future__ import annotations

import json
import shutil
import webbrowser
from functools import partial
from pathlib import Path

import pytest
from nagi_contracts.paths import SCHEMAS

EXAMPLE = SCHEMAS / "example" / "campaign"
(RUN,) = (path.name for path in (EXAMPLE / "runs").iterdir())


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """Return the list of pages that a browser was asked to show."""
    pages: list[str] = []
    monkeypatch.setattr(webbrowser, "open", pages.append)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.setenv("DISPLAY", ":7")
    return pages


@pytest.fixture
def view(nagi, opened):
    return partial(nagi, "view")


@pytest.fixture
def results(tmp_path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "some results"))


def test_the_page_is_beside_the_results_and_is_opened(view, results, opened):
    result = view(results)
    page = results / "explorer" / "index.html"
    assert result.status == 0, result.err
    assert result.out.splitlines()[-1] == str(page)
    assert opened == [page.resolve().as_uri()] and "%20" in opened[0]
    assert (results / "explorer" / "runs" / f"{RUN}.js").exists()
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_the_page_goes_where_it_is_asked_for(view, results, opened, tmp_path):
    result = view(results, "--out", tmp_path / "there" / "page", "--no-open", "--json")
    output = json.loads(result.out)
    assert output == {
        "schema_version": 1,
        "page": str(tmp_path / "there" / "page" / "index.html"),
        "runs": 1,
    }
    assert Path(output["page"]).exists() and opened == []
    assert not (results / "explorer").exists()


def test_without_a_display_nothing_is_opened(view, results, opened, monkeypatch):
    monkeypatch.delenv("DISPLAY")
    assert view(results).status == 0
    assert opened == []


def test_results_that_were_not_made_here_are_not_changed(view, results, tmp_path):
    content_before = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    assert view(results, "--no-open", "--out", tmp_path / "page").status == 0
    assert {
        path: path.read_bytes() for path in results.rglob("*") if path.is_file()
    } == content_before


def test_what_is_no_campaign_is_refused(view, results, tmp_path):
    for arguments, message in (
        ((tmp_path,), "this directory has no campaign; give the --out of `nagi run`"),
        ((results / "campaign.json",), "this is a file, not the directory of a campaign"),
        (
            (results, "--out", results),
            "contains other files than an explorer; give another directory",
        ),
    ):
        result = view(*arguments)
        assert (result.status, result.out) == (2, "") and message in result.err
        assert len(result.err.splitlines()) == 1
    (results / "runs" / RUN / "packets.parquet").write_bytes(b"no table")
    result = view(results)
    assert result.status == 2 and "packets.parquet: it has changed: its size or" in result.err
    assert not (results / "explorer" / "index.html").exists()
