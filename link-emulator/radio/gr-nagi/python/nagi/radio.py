# SPDX-License-Identifier: Apache-2.0
"""A radio between two message ports: framing, modem and channel of one direction of a link.

`SimulatedRadio` computes all of it in this process; `VirtualRadio` (in `stations`) has a process
for each station and one for the channel between. For the same configuration and seed both give the
same outcomes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gnuradio import gr

from . import nagi_python
from .air_time import BITS_PER_SYMBOL, CODE_RATES, LONGEST_PACKET, MAX_SAMPLE_RATE_HZ, MODEMS
from .checks import DIRECTIONS, ConfigError, choice, number, required, section
from .modem import MAX_MODES, modem_rx, modem_tx
from .usrp_config import UhdConfig, parse_uhd

_FROM_0 = ("doppler_hz", "phase_noise_hz")
FADINGS = ("none", "rayleigh", "rician")
BY = ("simulated", "virtual", "uhd")


@dataclass(frozen=True)
class Interferer:
    """A direction of a radio whose transmissions disturb another's."""

    link: str
    direction: str
    level_db: float
    """Power of its bursts at the disturbed receiver, over that of those it is to receive."""


@dataclass(frozen=True)
class Channel:
    """What a burst meets on its way. `snr_db`: its mean power over the power of the noise."""

    snr_db: float
    fading: str = "none"
    doppler_hz: float = 0.0
    k_factor_db: float = 0.0
    taps: tuple[tuple[float, float], ...] = ()
    """(delay in ns, power in dB)"""
    frequency_offset_hz: float = 0.0
    snr_steps: tuple[tuple[int, float], ...] = ()
    """In place of snr_db: (instant in ns, dB from then on)"""
    snr_period_ns: int = 0
    shadowing_db: float = 0.0
    shadowing_decorrelation_s: float = 1.0
    phase_noise_hz: float = 0.0
    sample_clock_offset_ppm: float = 0.0
    sample_clock_drift_ppm_s: float = 0.0
    interference: tuple[Interferer, ...] = ()


@dataclass(frozen=True)
class RadioConfig:
    by: str
    modem: str
    modulations: tuple[str, ...]
    """By mode, as code_rates: one each without rate adaptation."""
    sample_rate_hz: int
    code_rates: tuple[str, ...]
    channels: Mapping[str, Channel] = field(default_factory=dict)
    """By direction: forward, backward; none of devices."""
    uhd: UhdConfig | None = None


def _taps(value: Any, where: str) -> tuple[tuple[float, float], ...]:
    if not isinstance(value, list) or not value:
        raise ConfigError(f"{where} must be a list of paths with delay_ns and power_db")
    taps = []
    for index, item in enumerate(value):
        place = f"{where}[{index}]"
        tap = section(item, place, ("delay_ns", "power_db"))
        taps.append(
            (
                number(required(tap, "delay_ns", place), f"{place}.delay_ns", 0),
                number(required(tap, "power_db", place), f"{place}.power_db"),
            )
        )
    return tuple(taps)


def _channel(value: Any, where: str) -> Channel:
    known = (
        "snr_db",
        "snr_trace",
        "fading",
        "doppler_hz",
        "k_factor_db",
        "taps",
        "frequency_offset_hz",
        "shadowing",
        "phase_noise_hz",
        "sample_clock",
        "interference",
    )
    config = section(value, where, known)
    numbers = {
        key: number(config[key], f"{where}.{key}", 0 if key in _FROM_0 else -math.inf)
        for key in ("doppler_hz", "k_factor_db", "frequency_offset_hz", "phase_noise_hz")
        if key in config
    }
    return Channel(
        snr_db=number(required(config, "snr_db", where), f"{where}.snr_db"),
        fading=choice(config.get("fading", "none"), f"{where}.fading", FADINGS),
        taps=_taps(config["taps"], f"{where}.taps") if "taps" in config else (),
        **numbers,
        **(_snr_trace(config["snr_trace"], f"{where}.snr_trace") if "snr_trace" in config else {}),
        **(_shadowing(config["shadowing"], f"{where}.shadowing") if "shadowing" in config else {}),
        **_sample_clock(config.get("sample_clock"), f"{where}.sample_clock"),
        interference=_interference(config.get("interference", []), f"{where}.interference"),
    )


def _mode(config: dict[str, Any], where: str) -> tuple[str, str]:
    """Modulation and code rate."""
    modulation = choice(
        required(config, "modulation", where), f"{where}.modulation", tuple(BITS_PER_SYMBOL)
    )
    known = tuple(CODE_RATES)
    return modulation, choice(config.get("code_rate", "none"), f"{where}.code_rate", known)


