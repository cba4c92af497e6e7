# SPDX-License-Identifier: Apache-2.0
"""Prepares a board for use: connects to it and loads the bitstream if it runs another build.

A lock prevents other processes of the host from using the same board.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import struct
import subprocess
import time
from typing import NamedTuple, Optional

from nagi_fpga.board import Board, Identity, Transport, compute_name_crc
from nagi_fpga.errors import BoardError
from nagi_fpga.etherbone import Etherbone
from nagi_fpga.kinds import KINDS
from nagi_fpga.uart import Uart

LOADER = "openFPGALoader"
LOAD_TIMEOUT_S = 120.0
START_TIMEOUT_S = (
    5.0  # until a loaded board answers; its ports must first negotiate their links again
)
LOCK_PREFIX = "nagi-board-"
_GIGABIT = 1_000_000_000


class BoardLocation(NamedTuple):
    """A kind of board, and the address or serial device of the board.

    Attributes:
        kind: Name of the kind, a key of KINDS.
        address: IPv4 address of the board.
        serial: Serial device of the board's UART, which takes precedence over `address`.
        cable: openFPGALoader's name of the JTAG cable; None uses the board's USB port.
    """

    kind: str
    address: Optional[str] = None
    serial: Optional[str] = None
    cable: Optional[str] = None

    @property
    def name(self) -> str:
        return self.serial or self.address or "nowhere"


class Image(NamedTuple):
    """A bitstream: the path of its file, and the build id that its image.json states."""

    path: str
    build_id: int


def find_image(kind: str, directory: str) -> Image:
    """Find the bitstream of a kind of board, in the subdirectory `kind` of `directory`.

    Args:
        kind: Name of the kind, a key of KINDS.
        directory: Directory into which `make fpga` or the role `fpga` puts bitstreams.

    Raises:
        BoardError: There is no bitstream, or its checksum differs from that in its image.json.
    """
    image_directory = os.path.join(directory, kind)
    cure = f"build it with `make fpga BOARD={kind}`, or install it with the role `fpga`"
    try:
        with open(os.path.join(image_directory, "image.json"), encoding="utf-8") as file:
            image = json.load(file)
        path = os.path.join(image_directory, "nagi.bit")
        with open(path, "rb") as bits:
            actual_sha256 = hashlib.sha256(bits.read()).hexdigest()
        build_id, sha256 = int(image["build_id"], 16), image["sha256"]
    except FileNotFoundError as error:
        raise BoardError("bitstream", f"there is no {error.filename}", cure) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BoardError(
            "bitstream", f"{image_directory}/image.json cannot be used: {error}", cure
        ) from error
    if actual_sha256 != sha256:
        raise BoardError(
            "bitstream", f"{path} does not have the checksum that image.json states", cure
        )
    return Image(path, build_id)


class Lock:
    """A lock that a process holds while it uses a board, so that no other process can use it.

    The lock is a Unix socket with an abstract name (unix(7)). So no other user can
    block the lock with a file, and the kernel releases the lock when its process ends. The
    constructor raises BoardError if another process holds the lock.
    """

    def __init__(self, location: BoardLocation) -> None:
        address = f"\0{LOCK_PREFIX}{location.name}"[:100]
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.bind(address)
        except OSError as error:
            holder = _find_holder(address)
            self._socket.close()
            raise BoardError(
                "board",
                f"the board at {location.name} is in use by process {holder or 'unknown'}",
                "wait until it ends, or end it",
            ) from error
        self._socket.listen()

    def release(self) -> None:
        self._socket.close()


def _find_holder(address: str) -> Optional[int]:
    """Return the id of the process that holds a lock, or None if it accepts no connection."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1.0)
        try:
            client.connect(address)
            credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        except OSError:
            return None
    process: int = struct.unpack("3i", credentials)[0]
    return process


def open_transport(location: BoardLocation) -> Transport:
    """Connect to a board over its serial device if `location` names one, else over UDP.

    Raises:
        BoardError: The device or the local port cannot be opened.
    """
    if location.serial is not None:
        return Uart(location.serial)
    assert location.address is not None
    return Etherbone(location.address)


