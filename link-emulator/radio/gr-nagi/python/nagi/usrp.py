# SPDX-License-Identifier: Apache-2.0
"""Opens, checks, measures and synchronises the devices of a link that is radio hardware.

A burst is on the air a constant time, the lead, after the instant at which its transmission begins
in the model. The lead is measured at the start. It is at least twice the modem's computing time for
the longest packet, plus twice the time by which the device needs a burst in advance. The receiver
cuts windows out of its continuous stream, at the positions where bursts are expected. If the
receiver does not share a clock with the transmitter, it first detects probes in the stream, and
then tracks the clocks' drift from burst to burst.
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
from .air_time import LONGEST_PACKET, WAVEFORMS, compute_air_time_ns
from .checks import DIRECTIONS
from .packet_ends import PacketEnds
from .radio import RadioConfig, Receiver, Transmitter
from .usrp_config import End

_DOUBLE = Path(__file__).parents[4] / "nagi" / "uhd-double" / "libnagi-uhd-double.so"
INSTALL = "install UHD and build nagi-sdr again: `make sdr`"
MAX_FALSE_ALARMS = 1e-6
"""Probability that a receiver mistakes noise for a burst, per expected burst."""

_PROBES = 10
_COMMON_REACH_S, _OWN_REACH_S = 1e-3, 20e-3  # search range of probes: with a common clock, without
_PULSE_S = 1.1
_TRIALS = 5
_STEP_NS = 100_000
_AMPLE_LEAD_NS = 10_000_000  # with more, samples would fill the buffers of devices
_RECEIVE_NS = 1_000_000  # until a packet of samples is complete, and for messages of threads


class UsrpMissing(RuntimeError):
    """nagi-sdr was built without UHD, or UHD's library is missing."""


class DeviceError(RuntimeError):
    """A device fails, or does not support what is required."""

    def __init__(self, message: str, stage: str, cure: str) -> None:
        super().__init__(message)
        self.stage = stage
        """The stage of `nagi-sdr doctor` that detects the problem."""
        self.cure = cure


@contextmanager
def convert_errors() -> Iterator[None]:
    """Convert errors of the bindings into DeviceError."""
    try:
        yield
    except load_bindings().UsrpError as error:
        raise DeviceError(str(error), error.stage, error.cure) from error


def load_bindings() -> ModuleType:
    """Import and return nagi_usrp_python, and register nagi's double of a UHD device if installed.

    Raises:
        UsrpMissing: nagi-sdr was built without UHD, or UHD's library is missing.
    """
    try:
        from . import nagi_usrp_python
    except ImportError as error:
        raise UsrpMissing(f"`by: uhd` needs UHD and a nagi-sdr built with it: {error}") from error
    if _DOUBLE.is_file():
        ctypes.CDLL(str(_DOUBLE), mode=ctypes.RTLD_GLOBAL)  # registers the type nagi_double
    return nagi_usrp_python


def make_preamble(modem: str) -> Any:
    """Return the preamble that receivers detect, as nagi_usrp_python's Preamble."""
    signal = (ofdm if modem == "ofdm" else single_carrier).make_demux_arguments()
    keys = ("repeat_begin", "repeat_lag", "repeat_length", "spread", "threshold")
    return load_bindings().Preamble(
        samples=signal["preamble"], **{key: signal[key] for key in keys}
    )


@dataclass(frozen=True)
class Measurement:
    """Measurements of one direction, made when the devices were opened."""

    lead_ns: int
    delay_samples: float
    """Time from the requested transmission to the reception, in samples."""
    drift_ppm: float
    """Offset of the transmitter's sample clock from the receiver's."""
    preamble_snr_db: float


class _Timing(gr.basic_block):
    """Records the times at which bursts arrive."""

    def __init__(self) -> None:
        gr.basic_block.__init__(self, "timing", [], [])
        self.times_s: list[float] = []
        self.message_port_register_in(pmt.intern("bursts"))
        self.set_msg_handler(pmt.intern("bursts"), self._take)

    def _take(self, _: Any) -> None:
        self.times_s.append(time.monotonic())


def measure_modem_ns(config: RadioConfig) -> int:
    """Measure the transmitter's computing time for the longest packet and return it in ns.

    The result is the maximum of several trials. It is 0 if the host's clock runs in virtual time,
    in which computing takes no time.
    """
    top = gr.top_block("nagi-sdr timing", catch_exceptions=False)
    transmitter, timing = Transmitter(config), _Timing()
    top.msg_connect(transmitter, "bursts", timing, "bursts")
    entry = PacketEnds()
    top.msg_connect(entry, "packets", transmitter, "packets")
    top.start()
    try:
        longest = 0.0
        for trial in range(_TRIALS + 1):
            started = time.monotonic()
            entry.send(trial, 0, bytes(LONGEST_PACKET))
            while len(timing.times_s) <= trial:
                time.sleep(1e-4)
            if trial > 0:  # the first trial also plans Fourier transforms
                longest = max(longest, timing.times_s[trial] - started)
    finally:
        top.stop()
        top.wait()
    return int(longest * 1e9)


