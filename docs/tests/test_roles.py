# SPDX-License-Identifier: Apache-2.0
"""The documentation of the Ansible collection is generated from its roles, and complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import roles
import yaml
from nagi_contracts import paths


@pytest.mark.parametrize("path", roles.make_readmes(), ids=lambda path: path.parent.name)
def test_readmes_are_up_to_date(path: Path) -> None:
    assert path.exists() and path.read_text() == roles.make_readmes()[path], "run `make format`"


def test_links_of_readmes_lead_somewhere() -> None:
    for path, text in roles.make_readmes().items():
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert (path.parent / target).exists(), f"{path}: {target}"


def test_every_role_describes_its_variables() -> None:
    """Variables with a default are options, and each option is described once."""
    described: dict[str, str] = {}
    directories = {path.name for path in (paths.COLLECTION / "roles").iterdir() if path.is_dir()}
    assert directories == set(roles.list_names())
    for name in roles.list_names():
        variables = roles.read_role(name).variables
        for option in variables:
            assert option not in described, f"{option}: {name} and {described[option]}"
            described[option] = name
        defaults = paths.COLLECTION / "roles" / name / "defaults" / "main.yml"
        found = yaml.safe_load(defaults.read_text()) if defaults.exists() else {}
        assert set(found or {}) <= set(variables), name


def test_variables_of_inventories_and_manuals_are_described() -> None:
    known = {option for name in roles.list_names() for option in roles.read_role(name).variables}
    pages = [
        paths.COLLECTION / "inventories" / "physical.example.yml",
        paths.ROOT / "nagi" / "labs" / "cells.py",
        paths.ROOT / "docs" / "real-hosts.md",
        paths.ROOT / "docs" / "first-evening.md",
    ]
    for page in pages:
        # Python's packages, such as nagi_contracts, and parts of longer names are no variables.
        named = set(re.findall(r"(?<![\w.-])nagi_[a-z0-9_]+(?=[:\"`])", page.read_text()))
        assert named <= known, page
