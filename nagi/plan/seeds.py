# SPDX-License-Identifier: Apache-2.0
"""Derive the seeds of runs from links and media, so that all schemes get the same channel."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from nagi_contracts.plan import DIRECTIONS, LinkPlan

from nagi.plan.ip import IPV4


def derive_seed(
    campaign_seed: int, channels: list[str], node_shares: list[Any], repeat: int
) -> int:
    """Return the seed of a run, made from the experiment's seed, the channel and the repeat.

    Runs with different schemes therefore get the same random losses and delays. Each repeat gets
    other losses and delays.

    Args:
        campaign_seed: The seed of the experiment file.
        channels: The plans of links and media, each as a JSON text.
        node_shares: The settings of links that nodes such as switches apply, as JSON values.
        repeat: Number of the repeat, from 0.

    Returns:
        A seed of 63 bits.
    """
    inputs = [str(campaign_seed), f"[{', '.join(channels)}]", str(repeat)]
    if node_shares:
        inputs.append(json.dumps(node_shares, sort_keys=True))
    text = f"[{', '.join(inputs)}]"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1  # fits an int64


def encode_link_for_seed(link: LinkPlan, ignored_backends: Sequence[str]) -> str:
    """Return the plan of a link as the JSON text from which seeds are derived.

    The text has IPv4 addresses also for IPv6, so that the seeds do not depend on the version of IP.

    Args:
        link: The plan of the link.
        ignored_backends: Backends whose fields are left out, so that a link has the same seed as
            with nagi-link.
    """
    document = link.model_dump(mode="json")
    parts = document.pop("parts", {})
    for backend in ignored_backends:
        document.pop(backend, None)
        parts.pop(backend, None)
    if parts:
        document["parts"] = parts
    for index, end in enumerate(document["ends"], start=1):
        end["address"] = f"{IPV4.format_link_address(link.id, index)}/{IPV4.link_prefix}"
    for direction in DIRECTIONS:
        restore_format_0_1(document[direction])
    return json.dumps(document, sort_keys=True)


def restore_format_0_1(direction: dict[str, Any]) -> None:
    """Change the JSON of a direction to the format of nagi 0.1, in place.

    Version 0.1 wrote null values of loss and jitter, and no packet size of marking. Seeds are
    hashes of this format, so that an experiment keeps its seeds with later versions.
    """
    loss, jitter, mark = direction["loss"], direction.get("jitter"), direction.get("mark")
    for key in ("probability", "packet_loss_rate", "packet_bytes"):
        loss.setdefault(key, None)
    if jitter is not None:
        for key in ("half_width_ns", "deviation_ns", "mean_ns"):
            jitter.setdefault(key, None)
    if mark is not None:
        del mark["packet_bytes"]
