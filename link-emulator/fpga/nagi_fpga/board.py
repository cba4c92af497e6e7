# SPDX-License-Identifier: Apache-2.0
"""A board that carries a link: what it is, its configuration, counters and records."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Protocol, Sequence

from nagi_fpga import board_registers as at
from nagi_fpga import configuration, records
from nagi_fpga import register_map as core
from nagi_fpga.errors import BoardError

ENABLE, LATCH = 1, 1
WRITE_TRIES = 4
READY_TIMEOUT_S = 2.0
GIGABIT_HZ = 125_000_000
_CLOCK_TOLERANCE_HZ = 100_000  # what a count of a millisecond and a bad crystal make
_SPEEDS = {2_500_000: "10 Mb/s", 25_000_000: "100 Mb/s", GIGABIT_HZ: "1 Gb/s"}
_RECORDS_AT_A_TIME = 15  # one datagram


class Transport(Protocol):
    """Etherbone or Uart."""

    name: str

    def read(self, address: int, count: int) -> list[int]: ...

    def write(self, address: int, words: Sequence[int]) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Identity:
    """What answered. `memory_bytes`: packet memory, a direction."""

    build_id: int
    data_width: int
    mem_width: int
    memory_bytes: int
    max_packets: int
    max_frame: int
    clock_period_ps: int
    board: int  # CRC-32 of the board's name


@dataclass(frozen=True)
class PortState:
    """A port's PHY. `clock_hz`: what it gives the board; 125 MHz at 1 Gb/s."""

    name: str
    clock_hz: int
    overflows: int
    underruns: int
    received: int

    def is_at(self, hz: int) -> bool:
        return abs(self.clock_hz - hz) <= _CLOCK_TOLERANCE_HZ

    @property
    def speed(self) -> Optional[str]:
        """The link's speed, as far as the clock tells; None: there is no known one."""
        return next((name for hz, name in _SPEEDS.items() if self.is_at(hz)), None)


def name_crc(name: str) -> int:
    """How a board tells its name."""
    return zlib.crc32(name.encode())


