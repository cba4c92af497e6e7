# SPDX-License-Identifier: Apache-2.0
"""The controller of router.p4.

It adds the routes in controller.json to the switch, and prints packets and bytes of each route
every second. nagi writes controller.json (docs/switches.md), and starts the controller on the host
of the switch:

    python3 router_controller.py controller.json
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from nagi_p4.nagi_switch import NagiSwitch
from nagi_p4.simple_switch import SimpleSwitch
from nagi_p4.simple_switch_client import find_client_directory
from nagi_p4.switch import Switch

TABLE, FORWARD = "ingress.routes", "ingress.forward"


def connect(configuration: dict[str, Any]) -> Switch:
    """Connect to the switch, which is nagi-switch or bmv2's simple_switch.

    Args:
        configuration: The content of controller.json.
    """
    if configuration["control_socket"] is not None:
        return NagiSwitch(configuration["control_socket"])
    return SimpleSwitch(port=configuration["thrift_port"], client=find_client_directory())


def main(path: str) -> None:
    configuration = json.loads(Path(path).read_text(encoding="utf-8"))
    ports = {port["number"]: port for port in configuration["ports"]}
    with connect(configuration) as switch:
        handles = {}
        for route in configuration["routes"]:
            port = ports[route["port"]]
            data = [port["number"], port["mac"], port["neighbour"]["mac"]]
            destination = route["destination"]
            handles[destination] = switch.add_entry(TABLE, [destination], FORWARD, data)
        print(f"{configuration['node']}: {len(handles)} routes")
        while True:
            time.sleep(1)
            for destination, handle in handles.items():
                packets, octets = switch.read_entry_counter(TABLE, handle)
                print(f"{destination}: {packets} packets, {octets} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
