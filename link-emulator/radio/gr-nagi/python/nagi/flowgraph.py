# SPDX-License-Identifier: Apache-2.0
"""Builds the flowgraph of a configuration's radios, which are connected to nagi-link by sockets."""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from gnuradio import gr

from . import nagi_python
from .checks import DIRECTIONS
from .radio import SimulatedRadio, name_interferer_port
from .settings import RadioLink, Settings
from .stations import Stations, VirtualRadio
from .usrp import DeviceError, UhdLink


class Flowgraph:
    """The flowgraph with both directions of each radio.

    The constructor starts the processes of virtual radios; `start` starts the blocks.

    Args:
        settings: The configuration.
        media: Descriptor of the socket to nagi-link, by (name of the link, direction). The
            flowgraph closes these descriptors.
    """

    def __init__(self, settings: Settings, media: dict[tuple[str, str], int]) -> None:
        gr.logging().set_default_level(gr.log_levels.warn)
        self._cleanup = ExitStack()
        self._stations: dict[str, Stations] = {}
        self._devices: dict[str, UhdLink] = {}
        # An exception in a block must end this process, not only the block.
        self._top = gr.top_block("nagi-sdr", catch_exceptions=False)
        self._ports: dict[str, nagi_python.medium_port] = {}
        self._radios: dict[tuple[str, str], gr.hier_block2] = {}
        try:
            for link in settings.radios:
                self._add_radio(link, settings, media)
            for link in settings.radios:
                self._connect_interferers(link)
        except BaseException:
            self._cleanup.close()
            raise

    def _add_radio(
        self, link: RadioLink, settings: Settings, media: dict[tuple[str, str], int]
    ) -> None:
        """Open the devices or start the stations of a radio, and add both directions."""
        seed = settings.seed
        directory = self._start_stations(link, seed) if link.radio.by == "virtual" else None
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
                radio = self._devices[link.name].make_radio(direction)
            else:
                radio = SimulatedRadio(link.radio, direction, seed, link.channel_number(direction))
            self._top.msg_connect(port, "frames", radio, "packets")
            self._top.msg_connect(radio, "outcomes", port, "outcomes")
            self._ports[f"link {link.name}, {direction}"] = port
            self._radios[link.name, direction] = radio

    def _connect_interferers(self, link: RadioLink) -> None:
        """Connect the bursts of each interferer to the direction of `link` that they disturb."""
        for direction, channel in link.radio.channels.items():
            for index, interferer in enumerate(channel.interference):
                self._top.msg_connect(
                    self._radios[interferer.link, interferer.direction],
                    "sent",
                    self._radios[link.name, direction],
                    name_interferer_port(index),
                )

    def _start_stations(self, link: RadioLink, seed: int) -> Path:
        """Start the processes of a virtual radio and return the directory of their sockets."""
        directory = Path(
            self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="nagi-sdr-"))
        )
        directions = {direction: link.channel_number(direction) for direction in DIRECTIONS}
        stations = Stations(link.radio_json, directory, seed, directions)
        self._stations[link.name] = self._cleanup.enter_context(stations)
        return directory

    def list_processes(self) -> list[tuple[str, subprocess.Popen[str]]]:
        """Return the processes of virtual radios, as pairs: name for messages, process."""
        return [
            (f"{name} of link {link}", process)
            for link, stations in self._stations.items()
            for name, process in stations.processes.items()
        ]

    def list_errors(self) -> list[str]:
        """Return the errors of sockets and devices, as lines of text."""
        errors = [f"{name}: {port.error()}" for name, port in self._ports.items() if port.error()]
        for name, link in self._devices.items():
            errors += [f"link {name}, {error}" for error in link.list_errors()]
        return errors

    def describe_devices(self) -> list[str]:
        """Describe the devices and their measurements at the start, as lines of text."""
        return [
            f"link {name}: {line}"
            for name, link in self._devices.items()
            for line in link.describe()
        ]

    def list_accounts(self) -> list[dict[str, Any]]:
        """Return the value of `links` in radios.json: one object per link over radio hardware."""
        return [{"name": name, **link.make_account()} for name, link in self._devices.items()]

    def describe_counts(self) -> list[str]:
        """Describe the events of devices whose counts are above 0, one line per direction."""
        return [
            f"link {name}, {direction}: "
            + ", ".join(
                f"{count} {event.replace('_', ' ')}" for event, count in counts.items() if count
            )
            for name, link in self._devices.items()
            for direction, counts in link.read_counts().items()
        ]

    def start(self) -> None:
        self._top.start()

    def stop(self) -> None:
        """Stop the blocks, release the devices, and end the processes of virtual radios."""
        self._top.stop()
        self._top.wait()
        for link in self._devices.values():
            link.close()
        self._devices.clear()
        self._cleanup.close()