class Board:
    """Every method raises BoardError if the board does not answer."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._taken = 0

    def close(self) -> None:
        self._transport.close()

    # What it is.

    def identify(self) -> Identity:
        """Raises BoardError if what answers is no board of nagi, or of another register map."""
        where = self._transport.name
        magic = self._board("magic")
        if magic != at.MAGIC:
            raise BoardError(
                "registers",
                f"what answers at {where} is no board of nagi: it says {magic:#010x} where "
                f"{at.MAGIC:#010x} should be",
                "load nagi's bitstream: `make fpga`, then openFPGALoader",
            )
        found, version, build, widths, sizes, period = self._words(0, 6)
        if (found, version) != (core.MAGIC, core.VERSION):
            raise BoardError(
                "build",
                f"the board at {where} has register map {version} ({found:#010x}), nagi has "
                f"{core.VERSION}",
                "load the bitstream that this version of nagi builds: `make fpga`",
            )
        mem_width = widths >> 16
        return Identity(
            build_id=build,
            data_width=widths & 0xFFFF,
            mem_width=mem_width,
            memory_bytes=(1 << (sizes & 0xFF)) * mem_width // 8,
            max_packets=1 << (sizes >> 8 & 0xFF),
            max_frame=sizes >> 16,
            clock_period_ps=period,
            board=self._board("board"),
        )

    def check_registers(self) -> None:
        """Whether words come back as they were written. Raises BoardError."""
        for word in (0x5555_5555, 0xAAAA_AAAA, 0x0123_4567):
            self._set_board("scratch", word)

    def wait_for_memory(self) -> None:
        """Raises BoardError if packet memory does not become ready."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._board("memory_ready"):
            if time.monotonic() > deadline:
                raise BoardError(
                    "registers",
                    "the board's packet memory does not become ready",
                    "load the bitstream again; see whether it is that of this board's revision",
                )
            time.sleep(0.01)

    def ports(self) -> tuple[PortState, PortState]:
        def of(name: str) -> PortState:
            # METER_TICKS of 125 MHz are 1.048576 ms.
            count = self._board(f"{name}_clock")
            return PortState(
                name=name,
                clock_hz=count * GIGABIT_HZ // at.METER_TICKS,
                overflows=self._board(f"{name}_overflows"),
                underruns=self._board(f"{name}_underruns"),
                received=self._board(f"{name}_received"),
            )

        return of("a"), of("b")

    # What it does.

    @property
    def is_enabled(self) -> bool:
        return bool(self._core_words("control", 1)[0] & ENABLE)

    def begin(
        self,
        link: int,
        seed: int,
        directions: Mapping[str, Mapping[str, Any]],
        epoch_realtime_ns: int,
    ) -> int:
        """Configures the core and enables it. `directions`: forward and backward, as in nagi-link's
        configuration; `epoch_realtime_ns`: the instant, as time.time_ns() has it, that is 0 in
        records. Returns by how many ns at most the board's epoch is off, which the round trip of a
        request tells. Raises BoardError and configuration.Unsupported."""
        configuration.writes(seed, link, directions)  # refuses before the board is touched
        self._stop_core()
        self._set_core("epoch_ns", 0)
        now, before, after = self._latch()
        epoch = (now + epoch_realtime_ns - (before + after) // 2) % (1 << 64)
        for address, value in configuration.writes(seed, link, directions, epoch):
            self._write_value(at.CORE + address, 32, value)
        self._taken = self._board("records_written")
        self._set_board("records_taken", self._taken)
        self._set_core("control", ENABLE)  # all counters begin at 0
        return (after - before) // 2

    def end(self) -> None:
        """Disables the core and waits until it has given its last records."""
        self._stop_core()

    def counters(self) -> dict[str, dict[str, int]]:
        """Of each direction, by the names in registers.yaml, all of one instant."""
        self._latch()
        return {
            name: {
                counter: self._read_value(at.CORE + base + offset, 64)
                for counter, offset in core.COUNTERS.items()
            }
            for name, base in core.DIRECTIONS.items()
        }

    def take_records(self) -> list[records.CoreRecord]:
        """Records since the last call, in the order in which they were made."""
        written, depth = self._board("records_written"), self._board("records_depth")
        found: list[records.CoreRecord] = []
        while self._taken != written:
            place = self._taken % depth
            some = min((written - self._taken) % (1 << 32), depth - place, _RECORDS_AT_A_TIME)
            words = self._transport.read(
                at.BASE + at.RECORDS + place * at.RECORD_BYTES, some * records.WORDS
            )
            found += [
                records.decoded(words[i : i + records.WORDS])
                for i in range(0, len(words), records.WORDS)
            ]
            self._taken = (self._taken + some) % (1 << 32)
            self._set_board("records_taken", self._taken)
        return found

    def _stop_core(self) -> None:
        self._set_core("control", 0)
        deadline = time.monotonic() + READY_TIMEOUT_S
        while self._core_words("status", 1)[0] & 1:
            if time.monotonic() > deadline:
                raise BoardError(
                    "registers", "the board's core does not stop", "load the bitstream again"
                )
            self.take_records()  # it may wait for room
            time.sleep(0.001)

    def _latch(self) -> tuple[int, int, int]:
        """Latches time and counters; gives the latched time, and time.time_ns() before and after.
        That it was done shows by the time."""
        offset, bits = core.REGISTERS["time_ns"]
        command, _ = core.REGISTERS["command"]
        old = self._read_value(at.CORE + offset, bits)
        for _ in range(WRITE_TRIES):
            before = time.time_ns()
            self._transport.write(at.BASE + at.CORE + command, [LATCH])
            new = self._read_value(at.CORE + offset, bits)
            after = time.time_ns()
            if new != old:
                return new, before, after
        raise BoardError(
            "registers",
            f"the time of the board at {self._transport.name} stands still",
            "load the bitstream again",
        )

    # Registers.

    def _words(self, offset: int, count: int) -> list[int]:
        return self._transport.read(at.BASE + offset, count)

    def _core_words(self, name: str, count: int) -> list[int]:
        return self._words(at.CORE + core.REGISTERS[name][0], count)

    def _set_core(self, name: str, value: int) -> None:
        offset, bits = core.REGISTERS[name]
        self._write_value(at.CORE + offset, bits, value)

    def _board(self, name: str) -> int:
        return self._words(at.BOARD + at.REGISTERS[name].offset, 1)[0]

    def _set_board(self, name: str, value: int) -> None:
        self._write_value(at.BOARD + at.REGISTERS[name].offset, 32, value)

    def _write_value(self, offset: int, bits: int, value: int) -> None:
        """Writes until it is kept, as a write may be lost on the way. Raises BoardError."""
        words = [value >> shift & 0xFFFF_FFFF for shift in range(0, bits, 32)]
        for _ in range(WRITE_TRIES):
            self._transport.write(at.BASE + offset, words)
            found = self._words(offset, len(words))
            if found == words:
                return
        raise BoardError(
            "registers",
            f"the board at {self._transport.name} does not keep what is written: "
            f"{[hex(word) for word in words]} at {offset:#05x}, where it has "
            f"{[hex(word) for word in found]}",
            "shorten the cable, at a serial line look at ground and levels; or load the bitstream "
            "that this version of nagi builds: `make fpga`",
        )

    def _read_value(self, offset: int, bits: int) -> int:
        words = self._words(offset, bits // 32)
        return sum(word << 32 * place for place, word in enumerate(words))
