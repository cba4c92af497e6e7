# SPDX-License-Identifier: Apache-2.0
"""packets.bin and transmissions.bin with arbitrary bytes: they become a table, or are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nagi.backends.medium.frames import to_frames_table
from nagi.records import packets, transmissions
from nagi_contracts.errors import InputError
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.plan import RunPlan

(RUN,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())
PLAN = RunPlan.read(RUN / "plan.json")
any_file = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def make_files(header: bytes, record_bytes: int) -> st.SearchStrategy[bytes]:
    """Return a strategy: arbitrary bytes, or arbitrary records after a valid header."""
    records = st.integers(0, 5).flatmap(
        lambda count: st.binary(min_size=count * record_bytes, max_size=count * record_bytes)
    )
    return st.one_of(st.binary(max_size=100), records.map(header.__add__))


@any_file
@given(data=make_files(packets.HEADER, packets.RECORD.itemsize))
def test_any_packets_are_a_table_or_refused(tmp_path, data):
    (tmp_path / "packets.bin").write_bytes(data)
    try:
        table = packets.to_table(packets.read_records(tmp_path / "packets.bin"), PLAN)
    except InputError:
        return
    assert len(table) == (len(data) - len(packets.HEADER)) // packets.RECORD.itemsize


@any_file
@given(data=make_files(transmissions.HEADER, transmissions.TRANSMISSION.itemsize))
def test_any_transmissions_are_a_table_or_refused(tmp_path, data):
    (tmp_path / "transmissions.bin").write_bytes(data)
    try:
        records_read = transmissions.read_transmissions(tmp_path / "transmissions.bin", PLAN)
        count = len(transmissions.to_table(records_read, PLAN)) + len(
            to_frames_table(records_read, PLAN)
        )
    except InputError:
        return
    assert count == len(records_read)


def test_a_packet_of_a_direction_that_there_is_not_is_refused(tmp_path):
    record = np.zeros(1, packets.RECORD)
    record["direction"] = 255
    packets.write_records(record, tmp_path / "packets.bin")
    with pytest.raises(InputError):
        packets.to_table(packets.read_records(tmp_path / "packets.bin"), PLAN)
