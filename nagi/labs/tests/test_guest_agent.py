# SPDX-License-Identifier: Apache-2.0
"""The agent of guests is unpacked and compiled once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from nagi.labs import guest_agent
from nagi.labs.guest_agent import unpack_agent


def list_compiled(agent: Path) -> set[str]:
    """Return the names of the modules that have a compiled file."""
    return {path.name.split(".")[0] for path in agent.rglob("__pycache__/*.pyc")}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "nagi" / "agents"


def test_a_second_run_uses_the_agent_of_the_first(tmp_path, cache):
    agent = unpack_agent(tmp_path)
    assert agent.parent == cache and agent.stat().st_mode & 0o777 == 0o755
    assert {"run", "inspection", "names"} <= list_compiled(agent)
    compiled = {path: path.stat().st_mtime_ns for path in agent.rglob("*.pyc")}
    os.utime(agent, (0, 0))
    assert unpack_agent(tmp_path) == agent
    assert {path: path.stat().st_mtime_ns for path in agent.rglob("*.pyc")} == compiled
    assert agent.stat().st_mtime > 0  # it is marked as used


def test_another_python_compiles_again(tmp_path, cache, monkeypatch):
    first = unpack_agent(tmp_path)
    upgraded = tmp_path / "python3"
    upgraded.symlink_to("/bin/sh")  # another file; it is only looked at
    monkeypatch.setattr(guest_agent, "_PYTHON", upgraded)
    monkeypatch.setattr(guest_agent, "_unpack", lambda archive, target: target)
    assert unpack_agent(tmp_path) != first


def test_what_nobody_uses_is_removed(tmp_path, cache):
    cache.mkdir(parents=True)
    for name, age_s in (("old", 40 * 24 * 3600), ("recent", 3600)):
        (cache / name).mkdir()
        used_s = cache.stat().st_mtime - age_s
        os.utime(cache / name, (used_s, used_s))
    agent = unpack_agent(tmp_path)
    assert sorted(path.name for path in cache.iterdir()) == sorted([agent.name, "recent"])


def test_without_a_cache_the_agent_is_beside_the_run(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no directory can be made here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    agent = unpack_agent(tmp_path)
    assert agent == tmp_path / "agent" and list_compiled(agent)
