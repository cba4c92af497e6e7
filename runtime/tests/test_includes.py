# SPDX-License-Identifier: Apache-2.0
"""Tests that C++ components include only headers of the components that they may use."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INCLUDE = re.compile(r'^#include "([^"]+/[^"]+)"', re.MULTILINE)
RUNTIME = ["base/", "control/", "io/", "runtime/", "service/"]

# A component's folder, and the prefixes of the headers it may include by a path.
ALLOWED = {
    "link-emulator/model": ["base/", "model/"],
    "runtime": RUNTIME,
    "runtime/base": ["base/"],
    "runtime/io": ["io/", "runtime/version.hpp"],
    "link-emulator/daemon": ["daemon/", "model/", *RUNTIME],
    "link-emulator/fpga/simulation": [
        *("simulation/", "include/", "daemon/fpga_protocol.hpp", "daemon/fpga_socket.hpp"),
        *("base/", "model/", "io/", "control/command_line.hpp", "runtime/"),
    ],
    # The programs for ns-3 include its headers.
    "link-emulator/bench": ["base/", "io/", "model/", "ns3/"],
    "link-emulator/radio/uhd-double": [
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
DOCUMENTED = ROOT / "link-emulator" / "radio" / "gr-nagi" / "docs" / "README.md"


def list_included(component: str) -> set[tuple[str, str]]:
    """Return (file, header) for each include by a path, without the component's tests."""
    folder = ROOT / component
    return {
        (str(file.relative_to(folder)), header)
        for file in folder.rglob("*")
        if file.suffix in (".c", ".cc", ".cpp", ".h", ".hpp")
        and not {"tests", "fuzz"} & set(file.relative_to(folder).parts)
        for header in INCLUDE.findall(file.read_text())
    }


@pytest.mark.parametrize("component", ALLOWED)
def test_a_component_includes_headers_of_components_below_it_alone(component):
    includes = list_included(component)
    assert includes
    allowed = tuple(ALLOWED[component])
    assert {include for include in includes if not include[1].startswith(allowed)} == set()


def test_the_gnu_radio_module_includes_the_headers_that_its_manual_lists_alone():
    listed = set(re.findall(r"`((?:base|model|io)/\w+\.hpp)`", DOCUMENTED.read_text()))
    assert {header for _, header in list_included("link-emulator/radio/gr-nagi")} == listed
