# SPDX-License-Identifier: Apache-2.0
"""Implements `nagi-sdr calibrate`: measures packet error rates over SNR and packet length."""

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
    choose_next_batch,
    resume_from,
)
from .device_calibration import DeviceChannel
from .radio import SimulatedRadio, parse_radio
from .version import VERSION

SAVE_S = 2.0  # interval at which the table is saved
_INTERVAL_NS = 10_000_000  # between packets over the simulated channel
Channel = Callable[[Mode, float, int], AbstractContextManager[Carry]]
"""A function that opens the channel for a mode, at an SNR in dB, with a seed of the noise. The
context manager that it returns yields a function that carries packets."""

_CHOICES = {"modem": air_time.MODEMS, "modulation": tuple(air_time.BITS_PER_SYMBOL)}


@contextmanager
def open_simulated_channel(mode: Mode, snr_db: float, seed: int) -> Iterator[Carry]:
    """Yield a function that carries packets over gr-nagi's channel with noise only."""
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
    with packet_ends.run_radio(SimulatedRadio(radio, "forward", seed, 0)) as ends:

        def carry(first: int, packets: list[bytes]) -> list[tuple[int, bytes]]:
            for number, packet in enumerate(packets, first):
                ends.send(number, number * _INTERVAL_NS, packet)
            return ends.collect(len(packets))

        yield carry


def _measure_outcomes(carry: Carry, seed: int, size: int, first: int, count: int) -> list[int]:
    """Carry `count` packets, numbered from `first`, and return their outcomes.

    The packets' contents depend on the seed. A packet that was received with other contents counts
    as a payload error even if its checksum is right.
    """
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
    channel: Channel = open_simulated_channel,
) -> None:
    """Send packets until every curve of a table is finished.

    Args:
        table: The curves to measure. The function adds cells to them.
        save: A function that writes the table. It is called every SAVE_S seconds and at the end.
        say: A function that prints a line of progress.
        channel: A function that opens the channel for the packets of a cell.
    """
    saved_s = time.monotonic()
    for index, ((mode, size), curve) in enumerate(table.curves.items(), 1):
        title = f"curve {index} of {len(table.curves)}: {mode.name}, {size} bytes"
        while (batch := choose_next_batch(curve, table.settings)) is not None:
            snr_db = batch[0]
            cell = curve.setdefault(snr_db, Cell())
            name = f"{table.settings.seed} {mode.name} {size} {snr_db!r}"
            seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
            with channel(mode, snr_db, seed) as carry:
                while batch is not None and batch[0] == snr_db:
                    for outcome in _measure_outcomes(carry, seed, size, cell.packets, batch[1]):
                        cell.add(outcome)
                    if time.monotonic() - saved_s > SAVE_S:
                        save()
                        saved_s = time.monotonic()
                    batch = choose_next_batch(curve, table.settings)
            say(f"{title}: {snr_db:g} dB: {cell.lost} of {cell.packets} packets lost")
    save()


def _parse_list(text: str, choices: tuple[str, ...], name: str) -> list[str]:
    values = [value.strip() for value in text.split(",")]
    for value in values:
        if value not in choices:
            raise TableError(f"--{name} {value!r}: give one or more of {', '.join(choices)}")
    return list(dict.fromkeys(values))


def _parse_lengths(text: str) -> list[int]:
    try:
        lengths = sorted({int(value) for value in text.split(",")})
    except ValueError:
        lengths = []
    if not lengths or lengths[0] < 1 or lengths[-1] > air_time.LONGEST_PACKET:
        raise TableError(
            f"--lengths {text!r}: give lengths of 1 to {air_time.LONGEST_PACKET} bytes, such as"
            " 40,576,1500"
        )
    return lengths


