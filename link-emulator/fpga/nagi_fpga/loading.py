# SPDX-License-Identifier: Apache-2.0
"""Gets a board ready: finds it, loads the bitstream if it has another build, and says what is
wrong if it cannot be used. One at a time: a lock is held while a board is in use."""

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

from nagi_fpga.board import Board, Identity, Transport, name_crc
from nagi_fpga.errors import BoardError
from nagi_fpga.etherbone import Etherbone
from nagi_fpga.kinds import KINDS
from nagi_fpga.uart import Uart

LOADER = "openFPGALoader"
LOAD_TIMEOUT_S = 120.0
STARTS_S = 5.0  # until a board that was loaded answers: its ports' links come up again
LOCK_PREFIX = "nagi-board-"
_GIGABIT = 1_000_000_000


class Place(NamedTuple):
    """Where a board is: by `address` (Etherbone) or `serial` (UART). `cable`: openFPGALoader's name
    of the JTAG cable."""

    kind: str
    address: Optional[str] = None
    serial: Optional[str] = None
    cable: Optional[str] = None

    @property
    def name(self) -> str:
        return self.serial or self.address or "nowhere"


class Image(NamedTuple):
    """A bitstream: its file, and what image.json says of it."""

    path: str
    build_id: int


def image_of(kind: str, directory: str) -> Image:
    """The bitstream of a board in `directory`, where `make fpga` or a role put it. Raises
    BoardError if there is none, or it is not what its image.json says."""
    place = os.path.join(directory, kind)
    cure = f"build it with `make fpga BOARD={kind}`, or bring it with the role `fpga`"
    try:
        with open(os.path.join(place, "image.json"), encoding="utf-8") as file:
            told = json.load(file)
        path = os.path.join(place, "nagi.bit")
        with open(path, "rb") as bits:
            found = hashlib.sha256(bits.read()).hexdigest()
        build_id, sha256 = int(told["build_id"], 16), told["sha256"]
    except FileNotFoundError as error:
        raise BoardError("bitstream", f"there is no {error.filename}", cure) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BoardError(
            "bitstream", f"{place}/image.json cannot be used: {error}", cure
        ) from error
    if found != sha256:
        raise BoardError("bitstream", f"{path} is not the one that image.json tells of", cure)
    return Image(path, build_id)


class Lock:
    """A lock that is held while a board is in use, by whichever user of this host.

    It is a Unix socket with a name in the kernel alone (unix(7), abstract): there is no file that
    somebody could have put there, and it goes with its process. Raises BoardError if another
    process has it.
    """

    def __init__(self, place: Place) -> None:
        address = f"\0{LOCK_PREFIX}{place.name}"[:100]
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.bind(address)
        except OSError as error:
            holder = _holder(address)
            self._socket.close()
            raise BoardError(
                "board",
                f"the board at {place.name} is in use by process {holder or 'unknown'}",
                "wait until it ends, or end it",
            ) from error
        self._socket.listen()

    def release(self) -> None:
        self._socket.close()


def _holder(address: str) -> Optional[int]:
    """Return the number of the process that has a lock; None if it does not say."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1.0)
        try:
            client.connect(address)
            told = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        except OSError:
            return None
    process: int = struct.unpack("3i", told)[0]
    return process


def transport_to(place: Place) -> Transport:
    if place.serial is not None:
        return Uart(place.serial)
    assert place.address is not None
    return Etherbone(place.address)


def load(place: Place, image: Image) -> None:
    """Loads a bitstream into the FPGA, not into its flash. Raises BoardError."""
    program = shutil.which(LOADER)
    if program is None:
        raise BoardError(
            "tools",
            f"there is no {LOADER}",
            "install package openfpgaloader, as the role `fpga` does",
        )
    kind = KINDS[place.kind]
    if place.cable is None and not kind.has_cable:
        raise BoardError(
            "cable",
            f"a {place.kind} is loaded by a JTAG cable, and none is named",
            "name it in openFPGALoader's terms, such as `cable: ft232`",
        )
    cable = [] if place.cable is None else ["--cable", place.cable]
    try:
        done = subprocess.run(
            [program, "--board", kind.loader, *cable, image.path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LOAD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BoardError(
            "bitstream", f"{LOADER} did not end in {LOAD_TIMEOUT_S:.0f} s", "look at the JTAG cable"
        ) from error
    if done.returncode:
        lines = done.stdout.decode(errors="replace").strip().splitlines()
        said = " ".join(lines[-1].split()) if lines else f"exit status {done.returncode}"
        raise BoardError(
            "bitstream",
            f"{LOADER} could not load the board: {said[:200]}",
            f"look whether the board has power and the JTAG cable is right: `{LOADER} --detect`",
        )


def opened(place: Place, directory: str) -> tuple[Board, Identity]:
    """A board that runs the bitstream in `directory`; it is loaded if it does not. The caller holds
    its lock. Raises BoardError."""
    image = image_of(place.kind, directory)
    try:
        return identified(place, image)
    except BoardError as error:
        if error.stage not in ("registers", "build"):
            raise
        if shutil.which(LOADER) is None:
            raise  # what is wrong with the board tells more
    load(place, image)
    deadline = time.monotonic() + STARTS_S
    while True:
        try:
            return identified(place, image)
        except BoardError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def identified(place: Place, image: Image) -> tuple[Board, Identity]:
    """A board at `place` of the build of `image`. Raises BoardError."""
    board = Board(transport_to(place))
    try:
        identity = board.identify()
        if identity.board != name_crc(place.kind):
            raise BoardError(
                "build",
                f"the board at {place.name} is no {place.kind}",
                "name it in the experiment as `board`",
            )
        if identity.build_id != image.build_id:
            raise BoardError(
                "build",
                f"the board at {place.name} runs build {identity.build_id:08x}, and "
                f"{image.path} is {image.build_id:08x}",
                f"load it: `{LOADER} --board {KINDS[place.kind].loader} {image.path}`",
            )
        board.check_registers()
        board.wait_for_memory()
    except BoardError:
        board.close()
        raise
    return board, identity


def require_links(board: Board, place: Place) -> None:
    """Raises BoardError if a port of the board has no link at its speed."""
    wanted = KINDS[place.kind].port_bps
    hz = 125_000_000 if wanted == _GIGABIT else 50_000_000  # RGMII's and RMII's clocks
    for port in board.ports():
        if not port.is_at(hz):
            raise BoardError(
                "link",
                f"port {port.name} of the board at {place.name} has no link at "
                f"{wanted // 1_000_000} Mb/s: its PHY's clock is {port.clock_hz / 1e6:.1f} MHz"
                + (f", {port.speed}" if port.speed else ""),
                "plug its cable in, and let the other end negotiate that speed",
            )
