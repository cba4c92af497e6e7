# SPDX-License-Identifier: Apache-2.0
"""Plan links that are radios: check their settings, and derive rates from their modems."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from nagi_contracts.errors import format_value, suggest
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

from nagi.backends.radio.multipath import PROFILES, ProfileName
from nagi.backends.radio.spec import (
    Interferer,
    Radio,
    RadioChannel,
    SampleClock,
    SnrTableAdaptation,
    Tap,
    UhdEnd,
    resolve_channel,
)
from nagi.plan import radio
from nagi.plan.request import PlanRequest
from nagi.plan.trace_files import load_trace
from nagi.spec.links import DirectionSettings, Link

_FIXED_DELAY = (
    "the delay of a radio does not change: it hides the time that waveforms take to compute"
)
# Settings of links that radios do not have: key -> (message, cure).
UNSUPPORTED_SETTINGS = {
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
    "jitter": (_FIXED_DELAY, "remove it"),
    "delay_trace": (_FIXED_DELAY, "give `delay`"),
    "keep_order": ("a radio always keeps packets in order", "remove it"),
    "shaped_by": ("a switch cannot shape a radio", "remove it, or `emulator: sdr`"),
}
_MODE = ("modulation", "code_rate")


def _list_modem_settings(modem: RadioPlan) -> list[tuple[str, str, int, str]]:
    """Return the arguments of air_time.py's functions for each mode of a radio."""
    modes: Sequence[RadioPlan | RadioModePlan] = modem.modes or [modem]
    return [
        (modem.modem, str(mode.modulation), modem.sample_rate_hz, str(mode.code_rate))
        for mode in modes
    ]


