# SPDX-License-Identifier: Apache-2.0
"""Object files that attack nagi-tcp's reader: each is described, or refused by one line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from nagi_contracts.paths import executable

FILES = Path(__file__).parents[1] / "fuzz" / "object"
# Copies of the file `scheme` with offsets outside of the file, or with unknown types.
REFUSED = ("cut", "x86", "types-outside", "rodata-outside", "zero-rodata", "zero-struct-ops")


def describe(name):
    return subprocess.run(
        [executable("nagi-tcp"), "describe", FILES / name],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", sorted(file.name for file in FILES.iterdir()))
def test_object_file_is_described_or_refused(name):
    done = describe(name)
    assert done.returncode in (0, 2), done
    if done.returncode == 0:
        assert json.loads(done.stdout)["scheme"] == "small"
    else:
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", REFUSED)
def test_object_file_whose_parts_are_not_in_it_is_refused(name):
    assert describe(name).returncode == 2
