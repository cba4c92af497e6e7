# SPDX-License-Identifier: Apache-2.0
"""The command line of `nagi-p4runtime`. docs/p4runtime.md is its manual."""

from __future__ import annotations

import argparse
import importlib
import ipaddress
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from google.protobuf import text_format
from nagi_p4.nagi_switch import NagiSwitch
from nagi_p4.operations import Refused
from nagi_p4.simple_switch import SimpleSwitch
from nagi_p4.simple_switch_client import find_client_directory
from nagi_p4.switch import Switch

from nagi_p4runtime.device import Device
from nagi_p4runtime.errors import P4Error
from nagi_p4runtime.privileges import CAP_NET_RAW, give_up_capabilities
from nagi_p4runtime.protos import p4i
from nagi_p4runtime.server import Certificates, Server, Service

_log = logging.getLogger("nagi-p4runtime")

DEFAULT_LISTEN = "127.0.0.1:9559"  # IANA assigned this port to P4Runtime
BAD_INPUT = 2


class BadInput(Exception):
    """An option or file that cannot be used."""


def _make_parser() -> argparse.ArgumentParser:
    """Make the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="nagi-p4runtime",
        description="Serves P4Runtime for a running nagi-switch or simple_switch.",
    )
    parser.add_argument(
        "--switch",
        required=True,
        metavar="nagi:PATH|bmv2:PORT",
        help="the switch: the control socket of nagi-switch, or the Thrift port of simple_switch",
    )
    parser.add_argument(
        "--listen",
        default=DEFAULT_LISTEN,
        metavar="unix:PATH|HOST:PORT",
        help=f"address at which clients connect (default: {DEFAULT_LISTEN})",
    )
    parser.add_argument(
        "--device-id",
        type=int,
        default=1,
        metavar="ID",
        help="id by which clients address the switch (default: 1)",
    )
    parser.add_argument(
        "--p4info",
        type=Path,
        metavar="FILE",
        help="the P4Info, as text (.txtpb) or binary, of the program that the switch already runs",
    )
    parser.add_argument(
        "--cpu-interface",
        metavar="NAME",
        help="simple_switch only: the interface at the other end of the CPU port's veth pair",
    )
    parser.add_argument(
        "--notifications",
        metavar="PATH",
        help="simple_switch only: the PATH of its option --notifications-addr ipc://PATH, for "
        "digests and idle timeouts",
    )
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="the server's certificate")
    parser.add_argument(
        "--tls-key", type=Path, metavar="FILE", help="the key of the server's certificate"
    )
    parser.add_argument(
        "--tls-ca",
        type=Path,
        metavar="FILE",
        help="require certificates of clients, signed by this CA",
    )
    return parser


def _open_switch(options: argparse.Namespace, for_events: bool) -> Switch:
    """Connect to the switch that --switch names.

    Args:
        options: The options of the command line.
        for_events: Whether the connection is for read_events().

    Raises:
        BadInput: An option is wrong.
        OSError: The switch cannot be reached.
        Refused: bmv2's client is not installed.
    """
    target, _, address = options.switch.partition(":")
    if target == "nagi" and address:
        for option in ("cpu_interface", "notifications"):
            if getattr(options, option) is not None:
                raise BadInput(
                    f"--{option.replace('_', '-')} is for simple_switch only; leave it out for "
                    "nagi-switch"
                )
        return NagiSwitch(address)
    if target == "bmv2" and address.isdigit():
        return SimpleSwitch(
            options.notifications if for_events else None,
            int(address),
            find_client_directory(),
            cpu_interface=options.cpu_interface,
        )
    raise BadInput(
        f"--switch {options.switch}: give nagi:PATH with the path of a control socket, or "
        "bmv2:PORT with a Thrift port"
    )


def _read_p4info(path: Path) -> p4i.P4Info:
    """Read a P4Info from a file in protobuf's text or binary format."""
    data = _read_bytes(path, "--p4info")
    info = p4i.P4Info()
    try:
        text_format.Parse(data.decode(), info)
    except (UnicodeDecodeError, text_format.ParseError) as error:
        try:
            info.ParseFromString(data)
        except Exception:
            raise BadInput(
                f"{path}: not a P4Info: {error}; give what p4c makes with --p4runtime-files"
            ) from None
    return info


