# SPDX-License-Identifier: Apache-2.0
"""Derive the settings of a node's switch from the plan.

These are the configuration of nagi-switch, the queues of bmv2, and MAC addresses.
"""

from __future__ import annotations

import hashlib
import json
from typing import Optional

from nagi_agent.contracts import Json, NodePlan, RunPlan
from nagi_agent.daemons import name_control_socket
from nagi_agent.processes import run_command
from nagi_p4 import edge, simple_switch
from nagi_p4.operations import Operation

from nagi.backends.switch.host.pipelines import make_pipeline, require_switch

NAGI_SWITCH = "nagi-switch"
ACCOUNT, DIGESTS, DROPS = "nagi-switch.account.json", "digests.jsonl", "switch_drops.pcapng"


def derive_seed(plan: RunPlan, node: str) -> int:
    """Return the seed of a switch's random draws.

    The seed differs from the emulator's seed and from the seeds of other switches.

    Args:
        plan: the run.
        node: name of the switch.
    """
    text = f"{plan.seed} {node}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1


def build_configuration(
    plan: RunPlan,
    node: NodePlan,
    interfaces: dict[str, str],
    epoch_s: float,
    *,
    virtual: bool,
    socket: Optional[str] = None,
) -> Json:
    """Return nagi-switch's configuration for a node.

    Args:
        plan: the run.
        node: the node, which must be a switch.
        interfaces: link -> the node's interface.
        epoch_s: the instant 0 of the switch's clock, in seconds since the Unix epoch.
        virtual: whether the run is in virtual time.
        socket: path of the control socket, or None for a socket in nagi-switch's working directory.
    """
    pipeline = make_pipeline(node)
    return {
        "schema_version": 1,
        "seed": derive_seed(plan, node.name),
        "epoch_realtime_ns": int(epoch_s * 1e9),
        "virtual_time": virtual,
        "pipeline": pipeline.file,
        **pipeline.settings,
        "account": ACCOUNT,
        "digests": DIGESTS,
        "drops": DROPS,
        "control_socket": socket or name_control_socket(NAGI_SWITCH),
        "ports": [
            {"number": port.number, "interface": interfaces[port.link], **port.queue}
            for port in edge.plan_ports(require_switch(node).ports)
        ],
    }


def build_bmv2_queues(node: NodePlan) -> tuple[list[Operation], list[str]]:
    """Return the operations that set the rates and limits of bmv2's queues.

    bmv2 has no rates in bit/s. A planned rate becomes a rate in packets/s, for packets of the
    largest size.

    Args:
        node: the node, which must be a switch.

    Returns:
        The operations, and one notice per port with a rate.
    """
    operations: list[Operation] = []
    notices = []
    for port in edge.plan_ports(require_switch(node).ports):
        queue: Operation = {
            "op": "queue_set",
            "port": port.number,
            "depth_packets": port.queue.get("depth_packets", simple_switch.ENDLESS),
        }
        rate = port.queue.get("rate_bps")
        if rate is not None:
            assert port.packet_bytes is not None  # the planner refuses a rate without it
            overhead = port.queue.get("overhead_bytes", 0)
            queue["rate_pps"] = simple_switch.compute_packet_rate(rate, port.packet_bytes, overhead)
            early_ms = 1e3 / queue["rate_pps"]
            notices.append(
                f"bmv2 has no rates in bit/s: {rate} bit/s on link {port.link} became "
                f"{queue['rate_pps']} packets/s, for packets of {port.packet_bytes} bytes; smaller "
                f"packets take the same time, and each packet leaves {early_ms:.3g} ms before a "
                "link of this rate would have sent it"
            )
        operations.append(queue)
    return operations, notices


def read_macs(plan: RunPlan, node: str, interfaces: dict[str, str]) -> dict[str, edge.Macs]:
    """Return link -> MAC addresses of a node's interface and of its neighbour.

    The neighbour's address is read from the kernel's neighbour table.

    Args:
        plan: the run.
        node: name of the node.
        interfaces: link -> the node's interface.

    Raises:
        RuntimeError: The table has no permanent entry for a neighbour.
    """
    macs = {}
    for link in plan.links:
        nodes = [end.node for end in link.ends]
        if node not in nodes:
            continue
        far_address = link.ends[1 - nodes.index(node)].address.split("/")[0]
        interface = interfaces[link.name]
        with open(f"/sys/class/net/{interface}/address", encoding="ascii") as file:
            own_mac = file.read().strip()
        entries = json.loads(
            run_command(["ip", "-json", "neighbour", "show", "dev", interface, "nud", "permanent"])
            or "[]"
        )
        neighbours = {entry["dst"]: entry.get("lladdr") for entry in entries}
        if not neighbours.get(far_address):
            raise RuntimeError(
                f"interface {interface}: no permanent neighbour entry for {far_address}; provision "
                "the host again"
            )
        macs[link.name] = edge.Macs(own_mac, neighbours[far_address])
    return macs
