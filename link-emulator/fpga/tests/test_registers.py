# SPDX-License-Identifier: Apache-2.0
"""The register map and what is generated from it."""

from pathlib import Path

import pytest
from nagi_fpga import registers


def test_what_is_generated_is_up_to_date() -> None:
    old = [
        str(path) for path, text in registers.generate_files().items() if path.read_text() != text
    ]
    assert not old, "run python -m nagi_fpga.registers"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "name: build_id, address: 0x008",
            "name: build_id, address: 0x004",
            "already the address of map_version",
        ),
        ("name: build_id, address: 0x008", "name: build_id, address: 0x00a", "not a valid address"),
        ("backward: 0x200", "backward: 0x120", "give another address"),
        ("backward: 0x200", "backward: 0xff0", "not a valid address"),
    ],
)
def test_registers_do_not_overlap(before: str, after: str, said: str, tmp_path: Path) -> None:
    text = registers.DESCRIPTION.read_text()
    assert before in text
    changed = tmp_path / "registers.yaml"
    changed.write_text(text.replace(before, after))
    with pytest.raises(ValueError, match=said):
        registers.read_map(changed)
