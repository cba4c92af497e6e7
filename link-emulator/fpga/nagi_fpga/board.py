# SPDX-License-Identifier: Apache-2.0
"""Access to a board that carries a link: identity, configuration, counters and records."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Protocol, Sequence

from nagi_fpga import board_registers as layout
from nagi_fpga import configuration, records
from nagi_fpga import register_map as core
from nagi_fpga.errors import BoardError

ENABLE, LATCH = 1, 1  # bits of the registers `control` and `command`
WRITE_ATTEMPTS = 4
READY_TIMEOUT_S = 2.0
GIGABIT_HZ = 125_000_000
_CLOCK_TOLERANCE_HZ = 100_000  # error of counting for 1 ms, and of an inaccurate crystal
_SPEEDS = {2_500_000: "10 Mb/s", 25_000_000: "100 Mb/s", GIGABIT_HZ: "1 Gb/s"}
_MAX_RECORDS_PER_READ = 15  # these fit into one datagram


class Transport(Protocol):
    """Reads and writes words of 32 bits in a board's address space: `Etherbone` or `Uart`."""

    name: str

    def read(self, address: int, count: int) -> list[int]: ...

    def write(self, address: int, words: Sequence[int]) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Identity:
    """Identity and dimensions of a board's gateware.

    Attributes:
        data_width: Width of the core's data path in bits.
        mem_width: Width of a word of packet memory in bits.
        memory_bytes: Packet memory per direction.
        max_packets: Packets that the core can hold at the same time, per direction.
        max_frame: Size of the longest frame in bytes.
        board: CRC-32 of the name of the board's kind.
    """

    build_id: int
    data_width: int
    mem_width: int
    memory_bytes: int
    max_packets: int
    max_frame: int
    clock_period_ps: int
    board: int


@dataclass(frozen=True)
class PortState:
    """State of a port. The counters count since the bitstream was loaded, modulo 2^32.

    Attributes:
        name: `a` or `b`.
        clock_hz: Measured receive clock of the PHY; 125 MHz at 1 Gb/s.
        overflows: Bytes that were lost because the core did not accept them.
        underruns: Frames that were cut because packet memory was late.
        received: Received frames.
    """

    name: str
    clock_hz: int
    overflows: int
    underruns: int
    received: int

    def has_clock(self, hz: int) -> bool:
        """Return whether the PHY's clock has this frequency, within the tolerance."""
        return abs(self.clock_hz - hz) <= _CLOCK_TOLERANCE_HZ

    @property
    def speed(self) -> Optional[str]:
        """The link's speed, derived from the PHY's clock, or None if the clock fits no speed."""
        return next((name for hz, name in _SPEEDS.items() if self.has_clock(hz)), None)


def compute_name_crc(name: str) -> int:
    """Return the CRC-32 of the name of a kind of board, which the register `board` contains."""
    return zlib.crc32(name.encode())


