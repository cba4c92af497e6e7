# SPDX-License-Identifier: Apache-2.0
"""Send the ICMP errors of a node that is a switch, as a router's kernel would.

The agent is the controller of a switch that runs edge.p4, and answers packets by ICMP errors
(nagi_p4/controller.py). nagi's own applications need no ICMP errors, because their packets fit the
path's MTU and have a sufficient TTL. In flows of `traffic: command` and in live topologies, other
programs may need ICMP errors, for instance traceroute(8), tracepath(8) and path MTU discovery.
"""

from __future__ import annotations

from typing import Optional

from nagi_agent.contracts import NodePlan, RunPlan
from nagi_p4.controller import EdgeController

POLL_S = 0.02  # longest delay before an error is sent


def make_controller(plan: RunPlan, node: NodePlan, live: bool) -> Optional[EdgeController]:
    """Return the controller that sends a switch's ICMP errors.

    Return None if the node is not a switch, if the switch runs a user's program, or if no program
    of the run can need ICMP errors.

    Args:
        plan: the run.
        node: the node.
        live: whether the topology is live, so that any program may use it.
    """
    if node.switch is None or node.switch.own is not None:
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
