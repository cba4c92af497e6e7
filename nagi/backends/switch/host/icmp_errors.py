# SPDX-License-Identifier: Apache-2.0
"""Send the ICMP errors of a node that is a switch, as a router's kernel would.

The agent is the switch's controller (nagi_p4/controller.py), which answers packets by ICMP errors.
nagi's own applications need no ICMP errors, because their packets fit the path's MTU and have
enough hops. Other programs need them, in flows of `traffic: command` and in live topologies:
traceroute(8), tracepath(8), path MTU discovery.
"""

from __future__ import annotations

from typing import Optional

from nagi_agent.contracts import NodePlan, RunPlan
from nagi_p4.controller import EdgeController

POLL_S = 0.02  # longest delay before an error is sent


def make_controller(plan: RunPlan, node: NodePlan, live: bool) -> Optional[EdgeController]:
    """Return the controller that sends a switch's ICMP errors, or None if none are needed.

    Args:
        plan: the run.
        node: the node.
        live: whether the topology is live, so that any program may use it.
    """
    if node.switch is None or node.switch.own is not None:  # a user's pipeline has its controller
        return None
    if not (live or any(flow.command for flow in plan.flows)):
        return None
    addresses = {
        link.name: end.address.split("/")[0]
        for link in plan.links
        for end in link.ends
        if end.node == node.name
    }
    return EdgeController({port.number: addresses[port.link] for port in node.switch.ports})
