# SPDX-License-Identifier: Apache-2.0
"""Runs a test program on bmv2's simple_switch, from capture files to capture files.

simple_switch reads its packets from pipes, so none comes before the entries are in; its Thrift
server, which listens on all addresses, has a network namespace of its own with nothing but
loopback. Needs root, simple_switch and simple_switch_CLI."""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus import PORTS, Arrival, Operation
from programs import Digest, Sent, capture_header, capture_records, instants
from scapy.utils import RawPcapReader

QUIET_S = 1.0  # this long without a tick of processor time or a byte written: done
LIMIT_S = 120.0
BATCH_S = 1.0  # digests are sent 16 at a time, or after this long
NOTIFICATIONS = "notifications.ipc"
DEEP_QUEUE = 100_000  # packets: none is dropped, however fast the file is read


def missing() -> list[str]:
    """The programs that are not there."""
    return [name for name in ("simple_switch", "simple_switch_CLI") if not shutil.which(name)]


class Refused(Exception):
    """simple_switch did not take an operation."""


@dataclass
class Outcome:
    sent: Sent
    digests: set[Digest]  # simple_switch tells the same thing only once until it is acknowledged


def run(compiled: Path, entries: list[Operation], packets: list[Arrival], work: Path) -> Outcome:
    """What simple_switch sends by each port and tells the controller; `work` is an empty
    directory."""
    pipes = {port: work / f"{port}_in.pcap" for port in PORTS}
    for pipe in pipes.values():
        os.mkfifo(pipe)
    with _switch(compiled, work) as process:
        # opened for reading too: opening does not wait for the other end
        writers = {port: os.open(pipe, os.O_RDWR) for port, pipe in pipes.items()}
        for writer in writers.values():
            os.write(writer, capture_header())
        _control(process.pid, ["set_queue_depth " + str(DEEP_QUEUE), *_commands(compiled, entries)])
        notifications = _subscribe(work / NOTIFICATIONS)
        arrivals = instants(packets)
        # The reader merges the files by time and waits for each one's next packet; a port at a
        # time could fill a pipe while it waits for another.
        ordered = sorted((us, port, data) for port in PORTS for us, data in arrivals[port])
        for us, port, data in ordered:
            os.write(writers[port], capture_records([(us, data)]))
        for writer in writers.values():
            os.close(writer)
        _until_quiet(process, work)
        digests = _digests(notifications, compiled)
    return Outcome({port: _read(work / f"{port}_out.pcap") for port in PORTS}, digests)


Step = Operation | Arrival


def run_steps(compiled: Path, steps: list[Step], ports: Sequence[int], work: Path) -> Sent:
    """What simple_switch sends by each port if operations and packets alternate. It cannot say that
    it is done with a packet, so it is waited for until it is quiet before an operation and between
    packets that come in by different ports: some seconds each."""
    pipes = {port: work / f"{port}_in.pcap" for port in ports}
    for pipe in pipes.values():
        os.mkfifo(pipe)
    with _switch(compiled, work, ports) as process:
        writers = {port: os.open(pipe, os.O_RDWR) for port, pipe in pipes.items()}
        for writer in writers.values():
            os.write(writer, capture_header())
        nodes = 0
        for kind, several in itertools.groupby(steps, lambda step: isinstance(step, tuple)):
            if kind:
                for us, (port, data) in enumerate(several):
                    os.write(writers[port], capture_records([(us, data)]))
                _until_quiet(process, work, ports)
            else:
                operations = list(several)
                _control(process.pid, list(_commands(compiled, operations, nodes)))
                nodes += sum(len(each.get("copies", [])) for each in operations)
        for writer in writers.values():
            os.close(writer)
        _until_quiet(process, work, ports)
    return {port: _read(work / f"{port}_out.pcap") for port in ports}


@contextlib.contextmanager
def _switch(
    compiled: Path, work: Path, numbers: Sequence[int] = PORTS
) -> Iterator[subprocess.Popen[bytes]]:
    ports = [f"-i {port}@{port}" for port in numbers]
    address = f"--notifications-addr ipc://{work}/{NOTIFICATIONS}"
    command = f"simple_switch --use-files 0 {' '.join(ports)} {address} {compiled}"
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


def _control(pid: int, commands: list[str]) -> None:
    """Has simple_switch_CLI carry out commands, one a line."""
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


def _until_quiet(
    process: subprocess.Popen[bytes], work: Path, ports: Sequence[int] = PORTS
) -> None:
    deadline = time.monotonic() + LIMIT_S
    last: tuple[str, int] | None = None
    since = time.monotonic()
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Refused((work / "simple_switch.log").read_text() or "simple_switch ended")
        spent = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        written = sum((work / f"{port}_out.pcap").stat().st_size for port in ports)
        now = (" ".join(spent), written)
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


