# SPDX-License-Identifier: Apache-2.0
"""The limits of the certificate's checks: limits for every run, and limits of each backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nagi_contracts.plan import RunPlan

from nagi.backends.registry import load_verifiers


@dataclass(frozen=True)
class Limit:
    """The largest value that a check permits.

    Attributes:
        maximum: The limit.
        unit: Unit of the limit and of the check's values.
        description: What the check measures, for reports.
        timing: Whether a busy machine can be the reason that a run exceeds the limit.
        virtual: The limit for runs in virtual time; None if `maximum` is also the limit for these
            runs.
        order: Position among the checks that only some runs have, smallest first. Checks with the
            same order are in the order of their backends.
    """

    maximum: float
    unit: str
    description: str
    timing: bool = False
    virtual: float | None = None
    order: int = 9  # after the checks of nagi's own backends

    def maximum_for(self, virtual_time: bool) -> float:
        """Return the limit for runs in virtual time, or for runs in real time."""
        return self.maximum if self.virtual is None or not virtual_time else self.virtual


# Timing limits suit paths of tens of milliseconds: 1 ms is 1 % of a round trip of 100 ms, which is
# common in papers. In virtual time, programs are late only because reading the clock takes 256 ns,
# and a program reads it several times per packet.
LIMITS: dict[str, Limit] = {
    "transit_error_median": Limit(
        0.1, "ms", "packets sent later than due, median", timing=True, virtual=0.01
    ),
    "transit_error_p99": Limit(
        1.0, "ms", "packets sent later than due, 99th percentile", timing=True, virtual=0.02
    ),
    "transit_error_max": Limit(
        25.0, "ms", "packets sent later than due, the latest", timing=True, virtual=0.05
    ),
    "capture_transit_median": Limit(
        0.2,
        "ms",
        "error of the time between captures, against the time on the links, median",
        timing=True,
        virtual=0.02,
    ),
    "capture_transit_p99": Limit(
        2.0,
        "ms",
        "error of the time between captures, against the time on the links, 99th percentile",
        timing=True,
        virtual=0.05,
    ),
    "capture_transit_max": Limit(
        25.0,
        "ms",
        "error of the time between captures, against the time on the links, the worst packet",
        timing=True,
        virtual=0.1,
    ),
    "capture_unmatched": Limit(
        1.0, "%", "received packets that the sender's capture or the emulator's record lacks"
    ),
    "rate_error": Limit(
        0.1,
        "%",
        "error of the rate while packets wait, against the planned rate",
        timing=True,
        virtual=0.01,
    ),
    "goodput_surplus": Limit(
        0, "bytes", "payload received beyond what the path can carry, so that AGI is impossible"
    ),
    "replay_differences": Limit(
        0, "packets", "packets whose fate or departure time differs from the model's"
    ),
    "changes": Limit(0, "changes", "changes of links during the run"),
    "records_lost": Limit(0, "records", "packets and drops missing in the emulator's record"),
    "arrival_lateness_p99": Limit(
        0.5,
        "ms",
        "time from arrival until the emulator read the packet, 99th percentile",
        timing=True,
        virtual=0.001,
    ),
    "arrival_lateness_max": Limit(
        25.0,
        "ms",
        "time from arrival until the emulator read the packet, the longest",
        timing=True,
        virtual=0.001,
    ),
    "unaccounted": Limit(0, "packets", "packets that were not delivered, dropped or still queued"),
    "emulator_drops": Limit(
        0, "packets", "packets lost before the emulator read them", timing=True
    ),
    "merged_segments": Limit(
        0, "packets", "frames longer than the MTU: an offload merges segments"
    ),
    # nagi-link completes the checksums, so these packets arrived. But an offload was on at a host,
    # and that host's captures differ from the emulator's record.
    "missing_checksums": Limit(
        0, "packets", "packets without checksum, because an offload was on at their host"
    ),
    "send_failures": Limit(0, "packets", "packets of the emulator that the kernel refused to send"),
    "capture_drops": Limit(0, "packets", "packets missing in a capture", timing=True),
    "offloads": Limit(0, "offloads", "harmful offloads that were on at a host"),
    "memory_pressures": Limit(
        0, "times", "times that a host's TCP ran short of memory, and may have discarded segments"
    ),
    "agent_lateness": Limit(
        0.1,
        "s",
        "time by which an agent began a phase late",
        timing=True,
        virtual=0.001,
    ),
    # A host may add the same time to the round trip as an emulator. See host_response.py.
    "host_response_median": Limit(
        0.2,
        "ms",
        "ACKs and data sent later than the host's TCP permits, median",
        timing=True,
        virtual=0.01,
    ),
    "host_response_p99": Limit(
        1.0,
        "ms",
        "ACKs and data sent later than the host's TCP permits, 99th percentile",
        timing=True,
        virtual=0.05,
    ),
    "host_response_max": Limit(
        25.0,
        "ms",
        "ACKs and data sent later than the host's TCP permits, the latest",
        timing=True,
        virtual=0.1,
    ),
}


# Additional checks of runs with a scheme that both hosts of a connection have to run.
BOTH_ENDS_LIMITS: dict[str, Limit] = {
    "scheme_fallbacks": Limit(
        0,
        "connections",
        "connections that ran as reno, because the other host did not run their scheme",
        order=1,
    ),
}


def get_limits(plan: RunPlan) -> dict[str, Limit]:
    """Return check -> limit for the checks that a run of `plan` has, in the order of reports.

    The checks of every run come first. The other checks follow by Limit.order.
    """
    additional: dict[str, Limit] = {}
    for verifier in load_verifiers().values():
        additional |= verifier.get_limits(plan)
    if any(flow.receiver_control == flow.congestion_control for flow in plan.flows):
        additional |= BOTH_ENDS_LIMITS
    return LIMITS | dict(sorted(additional.items(), key=lambda item: item[1].order))


def list_limits() -> dict[str, Mapping[str, Limit]]:
    """Return heading -> check -> limit for all checks of nagi.

    The heading says which runs have the checks, such as `Every run`. The manual has a table under
    each heading.
    """
    groups: dict[str, Mapping[str, Limit]] = {"Every run": LIMITS}
    for verifier in load_verifiers().values():
        groups |= verifier.limits
    return groups | {"Runs with a scheme that both ends run": BOTH_ENDS_LIMITS}


def get_max_lateness_ns(virtual_time: bool) -> int:
    """Return the largest lateness, in ns, that packets in captures of a valid run may have.

    This is the permitted lateness in the emulator plus the permitted error between captures.
    `virtual_time` selects the limits for virtual time, not those for real time.
    """
    limits = (LIMITS["transit_error_max"], LIMITS["capture_transit_max"])
    return round(sum(limit.maximum_for(virtual_time) for limit in limits) * 1e6)
