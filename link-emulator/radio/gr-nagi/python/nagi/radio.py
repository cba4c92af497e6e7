# SPDX-License-Identifier: Apache-2.0
"""A radio between two message ports: framing, modem and channel of one direction of a link.

`SimulatedRadio` computes all parts in this process. `VirtualRadio` (in `stations`) has a process
per station and one for the channel. With equal configuration and seed, both report the same
outcomes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gnuradio import gr

from . import nagi_python
from .air_time import BITS_PER_SYMBOL, CODE_RATES, LONGEST_PACKET, MAX_SAMPLE_RATE_HZ, MODEMS
from .checks import DIRECTIONS, ConfigError, check_choice, check_number, check_object, require_key
from .modem import MAX_MODES, modem_rx, modem_tx
from .usrp_config import UhdConfig, parse_uhd

_NOT_NEGATIVE = ("doppler_hz", "phase_noise_hz")
FADINGS = ("none", "rayleigh", "rician")
BY = ("simulated", "virtual", "uhd")  # values of the key "by": how a radio is implemented


@dataclass(frozen=True)
class Interferer:
    """A direction of a radio whose transmissions interfere with another direction."""

    link: str
    direction: str
    level_db: float
    """Power of the interfering bursts at the receiver, relative to the wanted bursts."""


@dataclass(frozen=True)
class Channel:
    """Properties of a channel.

    Attributes:
        snr_db: Mean power of a burst over the power of the noise.
    """

    snr_db: float
    fading: str = "none"
    doppler_hz: float = 0.0
    k_factor_db: float = 0.0
    taps: tuple[tuple[float, float], ...] = ()
    """Delay in ns and power in dB of each path."""
    frequency_offset_hz: float = 0.0
    snr_steps: tuple[tuple[int, float], ...] = ()
    """Steps of the SNR, which replace snr_db: (instant in ns, SNR in dB from that instant on)."""
    snr_period_ns: int = 0
    """Time in ns after which the steps repeat."""
    shadowing_db: float = 0.0
    shadowing_decorrelation_s: float = 1.0
    phase_noise_hz: float = 0.0
    sample_clock_offset_ppm: float = 0.0
    sample_clock_drift_ppm_s: float = 0.0
    interference: tuple[Interferer, ...] = ()


@dataclass(frozen=True)
class RadioConfig:
    """The settings of a link's radio, as parsed from the configuration."""

    by: str
    modem: str
    modulations: tuple[str, ...]
    """Modulation of each mode; without rate adaptation there is one mode."""
    sample_rate_hz: int
    code_rates: tuple[str, ...]
    """Code rate of each mode."""
    channels: Mapping[str, Channel] = field(default_factory=dict)
    """Channels by direction; empty for radio hardware."""
    uhd: UhdConfig | None = None


def _parse_taps(value: Any, key_path: str) -> tuple[tuple[float, float], ...]:
    """Return delay in ns and power in dB of each path."""
    if not isinstance(value, list) or not value:
        raise ConfigError(f"{key_path} must be a list of paths with delay_ns and power_db")
    taps = []
    for index, item in enumerate(value):
        item_path = f"{key_path}[{index}]"
        tap = check_object(item, item_path, ("delay_ns", "power_db"))
        taps.append(
            (
                check_number(require_key(tap, "delay_ns", item_path), f"{item_path}.delay_ns", 0),
                check_number(require_key(tap, "power_db", item_path), f"{item_path}.power_db"),
            )
        )
    return tuple(taps)


