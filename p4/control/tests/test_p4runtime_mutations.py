# SPDX-License-Identifier: Apache-2.0
"""Tests of P4Runtime with changed bytes in serialized messages.

Each message gets an answer or a status of gRPC that is no failure of the server, and refused
messages change nothing.
"""

from __future__ import annotations

import random
from pathlib import Path

import grpc
import pytest
from nagi_p4runtime.errors import Code
from nagi_p4runtime.protos import p4r
from served import Served, decode_errors, read_info

PROGRAMS = Path(__file__).parent / "programs"
EVERYTHING, EVERYTHING_INFO = PROGRAMS / "everything.json", PROGRAMS / "everything.p4info.txtpb"
CPU_PORT = 255
INFO = read_info(EVERYTHING_INFO)


def ids(kind, name):
    return next(
        each.preamble.id
        for each in getattr(INFO, kind)
        if each.preamble.name.rpartition(".")[2] == name
    )


def entry(table, match, action, value, **rest):
    message = p4r.TableEntry(table_id=ids("tables", table), match=[match], **rest)
    message.action.action.action_id = ids("actions", action)
    message.action.action.params.add(param_id=1, value=value)
    return message


ENTRIES = [
    entry("stations", p4r.FieldMatch(field_id=1, exact={"value": b"\x09"}), "counted_send", b"\1"),
    entry(
        "routes",
        p4r.FieldMatch(field_id=1, lpm={"value": b"\x0a\0\0\0", "prefix_len": 8}),
        "send",
        b"\1\1",
        metadata=b"mine",
    ),
]
MUTATIONS = 300
FAILURES = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAVAILABLE)


def mutated(message: bytes, draws: random.Random) -> bytes:
    changed = bytearray(message)
    for _ in range(draws.randint(1, 3)):
        place = draws.randrange(len(changed))
        changed[place] = draws.choice([0, 1, 0x7F, 0x80, 0xFF, draws.randrange(256)])
    return bytes(changed)


@pytest.mark.parametrize("atomicity", ["CONTINUE_ON_ERROR", "ROLLBACK_ON_ERROR"])
def test_changed_writes_are_done_or_refused(tmp_path, atomicity):
    draws = random.Random(2008)
    with Served(tmp_path, EVERYTHING, EVERYTHING_INFO, ports=(0, 1, 2), cpu_port=CPU_PORT) as it:
        client = it.session()
        for _ in range(MUTATIONS):
            entity = p4r.Entity(table_entry=draws.choice(ENTRIES))
            try:
                entity = p4r.Entity.FromString(mutated(entity.SerializeToString(), draws))
            except Exception:  # no message any more: gRPC refuses it itself
                continue
            before = client.read(table_entry=p4r.TableEntry())
            update = p4r.Update(type=p4r.Update.INSERT, entity=entity)
            try:
                client.write(update, atomicity=atomicity)
            except grpc.RpcError as error:
                assert error.code() not in FAILURES, error
                if error.code() == grpc.StatusCode.UNKNOWN:
                    assert {code for code, _ in decode_errors(error)} - {Code.INTERNAL}, error
                assert client.read(table_entry=p4r.TableEntry()) == before
