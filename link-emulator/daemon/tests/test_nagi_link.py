# SPDX-License-Identifier: Apache-2.0
"""Tests of nagi-link with real packets between network namespaces."""

from __future__ import annotations

import json
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from emulated import NAGI_LINK, Emulator, configuration, lay_wire
from nagi.records.packets import get_fates, read_records, sort_records
from nagi_contracts.links import Links
from numbered import Numbered

realtime = (
    pytest.mark.realtime
)  # for tests of arrival times, or of many packets that must not be late


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Compute Philox4x32-10 as in the paper, to check the program's draws."""
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            (b >> 32) ^ counter[1] ^ key[0],
            b & 0xFFFFFFFF,
            (a >> 32) ^ counter[3] ^ key[1],
            a & 0xFFFFFFFF,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def is_lost(seed: int, link: int, direction: int, index: int, probability: float) -> bool:
    """Return whether a Bernoulli channel loses packet `index`."""
    words = philox([index, 0, link, direction << 16], [seed & 0xFFFFFFFF, seed >> 32])
    return words[0] | words[1] << 32 < probability * 2**64


@pytest.fixture
def wire(namespaces):
    lay_wire(namespaces)
    return namespaces


def send(wire, count: int, gap: float, size: int = 1000, timeout_s: float = 1.0):
    """Send numbered packets from left to right, and return those received with their arrivals."""
    return Numbered(wire, "10.0.0.2").exchange(count, gap, size, timeout_s)


both_kinds_of_io = pytest.mark.parametrize("io", ["af_xdp", "af_packet"])


@realtime
@both_kinds_of_io
def test_delivers_in_order_after_the_delay(wire, tmp_path, io):
    with Emulator(wire, tmp_path, io=io) as emulator:
        ping = wire.run("left", "python3", "-c", PING)
        got = send(wire, 200, 0.002)
        account = emulator.stop()
    assert [number for number, _ in got] == list(range(200))
    assert 0.020 <= float(ping) < 0.030
    there = account.links[0].forward
    assert there.packets.delivered == there.packets.offered == 201
    assert there.packets.held == 0
    assert there.transit_error_ns.count == 201
    assert account.complete
    assert account.scheduling == "SCHED_FIFO"
    assert account.memory_locked
    assert account.cpu_pinned is None
    assert account.links[0].a.io.startswith(io)
    assert account.links[0].b.sent == 201


PING = """
import socket, threading, time
# A datagram to a closed port comes back as an ICMP error on a connected socket: there and back.
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("10.0.0.2", 7))
s.settimeout(2)
begun = time.monotonic()
s.send(b"ping")
try:
    s.recv(10)
except ConnectionRefusedError:
    print(time.monotonic() - begun)
"""


@realtime
def test_loses_exactly_the_packets_that_the_seed_says(wire, tmp_path):
    loss = {"model": "bernoulli", "probability": 0.3}
    with Emulator(wire, tmp_path, forward={"loss": loss}) as emulator:
        got = send(wire, 300, 0.001)
        account = emulator.stop()
    expected = [i for i in range(300) if not is_lost(2008, 3, 0, i, 0.3)]
    assert [number for number, _ in got] == expected
    assert account.links[0].forward.packets.channel_losses == 300 - len(expected)


@realtime
def test_keeps_rate_and_queue(wire, tmp_path):
    # 100 packets of 1,000 IP bytes at once into 8 Mb/s with room for 20: one is in transmission,
    # 20 wait, and while the burst lasts hardly any leaves.
    forward = {"rate_bps": 8_000_000, "queue": {"packets": 20}}
    with Emulator(wire, tmp_path, forward=forward) as emulator:
        got = send(wire, 100, 0)
        account = emulator.stop()
    there = account.links[0].forward
    assert there.packets.queue_overflows == 100 - len(got)
    assert 21 <= len(got) < 60
    assert there.max_waiting_packets == 20
    assert there.server.bytes * 8e9 / there.server.busy_ns == pytest.approx(8e6, rel=1e-6)
    first, last = got[0][1], got[-1][1]
    assert last - first == pytest.approx((len(got) - 1) * 1e-3, rel=0.05)


