# SPDX-License-Identifier: Apache-2.0
"""nagi-sdr calibrate: how often a radio's receiver loses packets, over SNR and length."""

from __future__ import annotations

import argparse
import hashlib
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from gnuradio import gr

from . import air_time, device_doctor, packet_ends, settings
from .calibration import (
    PAYLOAD_ERROR,
    RECEIVED,
    CalibrationSettings,
    Carry,
    Cell,
    Mode,
    Table,
    TableError,
    go_on_with,
    next_batch,
)
from .device_calibration import DeviceChannel
from .radio import SimulatedRadio, parse_radio
from .version import VERSION

SAVE_S = 2.0
_BETWEEN_NS = 10_000_000  # packets of the simulated channel
Channel = Callable[[Mode, float, int], AbstractContextManager[Carry]]
"""What carries packets in a mode at an SNR in dB, with a seed of its noise."""

_NAMED = {"modem": air_time.MODEMS, "modulation": tuple(air_time.BITS_PER_SYMBOL)}


@contextmanager
def simulated(mode: Mode, snr_db: float, seed: int) -> Iterator[Carry]:
    """gr-nagi's channel, with noise alone."""
    channel = {"snr_db": snr_db}
    radio = parse_radio(
        {
            "by": "simulated",
            **vars(mode),
            "sample_rate_hz": 1_000_000,
            "forward": channel,
            "backward": channel,
        }
    )
    with packet_ends.running(SimulatedRadio(radio, "forward", seed, 0)) as ends:

        def carry(first: int, packets: list[bytes]) -> list[tuple[int, bytes]]:
            for number, packet in enumerate(packets, first):
                ends.send(number, number * _BETWEEN_NS, packet)
            return ends.collect(len(packets))

        yield carry


def _outcomes(carry: Carry, seed: int, size: int, first: int, count: int) -> list[int]:
    """Of `count` packets from number `first` on, which follow from the seed. A packet that comes
    out otherwise than it went in has a payload error, whatever its checksum says."""
    sent = [
        np.random.default_rng([seed, number]).bytes(size) for number in range(first, first + count)
    ]
    return [
        PAYLOAD_ERROR if outcome == RECEIVED and received != packet else outcome
        for (outcome, received), packet in zip(carry(first, sent), sent, strict=True)
    ]


def calibrate(
    table: Table,
    save: Callable[[], None],
    say: Callable[[str], None],
    channel: Channel = simulated,
) -> None:
    """Sends packets until every curve is finished. Calls `save` often, and at the end."""
    saved = time.monotonic()
    for index, ((mode, size), curve) in enumerate(table.curves.items(), 1):
        where = f"curve {index} of {len(table.curves)}: {mode.name}, {size} bytes"
        while (batch := next_batch(curve, table.settings)) is not None:
            snr_db = batch[0]
            cell = curve.setdefault(snr_db, Cell())
            name = f"{table.settings.seed} {mode.name} {size} {snr_db!r}"
            seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
            with channel(mode, snr_db, seed) as carry:
                while batch is not None and batch[0] == snr_db:
                    for outcome in _outcomes(carry, seed, size, cell.packets, batch[1]):
                        cell.add(outcome)
                    if time.monotonic() - saved > SAVE_S:
                        save()
                        saved = time.monotonic()
                    batch = next_batch(curve, table.settings)
            say(f"{where}: {snr_db:g} dB: {cell.lost} of {cell.packets} packets lost")
    save()


def _listed(text: str, known: tuple[str, ...], name: str) -> list[str]:
    values = [value.strip() for value in text.split(",")]
    for value in values:
        if value not in known:
            raise TableError(f"--{name} {value!r}: give some of {', '.join(known)}")
    return list(dict.fromkeys(values))


def _lengths(text: str) -> list[int]:
    try:
        lengths = sorted({int(value) for value in text.split(",")})
    except ValueError:
        lengths = []
    if not lengths or lengths[0] < 1 or lengths[-1] > air_time.LONGEST_PACKET:
        raise TableError(
            f"--lengths {text!r}: give bytes from 1 to {air_time.LONGEST_PACKET}, like 40,576,1500"
        )
    return lengths


