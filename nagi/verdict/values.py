# SPDX-License-Identifier: Apache-2.0
"""Values that the certificate compares with its limits, and what is reported with them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from nagi_captures.identities import Nanoseconds
from nagi_contracts.plan import DirectionName
from nagi_contracts.records import HostClock, Information

from nagi.verdict.witnesses import Witnesses

Value = tuple[float, str]  # a measured value, and where it was measured


@dataclass(frozen=True)
class Evidence:
    """Measurements of one run. Keys are the names of the certificate's checks.

    Attributes:
        values: The values of each check.
        information: Further values for the verdict, without limits.
        unknown: The reason for each check that could not be measured, or only in part.
        reasons: Reasons why the run is invalid, in addition to its checks.
        clocks: The estimated clock of each host that does not share the emulator's, as in the
            verdict.
        witnesses: Functions that list the packets from which a check was measured.
        delays: (link, direction) -> how long packets were in a backend before they came to that
            direction, as (identities, times).
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


def merge_evidence(shares: Iterable[Evidence]) -> Evidence:
    """Return the measurements of all shares as one."""
    merged = Evidence()
    for share in shares:
        for name, values in share.values.items():
            merged.values.setdefault(name, []).extend(values)
        for name, reason in share.unknown.items():
            earlier = merged.unknown.get(name)
            merged.unknown[name] = reason if earlier is None else f"{earlier}; {reason}"
        merged.information.extend(share.information)
        merged.reasons.extend(share.reasons)
        merged.clocks.update(share.clocks)
        merged.witnesses.update(share.witnesses)
        merged.delays.update(share.delays)
    return merged
