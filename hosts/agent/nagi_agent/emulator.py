# SPDX-License-Identifier: Apache-2.0
"""Runs nagi-link for one run, configured from its plan; where links are radios nagi-sdr, which is
told the same and leaves the same files."""

from __future__ import annotations

import shutil
from typing import Any, Optional

from nagi_agent.daemons import START_TIMEOUT_S, Daemon, control_socket

NAME, RADIO_NAME = "nagi-link", "nagi-sdr"
RADIO_START_TIMEOUT_S = 60.0  # Python imports GNU Radio, on a busy machine and in several processes
ACCOUNT = "links.json"
PACKETS = "packets.bin"
TRANSMISSIONS = "transmissions.bin"
DROPS = "drops.pcapng"


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def radios(plan: dict[str, Any]) -> list[str]:
    """The links of a plan that are radios."""
    return [link["name"] for link in plan["links"] if link.get("radio") is not None]


def problem_with(plans: list[dict[str, Any]], nagi_sdr: Optional[str]) -> Optional[str]:
    """What of the plans' radios cannot be had here, with the cure."""
    names = list(dict.fromkeys(name for plan in plans for name in radios(plan)))
    if not names or (nagi_sdr is not None and shutil.which(nagi_sdr) is not None):
        return None
    are = (
        f"link {names[0]} is a radio" if len(names) == 1 else f"links {', '.join(names)} are radios"
    )
    lacking = nagi_sdr or RADIO_NAME
    return f"{are}, and there is no {lacking}; install GNU Radio and nagi-sdr with `make sdr`"


def _radio(radio: dict[str, Any]) -> dict[str, Any]:
    """A plan's radio in nagi-sdr's terms."""
    ways = {"forward": "a_to_b", "backward": "b_to_a"}
    named = {ways.get(key, key): value for key, value in radio.items()}
    configured: dict[str, Any] = _without_nulls(named)
    return configured


def _records_transmissions(plan: dict[str, Any]) -> bool:
    directions = [link[way] for link in plan["links"] for way in ("forward", "backward")]
    return bool(radios(plan)) or any(each.get("arq") is not None for each in directions)


def configuration(
    plan: dict[str, Any], interfaces: dict[str, list[str]], epoch: float, *, virtual: bool = False
) -> dict[str, Any]:
    """nagi-link's configuration for a plan. `interfaces`: link -> the two ends' interfaces;
    `virtual`: time stands still while nagi-link runs."""
    further = {"transmissions": TRANSMISSIONS} if _records_transmissions(plan) else {}
    return {
        "schema_version": 1,
        "seed": plan["seed"],
        "epoch_realtime_ns": int(epoch * 1e9),
        "virtual_time": virtual,
        "account": ACCOUNT,
        "packets": PACKETS,
        "drops": DROPS,
        **further,
        "control_socket": control_socket(NAME),
        "links": [
            {
                "name": link["name"],
                "id": link["id"],
                "a": interfaces[link["name"]][0],
                "b": interfaces[link["name"]][1],
                "a_to_b": _without_nulls(link["forward"]),
                "b_to_a": _without_nulls(link["backward"]),
                **({"radio": _radio(link["radio"])} if link.get("radio") else {}),
            }
            for link in plan["links"]
        ],
    }


class Emulator(Daemon):
    """A running nagi-link, or nagi-sdr if a link of the configuration is a radio, which is told by
    its environment which nagi-link to run. Both have the same control socket."""

    def __init__(
        self,
        nagi_link: str,
        nagi_sdr: Optional[str],
        configuration: dict[str, Any],
        directory: str,
    ) -> None:
        is_radio = any("radio" in link for link in configuration["links"])
        program = nagi_link
        if is_radio:
            if nagi_sdr is None:
                raise RuntimeError("a link is a radio, and the batch names no nagi-sdr")
            program = nagi_sdr
        super().__init__(
            RADIO_NAME if is_radio else NAME,
            program,
            configuration,
            directory,
            socket=control_socket(NAME),
            timeout_s=RADIO_START_TIMEOUT_S if is_radio else START_TIMEOUT_S,
            environment={"NAGI_LINK": nagi_link} if is_radio else None,
        )
