# SPDX-License-Identifier: Apache-2.0
"""A client for any switch with a P4Runtime server, with the interface nagi_p4.switch.Switch."""

from nagi_p4runtime.client.switch import P4RuntimeSwitch

__all__ = ["P4RuntimeSwitch"]
