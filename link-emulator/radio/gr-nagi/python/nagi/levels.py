# SPDX-License-Identifier: Apache-2.0
"""`nagi-sdr levels`: the noise at the inputs of radio hardware, and the SNR at each gain of the
transmitters, both ways, by probes as they begin a run."""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import asdict, dataclass
from typing import Any

from . import device_doctor, doctor, usrp
from .checks import DIRECTIONS, ConfigError
from .radio import parse_radio

_NOISE_S = 0.2
_MAX_LISTED = 100


@dataclass(frozen=True)
class Level:
    """SNR of the preambles at a gain of the transmitter; None if less than half were found."""

    direction: str
    tx_gain_db: float
    snr_db: float | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    device_doctor.add_arguments(parser)
    parser.add_argument(
        "--gains", required=True, help="of the transmitters, in dB, with commas between"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")


def gains_of(text: str) -> list[float]:
    """Raises ConfigError."""
    try:
        found = [float(each) for each in text.split(",")]
    except ValueError:
        found = []
    if not found or len(found) > _MAX_LISTED or not all(map(math.isfinite, found)):
        raise ConfigError(f"--gains {text}: write 1 to {_MAX_LISTED} numbers, such as 40,50,60")
    return found


def measure(radio: dict[str, Any], gains: list[float]) -> tuple[dict[str, float], list[Level]]:
    """Noise in dB of full scale by direction of who hears it, and levels. Raises DeviceError and
    UsrpMissing."""
    config = parse_radio(radio)
    found = []
    with usrp.device_errors():
        link = usrp.UhdLink(config, time.monotonic_ns(), doctor.DELAY_NS, synchronised=False)
        noise = {
            name: 10 * math.log10(max(link.devices.stream(name).power(_NOISE_S), 1e-20))
            for name in DIRECTIONS
        }
        for gain in gains:
            for name in DIRECTIONS:
                link.devices.tune_sender(name, gain)
                found.append(Level(name, gain, link.probed_snr_db(name)))
        link.close()
    return noise, found


def main(arguments: argparse.Namespace) -> int:
    gains = gains_of(arguments.gains)
    arguments.tx_gain = gains[0]
    noise, found = measure(device_doctor.radio_of(arguments), gains)
    if arguments.json:
        levels = [asdict(each) for each in found]
        print(json.dumps({"noise_dbfs": noise, "levels": levels}, indent=1))
        return 0
    for name, dbfs in noise.items():
        print(f"noise {name}: {dbfs:.1f} dB of full scale")
    for each in found:
        snr = "not found" if each.snr_db is None else f"{each.snr_db:.1f} dB"
        print(f"{each.direction} gain {each.tx_gain_db:g} dB: SNR {snr}")
    return 0
