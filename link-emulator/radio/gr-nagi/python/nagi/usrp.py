# SPDX-License-Identifier: Apache-2.0
"""A link that is radio hardware: both ends' devices, opened, checked, measured and synchronised.

Bursts are on the air a constant lead after the instants of the model. The lead is measured at the
start: twice what the modem takes for the longest packet, and twice how long before its instant the
device wants a burst. The receiver cuts its endless stream where bursts must come; with a clock of
its own, it finds probes in that stream first, and then follows the drift from burst to burst.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pmt
from gnuradio import gr

from . import ofdm, single_carrier
from .air_time import LONGEST_PACKET, WAVEFORMS, air_time_ns
from .checks import DIRECTIONS
from .packet_ends import PacketEnds
from .radio import RadioConfig, Receiver, Transmitter
from .usrp_config import End

_DOUBLE = Path(__file__).parents[4] / "nagi" / "uhd-double" / "libnagi-uhd-double.so"
INSTALL = "install UHD and build nagi-sdr again: `make sdr`"
MAX_FALSE_ALARMS = 1e-6
"""Probability that a receiver takes noise for a burst, for each burst that it expects."""

_PROBES = 10
_COMMON_REACH_S, _OWN_REACH_S = 1e-3, 20e-3  # in which probes are looked for
_PULSE_S = 1.1
_TRIALS = 5
_STEP_NS = 100_000
_AMPLE_LEAD_NS = 10_000_000  # with more, samples would fill the buffers of devices
_RECEIVE_NS = 1_000_000  # the rest of a packet of the stream, and of messages between threads


class UsrpMissing(RuntimeError):
    """nagi-sdr was built without UHD, or its library is not there."""


class DeviceError(RuntimeError):
    """What a device cannot do or does not have."""

    def __init__(self, what: str, stage: str, cure: str) -> None:
        super().__init__(what)
        self.stage = stage
        """Of `nagi-sdr doctor`, at which it shows."""
        self.cure = cure


@contextmanager
def device_errors() -> Iterator[None]:
    """Errors of the bindings as DeviceError."""
    try:
        yield
    except bindings().UsrpError as error:
        raise DeviceError(str(error), error.stage, error.cure) from error


def bindings() -> ModuleType:
    """nagi_usrp_python. Raises UsrpMissing, with the cure."""
    try:
        from . import nagi_usrp_python
    except ImportError as error:
        raise UsrpMissing(f"`by: uhd` needs UHD and a nagi-sdr built with it: {error}") from error
    if _DOUBLE.is_file():
        ctypes.CDLL(str(_DOUBLE), mode=ctypes.RTLD_GLOBAL)  # registers the type nagi_double
    return nagi_usrp_python


def preamble(modem: str) -> Any:
    """The preamble that receivers look for, as nagi_usrp_python takes it."""
    shape = (ofdm if modem == "ofdm" else single_carrier).demux_shape()
    keys = ("repeat_begin", "repeat_lag", "repeat_length", "spread", "threshold")
    return bindings().Preamble(samples=shape["preamble"], **{key: shape[key] for key in keys})


@dataclass(frozen=True)
class Measured:
    """What was measured at the start of one direction."""

    lead_ns: int
    delay_samples: float
    drift_ppm: float
    preamble_snr_db: float


class _Timing(gr.basic_block):
    """Takes bursts, and notes when."""

    def __init__(self) -> None:
        gr.basic_block.__init__(self, "timing", [], [])
        self.taken: list[float] = []
        self.message_port_register_in(pmt.intern("bursts"))
        self.set_msg_handler(pmt.intern("bursts"), self._take)

    def _take(self, _: Any) -> None:
        self.taken.append(time.monotonic())


def modem_ns(config: RadioConfig) -> int:
    """How long the transmitter computes on the longest packet: the longest of some trials, in ns.
    In virtual time that is none."""
    top = gr.top_block("nagi-sdr timing", catch_exceptions=False)
    transmitter, timing = Transmitter(config), _Timing()
    top.msg_connect(transmitter, "bursts", timing, "bursts")
    entry = PacketEnds()
    top.msg_connect(entry, "packets", transmitter, "packets")
    top.start()
    try:
        longest = 0.0
        for trial in range(_TRIALS + 1):
            began = time.monotonic()
            entry.send(trial, 0, bytes(LONGEST_PACKET))
            while len(timing.taken) <= trial:
                time.sleep(1e-4)
            if trial > 0:  # the first one plans transforms
                longest = max(longest, timing.taken[trial] - began)
    finally:
        top.stop()
        top.wait()
    return int(longest * 1e9)


class Devices:
    """The devices of a link: opened, then tuned, with a stream each way at each end.

    Raises the bindings' UsrpError, and UsrpMissing.
    """

    def __init__(self, config: RadioConfig) -> None:
        assert config.uhd is not None
        self._config, self._uhd = config, config.uhd
        self._module = bindings()
        self._opened: dict[str, Any] = {}
        self._senders: dict[tuple[str, int], Any] = {}
        self._streams: dict[tuple[str, int], Any] = {}
        for end in self._uhd.ends.values():
            self._open(end)

    def tune(self) -> None:
        """Rates, frequencies, gains and antennas of all ends; the common time if there is one.
        Raises UsrpError."""
        for device in self._opened.values():
            device.set_rate(float(self._config.sample_rate_hz))
        for direction in DIRECTIONS:
            self._tune(direction)
        if self._uhd.has_common_clock and len(self._opened) > 1:
            for device in self._opened.values():
                device.set_time_at_pulse()
            time.sleep(_PULSE_S)

    def _open(self, end: End) -> None:
        if end.device in self._opened:
            return
        device = self._module.Usrp(
            device=end.device,
            subdev=end.subdev,
            clock_source=end.clock_source,
            time_source=end.time_source,
        )
        self._opened[end.device] = device

    def _tune(self, direction: str) -> None:
        common = {
            "frequency_hz": self._uhd.frequency_hz[direction],
            "lo_offset_hz": self._uhd.lo_offset_hz,
        }
        sender, receiver = self._uhd.sender(direction), self._uhd.receiver(direction)
        self._opened[sender.device].tune(
            is_output=True,
            channel=sender.channel,
            gain_db=sender.tx_gain_db,
            antenna=sender.tx_antenna,
            **common,
        )
        self._opened[receiver.device].tune(
            is_output=False,
            channel=receiver.channel,
            gain_db=receiver.rx_gain_db,
            antenna=receiver.rx_antenna,
            **common,
        )

    def tune_sender(self, direction: str, gain_db: float) -> None:
        """Another gain: what is between the steps of the device is made of the back-off. Raises
        UsrpError."""
        end = self._uhd.sender(direction)
        got_db = self._opened[end.device].tune(
            is_output=True,
            channel=end.channel,
            frequency_hz=self._uhd.frequency_hz[direction],
            lo_offset_hz=self._uhd.lo_offset_hz,
            gain_db=gain_db,
            antenna=end.tx_antenna,
        )
        self.sender(direction).set_backoff(self._uhd.backoff_db + got_db - gain_db)

    def close(self) -> None:
        for held in (self._streams, self._senders, self._opened):
            held.clear()

    def descriptions(self) -> list[str]:
        return [device.description for device in self._opened.values()]

    def facts(self) -> list[dict[str, str]]:
        """Of each device: name, description, firmware."""
        return [
            {"name": each.name, "description": each.description, "firmware": each.firmware}
            for each in self._opened.values()
        ]

    def sender(self, direction: str) -> Any:
        """The output from which a direction is sent. Ends that share it have the same."""
        end = self._uhd.sender(direction)
        place = (end.device, end.channel)
        if place not in self._senders:
            self._senders[place] = self._module.BurstSender(
                self._opened[end.device], end.channel, self._uhd.backoff_db
            )
        return self._senders[place]

    def stream(self, direction: str) -> Any:
        """The input at which a direction is received."""
        end = self._uhd.receiver(direction)
        place = (end.device, end.channel)
        if place not in self._streams:
            self._streams[place] = self._module.SampleStream(self._opened[end.device], end.channel)
        return self._streams[place]


class UhdLink:
    """Both directions of a link that is radio hardware.

    `epoch_monotonic_ns`: of event time. `budget_ns`: within which, after the end of a transmission,
    its outcome must be known; `lead_ns`: measured if not given. Raises DeviceError and UsrpMissing.
    """

    def __init__(
        self,
        config: RadioConfig,
        epoch_monotonic_ns: int,
        budget_ns: int,
        lead_ns: int | None = None,
        *,
        synchronised: bool = True,
    ) -> None:
        with device_errors():
            self._begin(config, epoch_monotonic_ns, budget_ns, lead_ns)
            if synchronised:
                self.measured = {name: self._synchronise(name) for name in DIRECTIONS}

    def _begin(
        self, config: RadioConfig, epoch_monotonic_ns: int, budget_ns: int, lead_ns: int | None
    ) -> None:
        assert config.uhd is not None
        self._config, self._uhd = config, config.uhd
        self.measured: dict[str, Measured] = {}
        module = bindings()
        self.devices = Devices(config)
        self.devices.tune()
        computing_ns = modem_ns(config)
        receiving_ns = 2 * computing_ns + _RECEIVE_NS
        if lead_ns is None:
            lead_ns = self._measured_lead_ns(computing_ns, budget_ns - receiving_ns)
        self.lead_ns = lead_ns
        needed_ns = lead_ns + receiving_ns
        if needed_ns > budget_ns:
            raise DeviceError(
                f"a delay or feedback of {budget_ns / 1e6:g} ms is too short: bursts are sent"
                f" {lead_ns / 1e6:g} ms after the model's instants, and the receiver takes"
                f" {receiving_ns / 1e6:g} ms",
                "loopback",
                f"give {needed_ns / 1e6:.1f} ms or more",
            )
        half = module.HalfDuplex() if config.uhd.duplex == "half" else None
        self.channels = {
            direction: module.usrp_channel(
                sender=self.devices.sender(direction),
                stream=self.devices.stream(direction),
                half_duplex=half,
                preamble=preamble(config.modem),
                epoch_monotonic_ns=epoch_monotonic_ns,
                lead_ns=self.lead_ns,
                common_clock=config.uhd.has_common_clock,
                guard=WAVEFORMS[config.modem].guard,
                direction=index,
                max_false_alarms=MAX_FALSE_ALARMS,
            )
            for index, direction in enumerate(DIRECTIONS)
        }

    def _measured_lead_ns(self, computing_ns: int, longest_ns: int) -> int:
        """What modem and devices need, and half of what `longest_ns` leaves over, for whatever
        holds a processor up."""
        margin_ns = max(self.devices.sender(name).measure_margin() for name in DIRECTIONS)
        least_ns = -(-2 * (computing_ns + margin_ns) // _STEP_NS) * _STEP_NS
        longer_ns = least_ns + (longest_ns - least_ns) // 2 // _STEP_NS * _STEP_NS
        return max(least_ns, min(longer_ns, _AMPLE_LEAD_NS))

    def _probe(self, direction: str) -> Any:
        reach_s = _COMMON_REACH_S if self._uhd.has_common_clock else _OWN_REACH_S
        return self.channels[direction].synchronise(probes=_PROBES, within_s=reach_s)

    def probed_snr_db(self, direction: str) -> float | None:
        """Of preambles, now; None if less than half were found."""
        try:
            return float(self._probe(direction).snr_db)
        except bindings().UsrpError:
            return None

    def _synchronise(self, direction: str) -> Measured:
        found = self._probe(direction)
        return Measured(self.lead_ns, found.delay_samples, found.drift_ppm, found.snr_db)

    def air_time_ns(self, packet_bytes: int) -> int:
        """Of a packet in the radio's first mode."""
        config = self._config
        return air_time_ns(
            config.modem,
            config.modulations[0],
            config.sample_rate_hz,
            config.code_rates[0],
            packet_bytes,
        )

    def radio(self, direction: str) -> UhdRadio:
        return UhdRadio(self._config, self.channels[direction])

    def statement(self) -> list[str]:
        """What was opened and measured, for people."""
        lines = [f"device: {name}" for name in self.devices.descriptions()]
        lines.append(f"lead: bursts are on the air {self.lead_ns / 1e6:g} ms after their instants")
        for direction, one in self.measured.items():
            lines.append(
                f"{direction}: received {one.delay_samples:.1f} samples later,"
                f" {one.drift_ppm:+.2f} ppm, SNR of the preamble {one.preamble_snr_db:.1f} dB"
            )
        return lines

    def account(self) -> dict[str, Any]:
        """The same for programs, with counts(): a link of radios.json."""
        counts = self.counts()
        directions = {
            name: {
                "delay_samples": one.delay_samples,
                "drift_ppm": one.drift_ppm,
                "preamble_snr_db": one.preamble_snr_db,
                "counts": counts[name],
            }
            for name, one in self.measured.items()
        }
        return {"devices": self.devices.facts(), "lead_ns": self.lead_ns, **directions}

    def close(self) -> None:
        """Gives the devices back, once no flowgraph runs with them."""
        for channel in self.channels.values():
            channel.close()
        self.devices.close()

    def errors(self) -> list[str]:
        """What ended a direction's stream."""
        return [
            f"{name}: {channel.error()}"
            for name, channel in self.channels.items()
            if channel.error()
        ]

    def counts(self) -> dict[str, dict[str, int]]:
        """By direction: what devices did, and what went wrong."""
        return {name: channel.counts() for name, channel in self.channels.items()}


class UhdRadio(gr.hier_block2):
    """One direction. Message ports: in `packets`, out `outcomes`, one each, in order."""

    def __init__(self, config: RadioConfig, channel: Any) -> None:
        gr.hier_block2.__init__(
            self, "uhd_radio", gr.io_signature(0, 0, 0), gr.io_signature(0, 0, 0)
        )
        self.message_port_register_hier_in("packets")
        self.message_port_register_hier_out("outcomes")
        transmitter, receiver = Transmitter(config), Receiver(config)
        self.msg_connect(self, "packets", transmitter, "packets")
        self.msg_connect(transmitter, "bursts", channel, "bursts")
        self.msg_connect(channel, "bursts", receiver, "bursts")
        self.msg_connect(receiver, "outcomes", self, "outcomes")