def _parse_modes(arguments: argparse.Namespace) -> list[Mode]:
    """Return the modes of the radios in the file `--config`, or all combinations of the options.

    With `--config`, the options for modem, modulation and code rate are ignored.
    """
    if arguments.config is not None:
        return list(
            dict.fromkeys(
                Mode(link.radio.modem, modulation, code_rate)
                for link in settings.read_settings(arguments.config).radios
                for modulation, code_rate in zip(
                    link.radio.modulations, link.radio.code_rates, strict=True
                )
            )
        )
    modems, modulations = (
        _parse_list(getattr(arguments, name), choices, name) for name, choices in _CHOICES.items()
    )
    rates = _parse_list(arguments.code_rate, tuple(air_time.CODE_RATES), "code-rate")
    return [
        Mode(modem, modulation, rate)
        for modem in modems
        for modulation in modulations
        for rate in rates
    ]


def _parse_settings(arguments: argparse.Namespace) -> CalibrationSettings:
    """Return the settings; raise TableError if an option is out of range."""
    for name, is_wrong in (
        ("precision", not 0.001 <= arguments.precision <= 1),
        ("step", not 0.05 <= arguments.step <= 2),
        ("min-packets", arguments.min_packets < 20),
        ("max-packets", not arguments.min_packets <= arguments.max_packets <= 10**7),
        ("seed", not 0 <= arguments.seed < 2**64),
    ):
        if is_wrong:
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
        "table", type=Path, help="file to write; a calibration in an existing file is resumed"
    )
    parser.add_argument("--config", help="calibrate the modems of the radios in this file")
    parser.add_argument("--modem", default="ofdm", help="one or more: ofdm,single_carrier")
    parser.add_argument("--modulation", default="qpsk", help="one or more: bpsk,qpsk,16qam")
    parser.add_argument("--code-rate", default="none", help="one or more: none,1/2")
    parser.add_argument("--lengths", default="40,250,1000,1500", help="lengths in IP bytes")
    parser.add_argument("--seed", type=int, default=1)
    device_doctor.add_arguments(parser)
    parser.add_argument(
        "--precision",
        type=float,
        default=0.1,
        help="half the 95 %% confidence interval, divided by the loss rate; 0.001 to 1",
    )
    parser.add_argument("--min-packets", type=int, default=100, help="at each SNR, 20 or more")
    parser.add_argument("--max-packets", type=int, default=10_000, help="at each SNR")
    parser.add_argument("--step", type=float, default=0.5, help="dB between SNRs, 0.05 to 2")


def main(arguments: argparse.Namespace, say: Callable[[str], None]) -> int:
    """Run `nagi-sdr calibrate` and return its exit status.

    The exit status is 0 when all curves are finished. It is 130 after an interrupt; the table then
    has the measurements so far. Progress goes to `say`, a summary to standard output.

    Raises:
        TableError: An option is wrong, or the table cannot be written or resumed.
    """
    gr.logging().set_default_level(gr.log_levels.warn)
    modes, lengths = _parse_modes(arguments), _parse_lengths(arguments.lengths)
    with ExitStack() as cleanup:
        channel: Channel = open_simulated_channel
        device = {"by": "simulated", "name": "gr-nagi channel", "firmware": None}
        if arguments.device:
            devices = cleanup.enter_context(DeviceChannel(device_doctor.build_radio(arguments)))
            channel, device = devices.open_at, devices.describe(modes[0])
        table = Table(
            _parse_settings(arguments),
            {
                "device": device,
                "nagi": VERSION,
                "gnuradio": gr.version(),
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
            },
        )
        resume_from(arguments.table, table)
        for mode in modes:
            for size in lengths:
                table.curves.setdefault((mode, size), {})
        try:
            table.write(arguments.table)  # reports a file that cannot be written before measuring
        except OSError as error:
            raise TableError(f"{arguments.table}: cannot write it: {error.strerror}") from error
        for number in (signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup(1)
                signal.signal(number, signal.default_int_handler)
        try:
            calibrate(table, lambda: table.write(arguments.table), say, channel)
        except KeyboardInterrupt:
            table.write(arguments.table)
            say(f"interrupted; run this command again to resume {arguments.table}")
            return 130
        if arguments.device and devices.resent:
            say(f"{devices.resent} packets were sent again because devices had not carried them")
    packets = sum(cell.packets for curve in table.curves.values() for cell in curve.values())
    print(f"{arguments.table}: {len(table.curves)} curves of {packets:,} packets", file=sys.stdout)
    return 0
