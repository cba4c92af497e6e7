# SPDX-License-Identifier: Apache-2.0
"""Check nagi-sdr on emulators' hosts, and examine GNU Radio and radio hardware of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from nagi_contracts.doctor import Doctor
from nagi_contracts.errors import BadValue, refuse
from nagi_contracts.units import CarrierFrequency, Level, SampleRate

from nagi.backends.radio import needs as radio_needs
from nagi.backends.radio.program import INSTALL, STEPS, STEPS_OF_DEVICES, check_steps
from nagi.doctor.programs import ProgramStage
from nagi.doctor.steps import make_step_findings

_TITLES = {"library": "GNU Radio", "ip": "IP"}


def examine_radio(devices: Sequence[str] = ()) -> Doctor:
    """Check, step by step, whether this machine can run links that are radios.

    After a step fails, the remaining steps become findings with the status "skipped".

    Args:
        devices: Options of `nagi-sdr doctor` for radio hardware. If there are none, the simulated
            radio is examined.
    """
    results = check_steps(devices)
    return make_step_findings(
        [(step.stage, step.ok, step.detail, step.cure or INSTALL) for step in results],
        STEPS_OF_DEVICES if devices else STEPS,
        _TITLES,
    )


def list_device_options(
    devices: list[str],
    frequency: str | None,
    sample_rate: str,
    gains: tuple[str, str],
    channels: str,
) -> list[str]:
    """Return the options of `nagi-sdr doctor` for radio hardware; empty without `devices`.

    The arguments are options of `nagi doctor radio`.

    Args:
        devices: Device arguments of UHD: of one device for both ends, or of two devices.
        frequency: Carrier frequency with its unit, or None if not given.
        sample_rate: Sample rate with its unit.
        gains: Gain of the transmitters and gain of the receivers, with their units.
        channels: Channels of the two ends, such as `0,1`.

    Raises:
        InputError: `frequency` is missing, or an option is wrong.
    """
    if not devices:
        return []
    if frequency is None:
        raise refuse(
            "--device without --frequency",
            "add a frequency at which you may transmit (with a licence, or in a licence-exempt "
            "band), such as `--frequency '2450 MHz'`",
        )
    named_gains = zip(("--tx-gain", "--rx-gain"), gains, strict=True)
    return [
        *(f"--device={device}" for device in devices),
        f"--frequency={_parse_option('--frequency', CarrierFrequency.parse, frequency).value}",
        f"--rate={_parse_option('--sample-rate', SampleRate.parse, sample_rate).value}",
        *(f"{name}={_parse_option(name, Level.parse, text).value}" for name, text in named_gains),
        f"--channels={channels}",
    ]


_Value = TypeVar("_Value")


def _parse_option(name: str, parse: Callable[[object], _Value], text: str) -> _Value:
    """Parse the text of an option.

    Args:
        name: Name of the option, for messages.
        parse: A function that raises BadValue if the text is wrong.
        text: The text.

    Raises:
        InputError: The text is wrong.
    """
    try:
        return parse(text)
    except BadValue as error:
        raise refuse(f"{name}: {error.what}", error.cure) from None


class RadioStage(ProgramStage):
    """The stage of `nagi doctor` that checks nagi-sdr, which links that are radios need."""

    name = "radio"
    order = 1
    titles = _TITLES
    needs = radio_needs.part
    program = "nagi-sdr"
    install = INSTALL
    install_there = radio_needs.INSTALL_THERE


part = RadioStage()
