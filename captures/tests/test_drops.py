# SPDX-License-Identifier: Apache-2.0
"""Drop logs: the log has what was dropped, and a damaged log is refused."""

from __future__ import annotations

import struct

import pandas as pd
import pytest
from nagi_captures.drops import DROP_COLUMNS, egress_interface, read_drops
from nagi_contracts.errors import InputError
from nagi_contracts.links import Links
from nagi_contracts.paths import SCHEMAS
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

(RUN,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())


def block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def drop(frame: bytes, time_ns: int, cause: str, snap: int = 128, interface: int = 0) -> bytes:
    kept = frame[:snap]
    head = struct.pack(
        "<IIIII", interface, time_ns >> 32, time_ns & 0xFFFFFFFF, len(kept), len(frame)
    )
    comment = option(1, cause.encode()) + option(0, b"")
    return block(6, head + kept + bytes(-len(kept) % 4) + comment)


HEADER = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(
    1, struct.pack("<HHI", 1, 0, 128) + option(2, b"radio.forward") + option(0, b"")
)


def segment(sequence: int, payload: int, options=()) -> bytes:
    tcp = TCP(sport=40000, dport=5001, seq=sequence, flags="A", options=list(options))
    return bytes(Ether() / IP(src="10.0.0.1", dst="10.0.1.2", id=77) / tcp / Raw(bytes(payload)))


@pytest.fixture
def log(tmp_path):
    def write(*drops: bytes, header: bytes = HEADER):
        path = tmp_path / "drops.pcapng"
        path.write_bytes(header + b"".join(drops))
        return path

    return write


def test_segments_are_read_as_they_were_on_the_wire(log):
    stamps = [("Timestamp", (1, 2)), ("NOP", None), ("NOP", None)]
    path = log(
        drop(segment(2**32 - 1, 1000, stamps), 2**60 + 5, "channel loss"),
        drop(segment(7, 0), 2**60 + 6, "queue overflow"),
    )
    table = read_drops(path)
    assert list(table.columns) == list(DROP_COLUMNS)
    assert table["time_ns"].tolist() == [2**60 + 5, 2**60 + 6]
    assert table["sequence"].tolist() == [2**32 - 1, 7]
    assert table["payload"].tolist() == [1000, 0]
    assert table["cause"].tolist() == ["channel loss", "queue overflow"]
    first = table.iloc[0]
    assert (first["source"], first["source_port"]) == ("10.0.0.1", 40000)
    assert (first["destination"], first["destination_port"]) == ("10.0.1.2", 5001)
    assert first["identity"] >> 16 == 77


def test_of_a_switch_only_what_links_asked_for_counts(log):
    path = log(
        drop(segment(1, 1000), 1, "queue overflow", interface=egress_interface(1)),
        drop(segment(2, 1000), 2, "egress", interface=egress_interface(1)),
        # No route, a sample of a queue that has turned round, ...
        drop(segment(3, 1000), 3, "ingress", interface=egress_interface(0) - 1),
        drop(segment(4, 1000), 4, "no such port", interface=egress_interface(0) - 1),
    )
    table = read_drops(path, of_switch=True)
    assert table["sequence"].tolist() == [1, 2]
    assert table["cause"].tolist() == ["queue overflow", "channel loss"]
    assert table["interface"].tolist() == [3, 3]
    with pytest.raises(InputError, match="damaged drop log"):
        read_drops(path)


def test_segments_of_both_versions_of_ip_are_read(log):
    ends = IPv6(src="fd6e:6167:6900:1::1", dst="fd6e:6167:6900:2::2")
    tcp = TCP(sport=40000, dport=5001, seq=2**32 - 2, ack=0x10005, options=[("NOP", None)] * 4)
    six = bytes(Ether() / ends / tcp / Raw(bytes(100)))
    table = read_drops(
        log(*(drop(frame, 1, "channel loss") for frame in (six, segment(9, 1000), six)))
    )
    assert table["source"].tolist() == ["fd6e:6167:6900:1::1", "10.0.0.1", "fd6e:6167:6900:1::1"]
    assert table["destination"][0] == "fd6e:6167:6900:2::2"
    assert (table["source_port"][0], table["destination_port"][0]) == (40000, 5001)
    assert (table["sequence"][0], table["payload"][0]) == (2**32 - 2, 100)
    # The lower halves of sequence (0xfffe) and acknowledgement (5); the checksum.
    assert table["identity"][0] == 3 << 16 | Ether(six)[TCP].chksum


def test_what_is_no_tcp_is_passed_over(log):
    udp = bytes(Ether() / IP(src="10.0.0.1", dst="10.0.1.2") / UDP() / Raw(bytes(100)))
    six = bytes(Ether() / IPv6() / UDP() / Raw(bytes(100)))
    short = segment(1, 1000)[:40]
    short_six = bytes(Ether() / IPv6() / TCP() / Raw(bytes(100)))[:60]
    frames = (udp, six, short, short_six)
    table = read_drops(log(*(drop(frame, 1, "channel loss") for frame in frames)))
    assert table.empty and list(table.columns) == list(DROP_COLUMNS)
    assert read_drops(log()).empty


def test_the_recorded_log_has_what_the_emulator_counted():
    table = read_drops(RUN / "drops.pcapng")
    accounts = [
        direction.packets for link in Links.read(RUN / "links.json").links
        for direction in (link.forward, link.backward)
    ]  # fmt: skip
    counts = table["cause"].value_counts()
    assert counts["queue overflow"] == sum(each.queue_overflows for each in accounts)
    assert counts["channel loss"] == sum(each.channel_losses for each in accounts)
    packets = pd.read_parquet(RUN / "packets.parquet")
    dropped = packets[packets["fate"].isin(["queue overflow", "channel loss"])]
    assert sorted(table["identity"]) == sorted(dropped["identity"])


@pytest.mark.parametrize("cut", [1, 30, 60])
def test_a_log_that_is_cut_off_is_refused(log, cut):
    path = log(drop(segment(1, 1000), 1, "channel loss"))
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(InputError, match=rf"drops\.pcapng: damaged drop log: byte {len(HEADER)}"):
        read_drops(path)


def test_what_is_no_drop_log_is_refused(log, tmp_path):
    with pytest.raises(InputError, match="damaged drop log: byte 0"):
        read_drops(log(header=b"\xd4\xc3\xb2\xa1"))
    with pytest.raises(InputError, match=f"byte {len(HEADER)}"):
        read_drops(log(drop(segment(1, 1000), 1, "bad luck")))
    with pytest.raises(InputError, match="check that the run is complete"):
        read_drops(tmp_path / "nothing.pcapng")
