# SPDX-License-Identifier: Apache-2.0
"""Checks in stages whether one or two UHD devices can form a link.

The stages are library, images, device, rate, loopback, packets and ip. The check ends at the first
stage that fails, and prints what the user can do.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import doctor, usrp
from .checks import DIRECTIONS, ConfigError
from .radio import RadioConfig, parse_radio

_MIN_RECEIVED = 0.9
_INTERVAL_S = 0.02  # between packets of the stage `packets`
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
    for name, description in (
        ("frequency", "of the carrier, in Hz"),
        ("backward-frequency", "of the backward direction, in Hz, if it differs"),
        ("tx-gain", "of transmitters, in dB"),
        ("rx-gain", "of receivers, in dB"),
    ):
        parser.add_argument(f"--{name}", type=float, help=description)
    parser.add_argument("--rate", type=int, default=2_000_000, help="samples per second")
    parser.add_argument(
        "--channels", default="0,0", help="channel of each end, such as 0,1 on one device"
    )


def build_radio(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the radio that the arguments describe, in the form of nagi-sdr's configuration.

    `--device` must be given once (both ends use this device) or twice. The radio is half-duplex if
    both ends use one channel of one device. The modem is always OFDM with QPSK and code rate 1/2.

    Raises:
        ConfigError: Arguments are missing or contradict each other.
    """
    for name in ("frequency", "tx_gain", "rx_gain"):
        if getattr(arguments, name) is None:
            raise ConfigError(f"--{name.replace('_', '-')} is missing: --device needs it")
    if len(arguments.device) > 2:
        raise ConfigError("--device is given three times or more; a link has two ends")
    channels = arguments.channels.split(",")
    if len(channels) != 2 or not all(channel.isdecimal() for channel in channels):
        raise ConfigError(f"--channels {arguments.channels}: write two numbers, such as 0,1")
    first, second = arguments.device[0], arguments.device[-1]
    gains = {"tx_gain_db": arguments.tx_gain, "rx_gain_db": arguments.rx_gain}
    is_shared = first == second and channels[0] == channels[1]
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
            "duplex": "half" if is_shared else "full",
        },
    }


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Convert errors of devices into doctor.Failed."""
    try:
        with usrp.convert_errors():
            yield
    except usrp.UsrpMissing as error:
        raise doctor.Failed(str(error), usrp.INSTALL) from error
    except usrp.DeviceError as error:
        raise doctor.Failed(f"{error}", error.cure) from error


class DeviceStages:
    """The stages in their order; each requires the stages before it.

    Each method check_STAGE returns the result as text, and raises doctor.Failed if the stage fails.
    """

    def __init__(self, radio: dict[str, Any]) -> None:
        self._radio = radio
        self._config: RadioConfig = parse_radio(radio)
        self._devices: usrp.Devices | None = None

    def list_stages(self) -> doctor.Stages:
        """Return pairs of a stage's name and the function that runs the stage."""
        return (
            ("library", self.check_library),
            ("images", self.check_images),
            ("device", self.check_device),
            ("rate", self.check_rate),
            ("loopback", self.check_loopback),
            ("packets", self.check_packets),
            ("ip", self.check_ip),
        )

    def check_library(self) -> str:
        """Import the bindings and return the version of UHD."""
        with _convert_errors():
            return f"UHD {usrp.load_bindings().uhd_version()}"

    def check_images(self) -> str:
        """Return the directory of firmware and FPGA images.

        nagi's doubles, which are UHD devices in software, need no images.
        """
        if all(DOUBLE in device for device in self._list_devices()):
            return "not needed: the devices are nagi's doubles"
        with _convert_errors():
            return f"in {usrp.load_bindings().images_directory()}"

    def _list_devices(self) -> list[str]:
        assert self._config.uhd is not None
        return list(dict.fromkeys(end.device for end in self._config.uhd.ends.values()))

    def check_device(self) -> str:
        """Open the devices and return their descriptions."""
        with _convert_errors():
            self._devices = usrp.Devices(self._config)
            return "; ".join(self._devices.list_descriptions())

    def check_rate(self) -> str:
        """Tune the devices and return the sample rate and the carrier frequencies."""
        assert self._devices is not None and self._config.uhd is not None
        with _convert_errors():
            self._devices.tune()
        frequencies = self._config.uhd.frequency_hz
        carriers = " and ".join(
            f"{hz / 1e6:g} MHz" for hz in dict.fromkeys(frequencies[name] for name in DIRECTIONS)
        )
        return f"{self._config.sample_rate_hz / 1e6:g} Msample/s at {carriers}"

    def check_loopback(self) -> str:
        """Send probes in both directions and return lead, SNR and clock drift."""
        assert self._devices is not None
        self._devices.close()  # UhdLink opens them again
        with _convert_errors():
            link = usrp.UhdLink(self._config, time.monotonic_ns(), doctor.DELAY_NS)
            measured = [
                f"{name} SNR {result.preamble_snr_db:.1f} dB, {result.drift_ppm:+.2f} ppm"
                for name, result in link.measured.items()
            ]
            link.close()
            return f"lead {link.lead_ns / 1e6:g} ms, {', '.join(measured)}"

    def check_packets(self) -> str:
        """Send packets and return how many were received.

        The stage fails if the received share is below _MIN_RECEIVED.
        """
        packets = doctor.make_packets()
        received = 0
        with _convert_errors(), doctor.open_carrier(self._radio) as carrier:
            for number, packet in enumerate(packets):
                carrier.send(number, packet)
                outcome, received_packet = carrier.receive(number)
                received += int(outcome == doctor.RECEIVED and received_packet == packet)
                time.sleep(_INTERVAL_S)
        detail = f"{received} of {len(packets)} packets of 20 to 1,500 bytes received"
        if received < _MIN_RECEIVED * len(packets):
            raise doctor.Failed(detail, GAINS)
        return detail

    def check_ip(self) -> str:
        """Ping over the radio and return the last line of ping's output."""
        return doctor.ping(self._radio)
