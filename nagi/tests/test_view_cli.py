# SPDX-License-Identifier: Apache-2.0
"""The command `nagi view`, as its user gives it."""

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
    """What a browser was asked to show."""
    asked: list[str] = []
    monkeypatch.setattr(webbrowser, "open", asked.append)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.setenv("DISPLAY", ":7")
    return asked


@pytest.fixture
def view(nagi, opened):
    return partial(nagi, "view")


@pytest.fixture
def results(tmp_path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "some results"))


def test_the_page_is_beside_the_results_and_is_opened(view, results, opened):
    done = view(results)
    page = results / "explorer" / "index.html"
    assert done.status == 0, done.err
    assert done.out.splitlines()[-1] == str(page)
    assert opened == [page.resolve().as_uri()] and "%20" in opened[0]
    assert (results / "explorer" / "runs" / f"{RUN}.js").exists()
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_the_page_goes_where_it_is_asked_for(view, results, opened, tmp_path):
    done = view(results, "--out", tmp_path / "there" / "page", "--no-open", "--json")
    said = json.loads(done.out)
    assert said == {
        "schema_version": 1,
        "page": str(tmp_path / "there" / "page" / "index.html"),
        "runs": 1,
    }
    assert Path(said["page"]).exists() and opened == []
    assert not (results / "explorer").exists()


def test_without_a_display_nothing_is_opened(view, results, opened, monkeypatch):
    monkeypatch.delenv("DISPLAY")
    assert view(results).status == 0
    assert opened == []


def test_results_that_were_not_made_here_are_not_changed(view, results, tmp_path):
    before = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    assert view(results, "--no-open", "--out", tmp_path / "page").status == 0
    assert {path: path.read_bytes() for path in results.rglob("*") if path.is_file()} == before


def test_what_is_no_campaign_is_refused(view, results, tmp_path):
    for arguments, message in (
        ((tmp_path,), "no campaign here; give the --out of `nagi run`"),
        ((results / "campaign.json",), "a file, and no directory of a campaign"),
        ((results, "--out", results), "other files than an explorer; give another"),
    ):
        done = view(*arguments)
        assert (done.status, done.out) == (2, "") and message in done.err
        assert len(done.err.splitlines()) == 1
    (results / "runs" / RUN / "packets.parquet").write_bytes(b"no table")
    done = view(results)
    assert done.status == 2 and "packets.parquet: it is not what manifest.json says" in done.err
    assert not (results / "explorer" / "index.html").exists()