@realtime
@both_kinds_of_io
def test_spares_nothing_of_a_burst_without_a_limit(wire, tmp_path, io):
    with Emulator(wire, tmp_path, forward={"rate_bps": 80_000_000}, io=io) as emulator:
        got = send(wire, 2000, 0)
        account = emulator.stop()
    assert len(got) == 2000
    assert account.links[0].a.socket_drops == 0


def test_account_is_marked_incomplete_when_killed(wire, tmp_path):
    with Emulator(wire, tmp_path) as emulator:
        account = emulator.stop("KILL")
    assert not account.complete


@realtime
def test_uses_af_packet_where_af_xdp_does_not_go_and_says_why(wire, tmp_path):
    wire.run("middle", "ip", "link", "set", "e0", "mtu", "9000")
    with Emulator(wire, tmp_path) as emulator:
        assert "e0 uses AF_PACKET" in emulator.output and "MTU above" in emulator.output
        got = send(wire, 10, 0.001)
        account = emulator.stop()
    assert len(got) == 10
    assert account.links[0].a.io == "af_packet"
    assert account.links[0].b.io == "af_xdp generic"
    assert any("MTU above" in notice for notice in account.notices)


SEND_TAGGED = """
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
s.send(bytes(12) + b"\\x81\\x00\\x00\\x05\\x08\\x00" + bytes(range(46)))
"""
RECEIVE_RAW = """
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("eth0", 3))
s.setsockopt(263, 8, 1)  # PACKET_AUXDATA: tags come beside the frame
s.settimeout(5)
print("ready", flush=True)
while True:
    data, auxiliary, _, _ = s.recvmsg(2000, 100)
    if data[-46:] == bytes(range(46)):
        break
inside = data[12:14] == b"\\x81\\x00" and data[14:16] == b"\\x00\\x05"
beside = any(part[2][16:18] == b"\\x05\\x00" for part in auxiliary)
print(inside or beside)
"""


@both_kinds_of_io
def test_vlan_tags_go_through(wire, tmp_path, io):
    with Emulator(wire, tmp_path, io=io):
        receiver = wire.start("right", "python3", "-c", RECEIVE_RAW)
        assert receiver.stdout.readline() == "ready\n"
        wire.run("left", "python3", "-c", SEND_TAGGED)
        said, _ = receiver.communicate(timeout=10)
    assert said == "True\n"


def test_stays_on_its_processor(wire, tmp_path):
    with Emulator(wire, tmp_path, cpu=0) as emulator:
        allowed = wire.run("middle", "taskset", "-p", str(emulator.pid()))
        account = emulator.stop()
    assert allowed.strip().endswith(": 1")
    assert account.cpu_pinned == 0


def test_says_so_when_it_cannot_stay_on_a_processor(wire, tmp_path):
    with Emulator(wire, tmp_path, cpu=1000) as emulator:
        assert "cannot be bound to processor 1000" in emulator.output
        assert emulator.stop().cpu_pinned is None


def change(wire, directory: Path, changes: str, link: str = "link", direction: str = "forward"):
    return subprocess.run(
        wire.command("middle", NAGI_LINK, "set", str(directory / "sock"), link, direction, changes),
        capture_output=True,
        text=True,
        check=False,
    )


@realtime
def test_set_changes_a_running_link_and_loses_nothing(wire, tmp_path):
    with Emulator(wire, tmp_path, forward={"rate_bps": 400_000}) as emulator:
        # 50 packets of 1,000 bytes take a second at 400 kb/s; a tenth of it in, they get 8 Mb/s.
        numbered = Numbered(wire, "10.0.0.2")
        receiver = numbered.start_receiver()
        numbered.send(count=50, gap=0)
        time.sleep(0.1)
        done = change(wire, tmp_path, '{"rate_bps": 8000000, "delay_ns": 1000000}')
        assert done.returncode == 0
        assert json.loads(done.stdout)["rate_bps"] == 8_000_000
        lines, _ = receiver.communicate(timeout=20)
        account = emulator.stop()
    numbers = [int(line.split()[0]) for line in lines.splitlines()]
    instants = [float(line.split()[1]) for line in lines.splitlines()]
    assert numbers == list(range(50))
    assert instants[-1] - instants[0] < 0.6
    assert instants[-1] - instants[-11] == pytest.approx(0.010, abs=0.003)
    (recorded,) = account.links[0].forward.changes
    assert recorded.config == account.links[0].forward.config
    assert account.links[0].forward.config.delay_ns == 1_000_000


