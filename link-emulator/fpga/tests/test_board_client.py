# SPDX-License-Identifier: Apache-2.0
"""Tests of the client of a board, with doubles of a board that speak Etherbone and UARTBone.

The doubles do not use nagi's code of these protocols.
"""

from __future__ import annotations

import os
import pty
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from etherbone_double import BASE, Endpoint, Words
from nagi_fpga import board_registers, records, register_map
from nagi_fpga.board import Board, compute_name_crc
from nagi_fpga.configuration import Unsupported
from nagi_fpga.errors import BoardError
from nagi_fpga.etherbone import Etherbone, decode_answer, encode_request
from nagi_fpga.uart import Uart

LINK = {
    "rate_bps": 10_000_000,
    "delay_ns": 20_000_000,
    "queue": {"packets": 50},
    "loss": {"model": "bernoulli", "probability": 0.01, "at": "egress"},
}
SAME = {"forward": LINK, "backward": LINK}


@contextmanager
def open_board(
    words: Words, mangle: Callable[[int, bytes], list[bytes]] | None = None, attempts: int = 8
) -> Iterator[Board]:
    endpoint = Endpoint(words, mangle)
    transport = Etherbone(
        "127.0.0.1", port=endpoint.port, local_port=0, timeout_s=0.05, attempts=attempts
    )
    try:
        yield Board(transport)
    finally:
        transport.close()
        endpoint.close()


def test_request_is_what_etherbone_says() -> None:
    # Written by hand from the format.
    assert encode_request(7, 0x30000010, [0xDEADBEEF], [0x30000000, 0x30000004]).hex() == (
        "4e6f104400000000000f010230000010deadbeef000000073000000030000004"
    )


def test_answers_that_are_none() -> None:
    good = bytes.fromhex("4e6f104400000000000f0100000000070000002a")
    assert decode_answer(good) == (7, [42])
    for bad in (b"", good[:-1], good[:4], b"\0" + good[1:], good[:10] + b"\x02" + good[11:]):
        with pytest.raises(ValueError):
            decode_answer(bad)


def test_board_says_what_it_is() -> None:
    with open_board(Words()) as board:
        found = board.identify()
    assert found.build_id == 0x12345678
    assert found.board == compute_name_crc("colorlight-5a-75b")
    assert found.memory_bytes == 8 << 19
    assert (found.data_width, found.mem_width, found.max_frame) == (64, 64, 1536)
    assert (found.max_packets, found.clock_period_ps) == (1024, 8000)


def test_answers_that_are_lost_late_or_doubled_do_no_harm() -> None:
    kept: list[bytes] = []

    def mangle(count: int, answer: bytes) -> list[bytes]:
        kept.append(answer)
        if count % 3 == 0:
            return []  # lost
        return [kept[max(0, count - 2)], answer, answer]  # an old one first, then twice

    words = Words()
    with open_board(words, mangle) as board:
        assert board.identify().build_id == 0x12345678
        board.check_registers()
        board.start(3, 99, SAME, 0)
    assert words.at[0x028] == 99
    assert words.at[0x018] == 1


def test_configuration_is_written_and_read_back() -> None:
    words = Words()
    with open_board(words) as board:
        off = board.start(7, 0x1122334455667788, SAME, 0)
    assert off >= 0
    assert words.at[0x024] == 7
    assert (words.at[0x028], words.at[0x02C]) == (0x55667788, 0x11223344)
    for base in (0x100, 0x200):
        assert words.at[base] == 10_000_000
        assert words.at[base + 0x20] == 20_000_000
        assert words.at[base + 0x10] == 50
        threshold = words.at[base + 0x28] | words.at[base + 0x2C] << 32
        assert threshold == int(0.01 * 2**64)
    # It is enabled last, after all else.
    assert words.writes[-1] == (0x018, 1)


def test_epoch_is_where_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    words = Words()
    monkeypatch.setattr("nagi_fpga.board.time.time_ns", lambda: 1_000_000_000_000)
    with open_board(words) as board:
        board.start(0, 0, SAME, 1_000_500_000_000)
    # Half a second after the instant in which time was latched.
    assert words.at[0x030] | words.at[0x034] << 32 == 5_000_001_000 + 500_000_000