def _modes(arguments: argparse.Namespace) -> list[Mode]:
    if arguments.config is not None:
        return list(
            dict.fromkeys(
                Mode(link.radio.modem, modulation, code_rate)
                for link in settings.read(arguments.config).radios
                for modulation, code_rate in zip(
                    link.radio.modulations, link.radio.code_rates, strict=True
                )
            )
        )
    modems, modulations = (
        _listed(getattr(arguments, name), known, name) for name, known in _NAMED.items()
    )
    rates = _listed(arguments.code_rate, tuple(air_time.CODE_RATES), "code-rate")
    return [
        Mode(modem, points, rate) for modem in modems for points in modulations for rate in rates
    ]


def _settings(arguments: argparse.Namespace) -> CalibrationSettings:
    for name, wrong in (
        ("precision", not 0.001 <= arguments.precision <= 1),
        ("step", not 0.05 <= arguments.step <= 2),
        ("min-packets", arguments.min_packets < 20),
        ("max-packets", not arguments.min_packets <= arguments.max_packets <= 10**7),
        ("seed", not 0 <= arguments.seed < 2**64),
    ):
        if wrong:
            value = getattr(arguments, name.replace("-", "_"))
            raise TableError(f"--{name} {value}: out of range; see `nagi-sdr calibrate --help`")
    return CalibrationSettings(
        seed=arguments.seed,
        precision=arguments.precision,
        min_packets=arguments.min_packets,
        max_packets=arguments.max_packets,
        step_db=arguments.step,
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "table", type=Path, help="file to write; if it is there, it is gone on with"
    )
    parser.add_argument("--config", help="calibrate the radios of this configuration")
    parser.add_argument("--modem", default="ofdm", help="or several: ofdm,single_carrier")
    parser.add_argument("--modulation", default="qpsk", help="or several: bpsk,qpsk,16qam")
    parser.add_argument("--code-rate", default="none", help="or several: none,1/2")
    parser.add_argument("--lengths", default="40,250,1000,1500", help="IP bytes of packets")
    parser.add_argument("--seed", type=int, default=1)
    device_doctor.add_arguments(parser)
    parser.add_argument(
        "--precision",
        type=float,
        default=0.1,
        help="half a 95 %% confidence interval over the rate, 0.001 to 1",
    )
    parser.add_argument("--min-packets", type=int, default=100, help="at each SNR, 20 or more")
    parser.add_argument("--max-packets", type=int, default=10_000, help="at each SNR")
    parser.add_argument("--step", type=float, default=0.5, help="between SNRs in dB, 0.05 to 2")


def main(arguments: argparse.Namespace, say: Callable[[str], None]) -> int:
    """Exit status 130: interrupted; what has been measured is in the table."""
    gr.logging().set_default_level(gr.log_levels.warn)
    asked, lengths = _modes(arguments), _lengths(arguments.lengths)
    with ExitStack() as cleanup:
        channel: Channel = simulated
        device = {"by": "simulated", "name": "gr-nagi channel", "firmware": None}
        if arguments.device:
            devices = cleanup.enter_context(DeviceChannel(device_doctor.radio_of(arguments)))
            channel, device = devices.at, devices.description(asked[0])
        table = Table(
            _settings(arguments),
            {
                "device": device,
                "nagi": VERSION,
                "gnuradio": gr.version(),
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
            },
        )
        go_on_with(arguments.table, table)
        for mode in asked:
            for size in lengths:
                table.curves.setdefault((mode, size), {})
        try:
            table.write(arguments.table)  # if it cannot be, that is said at once
        except OSError as error:
            raise TableError(f"{arguments.table}: cannot write it: {error.strerror}") from error
        for number in (signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup(1)
                signal.signal(number, signal.default_int_handler)
        try:
            calibrate(table, lambda: table.write(arguments.table), say, channel)
        except KeyboardInterrupt:
            table.write(arguments.table)
            say(f"interrupted; the same command goes on with {arguments.table}")
            return 130
        if arguments.device and devices.resent:
            say(f"{devices.resent} packets were sent again: devices had not carried them")
    packets = sum(cell.packets for curve in table.curves.values() for cell in curve.values())
    print(f"{arguments.table}: {len(table.curves)} curves of {packets:,} packets", file=sys.stdout)
    return 0