def _modes(config: dict[str, Any], where: str) -> list[tuple[str, str]]:
    if "modes" not in config:
        return [_mode(config, where)]
    for key in ("modulation", "code_rate"):
        if key in config:
            raise ConfigError(f"{where}.{key}: given beside modes; give one of the two")
    modes = config["modes"]
    if not isinstance(modes, list) or not 1 <= len(modes) <= MAX_MODES:
        raise ConfigError(f"{where}.modes must be a list of 1 to {MAX_MODES} modes")
    places = [f"{where}.modes[{index}]" for index in range(len(modes))]
    return [
        _mode(section(mode, place, ("modulation", "code_rate")), place)
        for mode, place in zip(modes, places, strict=True)
    ]


def _snr_trace(value: Any, where: str) -> dict[str, Any]:
    trace = section(value, where, ("steps", "period_ns"))
    period = int(number(required(trace, "period_ns", where), f"{where}.period_ns", 1))
    steps = required(trace, "steps", where)
    if not isinstance(steps, list) or not steps:
        raise ConfigError(f"{where}.steps must be a list of [at_ns, snr_db]")
    found: list[tuple[int, float]] = []
    for index, step in enumerate(steps):
        place = f"{where}.steps[{index}]"
        if not isinstance(step, list) or len(step) != 2:
            raise ConfigError(f"{place} is {step!r}; it must be [at_ns, snr_db]")
        at = int(number(step[0], f"{place}[0]", 0))
        if (found and at <= found[-1][0]) or (not found and at != 0) or at >= period:
            raise ConfigError(
                f"{place}[0] is {at}; instants begin at 0, increase, and are below period_ns"
            )
        found.append((at, number(step[1], f"{place}[1]")))
    return {"snr_steps": tuple(found), "snr_period_ns": period}


def _shadowing(value: Any, where: str) -> dict[str, Any]:
    shadowing = section(value, where, ("deviation_db", "decorrelation_ns"))
    deviation = required(shadowing, "deviation_db", where)
    decorrelation = required(shadowing, "decorrelation_ns", where)
    return {
        "shadowing_db": number(deviation, f"{where}.deviation_db", 0),
        "shadowing_decorrelation_s": number(decorrelation, f"{where}.decorrelation_ns", 1) * 1e-9,
    }


def _sample_clock(value: Any, where: str) -> dict[str, float]:
    if value is None:
        return {}
    clock = section(value, where, ("offset_ppm", "drift_ppm_s"))
    return {
        "sample_clock_offset_ppm": number(
            required(clock, "offset_ppm", where), f"{where}.offset_ppm", -200, 200
        ),
        "sample_clock_drift_ppm_s": number(
            clock.get("drift_ppm_s", 0.0), f"{where}.drift_ppm_s", -1, 1
        ),
    }


MAX_INTERFERERS = 8


def _interference(value: Any, where: str) -> tuple[Interferer, ...]:
    if not isinstance(value, list) or len(value) > MAX_INTERFERERS:
        raise ConfigError(f"{where} must be a list of at most {MAX_INTERFERERS} interferers")
    known = ("link", "direction", "level_db")
    found = []
    for index, item in enumerate(value):
        place = f"{where}[{index}]"
        one = section(item, place, known)
        link, direction, level = (required(one, key, place) for key in known)
        if not isinstance(link, str):
            raise ConfigError(f"{place}.link is {link!r}; it must be the name of a link")
        found.append(
            Interferer(
                link,
                choice(direction, f"{place}.direction", DIRECTIONS),
                number(level, f"{place}.level_db", -200, 200),
            )
        )
    return tuple(found)


def parse_radio(value: Any, where: str = "radio") -> RadioConfig:
    """A link's "radio" from its configuration (JSON). Raises ConfigError, naming the key."""
    is_uhd = isinstance(value, dict) and value.get("by") == "uhd"
    of_channels = ("uhd",) if is_uhd else DIRECTIONS
    known = ("by", "modem", "modulation", "sample_rate_hz", "code_rate", "modes", *of_channels)
    if isinstance(value, dict) and "fec" in value:
        raise ConfigError(
            f"{where}.fec is called code_rate now; write none, 1/2 (which was convolutional), 2/3"
            " or 3/4"
        )
    config = section(value, where, known)
    modes = _modes(config, where)
    rate = number(required(config, "sample_rate_hz", where), f"{where}.sample_rate_hz", 1000)
    if rate != int(rate) or rate > MAX_SAMPLE_RATE_HZ:
        raise ConfigError(
            f"{where}.sample_rate_hz is {rate}; it must be a whole number of at most"
            f" {MAX_SAMPLE_RATE_HZ}"
        )
    modem = choice(required(config, "modem", where), f"{where}.modem", MODEMS)
    return RadioConfig(
        by=choice(required(config, "by", where), f"{where}.by", BY),
        modem=modem,
        modulations=tuple(modulation for modulation, _ in modes),
        sample_rate_hz=int(rate),
        code_rates=tuple(code_rate for _, code_rate in modes),
        channels={}
        if is_uhd
        else {
            direction: _channel(required(config, direction, where), f"{where}.{direction}")
            for direction in DIRECTIONS
        },
        uhd=parse_uhd(required(config, "uhd", where), modem, f"{where}.uhd") if is_uhd else None,
    )


