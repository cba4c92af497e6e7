# SPDX-License-Identifier: Apache-2.0
"""The controller of a switch with edge.p4, which answers packets at the CPU port by ICMP errors."""

from __future__ import annotations

import time
from typing import Any, Mapping

from nagi_p4 import icmp
from nagi_p4.switch import Switch


class EdgeController:
    """A controller that sends the ICMP errors that the kernel of a router would send.

    Args:
        addresses: The IP address of the switch at each port, by port number.
    """

    def __init__(self, addresses: Mapping[int, str]) -> None:
        self._addresses = addresses
        self._limiter = icmp.RateLimiter()

    def serve(self, switch: Switch) -> dict[str, Any]:
        """Answer the packets that have reached the CPU port since the last call.

        A packet gets no answer if its port has no address, if the RFCs forbid an answer, or if
        too many errors were sent recently (icmp.RateLimiter).

        Returns:
            All events since the last call, as Switch.read_events() returns them.

        Raises:
            Refused: The switch refused to send an answer.
            OSError: The connection to the switch is lost.
        """
        events = switch.read_events()
        for event in events["packets"]:
            packet = icmp.parse_packet_in(bytes.fromhex(event["bytes"]))
            address = self._addresses.get(packet.ingress_port)
            error = None if address is None else icmp.build_error(packet, address)
            # bmv2 does not report when a packet arrived.
            time_us = event.get("at_us", time.monotonic_ns() // 1000)
            if error is not None and self._limiter.admit(time_us):
                switch.send_packet_out(icmp.build_packet_out(error))
        return events
