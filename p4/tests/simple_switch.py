# SPDX-License-Identifier: Apache-2.0
"""Runs a test program on bmv2's simple_switch, from capture files to capture files.

simple_switch reads its packets from pipes, so that none arrives before the entries are added. Its
Thrift server listens on all addresses, so it runs in a network namespace of its own with nothing
but loopback. This needs root, simple_switch and simple_switch_CLI.
"""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus import Operation
from packet_maker import PORTS, Arrival
from programs import Digest, Sent, make_capture_header, make_capture_records, schedule_arrivals
from scapy.utils import RawPcapReader

QUIET_S = 1.0  # this long without a tick of processor time or a byte written: done
LIMIT_S = 120.0
BATCH_S = 1.0  # digests are sent 16 at a time, or after this long
NOTIFICATIONS = "notifications.ipc"
PACKETS = "packets.ipc"
DEEP_QUEUE = 100_000  # packets: none is dropped, however fast the file is read


def find_missing_programs() -> list[str]:
    """Return the programs that are not installed."""
    return [name for name in ("simple_switch", "simple_switch_CLI") if not shutil.which(name)]


class Refused(Exception):
    """simple_switch did not take an operation."""


@dataclass
class Outcome:
    sent: Sent
    digests: set[Digest]  # simple_switch tells the same thing only once until it is acknowledged


def run(compiled: Path, entries: list[Operation], packets: list[Arrival], work: Path) -> Outcome:
    """Run a program; return packets by port and digests. `work` is an empty directory."""
    pipes = {port: work / f"{port}_in.pcap" for port in PORTS}
    for pipe in pipes.values():
        os.mkfifo(pipe)
    options = ["--use-files 0", *(f"-i {port}@{port}" for port in PORTS)]
    with _run_switch(compiled, work, options) as process:
        # opened for reading too: opening does not wait for the other end
        writers = {port: os.open(pipe, os.O_RDWR) for port, pipe in pipes.items()}
        for writer in writers.values():
            os.write(writer, make_capture_header())
        _run_commands(
            process.pid, ["set_queue_depth " + str(DEEP_QUEUE), *_make_commands(compiled, entries)]
        )
        notifications = _subscribe(work / NOTIFICATIONS)
        arrivals = schedule_arrivals(packets)
        # The reader merges the files by time and waits for each one's next packet; a port at a
        # time could fill a pipe while it waits for another.
        ordered = sorted((us, port, data) for port in PORTS for us, data in arrivals[port])
        for us, port, data in ordered:
            os.write(writers[port], make_capture_records([(us, data)]))
        for writer in writers.values():
            os.close(writer)
        outputs = [work / f"{port}_out.pcap" for port in PORTS]
        _wait_until_quiet(process, work, lambda: sum(file.stat().st_size for file in outputs))
        digests = _read_digests(notifications, compiled)
    return Outcome({port: _read_capture(work / f"{port}_out.pcap") for port in PORTS}, digests)


Step = Operation | Arrival


def run_steps(compiled: Path, steps: list[Step], work: Path) -> dict[int, list[bytes]]:
    """Run a program with operations and packets in turns, and return the packets by port.

    simple_switch does not report when it has processed a packet. Before the next operation this
    function therefore waits until it is quiet, which takes some seconds each time. Captures cannot
    be used: simple_switch reads a packet of one only when it knows the next packet of all others.
    """
    sent: dict[int, list[bytes]] = {}
    nodes = 0
    options = ["--packet-in", f"ipc://{work}/{PACKETS}"]
    with _run_switch(compiled, work, options) as process:
        _run_commands(process.pid, [f"set_queue_depth {DEEP_QUEUE}"])
        with Packets(work / PACKETS, sent) as packets:
            for is_packet, several in itertools.groupby(
                steps, lambda each: isinstance(each, tuple)
            ):
                if is_packet:
                    for port, data in several:
                        packets.send(port, data)
                    _wait_until_quiet(process, work, packets.count_received)
                else:
                    operations = list(several)
                    _run_commands(process.pid, list(_make_commands(compiled, operations, nodes)))
                    nodes += sum(len(each.get("copies", [])) for each in operations)
    return sent


