# SPDX-License-Identifier: Apache-2.0
"""Tests of `nagi-switch simulate`: answers list packets that left; requests move the clock."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from switched import NAGI_SWITCH, configuration, route


def ask(path: Path, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [NAGI_SWITCH, "simulate", str(path)],
        input="".join(json.dumps(request) + "\n" for request in requests),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def packet(port: int, number: int, size: int = 1014) -> dict[str, Any]:
    head = bytes.fromhex("0200000000fe 020000000001 0800".replace(" ", ""))
    ip = bytearray(20)
    ip[0], ip[8], ip[9] = 0x45, 64, 253
    ip[2:4] = (size - 14).to_bytes(2, "big")
    ip[4:6] = number.to_bytes(2, "big")
    ip[12:20] = bytes([10, 0, 1, 7, 10, 0, 2, 7])
    total = sum(int.from_bytes(ip[at : at + 2], "big") for at in range(0, 20, 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    ip[10:12] = (~total & 0xFFFF).to_bytes(2, "big")
    return {"op": "packet", "port": port, "bytes": (head + ip + bytes(size - 34)).hex()}


def test_packets_and_operations_interleave(tmp_path: Path) -> None:
    path = configuration(tmp_path, [{"number": 1}, {"number": 2, "rate_bps": 8_000_000}])
    requests = [
        packet(1, 1),  # no route yet
        route(2),
        packet(1, 2),
        packet(1, 3),
        {"op": "advance", "us": 1000},
        {"op": "advance", "us": 1000},
        {"op": "table_read", "table": "ingress.ipv4_routes"},
        {"op": "nonsense"},
        packet(3, 4),
        {"op": "show"},
    ]
    answers = ask(path, requests)
    assert answers[0] == {"ok": True, "sent": []}
    assert answers[2] == answers[3] == {"ok": True, "sent": []}
    for answer, number in ((answers[4], 2), (answers[5], 3)):
        (sent,) = answer["sent"]
        assert sent["port"] == 2
        assert sent["at_us"] == 1000 * (number - 1)
        assert bytes.fromhex(sent["bytes"])[18:20] == number.to_bytes(2, "big")
    (entry,) = answers[6]["entries"]
    assert (entry["hits"], entry["idle_us"]) == (2, 2000)
    assert not answers[7]["ok"]
    assert "nonsense" in answers[7]["error"]
    assert answers[8]["error"].startswith("control message:1: port: there is no such port")
    assert answers[9]["account"]["p4"]["received"] == 3
    assert ask(path, requests) == answers


def test_digests_outlive_the_program_that_sent_them(tmp_path: Path) -> None:
    learning = Path(__file__).parents[3] / "tests" / "stf" / "learning.json"
    path = configuration(tmp_path, [{"number": 1}], pipeline=str(learning))
    answers = ask(
        path,
        [
            {"op": "value_set_add", "set": "parsing.allowed", "value": 0x0800},
            {"op": "packet", "port": 1, "bytes": "020000000002020000000001080000"},
            {"op": "pipeline_set", "program": learning.read_text()},
            {"op": "digests"},
            {"op": "digests"},
        ],
    )
    assert all(answer["ok"] for answer in answers), answers
    (digest,) = answers[3]["digests"]
    assert (digest["digest"], digest["values"]) == ("Learned", [0x020000000001, 1])
    assert answers[4]["digests"] == []


def test_a_port_is_a_number_only(tmp_path: Path) -> None:
    path = configuration(tmp_path, [{"number": 1, "interface": "p1"}])
    done = subprocess.run([NAGI_SWITCH, "simulate", str(path)], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"ports.0.interface" in done.stderr
