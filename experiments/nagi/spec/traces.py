# SPDX-License-Identifier: Apache-2.0
"""Trace files: rates, delays and losses that were recorded elsewhere, or written by hand.

mahimahi (rates): a line is an instant in whole milliseconds at which 1504 bytes may leave. Instants
do not decrease, and the trace repeats after the last one, as in mahimahi's link_queue.cc.

steps (rates or delays): a line is an instant and the value from then on; the last line ends the
period, after which the trace repeats. `#` begins a comment; empty lines mean nothing.

    0 s, 10 Mb/s
    2 s, 0 Mb/s     # an outage
    2.5 s, 1 Mb/s
    4 s, end

SNRs of losses by a radio's table have steps, too: `0 s, 12 dB`.

loss: a 0 for every packet that arrives and a 1 for every packet that is lost, with white space
wherever it is wanted; the trace repeats after its last packet. `#` begins a comment.

quantiles (jitter): tables of distributions as netem has them (iproute2 brings some, *.dist): whole
numbers in 1/8192 of a standard deviation, nondecreasing, with white space between them. `#` begins
a comment.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from functools import lru_cache
from math import floor
from pathlib import Path
from typing import Literal

from nagi_contracts.base import Contract
from nagi_contracts.bounds import get_integer_range
from nagi_contracts.errors import BadValue, InputError, excerpt, in_two, refuse, shown
from nagi_contracts.impairments.losses.trace import TraceLossPlan
from nagi_contracts.impairments.snr import SnrTracePlan
from nagi_contracts.impairments.steps import LATEST, find_instant_problem
from nagi_contracts.traces import OpportunityTrace, StepTrace
from nagi_contracts.units import Bitrate, Delay, Duration, Level, StepRate, in_bytes
from pydantic import Field


class Quantiles(Contract):
    """A table of a distribution."""

    quantiles: list[float] = Field(description="nondecreasing, in standard deviations")


Format = Literal["mahimahi", "steps", "loss", "quantiles"]
Quantity = Literal["rate", "delay", "snr"]
Trace = OpportunityTrace | StepTrace | SnrTracePlan | TraceLossPlan | Quantiles

MAHIMAHI_BYTES = 1504  # mahimahi's PACKET_SIZE: Ethernet's MTU and 4 bytes of its TUN device
NETEM_SCALE = 8192  # of netem's tables: a standard deviation
MOST = 2_000_000  # packets of a loss trace, or lines of any: they are held in memory
MAX_BYTES = 100_000_000

_VALUES: dict[Quantity, type[StepRate] | type[Delay] | type[Level]] = {
    "rate": StepRate,
    "delay": Delay,
    "snr": Level,
}


def read_trace(path: Path, format_: Format, quantity: Quantity = "rate") -> Trace:
    """Reads the trace in `path`; `quantity` says what the values of a steps file are.

    Raises InputError naming file and line of the first thing that is wrong.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    if not stat.S_ISREG(status.st_mode):
        kind = "Is a directory" if stat.S_ISDIR(status.st_mode) else "Is not a regular file"
        raise _unreadable(path, kind)
    if status.st_size > MAX_BYTES:
        raise refuse(
            f"the file has {in_bytes(status.st_size)}, more than {in_bytes(MAX_BYTES)}",
            "give a part of it: the trace repeats",
            file=str(path),
        )
    return _read(path, format_, quantity, (status.st_ino, status.st_size, status.st_mtime_ns))


@lru_cache(maxsize=16)
def _read(path: Path, format_: Format, quantity: Quantity, version: tuple[int, int, int]) -> Trace:
    """The trace in `path`. All points of an experiment share it while the file's `version` (inode,
    size, time of change) stays."""
    if format_ == "loss":
        return _read_loss(path)
    if format_ == "quantiles":
        return _read_quantiles(path)
    trace = _read_mahimahi(path) if format_ == "mahimahi" else _read_steps(path, quantity)
    problem = None if isinstance(trace, SnrTracePlan) else problem_with_mean(trace, quantity)
    if problem is not None:
        raise refuse(problem.what, problem.cure, file=str(path))
    return trace


def problem_with_mean(trace: OpportunityTrace | StepTrace, quantity: Quantity) -> BadValue | None:
    """Why a link cannot have the mean rate of `trace`. None: it can, or these are delays."""
    if quantity != "rate":
        return None
    minimum, maximum = get_integer_range("rate_bps")
    mean = floor(trace.exact_mean)
    if mean < minimum:
        return BadValue(
            f"less than {Bitrate(minimum)} on average", "give more, or a shorter period"
        )
    if mean > maximum:
        return BadValue(f"more than {Bitrate(maximum)} on average", "give less, or a longer period")
    return None


