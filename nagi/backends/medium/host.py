# SPDX-License-Identifier: Apache-2.0
"""Shared media on the emulator's host: nagi-link carries them."""

from __future__ import annotations

from typing import Optional

from nagi_agent.backends import HostPart
from nagi_agent.contracts import Json, MediumPlan, RunPlan
from nagi_agent.emulator import drop_nulls, record_transmissions
from nagi_agent.job import Job


class MediumHost(HostPart):
    """nagi-link gets the media with its configuration."""

    def configure(self, configuration: Json, plan: RunPlan, job: Job) -> None:
        if not plan.media:
            return
        record_transmissions(configuration)
        configuration["media"] = [
            _configure_medium(medium, job.ends[medium["name"]], job.macs.get(medium["name"]))
            for medium in plan.media
        ]


def _configure_medium(
    medium: MediumPlan, interfaces: tuple[str, ...], macs: Optional[tuple[str, ...]]
) -> Json:
    """Return nagi-link's configuration of a shared medium.

    Args:
        medium: the plan of the medium.
        interfaces: the emulator's interfaces, in the order of the stations.
        macs: MAC addresses of the stations in their order, if they are not those of the plan.
    """
    stations = []
    for index, station in enumerate(medium["stations"]):
        rest = {key: value for key, value in station.items() if key not in ("node", "address")}
        configured = {"name": station["node"], "interface": interfaces[index], **rest}
        stations.append(configured if macs is None else {**configured, "mac": macs[index]})
    configuration: Json = drop_nulls({**medium, "stations": stations})
    return configuration


part = MediumHost()
