# SPDX-License-Identifier: Apache-2.0
"""Links that are radios: what is asked of them, and what follows from their modems."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from nagi_contracts.errors import choices, shown
from nagi_contracts.impairments.fading import NoFading, RicianFading
from nagi_contracts.impairments.snr import SnrTraceFile, SnrTracePlan
from nagi_contracts.plan import (
    DIRECTIONS,
    CarriersPlan,
    DirectionName,
    DirectionPlan,
    InterfererPlan,
    ModePlan,
    RadioChannelPlan,
    RadioModePlan,
    RadioPlan,
    RateAdaptationPlan,
    SampleClockPlan,
    TapPlan,
    UhdEndPlan,
    UhdPlan,
)
from nagi_contracts.units import Duration

from nagi.plan import radio
from nagi.plan.request import PlanRequest
from nagi.plan.trace_files import trace_file
from nagi.spec.links import (
    DirectionSettings,
    Interferer,
    Link,
    Radio,
    RadioChannel,
    SampleClock,
    SnrTableAdaptation,
    Tap,
    UhdEnd,
)
from nagi.spec.multipath import PROFILES, ProfileName

# What the two kinds of links do not share: key -> why a radio refuses it, and the cure.
_ITS_OWN_TIME = (
    "the delay of a radio does not change: it hides the time that waveforms take to compute"
)
_NOT_OF_RADIOS = {
    "rate": ("the modem decides the rate of a radio", "write `radio: {rate: ...}` instead"),
    "burst": ("the modem sends one packet after the other", "remove it"),
    "rate_trace": ("the rate of a radio does not change", "remove it, or `emulator: sdr`"),
    "overhead": ("the modem decides the framing of a radio", "remove it"),
    "loss": (
        "the channel decides the losses of a radio",
        "remove it, and write `radio: {snr: ...}`",
    ),
    "corruption": ("the channel decides the errors of a radio", "remove it"),
    "duplication": ("a radio duplicates no packets", "remove it"),
    "reordering": ("a radio always keeps packets in order", "remove it"),
    "jitter": (_ITS_OWN_TIME, "remove it"),
    "delay_trace": (_ITS_OWN_TIME, "give `delay`"),
    "keep_order": ("a radio always keeps packets in order", "remove it"),
    "shaped_by": ("a switch cannot shape a radio", "remove it, or `emulator: sdr`"),
}


_MODE = ("modulation", "code_rate")


def _shapes(modem: RadioPlan) -> list[tuple[str, str, int, str]]:
    """What air_time.py is asked for each mode of a radio."""
    modes: Sequence[RadioPlan | RadioModePlan] = modem.modes or [modem]
    return [
        (modem.modem, str(mode.modulation), modem.sample_rate_hz, str(mode.code_rate))
        for mode in modes
    ]


class RadioLinks:
    """The radios among the links. Raises InputError where a link has settings of the other kind."""

    def __init__(self, request: PlanRequest) -> None:
        self._request = request
        self.plans = {
            name: request.memo.of(partial(self._radio, name, link), ("radio", name), link)
            for name, link in request.experiment.links.items()
            if self._is_radio(name, link)
        }
        for name in self.plans:
            for direction in DIRECTIONS:
                self._check_interference(name, direction)

    def channel(self, link: str, settings: DirectionSettings) -> DirectionPlan:
        """Rate and overhead of a direction of a radio: those of its modem."""
        modem = self.plans[link]
        modes = [
            ModePlan(
                rate_bps=radio.air_time().compute_rate_bps(*asked),
                overhead_bytes=radio.air_time().compute_overhead_bytes(*asked),
            )
            for asked in _shapes(modem)
        ]
        assert settings.delay is not None
        return DirectionPlan(
            rate_bps=modes[-1].rate_bps,
            overhead_bytes=modes[-1].overhead_bytes,
            delay_ns=settings.delay.value,
            rate_adaptation=self._adaptation(link, settings, modes),
        )

    def _adaptation(
        self, name: str, settings: DirectionSettings, modes: list[ModePlan]
    ) -> RateAdaptationPlan | None:
        asked = self._request.experiment.links[name].radio
        assert asked is not None
        adaptation = asked.rate_adaptation
        if adaptation is None:
            return None
        place = ("links", name, "radio", "rate_adaptation")
        if settings.arq is None:
            raise self._request.error(
                place,
                "rate adaptation without feedback",
                "add `arq: {retries: 7, feedback: 1 ms}` to the link",
            )
        min_snr_db = None
        if isinstance(adaptation, SnrTableAdaptation):
            planned = self.plans[name].modes or []
            named = [f"{mode.modulation} {mode.code_rate}" for mode in planned]
            min_snr_db = [adaptation.table[mode].value for mode in named]
            for before, after, mode in zip(min_snr_db, min_snr_db[1:], named[1:], strict=False):
                if after < before:
                    raise self._request.error(
                        (*place, "table"),
                        f"{mode} needs less SNR than a slower mode",
                        "remove the slower one, or raise its SNR",
                    )
        return RateAdaptationPlan(kind=adaptation.kind, modes=modes, min_snr_db=min_snr_db)

    def _check_interference(self, name: str, direction: DirectionName) -> None:
        """Refuses interference that nagi-sdr cannot compute."""
        link = self._request.experiment.links[name]
        own = getattr(link, direction).radio
        is_own = own is not None and own.interference is not None
        place = ("links", name, *((direction,) if is_own else ()), "radio", "interference")
        plan = self.plans[name]
        channel = plan.channel(direction)
        interferers = (channel.interference if channel else None) or []
        for each in interferers:
            other = self.plans.get(each.link)
            who = f"{each.link} {each.direction}"
            if other is None:
                what, cure = f"no radio {shown(each.link)}", choices(each.link, self.plans)
            elif (each.link, each.direction) == (name, direction):
                what, cure = f"{who} disturbs itself", "name another link or direction"
            elif plan.by != "simulated" or other.by != "simulated":
                what = "radios of processes of their own do not disturb others"
                cure = "write `by: simulated` at both"
            elif other.sample_rate_hz != plan.sample_rate_hz:
                what = f"{each.link} has another sample rate: {other.sample_rate_hz} Hz"
                cure = f"give both the same, such as `sample_rate: {plan.sample_rate_hz} Hz`"
            else:
                continue
            raise self._request.error(place, what, cure)
        arq = self._request.settings(link, direction).arq
        is_early = arq is not None and arq.feedback.value < radio.MIN_FEEDBACK_NS
        if interferers and arq is not None and is_early:
            raise self._request.error(
                self._request.place(name, direction, "arq"),
                f"feedback after {arq.feedback} is too early beside interference",
                f"give `feedback: {Duration(radio.MIN_FEEDBACK_NS)}` or more",
            )

    def _is_radio(self, name: str, link: Link) -> bool:
        """Whether a link is a radio. Refuses settings that belong to the other kind of link."""
        if link.emulator == "sdr":
            if link.radio is None:
                raise self._request.error(
                    ("links", name),
                    "`emulator: sdr` without a radio",
                    "add `radio: {modem: ofdm, modulation: qpsk, rate: 2 Mb/s, snr: 12 dB}`",
                )
            if self._request.experiment.media:
                raise self._request.error(
                    ("links", name, "emulator"),
                    "a radio beside a medium: nagi-sdr carries links only",
                    "write `emulator: link`, or remove the media",
                )
            return True
        for place in (("radio",), ("forward", "radio"), ("backward", "radio")):
            holder = link if len(place) == 1 else getattr(link, place[0])
            if holder.radio is not None:
                raise self._request.error(
                    ("links", name, *place),
                    "`radio` on a link that is not `emulator: sdr`",
                    "write `emulator: sdr` at the link, or remove the radio",
                )
        return False

    def _radio(self, name: str, link: Link) -> RadioPlan:
        """The radio that a link is. Refuses what a radio decides by itself."""
        asked = link.radio
        assert asked is not None
        for direction in DIRECTIONS:
            settings = self._request.settings(link, direction)
            for key, (what, cure) in _NOT_OF_RADIOS.items():
                if getattr(settings, key) not in (None, "emulator"):
                    raise self._request.error(self._request.place(name, direction, key), what, cure)
            if settings.delay is None or settings.delay.value < radio.MIN_DELAY_NS:
                known = self._request.place(name, direction, "delay")
                raise self._request.error(
                    known if settings.delay else ("links", name),
                    f"a delay of {settings.delay or '0 ms'} {direction} is too short for a radio",
                    f"give `delay: {Duration(radio.MIN_DELAY_NS)}` or more",
                )
        uhd = self._uhd(name, link)
        forward, backward = (
            None if uhd else self._radio_channel(name, link, direction) for direction in DIRECTIONS
        )
        return RadioPlan(
            by=asked.by,
            modem=asked.modem,
            modulation=asked.modulation,
            modes=self._modes(name, asked),
            sample_rate_hz=self._sample_rate(name, asked),
            code_rate=None if asked.rate_adaptation else asked.code_rate or "none",
            forward=forward,
            backward=backward,
            uhd=uhd,
        )

    def _uhd(self, name: str, link: Link) -> UhdPlan | None:
        """The devices, in the order of the link's ends; nothing of simulated radios."""
        asked = link.radio.uhd if link.radio is not None else None
        if asked is None:
            return None
        for direction in DIRECTIONS:
            if getattr(link, direction).radio is not None:
                raise self._request.error(
                    ("links", name, direction, "radio"),
                    "a simulated channel beside radio hardware",
                    "remove it",
                )
        for end in asked.ends:
            if end not in link.between:
                raise self._request.error(
                    ("links", name, "radio", "uhd", "ends", end),
                    f"{end} is no end of the link",
                    f"its ends are {' and '.join(link.between)}",
                )
        first, second = (_end(asked.ends[node]) for node in link.between)
        shares = (first.device, first.channel) == (second.device, second.channel)
        if shares and asked.duplex == "full":
            raise self._request.error(
                ("links", name, "radio", "uhd", "duplex"),
                "both ends have one channel of one device, which sends one burst at a time",
                "write `duplex: half`, or give one end another `channel`",
            )
        frequency = asked.frequency.value
        backward = asked.backward_frequency.value if asked.backward_frequency else frequency
        return UhdPlan(
            a=first,
            b=second,
            frequency_hz=CarriersPlan(forward=frequency, backward=backward),
            lo_offset_hz=asked.lo_offset.value if asked.lo_offset else 0.0,
            duplex=asked.duplex,
            backoff_db=asked.backoff.value if asked.backoff else None,
        )

    def _modes(self, name: str, asked: Radio) -> list[RadioModePlan] | None:
        """What rate adaptation chooses from, in the order of rates."""
        if asked.rate_adaptation is None:
            return None
        modes = [mode.split() for mode in asked.rate_adaptation.modes]
        if len({tuple(mode) for mode in modes}) < len(modes):
            place = ("links", name, "radio", "rate_adaptation", "modes")
            raise self._request.error(place, "a mode is listed twice", "remove one")
        plans = [
            RadioModePlan.model_validate(dict(zip(_MODE, mode, strict=True))) for mode in modes
        ]
        return sorted(
            plans,
            key=lambda mode: radio.air_time().compute_rate_bps(
                asked.modem, mode.modulation, 10**6, mode.code_rate
            ),
        )

    def _sample_rate(self, name: str, asked: Radio) -> int:
        key = "rate" if asked.sample_rate is None else "sample_rate"
        modes = self._modes(name, asked)
        if modes is None:
            assert asked.modulation is not None
            slowest = (asked.modulation, asked.code_rate or "none")
        else:
            slowest = (modes[0].modulation, modes[0].code_rate)
        try:
            if asked.sample_rate is None:
                assert asked.rate is not None
                found = radio.sample_rate_for(asked.modem, *slowest, asked.rate.value)
            else:
                found = asked.sample_rate.value
            carried = radio.air_time().compute_rate_bps(asked.modem, slowest[0], found, slowest[1])
        except ValueError as error:
            raise self._request.error(
                ("links", name, "radio", key),
                f"the modem cannot carry it: {error}",
                "give another modem, modulation or rate",
            ) from None
        if carried < 1:
            raise self._request.error(
                ("links", name, "radio", key),
                "at this sample rate the modem carries less than 1 b/s",
                "give more, such as `sample_rate: 2 MHz`",
            )
        return found

    def _radio_channel(self, name: str, link: Link, direction: DirectionName) -> RadioChannelPlan:
        channel = link.channel(direction)
        trace = self._snr_trace(name, direction, channel)
        if channel.snr is None and trace is None:
            raise self._request.error(
                ("links", name, "radio"),
                f"no SNR {direction}",
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
            taps=_taps(channel.multipath),
            frequency_offset_hz=offset.value if offset else 0.0,
            shadowing=shadowing.plan() if shadowing else None,
            phase_noise_hz=phase_noise.value if phase_noise else 0.0,
            sample_clock=_sample_clock(channel.sample_clock),
            interference=_interference(channel.interference),
        )

    def _snr_trace(
        self, name: str, direction: DirectionName, channel: RadioChannel
    ) -> SnrTracePlan | None:
        trace = channel.snr_trace
        if isinstance(trace, SnrTraceFile):
            own = getattr(self._request.experiment.links[name], direction).radio
            is_own = own is not None and own.snr_trace is not None
            place = ("links", name, *((direction,) if is_own else ()), "radio", "snr_trace")
            found = trace_file(self._request, place, trace.file, trace.format, "snr")
            assert isinstance(found, SnrTracePlan)
            return found
        return None if trace is None else trace.plan()


