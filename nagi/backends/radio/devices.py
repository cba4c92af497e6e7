# SPDX-License-Identifier: Apache-2.0
"""Plan radio hardware: the UHD devices at the two nodes of a link."""

from __future__ import annotations

from nagi_contracts.plan import DIRECTIONS, CarriersPlan, UhdEndPlan, UhdPlan

from nagi.backends.radio.spec import Radio, RadioChannel, UhdEnd
from nagi.plan.request import PlanRequest
from nagi.spec.links import Link


def plan_uhd(request: PlanRequest, name: str, link: Link) -> UhdPlan | None:
    """Return the plan of a link's UHD devices, or None for a simulated radio.

    Args:
        request: The point that is planned.
        name: Name of the link.
        link: Settings of the link.

    Raises:
        InputError: A device is for a node that the link does not have, a direction has settings of
            a simulated channel, or both nodes share a channel with full duplex.
    """
    radio = link.find_settings(Radio)
    uhd = radio.uhd if radio is not None else None
    if uhd is None:
        return None
    for direction in DIRECTIONS:
        if link.get_own_settings(direction).find_settings(RadioChannel) is not None:
            raise request.error(
                ("links", name, direction, "radio"),
                "settings of a simulated channel for radio hardware",
                "remove `radio` of the direction",
            )
    for node in uhd.ends:
        if node not in link.between:
            raise request.error(
                ("links", name, "radio", "uhd", "ends", node),
                f"{node} is not a node of the link",
                f"the link is between {' and '.join(link.between)}",
            )
    first, second = (_plan_uhd_end(uhd.ends[node]) for node in link.between)
    is_shared = (first.device, first.channel) == (second.device, second.channel)
    if is_shared and uhd.duplex == "full":
        raise request.error(
            ("links", name, "radio", "uhd", "duplex"),
            "both nodes use the same channel of a device, which can send only one burst at a time",
            "write `duplex: half`, or give one node another `channel`",
        )
    frequency = uhd.frequency.value
    backward = uhd.backward_frequency.value if uhd.backward_frequency else frequency
    return UhdPlan(
        a=first,
        b=second,
        frequency_hz=CarriersPlan(forward=frequency, backward=backward),
        lo_offset_hz=uhd.lo_offset.value if uhd.lo_offset else 0.0,
        duplex=uhd.duplex,
        backoff_db=uhd.backoff.value if uhd.backoff else None,
    )


def _plan_uhd_end(end: UhdEnd) -> UhdEndPlan:
    """Return the plan of the UHD device at one node of a link."""
    return UhdEndPlan(
        device=end.device,
        channel=end.channel,
        tx_gain_db=end.tx_gain.value,
        rx_gain_db=end.rx_gain.value,
        subdev=end.subdev,
        tx_antenna=end.tx_antenna,
        rx_antenna=end.rx_antenna,
        clock_source=end.clock_source,
        time_source=end.time_source,
    )
