# SPDX-License-Identifier: Apache-2.0
"""Read trace files: rates, delays and losses that were recorded elsewhere or written by hand.

mahimahi (rates): a line is an instant in whole milliseconds at which 1504 bytes may leave. Instants
do not decrease, and the trace repeats after the last one, as in mahimahi's link_queue.cc.

steps (rates or delays): a line is an instant and the value from then on. The last line ends the
period, after which the trace repeats. `#` begins a comment; empty lines are ignored.

    0 s, 10 Mb/s
    2 s, 0 Mb/s     # an outage
    2.5 s, 1 Mb/s
    4 s, end

The SNR of a loss model that reads a radio's calibration table also has this format, such as
`0 s, 12 dB`.

loss: a 0 for every packet that arrives and a 1 for every packet that is lost, with any white space
between them; the trace repeats after its last packet. `#` begins a comment.

quantiles (jitter): tables of distributions in netem's format (iproute2 has some, *.dist): whole
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
from nagi_contracts.errors import BadValue, InputError, excerpt, format_value, refuse, split_message
from nagi_contracts.impairments.losses.trace import TraceLossPlan
from nagi_contracts.impairments.snr import SnrTracePlan
from nagi_contracts.impairments.steps import LATEST, find_instant_problem
from nagi_contracts.traces import OpportunityTrace, StepTrace
from nagi_contracts.units import Bitrate, Delay, Duration, Level, StepRate, format_bytes
from pydantic import Field


class Quantiles(Contract):
    """The quantiles of a distribution, from the smallest to the largest value."""

    quantiles: list[float] = Field(description="nondecreasing, in standard deviations")


Format = Literal["mahimahi", "steps", "loss", "quantiles"]
Quantity = Literal["rate", "delay", "snr"]
Trace = OpportunityTrace | StepTrace | SnrTracePlan | TraceLossPlan | Quantiles

MAHIMAHI_BYTES = 1504  # mahimahi's PACKET_SIZE: Ethernet's MTU and 4 bytes of its TUN device
NETEM_SCALE = 8192  # a standard deviation in netem's tables
MAX_ENTRIES = 2_000_000  # packets of a loss trace, or lines of any trace: they are held in memory
MAX_BYTES = 100_000_000

_VALUES: dict[Quantity, type[StepRate] | type[Delay] | type[Level]] = {
    "rate": StepRate,
    "delay": Delay,
    "snr": Level,
}


def read_trace(path: Path, format_: Format, quantity: Quantity = "rate") -> Trace:
    """Read a trace file. If the file has not changed since an earlier call, return the same trace.

    Args:
        path: Path of the file.
        format_: Format of the file.
        quantity: Quantity of the values, if the format is `steps`.

    Raises:
        InputError: If the file is wrong; names file and line of the first mistake.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise _make_read_error(path, error.strerror or str(error)) from None
    if not stat.S_ISREG(status.st_mode):
        kind = "Is a directory" if stat.S_ISDIR(status.st_mode) else "Is not a regular file"
        raise _make_read_error(path, kind)
    if status.st_size > MAX_BYTES:
        raise refuse(
            f"the file has {format_bytes(status.st_size)}, more than {format_bytes(MAX_BYTES)}",
            "give a part of it, because a trace repeats after its end",
            file=str(path),
        )
    return _read_cached_version(
        path, format_, quantity, (status.st_ino, status.st_size, status.st_mtime_ns)
    )


@lru_cache(maxsize=16)
def _read_cached_version(
    path: Path, format_: Format, quantity: Quantity, version: tuple[int, int, int]
) -> Trace:
    """Read a trace, from the cache if all arguments are those of an earlier call.

    A change of the file changes `version` (inode, size, time of change).
    """
    if format_ == "loss":
        return _read_loss(path)
    if format_ == "quantiles":
        return _read_quantiles(path)
    trace = _read_mahimahi(path) if format_ == "mahimahi" else _read_steps(path, quantity)
    problem = None if isinstance(trace, SnrTracePlan) else find_mean_problem(trace, quantity)
    if problem is not None:
        raise refuse(problem.what, problem.cure, file=str(path))
    return trace