def _read_bytes(path: Path, option: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{option} {path}: {error.strerror}") from None


def _read_certificates(options: argparse.Namespace) -> Certificates | None:
    """Read the files of the TLS options; return None if no such option is given."""
    if options.tls_cert is None and options.tls_key is None and options.tls_ca is None:
        return None
    if options.tls_cert is None or options.tls_key is None:
        raise BadInput("TLS needs --tls-cert and --tls-key; give both")
    pair = (_read_bytes(options.tls_key, "--tls-key"), _read_bytes(options.tls_cert, "--tls-cert"))
    ca = None if options.tls_ca is None else _read_bytes(options.tls_ca, "--tls-ca")
    return Certificates(*pair, ca)


def _is_local(listen: str) -> bool:
    if listen.startswith("unix:"):
        return True
    host = listen.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _serve(options: argparse.Namespace) -> int:
    """Serve until a signal arrives or the connection to the switch is lost.

    Returns:
        The exit status: 0 after a signal, 1 after the loss of the connection.
    """
    certificates = _read_certificates(options)
    if options.device_id < 1:
        raise BadInput(f"--device-id {options.device_id}: give 1 or more")
    if ":" not in options.listen:
        raise BadInput(f"--listen {options.listen}: give unix:PATH or HOST:PORT")
    if certificates is None and not _is_local(options.listen):
        _log.warning(
            "%s: anybody who can connect to this address controls the switch; use TLS",
            options.listen,
        )
    try:
        switch, events = _open_switch(options, False), _open_switch(options, True)
        device = Device(switch)
        if options.p4info is not None:
            try:
                device.adopt(_read_p4info(options.p4info))
            except P4Error as error:
                raise BadInput(f"{options.p4info}: {error.message}") from None
    except (OSError, Refused) as error:
        raise BadInput(f"--switch {options.switch}: {error}") from None
    # Give up capabilities only after all files have been read, modules of gRPC included, because
    # perhaps only root can read them. Do it before threads start, because each thread has its own
    # capabilities. Packets at bmv2's CPU port need CAP_NET_RAW.
    importlib.import_module("grpc._server")
    give_up_capabilities([CAP_NET_RAW] if options.cpu_interface is not None else [])
    ended = threading.Event()
    problem: list[OSError] = []

    def stop_serving(error: OSError) -> None:
        problem.append(error)
        ended.set()

    service = Service(options.device_id, device, switch, events, stop_serving)
    try:
        server = Server(service, options.listen, certificates)
    except OSError as error:
        directory = Path(options.listen.removeprefix("unix:")).parent
        if options.listen.startswith("unix:") and not os.access(directory, os.W_OK | os.X_OK):
            raise BadInput(
                f"--listen {options.listen}: this user may not write to {directory}, because "
                "nagi-p4runtime gives up root's rights to files of other users; give a directory "
                "that the user owns, such as /run for root, or 127.0.0.1:9559"
            ) from None
        raise BadInput(f"--listen {error}") from None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup(1)
            signal.signal(number, lambda *_: ended.set())
    server.start()
    address = options.listen
    if not address.startswith("unix:"):
        address = f"{address.rpartition(':')[0]}:{server.port}"
    print(f"nagi-p4runtime: device {options.device_id} at {address}", flush=True)
    ended.wait()
    service.end_streams(problem[0] if problem else None)
    server.stop()
    if problem:
        print(f"nagi-p4runtime: the switch is gone: {problem[0]}", file=sys.stderr)
    return 1 if problem else 0


def run() -> int:
    """Run the command `nagi-p4runtime`, and return its exit status.

    The status is 0 after a signal, 1 if the connection to the switch was lost, and 2 if an option
    or file cannot be used or the switch cannot be reached.
    """
    logging.basicConfig(format="%(name)s: %(message)s", level=logging.WARNING)
    try:
        return _serve(_make_parser().parse_args())
    except BadInput as error:
        print(f"nagi-p4runtime: {error}", file=sys.stderr)
        return BAD_INPUT