class Packets:
    """Packets to and from simple_switch over its socket (--packet-in).

    It is a nanomsg pair over IPC. A message begins with a byte for its kind and eight for its
    length (big endian). Type, port and length of the packet follow as the machine's integers, then
    the packet (bmv2's dev_mgr_packet_in.cpp).
    """

    _GREETING = b"\0SP\0" + (16).to_bytes(2, "big") + b"\0\0"
    _HEADER = struct.Struct("=iii")
    _IN, _OUT = 3, 4  # types of messages

    def __init__(self, address: Path, sent: dict[int, list[bytes]]) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(address))
        self._socket.sendall(self._GREETING)
        self._unread = b""
        self._greeted = False
        self._sent = sent
        self._count = 0

    def __enter__(self) -> Packets:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, port: int, packet: bytes) -> None:
        message = self._HEADER.pack(self._IN, port, len(packet)) + packet
        self._socket.sendall(b"\1" + len(message).to_bytes(8, "big") + message)

    def count_received(self) -> int:
        """Receive packets into `sent`, by port, and return how many have come so far."""
        with contextlib.suppress(BlockingIOError):
            while part := self._socket.recv(1 << 16, socket.MSG_DONTWAIT):
                self._unread += part
        if not self._greeted and len(self._unread) >= len(self._GREETING):
            self._unread = self._unread[len(self._GREETING) :]
            self._greeted = True
        while self._greeted and len(self._unread) >= 9:
            end = 9 + int.from_bytes(self._unread[1:9], "big")
            if len(self._unread) < end:
                break
            kind, port, size = self._HEADER.unpack_from(self._unread, 9)
            if kind == self._OUT:
                data = self._unread[9 + self._HEADER.size : end]
                self._sent.setdefault(port, []).append(data[:size])
                self._count += 1
            self._unread = self._unread[end:]
        return self._count