class RadioLinks:
    """The links that are radios.

    Raises:
        InputError: If a radio has settings of other links, or another link has a radio's.
    """

    def __init__(self, request: PlanRequest) -> None:
        self._request = request
        self.plans = {
            name: request.memo.get_or_make(
                partial(self._plan_radio, name, link), ("radio", name), link
            )
            for name, link in request.experiment.links.items()
            if self._is_radio(name, link)
        }
        for name in self.plans:
            for direction in DIRECTIONS:
                self._require_possible_interference(name, direction)

    def plan_channel(self, link: str, settings: DirectionSettings) -> DirectionPlan:
        """Return rate, overhead and delay of a direction of a radio, as its modem has them."""
        modem = self.plans[link]
        modes = [
            ModePlan(
                rate_bps=radio.load_air_time().compute_rate_bps(*arguments),
                overhead_bytes=radio.load_air_time().compute_overhead_bytes(*arguments),
            )
            for arguments in _list_modem_settings(modem)
        ]
        assert settings.delay is not None
        return DirectionPlan(
            rate_bps=modes[-1].rate_bps,
            overhead_bytes=modes[-1].overhead_bytes,
            delay_ns=settings.delay.value,
            rate_adaptation=self._plan_adaptation(link, settings, modes),
        )

    def _plan_adaptation(
        self, name: str, settings: DirectionSettings, modes: list[ModePlan]
    ) -> RateAdaptationPlan | None:
        """Return the plan of a direction's rate adaptation, or None without it."""
        radio_settings = self._request.experiment.links[name].part(Radio)
        assert radio_settings is not None
        adaptation = radio_settings.rate_adaptation
        if adaptation is None:
            return None
        key_path = ("links", name, "radio", "rate_adaptation")
        if settings.arq is None:
            raise self._request.error(
                key_path,
                "rate adaptation without feedback",
                "add `arq: {retries: 7, feedback: 1 ms}` to the link",
            )
        min_snr_db = None
        if isinstance(adaptation, SnrTableAdaptation):
            radio_modes = self.plans[name].modes or []
            names = [f"{mode.modulation} {mode.code_rate}" for mode in radio_modes]
            min_snr_db = [adaptation.table[mode].value for mode in names]
            for slower, faster, mode in zip(min_snr_db, min_snr_db[1:], names[1:], strict=False):
                if faster < slower:
                    raise self._request.error(
                        (*key_path, "table"),
                        f"{mode} needs less SNR than a slower mode",
                        "remove the slower one, or raise its SNR",
                    )
        return RateAdaptationPlan(kind=adaptation.kind, modes=modes, min_snr_db=min_snr_db)

    def _require_possible_interference(self, name: str, direction: DirectionName) -> None:
        """Refuse interference that nagi-sdr cannot compute."""
        link = self._request.experiment.links[name]
        own_radio = link.get_own_settings(direction).part(RadioChannel)
        is_own = own_radio is not None and own_radio.interference is not None
        key_path = ("links", name, *((direction,) if is_own else ()), "radio", "interference")
        plan = self.plans[name]
        channel = plan.channel(direction)
        interferers = (channel.interference if channel else None) or []
        for interferer in interferers:
            other_radio = self.plans.get(interferer.link)
            subject = f"{interferer.link} {interferer.direction}"
            if other_radio is None:
                message = f"no radio {format_value(interferer.link)}"
                cure = suggest(interferer.link, self.plans)
            elif (interferer.link, interferer.direction) == (name, direction):
                message = f"{subject} interferes with itself"
                cure = "name another link or direction"
            elif plan.by != "simulated" or other_radio.by != "simulated":
                message = "radios in separate processes do not interfere with others"
                cure = "write `by: simulated` at both"
            elif other_radio.sample_rate_hz != plan.sample_rate_hz:
                message = (
                    f"{interferer.link} has another sample rate: {other_radio.sample_rate_hz} Hz"
                )
                cure = f"give both the same, such as `sample_rate: {plan.sample_rate_hz} Hz`"
            else:
                continue
            raise self._request.error(key_path, message, cure)
        arq = self._request.get_settings(link, direction).arq
        is_early = arq is not None and arq.feedback.value < radio.MIN_FEEDBACK_NS
        if interferers and arq is not None and is_early:
            raise self._request.error(
                self._request.locate_setting(name, direction, "arq"),
                f"feedback after {arq.feedback} is too early with interference",
                f"give `feedback: {Duration(radio.MIN_FEEDBACK_NS)}` or more",
            )

    def _is_radio(self, name: str, link: Link) -> bool:
        """Return whether a link is a radio; refuse settings of the other kind of link."""
        if link.emulator == "sdr":
            if link.part(Radio) is None:
                raise self._request.error(
                    ("links", name),
                    "`emulator: sdr` without a radio",
                    "add `radio: {modem: ofdm, modulation: qpsk, rate: 2 Mb/s, snr: 12 dB}`",
                )
            if self._request.experiment.shared_media:
                raise self._request.error(
                    ("links", name, "emulator"),
                    "a radio in a run with a medium: nagi-sdr carries links only",
                    "write `emulator: link`, or remove the media",
                )
            return True
        for key_path, radio_settings in (
            (("radio",), link.part(Radio)),
            (("forward", "radio"), link.forward.part(RadioChannel)),
            (("backward", "radio"), link.backward.part(RadioChannel)),
        ):
            if radio_settings is not None:
                raise self._request.error(
                    ("links", name, *key_path),
                    "`radio` on a link that is not `emulator: sdr`",
                    "write `emulator: sdr` at the link, or remove the radio",
                )
        return False

    def _plan_radio(self, name: str, link: Link) -> RadioPlan:
        """Return the radio of a link; refuse settings that a radio decides by itself."""
        radio_settings = link.part(Radio)
        assert radio_settings is not None
        for direction in DIRECTIONS:
            settings = self._request.get_settings(link, direction)
            for key, (message, cure) in UNSUPPORTED_SETTINGS.items():
                if getattr(settings, key) not in (None, "emulator"):
                    raise self._request.error(
                        self._request.locate_setting(name, direction, key), message, cure
                    )
            if settings.delay is None or settings.delay.value < radio.MIN_DELAY_NS:
                key_path = self._request.locate_setting(name, direction, "delay")
                raise self._request.error(
                    key_path if settings.delay else ("links", name),
                    f"a delay of {settings.delay or '0 ms'} {direction} is too short for a radio",
                    f"give `delay: {Duration(radio.MIN_DELAY_NS)}` or more",
                )
        uhd = self._plan_uhd(name, link)
        forward, backward = (
            None if uhd else self._plan_radio_channel(name, link, direction)
            for direction in DIRECTIONS
        )
        return RadioPlan(
            by=radio_settings.by,
            modem=radio_settings.modem,
            modulation=radio_settings.modulation,
            modes=self._plan_modes(name, radio_settings),
            sample_rate_hz=self._plan_sample_rate(name, radio_settings),
            code_rate=None
            if radio_settings.rate_adaptation
            else radio_settings.code_rate or "none",
            forward=forward,
            backward=backward,
            uhd=uhd,
        )

    def _plan_uhd(self, name: str, link: Link) -> UhdPlan | None:
        """Return the UHD devices in the order of the link's ends, or None for a simulated radio."""
        radio_settings = link.part(Radio)
        uhd = radio_settings.uhd if radio_settings is not None else None
        if uhd is None:
            return None
        for direction in DIRECTIONS:
            if link.get_own_settings(direction).part(RadioChannel) is not None:
                raise self._request.error(
                    ("links", name, direction, "radio"),
                    "a simulated channel of radio hardware",
                    "remove it",
                )
        for end in uhd.ends:
            if end not in link.between:
                raise self._request.error(
                    ("links", name, "radio", "uhd", "ends", end),
                    f"{end} is no end of the link",
                    f"its ends are {' and '.join(link.between)}",
                )
        first, second = (plan_uhd_end(uhd.ends[node]) for node in link.between)
        is_shared = (first.device, first.channel) == (second.device, second.channel)
        if is_shared and uhd.duplex == "full":
            raise self._request.error(
                ("links", name, "radio", "uhd", "duplex"),
                "both ends use one channel of one device, which sends one burst at a time",
                "write `duplex: half`, or give one end another `channel`",
            )
        frequency = uhd.frequency.value
        backward = uhd.backward_frequency.value if uhd.backward_frequency else frequency
        return UhdPlan(
            a=first,
            b=second,
            frequency_hz=CarriersPlan(forward=frequency, backward=backward),
            lo_offset_hz=uhd.lo_offset.value if uhd.lo_offset else 0.0,
            duplex=uhd.duplex,
            backoff_db=uhd.backoff.value if uhd.backoff else None,
        )

    def _plan_modes(self, name: str, radio_settings: Radio) -> list[RadioModePlan] | None:
        """Return the modes of rate adaptation in the order of their rates, or None without it."""
        if radio_settings.rate_adaptation is None:
            return None
        modes = [mode.split() for mode in radio_settings.rate_adaptation.modes]
        if len({tuple(mode) for mode in modes}) < len(modes):
            key_path = ("links", name, "radio", "rate_adaptation", "modes")
            raise self._request.error(key_path, "a mode is listed twice", "remove one")
        plans = [
            RadioModePlan.model_validate(dict(zip(_MODE, mode, strict=True))) for mode in modes
        ]
        return sorted(
            plans,
            key=lambda mode: radio.load_air_time().compute_rate_bps(
                radio_settings.modem, mode.modulation, 10**6, mode.code_rate
            ),
        )

    def _plan_sample_rate(self, name: str, radio_settings: Radio) -> int:
        """Return the sample rate in Hz: as given, or the smallest for the slowest mode's rate."""
        key = "rate" if radio_settings.sample_rate is None else "sample_rate"
        modes = self._plan_modes(name, radio_settings)
        if modes is None:
            assert radio_settings.modulation is not None
            slowest = (radio_settings.modulation, radio_settings.code_rate or "none")
        else:
            slowest = (modes[0].modulation, modes[0].code_rate)
        try:
            if radio_settings.sample_rate is None:
                assert radio_settings.rate is not None
                sample_rate_hz = radio.find_sample_rate(
                    radio_settings.modem, *slowest, radio_settings.rate.value
                )
            else:
                sample_rate_hz = radio_settings.sample_rate.value
            rate_bps = radio.load_air_time().compute_rate_bps(
                radio_settings.modem, slowest[0], sample_rate_hz, slowest[1]
            )
        except ValueError as error:
            raise self._request.error(
                ("links", name, "radio", key),
                f"the modem cannot carry it: {error}",
                "give another modem, modulation or rate",
            ) from None
        if rate_bps < 1:
            raise self._request.error(
                ("links", name, "radio", key),
                "at this sample rate the modem carries less than 1 b/s",
                "give more, such as `sample_rate: 2 MHz`",
            )
        return sample_rate_hz

    def _plan_radio_channel(
        self, name: str, link: Link, direction: DirectionName
    ) -> RadioChannelPlan:
        """Return the channel that waveforms cross in one direction."""
        channel = resolve_channel(link, direction)
        trace = self._plan_snr_trace(name, direction, channel)
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
            taps=_plan_taps(channel.multipath),
            frequency_offset_hz=offset.value if offset else 0.0,
            shadowing=shadowing.to_plan() if shadowing else None,
            phase_noise_hz=phase_noise.value if phase_noise else 0.0,
            sample_clock=_plan_sample_clock(channel.sample_clock),
            interference=_plan_interference(channel.interference),
        )

    def _plan_snr_trace(
        self, name: str, direction: DirectionName, channel: RadioChannel
    ) -> SnrTracePlan | None:
        trace = channel.snr_trace
        if isinstance(trace, SnrTraceFile):
            link = self._request.experiment.links[name]
            own_radio = link.get_own_settings(direction).part(RadioChannel)
            is_own = own_radio is not None and own_radio.snr_trace is not None
            key_path = ("links", name, *((direction,) if is_own else ()), "radio", "snr_trace")
            snr_plan = load_trace(self._request, key_path, trace.file, trace.format, "snr")
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


def plan_uhd_end(end: UhdEnd) -> UhdEndPlan:
    """Return the plan of one end of a link that is radio hardware."""
    return UhdEndPlan(
        device=end.device,
        channel=end.channel,
        tx_gain_db=end.tx_gain.value,
        rx_gain_db=end.rx_gain.value,
        subdev=end.subdev,
        tx_antenna=end.tx_antenna,
        rx_antenna=end.rx_antenna,
        clock_source=end.clock_source,
        time_source=end.time_source,
    )


def _plan_taps(multipath: list[Tap] | ProfileName | None) -> list[TapPlan] | None:
    if multipath is None:
        return None
    if isinstance(multipath, str):
        return [
            TapPlan(delay_ns=delay_ns, power_db=power_db)
            for delay_ns, power_db in PROFILES[multipath]
        ]
    return [TapPlan(delay_ns=tap.delay.value, power_db=tap.power.value) for tap in multipath]
