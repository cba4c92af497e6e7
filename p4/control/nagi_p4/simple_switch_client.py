# SPDX-License-Identifier: Apache-2.0
"""Finds bmv2's Thrift client for simple_switch, and connects with it.

The client consists of the Python modules bm_runtime and sswitch_runtime, which the build of bmv2
generates. These modules need Thrift's Python library (Debian: python3-thrift).
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
from typing import Any, Mapping, Optional

from nagi_p4.notifications import Notifications
from nagi_p4.operations import Refused
from nagi_p4.packet_socket import PacketSocket
from nagi_p4.simple_switch_pipeline import Pipeline

DEFAULT_PORT = 9090
CLIENT_VARIABLE = "NAGI_BMV2_PYTHON"
CONTEXT = 0  # the only context of simple_switch; most Thrift calls take its number
_INSTALL = "install bmv2 (https://github.com/p4lang/behavioral-model) with its Python modules"


def find_client_directory() -> Optional[str]:
    """Return the directory of bmv2's Python modules.

    Returns:
        The value of the environment variable NAGI_BMV2_PYTHON if it is set. Otherwise the directory
        under the prefix in which simple_switch is installed, or None if that prefix has no modules.
        After None, the modules may still be on Python's path.
    """
    directory = os.environ.get(CLIENT_VARIABLE)
    if directory:
        return directory
    executable = shutil.which("simple_switch")
    if executable is None:
        return None
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(executable)))
    for version in (f"{sys.version_info[0]}.{sys.version_info[1]}", str(sys.version_info[0])):
        for name in ("site-packages", "dist-packages"):
            directory = os.path.join(prefix, "lib", f"python{version}", name)
            if os.path.isdir(os.path.join(directory, "bm_runtime")):
                return directory
    return None


def find_problem(executable: str = "simple_switch", client: Optional[str] = None) -> Optional[str]:
    """Return an error message with a cure if simple_switch cannot be run or controlled here.

    Return None if there is no problem.

    Args:
        executable: The program simple_switch: a path, or a name on PATH.
        client: Directory of bmv2's Python modules; None if they are on Python's path.
    """
    if shutil.which(executable) is None:
        return f"there is no {executable}; {_INSTALL}, or use --switch nagi"
    try:
        _load_modules(client)
    except Refused as refused:
        return str(refused)
    return None


def _load_modules(client: Optional[str]) -> dict[str, Any]:
    """Import the modules of bmv2's client.

    Args:
        client: Directory of the modules; None if they are on Python's path.

    Returns:
        The modules, by short names.

    Raises:
        Refused: The modules are not installed.
    """
    # Python's option -S removes the directories of Debian's packages from its path.
    directories = [client] if client else []
    directories += ["/usr/lib/python3/dist-packages", "/usr/local/lib/python3/dist-packages"]
    sys.path += [directory for directory in directories if directory not in sys.path]
    names = {
        "standard": "bm_runtime.standard.Standard",
        "types": "bm_runtime.standard.ttypes",
        "multicast": "bm_runtime.simple_pre_lag.SimplePreLAG",
        "switch": "sswitch_runtime.SimpleSwitch",
        "switch_types": "sswitch_runtime.ttypes",
        "socket": "thrift.transport.TSocket",
        "transport": "thrift.transport.TTransport",
        "protocol": "thrift.protocol.TBinaryProtocol",
        "multiplexed": "thrift.protocol.TMultiplexedProtocol",
    }
    try:
        return {name: importlib.import_module(module) for name, module in names.items()}
    except ImportError as error:
        cure = "install python3-thrift" if error.name == "thrift" else _INSTALL
        raise Refused(
            f"there is no Python module {error.name}, which bmv2's client needs; {cure}, or set "
            f"{CLIENT_VARIABLE} to the directory of bmv2's modules"
        ) from None


class Connection:
    """A connection to a running simple_switch, with data that simple_switch cannot return.

    The parameters are those of SimpleSwitch.

    Attributes:
        modules: The modules of bmv2's client, by the short names in _load_modules().
        standard: Thrift client for tables, registers, counters and meters.
        multicast: Thrift client for multicast groups.
        switch: Thrift client for queues and clone sessions.
        pipeline: The running pipeline.
        sessions: Numbers of the clone sessions that this client added, because simple_switch
            cannot list clone sessions.
        notifications: The subscription to digests and idle entries; None without notifications.
        packets: The interface at the other end of the CPU port's veth pair; None without one.
    """

    def __init__(
        self,
        port: int,
        client: Optional[str],
        notifications: Optional[str],
        cpu_interface: Optional[str],
    ) -> None:
        self.modules = _load_modules(client)
        transport = self.modules["transport"]
        self._transport = transport.TBufferedTransport(
            self.modules["socket"].TSocket("127.0.0.1", port)
        )
        try:
            self._transport.open()
        except transport.TTransportException as error:
            raise OSError(f"no simple_switch listens at port {port}: {error}") from None
        protocol = self.modules["protocol"].TBinaryProtocol(self._transport)

        def make_service(name: str, module: str) -> Any:
            multiplexed = self.modules["multiplexed"].TMultiplexedProtocol(protocol, name)
            return self.modules[module].Client(multiplexed)

        self.standard = make_service("standard", "standard")
        self.multicast = make_service("simple_pre_lag", "multicast")
        self.switch = make_service("simple_switch", "switch")
        self.pipeline = self.read_pipeline()
        self.sessions: set[int] = set()
        self.notifications = Notifications(notifications) if notifications else None
        self.packets = PacketSocket(cpu_interface) if cpu_interface else None

    def read_pipeline(self) -> Pipeline:
        """Read the running pipeline, which another client may have replaced."""
        return Pipeline(json.loads(self.standard.bm_get_config()))

    def close(self) -> None:
        self._transport.close()
        if self.notifications is not None:
            self.notifications.close()
        if self.packets is not None:
            self.packets.close()


def name_error_code(modules: Mapping[str, Any], error: Any) -> str:
    """Return the name of the error code of an exception that bmv2's client raised.

    Args:
        modules: The modules of bmv2's client.
        error: The exception.

    Returns:
        A name such as "TABLE_FULL"; the number of the code if it has no name; class and number if
        the class of the exception is unknown.
    """
    name = type(error).__name__.replace("Invalid", "") + "ErrorCode"
    for module in ("types", "switch_types"):
        codes = getattr(modules[module], name, None)
        if codes is not None:
            return str(codes._VALUES_TO_NAMES.get(error.code, error.code))
    return f"{type(error).__name__} {error.code}"