def test_set_refuses_what_cannot_be(wire, tmp_path):
    with Emulator(wire, tmp_path) as emulator:
        for arguments, said in (
            (('{"rate_bps": 0}',), "config.rate_bps: not a possible value: 0"),
            (('{"rate": 5}',), "config.rate: unknown key rate; did you mean rate_bps"),
            (('{"rat_bps": null}',), "config.rat_bps: unknown key rat_bps; did you mean rate_bps"),
            (("[]",), "expected an object"),
            (("{",), "not JSON"),
            (("{}", "other"), "there is no link other; links: link"),
            (("{}", "link", "there"), "unknown direction"),
        ):
            done = change(wire, tmp_path, *arguments)
            assert done.returncode == 2
            assert said in done.stderr
        account = emulator.stop()
    assert account.links[0].forward.changes == []


def ask(wire, directory: Path, line: str) -> dict:
    """Send a line to the control socket of a running nagi-link, and return the answer."""
    asked = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
        "s.sendall(sys.stdin.buffer.read() + b'\\n'); print(s.makefile().readline())"
    )
    return json.loads(
        wire.run("middle", "python3", "-c", asked, str(directory / "sock"), text=line)
    )


@realtime
def test_deep_nesting_stops_no_link(wire, tmp_path):
    with Emulator(wire, tmp_path) as emulator:
        head = '{"command": "set", "link": "link", "direction": "forward", "config": '
        for depth in (64, 20_000):
            for opening, closing in (("[", "]"), ('{"loss":', "}")):
                deep = opening * depth + ("0" if closing == "}" else "") + closing * depth
                for line in (head + deep + "}", head + opening * depth, deep):
                    if len(line) >= 64 * 1024 or (depth == 64 and line == deep):
                        continue
                    answer = ask(wire, tmp_path, line)
                    assert not answer["ok"]
                    assert answer["error"].startswith("control message:1: column ")
                    assert "nested more than 64 levels deep; " in answer["error"]
            done = change(wire, tmp_path, "[" * depth + "]" * depth)
            assert done.returncode == 2
            assert "nested more than 64 levels deep" in done.stderr
        assert ask(wire, tmp_path, '{"command": "show"}')["ok"]
        got = send(wire, 20, 0.001)
        account = emulator.stop()
    assert [number for number, _ in got] == list(range(20))
    assert account.complete and account.links[0].forward.changes == []


def test_errors_are_in_our_words_and_on_one_line(wire, tmp_path):
    with Emulator(wire, tmp_path):
        for line, said in (
            (
                "{",
                "control message:1: not JSON: column 2: unexpected end of input; expected",
            ),
            ('{"comand": "show"}', "comand: unknown key comand; did you mean command"),
            ('{"command": "show", "links": 1}', "links: unknown key links; known here: command"),
            (
                '{"command": "set", "lnk": "link", "direction": "forward", "config": {}}',
                "lnk: unknown key lnk; did you mean link",
            ),
            (
                '{"command": "set", "link": "\\u001b[2Jx", "direction": "forward", "config": {}}',
                'link: a control character in "\\u001b[2Jx"; remove it',
            ),
        ):
            answer = ask(wire, tmp_path, line)
            assert not answer["ok"]
            assert said in answer["error"] and "json.exception" not in answer["error"]
        done = change(wire, tmp_path, '{"rat_bps": 5}', link="\x1b[2J\nno" + "x" * 1000)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1 and "\x1b" not in done.stderr
        assert len(done.stderr) < 200


