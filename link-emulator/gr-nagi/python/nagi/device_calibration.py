# SPDX-License-Identifier: Apache-2.0
"""Calibration over radio hardware: the cells of `nagi-sdr calibrate --device`. The SNR at the gain
of `--tx-gain` is measured by probes; other SNRs are that many dB of gain away."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pmt
from gnuradio import gr

from . import air_time, device_doctor, doctor, usrp
from .calibration import PAYLOAD_ERROR, RECEIVED, Mode
from .packet_ends import Ends, Failed
from .radio import RadioConfig, parse_radio

DIRECTION = "forward"
_TRIES = 20  # rounds in which packets that a device did not carry are sent again
_WAIT_S = 0.02  # before the first packet of a batch


class Hardware:
    """Devices on a cable, for one mode at a time. Raises DeviceError and UsrpMissing."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._radio = device_doctor.radio_of(arguments)
        self._reference_db = float(arguments.tx_gain)
        self._mode: Mode | None = None
        self._link: usrp.UhdLink | None = None
        self._snr_db = 0.0
        self._epoch = time.monotonic_ns()
        self._number = 0

    def described(self) -> dict[str, Any]:
        """The device, as tables have it."""
        with usrp.device_errors():
            devices = usrp.Devices(parse_radio(self._radio))
            said = {"by": "uhd", "name": devices.names(), "firmware": devices.firmware() or None}
            devices.close()
        return said

    def _config(self, mode: Mode) -> RadioConfig:
        shape = {"modem": mode.modem, "modulation": mode.modulation, "code_rate": mode.code_rate}
        return parse_radio({**self._radio, **shape})

    def _use(self, mode: Mode) -> usrp.UhdLink:
        if self._link is not None and self._mode == mode:
            return self._link
        self.close()
        self._link = usrp.UhdLink(self._config(mode), self._epoch, doctor.DELAY_NS)
        self._mode = mode
        self._snr_db = self._link.measured[DIRECTION].preamble_snr_db
        self._ends = Ends()
        self._top = gr.top_block("calibration", catch_exceptions=False)
        radio = self._link.radio(DIRECTION)
        self._top.msg_connect(self._ends, "packets", radio, "packets")
        self._top.msg_connect(radio, "outcomes", self._ends, "outcomes")
        self._top.start()
        return self._link

    def close(self) -> None:
        if self._link is not None:
            self._top.stop()
            self._top.wait()
            self._link.close()
        self._link = None

    @contextmanager
    def cell(self, mode: Mode, size: int, snr_db: float, seed: int) -> Iterator[HardwareCell]:
        """Packets at one SNR."""
        link = self._use(mode)
        with usrp.device_errors():
            link.devices.tune_sender(DIRECTION, self._reference_db + snr_db - self._snr_db)
        yield HardwareCell(self, mode, size, [seed, size, round(1000 * (200 + snr_db))])

    def carry(self, mode: Mode, packets: list[bytes]) -> list[tuple[int, bytes]]:
        """Outcomes of packets that follow each other, and what was received."""
        begin = time.monotonic_ns() - self._epoch + int(_WAIT_S * 1e9)
        for packet in packets:
            early_ns = begin - (time.monotonic_ns() - self._epoch)
            time.sleep(max(0, early_ns) * 1e-9)
            self._ends.send(self._number, begin, packet)
            self._number += 1
            begin += air_time.air_time_ns(
                mode.modem,
                mode.modulation,
                int(self._radio["sample_rate_hz"]),
                mode.code_rate,
                len(packet),
            )
        return [_outcome(message) for message in self._ends.collect(len(packets))]

    def counts(self) -> dict[str, int]:
        assert self._link is not None
        return self._link.counts()[DIRECTION]


def _outcome(message: Any) -> tuple[int, bytes]:
    meta = pmt.car(message)
    told = pmt.dict_ref(meta, pmt.intern("outcome"), pmt.from_long(RECEIVED))
    fate = pmt.dict_ref(meta, pmt.intern("fate"), told)
    return int(pmt.to_long(fate)), bytes(pmt.u8vector_elements(pmt.cdr(message)))


class HardwareCell:
    """As calibrate's cells of the simulated channel."""

    def __init__(self, hardware: Hardware, mode: Mode, size: int, seed: list[int]) -> None:
        self._hardware, self._mode, self._size, self._seed = hardware, mode, size, seed

    def outcomes(self, first: int, count: int) -> list[int]:
        """Of so many packets from number `first` on. Those that a device did not carry are sent
        again. Raises Failed."""
        sent = {
            number: np.random.default_rng([*self._seed, number]).bytes(self._size)
            for number in range(first, first + count)
        }
        found: dict[int, int] = {}
        for _ in range(_TRIES):
            missing = [number for number in sent if number not in found]
            if not missing:
                return [found[number] for number in sent]
            carried = self._hardware.carry(self._mode, [sent[i] for i in missing])
            for number, (outcome, packet) in zip(missing, carried, strict=True):
                if outcome <= PAYLOAD_ERROR:  # others are devices'
                    is_other = outcome == RECEIVED and packet != sent[number]
                    found[number] = PAYLOAD_ERROR if is_other else outcome
        raise Failed(
            f"devices did not carry {count - len(found)} of {count} packets in {_TRIES} tries:"
            f" {self._hardware.counts()}"
        )
