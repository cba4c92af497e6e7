# SPDX-License-Identifier: Apache-2.0
"""Plan the modem of a radio: its modes (modulation and code rate) and its sample rate."""

from __future__ import annotations

from nagi_contracts.plan import RadioModePlan

from nagi.backends.radio.spec import Radio
from nagi.plan.air_time import load_air_time
from nagi.plan.request import PlanRequest

_MODE_FIELDS = ("modulation", "code_rate")


def plan_modes(
    request: PlanRequest, name: str, radio_settings: Radio
) -> list[RadioModePlan] | None:
    """Return the modes of a radio's rate adaptation, slowest first; None without rate adaptation.

    Args:
        request: The point that is planned.
        name: The name of the link.
        radio_settings: The settings of the link's radio.

    Raises:
        InputError: A mode is listed twice.
    """
    if radio_settings.rate_adaptation is None:
        return None
    modes = [mode.split() for mode in radio_settings.rate_adaptation.modes]
    if len({tuple(mode) for mode in modes}) < len(modes):
        key_path = ("links", name, "radio", "rate_adaptation", "modes")
        raise request.error(key_path, "a mode is listed twice", "remove one")
    plans = [
        RadioModePlan.model_validate(dict(zip(_MODE_FIELDS, mode, strict=True))) for mode in modes
    ]
    return sorted(
        plans,
        key=lambda mode: load_air_time().compute_rate_bps(
            radio_settings.modem, mode.modulation, 10**6, mode.code_rate
        ),
    )


def plan_sample_rate(request: PlanRequest, name: str, radio_settings: Radio) -> int:
    """Return the sample rate of a radio in Hz.

    If the setting `sample_rate` is given, return this setting. If not, return the smallest sample
    rate at which the slowest mode has the bit rate of the setting `rate`.

    Args:
        request: The point that is planned.
        name: The name of the link.
        radio_settings: The settings of the link's radio.

    Raises:
        InputError: The modem does not support the rate or the modulation, or a mode is listed
            twice.
    """
    key = "rate" if radio_settings.sample_rate is None else "sample_rate"
    modes = plan_modes(request, name, radio_settings)
    if modes is None:
        assert radio_settings.modulation is not None
        slowest = (radio_settings.modulation, radio_settings.code_rate or "none")
    else:
        slowest = (modes[0].modulation, modes[0].code_rate)
    try:
        if radio_settings.sample_rate is None:
            assert radio_settings.rate is not None
            sample_rate_hz = find_sample_rate(
                radio_settings.modem, *slowest, radio_settings.rate.value
            )
        else:
            sample_rate_hz = radio_settings.sample_rate.value
        rate_bps = load_air_time().compute_rate_bps(
            radio_settings.modem, slowest[0], sample_rate_hz, slowest[1]
        )
    except ValueError as error:
        raise request.error(
            ("links", name, "radio", key),
            f"the modem does not support this: {error}",
            "give another modem, modulation or rate",
        ) from None
    if rate_bps < 1:
        raise request.error(
            ("links", name, "radio", key),
            "at this sample rate, the modem carries less than 1 b/s",
            "give a higher rate, such as `sample_rate: 2 MHz`",
        )
    return sample_rate_hz


def find_sample_rate(modem: str, modulation: str, code_rate: str, rate_bps: int) -> int:
    """Return the smallest sample rate in Hz at which a modem has a bit rate of `rate_bps` or more.

    Args:
        modem: The modem, such as `ofdm`.
        modulation: The modulation, such as `qpsk`.
        code_rate: The code rate, such as `1/2`, or `none`.
        rate_bps: The required bit rate of the body of a transmission, in bit/s.

    Raises:
        ValueError: No sample rate is high enough, or the modem does not support the modulation.
    """

    def compute_rate(sample_rate_hz: int) -> int:
        return load_air_time().compute_rate_bps(modem, modulation, sample_rate_hz, code_rate)

    maximum, minimum = 1, 0
    while compute_rate(maximum) < rate_bps:
        # Above the limit, the modem raises ValueError, which ends this loop.
        limit = load_air_time().MAX_SAMPLE_RATE_HZ
        minimum, maximum = maximum, limit + 1 if maximum == limit else min(2 * maximum, limit)
    while maximum - minimum > 1:
        middle = (minimum + maximum) // 2
        if compute_rate(middle) < rate_bps:
            minimum = middle
        else:
            maximum = middle
    return maximum