def _read_mahimahi(path: Path) -> OpportunityTrace:
    instants: list[int] = []
    for number, line in _lines(path):
        if re.fullmatch(r"[0-9]+", line, re.ASCII) is None:
            what = f"not a number of milliseconds: {shown(line)}" if line else "an empty line"
            raise refuse(
                what, "write one whole number a line, and nothing else", file=str(path), line=number
            )
        if len(line) > 19 or int(line) * 10**6 > LATEST.value:
            raise refuse(
                f"{excerpt(line)} ms is too late",
                f"give at most {LATEST}",
                file=str(path),
                line=number,
            )
        instant = int(line) * 10**6
        if instants and instant < instants[-1]:
            raise refuse(
                f"{line} ms is before {instants[-1] // 10**6} ms",
                "sort the lines: instants do not decrease",
                file=str(path),
                line=number,
            )
        instants.append(instant)
    if not instants:
        raise refuse("the file has no line", "write the instants, one a line", file=str(path))
    if instants[-1] == 0:
        raise refuse(
            "the trace lasts 0 ms",
            "end it with a later instant, after which it repeats",
            file=str(path),
            line=len(instants),
        )
    return OpportunityTrace(opportunities_ns=instants, bytes=MAHIMAHI_BYTES, period_ns=instants[-1])


def _read_steps(path: Path, quantity: Quantity) -> StepTrace | SnrTracePlan:
    kind = _VALUES[quantity]
    steps: list[tuple[int, float]] = []
    before: Duration | None = None
    number = 0
    lines = _lines(path, comments=True)
    for number, line in lines:
        try:
            at_text, comma, value_text = (part.strip() for part in line.partition(","))
            if not comma:
                raise BadValue(f"not a step: {shown(line)}", f"write it like '2 s, {kind.example}'")
            at = Duration.parse(at_text)
            is_end = value_text == "end"
            if is_end and before is None:
                raise BadValue("no step before the end", "give the value at 0 s first")
            problem = find_instant_problem(at, before)
            if problem is not None:
                raise problem
            if is_end:
                break
            steps.append((at.value, kind.parse(value_text).value))
            before = at
        except ValueError as error:
            raise refuse(*in_two(error), file=str(path), line=number) from None
    else:
        raise refuse(
            "the trace has no end" if steps else "the file has no step",
            "say when the trace repeats, in a last line like '4 s, end'",
            file=str(path),
            line=number,
        )
    rest = next(lines, None)
    if rest is not None:
        raise refuse("a line after the end", "remove it", file=str(path), line=rest[0])
    if quantity == "rate" and not any(rate for _, rate in steps):
        raise refuse("the rate is always 0", "give a step another rate", file=str(path))
    if quantity == "snr":
        return SnrTracePlan(steps=steps, period_ns=at.value)
    return StepTrace(steps=[(start, int(value)) for start, value in steps], period_ns=at.value)


def _read_loss(path: Path) -> TraceLossPlan:
    lost: list[int] = []
    length = 0
    for number, line in _lines(path, comments=True):
        packets = "".join(line.split())
        wrong = re.search("[^01]", packets)
        if wrong is not None:
            raise refuse(
                f"not a packet: {shown(wrong[0])}",
                "write 1 for a packet that is lost and 0 for any other",
                file=str(path),
                line=number,
            )
        lost += [length + match.start() for match in re.finditer("1", packets)]
        length += len(packets)
        if length > MOST:
            raise _too_long("packets", path, number)
    if not length:
        raise refuse("the file has no packet", "write 0 or 1 for each packet", file=str(path))
    return TraceLossPlan(lost=lost, length=length)


def _read_quantiles(path: Path) -> Quantiles:
    values: list[float] = []
    for number, line in _lines(path, comments=True):
        for word in line.split():
            if re.fullmatch(r"-?[0-9]{1,6}", word, re.ASCII) is None:
                raise refuse(
                    f"not a whole number: {shown(word)}",
                    f"write quantiles in 1/{NETEM_SCALE} of a standard deviation",
                    file=str(path),
                    line=number,
                )
            value = int(word) / NETEM_SCALE
            if values and value < values[-1]:
                raise refuse(
                    f"{word} is less than the number before it",
                    "sort them: quantiles do not decrease",
                    file=str(path),
                    line=number,
                )
            values.append(value)
    if not values:
        raise refuse(
            "the file has no number", "give one of iproute2: dpkg -L iproute2", file=str(path)
        )
    return Quantiles(quantiles=values)


def _lines(path: Path, *, comments: bool = False) -> Iterator[tuple[int, str]]:
    """The lines of `path` with their numbers, without white space at their ends; where there may be
    `comments`, without these, and without what is empty then."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if number > MOST:
                    raise _too_long("lines", path, number)
                text = (line.partition("#")[0] if comments else line).strip()
                if text or not comments:
                    yield number, text
    except UnicodeDecodeError:
        raise _unreadable(path, "Is not a text in UTF-8") from None
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None


def _too_long(what: str, path: Path, line: int) -> InputError:
    return refuse(
        f"more than {MOST:,} {what}",
        "give a part of it: the trace repeats",
        file=str(path),
        line=line,
    )


def _unreadable(path: Path, reason: str) -> InputError:
    return refuse(f"cannot read it: {reason}", "give the path of a trace file", file=str(path))
