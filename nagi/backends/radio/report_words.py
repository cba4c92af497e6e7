# SPDX-License-Identifier: Apache-2.0
"""Describe radios and their channels in words, for reports."""

from __future__ import annotations

from nagi_contracts.plan import (
    DirectionName,
    LinkPlan,
    RadioChannelPlan,
    RadioPlan,
    RunPlan,
)

MODULATIONS = {
    "bpsk": "BPSK",
    "qpsk": "QPSK",
    "8psk": "8-PSK",
    "16qam": "16-QAM",
    "64qam": "64-QAM",
}
_MODEMS = {"ofdm": "OFDM", "single_carrier": "single carrier"}
_FADINGS = {"none": "", "rayleigh": "Rayleigh", "rician": "Rician"}


def list_radios(plan: RunPlan) -> list[LinkPlan]:
    """Return the links of a run that are radios."""
    return plan.carried_by("radio")


def describe_radio(radio: RadioPlan) -> str:
    """Describe the modem, modulation and sample rate of a radio, for both directions."""
    if radio.modes is not None:
        modes = f"rate adaptation over {len(radio.modes)} modes"
        return f"{_MODEMS[radio.modem]}, {modes}, {radio.sample_rate_hz / 1e6:.6g} MHz"
    assert radio.modulation is not None
    coding = "" if radio.code_rate == "none" else f", code rate {radio.code_rate}"
    return (
        f"{_MODEMS[radio.modem]} {MODULATIONS[radio.modulation]}{coding}, "
        f"{radio.sample_rate_hz / 1e6:.6g} MHz"
    )


def describe_channel(channel: RadioChannelPlan) -> str:
    """Describe fading, paths and frequency offset of a channel; empty if there are none.

    Other effects, such as shadowing, are left out.
    """
    effects = []
    if channel.fading != "none":
        k_factor = "" if channel.k_factor_db is None else f", K {channel.k_factor_db:g} dB"
        effects.append(f"{_FADINGS[channel.fading]} {channel.doppler_hz or 0:g} Hz{k_factor}")
    if channel.taps is not None and len(channel.taps) > 1:
        effects.append(f"{len(channel.taps)} paths")
    if channel.frequency_offset_hz:
        effects.append(f"offset {channel.frequency_offset_hz:g} Hz")
    return ", ".join(effects)


def describe_direction(radio: RadioPlan, direction: DirectionName) -> str:
    """Describe the simulated channel of a direction, or frequency and gains of UHD devices.

    The text is empty for a simulated channel that describe_channel() has nothing to say about.
    """
    channel = radio.channel(direction)
    if channel is not None:
        return describe_channel(channel)
    assert radio.uhd is not None
    frequency_hz = getattr(radio.uhd.frequency_hz, direction)
    tx_gain_db = radio.uhd.sender(direction).tx_gain_db
    rx_gain_db = radio.uhd.receiver(direction).rx_gain_db
    return (
        f"{frequency_hz / 1e6:g} MHz, transmitter gain {tx_gain_db:g} dB, "
        f"receiver gain {rx_gain_db:g} dB"
    )
