# SPDX-License-Identifier: Apache-2.0
"""The flowgraph of all radios of a configuration, between sockets to nagi-link."""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from gnuradio import gr

from . import nagi_python
from .checks import DIRECTIONS
from .radio import SimulatedRadio, interferer_port
from .settings import RadioLink, Settings
from .stations import Stations, VirtualRadio
from .usrp import DeviceError, UhdLink


class Flowgraph:
    """Both directions of each radio. Processes of virtual radios run as soon as this is made,
    blocks when it is started; `media`, (link, direction) -> descriptor, are closed with it."""

    def __init__(self, settings: Settings, media: dict[tuple[str, str], int]) -> None:
        gr.logging().set_default_level(gr.log_levels.warn)
        self._cleanup = ExitStack()
        self._stations: dict[str, Stations] = {}
        self._devices: dict[str, UhdLink] = {}
        # What goes wrong in a block must end this process, not only the block.
        self._top = gr.top_block("nagi-sdr", catch_exceptions=False)
        self._ports: dict[str, nagi_python.medium_port] = {}
        self._radios: dict[tuple[str, str], gr.hier_block2] = {}
        try:
            for link in settings.radios:
                self._add(link, settings, media)
            for link in settings.radios:
                self._connect_interferers(link)
        except BaseException:
            self._cleanup.close()
            raise

    def _add(self, link: RadioLink, settings: Settings, media: dict[tuple[str, str], int]) -> None:
        seed = settings.seed
        directory = self._station(link, seed) if link.radio.by == "virtual" else None
        if link.radio.by == "uhd":
            try:
                self._devices[link.name] = UhdLink(
                    link.radio, settings.epoch_monotonic_ns, link.budget_ns
                )
            except DeviceError as error:
                raise DeviceError(f"link {link.name}: {error}", error.stage, error.cure) from error
        for direction in DIRECTIONS:
            port = nagi_python.medium_port(media[link.name, direction])
            radio: gr.hier_block2
            if directory is not None:
                radio = VirtualRadio(directory, direction)
            elif link.name in self._devices:
                radio = self._devices[link.name].radio(direction)
            else:
                radio = SimulatedRadio(link.radio, direction, seed, link.direction(direction))
            self._top.msg_connect(port, "frames", radio, "packets")
            self._top.msg_connect(radio, "outcomes", port, "outcomes")
            self._ports[f"link {link.name}, {direction}"] = port
            self._radios[link.name, direction] = radio

    def _connect_interferers(self, link: RadioLink) -> None:
        for direction, channel in link.radio.channels.items():
            for index, each in enumerate(channel.interference):
                self._top.msg_connect(
                    self._radios[each.link, each.direction],
                    "sent",
                    self._radios[link.name, direction],
                    interferer_port(index),
                )

    def _station(self, link: RadioLink, seed: int) -> Path:
        directory = Path(
            self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="nagi-sdr-"))
        )
        directions = {direction: link.direction(direction) for direction in DIRECTIONS}
        stations = Stations(link.described, directory, seed, directions)
        self._stations[link.name] = self._cleanup.enter_context(stations)
        return directory

    def processes(self) -> list[tuple[str, subprocess.Popen[str]]]:
        """Those of virtual radios, by names for errors."""
        return [
            (f"{name} of link {link}", process)
            for link, stations in self._stations.items()
            for name, process in stations.processes.items()
        ]

    def errors(self) -> list[str]:
        """What went wrong with media and devices."""
        found = [f"{name}: {port.error()}" for name, port in self._ports.items() if port.error()]
        for name, link in self._devices.items():
            found += [f"link {name}, {error}" for error in link.errors()]
        return found

    def statements(self) -> list[str]:
        """What devices there are, and what was measured with them at the start."""
        return [
            f"link {name}: {line}"
            for name, link in self._devices.items()
            for line in link.statement()
        ]

    def account(self) -> list[dict[str, Any]]:
        """What devices are, and what they did: `links` of radios.json."""
        return [{"name": name, **link.account()} for name, link in self._devices.items()]

    def counts(self) -> list[str]:
        """What devices did, and what went wrong."""
        return [
            f"link {name}, {direction}: "
            + ", ".join(
                f"{count} {what.replace('_', ' ')}" for what, count in counts.items() if count
            )
            for name, link in self._devices.items()
            for direction, counts in link.counts().items()
        ]

    def start(self) -> None:
        self._top.start()

    def stop(self) -> None:
        self._top.stop()
        self._top.wait()
        for link in self._devices.values():
            link.close()
        self._devices.clear()
        self._cleanup.close()
