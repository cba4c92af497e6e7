# SPDX-License-Identifier: Apache-2.0
"""The options of `nagi doctor radio`, which examines GNU Radio and radio hardware."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer
from nagi_contracts.doctor import Doctor

from nagi.backends.interface import Examination


class RadioExamination(Examination):
    """The examination of GNU Radio and nagi-sdr: `nagi doctor radio`."""

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
                help="With radio: device arguments of UHD; once for one device, twice for two",
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
        """Examine the simulated radio, or radio hardware if a device is given.

        Args:
            announce: A function that shows the user a line of text.
            device: Device arguments of UHD: of one device for both ends, or of two devices.
            frequency: Carrier frequency with its unit. It is required with `device`.
            sample_rate: Sample rate with its unit.
            tx_gain: Gain of the transmitters with its unit.
            rx_gain: Gain of the receivers with its unit.
            channels: Channels of the two ends, such as `0,1`.

        Raises:
            InputError: An option is missing or wrong.
        """
        from nagi.backends.radio.doctor import examine_radio, list_device_options

        announce("checking GNU Radio and nagi-sdr")
        gains = (tx_gain, rx_gain)
        return examine_radio(
            list_device_options(device or [], frequency, sample_rate, gains, channels)
        )


part = RadioExamination()
