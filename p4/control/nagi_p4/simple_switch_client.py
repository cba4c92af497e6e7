# SPDX-License-Identifier: Apache-2.0
"""bmv2's Thrift client for simple_switch: finds its modules, and connects by them.

The client consists of the modules bm_runtime and sswitch_runtime, which bmv2's build generates.
They need Thrift's Python library (Debian: python3-thrift).
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
CONTEXT = 0  # bmv2 numbers contexts; simple_switch has one
_INSTALL = "install bmv2 (https://github.com/p4lang/behavioral-model) with its Python modules"


def find_client_directory() -> Optional[str]:
    """Return the directory of bmv2's Python modules.

    Returns:
        The value of the environment variable NAGI_BMV2_PYTHON, else the directory in
        simple_switch's prefix, else None: the modules may still be where Python looks for modules.
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
    """Return why simple_switch cannot be run and controlled here, with the cure, or None.

    Args:
        executable: simple_switch: a path, or a name on PATH.
        client: Directory of bmv2's Python modules; None if Python finds them.
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
        client: Their directory; None if Python finds them.

    Raises:
        Refused: They are not installed.
    """
    # With -S, Python leaves out the directories of distributions.
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
            f"no module {error.name} of bmv2's client; {cure}, or name its directory "
            f"in {CLIENT_VARIABLE}"
        ) from None


class Connection:
    """A connection to a running simple_switch, with data that simple_switch does not keep.

    Attributes:
        modules: The modules of bmv2's client, by short names.
        standard: Thrift client of tables, registers, counters, meters.
        multicast: Thrift client of multicast groups.
        switch: Thrift client of queues and clone sessions.
        pipeline: The pipeline that runs.
        sessions: Clone sessions that this client added: simple_switch does not list them.
        notifications: Its digests and idle entries; None if it does not publish any.
        packets: The interface at the other end of its CPU port; None if it has none.
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
        """Read the pipeline that runs; another connection may have replaced it."""
        return Pipeline(json.loads(self.standard.bm_get_config()))

    def close(self) -> None:
        self._transport.close()
        if self.notifications is not None:
            self.notifications.close()
        if self.packets is not None:
            self.packets.close()


def name_error_code(modules: Mapping[str, Any], error: Any) -> str:
    """Return the name of the code of an error that bmv2's client raised."""
    name = type(error).__name__.replace("Invalid", "") + "ErrorCode"
    for module in ("types", "switch_types"):
        codes = getattr(modules[module], name, None)
        if codes is not None:
            return str(codes._VALUES_TO_NAMES.get(error.code, error.code))
    return f"{type(error).__name__} {error.code}"