def _digests(connection: socket.socket, compiled: Path) -> set[Digest]:
    lists = _learn_lists(compiled)
    connection.settimeout(2 * BATCH_S)
    data = b""
    with connection, contextlib.suppress(TimeoutError):
        while lists and (part := connection.recv(1 << 16)):
            data += part
    at, found = len(SP_SUBSCRIBER), set()  # its greeting is as long as ours
    while at < len(data):
        size = int.from_bytes(data[at + 1 : at + 9], "big")  # behind a byte for the kind
        message = data[at + 9 : at + 9 + size]
        at += 9 + size
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
            found.add((name, tuple(values)))
    return found


def _learn_lists(compiled: Path) -> dict[int, tuple[str, list[int]]]:
    """Name of each kind of digest and the widths of its fields, by number."""
    program = json.loads(compiled.read_text())
    widths = _widths(program)
    return {
        learned["id"]: (
            learned["name"],
            [widths[element["value"][0]][element["value"][1]] for element in learned["elements"]],
        )
        for learned in program["learn_lists"]
    }


def _read(file: Path) -> list[bytes]:
    if file.stat().st_size <= len(capture_header()):
        return []  # which RawPcapReader takes for a mistake
    with RawPcapReader(str(file)) as reader:
        return [data for data, _ in reader]


# From the operations of ours to simple_switch_CLI's commands.


def _number(value: Any) -> int:
    if isinstance(value, int):
        return value
    if value.startswith("0x"):
        return int(value, 16)
    if value.count(":") == 5 and "::" not in value:
        return int(value.replace(":", ""), 16)
    return int(ipaddress.ip_address(value))


def _widths(program: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Of each field of each header, in bits."""
    types = {t["name"]: {f[0]: f[1] for f in t["fields"]} for t in program["header_types"]}
    return {h["name"]: {**types[h["header_type"]], "$valid$": 1} for h in program["headers"]}


def _keys(compiled: Path) -> dict[str, list[tuple[str, int]]]:
    """Match kind and width in bits of each key of each table."""
    program = json.loads(compiled.read_text())
    widths = _widths(program)
    return {
        table["name"]: [
            (key["match_type"], widths[key["target"][0]][key["target"][1]]) for key in table["key"]
        ]
        for pipeline in program["pipelines"]
        for table in pipeline["tables"]
    }


def _match(kind: str, width: int, key: Any) -> str:
    everything = (1 << width) - 1
    if kind == "exact":
        return hex(_number(key))
    if kind == "lpm":
        if isinstance(key, str):
            value, prefix = key.split("/")
            return f"{hex(_number(value))}/{prefix}"
        return f"{hex(_number(key['value']))}/{key['prefix']}"
    if kind == "range":
        low, high = (0, everything) if key is None else (key["low"], key["high"])
        return f"{hex(_number(low))}->{hex(_number(high))}"
    if key is None:
        return "0x0&&&0x0"
    if isinstance(key, dict):
        return f"{hex(_number(key['value']))}&&&{hex(_number(key['mask']))}"
    return f"{hex(_number(key))}&&&{hex(everything)}"  # optional, in the JSON a ternary key


def _commands(compiled: Path, entries: list[Operation], nodes: int = 0) -> Iterator[str]:
    """`nodes`: of multicast groups, that there are already."""
    keys = _keys(compiled)
    for entry in entries:
        op = entry["op"]
        data = " ".join(hex(_number(value)) for value in entry.get("data", []))
        match op:
            case "table_add":
                table, priority = entry["table"], entry.get("priority", "")
                match = " ".join(
                    _match(kind, width, key)
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
                yield f"table_delete {entry['table']} {entry['handle']}"
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
                value = _number(entry["value"])
                yield f"register_write {entry['register']} {entry['index']} {value}"
            case "counter_write":
                values = f"{entry['packets']} {entry['bytes']}"
                yield f"counter_write {entry['counter']} {entry['index']} {values}"
            case "meter_rates" if entry.keys() >= {"meter"} and "index" not in entry:
                rates = " ".join(f"{rate['per_us']}:{rate['burst']}" for rate in entry["rates"])
                yield f"meter_array_set_rates {entry['meter']} {rates}"
            case "meter_rates":
                rates = " ".join(f"{rate['per_us']}:{rate['burst']}" for rate in entry["rates"])
                meter = entry.get("meter") or _direct_meter(compiled, entry["table"])
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
                yield f"pvs_add {entry['set']} {hex(_number(entry['value']))}"
            case _:
                raise Refused(f"no command for operation {op}")


def _direct_meter(compiled: Path, table: str) -> str:
    meters = json.loads(compiled.read_text())["meter_arrays"]
    return next(str(meter["name"]) for meter in meters if meter.get("binding") == table)