class Board:
    """A board that is reached through a transport.

    Every method raises BoardError if the board does not answer.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._records_taken = 0

    def close(self) -> None:
        self._transport.close()

    # Identity and state.

    def identify(self) -> Identity:
        """Read the identity of the board's gateware.

        Raises:
            BoardError: The device does not run nagi's gateware, or has another register map.
        """
        name = self._transport.name
        magic = self._read_board_register("magic")
        if magic != layout.MAGIC:
            raise BoardError(
                "registers",
                f"the device at {name} does not run nagi's gateware: its magic number is "
                f"{magic:#010x}, expected {layout.MAGIC:#010x}",
                "load nagi's bitstream: `make fpga`, then openFPGALoader",
            )
        core_magic, version, build, widths, sizes, period = self._read_words(0, 6)
        if (core_magic, version) != (core.MAGIC, core.VERSION):
            raise BoardError(
                "build",
                f"the board at {name} has register map {version} ({core_magic:#010x}), nagi has "
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
            board=self._read_board_register("board"),
        )

    def check_registers(self) -> None:
        """Check that the board returns the words that this method writes to its register `scratch`.

        Raises:
            BoardError: A word reads back differently.
        """
        for word in (0x5555_5555, 0xAAAA_AAAA, 0x0123_4567):
            self._write_board_register("scratch", word)

    def wait_for_memory(self) -> None:
        """Wait until packet memory is initialised.

        Raises:
            BoardError: Packet memory is not initialised after READY_TIMEOUT_S seconds.
        """
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._read_board_register("memory_ready"):
            if time.monotonic() > deadline:
                raise BoardError(
                    "registers",
                    "the board's packet memory is not initialised in time",
                    "load the bitstream again; check that it fits this board's revision",
                )
            time.sleep(0.01)

    def read_ports(self) -> tuple[PortState, PortState]:
        """Read the state of ports a and b."""

        def read_port(name: str) -> PortState:
            # METER_TICKS of 125 MHz are 1.048576 ms.
            count = self._read_board_register(f"{name}_clock")
            return PortState(
                name=name,
                clock_hz=count * GIGABIT_HZ // layout.METER_TICKS,
                overflows=self._read_board_register(f"{name}_overflows"),
                underruns=self._read_board_register(f"{name}_underruns"),
                received=self._read_board_register(f"{name}_received"),
            )

        return read_port("a"), read_port("b")

    # Emulation.

    @property
    def is_enabled(self) -> bool:
        return bool(self._read_core_words("control", 1)[0] & ENABLE)

    def start(
        self,
        link: int,
        seed: int,
        directions: Mapping[str, Mapping[str, Any]],
        epoch_realtime_ns: int,
    ) -> int:
        """Stop a running emulation and discard its records; then configure and enable the core.

        Args:
            link: Number of the link, which selects its random draws.
            seed: Seed of the run's random draws.
            directions: Configuration of `forward` and `backward`, as in nagi-link's configuration.
            epoch_realtime_ns: Wall-clock time, as of time.time_ns(), of time 0 in records.

        Returns:
            The largest possible error of the board's epoch in ns: half the round trip of a request.

        Raises:
            BoardError: The board does not answer, or a register does not keep its value.
            configuration.Unsupported: The core does not support a setting; the board is unchanged.
        """
        # Raises Unsupported before any register is written.
        configuration.list_register_writes(seed, link, directions)
        self._stop_core()
        self._write_core_register("epoch_ns", 0)
        now, before, after = self._latch()
        epoch = (now + epoch_realtime_ns - (before + after) // 2) % (1 << 64)
        for address, value in configuration.list_register_writes(seed, link, directions, epoch):
            self._write_value(layout.CORE + address, 32, value)
        self._records_taken = self._read_board_register("records_written")
        self._write_board_register("records_taken", self._records_taken)
        self._write_core_register("control", ENABLE)  # all counters begin at 0
        return (after - before) // 2

    def stop(self) -> None:
        """Disable the core and wait until it is no longer active.

        While the method waits, it discards unread records to make room for the core's last records.
        Afterwards, `take_records` returns the records that were not discarded.
        """
        self._stop_core()

    def read_counters(self) -> dict[str, dict[str, int]]:
        """Read all counters at one instant. They count since `start`.

        Returns:
            The counters by direction (`forward`, `backward`) and by name in registers.yaml.
        """
        self._latch()
        return {
            name: {
                counter: self._read_value(layout.CORE + base + offset, 64)
                for counter, offset in core.COUNTERS.items()
            }
            for name, base in core.DIRECTIONS.items()
        }

    def take_records(self) -> list[records.CoreRecord]:
        """Read the records since the last call or `start`, oldest first, and free their space."""
        written, depth = (
            self._read_board_register("records_written"),
            self._read_board_register("records_depth"),
        )
        new_records: list[records.CoreRecord] = []
        while self._records_taken != written:
            slot = self._records_taken % depth
            unread = (written - self._records_taken) % (1 << 32)
            count = min(unread, depth - slot, _MAX_RECORDS_PER_READ)
            words = self._transport.read(
                layout.BASE + layout.RECORDS + slot * layout.RECORD_BYTES, count * records.WORDS
            )
            new_records += [
                records.decode_record(words[i : i + records.WORDS])
                for i in range(0, len(words), records.WORDS)
            ]
            self._records_taken = (self._records_taken + count) % (1 << 32)
            self._write_board_register("records_taken", self._records_taken)
        return new_records

    def _stop_core(self) -> None:
        """Disable the core, and discard its records until it is no longer active.

        Raises:
            BoardError: The core is still active after READY_TIMEOUT_S seconds.
        """
        self._write_core_register("control", 0)
        deadline = time.monotonic() + READY_TIMEOUT_S
        while self._read_core_words("status", 1)[0] & 1:
            if time.monotonic() > deadline:
                raise BoardError(
                    "registers", "the board's core does not stop", "load the bitstream again"
                )
            self.take_records()  # the core may be waiting for room in the ring of records
            time.sleep(0.001)

    def _latch(self) -> tuple[int, int, int]:
        """Store the current time and counters in registers.

        The command may be lost. A stored time that differs from the previous one confirms it.

        Returns:
            The stored time, and time.time_ns() before and after the command.
        """
        offset, bits = core.REGISTERS["time_ns"]
        command, _ = core.REGISTERS["command"]
        old = self._read_value(layout.CORE + offset, bits)
        for _ in range(WRITE_ATTEMPTS):
            before = time.time_ns()
            self._transport.write(layout.BASE + layout.CORE + command, [LATCH])
            new = self._read_value(layout.CORE + offset, bits)
            after = time.time_ns()
            if new != old:
                return new, before, after
        raise BoardError(
            "registers",
            f"the time of the board at {self._transport.name} stands still",
            "load the bitstream again",
        )

    # Registers.

    def _read_words(self, offset: int, count: int) -> list[int]:
        return self._transport.read(layout.BASE + offset, count)

    def _read_core_words(self, name: str, count: int) -> list[int]:
        return self._read_words(layout.CORE + core.REGISTERS[name][0], count)

    def _write_core_register(self, name: str, value: int) -> None:
        offset, bits = core.REGISTERS[name]
        self._write_value(layout.CORE + offset, bits, value)

    def _read_board_register(self, name: str) -> int:
        return self._read_words(layout.BOARD + layout.REGISTERS[name].offset, 1)[0]

    def _write_board_register(self, name: str, value: int) -> None:
        self._write_value(layout.BOARD + layout.REGISTERS[name].offset, 32, value)

    def _write_value(self, offset: int, bits: int, value: int) -> None:
        """Write a value and read it back; repeat this if the value differs, as a write may be lost.

        Raises:
            BoardError: The value still differs after WRITE_ATTEMPTS attempts.
        """
        words = [value >> shift & 0xFFFF_FFFF for shift in range(0, bits, 32)]
        for _ in range(WRITE_ATTEMPTS):
            self._transport.write(layout.BASE + offset, words)
            words_read = self._read_words(offset, len(words))
            if words_read == words:
                return
        raise BoardError(
            "registers",
            f"a register of the board at {self._transport.name} does not keep its value: "
            f"{[hex(word) for word in words]} were written at {offset:#05x}, "
            f"{[hex(word) for word in words_read]} were read back",
            "shorten the cable (for a serial line also check ground and levels), or load the "
            "bitstream that this version of nagi builds: `make fpga`",
        )

    def _read_value(self, offset: int, bits: int) -> int:
        words = self._read_words(offset, bits // 32)
        return sum(word << 32 * index for index, word in enumerate(words))