@realtime
def test_records_what_became_of_every_packet(wire, tmp_path):
    # 8 Mb/s, room for 20: of 100 at once many overflow, and some are lost on the channel.
    forward = {
        "rate_bps": 8_000_000,
        "queue": {"packets": 20},
        "loss": {"model": "bernoulli", "probability": 0.3},
    }
    files = {"packets": str(tmp_path / "packets.bin"), "drops": str(tmp_path / "drops.pcapng")}
    with Emulator(wire, tmp_path, forward=forward, **files) as emulator:
        got = send(wire, 100, 0)
        account = emulator.stop()
    counts = account.links[0].forward.packets
    assert counts.queue_overflows > 10 and counts.channel_losses > 0

    records = read_records(Path(files["packets"]))
    there = records[records["direction"] == 0]
    assert sorted(there["index"]) == list(range(counts.offered))
    for fate, count in enumerate(
        (counts.delivered, counts.queue_overflows, counts.channel_losses, counts.held)
    ):
        assert (get_fates(there) == fate).sum() == count
    assert set(there["bytes"]) >= {1000}

    # tcpdump reads the drops, and they are the packets that did not arrive.
    shown = wire.run("middle", "tcpdump", "-r", files["drops"], "-nn")
    dropped = shown.count("UDP, length 972")
    assert dropped == counts.queue_overflows + counts.channel_losses == 100 - len(got)
    data = Path(files["drops"]).read_bytes()
    assert data.count(b"queue overflow") == counts.queue_overflows
    assert data.count(b"channel loss") == counts.channel_losses

    # The model does the same once more, without a clock.
    again = tmp_path / "again.bin"
    config = str(tmp_path / "nagi-link.json")
    wire.run("middle", NAGI_LINK, "replay", config, files["packets"], str(again))
    recorded, replayed = sort_records(records), read_records(again)
    for column in ("direction", "index", "arrived_ns", "left_ns", "fate"):
        assert list(recorded[column]) == list(replayed[column])


@realtime
def test_marks_capable_packets_in_a_long_queue(wire, tmp_path):
    forward = {"rate_bps": 8_000_000, "mark": {"threshold_packets": 10, "weight": 1}}
    with Emulator(wire, tmp_path, forward=forward) as emulator:
        receiver = wire.start("right", "python3", "-c", RECEIVE_TOS)
        assert receiver.stdout.readline() == "ready\n"
        wire.run("left", "python3", "-c", SEND_CAPABLE)
        said, _ = receiver.communicate(timeout=10)
        account = emulator.stop()
    classes = [int(line) for line in said.splitlines()]
    # One is in transmission, 11 find ten or fewer waiting; while they are sent hardly one leaves.
    assert len(classes) == 40
    assert set(classes[:12]) == {2}
    assert set(classes[-20:]) == {3}
    assert account.links[0].forward.packets.marked == classes.count(3)


SEND_CAPABLE = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 2)
for _ in range(40):
    s.sendto(bytes(972), ("10.0.0.2", 9000))
"""
RECEIVE_TOS = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, 13, 1)  # IP_RECVTOS
s.bind(("10.0.0.2", 9000))
s.settimeout(1)
print("ready", flush=True)
try:
    while True:
        _, parts, _, _ = s.recvmsg(2000, 100)
        print(parts[0][2][0])
except TimeoutError:
    pass
"""


@realtime
def test_show_prints_the_account_of_a_running_emulator(wire, tmp_path):
    with Emulator(wire, tmp_path):
        send(wire, 10, 0.001)
        shown = wire.run("middle", NAGI_LINK, "show", str(tmp_path / "sock"))
        assert stat.S_IMODE((tmp_path / "sock").stat().st_mode) == 0o600
    account = Links.model_validate_json(shown)
    assert account.links[0].forward.packets.delivered == 10
    assert not account.complete


@pytest.mark.parametrize("user", [None, "nobody"])
def test_gives_up_its_privileges(wire, tmp_path, user):
    """As another user, too, it answers, writes its account, and puts offloads back."""
    wire.run("middle", "ethtool", "-K", "e0", "gro", "on")
    before = offloads(wire)
    options = {"packets": "packets.bin"} | ({} if user is None else {"user": user})
    with Emulator(wire, tmp_path, **options) as emulator:
        tasks = f"cat /proc/{emulator.pid()}/task/*/status"
        status = wire.run("middle", "sh", "-c", tasks).split("Name:")[1:]
    assert len(status) > 1, "it has a thread that writes"
    net_admin_and_ipc_lock = 1 << 12 | 1 << 14
    for each in status:
        fields = dict(line.split(":\t", 1) for line in each.splitlines() if ":\t" in line)
        assert int(fields["CapEff"], 16) == net_admin_and_ipc_lock
        assert int(fields["CapPrm"], 16) == net_admin_and_ipc_lock
        assert fields["NoNewPrivs"] == "1"
    account = pwd.getpwnam(user or "root")
    assert fields["Uid"].split() == [str(account.pw_uid)] * 4
    assert fields["Gid"].split() == [str(account.pw_gid)] * 4
    assert fields["Groups"].split() == ([] if user else fields["Groups"].split())
    assert Links.read(tmp_path / "links.json").complete
    assert offloads(wire) == before