def test_a_board_that_does_not_keep_what_is_written_is_refused() -> None:
    words = Words()
    words.fixed.add(0x120)
    with (
        open_board(words) as board,
        pytest.raises(BoardError, match=r"does not keep .* written at 0x120, "),
    ):
        board.start(0, 0, SAME, 0)
    assert words.at.get(0x018, 0) == 0


def test_what_the_core_lacks_is_refused_before_the_board_is_touched() -> None:
    words = Words()
    with open_board(words) as board, pytest.raises(Unsupported):
        board.start(0, 0, {"forward": {"jitter": {"model": "normal"}}, "backward": {}}, 0)
    assert words.writes == []


@pytest.mark.parametrize(
    ("place", "word", "says"),
    [
        (0x1000, 0, "does not run nagi's gateware"),
        (0x000, 0xFFFFFFFF, "register map"),
        (0x004, 2, "register map 2 .* nagi has 1"),
    ],
)
def test_another_board_is_refused(place: int, word: int, says: str) -> None:
    words = Words()
    words.at[place] = word
    with open_board(words) as board, pytest.raises(BoardError, match=says) as raised:
        board.identify()
    assert "make fpga" in raised.value.cure


def test_a_write_that_is_lost_is_done_again() -> None:
    words = Words()
    write, dropped = words.write, set()

    def lossy(address: int, word: int) -> None:
        if address not in dropped:
            dropped.add(address)
            return
        write(address, word)

    words.write = lossy
    with open_board(words) as board:
        board.start(3, 99, SAME, 0)
    assert (words.at[0x024], words.at[0x028], words.at[0x018]) == (3, 99, 1)


def test_a_clock_that_stands_still_is_noticed() -> None:
    words = Words()
    words.fixed |= {0x020}
    words.write = lambda *_: None
    with open_board(words) as board, pytest.raises(BoardError, match="stands still"):
        board.read_counters()


def test_a_bus_that_loses_bits_is_noticed() -> None:
    words = Words()
    words.fixed.add(0x1010)
    with (
        open_board(words) as board,
        pytest.raises(BoardError, match=r"does not keep .*0x5555.* \['0x0'\] were read"),
    ):
        board.check_registers()


def test_nonsense_is_told_from_silence() -> None:
    with (
        open_board(Words(), lambda *_: [b"HTTP/1.1 400"], attempts=2) as board,
        pytest.raises(BoardError, match="does not speak Etherbone"),
    ):
        board.identify()
    with (
        open_board(Words(), lambda *_: [], attempts=2) as board,
        pytest.raises(BoardError, match="no answer to 2 requests") as raised,
    ):
        board.identify()
    assert "lights" in raised.value.cure


def test_a_second_client_is_refused() -> None:
    first = Etherbone("127.0.0.1", port=9, local_port=0)
    taken = first._socket.getsockname()[1]
    with pytest.raises(BoardError, match=f"UDP port {taken} of this host cannot be used"):
        Etherbone("127.0.0.1", local_port=taken)
    first.close()


def record(index: int, late_ns: int = 5) -> list[int]:
    what = 2 | 1 << 4 | 1 << 6 | 1 << 7 | late_ns << 8
    return list(
        struct.unpack(
            "<8I",
            struct.pack(
                "<QQIIHHI",
                10**10 + index,
                2 * 10**10,
                index,
                0xCAFE,
                1500,
                what & 0xFFFF,
                what >> 16,
            ),
        )
    )


def test_records_are_taken_once_and_in_order_across_the_end_of_the_ring() -> None:
    words = Words()
    words.at[0x1018] = 1020  # records of earlier runs
    with open_board(words) as board:
        board.start(0, 0, SAME, 0)
        for index in range(40):
            words.put_record(record(index))
        found = board.take_records()
        assert [core_record.index for core_record in found] == list(range(40))
        assert words.at[0x101C] == 1060
        assert board.take_records() == []
    one = found[0]
    assert (one.arrived_ns, one.left_ns, one.identity, one.bytes) == (
        10**10,
        2 * 10**10,
        0xCAFE,
        1500,
    )
    assert (one.fate, one.ecn, one.is_marked, one.is_backward, one.late_ns) == (2, 1, True, True, 5)


