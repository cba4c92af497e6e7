# SPDX-License-Identifier: Apache-2.0
"""The role fpga on a throw-away host installs what a board needs, and removes it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from provisioning import Provision

pytestmark = pytest.mark.slow  # a host boots
BOARD = "colorlight-5a-75b"
HOST = {"nagi_node": "emulator", "nagi_links": {"wired": {"S": "board", "N": "board"}}}
ONLY = ("--tags", "fpga")
UNIT = "nagi-board-address.service"
STATE = """
for place in /etc /usr/local; do
    find $place -type d -printf '%p %m %u %g\\n' -o -printf '%p %m %u %g %s %l\\n' 2>&1
done | sort
ip -brief address show dev board0
true
"""


def plug_in(machine) -> None:
    machine.run("ip", "link", "add", "board0", "type", "veth", "peer", "name", "far-board0")


def address_of(machine) -> str:
    return machine.run("ip", "-brief", "address", "show", "dev", "board0")


@pytest.fixture(scope="module")
def host(boot_host):
    machine = boot_host()
    plug_in(machine)
    # In the place of the package, which is not to be had here.
    loader = "printf '#!/bin/sh\\necho 0.10.0\\n' >/usr/bin/openFPGALoader"
    machine.run("sh", "-c", f"{loader}; chmod 755 /usr/bin/openFPGALoader")
    return machine


@pytest.fixture(scope="module")
def provision(host, tmp_path_factory):
    return Provision({"heron": host}, tmp_path_factory.mktemp("ansible"))


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, object]:
    (tmp_path / BOARD).mkdir()
    (tmp_path / BOARD / "nagi.bit").write_bytes(b"bits")
    (tmp_path / BOARD / "image.json").write_text("{}")
    return HOST | {
        "nagi_board": BOARD,
        "nagi_board_images": str(tmp_path),
        "nagi_board_packages": [],
        "nagi_board_interface": "board0",
    }


def test_what_a_board_needs_comes_and_goes(host, provision, variables):
    before = host.run("sh", "-c", STATE)
    first = provision(*ONLY, heron=variables)
    assert first.status == 0, first.output
    assert host.run("cat", f"/usr/local/lib/nagi/fpga/{BOARD}/nagi.bit") == "bits"
    assert 'GROUP="plugdev"' in host.run("cat", "/etc/udev/rules.d/61-nagi-board.rules")
    assert host.run("systemd-analyze", "verify", f"/etc/systemd/system/{UNIT}") == ""
    assert "192.168.251.1/24" in address_of(host)
    assert provision(*ONLY, heron=variables).changed["heron"] == 0

    back = provision.deprovision()
    assert back.status == 0, back.output
    assert host.run("sh", "-c", STATE) == before


def test_the_address_waits_for_its_interface(host, provision, variables):
    assert provision(*ONLY, heron=variables).status == 0
    host.run("ip", "link", "delete", "board0")
    host.run("systemctl", "restart", "--no-block", UNIT)
    while host.run("systemctl", "show", "--value", "--property=NRestarts", UNIT) in ("", "0"):
        time.sleep(0.1)
    plug_in(host)
    while "192.168.251.1/24" not in address_of(host):
        time.sleep(0.1)
    assert provision.deprovision().status == 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"nagi_board": "arty"}, "nagi_board"),
        ({"nagi_board_images": ""}, "has written the bitstream"),
        (
            {"nagi_board_images": "/proc/nowhere"},
            "/proc/nowhere/colorlight-5a-75b/image.json does not exist",
        ),
        ({"nagi_board_interface": "eth9"}, "there is no interface eth9"),
        ({"nagi_board": "none"}, "no board uses this interface"),
        ({"nagi_node": "S", "nagi_links": {"wired": "board0"}}, "this host is not the emulator"),
    ],
    ids=["choice", "images", "directory", "interface", "none", "node"],
)
def test_what_is_wrong_is_refused(host, provision, variables, wrong, said):
    before = host.run("sh", "-c", STATE)
    refused = provision(*ONLY, heron=variables | wrong)
    assert refused.status != 0 and said in refused.output, refused.output
    assert host.run("sh", "-c", STATE) == before
