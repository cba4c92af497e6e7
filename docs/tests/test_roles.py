# SPDX-License-Identifier: Apache-2.0
"""What the Ansible collection says of itself is what its roles say, and is all there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import roles
import yaml
from nagi_contracts import paths


@pytest.mark.parametrize("path", roles.readmes(), ids=lambda path: path.parent.name)
def test_readmes_are_up_to_date(path: Path) -> None:
    assert path.exists() and path.read_text() == roles.readmes()[path], "run `make format`"


def test_links_of_readmes_lead_somewhere() -> None:
    for path, text in roles.readmes().items():
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert (path.parent / target).exists(), f"{path}: {target}"


def test_every_role_describes_its_variables() -> None:
    """What has a default can be set; what can be set is described, once."""
    described: dict[str, str] = {}
    directories = {path.name for path in (paths.COLLECTION / "roles").iterdir() if path.is_dir()}
    assert directories == set(roles.names())
    for name in roles.names():
        options = roles.read(name).options
        for option in options:
            assert option not in described, f"{option}: {name} and {described[option]}"
            described[option] = name
        defaults = paths.COLLECTION / "roles" / name / "defaults" / "main.yml"
        found = yaml.safe_load(defaults.read_text()) if defaults.exists() else {}
        assert set(found or {}) <= set(options), name


def test_variables_of_inventories_and_manuals_are_described() -> None:
    known = {option for name in roles.names() for option in roles.read(name).options}
    pages = [
        paths.COLLECTION / "inventories" / "physical.example.yml",
        paths.ROOT / "nagi" / "labs" / "cells.py",
        paths.ROOT / "docs" / "real-hosts.md",
        paths.ROOT / "docs" / "first-evening.md",
    ]
    for page in pages:
        # Not Python's: nagi_contracts and the like, nor what is part of a longer name.
        named = set(re.findall(r"(?<![\w.-])nagi_[a-z0-9_]+(?=[:\"`])", page.read_text()))
        assert named <= known, page