def test_records_in_a_file_are_nagi_links(tmp_path: Path) -> None:
    from nagi.records import packets

    words = records.decode_record(record(3, late_ns=1 << 32 - 1))
    path = tmp_path / "packets.bin"
    path.write_bytes(records.HEADER + records.encode_packet_record(words, link=4))
    (read,) = packets.read_records(path)
    assert (read["arrived_ns"], read["left_ns"]) == (10**10 + 3, 2 * 10**10)
    assert (read["index"], read["identity"], read["bytes"]) == (3, 0xCAFE, 1500)
    assert (read["direction"], read["fate"], read["ecn"], read["flags"]) == (9, 2, 1, 1)
    assert read["late_ns"] == records.MAX_LATE_NS


def test_counters_are_latched_first() -> None:
    words = Words()
    words.at[0x180], words.at[0x184] = 5, 1
    words.at[0x290] = 7
    with open_board(words) as board:
        found = board.read_counters()
    assert words.writes == [(0x020, 1)]
    assert found["forward"]["offered"] == 5 + (1 << 32)
    assert found["backward"]["delivered"] == 7
    assert found["forward"].keys() == register_map.COUNTERS.keys()


def test_speed_of_a_port_is_told_by_its_clock() -> None:
    words = Words()
    words.at[0x1024] = 26214  # 25 MHz
    with open_board(words) as board:
        a, b = board.read_ports()
    assert (a.speed, b.speed) == ("1 Gb/s", "100 Mb/s")


def test_registers_of_the_board_have_places_of_their_own() -> None:
    offsets = [register.offset for register in board_registers.REGISTERS.values()]
    assert len(set(offsets)) == len(offsets)
    assert all(offset % 4 == 0 and offset < 0x100 for offset in offsets)


def serve_uart(file: int, words: Words) -> None:
    """Serve UARTBone, as LiteX documents it, until the line is closed."""

    def take(count: int) -> bytes:
        got = b""
        while len(got) < count:
            got += os.read(file, count - len(got))
        return got

    try:
        while True:
            command, length, place = struct.unpack(">BBI", take(6))
            for i in range(length):
                if command == 1:
                    words.write(4 * (place + i), int.from_bytes(take(4), "big"))
                elif command == 2:
                    os.write(file, words.read(4 * (place + i)).to_bytes(4, "big"))
    except OSError:
        return


def test_the_same_over_a_serial_line() -> None:
    ours, theirs = pty.openpty()
    words = Words()
    thread = threading.Thread(target=serve_uart, args=(ours, words), daemon=True)
    thread.start()
    board = Board(Uart(os.ttyname(theirs)))
    assert board.identify().build_id == 0x12345678
    board.start(1, 2, SAME, 0)
    words.put_record(record(0))
    assert [core_record.index for core_record in board.take_records()] == [0]
    assert words.at[BASE - BASE + 0x018] == 1
    board.close()
    os.close(theirs)
    thread.join()  # the thread ends when the line is closed; the next test may reuse the descriptor
    os.close(ours)


def test_a_serial_line_without_a_board() -> None:
    ours, theirs = pty.openpty()
    board = Board(Uart(os.ttyname(theirs), timeout_s=0.05, attempts=1))
    with pytest.raises(BoardError, match="does not answer at /dev/"):
        board.identify()
    board.close()
    os.close(theirs)
    os.close(ours)


def test_a_serial_device_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match="No such file") as raised:
        Uart(str(tmp_path / "ttyUSB0"))
    assert "serial" in raised.value.cure
    (tmp_path / "file").touch()
    with pytest.raises(BoardError, match="is not a serial device"):
        Uart(str(tmp_path / "file"))
