# SPDX-License-Identifier: Apache-2.0
"""A switch that is reached by P4Runtime, as a target of nagi_p4."""

from nagi_p4runtime.client.switch import P4RuntimeSwitch

__all__ = ["P4RuntimeSwitch"]
