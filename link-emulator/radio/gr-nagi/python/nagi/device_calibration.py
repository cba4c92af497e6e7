# SPDX-License-Identifier: Apache-2.0
"""Carries the packets of `nagi-sdr calibrate --device` over radio hardware.

When the devices are opened, probes measure the SNR at the transmitter's gain `--tx-gain`. The gain
for another SNR differs from `--tx-gain` by as many dB as the SNRs differ. If a device fails to send
or to receive a packet, the packet is sent again, because the receiver did not cause this loss.
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
_ATTEMPTS = 20  # maximum number of times that a packet is sent
_WAIT_NS = 20_000_000  # before the first packet of a round


@dataclass
class _OpenLink:
    """Synchronised devices with the flowgraph of one mode."""

    mode: Mode
    link: usrp.UhdLink
    ends: PacketEnds
    epoch_ns: int
    sent: int = 0

    @property
    def reference_snr_db(self) -> float:
        """SNR at the configured gain of the transmitter, measured when the devices were opened."""
        return self.link.measured[DIRECTION].preamble_snr_db

    def carry(self, packets: list[bytes]) -> list[tuple[int, bytes]]:
        """Send packets back to back and return the outcome and the received bytes of each."""
        begin_ns = time.monotonic_ns() - self.epoch_ns + _WAIT_NS
        for packet in packets:
            wait_ns = begin_ns - (time.monotonic_ns() - self.epoch_ns)
            time.sleep(max(0, wait_ns) * 1e-9)
            self.ends.send(self.sent, begin_ns, packet)
            self.sent += 1
            begin_ns += self.link.compute_air_time_ns(len(packet))
        return self.ends.collect(len(packets))


class DeviceChannel:
    """The channel from end `a` to end `b` over radio hardware, for one mode at a time.

    The object is a context manager. Its methods raise DeviceError and UsrpMissing.

    Args:
        radio: A radio's configuration, as device_doctor.build_radio returns it.
    """

    def __init__(self, radio: dict[str, Any]) -> None:
        self._radio = radio
        self._reference_gain_db = float(radio["uhd"]["a"]["tx_gain_db"])
        self.resent = 0
        """Number of packets that were sent again."""
        self._open: _OpenLink | None = None
        self._cleanup = ExitStack()

    def __enter__(self) -> DeviceChannel:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def describe(self, mode: Mode) -> dict[str, Any]:
        """Open the devices in `mode`, and return what a table stores under its key `device`."""
        open_link = self._open_mode(mode)
        with usrp.convert_errors():
            facts = open_link.link.devices.list_facts()
        name, firmware = (
            "; ".join(device[key] for device in facts) for key in ("name", "firmware")
        )
        return {"by": "uhd", "name": name, "firmware": firmware or None}

    def _open_mode(self, mode: Mode) -> _OpenLink:
        """Return the open link in `mode`; close a link in another mode first."""
        if self._open is not None and self._open.mode == mode:
            return self._open
        self._close()
        epoch_ns = time.monotonic_ns()
        config = parse_radio({**self._radio, **vars(mode)})
        link = usrp.UhdLink(config, epoch_ns, doctor.DELAY_NS)
        self._cleanup.callback(link.close)
        ends = self._cleanup.enter_context(packet_ends.run_radio(link.make_radio(DIRECTION)))
        self._open = _OpenLink(mode, link, ends, epoch_ns)
        return self._open

    def _close(self) -> None:
        self._open = None
        self._cleanup.close()

    @contextmanager
    def open_at(self, mode: Mode, snr_db: float, _: int) -> Iterator[Carry]:
        """Yield a function that carries packets at the SNR `snr_db`.

        The last argument, the seed of the noise, is ignored, because the devices produce the noise.
        """
        open_link = self._open_mode(mode)
        gain_db = self._reference_gain_db + snr_db - open_link.reference_snr_db
        with usrp.convert_errors():
            open_link.link.devices.tune_sender(DIRECTION, gain_db)
        yield lambda _, packets: self._carry(open_link, packets)

    def _carry(self, open_link: _OpenLink, packets: list[bytes]) -> list[tuple[int, bytes]]:
        """Send packets, and send a packet again if a device failed to send or to receive it.

        Raises:
            NoOutcome: Devices failed to carry a packet in all of _ATTEMPTS attempts.
        """
        results: dict[int, tuple[int, bytes]] = {}
        missing = list(range(len(packets)))
        for _ in range(_ATTEMPTS):
            carried = open_link.carry([packets[index] for index in missing])
            for index, (outcome, packet) in zip(missing, carried, strict=True):
                if outcome <= PAYLOAD_ERROR:  # other outcomes are failures of the devices
                    results[index] = outcome, packet
            missing = [index for index in missing if index not in results]
            if not missing:
                return [results[index] for index in range(len(packets))]
            self.resent += len(missing)
        raise NoOutcome(
            f"devices did not carry {len(missing)} of {len(packets)} packets in {_ATTEMPTS}"
            f" attempts: {open_link.link.read_counts()[DIRECTION]}; give a lower --rate"
        )
