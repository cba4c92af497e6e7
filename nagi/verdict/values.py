# SPDX-License-Identifier: Apache-2.0
"""Values that the certificate compares with its limits, and what is reported with them."""

from __future__ import annotations

from dataclasses import dataclass, field

from nagi_contracts.records import HostClock, Information

from nagi.verdict.witnesses import Witnesses

Value = tuple[float, str]  # a measured value, and where it was measured


@dataclass(frozen=True)
class Evidence:
    """The measurements of one run. Keys are the names of the certificate's checks.

    `unknown` has the reason for each check that could not be measured, or only in part. `clocks`
    has the estimated clock of each host that does not share the emulator's, as in the verdict.
    """

    values: dict[str, list[Value]]
    information: list[Information]
    unknown: dict[str, str] = field(default_factory=dict)
    clocks: dict[str, HostClock | None] = field(default_factory=dict)
    witnesses: dict[str, Witnesses] = field(default_factory=dict)
