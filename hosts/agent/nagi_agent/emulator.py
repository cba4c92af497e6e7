# SPDX-License-Identifier: Apache-2.0
"""Runs nagi-link for one run, configured from its plan; where links are radios nagi-sdr, which is
told the same and leaves the same files; beside it nagi-fpga where links are an FPGA's."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from typing import Any, Optional

from nagi_agent.contracts import Json, LinkPlan, MediumPlan, RadioPlan, RunPlan
from nagi_agent.daemons import START_TIMEOUT_S, Daemon, control_socket
from nagi_agent.simulated_core import SimulatedCore

NAME, RADIO_NAME = "nagi-link", "nagi-sdr"
A_LINK_TIMEOUT_S = 0.4  # more, of each link: its two interfaces are set up, and put back
RADIO_START_TIMEOUT_S = 60.0  # Python imports GNU Radio, on a busy machine and in several processes
ACCOUNT = "links.json"
PACKETS = "packets.bin"
TRANSMISSIONS = "transmissions.bin"
DROPS = "drops.pcapng"
RADIO_ACCOUNT = "radios.json"


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def problem_with(plans: list[RunPlan], nagi_sdr: Optional[str]) -> Optional[str]:
    """What of the plans' radios cannot be had here, with the cure."""
    names = list(dict.fromkeys(link.name for plan in plans for link in plan.radios()))
    if not names or (nagi_sdr is not None and shutil.which(nagi_sdr) is not None):
        return None
    are = (
        f"link {names[0]} is a radio" if len(names) == 1 else f"links {', '.join(names)} are radios"
    )
    lacking = nagi_sdr or RADIO_NAME
    return f"{are}, and there is no {lacking}; install GNU Radio and nagi-sdr with `make sdr`"


def _radio(radio: RadioPlan) -> Json:
    """A plan's radio in nagi-sdr's terms."""
    directions = {"forward": "forward", "backward": "backward"}
    named = {directions.get(key, key): value for key, value in radio.items()}
    configured: Json = _without_nulls(named)
    return configured


def records_transmissions(link: LinkPlan) -> bool:
    """nagi_contracts' LinkPlan.records_transmissions, for directions in JSON."""
    directions = (link.forward, link.backward)
    return link.is_radio or any(each.get("arq") is not None for each in directions)


def _medium(
    medium: MediumPlan, interfaces: tuple[str, ...], macs: Optional[tuple[str, ...]]
) -> Json:
    """A plan's medium in nagi-link's terms. `interfaces` of the emulator, and `macs` of the
    stations if they are not the plan's, in the order of the stations."""
    stations = []
    for index, station in enumerate(medium["stations"]):
        others = {key: value for key, value in station.items() if key not in ("node", "address")}
        own = {"name": station["node"], "interface": interfaces[index], **others}
        stations.append(own if macs is None else {**own, "mac": macs[index]})
    configured: Json = _without_nulls({**medium, "stations": stations})
    return configured


def configuration(
    plan: RunPlan,
    ends: dict[str, tuple[str, ...]],
    epoch: float,
    *,
    virtual: bool = False,
    macs: Optional[dict[str, tuple[str, ...]]] = None,
    cores: Optional[dict[str, int]] = None,
) -> Json:
    """nagi-link's configuration for a plan. `ends`: link -> the interfaces of its two ends, medium
    -> those of its stations; `virtual`: time stands still while nagi-link runs; `macs`: medium ->
    MAC addresses of its stations, where they are not the plan's; `cores`: link -> the descriptor of
    the socket to its core."""
    is_recorded = bool(plan.media) or any(records_transmissions(link) for link in plan.links)
    further: Json = {"transmissions": TRANSMISSIONS} if is_recorded else {}
    if any((link.radio or {}).get("by") == "uhd" for link in plan.links):
        further["radio_account"] = RADIO_ACCOUNT
    if plan.media:
        further["media"] = [
            _medium(medium, ends[medium["name"]], (macs or {}).get(medium["name"]))
            for medium in plan.media
        ]
    return {
        "schema_version": 1,
        "seed": plan.seed,
        "epoch_realtime_ns": int(epoch * 1e9),
        "virtual_time": virtual,
        "account": ACCOUNT,
        "packets": PACKETS,
        "drops": DROPS,
        **further,
        "control_socket": control_socket(NAME),
        "links": [
            {
                "name": link.name,
                "id": link.id,
                "a": ends[link.name][0],
                "b": ends[link.name][1],
                "forward": _without_nulls(link.forward),
                "backward": _without_nulls(link.backward),
                **({} if link.radio is None else {"radio": _radio(link.radio)}),
                **({} if link.name not in (cores or {}) else {"core": (cores or {})[link.name]}),
            }
            for link in plan.links
        ],
    }


class Emulator(Daemon):
    """A running nagi-link, or nagi-sdr if a link of the plan is a radio, which is told by its
    environment which nagi-link to run. Both have the same control socket. Beside nagi-link runs a
    `nagi_fpga` for each link whose FPGA is simulated. `ends`, `epoch`, `virtual` and `macs` as for
    configuration(); `user`: as whom nagi-link goes on, if root starts it; `timeout_s`,
    `radio_timeout_s`: in which nagi-link, beside what each link needs, and nagi-sdr must have
    started, and in half of which they must end."""

    def __init__(
        self,
        nagi_link: str,
        nagi_sdr: Optional[str],
        plan: RunPlan,
        ends: dict[str, tuple[str, ...]],
        epoch: float,
        directory: str,
        *,
        nagi_fpga: Optional[str] = None,
        virtual: bool = False,
        macs: Optional[dict[str, tuple[str, ...]]] = None,
        timeout_s: float = START_TIMEOUT_S,
        radio_timeout_s: float = RADIO_START_TIMEOUT_S,
        user: Optional[str] = None,
    ) -> None:
        timeout_s += A_LINK_TIMEOUT_S * len(ends)
        is_radio = bool(plan.radios())
        program = nagi_link
        if is_radio:
            if nagi_sdr is None:
                raise RuntimeError("a link is a radio, and the batch names no nagi-sdr")
            program = nagi_sdr
            if virtual:
                # A guest's files belong to the user who started it; nagi-sdr, which gives up the
                # rights of the guest's root, writes beside them.
                os.chmod(directory, 0o777)
        self._cores: list[SimulatedCore] = []
        with ExitStack() as undo:
            sockets = {}
            for link in plan.simulated_fpgas():
                if nagi_fpga is None:
                    raise RuntimeError("a link is an FPGA's, and the batch names no nagi-fpga")
                core = SimulatedCore(nagi_fpga, link.name, directory)
                undo.callback(core.kill)
                self._cores.append(core)
                sockets[link.name] = core.socket.fileno()
            super().__init__(
                RADIO_NAME if is_radio else NAME,
                program,
                configuration(plan, ends, epoch, virtual=virtual, macs=macs, cores=sockets),
                directory,
                socket=control_socket(NAME),
                timeout_s=radio_timeout_s if is_radio else timeout_s,
                environment={"NAGI_LINK": nagi_link} if is_radio else None,
                pass_fds=tuple(sockets.values()),
                user=user,
            )
            undo.pop_all()
        for core in self._cores:
            core.socket.close()

    def check(self) -> None:
        # nagi-link ends when a core does, and that says more.
        for problem in filter(None, (core.problem() for core in self._cores)):
            raise RuntimeError(problem)
        super().check()

    def stop(self) -> None:
        super().stop()
        for core in self._cores:
            core.stop()

    def kill(self) -> None:
        super().kill()
        for core in self._cores:
            core.kill()
