# SPDX-License-Identifier: Apache-2.0
"""Test links on boards: a board's limits are reported with key and cure."""

from __future__ import annotations

import pytest
from fpga_specs import FPGA, change_lines, plan_points
from nagi.campaign.selection import require_lab
from nagi.cli.main import make_app
from nagi.labs.cells import BOARD, read_cells
from nagi_contracts.errors import InputError
from nagi_contracts.plan import FpgaPlan
from typer.testing import CliRunner

ON_BOARD = "    emulator: fpga\n    fpga: {by: board, address: 192.168.251.50, cable: ft232}\n"
WIRED = "  wired: {between: [S, N], rate: 10 Mb/s, delay: 30 ms, queue: 1 bdp}\n"
ALL = change_lines(
    ("    emulator: fpga\n", ON_BOARD),
    (
        WIRED,
        "  wired:\n    between: [S, N]\n    rate: 10 Mb/s\n    delay: 30 ms\n    queue: 1 bdp\n"
        "    emulator: fpga\n    fpga: {by: board, board: ulx3s-85f, serial: /dev/ttyUSB0}\n",
    ),
)


def test_a_link_on_a_board_is_planned(tmp_path):
    (plan,) = plan_points(tmp_path, ALL)
    assert plan.link("wireless").fpga == FpgaPlan(
        by="board", board="colorlight-i9", address="192.168.251.50", cable="ft232"
    )
    assert plan.link("wired").fpga == FpgaPlan(by="board", board="ulx3s-85f", serial="/dev/ttyUSB0")
    assert plan.carried_by("fpga") == plan.links
    assert {link.fpga.by for link in plan.links} == {"board"}
    (its,) = plan_points(tmp_path, FPGA)
    assert plan.seed == its.seed


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("address: 192.168.251.50, ", "", "the board has neither `address` nor `serial`; give one"),
        ("cable: ft232", "serial: /dev/ttyUSB1", "the board has both `address` and `serial`; give"),
        ("192.168.251.50", "192.168.251", "'192.168.251' is no IPv4 address"),
        ("by: board, address: 192.168.251.50", "by: simulated", "`cable` is for boards"),
        ("board: ulx3s-85f", "board: arty", "arty"),
        ("    emulator: fpga\n    fpga: {by: board, board: ulx3s-85f, serial: /dev/ttyUSB0}\n", "",
         "a board carries this link, but no board carries wired; give each link a board, or write"),
        ("serial: /dev/ttyUSB0", "address: 192.168.251.50", "two links use the board at 192.168"),
        ("rate: 10 Mb/s", "rate: 200 Mb/s", "the ports of a ulx3s-85f have 100 Mb/s"),
        ("delay: 20 ms", "delay: 20 s", "memory holds 17 MB in 1,024"),
        ("board: ulx3s-85f, serial: /dev/ttyUSB0", "board: colorlight-5a-75b, address: 10.0.0.1",
         "a colorlight-5a-75b is controlled over its UART only; give its serial device"),
        ("board: ulx3s-85f, serial: /dev/ttyUSB0}", "board: colorlight-5a-75b, serial: /dev/a}\n"
         "    loss: {model: poisson, rate: 1 %}", "of a colorlight-5a-75b has no Poisson losses"),
    ],
)  # fmt: skip
def test_what_a_board_cannot_do_is_refused(tmp_path, old, new, says):
    with pytest.raises(InputError) as raised:
        plan_points(tmp_path, change_lines((old, new), text=ALL))
    assert says in str(raised.value), raised.value
    assert "links.w" in str(raised.value)


@pytest.mark.parametrize("lab", ["virtual", "netns"])
def test_a_board_needs_real_hosts(tmp_path, lab):
    plans = plan_points(tmp_path, ALL)
    with pytest.raises(
        InputError, match=r"on a board, and the .* lab has no boards; give the hosts"
    ):
        require_lab(plans, lab)
    require_lab(plans, "physical")


def test_the_emulator_of_an_inventory_has_boards(tmp_path):
    inventory = tmp_path / "lab.yml"
    inventory.write_text(
        """\
cells:
  children:
    bench1:
      hosts:
        alice: {nagi_node: S, nagi_links: {wired: enp2s0}}
        bob: {nagi_node: N, nagi_links: {wired: enp2s0}}
        heron: {nagi_node: emulator, nagi_links: {wired: {S: board, N: board}}}
"""
    )
    (cell,) = read_cells(inventory)
    emulator = cell.hosts["emulator"]
    assert emulator.ports == {"wired": {"S": BOARD, "N": BOARD}}
    assert emulator.list_interfaces() == []


def test_doctor_says_how_far_a_board_is(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(make_app(), ["doctor", "fpga", "--serial", "/dev/nowhere"])
    assert done.exit_code == 2
    assert "there is no openFPGALoader" in done.output
    loader = tmp_path / "openFPGALoader"
    loader.write_text("#!/bin/sh\necho v1\n")
    loader.chmod(0o755)
    done = CliRunner().invoke(make_app(), ["doctor", "fpga", "--serial", "/dev/nowhere"])
    assert "/dev/nowhere: No such file or directory" in done.output
    assert "plug in the serial cable" in done.output


def test_doctor_of_something_else_is_refused():
    done = CliRunner().invoke(make_app(), ["doctor", "fpga", "--board", "arty"])
    assert "--board arty: there is no such board" in str(done.exception)
    done = CliRunner().invoke(make_app(), ["doctor", "fpga", "--board", "colorlight-5a-75b"])
    assert "over its UART only; give `--serial DEVICE`" in str(done.exception)