class Devices:
    """The devices of a link, which the constructor opens.

    Methods raise the bindings' UsrpError, and UsrpMissing.
    """

    def __init__(self, config: RadioConfig) -> None:
        assert config.uhd is not None
        self._config, self._uhd = config, config.uhd
        self._module = load_bindings()
        self._opened: dict[str, Any] = {}
        self._senders: dict[tuple[str, int], Any] = {}
        self._streams: dict[tuple[str, int], Any] = {}
        for end in self._uhd.ends.values():
            self._open(end)

    def tune(self) -> None:
        """Set rates, frequencies, gains and antennas of both ends.

        If two devices share a clock, also synchronise their times, and wait for _PULSE_S.

        Raises:
            UsrpError: A device does not support a setting.
        """
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
        """Tune the sender and the receiver of a direction."""
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
        """Set the gain of a direction's transmitter in dB.

        The device rounds the gain to a step. The digital back-off compensates the rounding.

        Raises:
            UsrpError: The device does not support the gain.
        """
        end = self._uhd.sender(direction)
        actual_gain_db = self._opened[end.device].tune(
            is_output=True,
            channel=end.channel,
            frequency_hz=self._uhd.frequency_hz[direction],
            lo_offset_hz=self._uhd.lo_offset_hz,
            gain_db=gain_db,
            antenna=end.tx_antenna,
        )
        self.open_sender(direction).set_backoff(self._uhd.backoff_db + actual_gain_db - gain_db)

    def close(self) -> None:
        for objects in (self._streams, self._senders, self._opened):
            objects.clear()

    def list_descriptions(self) -> list[str]:
        return [device.description for device in self._opened.values()]

    def list_facts(self) -> list[dict[str, str]]:
        """Return name, description and firmware of each device."""
        return [
            {"name": device.name, "description": device.description, "firmware": device.firmware}
            for device in self._opened.values()
        ]

    def open_sender(self, direction: str) -> Any:
        """Return the output (BurstSender) that transmits a direction; open it at the first call.

        Both directions may share an output.
        """
        end = self._uhd.sender(direction)
        key = (end.device, end.channel)
        if key not in self._senders:
            self._senders[key] = self._module.BurstSender(
                self._opened[end.device], end.channel, self._uhd.backoff_db
            )
        return self._senders[key]

    def open_stream(self, direction: str) -> Any:
        """Return the input (SampleStream) that receives a direction; open it at the first call.

        Both directions may share an input.
        """
        end = self._uhd.receiver(direction)
        key = (end.device, end.channel)
        if key not in self._streams:
            self._streams[key] = self._module.SampleStream(self._opened[end.device], end.channel)
        return self._streams[key]


