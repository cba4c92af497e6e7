# SPDX-License-Identifier: Apache-2.0
"""Plan the simulated channel of a radio in one direction."""

from __future__ import annotations

from nagi_contracts.impairments.fading import NoFading, RicianFading
from nagi_contracts.impairments.snr import SnrTraceFile, SnrTracePlan
from nagi_contracts.plan import (
    DirectionName,
    InterfererPlan,
    RadioChannelPlan,
    SampleClockPlan,
    TapPlan,
)

from nagi.backends.radio.multipath import PROFILES, ProfileName
from nagi.backends.radio.spec import Interferer, RadioChannel, SampleClock, Tap, resolve_channel
from nagi.plan.request import PlanRequest
from nagi.plan.trace_files import load_trace
from nagi.spec.links import Link


def plan_radio_channel(
    request: PlanRequest, name: str, link: Link, direction: DirectionName
) -> RadioChannelPlan:
    """Return the plan of the simulated channel of a radio in one direction.

    Args:
        request: The point that is planned.
        name: Name of the link.
        link: Settings of the link, which must be a radio.
        direction: The direction.

    Raises:
        InputError: The direction has no SNR, or a file of SNRs is missing or wrong.
    """
    channel = resolve_channel(link, direction)
    trace = _plan_snr_trace(request, name, direction, channel)
    if channel.snr is None and trace is None:
        raise request.error(
            ("links", name, "radio"),
            f"no SNR in direction {direction}",
            f"add `snr: 12 dB`, or write it under `{direction}: {{radio: ...}}`",
        )
    fading = channel.fading or NoFading(kind="none")
    shadowing, phase_noise = channel.shadowing, channel.phase_noise
    offset = channel.frequency_offset
    return RadioChannelPlan(
        snr_db=trace.mean_db if trace else channel.snr.value if channel.snr else 0.0,
        snr_trace=trace,
        fading=fading.kind,
        doppler_hz=None if isinstance(fading, NoFading) else fading.doppler.value,
        k_factor_db=fading.k_factor.value if isinstance(fading, RicianFading) else None,
        taps=_plan_taps(channel.multipath),
        frequency_offset_hz=offset.value if offset else 0.0,
        shadowing=shadowing.to_plan() if shadowing else None,
        phase_noise_hz=phase_noise.value if phase_noise else 0.0,
        sample_clock=_plan_sample_clock(channel.sample_clock),
        interference=_plan_interference(channel.interference),
    )


def _plan_snr_trace(
    request: PlanRequest, name: str, direction: DirectionName, channel: RadioChannel
) -> SnrTracePlan | None:
    """Return the plan of a changing SNR, or None for a constant SNR.

    If the SNRs are in a file, read the file.
    """
    trace = channel.snr_trace
    if isinstance(trace, SnrTraceFile):
        link = request.experiment.links[name]
        direction_channel = link.get_own_settings(direction).find_settings(RadioChannel)
        is_set_for_direction = (
            direction_channel is not None and direction_channel.snr_trace is not None
        )
        key_path = (
            *("links", name),
            *((direction,) if is_set_for_direction else ()),
            *("radio", "snr_trace"),
        )
        snr_plan = load_trace(request, key_path, trace.file, trace.format, "snr")
        assert isinstance(snr_plan, SnrTracePlan)
        return snr_plan
    return None if trace is None else trace.to_plan()


def _plan_sample_clock(clock: SampleClock | None) -> SampleClockPlan | None:
    if clock is None:
        return None
    return SampleClockPlan(
        offset_ppm=clock.offset.value, drift_ppm_s=clock.drift.value if clock.drift else 0.0
    )


def _plan_interference(interferers: list[Interferer] | None) -> list[InterfererPlan] | None:
    return [
        InterfererPlan(
            link=interferer.link,
            direction=interferer.direction,
            level_db=-interferer.carrier_to_interference.value,
        )
        for interferer in interferers or []
    ] or None


def _plan_taps(multipath: list[Tap] | ProfileName | None) -> list[TapPlan] | None:
    if multipath is None:
        return None
    if isinstance(multipath, str):
        return [
            TapPlan(delay_ns=delay_ns, power_db=power_db)
            for delay_ns, power_db in PROFILES[multipath]
        ]
    return [TapPlan(delay_ns=tap.delay.value, power_db=tap.power.value) for tap in multipath]