def load_bitstream(location: BoardLocation, image: Image) -> None:
    """Load a bitstream into the FPGA, not into the board's flash.

    Raises:
        BoardError: openFPGALoader is missing or fails, or the board needs a JTAG cable and none is
            named.
    """
    program = shutil.which(LOADER)
    if program is None:
        raise BoardError(
            "tools",
            f"there is no {LOADER}",
            "install package openfpgaloader, as the role `fpga` does",
        )
    kind = KINDS[location.kind]
    if location.cable is None and not kind.has_cable:
        raise BoardError(
            "cable",
            f"a {location.kind} is loaded over a JTAG cable, but no cable is named",
            "name the cable as openFPGALoader does, such as `cable: ft232`",
        )
    cable = [] if location.cable is None else ["--cable", location.cable]
    try:
        process = subprocess.run(
            [program, "--board", kind.loader, *cable, image.path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LOAD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BoardError(
            "bitstream", f"{LOADER} did not end in {LOAD_TIMEOUT_S:.0f} s", "check the JTAG cable"
        ) from error
    if process.returncode:
        lines = process.stdout.decode(errors="replace").strip().splitlines()
        message = " ".join(lines[-1].split()) if lines else f"exit status {process.returncode}"
        raise BoardError(
            "bitstream",
            f"{LOADER} could not load the board: {message[:200]}",
            f"check that the board has power and the JTAG cable is right: `{LOADER} --detect`",
        )


def open_board(location: BoardLocation, directory: str) -> tuple[Board, Identity]:
    """Connect to a board, and load the bitstream in `directory` if necessary.

    The bitstream is loaded if the board runs another build, does not answer, or fails the check of
    its registers. Without openFPGALoader, no bitstream is loaded. The caller must hold the board's
    lock.

    Raises:
        BoardError: The board cannot be used.
    """
    image = find_image(location.kind, directory)
    try:
        return connect_board(location, image)
    except BoardError as error:
        if error.stage not in ("registers", "build"):
            raise
        if shutil.which(LOADER) is None:
            raise  # the board's error helps the user more than a missing loader
    load_bitstream(location, image)
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            return connect_board(location, image)
        except BoardError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def connect_board(location: BoardLocation, image: Image) -> tuple[Board, Identity]:
    """Connect to a board that runs the build of `image`, and check its registers and its memory.

    Raises:
        BoardError: The board does not answer, is of another kind, runs another build, or fails.
    """
    board = Board(open_transport(location))
    try:
        identity = board.identify()
        if identity.board != compute_name_crc(location.kind):
            raise BoardError(
                "build",
                f"the board at {location.name} is not a {location.kind}",
                "give its kind in the experiment as `board`",
            )
        if identity.build_id != image.build_id:
            raise BoardError(
                "build",
                f"the board at {location.name} runs build {identity.build_id:08x}, but "
                f"{image.path} is build {image.build_id:08x}",
                f"load it: `{LOADER} --board {KINDS[location.kind].loader} {image.path}`",
            )
        board.check_registers()
        board.wait_for_memory()
    except BoardError:
        board.close()
        raise
    return board, identity


def require_links(board: Board, location: BoardLocation) -> None:
    """Raise BoardError if a port of the board has no link at the speed that its kind requires."""
    port_bps = KINDS[location.kind].port_bps
    hz = 125_000_000 if port_bps == _GIGABIT else 50_000_000  # RGMII's and RMII's clocks
    for port in board.read_ports():
        if not port.has_clock(hz):
            raise BoardError(
                "link",
                f"port {port.name} of the board at {location.name} has no link at "
                f"{port_bps // 1_000_000} Mb/s: its PHY's clock is {port.clock_hz / 1e6:.1f} MHz"
                + (f", {port.speed}" if port.speed else ""),
                "plug its cable in, and let the device at the other end negotiate this speed",
            )
