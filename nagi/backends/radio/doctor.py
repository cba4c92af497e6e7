# SPDX-License-Identifier: Apache-2.0
"""Checks nagi-sdr on hosts that are emulators, and GNU Radio and radio hardware of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

import typer
from nagi_contracts.doctor import Doctor
from nagi_contracts.errors import BadValue, refuse
from nagi_contracts.units import CarrierFrequency, Level, SampleRate

from nagi.backends.interface import Examination
from nagi.backends.radio import needs as radio_needs
from nagi.backends.radio.program import INSTALL, STEPS, STEPS_OF_DEVICES, check_steps
from nagi.doctor.programs import ProgramStage
from nagi.doctor.steps import make_step_findings

_TITLES = {"library": "GNU Radio", "ip": "IP"}


def examine_radio(devices: Sequence[str] = ()) -> Doctor:
    """Check, step by step, whether links of this machine can be radios.

    Steps after a failed one are skipped.

    Args:
        devices: Options of `nagi-sdr doctor` for radio hardware.
    """
    checked = check_steps(devices)
    return make_step_findings(
        [(step.stage, step.ok, step.detail, step.cure or INSTALL) for step in checked],
        STEPS_OF_DEVICES if devices else STEPS,
        _TITLES,
    )


class RadioExamination(Examination):
    """Examines GNU Radio and nagi-sdr: `nagi doctor radio`."""

    subject = "GNU Radio and nagi-sdr"
    where = "where `make sdr` has been run"
    own_options = ("device",)

    def examine(
        self,
        announce: Callable[[str], None],
        device: Annotated[
            list[str] | None,
            typer.Option(
                metavar="ARGUMENTS",
                help="With radio: device arguments of UHD; give it once for both ends, or twice",
                show_default=False,
            ),
        ] = None,
        frequency: Annotated[
            str | None,
            typer.Option(
                metavar="FREQUENCY",
                help="With --device: carrier frequency, such as '2450 MHz'",
                show_default=False,
            ),
        ] = None,
        sample_rate: Annotated[
            str, typer.Option(metavar="RATE", help="With --device: sample rate")
        ] = "2 MHz",
        tx_gain: Annotated[
            str, typer.Option(metavar="GAIN", help="With --device: gain of the transmitters")
        ] = "0 dB",
        rx_gain: Annotated[
            str, typer.Option(metavar="GAIN", help="With --device: gain of the receivers")
        ] = "0 dB",
        channels: Annotated[
            str, typer.Option(metavar="A,B", help="With --device: channels of the two ends")
        ] = "0,0",
    ) -> Doctor:
        """Examine the simulated radio, or radio hardware if a device is given."""
        announce("checking GNU Radio and nagi-sdr")
        gains = (tx_gain, rx_gain)
        return examine_radio(
            _list_device_options(device or [], frequency, sample_rate, gains, channels)
        )


def _list_device_options(
    devices: list[str],
    frequency: str | None,
    sample_rate: str,
    gains: tuple[str, str],
    channels: str,
) -> list[str]:
    """Return the options of `nagi-sdr doctor` for radio hardware.

    Raises:
        InputError: An option is missing or wrong.
    """
    if not devices:
        return []
    if frequency is None:
        raise refuse(
            "--device without a frequency: transmitting needs a licence, or a band that needs none",
            "add `--frequency '2450 MHz'`",
        )
    levels = zip(("--tx-gain", "--rx-gain"), gains, strict=True)
    return [
        *(f"--device={device}" for device in devices),
        f"--frequency={_parse_option('--frequency', CarrierFrequency.parse, frequency).value}",
        f"--rate={_parse_option('--sample-rate', SampleRate.parse, sample_rate).value}",
        *(f"{name}={_parse_option(name, Level.parse, text).value}" for name, text in levels),
        f"--channels={channels}",
    ]


_Value = TypeVar("_Value")


def _parse_option(name: str, parse: Callable[[object], _Value], text: str) -> _Value:
    """Parse the text of an option.

    Raises:
        InputError: The text is wrong; the message names the option.
    """
    try:
        return parse(text)
    except BadValue as error:
        raise refuse(f"{name}: {error.what}", error.cure) from None


class RadioStage(ProgramStage):
    """The stage of nagi-sdr."""

    name = "radio"
    order = 1
    titles = _TITLES
    examination = RadioExamination()
    needs = radio_needs.part
    program = "nagi-sdr"
    install = INSTALL
    install_there = radio_needs.INSTALL_THERE


part = RadioStage()