def find_mean_problem(trace: OpportunityTrace | StepTrace, quantity: Quantity) -> BadValue | None:
    """Return an error if links do not support the mean rate of a trace.

    Return None if links support it, or if `quantity` is not "rate".
    """
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
    """Read a trace in mahimahi's format: instants in whole milliseconds, one per line."""
    instants: list[int] = []
    for number, line in _read_lines(path):
        if re.fullmatch(r"[0-9]+", line, re.ASCII) is None:
            message = (
                f"not a number of milliseconds: {format_value(line)}" if line else "an empty line"
            )
            raise refuse(
                message,
                "write one whole number per line, and nothing else",
                file=str(path),
                line=number,
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
        raise refuse("the file has no line", "write one instant per line", file=str(path))
    if instants[-1] == 0:
        raise refuse(
            "the trace lasts 0 ms",
            "end it with a later instant, after which it repeats",
            file=str(path),
            line=len(instants),
        )
    return OpportunityTrace(opportunities_ns=instants, bytes=MAHIMAHI_BYTES, period_ns=instants[-1])


def _read_steps(path: Path, quantity: Quantity) -> StepTrace | SnrTracePlan:
    """Read steps of an instant and a value, up to the line that ends the period."""
    kind = _VALUES[quantity]
    steps: list[tuple[int, float]] = []
    previous: Duration | None = None
    number = 0
    lines = _read_lines(path, comments=True)
    for number, line in lines:
        try:
            instant_text, comma, value_text = (part.strip() for part in line.partition(","))
            if not comma:
                raise BadValue(
                    f"not a step: {format_value(line)}", f"write it like '2 s, {kind.example}'"
                )
            instant = Duration.parse(instant_text)
            is_end = value_text == "end"
            if is_end and previous is None:
                raise BadValue("no step before the end", "give the value at 0 s first")
            problem = find_instant_problem(instant, previous)
            if problem is not None:
                raise problem
            if is_end:
                break
            steps.append((instant.value, kind.parse(value_text).value))
            previous = instant
        except ValueError as error:
            raise refuse(*split_message(error), file=str(path), line=number) from None
    else:
        raise refuse(
            "the trace has no end" if steps else "the file has no step",
            "end it with a line such as '4 s, end', after which it repeats",
            file=str(path),
            line=number,
        )
    line_after_end = next(lines, None)
    if line_after_end is not None:
        raise refuse("a line after the end", "remove it", file=str(path), line=line_after_end[0])
    if quantity == "rate" and not any(rate for _, rate in steps):
        raise refuse("the rate is always 0", "give a step another rate", file=str(path))
    if quantity == "snr":
        return SnrTracePlan(steps=steps, period_ns=instant.value)
    return StepTrace(steps=[(start, int(value)) for start, value in steps], period_ns=instant.value)


def _read_loss(path: Path) -> TraceLossPlan:
    """Read a loss trace: 1 for each packet that is lost, 0 for each other packet."""
    lost: list[int] = []
    length = 0
    for number, line in _read_lines(path, comments=True):
        packets = "".join(line.split())
        other = re.search("[^01]", packets)
        if other is not None:
            raise refuse(
                f"not a packet: {format_value(other[0])}",
                "write 1 for a packet that is lost and 0 for any other",
                file=str(path),
                line=number,
            )
        lost += [length + match.start() for match in re.finditer("1", packets)]
        length += len(packets)
        if length > MAX_ENTRIES:
            raise _make_length_error("packets", path, number)
    if not length:
        raise refuse("the file has no packet", "write 0 or 1 for each packet", file=str(path))
    return TraceLossPlan(lost=lost, length=length)


def _read_quantiles(path: Path) -> Quantiles:
    """Read a distribution in the format of netem's tables."""
    values: list[float] = []
    for number, line in _read_lines(path, comments=True):
        for word in line.split():
            if re.fullmatch(r"-?[0-9]{1,6}", word, re.ASCII) is None:
                raise refuse(
                    f"not a whole number: {format_value(word)}",
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
            "the file has no number", "use a table of iproute2, such as normal.dist", file=str(path)
        )
    return Quantiles(quantiles=values)


def _read_lines(path: Path, *, comments: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the numbers and texts of a file's lines, without white space at both ends.

    Args:
        path: The file.
        comments: Whether `#` begins a comment. Comments are removed then, and lines without other
            text are left out.

    Raises:
        InputError: If the file is not a text in UTF-8, or has too many lines.
    """
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if number > MAX_ENTRIES:
                    raise _make_length_error("lines", path, number)
                text = (line.partition("#")[0] if comments else line).strip()
                if text or not comments:
                    yield number, text
    except UnicodeDecodeError:
        raise _make_read_error(path, "Is not a text in UTF-8") from None
    except OSError as error:
        raise _make_read_error(path, error.strerror or str(error)) from None


def _make_length_error(noun: str, path: Path, line: int) -> InputError:
    return refuse(
        f"more than {MAX_ENTRIES:,} {noun}",
        "give a part of it, because a trace repeats after its end",
        file=str(path),
        line=line,
    )


def _make_read_error(path: Path, reason: str) -> InputError:
    return refuse(f"cannot read it: {reason}", "give the path of a trace file", file=str(path))
