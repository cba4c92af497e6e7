# SPDX-License-Identifier: Apache-2.0
"""Checks a board in stages. Each stage requires that the previous stages passed.

The stages are tools, cable, board, bitstream, build, registers, link and loopback.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from typing import Callable, Iterator, NamedTuple

from nagi_fpga.board import Board
from nagi_fpga.errors import BoardError
from nagi_fpga.kinds import KINDS
from nagi_fpga.loading import (
    LOADER,
    BoardLocation,
    Lock,
    connect_board,
    find_image,
    open_transport,
    require_links,
)

PACKETS = 10  # sent in the loopback stage
_DISCARD = 9  # UDP port that these packets are sent to
_TIMEOUT_S = 2.0
_DETECT_TIMEOUT_S = 20.0


class Stage(NamedTuple):
    """Result of a stage.

    Attributes:
        detail: The observation, or the problem if the stage failed.
        cure: What the user can do about a failure; empty if the stage passed.
    """

    name: str
    is_ok: bool
    detail: str
    cure: str = ""


def examine_board(location: BoardLocation, images: str) -> Iterator[Stage]:
    """Check a board and yield the result of each stage, up to the first that fails.

    The function loads no bitstream. From the stage `build` on, it holds the board's lock.

    Args:
        location: The board.
        images: Directory with the bitstreams of all kinds of boards.
    """
    stages: list[tuple[str, Callable[[], str]]] = [
        ("tools", _check_tools),
        ("cable", lambda: _check_cable(location)),
        ("board", lambda: _detect_fpga(location)),
        ("bitstream", lambda: _check_bitstream(location, images)),
    ]
    for name, check in stages:
        stage = _run_stage(name, check)
        yield stage
        if not stage.is_ok:
            return
    yield from _examine_locked(location, images)


def _examine_locked(location: BoardLocation, images: str) -> Iterator[Stage]:
    """Run the stages that communicate with the board, while holding its lock."""
    board = None
    lock = None
    try:
        lock = Lock(location)
        board, identity = connect_board(location, find_image(location.kind, images))
        yield Stage("build", True, f"build {identity.build_id:08x}, as in the bitstream")
        for name, check in (
            ("registers", lambda board: _check_registers(board)),
            ("link", lambda board: _check_links(board, location)),
            ("loopback", lambda board: _check_loopback(board, location)),
        ):
            stage = _run_stage(name, lambda check=check: check(board))  # type: ignore[misc]
            yield stage
            if not stage.is_ok:
                return
    except BoardError as error:
        # The lock is held, no board answers, or the board runs another build.
        yield Stage("build", False, error.what, error.cure)
    finally:
        if board is not None:
            board.close()
        if lock is not None:
            lock.release()


def _run_stage(name: str, check: Callable[[], str]) -> Stage:
    try:
        return Stage(name, True, check())
    except BoardError as error:
        return Stage(name, False, error.what, error.cure)


def _run(*arguments: str) -> tuple[int, str]:
    """Run a program and return its exit status and the last line of its output.

    After a timeout, the status is 1, and the text describes the timeout.
    """
    try:
        process = subprocess.run(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_DETECT_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1, f"it did not end within {_DETECT_TIMEOUT_S:.0f} s"
    lines = process.stdout.decode(errors="replace").strip().splitlines()
    return process.returncode, " ".join(lines[-1].split()) if lines else ""


def _check_tools() -> str:
    """Return the version of openFPGALoader."""
    program = shutil.which(LOADER)
    if program is None:
        raise BoardError(
            "tools", f"there is no {LOADER}", "install it: `apt install openfpgaloader`"
        )
    status, message = _run(program, "--Version")
    if status:
        raise BoardError("tools", f"{program} does not run: {message}", "install it again")
    return message or program


def _check_cable(location: BoardLocation) -> str:
    """Check that the board's serial device or network is reachable from this host."""
    if location.serial is not None:
        open_transport(location).close()
        return f"{location.serial} can be opened"
    assert location.address is not None
    local = _find_local_address(location.address)
    if local.rsplit(".", 1)[0] != location.address.rsplit(".", 1)[0]:
        raise BoardError(
            "cable",
            f"no interface of this host is in the network of {location.address}: packets would be "
            f"sent from {local}",
            "give the interface on the board's first port an address in that network: `ip address "
            f"add {location.address.rsplit('.', 1)[0]}.1/24 dev INTERFACE`",
        )
    return f"{location.address} is reached from {local}"


def _find_local_address(address: str) -> str:
    """Return the source address from which this host sends packets to `address`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, _DISCARD))
        except OSError as error:
            raise BoardError(
                "cable",
                f"{address}: {error.strerror}",
                "give an interface an address in its network",
            ) from error
        local: str = probe.getsockname()[0]
        return local


def _detect_fpga(location: BoardLocation) -> str:
    """Return openFPGALoader's description of the FPGA, or why it was not asked."""
    kind = KINDS[location.kind]
    if location.cable is None and not kind.has_cable:
        return "no JTAG cable is named (--cable), so the board must be loaded already"
    cable = ["--cable", location.cable] if location.cable is not None else ["--board", kind.loader]
    status, message = _run(shutil.which(LOADER) or LOADER, *cable, "--detect")
    if status:
        raise BoardError(
            "board",
            f"{LOADER} finds no FPGA: {message}",
            "give the board power, and check the JTAG cable and its udev rule (role `fpga`)",
        )
    return message


def _check_bitstream(location: BoardLocation, images: str) -> str:
    image = find_image(location.kind, images)
    size = os.stat(image.path).st_size
    return f"{image.path}: {size:,} bytes, build {image.build_id:08x}"


def _check_registers(board: Board) -> str:
    board.check_registers()
    board.wait_for_memory()
    identity = board.identify()
    return f"registers keep their values; {identity.memory_bytes >> 20} MiB per direction"


def _check_links(board: Board, location: BoardLocation) -> str:
    require_links(board, location)
    return ", ".join(f"port {port.name}: {port.speed}" for port in board.read_ports())


def _check_loopback(board: Board, location: BoardLocation) -> str:
    """Send broadcasts to the board's first port, and check that they leave at the second port.

    The core is enabled for the check and then disabled. Without an address of the board, the check
    is skipped.
    """
    if location.address is None:
        return "skipped: this host is connected to the board's UART, not to its first port"
    board.start(0, 0, {"forward": {}, "backward": {}}, time.time_ns())
    try:
        local = _find_local_address(location.address)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sender.bind((local, 0))
            for number in range(PACKETS):
                broadcast = location.address.rsplit(".", 1)[0] + ".255"
                sender.sendto(b"nagi doctor %d" % number, (broadcast, _DISCARD))
        deadline = time.monotonic() + _TIMEOUT_S
        delivered = 0
        while delivered < PACKETS and time.monotonic() < deadline:
            delivered += sum(
                record.fate == 0 and not record.is_backward for record in board.take_records()
            )
        counters = board.read_counters()["forward"]
    finally:
        board.stop()
    if delivered < PACKETS:
        raise BoardError(
            "loopback",
            f"of {PACKETS} broadcasts the board received {counters['offered']} and delivered "
            f"{counters['delivered']}, and wrote {delivered} records of delivered packets",
            "check that the cable to this host is in the board's first port",
        )
    return f"the core carried {PACKETS} broadcasts and recorded them"