class UhdLink:
    """Both directions of a link that is radio hardware.

    The constructor raises DeviceError and UsrpMissing.

    Args:
        config: The radio.
        epoch_monotonic_ns: Event time 0 on CLOCK_MONOTONIC.
        budget_ns: Time after the end of a transmission within which its outcome must be known.
        lead_ns: Time from the begin of a transmission in the model until its burst is on the air.
            None chooses a lead by measurements.
        synchronised: True sends probes in both directions first. With False, `measured` is empty.
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
        with convert_errors():
            self._open(config, epoch_monotonic_ns, budget_ns, lead_ns)
            if synchronised:
                self.measured = {
                    direction: self._synchronise(direction) for direction in DIRECTIONS
                }

    def _open(
        self, config: RadioConfig, epoch_monotonic_ns: int, budget_ns: int, lead_ns: int | None
    ) -> None:
        """Open and tune the devices, choose the lead, and make the channels of both directions."""
        assert config.uhd is not None
        self._config, self._uhd = config, config.uhd
        self.measured: dict[str, Measurement] = {}
        module = load_bindings()
        self.devices = Devices(config)
        self.devices.tune()
        computing_ns = measure_modem_ns(config)
        receiving_ns = 2 * computing_ns + _RECEIVE_NS
        if lead_ns is None:
            lead_ns = self._choose_lead_ns(computing_ns, budget_ns - receiving_ns)
        self.lead_ns = lead_ns
        needed_ns = lead_ns + receiving_ns
        if needed_ns > budget_ns:
            raise DeviceError(
                f"a delay or ARQ feedback delay of {budget_ns / 1e6:g} ms is too short: bursts are"
                f" sent {lead_ns / 1e6:g} ms after their instants in the model, and the receiver"
                f" takes {receiving_ns / 1e6:g} ms",
                "loopback",
                f"give {needed_ns / 1e6:.1f} ms or more",
            )
        half = module.HalfDuplex() if config.uhd.duplex == "half" else None
        self.channels = {
            direction: module.usrp_channel(
                sender=self.devices.open_sender(direction),
                stream=self.devices.open_stream(direction),
                half_duplex=half,
                preamble=make_preamble(config.modem),
                epoch_monotonic_ns=epoch_monotonic_ns,
                lead_ns=self.lead_ns,
                common_clock=config.uhd.has_common_clock,
                guard=WAVEFORMS[config.modem].guard,
                direction=index,
                max_false_alarms=MAX_FALSE_ALARMS,
            )
            for index, direction in enumerate(DIRECTIONS)
        }

    def _choose_lead_ns(self, computing_ns: int, max_lead_ns: int) -> int:
        """Return the minimum lead plus half of the time from the minimum to `max_lead_ns`.

        The minimum is the time that modem and devices need. The added time absorbs delays of the
        processor; it does not raise the lead above _AMPLE_LEAD_NS.
        """
        margin_ns = max(
            self.devices.open_sender(direction).measure_margin() for direction in DIRECTIONS
        )
        min_lead_ns = -(-2 * (computing_ns + margin_ns) // _STEP_NS) * _STEP_NS
        longer_ns = min_lead_ns + (max_lead_ns - min_lead_ns) // 2 // _STEP_NS * _STEP_NS
        return max(min_lead_ns, min(longer_ns, _AMPLE_LEAD_NS))

    def _probe(self, direction: str) -> Any:
        """Send probes and return their measurements; raise UsrpError if most are lost."""
        reach_s = _COMMON_REACH_S if self._uhd.has_common_clock else _OWN_REACH_S
        return self.channels[direction].synchronise(probes=_PROBES, within_s=reach_s)

    def measure_snr_db(self, direction: str) -> float | None:
        """Send probes and return their SNR in dB, or None if fewer than half were detected."""
        try:
            return float(self._probe(direction).snr_db)
        except load_bindings().UsrpError:
            return None

    def _synchronise(self, direction: str) -> Measurement:
        probes = self._probe(direction)
        return Measurement(self.lead_ns, probes.delay_samples, probes.drift_ppm, probes.snr_db)

    def compute_air_time_ns(self, packet_bytes: int) -> int:
        """Return the air time of a packet in the radio's first mode."""
        config = self._config
        return compute_air_time_ns(
            config.modem,
            config.modulations[0],
            config.sample_rate_hz,
            config.code_rates[0],
            packet_bytes,
        )

    def make_radio(self, direction: str) -> UhdRadio:
        return UhdRadio(self._config, self.channels[direction])

    def describe(self) -> list[str]:
        """Describe devices, lead and measurements, as lines of text."""
        lines = [f"device: {name}" for name in self.devices.list_descriptions()]
        lines.append(
            f"lead: bursts are on the air {self.lead_ns / 1e6:g} ms after their time in the model"
        )
        for direction, result in self.measured.items():
            lines.append(
                f"{direction}: received {result.delay_samples:.1f} samples later,"
                f" {result.drift_ppm:+.2f} ppm, SNR of the preamble {result.preamble_snr_db:.1f} dB"
            )
        return lines

    def make_account(self) -> dict[str, Any]:
        """Return the link's entry in radios.json: devices, measurements and counts."""
        counts = self.read_counts()
        directions = {
            name: {
                "delay_samples": result.delay_samples,
                "drift_ppm": result.drift_ppm,
                "preamble_snr_db": result.preamble_snr_db,
                "counts": counts[name],
            }
            for name, result in self.measured.items()
        }
        return {"devices": self.devices.list_facts(), "lead_ns": self.lead_ns, **directions}

    def close(self) -> None:
        """Release the devices. No flowgraph may use the link afterwards."""
        for channel in self.channels.values():
            channel.close()
        self.devices.close()

    def list_errors(self) -> list[str]:
        """Return the errors that ended streams, as lines of text."""
        return [
            f"{direction}: {channel.error()}"
            for direction, channel in self.channels.items()
            if channel.error()
        ]

    def read_counts(self) -> dict[str, dict[str, int]]:
        """Return the numbers of events (late bursts, overflows …) by direction and by event."""
        return {direction: channel.counts() for direction, channel in self.channels.items()}


class UhdRadio(gr.hier_block2):
    """One direction of a link through radio hardware.

    Message ports: in `packets`, out `outcomes`, one per packet, in order.
    """

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
