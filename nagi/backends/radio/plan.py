# SPDX-License-Identifier: Apache-2.0
"""Plan links that are radios: check their settings, and derive rates from their modems."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from nagi_contracts.errors import format_value, suggest
from nagi_contracts.impairments.losses.radio import RadioLossPlan
from nagi_contracts.plan import (
    DIRECTIONS,
    DirectionName,
    DirectionPlan,
    ModePlan,
    RadioModePlan,
    RadioPlan,
    RateAdaptationPlan,
)
from nagi_contracts.units import Duration

from nagi.backends.interface import Planner
from nagi.backends.radio.channels import plan_radio_channel
from nagi.backends.radio.devices import plan_uhd
from nagi.backends.radio.modems import plan_modes, plan_sample_rate
from nagi.backends.radio.spec import Radio, RadioChannel, SnrTableAdaptation
from nagi.plan.air_time import load_air_time
from nagi.plan.request import PlanRequest
from nagi.spec.links import DirectionSettings, Link

MIN_DELAY_NS = 10_000_000  # smallest delay of a link, during which waveforms are computed
# The smallest delay of feedback with interference, because gr-nagi computes interference 2 ms after
# the end of a transmission (margin_ns in `interference`).
MIN_FEEDBACK_NS = 4_000_000
# Time to start and to end nagi-sdr, in seconds:
START_S = 3.5  # importing GNU Radio, which takes 1 s on an idle machine
START_PER_LINK_S = 0.5  # starting the flowgraphs of a link
PROCESS_START_S = 3.0  # starting processes of `by: virtual`, which import GNU Radio as well
DEVICE_START_S = 8.0  # loading images of UHD devices, and measuring their delays
FINISH_S = 2.0  # stopping flowgraphs and processes

_FIXED_DELAY = (
    "a radio supports only a constant delay, during which the waveforms of a packet are computed"
)
# Settings that other links have but radios do not: key -> (message, cure).
UNSUPPORTED_SETTINGS = {
    "rate": ("the modem decides the rate of a radio", "write `radio: {rate: ...}` instead"),
    "burst": ("a radio has no token bucket", "remove it"),
    "rate_trace": (
        "the modem decides the rate of a radio, which is constant",
        "remove it, or `emulator: sdr`",
    ),
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


def _list_modes(radio: RadioPlan) -> list[tuple[str, str, int, str]]:
    """Return (modem, modulation, sample rate in Hz, code rate) of each mode, slowest first.

    A radio without rate adaptation has one mode.
    """
    modes: Sequence[RadioPlan | RadioModePlan] = radio.modes or [radio]
    return [
        (radio.modem, str(mode.modulation), radio.sample_rate_hz, str(mode.code_rate))
        for mode in modes
    ]


class RadioPlanner(Planner):
    """The planner of links that are radios.

    Raises:
        InputError: A radio has settings that radios do not support, or a link that is no radio has
            the key `radio`.
    """

    noun = "a radio"
    replaces_emulator = True  # nagi-sdr carries all links of the run
    queues_framing = True  # preambles and headers of packets take time on the air

    def __init__(self, request: PlanRequest) -> None:
        super().__init__(request)
        self.links: dict[str, RadioPlan] = {
            name: request.memo.get_or_make(
                partial(self._plan_radio, name, link), ("radio", name), link
            )
            for name, link in request.experiment.links.items()
            if self._is_radio(name, link)
        }
        for name in self.links:
            for direction in DIRECTIONS:
                self._require_supported_interference(name, direction)

    @property
    def start_s(self) -> float:
        """Seconds that nagi-sdr and UHD devices need before captures begin."""
        if not self.links:
            return 0.0
        start_s = START_S + START_PER_LINK_S * len(self.links)
        if any(plan.by == "uhd" for plan in self.links.values()):
            start_s += DEVICE_START_S
        if any(plan.by == "virtual" for plan in self.links.values()):
            start_s += PROCESS_START_S
        return start_s

    @property
    def finish_s(self) -> float:
        """Seconds that nagi-sdr needs after captures end."""
        return FINISH_S if self.links else 0.0

    def plan_channel(self, link: str, settings: DirectionSettings) -> DirectionPlan | None:
        """Return the plan of a direction of a radio, with the rate and overhead of the modem.

        With rate adaptation, rate and overhead are those of the fastest mode.

        Raises:
            InputError: Rate adaptation has no feedback, or its table gives a faster mode a smaller
                SNR.
        """
        modes = [
            ModePlan(
                rate_bps=load_air_time().compute_rate_bps(*arguments),
                overhead_bytes=load_air_time().compute_overhead_bytes(*arguments),
            )
            for arguments in _list_modes(self.links[link])
        ]
        assert settings.delay is not None
        return DirectionPlan(
            rate_bps=modes[-1].rate_bps,
            overhead_bytes=modes[-1].overhead_bytes,
            delay_ns=settings.delay.value,
            rate_adaptation=self._plan_adaptation(link, settings, modes),
            loss=RadioLossPlan(),
        )

    def _plan_adaptation(
        self, name: str, settings: DirectionSettings, modes: list[ModePlan]
    ) -> RateAdaptationPlan | None:
        """Return the plan of a direction's rate adaptation, or None without rate adaptation.

        Args:
            name: The name of the link.
            settings: Settings of the direction.
            modes: Rate and overhead of each mode, slowest first.
        """
        radio_settings = self._request.experiment.links[name].find_settings(Radio)
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
            radio_modes = self.links[name].modes or []
            mode_names = [f"{mode.modulation} {mode.code_rate}" for mode in radio_modes]
            min_snr_db = [adaptation.table[mode_name].value for mode_name in mode_names]
            for slower_db, faster_db, faster_name in zip(
                min_snr_db, min_snr_db[1:], mode_names[1:], strict=False
            ):
                if faster_db < slower_db:
                    raise self._request.error(
                        (*key_path, "table"),
                        f"{faster_name} needs less SNR than a slower mode",
                        f"remove the slower mode, or raise the SNR of {faster_name}",
                    )
        return RateAdaptationPlan(kind=adaptation.kind, modes=modes, min_snr_db=min_snr_db)

    def _require_supported_interference(self, name: str, direction: DirectionName) -> None:
        """Refuse interference that nagi-sdr cannot compute."""
        link = self._request.experiment.links[name]
        direction_channel = link.get_own_settings(direction).find_settings(RadioChannel)
        is_set_for_direction = (
            direction_channel is not None and direction_channel.interference is not None
        )
        key_path = (
            *("links", name),
            *((direction,) if is_set_for_direction else ()),
            *("radio", "interference"),
        )
        plan = self.links[name]
        channel = plan.channel(direction)
        interferers = (channel.interference if channel else None) or []
        for interferer in interferers:
            other_radio = self.links.get(interferer.link)
            subject = f"{interferer.link} {interferer.direction}"
            if other_radio is None:
                message = f"there is no radio {format_value(interferer.link)}"
                cure = suggest(interferer.link, self.links)
            elif (interferer.link, interferer.direction) == (name, direction):
                message = f"{subject} interferes with itself"
                cure = "name another link or direction"
            elif plan.by != "simulated" or other_radio.by != "simulated":
                message = "interference is computed only between radios with `by: simulated`"
                cure = "write `by: simulated` for both radios"
            elif other_radio.sample_rate_hz != plan.sample_rate_hz:
                message = (
                    f"the radios have different sample rates: {interferer.link} has "
                    f"{other_radio.sample_rate_hz} Hz"
                )
                cure = f"give both radios `sample_rate: {plan.sample_rate_hz} Hz`"
            else:
                continue
            raise self._request.error(key_path, message, cure)
        arq = self._request.get_settings(link, direction).arq
        is_early = arq is not None and arq.feedback.value < MIN_FEEDBACK_NS
        if interferers and arq is not None and is_early:
            raise self._request.error(
                self._request.locate_setting(name, direction, "arq"),
                f"feedback after {arq.feedback} is too early with interference",
                f"give `feedback: {Duration(MIN_FEEDBACK_NS)}` or more",
            )

    def _is_radio(self, name: str, link: Link) -> bool:
        """Return whether a link is a radio.

        Raises:
            InputError: The link has only one of `emulator: sdr` and `radio`, or the run has media.
        """
        if link.emulator == "sdr":
            if link.find_settings(Radio) is None:
                raise self._request.error(
                    ("links", name),
                    "`emulator: sdr` without a radio",
                    "add `radio: {modem: ofdm, modulation: qpsk, rate: 2 Mb/s, snr: 12 dB}`",
                )
            if self._request.experiment.shared_media:
                raise self._request.error(
                    ("links", name, "emulator"),
                    "a radio in a run with a shared medium, which nagi-sdr cannot carry",
                    "write `emulator: link`, or remove the media",
                )
            return True
        for key_path, radio_settings in (
            (("radio",), link.find_settings(Radio)),
            (("forward", "radio"), link.forward.find_settings(RadioChannel)),
            (("backward", "radio"), link.backward.find_settings(RadioChannel)),
        ):
            if radio_settings is not None:
                raise self._request.error(
                    ("links", name, *key_path),
                    "`radio` on a link that is not `emulator: sdr`",
                    "write `emulator: sdr` at the link, or remove the radio",
                )
        return False

    def _plan_radio(self, name: str, link: Link) -> RadioPlan:
        """Return the plan of a link's radio.

        Raises:
            InputError: The link has settings that radios do not support, or its delay is too short.
        """
        radio_settings = link.find_settings(Radio)
        assert radio_settings is not None
        for direction in DIRECTIONS:
            self._request.require_supported(name, direction, UNSUPPORTED_SETTINGS)
            settings = self._request.get_settings(link, direction)
            if settings.delay is None or settings.delay.value < MIN_DELAY_NS:
                key_path = self._request.locate_setting(name, direction, "delay")
                raise self._request.error(
                    key_path if settings.delay else ("links", name),
                    f"a delay of {settings.delay or '0 ms'} in direction {direction} is too short "
                    "for a radio",
                    f"give `delay: {Duration(MIN_DELAY_NS)}` or more",
                )
        uhd = plan_uhd(self._request, name, link)
        forward, backward = (
            None if uhd else plan_radio_channel(self._request, name, link, direction)
            for direction in DIRECTIONS
        )
        return RadioPlan(
            by=radio_settings.by,
            modem=radio_settings.modem,
            modulation=radio_settings.modulation,
            modes=plan_modes(self._request, name, radio_settings),
            sample_rate_hz=plan_sample_rate(self._request, name, radio_settings),
            code_rate=None
            if radio_settings.rate_adaptation
            else radio_settings.code_rate or "none",
            forward=forward,
            backward=backward,
            uhd=uhd,
        )


part = RadioPlanner
