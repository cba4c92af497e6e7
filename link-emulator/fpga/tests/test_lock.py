# SPDX-License-Identifier: Apache-2.0
"""The lock of a board: where other users could put links, a link would have been followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from nagi_fpga import loading
from nagi_fpga.loading import BoardError, Lock, Place


def place() -> Place:
    return Place("colorlight-i9", address="192.168.1.50")


def test_a_link_in_the_place_of_a_lock_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    lock = Lock(place(), str(tmp_path))
    (name,) = (file.name for file in tmp_path.iterdir() if file.name != "victim")
    lock.release()
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(victim)
    with pytest.raises(BoardError, match="no lock: Too many levels"):
        Lock(place(), str(tmp_path))
    assert victim.read_text() == "precious"


def test_locks_are_in_a_directory_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() or 12345)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    if os.getuid() == 0:  # it is another's, then
        with pytest.raises(BoardError, match="is not this user's own directory"):
            loading._lock_directory()
        os.chown(tmp_path / "nagi" / "boards", 12345, -1)
    directory = loading._lock_directory()
    assert Path(directory).stat().st_mode & 0o777 == 0o700
    Path(directory).chmod(0o777)
    with pytest.raises(BoardError, match="is not this user's own directory"):
        loading._lock_directory()
