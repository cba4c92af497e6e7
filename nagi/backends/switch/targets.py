# SPDX-License-Identifier: Apache-2.0
"""Define the switch targets: the programs and devices that can execute a switch's P4 pipeline."""

from __future__ import annotations

from dataclasses import dataclass

from nagi_contracts.plan import SwitchTarget

_START_S = 1.0  # time to start a switch and to fill its tables


@dataclass(frozen=True)
class Target:
    """The properties of a switch target that matter for plans."""

    title: str  # name of the target in messages
    shapes: bool = True  # whether its ports can apply rate, queue, marking and loss
    counts_packets: bool = False  # whether rates and queues are in packets, not in bytes
    needs_p4info: bool = False  # whether it needs the P4Info of a user's program
    has_cpu_port: bool = True  # whether users' programs can have a CPU port
    checks_programs: bool = False  # whether users' programs are checked by running nagi-switch
    start_s: float = _START_S  # time to start the switches of a run, in seconds


TARGETS: dict[SwitchTarget, Target] = {
    "nagi": Target(title="nagi-switch", checks_programs=True),
    "bmv2": Target(title="bmv2", counts_packets=True, has_cpu_port=False),
    "p4runtime": Target(
        title="P4Runtime",
        shapes=False,
        needs_p4info=True,
        start_s=_START_S + 4.0,  # server and client import gRPC
    ),
}