def test_names_a_user_that_is_not_there(wire, tmp_path):
    said = refusal(wire, configuration(tmp_path, user="no-such-user"))
    assert 'user: there is no user no-such-user; give another user such as "nobody"' in said


def offloads(wire) -> list[str]:
    wanted = ("generic-receive-offload", "tx-checksumming")
    lines = wire.run("middle", "ethtool", "-k", "e0").splitlines()
    return [line for line in lines if line.startswith(wanted)]


def test_switches_offloads_off_and_on_again(wire, tmp_path):
    wire.run("middle", "ethtool", "-K", "e0", "gro", "on", "tx", "on")
    before = offloads(wire)
    assert all(line.split()[1] == "on" for line in before)
    with Emulator(wire, tmp_path) as emulator:
        assert all(line.split()[1] == "off" for line in offloads(wire))
        assert "switched generic-receive-offload of e0 off" in emulator.output
        account = emulator.stop()
    assert "generic-receive-offload" in account.links[0].a.offloads_switched_off
    assert offloads(wire) == before


def refusal(wire, config: Path) -> str:
    done = subprocess.run(
        wire.command("middle", NAGI_LINK, "run", str(config)),
        capture_output=True,
        text=True,
        check=False,
        timeout=10,
    )
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.strip().splitlines()
    return line


def test_refuses_offloads_when_told_to(wire, tmp_path):
    wire.run("middle", "ethtool", "-K", "e1", "gro", "on")
    said = refusal(wire, configuration(tmp_path, offloads="refuse"))
    assert "e1: generic-receive-offload is on" in said
    assert "ethtool -K e1 generic-receive-offload off" in said


def leave_checksums_to_hardware(wire) -> None:
    """As veths do that nobody has changed."""
    for host in ("left", "right"):
        wire.run(host, "ethtool", "-K", "eth0", "tx", "on", "gso", "on", "tso", "on")


@realtime
@both_kinds_of_io
def test_completes_checksums_that_a_peer_leaves_to_hardware(wire, tmp_path, io):
    leave_checksums_to_hardware(wire)
    with Emulator(wire, tmp_path, io=io) as emulator:
        got = send(wire, 50, 0.001)
        account = emulator.stop()
        said = emulator.process.stdout.read()
    assert [number for number, _ in got] == list(range(50))
    link = account.links[0]
    assert (link.a.checksum_missing, link.b.checksum_missing) == (50, 0)
    (notice,) = account.notices
    assert notice.startswith("e0: ") and notice.endswith("ethtool -K INTERFACE tx off")
    assert said.count(notice) == 1


ECHO = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
kind = {"udp": socket.SOCK_DGRAM, "tcp": socket.SOCK_STREAM}[sys.argv[2]]
s = socket.socket(family, kind)
s.bind((sys.argv[1], 7))
if kind == socket.SOCK_STREAM:
    s.listen()
print("ready", flush=True)
if kind == socket.SOCK_STREAM:
    s, _ = s.accept()
data, sender = s.recvfrom(2000)
while data:  # until an empty datagram comes, or the end of the connection
    s.sendto(data, sender) if sender else s.sendall(data)
    data, sender = s.recvfrom(2000)
"""
ASK = """
import random, socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
kind = {"udp": socket.SOCK_DGRAM, "tcp": socket.SOCK_STREAM}[sys.argv[2]]
s = socket.socket(family, kind)
s.settimeout(5)
s.connect((sys.argv[1], 7))
random = random.Random(1)
for length in range(1, 1200, 37):
    sent = random.randbytes(length)
    s.sendall(sent)
    got = b""
    while len(got) < length:
        got += s.recv(2000)
    assert got == sent
