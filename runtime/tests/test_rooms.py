# SPDX-License-Identifier: Apache-2.0
"""Which room of the C++ code may include whose headers."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INCLUDE = re.compile(r'^#include "([^"]+/[^"]+)"', re.MULTILINE)
RUNTIME = ["control/", "io/", "runtime/", "service/"]
READING = ["model/object_reader.hpp", "model/json_text.hpp", "model/text.hpp"]

# A room, and how what it includes by a path may begin.
ALLOWED = {
    "link-emulator/model": ["model/"],
    "runtime": [*RUNTIME, *READING, "model/units.hpp", "model/interface.hpp"],
    "runtime/io": ["io/", "runtime/version.hpp"],
    "link-emulator/daemon": ["daemon/", "model/", *RUNTIME],
    "link-emulator/fpga/simulation": [
        *("simulation/", "include/", "daemon/fpga_protocol.hpp", "daemon/fpga_socket.hpp"),
        *("model/", "io/", "control/command_line.hpp", "runtime/"),
    ],
    # What is beside nagi there includes ns-3's own.
    "link-emulator/bench": ["io/", "model/", "ns3/"],
    "link-emulator/uhd-double": [
        "model/box_muller.hpp",
        "model/channel_draw.hpp",
        "model/channel_key.hpp",
        "model/kaiser.hpp",
    ],
    "p4/switch/daemon": [
        *("switch/daemon/", "program/", "traffic/", "model/", "native/", *RUNTIME),
    ],
    "hosts/traffic": ["arithmetic/", "datagrams/", "io/", "runtime/version.hpp"],
    "hosts/tcp/loader": ["../glue/", "io/", "runtime/version.hpp"],
}
DOCUMENTED = ROOT / "link-emulator" / "gr-nagi" / "docs" / "README.md"


def included(room: str) -> set[tuple[str, str]]:
    """Files of a room, its tests aside, and what of other folders each includes."""
    folder = ROOT / room
    return {
        (str(file.relative_to(folder)), header)
        for file in folder.rglob("*")
        if file.suffix in (".c", ".cc", ".cpp", ".h", ".hpp")
        and not {"tests", "fuzz"} & set(file.relative_to(folder).parts)
        for header in INCLUDE.findall(file.read_text())
    }


@pytest.mark.parametrize("room", ALLOWED)
def test_a_room_includes_headers_of_rooms_below_it_alone(room):
    found = included(room)
    assert found
    allowed = tuple(ALLOWED[room])
    assert {each for each in found if not each[1].startswith(allowed)} == set()


def test_the_gnu_radio_module_includes_the_headers_that_its_manual_lists_alone():
    listed = set(re.findall(r"`((?:model|io)/\w+\.hpp)`", DOCUMENTED.read_text()))
    assert {header for _, header in included("link-emulator/gr-nagi")} == listed
