# SPDX-License-Identifier: Apache-2.0
"""Run bmv2's simple_switch as a service with a user's own pipeline, like `nagi-switch run`.

The configuration has those keys of nagi-switch (p4/switch/daemon/config.hpp) that bmv2 supports:

    {"schema_version": 1,
     "pipeline": "edge.json",
     "entries": "entries.jsonl",        one operation per line; optional
     "digests": "digests.jsonl",        output, {"digest": name, "values": [...]} per line; optional
     "ports": [{"number": 1, "interface": "p1", "rate_pps": 1000, "depth_packets": 100}]}

systemd is notified when all entries have been installed. The switch is controlled over Thrift at
port 9090, which only this host can reach.
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
_USE_NAGI = "remove it, or use nagi-switch"


def main(path: str) -> int:
    """Run the switch until a signal, such as SIGTERM. Print errors to stderr.

    Args:
        path: path of the configuration.

    Returns:
        The exit status: 0 if a signal stopped the switch, 1 if the switch ended by itself or could
        not start, 2 if the configuration or the entries are wrong.
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
    """Check the switch and write its digests, until a signal arrives or the switch ends.

    Raises:
        Stopped: A signal has arrived.
        RuntimeError: The switch has ended.
    """
    while True:
        process.check()
        # Read digests even if they are not written, because unread digests would accumulate.
        digests = switch.read_digests()
        if digest_file is not None:
            digest_file.writelines(json.dumps(digest) + "\n" for digest in digests)
            digest_file.flush()
        time.sleep(_POLL_S)


def read_configuration(path: str) -> Json:
    """Read the configuration of the switch from a file.

    Raises:
        OSError: The file cannot be read.
        ValueError: The configuration is wrong. The message contains file, key and cure.
    """
    with open(path, encoding="utf-8") as file:
        settings = _parse_object(path, file.read())
    if settings.get("schema_version") != 1:
        raise ValueError(f"{path}: schema_version is not 1; write `1`")
    for key in sorted(settings.keys() - _KEYS):
        raise ValueError(f"{path}: {key}: bmv2 does not support this setting; {_USE_NAGI}")
    ports = settings.get("ports")
    if not isinstance(ports, list) or not ports:
        raise ValueError(f"{path}: ports: the list is missing or empty; list at least one port")
    for index, port in enumerate(ports):
        if not isinstance(port, dict) or not port.keys() >= _PORT_KEYS:
            raise ValueError(
                f"{path}: ports[{index}]: `number` or `interface` is missing; give the port both"
            )
        for key in sorted(port.keys() - _PORT_KEYS - _QUEUE_KEYS):
            raise ValueError(
                f"{path}: ports[{index}].{key}: bmv2 does not support this setting; {_USE_NAGI}"
            )
        if not os.path.isdir(f"/sys/class/net/{port['interface']}"):
            raise ValueError(
                f"{path}: ports[{index}].interface: this host has no interface "
                f"{port['interface']}; name an interface that `ip link` shows"
            )
    pipeline = settings.get("pipeline")
    if not isinstance(pipeline, str) or not os.path.isfile(pipeline):
        raise ValueError(
            f"{path}: pipeline: there is no file {pipeline}; give the path of p4c's JSON"
        )
    return settings


def read_entries(path: Optional[str]) -> Iterator[tuple[str, Operation]]:
    """Yield the operations in a file of entries, each as ("path:line", operation).

    Yield nothing if `path` is None.

    Raises:
        OSError: The file cannot be read.
        ValueError: A line is no operation. The message contains the line's number.
    """
    if path is None:
        return
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                location = f"{path}:{number}"
                operation = _parse_object(location, line)
                if "op" not in operation:
                    raise ValueError(
                        f"{location}: the key `op` is missing; give it the operation's name"
                    )
                yield location, operation


def _parse_object(location: str, text: str) -> Json:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{location}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{location}: not a JSON object")
    return value


def _perform(switch: Switch, operation: Operation, location: str) -> None:
    """Perform an operation. Raise ValueError, with `location`, if the switch refuses it."""
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