s.send(b"")
print("same")
"""


@realtime
@both_kinds_of_io
@pytest.mark.parametrize("protocol", ["udp", "tcp"])
@pytest.mark.parametrize("address", ["10.0.0.2", "fd00::2"])
def test_datagrams_and_connections_of_default_veths_pass(wire, tmp_path, io, protocol, address):
    if ":" in address:
        for number, (name, other) in enumerate((("left", "right"), ("right", "left")), start=1):
            wire.run(name, "sysctl", "-qw", "net.ipv6.conf.eth0.disable_ipv6=0")
            wire.run(name, "ip", "address", "add", f"fd00::{number}/64", "dev", "eth0", "nodad")
            shown = json.loads(wire.run(other, "ip", "-j", "link", "show", "eth0"))
            neighbour = [f"fd00::{3 - number}", "lladdr", shown[0]["address"], "dev", "eth0"]
            wire.run(name, "ip", "neighbour", "add", *neighbour)
    leave_checksums_to_hardware(wire)
    with Emulator(wire, tmp_path, io=io, forward={"delay_ns": 100_000}) as emulator:
        server = wire.start("right", "python3", "-c", ECHO, address, protocol)
        assert server.stdout.readline() == "ready\n"
        assert wire.run("left", "python3", "-c", ASK, address, protocol) == "same\n"
        server.communicate(timeout=10)
        account = emulator.stop()
    link = account.links[0]
    assert link.a.checksum_missing >= 33 and link.b.checksum_missing >= 33
    assert link.a.oversized == link.b.oversized == 0


@realtime
@both_kinds_of_io
def test_leaves_datagrams_without_a_checksum_alone(wire, tmp_path, io):
    sender = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        "s.setsockopt(socket.SOL_SOCKET, 11, 1); "  # SO_NO_CHECK
        "[s.sendto(bytes(100), ('10.0.0.2', 9000)) for _ in range(5)]"
    )
    with Emulator(wire, tmp_path, io=io) as emulator:
        receiver = wire.start("right", "python3", "-c", RECEIVE_TOS)
        assert receiver.stdout.readline() == "ready\n"
        wire.run("left", "python3", "-c", sender)
        said, _ = receiver.communicate(timeout=10)
        account = emulator.stop()
    assert said.split() == ["0"] * 5
    assert account.links[0].a.checksum_missing == 0
    assert account.notices == []


SEND_MERGED = """
import socket
UDP_SEGMENT = 103
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1000)
for _ in range(5):
    s.sendto(bytes(10000), ("10.0.0.2", 9000))
