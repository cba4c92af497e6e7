# SPDX-License-Identifier: Apache-2.0
"""Add shared media to the configuration of nagi-link, which carries them."""

from __future__ import annotations

from typing import Optional

from nagi_agent.backends import HostPart
from nagi_agent.contracts import Json, MediumPlan, RunPlan
from nagi_agent.emulator import drop_nulls, record_transmissions
from nagi_agent.job import Job


class MediumHost(HostPart):
    """The host part of shared media, which only extends nagi-link's configuration."""

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
        macs: MAC addresses of the stations in their order, or None to use the addresses of the
            plan.
    """
    stations = []
    for index, station in enumerate(medium["stations"]):
        settings = {key: value for key, value in station.items() if key not in ("node", "address")}
        configuration_of_station = {
            "name": station["node"],
            "interface": interfaces[index],
            **settings,
        }
        if macs is not None:
            configuration_of_station["mac"] = macs[index]
        stations.append(configuration_of_station)
    configuration: Json = drop_nulls({**medium, "stations": stations})
    return configuration


part = MediumHost()
