# SPDX-License-Identifier: Apache-2.0
"""Implements `nagi-sdr levels`: measures noise, and SNR over gain, of radio hardware.

For both directions, it measures the noise at the receiver, and the SNR at each gain of the
transmitter. It sends the probes that are also sent when a run starts.
"""

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
_MAX_GAINS = 100


@dataclass(frozen=True)
class Level:
    """The SNR at a transmitter's gain, or None if fewer than half of the probes were detected."""

    direction: str
    tx_gain_db: float
    snr_db: float | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    device_doctor.add_arguments(parser)
    parser.add_argument(
        "--gains", required=True, help="gains of the transmitters in dB, separated by commas"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")


def parse_gains(text: str) -> list[float]:
    """Parse the value of `--gains`, in dB.

    Raises:
        ConfigError: The text is not a list of 1 to _MAX_GAINS numbers.
    """
    try:
        gains = [float(gain) for gain in text.split(",")]
    except ValueError:
        gains = []
    if not gains or len(gains) > _MAX_GAINS or not all(map(math.isfinite, gains)):
        raise ConfigError(f"--gains {text}: write 1 to {_MAX_GAINS} numbers, such as 40,50,60")
    return gains


def measure_levels(
    radio: dict[str, Any], gains: list[float]
) -> tuple[dict[str, float], list[Level]]:
    """Measure noise and SNR of radio hardware.

    Args:
        radio: A radio's configuration, as device_doctor.build_radio returns it.
        gains: Gains of the transmitters in dB.

    Returns:
        The noise in dB relative to full scale, by the direction whose receiver was measured; and
        the SNRs in the order of `gains`, for each gain forward, then backward.

    Raises:
        DeviceError: A device fails, or does not support a setting.
        UsrpMissing: nagi-sdr was built without UHD, or UHD's library is missing.
    """
    config = parse_radio(radio)
    levels = []
    with usrp.convert_errors():
        link = usrp.UhdLink(config, time.monotonic_ns(), doctor.DELAY_NS, synchronised=False)
        noise = {
            direction: 10
            * math.log10(max(link.devices.open_stream(direction).power(_NOISE_S), 1e-20))
            for direction in DIRECTIONS
        }
        for gain in gains:
            for direction in DIRECTIONS:
                link.devices.tune_sender(direction, gain)
                levels.append(Level(direction, gain, link.measure_snr_db(direction)))
        link.close()
    return noise, levels


def main(arguments: argparse.Namespace) -> int:
    gains = parse_gains(arguments.gains)
    arguments.tx_gain = gains[0]
    noise, levels = measure_levels(device_doctor.build_radio(arguments), gains)
    if arguments.json:
        document = {"noise_dbfs": noise, "levels": [asdict(level) for level in levels]}
        print(json.dumps(document, indent=1))
        return 0
    for direction, dbfs in noise.items():
        print(f"noise {direction}: {dbfs:.1f} dB relative to full scale")
    for level in levels:
        snr = (
            "not measured, as too few probes were detected"
            if level.snr_db is None
            else f"{level.snr_db:.1f} dB"
        )
        print(f"{level.direction} gain {level.tx_gain_db:g} dB: SNR {snr}")
    return 0
