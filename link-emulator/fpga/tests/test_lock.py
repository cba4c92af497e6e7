# SPDX-License-Identifier: Apache-2.0
"""Tests that one process of a host can hold the lock of a board, whatever its user."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from nagi_fpga.errors import BoardError
from nagi_fpga.loading import BoardLocation, Lock

LOCATION = BoardLocation("colorlight-i9", address=f"192.0.2.{os.getpid() % 250}")
TRY = f"""
from nagi_fpga.loading import BoardError, Lock, BoardLocation
try:
    Lock(BoardLocation("colorlight-i9", address="{LOCATION.address}"))
except BoardError as error:
    print(error)
"""


def lock_in_other_process(**options: object) -> str:
    command = [sys.executable, "-c", TRY]
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


def test_one_process_at_a_time_has_a_board():
    lock = Lock(LOCATION)
    try:
        assert f"is in use by process {os.getpid()}" in lock_in_other_process()
    finally:
        lock.release()
    assert lock_in_other_process() == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_another_user_s_process_does_not_have_it_too():
    lock = Lock(LOCATION)
    try:
        python_path = os.pathsep.join(path for path in sys.path if path)
        output = lock_in_other_process(user="nobody", env={"PYTHONPATH": python_path})
        assert f"is in use by process {os.getpid()}" in output
    finally:
        lock.release()


def test_it_goes_with_its_process():
    code = TRY + "\nimport os; os._exit(0)"
    subprocess.run([sys.executable, "-c", code], check=True)
    Lock(LOCATION).release()
    with pytest.raises(BoardError, match="in use"):
        first = Lock(LOCATION)
        try:
            Lock(LOCATION)
        finally:
            first.release()