def make_channel(
    config: RadioConfig, direction: str, seed: int, number: int
) -> nagi_python.channel:
    """The channel of one direction. `number` tells this channel from others of the same seed."""
    channel = config.channels[direction]
    return nagi_python.channel(
        seed=seed,
        direction=number,
        sample_rate=float(config.sample_rate_hz),
        snr_db=channel.snr_db,
        fading=channel.fading,
        doppler_hz=channel.doppler_hz,
        k_factor_db=channel.k_factor_db,
        taps=list(channel.taps),
        frequency_offset_hz=channel.frequency_offset_hz,
        snr_steps=list(channel.snr_steps),
        snr_period_ns=channel.snr_period_ns,
        shadowing_db=channel.shadowing_db,
        shadowing_decorrelation_s=channel.shadowing_decorrelation_s,
        phase_noise_hz=channel.phase_noise_hz,
        sample_clock_offset_ppm=channel.sample_clock_offset_ppm,
        sample_clock_drift_ppm_s=channel.sample_clock_drift_ppm_s,
    )


class Transmitter(gr.hier_block2):
    """Message ports: in `packets` (bytes, with number and begin_ns), out `bursts`."""

    def __init__(self, config: RadioConfig) -> None:
        gr.hier_block2.__init__(
            self, "transmitter", gr.io_signature(0, 0, 0), gr.io_signature(0, 0, 0)
        )
        self.message_port_register_hier_in("packets")
        self.message_port_register_hier_out("bursts")
        framer = nagi_python.packet_framer(
            list(config.code_rates), whiten=False, max_payload=LONGEST_PACKET
        )
        modem = modem_tx(config.modem, config.modulations)
        self.msg_connect(self, "packets", framer, "packets")
        self.msg_connect(framer, "frames", modem, "pdus")
        self.msg_connect(modem, "bursts", self, "bursts")


class Receiver(gr.hier_block2):
    """Message ports: in `bursts`, out `outcomes`: number, outcome, snr_db; bytes if received."""

    def __init__(self, config: RadioConfig) -> None:
        gr.hier_block2.__init__(
            self, "receiver", gr.io_signature(0, 0, 0), gr.io_signature(0, 0, 0)
        )
        self.message_port_register_hier_in("bursts")
        self.message_port_register_hier_out("outcomes")
        modem = modem_rx(
            config.modem, config.modulations, soft_bits=set(config.code_rates) != {"none"}
        )
        deframer = nagi_python.packet_deframer(
            list(config.code_rates), whiten=False, max_payload=LONGEST_PACKET
        )
        self.msg_connect(self, "bursts", modem, "bursts")
        self.msg_connect(modem, "pdus", deframer, "frames")
        self.msg_connect(deframer, "packets", self, "outcomes")


def interferer_port(index: int) -> str:
    """The message port of interferers, counted from 0."""
    return f"interferer{index or ''}"


class SimulatedRadio(gr.hier_block2):
    """One direction of a link. Message ports: in `packets`, out `outcomes`, one each, in order; out
    `sent`, the bursts as they are sent; in `interferer`, `interferer1` and so on, those of each
    of the channel's interferers.

    Parameters:
    - config: what parse_radio() makes of a configuration
    - direction: "forward" or "backward"
    - seed: of all draws
    - number: tells channels of one seed apart; below 2^23
    """

    def __init__(self, config: RadioConfig, direction: str, seed: int, number: int) -> None:
        gr.hier_block2.__init__(
            self, "simulated_radio", gr.io_signature(0, 0, 0), gr.io_signature(0, 0, 0)
        )
        self.message_port_register_hier_in("packets")
        self.message_port_register_hier_out("outcomes")
        self.message_port_register_hier_out("sent")
        transmitter = Transmitter(config)
        channel = make_channel(config, direction, seed, number)
        receiver = Receiver(config)
        self.msg_connect(self, "packets", transmitter, "packets")
        self.msg_connect(transmitter, "bursts", self, "sent")
        self.msg_connect(transmitter, "bursts", channel, "bursts")
        heard: gr.basic_block = channel
        interferers = config.channels[direction].interference
        if interferers:
            heard = nagi_python.interference(
                seed,
                number,
                float(config.sample_rate_hz),
                levels_db=[each.level_db for each in interferers],
            )
            self.msg_connect(channel, "bursts", heard, "bursts")
        for index in range(len(interferers)):
            port = interferer_port(index)
            self.message_port_register_hier_in(port)
            self.msg_connect(self, port, heard, port)
        self.msg_connect(heard, "bursts", receiver, "bursts")
        self.msg_connect(receiver, "outcomes", self, "outcomes")
