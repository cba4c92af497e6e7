# SPDX-License-Identifier: Apache-2.0
"""The site of the manuals builds without warnings, needs no network, and has a full reference."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from nagi.cli.main import make_whole_command
from nagi.verdict.limits import list_limits
from nagi_contracts import paths

pytest.importorskip("mkdocs", reason="`make docs` installs what builds the site")

# Tags whose address a browser loads with the page.
LOADS = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}


class _Loaded(HTMLParser):
    """The addresses that a browser loads for a page, and the page's text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in LOADS and given.get("rel") not in ("canonical", "next", "prev"):
            self.addresses.append(given.get(LOADS[tag]) or "")

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    command = [f"{sys.prefix}/bin/mkdocs", "build", "--strict", "--site-dir", str(target)]
    done = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def read_text(site: Path, page: str) -> str:
    return _Loaded((site / page).read_text(encoding="utf-8")).text


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        text = page.read_text(encoding="utf-8")
        away = [at for at in _Loaded(text).addresses if re.match(r"(https?:)?//", at)]
        assert not away, f"{page.relative_to(site)}: {away}"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(.?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_the_reference_has_every_command_and_option(site: Path) -> None:
    text = read_text(site, "reference/commands.html")
    commands = [("nagi", make_whole_command())]
    for name, command in commands:  # grows by the commands of each
        section = text.split(f"\n{name}\N{PILCROW SIGN}", 1)[1].split("\N{PILCROW SIGN}", 1)[0]
        for parameter in command.params:
            options = parameter.opts if parameter.param_type_name == "option" else []
            for option in options:
                assert option in section, f"{name} {option}"
        inner = getattr(command, "commands", {})
        commands += [(f"{name} {part}", each) for part, each in inner.items()]
    assert len(commands) > 10


def test_the_reference_has_every_key(site: Path) -> None:
    text = read_text(site, "reference/experiment.html")
    schema = json.loads((paths.SCHEMAS / "experiment.schema.json").read_text())
    for part in (schema, *schema["$defs"].values()):
        for key, value in part.get("properties", {}).items():
            assert key in text, key
            words = " ".join(re.sub(r"[`*_]", "", value["description"]).split())
            assert words in " ".join(text.replace("_", "").split()), f"{key}: {words}"


def test_the_reference_has_every_check(site: Path) -> None:
    text = read_text(site, "reference/certificate.html")
    for limits in list_limits().values():
        for name in limits:
            assert name in text
