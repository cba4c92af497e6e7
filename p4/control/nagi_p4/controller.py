# SPDX-License-Identifier: Apache-2.0
"""The controller of a switch with edge.p4: ICMP errors answer what goes to the CPU port."""

from __future__ import annotations

import time
from typing import Any, Mapping

from nagi_p4 import icmp
from nagi_p4.switch import Switch


class EdgeController:
    """`addresses`: the switch's own, by the number of the port."""

    def __init__(self, addresses: Mapping[int, str]) -> None:
        self._addresses = addresses
        self._limit = icmp.Limit()

    def serve(self, switch: Switch) -> dict[str, Any]:
        """Answers what has come since the last time, and returns all events (Switch.events). Raises
        Refused and OSError."""
        events = switch.events()
        for arrived in events["packets"]:
            packet = icmp.told(bytes.fromhex(arrived["bytes"]))
            own = self._addresses.get(packet.ingress_port)
            error = None if own is None else icmp.error_for(packet, own)
            at_us = arrived.get("at_us", time.monotonic_ns() // 1000)  # bmv2 does not say
            if error is not None and self._limit.permits(at_us):
                switch.packet_out(icmp.by_route(error))
        return events
