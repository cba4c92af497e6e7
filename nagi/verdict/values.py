# SPDX-License-Identifier: Apache-2.0
"""Values that the certificate compares with limits, and other measurements for the verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nagi_contracts.plan import DirectionName
from nagi_contracts.records import HostClock, Information

if TYPE_CHECKING:
    from nagi_captures.identities import Nanoseconds

    from nagi.verdict.witnesses import Witnesses

Value = tuple[float, str]  # a measured value, and its subject, such as a link and direction


@dataclass(frozen=True)
class Evidence:
    """Measurements of one run. Keys are the names of the certificate's checks.

    Attributes:
        values: The values of each check; an empty list if the check could not be measured.
        information: Further values for the verdict, without limits.
        unknown: Check -> reason why all or some of its values are missing.
        reasons: Reasons why the run is invalid, in addition to exceeded limits.
        clocks: Host whose clock is not the emulator's -> its estimated clock, or None if it could
            not be estimated.
        witnesses: Check -> function that lists the packets from which it was measured.
        delays: (link, direction) -> identities of packets, and the time that each packet spent in
            a backend, such as a switch, before it entered the direction.
    """

    values: dict[str, list[Value]] = field(default_factory=dict)
    information: list[Information] = field(default_factory=list)
    unknown: dict[str, str] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    clocks: dict[str, HostClock | None] = field(default_factory=dict)
    witnesses: dict[str, Witnesses] = field(default_factory=dict)
    delays: dict[tuple[str, DirectionName], tuple[Nanoseconds, Nanoseconds]] = field(
        default_factory=dict
    )


def merge_evidence(sources: Iterable[Evidence]) -> Evidence:
    """Return the measurements of several sources, such as backends, as one.

    If several sources have a check, its values are put into one list, and its `unknown` reasons
    into one text. If several sources have clocks, witnesses or delays with the same key,
    those of the last source are used.
    """
    merged = Evidence()
    for source in sources:
        for name, values in source.values.items():
            merged.values.setdefault(name, []).extend(values)
        for name, reason in source.unknown.items():
            earlier = merged.unknown.get(name)
            merged.unknown[name] = reason if earlier is None else f"{earlier}; {reason}"
        merged.information.extend(source.information)
        merged.reasons.extend(source.reasons)
        merged.clocks.update(source.clocks)
        merged.witnesses.update(source.witnesses)
        merged.delays.update(source.delays)
    return merged
