# SPDX-License-Identifier: Apache-2.0
"""bmv2's simple_switch as a service, for one's own programs: what `nagi-switch run` is for
nagi-switch, by the same configuration (p4/switch/daemon/config.hpp) as far as bmv2 can:

    {"schema_version": 1,
     "pipeline": "edge.json",
     "entries": "entries.jsonl",        operations, one a line; may be missing
     "digests": "digests.jsonl",        {"digest": name, "values": [...]} a line; may be missing
     "ports": [{"number": 1, "interface": "p1", "rate_pps": 1000, "depth_packets": 100}]}

It is ready, which systemd is told, when it has its entries. Its control, Thrift at port 9090, only
this host reaches.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import time
from contextlib import ExitStack
from typing import IO, Iterator, NoReturn, Optional

from nagi_p4.operations import Operation, Refused
from nagi_p4.switch import Switch

from nagi_agent import bmv2
from nagi_agent.contracts import Json
from nagi_agent.run import Stopped, stop_on_signals

_LOOKING_S = 0.25
_KEYS = {"schema_version", "pipeline", "entries", "digests", "ports"}
_PORT_KEYS = {"number", "interface"}
_QUEUE_KEYS = {"rate_bps", "rate_pps", "overhead_bytes", "depth_packets", "depth_bytes"}
_USE_NAGI = "leave it out, or use nagi-switch"


def main(path: str) -> int:
    """Runs until SIGTERM. Exit status: 0 stopped, 1 the switch ended, 2 the input was refused."""
    stop_on_signals()
    try:
        with ExitStack() as cleanup:
            settings = configuration(path)
            program = shutil.which(bmv2.NAME)
            said = bmv2.problem(None, None, False)
            if said is not None or program is None:
                raise ValueError(said)
            ports = [(port["number"], port["interface"]) for port in settings["ports"]]
            switched = os.path.abspath(settings["pipeline"])
            process = bmv2.SimpleSwitchProcess(program, None, switched, ports, os.getcwd())
            cleanup.callback(process.kill)
            switch = cleanup.enter_context(process.wait_until_ready())
            for port in settings["ports"]:
                queue = {key: port[key] for key in _QUEUE_KEYS & port.keys()}
                if queue:
                    _perform(switch, {"op": "queue_set", "port": port["number"], **queue}, path)
            for where, operation in entries(settings.get("entries")):
                _perform(switch, operation, where)
            digests = settings.get("digests")
            lines: Optional[IO[str]] = None
            if digests:
                lines = cleanup.enter_context(open(digests, "a", encoding="utf-8"))
            _tell_systemd("READY=1")
            _stay(process, switch, lines)
    except Stopped:
        return 0
    except (OSError, ValueError) as error:
        print(f"nagi-agent: {error}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        print(f"nagi-agent: {error}", file=sys.stderr)
        return 1


def _stay(process: bmv2.SimpleSwitchProcess, switch: Switch, lines: Optional[IO[str]]) -> NoReturn:
    while True:
        process.check()
        found = switch.read_digests()  # taken even if nobody wants them: they would pile up
        if lines is not None:
            lines.writelines(json.dumps(digest) + "\n" for digest in found)
            lines.flush()
        time.sleep(_LOOKING_S)


def configuration(path: str) -> Json:
    """Raises ValueError, naming file and key."""
    with open(path, encoding="utf-8") as file:
        found = _object(path, file.read())
    if found.get("schema_version") != 1:
        raise ValueError(f"{path}: schema_version: it is not 1; write it as 1")
    for key in sorted(found.keys() - _KEYS):
        raise ValueError(f"{path}: {key}: bmv2 has no such setting; {_USE_NAGI}")
    ports = found.get("ports")
    if not isinstance(ports, list) or not ports:
        raise ValueError(f"{path}: ports: there are none; list at least one port")
    for place, port in enumerate(ports):
        if not isinstance(port, dict) or not port.keys() >= _PORT_KEYS:
            raise ValueError(f"{path}: ports[{place}]: give it `number` and `interface`")
        for key in sorted(port.keys() - _PORT_KEYS - _QUEUE_KEYS):
            raise ValueError(f"{path}: ports[{place}].{key}: bmv2 has no such setting; {_USE_NAGI}")
        if not os.path.isdir(f"/sys/class/net/{port['interface']}"):
            raise ValueError(
                f"{path}: ports[{place}].interface: there is no {port['interface']} here; name one "
                "that `ip link` shows"
            )
    pipeline = found.get("pipeline")
    if not isinstance(pipeline, str) or not os.path.isfile(pipeline):
        raise ValueError(f"{path}: pipeline: there is no {pipeline}; name p4c's JSON")
    return found


def entries(path: Optional[str]) -> Iterator[tuple[str, Operation]]:
    """Each operation, with where it stands."""
    if path is None:
        return
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                where = f"{path}:{number}"
                operation = _object(where, line)
                if "op" not in operation:
                    raise ValueError(f"{where}: op: it is missing; say which operation it is")
                yield where, operation


def _object(where: str, text: str) -> Json:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{where}: it is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{where}: it is no JSON object")
    return found


def _perform(switch: Switch, operation: Operation, where: str) -> None:
    try:
        switch.perform(operation)
    except Refused as refused:
        raise ValueError(f"{where}: {refused}") from None


def _tell_systemd(state: str) -> None:
    """See sd_notify(3)."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.connect("\0" + address[1:] if address.startswith("@") else address)
            notify.sendall(state.encode())
