# SPDX-License-Identifier: Apache-2.0
"""ICMP errors of a node that is a switch: where packets may need them, its agent is the controller
that answers (nagi_p4/controller.py), as a router's kernel would.

Flows of nagi's own need none: their packets fit the path and have hops enough. Programs of others
do, in flows of `traffic: command` and in live topologies: traceroute(8), tracepath(8), path MTU
discovery.
"""

from __future__ import annotations

from typing import Optional

from nagi_p4.controller import EdgeController

from nagi_agent.contracts import NodePlan, RunPlan

POLL_S = 0.02  # after so long at most an error is sent


def controller_for(plan: RunPlan, node: NodePlan, live: bool) -> Optional[EdgeController]:
    """None: nothing needs one. `live`: of a live topology."""
    if node.switch is None or node.switch.own is not None:  # a user's own answers, or does not
        return None
    if not (live or any(flow.command for flow in plan.flows)):
        return None
    own = {
        link.name: end.address.split("/")[0]
        for link in plan.links
        for end in link.ends
        if end.node == node.name
    }
    return EdgeController({port.number: own[port.link] for port in node.switch.ports})
