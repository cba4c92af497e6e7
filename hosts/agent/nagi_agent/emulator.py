# SPDX-License-Identifier: Apache-2.0
"""Runs nagi-link for one run, configured from its plan."""

from __future__ import annotations

from typing import Any

from nagi_agent.daemons import Daemon, control_socket

NAME = "nagi-link"
ACCOUNT = "links.json"
PACKETS = "packets.bin"
DROPS = "drops.pcapng"


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def configuration(
    plan: dict[str, Any], interfaces: dict[str, list[str]], epoch: float, *, virtual: bool = False
) -> dict[str, Any]:
    """nagi-link's configuration for a plan. `interfaces`: link -> the two ends' interfaces;
    `virtual`: time stands still while nagi-link runs."""
    return {
        "schema_version": 1,
        "seed": plan["seed"],
        "epoch_realtime_ns": int(epoch * 1e9),
        "virtual_time": virtual,
        "account": ACCOUNT,
        "packets": PACKETS,
        "drops": DROPS,
        "control_socket": control_socket(NAME),
        "links": [
            {
                "name": link["name"],
                "id": link["id"],
                "a": interfaces[link["name"]][0],
                "b": interfaces[link["name"]][1],
                "a_to_b": _without_nulls(link["forward"]),
                "b_to_a": _without_nulls(link["backward"]),
            }
            for link in plan["links"]
        ],
    }


class Emulator(Daemon):
    """A running nagi-link."""

    def __init__(self, program: str, configuration: dict[str, Any], directory: str) -> None:
        super().__init__(NAME, program, configuration, directory)
