# SPDX-License-Identifier: Apache-2.0
"""Run the emulator of one run: nagi-link, configured from the run's plan.

If a link is a radio, nagi-sdr runs instead. It takes the same configuration, starts nagi-link and
leaves the same files. If links are carried by simulated FPGAs, one nagi-fpga runs for each of them.
"""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from typing import Any, Optional

from nagi_agent.contracts import Json, LinkPlan, MediumPlan, RadioPlan, RunPlan
from nagi_agent.daemons import START_TIMEOUT_S, Daemon, name_control_socket
from nagi_agent.simulated_core import SimulatedCore

NAME, RADIO_NAME = "nagi-link", "nagi-sdr"
LINK_TIMEOUT_S = 0.4  # added per link, whose two interfaces are set up and restored
# On a busy machine several processes import GNU Radio at once.
RADIO_START_TIMEOUT_S = 60.0
ACCOUNT = "links.json"
PACKETS = "packets.bin"
TRANSMISSIONS = "transmissions.bin"
DROPS = "drops.pcapng"
RADIO_ACCOUNT = "radios.json"


def _drop_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_drop_nulls(item) for item in value]
    return value


def find_problem(plans: list[RunPlan], nagi_sdr: Optional[str]) -> Optional[str]:
    """Return why this host cannot run the plans' radios, with the cure, or None.

    Args:
        plans: the runs to check.
        nagi_sdr: path of nagi-sdr, or None if the batch names none.
    """
    names = list(dict.fromkeys(link.name for plan in plans for link in plan.radios()))
    if not names or (nagi_sdr is not None and shutil.which(nagi_sdr) is not None):
        return None
    fact = (
        f"link {names[0]} is a radio" if len(names) == 1 else f"links {', '.join(names)} are radios"
    )
    program = nagi_sdr or RADIO_NAME
    return f"{fact}, and there is no {program}; install GNU Radio and nagi-sdr with `make sdr`"


def _configure_radio(radio: RadioPlan) -> Json:
    """Return nagi-sdr's configuration of a radio."""
    configured: Json = _drop_nulls(radio)
    return configured


def records_transmissions(link: LinkPlan) -> bool:
    """Return whether nagi-link records single transmissions of a link: radios and links with ARQ.

    It must agree with LinkPlan.records_transmissions of nagi_contracts.
    """
    directions = (link.forward, link.backward)
    return link.is_radio or any(direction.get("arq") is not None for direction in directions)


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
    configuration: Json = _drop_nulls({**medium, "stations": stations})
    return configuration


def build_configuration(
    plan: RunPlan,
    ends: dict[str, tuple[str, ...]],
    epoch: float,
    *,
    virtual: bool = False,
    macs: Optional[dict[str, tuple[str, ...]]] = None,
    cores: Optional[dict[str, int]] = None,
) -> Json:
    """Return nagi-link's configuration for a run.

    Args:
        plan: the run.
        ends: link -> the emulator's interfaces at its two ends, and medium -> the interfaces that
            face its stations.
        epoch: the instant 0 of the emulator's clock, in seconds since the Unix epoch.
        virtual: time stands still while nagi-link computes.
        macs: medium -> MAC addresses of its stations, if they are not those of the plan.
        cores: link -> descriptor of the socket to the simulated FPGA that carries it.
    """
    is_recorded = bool(plan.media) or any(records_transmissions(link) for link in plan.links)
    optional: Json = {"transmissions": TRANSMISSIONS} if is_recorded else {}
    if any((link.radio or {}).get("by") == "uhd" for link in plan.links):
        optional["radio_account"] = RADIO_ACCOUNT
    if plan.media:
        optional["media"] = [
            _configure_medium(medium, ends[medium["name"]], (macs or {}).get(medium["name"]))
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
        **optional,
        "control_socket": name_control_socket(NAME),
        "links": [
            {
                "name": link.name,
                "id": link.id,
                "a": ends[link.name][0],
                "b": ends[link.name][1],
                "forward": _drop_nulls(link.forward),
                "backward": _drop_nulls(link.backward),
                **({} if link.radio is None else {"radio": _configure_radio(link.radio)}),
                **({} if link.name not in (cores or {}) else {"core": (cores or {})[link.name]}),
            }
            for link in plan.links
        ],
    }


class Emulator(Daemon):
    """A running nagi-link, or nagi-sdr if a link of the plan is a radio.

    Both have the same control socket. nagi-sdr reads from its environment which nagi-link to start.

    Args:
        nagi_link: path of nagi-link.
        nagi_sdr: path of nagi-sdr, or None if the batch names none.
        plan, ends, epoch, virtual, macs: see build_configuration().
        directory: working directory, and directory of the files.
        nagi_fpga: path of nagi-fpga, or None if the batch names none.
        timeout_s: time limit for nagi-link to start, to which LINK_TIMEOUT_S is added per link.
        radio_timeout_s: time limit for nagi-sdr to start. Half of each limit is the limit to end.
        user: if root starts nagi-link, it changes to this user when all its files are open.

    Raises:
        RuntimeError: the plan needs a program that the batch does not name.
    """

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
        timeout_s += LINK_TIMEOUT_S * len(ends)
        is_radio = bool(plan.radios())
        program = nagi_link
        if is_radio:
            if nagi_sdr is None:
                raise RuntimeError("a link is a radio, and the batch names no nagi-sdr")
            program = nagi_sdr
            if virtual:
                # A guest's files belong to the user who started the guest. nagi-sdr gives up the
                # privileges of the guest's root, and must still create files in the directory.
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
                build_configuration(plan, ends, epoch, virtual=virtual, macs=macs, cores=sockets),
                directory,
                socket=name_control_socket(NAME),
                timeout_s=radio_timeout_s if is_radio else timeout_s,
                environment={"NAGI_LINK": nagi_link} if is_radio else None,
                pass_fds=tuple(sockets.values()),
                user=user,
            )
            undo.pop_all()
        for core in self._cores:
            core.socket.close()

    def check(self) -> None:
        # nagi-link ends when a core does. The core's message has the cause, so it comes first.
        for problem in filter(None, (core.describe_failure() for core in self._cores)):
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
