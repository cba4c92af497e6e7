# SPDX-License-Identifier: Apache-2.0
"""Whether one or two devices of UHD can be a link, stage by stage: library, images, device, rate,
loopback, packets, ip. The first that fails ends it, with its cure."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from . import doctor, usrp
from .checks import DIRECTIONS, ConfigError
from .radio import RadioConfig, parse_radio

_MIN_RECEIVED = 0.9
_BETWEEN_S = 0.02  # packets of the stage packets
DOUBLE = "type=nagi_double"
GAINS = "attach the cable with its attenuators, and set the gains: docs/first-radios.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device",
        action="append",
        default=[],
        metavar="ARGUMENTS",
        help="radio hardware: device arguments of UHD; once for both ends, or twice",
    )
    for name, what in (
        ("frequency", "of the carrier, in Hz"),
        ("backward-frequency", "of the other direction, in Hz, if it has another"),
        ("tx-gain", "of transmitters, in dB"),
        ("rx-gain", "of receivers, in dB"),
    ):
        parser.add_argument(f"--{name}", type=float, help=what)
    parser.add_argument("--rate", type=int, default=2_000_000, help="samples a second")
    parser.add_argument(
        "--channels", default="0,0", help="of the ends on one device (0,1), or on each of two"
    )


def radio_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The radio that the arguments ask for, as nagi-sdr's configuration has it. Raises
    ConfigError."""
    for name in ("frequency", "tx_gain", "rx_gain"):
        if getattr(arguments, name) is None:
            raise ConfigError(f"--{name.replace('_', '-')} is missing: --device needs it")
    if len(arguments.device) > 2:
        raise ConfigError("--device is given three times or more; a link has two ends")
    channels = arguments.channels.split(",")
    if len(channels) != 2 or not all(each.isdecimal() for each in channels):
        raise ConfigError(f"--channels {arguments.channels}: write two numbers, such as 0,1")
    first, second = arguments.device[0], arguments.device[-1]
    gains = {"tx_gain_db": arguments.tx_gain, "rx_gain_db": arguments.rx_gain}
    shared = first == second and channels[0] == channels[1]
    return {
        "by": "uhd",
        "modem": "ofdm",
        "modulation": "qpsk",
        "sample_rate_hz": arguments.rate,
        "code_rate": "1/2",
        "uhd": {
            "a": {"device": first, "channel": int(channels[0]), **gains},
            "b": {"device": second, "channel": int(channels[1]), **gains},
            "frequency_hz": {
                "forward": arguments.frequency,
                "backward": arguments.backward_frequency or arguments.frequency,
            },
            "duplex": "half" if shared else "full",
        },
    }


@contextmanager
def _failing() -> Iterator[None]:
    """What is wrong with devices as a stage that failed."""
    try:
        with usrp.device_errors():
            yield
    except usrp.UsrpMissing as error:
        raise doctor.Failed(str(error), usrp.INSTALL) from error
    except usrp.DeviceError as error:
        raise doctor.Failed(f"{error}", error.cure) from error


class DeviceStages:
    """The stages, in their order; each builds on those before it."""

    def __init__(self, radio: dict[str, Any]) -> None:
        self._radio = radio
        self._config: RadioConfig = parse_radio(radio)
        self._devices: usrp.Devices | None = None

    def all(self) -> doctor.Stages:
        stages: tuple[Callable[[], str], ...] = (
            self.library, self.images, self.device, self.rate, self.loopback, self.packets, self.ip
        )  # fmt: skip
        return tuple((stage.__name__, stage) for stage in stages)

    def library(self) -> str:
        with _failing():
            return f"UHD {usrp.bindings().uhd_version()}"

    def images(self) -> str:
        if all(DOUBLE in device for device in self._names()):
            return "the double needs none"
        with _failing():
            return f"in {usrp.bindings().images_directory()}"

    def _names(self) -> list[str]:
        assert self._config.uhd is not None
        return list(dict.fromkeys(end.device for end in self._config.uhd.ends.values()))

    def device(self) -> str:
        with _failing():
            self._devices = usrp.Devices(self._config)
            return "; ".join(self._devices.descriptions())

    def rate(self) -> str:
        assert self._devices is not None and self._config.uhd is not None
        with _failing():
            self._devices.tune()
        frequencies = self._config.uhd.frequency_hz
        carriers = " and ".join(
            f"{hz / 1e6:g} MHz" for hz in dict.fromkeys(frequencies[name] for name in DIRECTIONS)
        )
        return f"{self._config.sample_rate_hz / 1e6:g} Msample/s at {carriers}"

    def loopback(self) -> str:
        assert self._devices is not None
        self._devices.close()  # they are opened again
        with _failing():
            link = usrp.UhdLink(self._config, time.monotonic_ns(), doctor.DELAY_NS)
            said = [
                f"{name} SNR {one.preamble_snr_db:.1f} dB, {one.drift_ppm:+.2f} ppm"
                for name, one in link.measured.items()
            ]
            link.close()
            return f"lead {link.lead_ns / 1e6:g} ms, {', '.join(said)}"

    def packets(self) -> str:
        packets = doctor.some_packets()
        received = 0
        with _failing(), doctor.carried(self._radio) as carrier:
            for number, packet in enumerate(packets):
                carrier.send(number, packet)
                outcome, found = carrier.receive(number)
                received += int(outcome == doctor.RECEIVED and found == packet)
                time.sleep(_BETWEEN_S)
        said = f"{received} of {len(packets)} packets of 20 to 1,500 bytes received"
        if received < _MIN_RECEIVED * len(packets):
            raise doctor.Failed(said, GAINS)
        return said

    def ip(self) -> str:
        return doctor.ping(self._radio)
