# SPDX-License-Identifier: Apache-2.0
"""How far a board can be used, stage by stage, each of which builds on those before it."""

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
    Lock,
    Place,
    identified,
    image_of,
    require_links,
    transport_to,
)

PACKETS = 10  # of the loopback
_DISCARD = 9  # the UDP port that they are for
_TIMEOUT_S = 2.0
_DETECT_TIMEOUT_S = 20.0


class Stage(NamedTuple):
    """`detail`: what was found; `cure`: of one that failed, else empty."""

    name: str
    is_ok: bool
    detail: str
    cure: str = ""


def look(place: Place, images: str) -> Iterator[Stage]:
    """Looks at a board, and says of each stage what is found, until one fails. Loads nothing."""
    stages: list[tuple[str, Callable[[], str]]] = [
        ("tools", _tools),
        ("cable", lambda: _cable(place)),
        ("board", lambda: _detected(place)),
        ("bitstream", lambda: _bitstream(place, images)),
    ]
    for name, found in stages:
        stage = _stage(name, found)
        yield stage
        if not stage.is_ok:
            return
    yield from _while_locked(place, images)


def _while_locked(place: Place, images: str) -> Iterator[Stage]:
    """The stages that talk to the board."""
    board = None
    lock = None
    try:
        lock = Lock(place)
        board, identity = identified(place, image_of(place.kind, images))
        yield Stage("build", True, f"build {identity.build_id:08x}, as the bitstream")
        for name, found in (
            ("registers", lambda each: _registers(each)),
            ("link", lambda each: _link(each, place)),
            ("loopback", lambda each: _loopback(each, place)),
        ):
            stage = _stage(name, lambda found=found: found(board))  # type: ignore[misc]
            yield stage
            if not stage.is_ok:
                return
    except BoardError as error:
        # Nothing answers, or something else.
        yield Stage("build", False, error.what, error.cure)
    finally:
        if board is not None:
            board.close()
        if lock is not None:
            lock.release()


def _stage(name: str, found: Callable[[], str]) -> Stage:
    try:
        return Stage(name, True, found())
    except BoardError as error:
        return Stage(name, False, error.what, error.cure)


def _run(*arguments: str) -> tuple[int, str]:
    try:
        done = subprocess.run(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_DETECT_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1, f"no end after {_DETECT_TIMEOUT_S:.0f} s"
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    return done.returncode, " ".join(lines[-1].split()) if lines else ""


def _tools() -> str:
    program = shutil.which(LOADER)
    if program is None:
        raise BoardError(
            "tools", f"there is no {LOADER}", "install it: `apt install openfpgaloader`"
        )
    status, said = _run(program, "--Version")
    if status:
        raise BoardError("tools", f"{program} does not run: {said}", "install it again")
    return said or program


def _cable(place: Place) -> str:
    """By which way the board is controlled."""
    if place.serial is not None:
        transport_to(place).close()
        return f"{place.serial} can be opened"
    assert place.address is not None
    local = _local_address(place.address)
    if local.rsplit(".", 1)[0] != place.address.rsplit(".", 1)[0]:
        raise BoardError(
            "cable",
            f"no interface here is in the network of {place.address}: it would be reached from "
            f"{local}",
            f"give the interface on the board's first port an address beside it: `ip address add "
            f"{place.address.rsplit('.', 1)[0]}.1/24 dev INTERFACE`",
        )
    return f"{place.address} is reached from {local}"


def _local_address(address: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, _DISCARD))
        except OSError as error:
            raise BoardError(
                "cable", f"{address}: {error.strerror}", "give an interface an address beside it"
            ) from error
        local: str = probe.getsockname()[0]
        return local


def _detected(place: Place) -> str:
    kind = KINDS[place.kind]
    if place.cable is None and not kind.has_cable:
        return "no JTAG cable is named (--cable), so the board must be loaded already"
    cable = ["--cable", place.cable] if place.cable is not None else ["--board", kind.loader]
    status, said = _run(shutil.which(LOADER) or LOADER, *cable, "--detect")
    if status:
        raise BoardError(
            "board",
            f"{LOADER} finds no FPGA: {said}",
            "give the board power, and look at the JTAG cable and its udev rule (role `fpga`)",
        )
    return said


def _bitstream(place: Place, images: str) -> str:
    image = image_of(place.kind, images)
    size = os.stat(image.path).st_size
    return f"{image.path}: {size:,} bytes, build {image.build_id:08x}"


def _registers(board: Board) -> str:
    board.check_registers()
    board.wait_for_memory()
    identity = board.identify()
    return f"registers keep what is written; {identity.memory_bytes >> 20} MiB a direction"


def _link(board: Board, place: Place) -> str:
    require_links(board, place)
    return ", ".join(f"port {port.name}: {port.speed}" for port in board.ports())


def _loopback(board: Board, place: Place) -> str:
    """Broadcasts go into the first port, through the core, and out of the second."""
    if place.address is None:
        return "not tried: over a serial line nothing sends packets to the first port"
    board.begin(0, 0, {"forward": {}, "backward": {}}, time.time_ns())
    try:
        local = _local_address(place.address)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sender.bind((local, 0))
            for number in range(PACKETS):
                to = place.address.rsplit(".", 1)[0] + ".255"
                sender.sendto(b"nagi doctor %d" % number, (to, _DISCARD))
        deadline = time.monotonic() + _TIMEOUT_S
        found = 0
        while found < PACKETS and time.monotonic() < deadline:
            found += sum(each.fate == 0 and not each.is_backward for each in board.take_records())
        counters = board.counters()["forward"]
    finally:
        board.end()
    if found < PACKETS:
        raise BoardError(
            "loopback",
            f"of {PACKETS} broadcasts {counters['offered']} came into the board, "
            f"{counters['delivered']} left it, and {found} records say so",
            "look whether the cable to this host is in the board's first port",
        )
    return f"{PACKETS} broadcasts went through the core, with their records"