def _parse_channel(value: Any, key_path: str) -> Channel:
    keys = (
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
    config = check_object(value, key_path, keys)
    numbers = {
        key: check_number(
            config[key], f"{key_path}.{key}", 0 if key in _NOT_NEGATIVE else -math.inf
        )
        for key in ("doppler_hz", "k_factor_db", "frequency_offset_hz", "phase_noise_hz")
        if key in config
    }
    return Channel(
        snr_db=check_number(require_key(config, "snr_db", key_path), f"{key_path}.snr_db"),
        fading=check_choice(config.get("fading", "none"), f"{key_path}.fading", FADINGS),
        taps=_parse_taps(config["taps"], f"{key_path}.taps") if "taps" in config else (),
        **numbers,
        **(
            _parse_snr_trace(config["snr_trace"], f"{key_path}.snr_trace")
            if "snr_trace" in config
            else {}
        ),
        **(
            _parse_shadowing(config["shadowing"], f"{key_path}.shadowing")
            if "shadowing" in config
            else {}
        ),
        **_parse_sample_clock(config.get("sample_clock"), f"{key_path}.sample_clock"),
        interference=_parse_interference(
            config.get("interference", []), f"{key_path}.interference"
        ),
    )


def _parse_mode(config: dict[str, Any], key_path: str) -> tuple[str, str]:
    """Return modulation and code rate of a mode."""
    modulation = check_choice(
        require_key(config, "modulation", key_path),
        f"{key_path}.modulation",
        tuple(BITS_PER_SYMBOL),
    )
    code_rate = config.get("code_rate", "none")
    return modulation, check_choice(code_rate, f"{key_path}.code_rate", tuple(CODE_RATES))


def _parse_modes(config: dict[str, Any], key_path: str) -> list[tuple[str, str]]:
    """Return modulation and code rate of each mode; a radio without `modes` has one mode."""
    if "modes" not in config:
        return [_parse_mode(config, key_path)]
    for key in ("modulation", "code_rate"):
        if key in config:
            raise ConfigError(
                f"{key_path}.{key}: modes are given as well; give either modes or {key}"
            )
    modes = config["modes"]
    if not isinstance(modes, list) or not 1 <= len(modes) <= MAX_MODES:
        raise ConfigError(f"{key_path}.modes must be a list of 1 to {MAX_MODES} modes")
    item_paths = [f"{key_path}.modes[{index}]" for index in range(len(modes))]
    return [
        _parse_mode(check_object(mode, item_path, ("modulation", "code_rate")), item_path)
        for mode, item_path in zip(modes, item_paths, strict=True)
    ]


def _parse_snr_trace(value: Any, key_path: str) -> dict[str, Any]:
    """Return the fields snr_steps and snr_period_ns of a Channel."""
    trace = check_object(value, key_path, ("steps", "period_ns"))
    period = int(
        check_number(require_key(trace, "period_ns", key_path), f"{key_path}.period_ns", 1)
    )
    steps = require_key(trace, "steps", key_path)
    if not isinstance(steps, list) or not steps:
        raise ConfigError(f"{key_path}.steps must be a list of [at_ns, snr_db]")
    parsed: list[tuple[int, float]] = []
    for index, step in enumerate(steps):
        item_path = f"{key_path}.steps[{index}]"
        if not isinstance(step, list) or len(step) != 2:
            raise ConfigError(f"{item_path} is {step!r}; it must be [at_ns, snr_db]")
        instant = int(check_number(step[0], f"{item_path}[0]", 0))
        is_first = not parsed
        if (
            (is_first and instant != 0)
            or (not is_first and instant <= parsed[-1][0])
            or (instant >= period)
        ):
            raise ConfigError(
                f"{item_path}[0] is {instant}; instants begin at 0, increase, and are below "
                "period_ns"
            )
        parsed.append((instant, check_number(step[1], f"{item_path}[1]")))
    return {"snr_steps": tuple(parsed), "snr_period_ns": period}


def _parse_shadowing(value: Any, key_path: str) -> dict[str, Any]:
    """Return the fields shadowing_db and shadowing_decorrelation_s of a Channel."""
    shadowing = check_object(value, key_path, ("deviation_db", "decorrelation_ns"))
    deviation = require_key(shadowing, "deviation_db", key_path)
    decorrelation = require_key(shadowing, "decorrelation_ns", key_path)
    return {
        "shadowing_db": check_number(deviation, f"{key_path}.deviation_db", 0),
        "shadowing_decorrelation_s": check_number(decorrelation, f"{key_path}.decorrelation_ns", 1)
        * 1e-9,
    }


def _parse_sample_clock(value: Any, key_path: str) -> dict[str, float]:
    """Return the fields of a Channel for the sample clock, or an empty dictionary for None."""
    if value is None:
        return {}
    clock = check_object(value, key_path, ("offset_ppm", "drift_ppm_s"))
    return {
        "sample_clock_offset_ppm": check_number(
            require_key(clock, "offset_ppm", key_path), f"{key_path}.offset_ppm", -200, 200
        ),
        "sample_clock_drift_ppm_s": check_number(
            clock.get("drift_ppm_s", 0.0), f"{key_path}.drift_ppm_s", -1, 1
        ),
    }


MAX_INTERFERERS = 8


def _parse_interference(value: Any, key_path: str) -> tuple[Interferer, ...]:
    if not isinstance(value, list) or len(value) > MAX_INTERFERERS:
        raise ConfigError(f"{key_path} must be a list of at most {MAX_INTERFERERS} interferers")
    keys = ("link", "direction", "level_db")
    interferers = []
    for index, item in enumerate(value):
        item_path = f"{key_path}[{index}]"
        interferer = check_object(item, item_path, keys)
        link, direction, level = (require_key(interferer, key, item_path) for key in keys)
        if not isinstance(link, str):
            raise ConfigError(f"{item_path}.link is {link!r}; it must be the name of a link")
        interferers.append(
            Interferer(
                link,
                check_choice(direction, f"{item_path}.direction", DIRECTIONS),
                check_number(level, f"{item_path}.level_db", -200, 200),
            )
        )
    return tuple(interferers)


def parse_radio(value: Any, key_path: str = "radio") -> RadioConfig:
    """Parse a link's "radio" of a configuration (JSON).

    Args:
        value: The value of the key "radio".
        key_path: Path of that key, for messages.

    Raises:
        ConfigError: The value is wrong; the message names the key.
    """
    is_uhd = isinstance(value, dict) and value.get("by") == "uhd"
    channel_keys = ("uhd",) if is_uhd else DIRECTIONS
    keys = ("by", "modem", "modulation", "sample_rate_hz", "code_rate", "modes", *channel_keys)
    if isinstance(value, dict) and "fec" in value:
        raise ConfigError(
            f"{key_path}.fec was renamed code_rate; write none, 1/2 (formerly convolutional),"
            " 2/3 or 3/4"
        )
    config = check_object(value, key_path, keys)
    modes = _parse_modes(config, key_path)
    rate = check_number(
        require_key(config, "sample_rate_hz", key_path), f"{key_path}.sample_rate_hz", 1000
    )
    if rate != int(rate) or rate > MAX_SAMPLE_RATE_HZ:
        raise ConfigError(
            f"{key_path}.sample_rate_hz is {rate}; it must be a whole number of at most"
            f" {MAX_SAMPLE_RATE_HZ}"
        )
    modem = check_choice(require_key(config, "modem", key_path), f"{key_path}.modem", MODEMS)
    return RadioConfig(
        by=check_choice(require_key(config, "by", key_path), f"{key_path}.by", BY),
        modem=modem,
        modulations=tuple(modulation for modulation, _ in modes),
        sample_rate_hz=int(rate),
        code_rates=tuple(code_rate for _, code_rate in modes),
        channels={}
        if is_uhd
        else {
            direction: _parse_channel(
                require_key(config, direction, key_path), f"{key_path}.{direction}"
            )
            for direction in DIRECTIONS
        },
        uhd=parse_uhd(require_key(config, "uhd", key_path), modem, f"{key_path}.uhd")
        if is_uhd
        else None,
    )


def make_channel(
    config: RadioConfig, direction: str, seed: int, number: int
) -> nagi_python.channel:
    """Make the channel block of one direction of a simulated or virtual radio.

    `number` distinguishes the channels of a seed, so that their random draws differ.
    """
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
    """The transmitter of a radio.

    Message ports: in `packets` (bytes, with number and begin_ns), out `bursts`.
    """

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
    """The receiver of a radio.

    Message ports: in `bursts`, out `outcomes`: number, outcome, snr_db; bytes if received.
    """

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


def name_interferer_port(index: int) -> str:
    """Return the name of an interferer's message port: interferer, interferer1 and so on."""
    return f"interferer{index or ''}"


class SimulatedRadio(gr.hier_block2):
    """One direction of a link with a simulated radio.

    Message ports: in `packets`; out `outcomes`, one per packet, in order; out `sent`, the
    transmitted bursts; in `interferer`, `interferer1` and so on, the bursts of each interferer of
    the channel.

    Parameters:
    - config: the radio, as parse_radio() returns it
    - direction: "forward" or "backward"
    - seed: seed of all random draws
    - number: distinguishes the channels of a seed; below 2^23
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
        received: gr.basic_block = channel
        interferers = config.channels[direction].interference
        if interferers:
            received = nagi_python.interference(
                seed,
                number,
                float(config.sample_rate_hz),
                levels_db=[interferer.level_db for interferer in interferers],
            )
            self.msg_connect(channel, "bursts", received, "bursts")
        for index in range(len(interferers)):
            port = name_interferer_port(index)
            self.message_port_register_hier_in(port)
            self.msg_connect(self, port, received, port)
        self.msg_connect(received, "bursts", receiver, "bursts")
        self.msg_connect(receiver, "outcomes", self, "outcomes")
