# SPDX-License-Identifier: Apache-2.0
"""Run bmv2's simple_switch as a service with a user's own pipeline.

It does for bmv2 what `nagi-switch run` does for nagi-switch. The configuration has the keys of
nagi-switch (p4/switch/daemon/config.hpp) that bmv2 supports:

    {"schema_version": 1,
     "pipeline": "edge.json",
     "entries": "entries.jsonl",        one operation per line; optional
     "digests": "digests.jsonl",        gets {"digest": name, "values": [...]} per line; optional
     "ports": [{"number": 1, "interface": "p1", "rate_pps": 1000, "depth_packets": 100}]}

systemd is notified when the switch has its entries. Only this host reaches the switch's control,
Thrift at port 9090.
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

from nagi_agent.contracts import Json
from nagi_agent.run import Stopped, stop_on_signals
from nagi_p4.operations import Operation, Refused
from nagi_p4.switch import Switch

from nagi.backends.switch.host import bmv2

_POLL_S = 0.25
_KEYS = {"schema_version", "pipeline", "entries", "digests", "ports"}
_PORT_KEYS = {"number", "interface"}
_QUEUE_KEYS = {"rate_bps", "rate_pps", "overhead_bytes", "depth_packets", "depth_bytes"}
_USE_NAGI = "leave it out, or use nagi-switch"


def main(path: str) -> int:
    """Run the switch until SIGTERM.

    Args:
        path: path of the configuration.

    Returns:
        The exit status: 0 stopped by a signal, 1 the switch ended, 2 the input was refused.
    """
    stop_on_signals()
    try:
        with ExitStack() as cleanup:
            settings = read_configuration(path)
            program = shutil.which(bmv2.NAME)
            problem = bmv2.find_problem(None, None, False)
            if problem is not None or program is None:
                raise ValueError(problem)
            ports = [(port["number"], port["interface"]) for port in settings["ports"]]
            pipeline = os.path.abspath(settings["pipeline"])
            process = bmv2.SimpleSwitchProcess(program, None, pipeline, ports, os.getcwd())
            cleanup.callback(process.kill)
            switch = cleanup.enter_context(process.wait_until_ready())
            for port in settings["ports"]:
                queue = {key: port[key] for key in _QUEUE_KEYS & port.keys()}
                if queue:
                    _perform(switch, {"op": "queue_set", "port": port["number"], **queue}, path)
            for location, operation in read_entries(settings.get("entries")):
                _perform(switch, operation, location)
            digests = settings.get("digests")
            digest_file: Optional[IO[str]] = None
            if digests:
                digest_file = cleanup.enter_context(open(digests, "a", encoding="utf-8"))
            _notify_systemd("READY=1")
            _run_until_stopped(process, switch, digest_file)
    except Stopped:
        return 0
    except (OSError, ValueError) as error:
        print(f"nagi-agent: {error}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        print(f"nagi-agent: {error}", file=sys.stderr)
        return 1


def _run_until_stopped(
    process: bmv2.SimpleSwitchProcess, switch: Switch, digest_file: Optional[IO[str]]
) -> NoReturn:
    """Check the switch and write its digests, until a signal or the switch's end."""
    while True:
        process.check()
        digests = switch.read_digests()  # always taken, because the switch would keep them all
        if digest_file is not None:
            digest_file.writelines(json.dumps(digest) + "\n" for digest in digests)
            digest_file.flush()
        time.sleep(_POLL_S)


def read_configuration(path: str) -> Json:
    """Return the configuration in a file.

    Raises:
        ValueError: it is wrong; the message names file, key and cure.
    """
    with open(path, encoding="utf-8") as file:
        settings = _parse_object(path, file.read())
    if settings.get("schema_version") != 1:
        raise ValueError(f"{path}: schema_version: it is not 1; write it as 1")
    for key in sorted(settings.keys() - _KEYS):
        raise ValueError(f"{path}: {key}: bmv2 has no such setting; {_USE_NAGI}")
    ports = settings.get("ports")
    if not isinstance(ports, list) or not ports:
        raise ValueError(f"{path}: ports: there are none; list at least one port")
    for index, port in enumerate(ports):
        if not isinstance(port, dict) or not port.keys() >= _PORT_KEYS:
            raise ValueError(f"{path}: ports[{index}]: give it `number` and `interface`")
        for key in sorted(port.keys() - _PORT_KEYS - _QUEUE_KEYS):
            raise ValueError(f"{path}: ports[{index}].{key}: bmv2 has no such setting; {_USE_NAGI}")
        if not os.path.isdir(f"/sys/class/net/{port['interface']}"):
            raise ValueError(
                f"{path}: ports[{index}].interface: there is no {port['interface']} here; name one "
                "that `ip link` shows"
            )
    pipeline = settings.get("pipeline")
    if not isinstance(pipeline, str) or not os.path.isfile(pipeline):
        raise ValueError(f"{path}: pipeline: there is no {pipeline}; name p4c's JSON")
    return settings


def read_entries(path: Optional[str]) -> Iterator[tuple[str, Operation]]:
    """Yield the operations in a file of entries, each as ("path:line", operation).

    Raises:
        ValueError: a line is no operation; the message names the line.
    """
    if path is None:
        return
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                location = f"{path}:{number}"
                operation = _parse_object(location, line)
                if "op" not in operation:
                    raise ValueError(f"{location}: op: it is missing; say which operation it is")
                yield location, operation


def _parse_object(location: str, text: str) -> Json:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{location}: it is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{location}: it is no JSON object")
    return value


def _perform(switch: Switch, operation: Operation, location: str) -> None:
    try:
        switch.perform(operation)
    except Refused as refused:
        raise ValueError(f"{location}: {refused}") from None


def _notify_systemd(state: str) -> None:
    """Send a state to systemd, if systemd has started this process. See sd_notify(3)."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.connect("\0" + address[1:] if address.startswith("@") else address)
            notify.sendall(state.encode())
