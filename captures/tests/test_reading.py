# SPDX-License-Identifier: Apache-2.0
"""Connections without pandas: as arrays, as rows, of several files at once."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from made_captures import MS, ack, data, handshake, pcap
from nagi_captures.capture import scan
from nagi_captures.reading import read, read_in_parallel, read_rows
from nagi_contracts.errors import InputError


@pytest.fixture
def path(tmp_path):
    made = [*handshake(), data(1, 1000), ack(1001)]
    made += [data(1, 100 * port, sport=port) for port in range(1, 9)]
    return pcap(tmp_path / "x", made)


def test_arrays_are_those_of_the_scan(path):
    table, found = scan(path).flows, read(path)
    for name, column in found.columns.items():
        pd.testing.assert_series_equal(table[name], pd.Series(column, name=name))
    some = read(path, columns=["packets", "source"]).columns
    assert list(some) == ["source", "packets"]
    with pytest.raises(ValueError, match="no column packet;"):
        read(path, columns=["packet"])


def test_rows_are_those_of_the_scan(path):
    found = read_rows(path, limit=3)
    assert found.connections == 9
    assert [row["first_time_bytes"] for row in found.rows] == [1000, 0, 800, 0, 700, 0]
    table = scan(path).flows
    for row in found.rows:
        place = 2 * row["connection"] + row["direction"]
        assert set(row) == set(table)
        for name, value in row.items():
            expected = table[name][place]
            assert value == expected or (value is None and np.isnan(expected)), name
    with pytest.raises(ValueError, match="no column of whole numbers: source"):
        read_rows(path, by="source")


def test_the_interval_counts_from_the_first_packet(path):
    found = read(path, start_ns=3 * MS, end_ns=4 * MS, relative=True)
    assert (found.start_ns, found.end_ns) == (3 * MS, 4 * MS)
    assert found.columns["first_time_bytes_inside"].sum() == 1000


def test_rows_need_neither_numpy_nor_pandas(path):
    program = (
        "import sys; from nagi_captures.reading import read_rows; read_rows(sys.argv[1]);"
        "assert not {'numpy', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)


def test_several_files_at_once(path, tmp_path):
    found = read_in_parallel(read_rows, [path, tmp_path / "none", path])
    assert [isinstance(each, InputError) for each in found] == [False, True, False]


def test_memory_of_many_connections(tmp_path):
    """Bound the memory of 200,000 SYNs; a million once took 3 GB."""
    raw = pcap(tmp_path / "x", [data(1, 0, flags="S", ack=0)]).read_bytes()
    count = 200_000
    records = np.frombuffer(raw[24:] * count, np.uint8).reshape(count, -1).copy()
    records[:, 16 + 34 : 16 + 36] = (
        (np.arange(count) % 50_000).astype(">u2")[:, None].view(np.uint8)
    )
    records[:, 16 + 26] = np.arange(count) // 50_000
    path = tmp_path / "syns"
    path.write_bytes(raw[:24] + records.tobytes())
    program = (
        "import pathlib, sys; from nagi_captures.reading import read_rows;"
        "print(read_rows(sys.argv[1]).connections, "
        "pathlib.Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"
    )
    peaks = []
    for each, connections in ((tmp_path / "x", 1), (path, count)):
        done = subprocess.run(
            [sys.executable, "-c", program, str(each)], capture_output=True, text=True, check=True
        )
        found, peak = done.stdout.split()
        assert int(found) == connections
        peaks.append(int(peak))
    assert (peaks[1] - peaks[0]) * 1024 / count < 900