"""


@realtime
@both_kinds_of_io
def test_notices_merged_segments(wire, tmp_path, io):
    wire.run("left", "ethtool", "-K", "eth0", "tx", "on", "gso", "on", "tx-udp-segmentation", "on")
    with Emulator(wire, tmp_path, io=io) as emulator:
        wire.run("left", "python3", "-c", SEND_MERGED)
        time.sleep(0.1)
        account = emulator.stop()
    assert account.links[0].a.oversized == 5
    assert account.links[0].forward.packets.offered == 0
    (notice,) = account.notices
    assert "longer than its MTU" in notice and "ethtool -K INTERFACE tx off" in notice


def test_refuses_what_it_cannot_do(wire, tmp_path):
    links = [{"name": "l", "id": 0, "a": "e0", "b": "e9", "forward": {}, "backward": {}}]
    assert "no interface e9" in refusal(wire, configuration(tmp_path, links=links))
    account = "/proc/nowhere/links.json"
    assert "cannot write the account" in refusal(wire, configuration(tmp_path, account=account))
    epoch = time.time_ns() + 10**12
    assert "epoch" in refusal(wire, configuration(tmp_path, epoch_realtime_ns=epoch))
    for key in ("packets", "drops"):
        config = configuration(tmp_path, **{key: "/proc/nowhere/file"})
        assert "/proc/nowhere/file: cannot write it" in refusal(wire, config)
    with Emulator(wire, tmp_path):
        other = tmp_path / "other"
        other.mkdir()
        config = configuration(other)
        assert "e0: another program takes its packets" in refusal(wire, config)
        config = configuration(other, control_socket=str(tmp_path / "sock"), io="af_packet")
        assert "another program listens here" in refusal(wire, config)


@realtime
@pytest.mark.parametrize("how", ["HUP", "TERM", "INT"])
def test_a_closed_terminal_ends_it_in_order(wire, tmp_path, how):
    """It was killed by SIGHUP: offloads stayed off, the account was not written."""
    wire.run("middle", "ethtool", "-K", "e0", "gro", "on")
    before = offloads(wire)
    with Emulator(wire, tmp_path) as emulator:
        account = emulator.stop(how)
    assert account.complete and offloads(wire) == before
    assert not (tmp_path / "sock").exists()


def test_goes_on_when_nobody_reads_its_log(wire, tmp_path):
    """SIGPIPE killed it: its standard output and error are a pipe whose reader is gone."""
    program = f"{NAGI_LINK} run {configuration(tmp_path)} 2>&1 | head -n 1"
    shell = wire.start("middle", "bash", "-c", program)
    while "ready" not in shell.stdout.readline():
        pass
    wire.run(
        "middle",
        "bash",
        "-c",
        f"{NAGI_LINK} set {tmp_path}/sock wire forward "
        """'{"delay_ns": 1000000}'; ip link set e0 down; sleep 0.3; ip link set e0 up""",
    )
    shown = wire.run("middle", NAGI_LINK, "show", str(tmp_path / "sock"))
    assert not Links.model_validate_json(shown).complete
    wire.run("middle", "pkill", "-TERM", "-x", "nagi-link")
    shell.communicate()
    assert Links.read(tmp_path / "links.json").complete


@both_kinds_of_io
@pytest.mark.parametrize("again", [False, True])
def test_an_interface_that_is_gone_ends_it(wire, tmp_path, io, again):
    """As a USB adapter that is unplugged, and perhaps plugged in again."""
    with Emulator(wire, tmp_path, io=io) as emulator:
        wire.run("middle", "ip", "link", "delete", "e0")
        if again:
            wire.run("middle", "ip", "link", "add", "e0", "type", "veth", "peer", "name", "e9")
        status, output = emulator.wait_until_ended()
    assert status == 1
    assert "interface e0 no longer exists; create it or plug it in, then start" in output
    account = Links.read(tmp_path / "links.json")
    assert not account.complete
    assert not (tmp_path / "sock").exists()


def test_an_interface_that_is_down_is_said_and_waited_for(wire, tmp_path):
    with Emulator(wire, tmp_path) as emulator:
        wire.run("middle", "ip", "link", "set", "e0", "down")
        emulator.wait_for("interface e0 is down")
        wire.run("middle", "ip", "link", "set", "e0", "up")
        emulator.wait_for("interface e0 is up again")
        account = emulator.stop()
    assert account.complete
    assert any("e0 is down" in notice for notice in account.notices)


def test_waits_for_a_program_that_ends(wire, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    with Emulator(wire, tmp_path) as first:
        second = Emulator(wire, other)
        time.sleep(0.3)
        first.stop()
    with second:
        assert "ready" in second.output


def test_needs_privileges_and_says_so(wire):
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)  # pytest's own directories are closed to other users
        config = configuration(directory, account="/dev/null")
        program = shutil.copy(NAGI_LINK, directory)
        as_nobody = ["setpriv", "--reuid=65534", "--clear-groups", "--", program, "run"]
        done = subprocess.run(
            wire.command("middle", *as_nobody, str(config)),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "run the program as root, or with CAP_NET_RAW and CAP_NET_ADMIN" in done.stderr


def test_ends_with_its_parent(wire, tmp_path):
    config = configuration(tmp_path)
    parent = wire.start(
        "middle",
        "python3",
        "-c",
        f"import subprocess, time; subprocess.Popen([{NAGI_LINK!r}, 'run', {str(config)!r}]); "
        "time.sleep(60)",
    )
    while "ready" not in parent.stdout.readline():
        pass
    wire.run("middle", "pkill", "-KILL", "-x", "python3")
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        found = subprocess.run(
            wire.command("middle", "pgrep", "-x", "nagi-link"), capture_output=True, check=False
        )
        if found.returncode == 1:
            break
        time.sleep(0.05)
    else:
        pytest.fail("nagi-link outlived its parent")
    assert Links.read(tmp_path / "links.json").complete
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
