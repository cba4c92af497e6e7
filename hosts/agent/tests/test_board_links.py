# SPDX-License-Identifier: Apache-2.0
"""Links on boards, tested with simulated registers of boards.

The files of a run are those that nagi-link writes. A board that cannot be used is refused before
the run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from etherbone_double import Endpoint, Words
from nagi.backends.fpga.host import board_links
from nagi.backends.fpga.host.board_links import BoardLinks, find_problems
from nagi.records import packets
from nagi_agent.contracts import RunPlan
from nagi_contracts import plan as contracts
from nagi_contracts.links import Links
from nagi_fpga import loading
from nagi_fpga.etherbone import Etherbone
from nagi_fpga.loading import BoardLocation, Lock

EXAMPLE = Path(__file__).resolve().parents[3] / "experiments/schemas/example/campaign/runs"
BOARD, BUILD = "colorlight-5a-75b", 0x12345678
ADDRESS = "192.0.2.50"  # never reached: transports are replaced


@pytest.fixture
def plan() -> RunPlan:
    """Return the plan of the worked example with one link, which a board carries."""
    path = next(EXAMPLE.glob("*/plan.json"))
    written = json.loads(path.read_text())
    written["links"] = written["links"][:1]
    written["links"][0]["fpga"] = {"by": "board", "board": BOARD, "address": ADDRESS}
    return RunPlan.from_json(written)


@pytest.fixture
def images(tmp_path: Path) -> str:
    directory = tmp_path / "images" / BOARD
    directory.mkdir(parents=True)
    (directory / "nagi.bit").write_bytes(b"bits")
    image = {"build_id": f"{BUILD:08x}", "sha256": hashlib.sha256(b"bits").hexdigest()}
    (directory / "image.json").write_text(json.dumps(image))
    return str(tmp_path / "images")


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Words]:
    """Yield the registers of a board at ADDRESS that runs the right build."""
    words = Words(BOARD, BUILD)
    endpoint = Endpoint(words)

    def make_transport(place: BoardLocation) -> Etherbone:
        assert place.address == ADDRESS
        return Etherbone("127.0.0.1", port=endpoint.port, local_port=0, timeout_s=0.05, attempts=2)

    monkeypatch.setattr(loading, "open_transport", make_transport)
    monkeypatch.setattr(loading, "LOCK_PREFIX", f"nagi-test-{os.getpid()}-")
    monkeypatch.setattr(loading, "START_TIMEOUT_S", 0.2)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    yield words
    endpoint.close()


def test_a_board_that_is_ready_is_no_problem(plan: RunPlan, images: str, board: Words) -> None:
    assert find_problems([plan], images) == []
    assert (0x018, 1) not in board.writes  # it is not enabled


@pytest.mark.parametrize(
    ("changed", "says", "cure"),
    [
        ({0x1000: 0}, "does not run nagi's gateware", "make fpga"),
        ({0x004: 9}, "register map 9", "make fpga"),
        ({0x008: 0xBAD}, "runs build 00000bad, but .* is build 12345678", "openFPGALoader --board"),
        ({0x1004: 1}, "is not a colorlight-5a-75b", "give its kind in the experiment as `board`"),
        ({0x1008: 0}, "memory is not initialised in time", "load the bitstream again"),
        (
            {0x1020: 26214},
            "port a .* no link at 1000 Mb/s: .* 25.0 MHz, 100 Mb/s",
            "plug its cable",
        ),
        ({0x1024: 0}, "port b .* no link", "plug its cable"),
    ],
)
def test_a_board_that_cannot_be_used_is_refused(
    plan: RunPlan,
    images: str,
    board: Words,
    monkeypatch: pytest.MonkeyPatch,
    changed: dict[int, int],
    says: str,
    cure: str,
) -> None:
    monkeypatch.setattr("nagi_fpga.board.READY_TIMEOUT_S", 0.05)
    board.at |= changed
    (problem,) = find_problems([plan], images)
    name = plan.links[0].name
    assert problem.startswith(f"links.{name}.fpga: ")
    assert re.search(says, problem), problem
    assert cure in problem


def test_a_board_in_use_is_refused(plan: RunPlan, images: str, board: Words) -> None:
    lock = Lock(board_links.locate_board(plan.links[0]))
    (problem,) = find_problems([plan], images)
    assert f"is in use by process {os.getpid()}" in problem
    lock.release()
    assert find_problems([plan], images) == []


def test_a_board_that_is_absent_is_refused(
    plan: RunPlan, images: str, board: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_silent_transport(place: BoardLocation) -> Etherbone:
        return Etherbone("127.0.0.1", port=9, local_port=0, timeout_s=0.01, attempts=1)

    monkeypatch.setattr(loading, "open_transport", make_silent_transport)
    (problem,) = find_problems([plan], images)
    assert "cannot be reached" in problem and "lights" in problem


@pytest.mark.parametrize(
    ("break_", "says"),
    [
        (lambda place: (place / "nagi.bit").unlink(), "there is no .*nagi.bit"),
        (lambda place: (place / "nagi.bit").write_bytes(b"other"), "does not have the checksum"),
        (lambda place: (place / "image.json").write_text("{}"), "image.json cannot be used"),
        (lambda place: (place / "image.json").write_text("nonsense"), "image.json cannot be used"),
    ],
)
def test_an_incomplete_bitstream_is_refused(
    plan: RunPlan, images: str, board: Words, break_: Callable[[Path], object], says: str
) -> None:
    break_(Path(images) / BOARD)
    (problem,) = find_problems([plan], images)
    assert re.search(says, problem), problem
    assert f"make fpga BOARD={BOARD}" in problem


def add_cable(plan: RunPlan) -> RunPlan:
    """Return the plan with a JTAG cable for its board."""
    (link,) = plan.links
    assert link.fpga is not None
    return replace(plan, links=[replace(link, fpga=replace(link.fpga, cable="ft232"))])


def install_loader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """Install an openFPGALoader that runs `script`, and return the file of its arguments."""
    program = tmp_path / "openFPGALoader"
    arguments_file = tmp_path / "arguments"
    program.write_text(f'#!/bin/sh\necho "$@" >>{arguments_file}\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(program))
    return arguments_file


def test_a_board_of_another_build_is_loaded(
    plan: RunPlan, images: str, board: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = add_cable(plan)
    board.at[0x008] = 0xBAD
    arguments_file = install_loader(tmp_path, monkeypatch, "")
    run = subprocess.run

    def load(*arguments: object, **options: object) -> object:
        board.at[0x008] = BUILD
        return run(*arguments, **options)

    monkeypatch.setattr(subprocess, "run", load)
    assert find_problems([plan], images) == []
    assert arguments_file.read_text().split() == [
        "--board",
        "colorlight",
        "--cable",
        "ft232",
        f"{images}/{BOARD}/nagi.bit",
    ]


def test_a_loader_that_fails_says_why(
    plan: RunPlan, images: str, board: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.at[0x008] = 0xBAD
    install_loader(tmp_path, monkeypatch, "echo unable to open ftdi device; exit 1")
    (problem,) = find_problems([plan], images)
    assert "loaded over a JTAG cable, but no cable is named" in problem
    plan = add_cable(plan)
    (problem,) = find_problems([plan], images)
    assert "could not load the board: unable to open ftdi device" in problem


def make_record(
    index: int, *, fate: int = 0, backward: bool = False, late_ns: int = 4
) -> list[int]:
    flags = fate | backward << 7 | late_ns << 8
    arrived = 10**9 + 1000 * index
    packed = struct.pack(
        "<QQIIHHI", arrived, arrived + 500, index, 7, 1500, flags & 0xFFFF, flags >> 16
    )
    return list(struct.unpack("<8I", packed))


def test_a_run_leaves_what_nagi_link_leaves(
    plan: RunPlan, images: str, board: Words, tmp_path: Path
) -> None:
    epoch = time.time()
    running = BoardLinks(images, plan, epoch, str(tmp_path))
    running.begin()
    assert board.writes[-1] == (0x018, 1)
    board.put_record(make_record(0))
    board.put_record(make_record(0, backward=True, late_ns=2_000_000))
    board.put_record(make_record(1, fate=2))
    for base, counts in ((0x100, (2, 1, 1)), (0x200, (1, 1, 0))):
        offered, delivered, lost = counts
        board.at[base + 0x80], board.at[base + 0x88] = offered, 1500 * offered
        board.at[base + 0x90], board.at[base + 0x98] = delivered, 1500 * delivered
        board.at[base + 0xA8] = lost
    running.check()
    running.finish()
    assert board.at[0x018] == 0  # disabled
    rows = packets.read_records(tmp_path / "packets.bin")
    assert [(r["index"], r["direction"], r["fate"]) for r in rows] == [
        (0, 0, 0),
        (0, 1, 0),
        (1, 0, 2),
    ]
    links = Links.read(tmp_path / "links.json")
    (link,) = links.links
    assert (link.forward.packets.offered, link.forward.packets.channel_losses) == (2, 1)
    assert link.forward.packets.accounted == link.forward.packets.offered
    assert link.backward.late_events == 1
    assert (link.backward.transit_error_ns.max, link.forward.transit_error_ns.max) == (2_000_000, 4)
    assert (link.a.received, link.b.sent) == (2, 1)
    assert links.seed == plan.seed
    assert "12345678" in links.version
    planned = contracts.RunPlan.read(next(EXAMPLE.glob("*/plan.json")))
    assert link.forward.config == planned.links[0].forward
    # The board is free for the next run.
    assert find_problems([plan], images) == []


def test_a_board_that_goes_away_makes_the_run_fail(
    plan: RunPlan, images: str, board: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = BoardLinks(images, plan, time.time(), str(tmp_path))
    monkeypatch.setattr("etherbone_double.answer_datagram", lambda *_: None)
    deadline = time.monotonic() + 10
    with pytest.raises(RuntimeError, match="cannot be reached"):
        while time.monotonic() < deadline:
            running.check()
            time.sleep(0.01)
    running.kill()
    assert not (tmp_path / "links.json").exists()