@contextlib.contextmanager
def _run_switch(
    compiled: Path, work: Path, options: Sequence[str]
) -> Iterator[subprocess.Popen[bytes]]:
    address = f"--notifications-addr ipc://{work}/{NOTIFICATIONS}"
    command = f"simple_switch {' '.join(options)} {address} {compiled}"
    in_shell = ["sh", "-c", f"ip link set lo up && exec {command}"]
    process = subprocess.Popen(
        ["unshare", "--net", "setpriv", "--pdeathsig", "KILL", *in_shell],
        cwd=work,
        stdout=(work / "simple_switch.log").open("wb"),
        stderr=subprocess.STDOUT,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _run_commands(pid: int, commands: list[str]) -> None:
    """Run commands in simple_switch_CLI, one per line."""
    enter = ["nsenter", f"--target={pid}", "--net"]
    deadline = time.monotonic() + LIMIT_S
    while True:
        done = subprocess.run(
            [*enter, "simple_switch_CLI"],
            input="\n".join(commands) + "\n",
            capture_output=True,
            text=True,
            check=False,
        )
        if "Could not connect" in done.stdout + done.stderr and time.monotonic() < deadline:
            time.sleep(0.2)
            continue
        break
    for line in done.stdout.splitlines():
        if "Invalid" in line or "Error" in line or "Unknown" in line:
            raise Refused(line)
    if done.returncode != 0:
        raise Refused(done.stderr or done.stdout)


def _wait_until_quiet(
    process: subprocess.Popen[bytes], work: Path, written: Callable[[], int]
) -> None:
    """Wait until simple_switch neither uses processor time nor sends.

    Args:
        process: simple_switch.
        work: Its directory.
        written: Returns how much it has sent.
    """
    deadline = time.monotonic() + LIMIT_S
    last: tuple[str, int] | None = None
    since = time.monotonic()
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Refused((work / "simple_switch.log").read_text() or "simple_switch ended")
        spent = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        now = (" ".join(spent), written())
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since >= QUIET_S:
            return
        time.sleep(0.05)
    raise Refused(f"simple_switch is not done within {LIMIT_S:g} s")


# nanomsg's publish/subscribe over a Unix socket (SP over IPC), and bmv2's message on it: 32 bytes
# of header ("LEA|", device, context, list, buffer, number of samples; little endian), then the
# samples, each field in whole bytes, big endian.

SP_SUBSCRIBER = b"\0SP\0" + (33).to_bytes(2, "big") + b"\0\0"


def _subscribe(address: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(address))
    connection.sendall(SP_SUBSCRIBER)
    return connection


def _read_digests(connection: socket.socket, compiled: Path) -> set[Digest]:
    lists = _read_learn_lists(compiled)
    connection.settimeout(2 * BATCH_S)
    data = b""
    with connection, contextlib.suppress(TimeoutError):
        while lists and (part := connection.recv(1 << 16)):
            data += part
    offset, digests = len(SP_SUBSCRIBER), set()  # both greetings have this length
    while offset < len(data):
        size = int.from_bytes(data[offset + 1 : offset + 9], "big")  # after a byte for the kind
        message = data[offset + 9 : offset + 9 + size]
        offset += 9 + size
        if message[:4] != b"LEA|":
            continue
        name, widths = lists[int.from_bytes(message[16:20], "little")]
        samples = message[32:]
        while samples:
            values = []
            for width in widths:
                length = (width + 7) // 8
                values.append(int.from_bytes(samples[:length], "big"))
                samples = samples[length:]
            digests.add((name, tuple(values)))
    return digests


def _read_learn_lists(compiled: Path) -> dict[int, tuple[str, list[int]]]:
    """Return name and widths of fields of each digest, by number."""
    program = json.loads(compiled.read_text())
    widths = _read_widths(program)
    return {
        learned["id"]: (
            learned["name"],
            [widths[element["value"][0]][element["value"][1]] for element in learned["elements"]],
        )
        for learned in program["learn_lists"]
    }


def _read_capture(file: Path) -> list[bytes]:
    if file.stat().st_size <= len(make_capture_header()):
        return []  # which RawPcapReader takes for a mistake
    with RawPcapReader(str(file)) as reader:
        return [data for data, _ in reader]


# From the operations of ours to simple_switch_CLI's commands.


def _parse_number(value: Any) -> int:
    if isinstance(value, int):
        return value
    if value.startswith("0x"):
        return int(value, 16)
    if value.count(":") == 5 and "::" not in value:
        return int(value.replace(":", ""), 16)
    return int(ipaddress.ip_address(value))


def _read_widths(program: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Return the width in bits of each field of each header."""
    types = {t["name"]: {f[0]: f[1] for f in t["fields"]} for t in program["header_types"]}
    return {h["name"]: {**types[h["header_type"]], "$valid$": 1} for h in program["headers"]}


def _read_keys(compiled: Path) -> dict[str, list[tuple[str, int]]]:
    """Return match kind and width in bits of each key of each table."""
    program = json.loads(compiled.read_text())
    widths = _read_widths(program)
    return {
        table["name"]: [
            (key["match_type"], widths[key["target"][0]][key["target"][1]]) for key in table["key"]
        ]
        for pipeline in program["pipelines"]
        for table in pipeline["tables"]
    }


def _format_match(kind: str, width: int, key: Any) -> str:
    everything = (1 << width) - 1
    if kind == "exact":
        return hex(_parse_number(key))
    if kind == "lpm":
        if isinstance(key, str):
            value, prefix = key.split("/")
            return f"{hex(_parse_number(value))}/{prefix}"
        return f"{hex(_parse_number(key['value']))}/{key['prefix']}"
    if kind == "range":
        low, high = (0, everything) if key is None else (key["low"], key["high"])
        return f"{hex(_parse_number(low))}->{hex(_parse_number(high))}"
    if key is None:
        return "0x0&&&0x0"
    if isinstance(key, dict):
        return f"{hex(_parse_number(key['value']))}&&&{hex(_parse_number(key['mask']))}"
    return f"{hex(_parse_number(key))}&&&{hex(everything)}"  # optional, in the JSON a ternary key


def _make_commands(compiled: Path, entries: list[Operation], nodes: int = 0) -> Iterator[str]:
    """Yield the commands of simple_switch_CLI for operations.

    Args:
        compiled: The program's JSON.
        entries: The operations.
        nodes: How many nodes of multicast groups exist already.
    """
    keys = _read_keys(compiled)
    indirect = _find_indirect_tables(compiled)
    for entry in entries:
        op = entry["op"]
        data = " ".join(hex(_parse_number(value)) for value in entry.get("data", []))
        match op:
            case "table_add":
                table, priority = entry["table"], entry.get("priority", "")
                match = " ".join(
                    _format_match(kind, width, key)
                    for (kind, width), key in zip(keys[table], entry["match"], strict=True)
                )
                if "group" in entry:
                    command = f"table_indirect_add_with_group {table} {match} => {entry['group']}"
                elif "member" in entry:
                    command = f"table_indirect_add {table} {match} => {entry['member']}"
                else:
                    command = f"table_add {table} {entry['action']} {match} => {data}"
                yield f"{command} {priority}"
            case "table_delete":
                kind = "table_indirect" if entry["table"] in indirect else "table"
                yield f"{kind}_delete {entry['table']} {entry['handle']}"
            case "table_default":
                yield f"table_set_default {entry['table']} {entry['action']} {data}"
            case "member_add":
                yield f"act_prof_create_member {entry['profile']} {entry['action']} {data}"
            case "group_create":
                yield f"act_prof_create_group {entry['profile']}"
            case "group_add_member" | "group_remove_member":
                verb = "add_member_to" if op == "group_add_member" else "remove_member_from"
                yield (
                    f"act_prof_{verb}_group {entry['profile']} {entry['member']} {entry['group']}"
                )
            case "register_reset":
                yield f"register_reset {entry['register']}"
            case "register_write":
                value = _parse_number(entry["value"])
                yield f"register_write {entry['register']} {entry['index']} {value}"
            case "counter_write":
                values = f"{entry['packets']} {entry['bytes']}"
                yield f"counter_write {entry['counter']} {entry['index']} {values}"
            case "meter_rates" if entry.keys() >= {"meter"} and "index" not in entry:
                rates = " ".join(f"{rate['per_us']}:{rate['burst']}" for rate in entry["rates"])
                yield f"meter_array_set_rates {entry['meter']} {rates}"
            case "meter_rates":
                rates = " ".join(f"{rate['per_us']}:{rate['burst']}" for rate in entry["rates"])
                meter = entry.get("meter") or _find_direct_meter(compiled, entry["table"])
                yield f"meter_set_rates {meter} {entry.get('index', entry.get('handle'))} {rates}"
            case "mirror_add" if "port" in entry:
                yield f"mirroring_add {entry['session']} {entry['port']}"
            case "mirror_add":
                yield f"mirroring_add_mc {entry['session']} {entry['group']}"
            case "multicast_delete":
                yield f"mc_mgrp_destroy {entry['group']}"
            case "multicast_create":
                yield f"mc_mgrp_create {entry['group']}"
                for copy in entry["copies"]:
                    ports = " ".join(str(port) for port in copy["ports"])
                    yield f"mc_node_create {copy['rid']} {ports}"
                    yield f"mc_node_associate {entry['group']} {nodes}"
                    nodes += 1
            case "value_set_add":
                yield f"pvs_add {entry['set']} {hex(_parse_number(entry['value']))}"
            case _:
                raise Refused(f"no command for operation {op}")


def _find_indirect_tables(compiled: Path) -> set[str]:
    """Return the tables with an action profile."""
    program = json.loads(compiled.read_text())
    tables = [table for pipeline in program["pipelines"] for table in pipeline["tables"]]
    return {table["name"] for table in tables if table["type"] != "simple"}


def _find_direct_meter(compiled: Path, table: str) -> str:
    meters = json.loads(compiled.read_text())["meter_arrays"]
    return next(str(meter["name"]) for meter in meters if meter.get("binding") == table)
