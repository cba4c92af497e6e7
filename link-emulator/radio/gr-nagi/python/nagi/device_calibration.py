# SPDX-License-Identifier: Apache-2.0
"""Calibration over radio hardware: where `nagi-sdr calibrate --device` sends its packets.

The SNR at the transmitter's gain `--tx-gain` is measured by probes, as a run begins; any other SNR
is as many dB of gain away. Packets that a device did not carry are sent again: they say nothing
about the receiver.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from . import doctor, packet_ends, usrp
from .calibration import PAYLOAD_ERROR, Carry, Mode
from .packet_ends import NoOutcome, PacketEnds
from .radio import parse_radio

DIRECTION = "forward"
_ATTEMPTS = 20  # to have a packet carried
_WAIT_NS = 20_000_000  # before the first packet of a round


@dataclass
class _OpenLink:
    """Devices that are synchronised, with the flowgraph of one mode."""

    mode: Mode
    link: usrp.UhdLink
    ends: PacketEnds
    epoch_ns: int
    sent: int = 0

    @property
    def reference_snr_db(self) -> float:
        return self.link.measured[DIRECTION].preamble_snr_db

    def carry(self, packets: list[bytes]) -> list[tuple[int, bytes]]:
        """Outcomes of packets that follow each other without a gap, and what was received."""
        begin_ns = time.monotonic_ns() - self.epoch_ns + _WAIT_NS
        for packet in packets:
            early_ns = begin_ns - (time.monotonic_ns() - self.epoch_ns)
            time.sleep(max(0, early_ns) * 1e-9)
            self.ends.send(self.sent, begin_ns, packet)
            self.sent += 1
            begin_ns += self.link.air_time_ns(len(packet))
        return self.ends.collect(len(packets))


class DeviceChannel:
    """The path through devices from end `a` to end `b`, in one mode at a time. A context manager.

    `radio`: as device_doctor.radio_of makes it. Its methods raise DeviceError and UsrpMissing.
    """

    def __init__(self, radio: dict[str, Any]) -> None:
        self._radio = radio
        self._reference_gain_db = float(radio["uhd"]["a"]["tx_gain_db"])
        self.resent = 0
        """Packets that had to be sent again."""
        self._open: _OpenLink | None = None
        self._cleanup = ExitStack()

    def __enter__(self) -> DeviceChannel:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def description(self, mode: Mode) -> dict[str, Any]:
        """The devices, as tables name them. They are open afterwards, for that mode."""
        opened = self._use(mode)
        with usrp.device_errors():
            facts = opened.link.devices.facts()
        name, firmware = ("; ".join(each[key] for each in facts) for key in ("name", "firmware"))
        return {"by": "uhd", "name": name, "firmware": firmware or None}

    def _use(self, mode: Mode) -> _OpenLink:
        if self._open is not None and self._open.mode == mode:
            return self._open
        self._close()
        epoch_ns = time.monotonic_ns()
        config = parse_radio({**self._radio, **vars(mode)})
        link = usrp.UhdLink(config, epoch_ns, doctor.DELAY_NS)
        self._cleanup.callback(link.close)
        ends = self._cleanup.enter_context(packet_ends.running(link.radio(DIRECTION)))
        self._open = _OpenLink(mode, link, ends, epoch_ns)
        return self._open

    def _close(self) -> None:
        self._open = None
        self._cleanup.close()

    @contextmanager
    def at(self, mode: Mode, snr_db: float, _: int) -> Iterator[Carry]:
        """What carries packets at that SNR. Noise is the devices' own: there is no seed for it."""
        opened = self._use(mode)
        gain_db = self._reference_gain_db + snr_db - opened.reference_snr_db
        with usrp.device_errors():
            opened.link.devices.tune_sender(DIRECTION, gain_db)
        yield lambda _, packets: self._carry(opened, packets)

    def _carry(self, opened: _OpenLink, packets: list[bytes]) -> list[tuple[int, bytes]]:
        """Raises NoOutcome if devices do not carry some of the packets."""
        found: dict[int, tuple[int, bytes]] = {}
        missing = list(range(len(packets)))
        for _ in range(_ATTEMPTS):
            carried = opened.carry([packets[index] for index in missing])
            for index, (outcome, packet) in zip(missing, carried, strict=True):
                if outcome <= PAYLOAD_ERROR:  # others are the devices'
                    found[index] = outcome, packet
            missing = [index for index in missing if index not in found]
            if not missing:
                return [found[index] for index in range(len(packets))]
            self.resent += len(missing)
        raise NoOutcome(
            f"devices did not carry {len(missing)} of {len(packets)} packets in {_ATTEMPTS}"
            f" attempts: {opened.link.counts()[DIRECTION]}; give a lower --rate"
        )