def _sample_clock(clock: SampleClock | None) -> SampleClockPlan | None:
    if clock is None:
        return None
    return SampleClockPlan(
        offset_ppm=clock.offset.value, drift_ppm_s=clock.drift.value if clock.drift else 0.0
    )


def _interference(interferers: list[Interferer] | None) -> list[InterfererPlan] | None:
    return [
        InterfererPlan(
            link=each.link,
            direction=each.direction,
            level_db=-each.carrier_to_interference.value,
        )
        for each in interferers or []
    ] or None


def _end(asked: UhdEnd) -> UhdEndPlan:
    return UhdEndPlan(
        device=asked.device,
        channel=asked.channel,
        tx_gain_db=asked.tx_gain.value,
        rx_gain_db=asked.rx_gain.value,
        subdev=asked.subdev,
        tx_antenna=asked.tx_antenna,
        rx_antenna=asked.rx_antenna,
        clock_source=asked.clock_source,
        time_source=asked.time_source,
    )


def _taps(multipath: list[Tap] | ProfileName | None) -> list[TapPlan] | None:
    if multipath is None:
        return None
    if isinstance(multipath, str):
        return [TapPlan(delay_ns=at, power_db=power) for at, power in PROFILES[multipath]]
    return [TapPlan(delay_ns=tap.delay.value, power_db=tap.power.value) for tap in multipath]
