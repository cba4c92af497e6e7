# SPDX-License-Identifier: Apache-2.0
"""Computes register values of the core from a link's configuration.

The settings of a direction have the format of nagi-link's configuration
(link-emulator/model/direction_json.hpp).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from nagi_fpga.register_map import DIRECTION, DIRECTIONS, FIELDS, REGISTERS, VALUES

_CERTAIN = 1 << 64  # a probability of 1
_LONGEST_MEAN_PS = 9.2e18  # longer means (less than one event in 100 days) count as no events
_SHORTEST_MEAN_PS = 1000.0  # shorter intervals between events cannot be resolved
_PROBABILITIES = ("loss_in_good", "loss_in_bad", "good_to_bad", "bad_to_good")
_KEYS = {"rate_bps", "overhead_bytes", "queue", "mark", "delay_ns", "loss", "keep_order"}


class Unsupported(ValueError):
    """The core does not support a setting.

    Attributes:
        key: Key of the setting in the direction's configuration.
        what: Description of the problem.
    """

    def __init__(self, key: str, what: str) -> None:
        super().__init__(f"{key}: {what}")
        self.key = key
        self.what = what


def compute_direction_registers(direction: Mapping[str, Any]) -> dict[str, int]:
    """Return the value of each register of a direction, keyed by the register's name.

    A missing `rate_bps` means an unlimited rate, a missing `queue` no limit, a missing `loss` no
    losses. `keep_order` is accepted and ignored: a constant delay does not reorder packets.

    Raises:
        Unsupported: The core does not support a setting of `direction`.
    """
    for key in direction:
        if key not in _KEYS:
            raise Unsupported(key, "the FPGA link emulator does not support this setting")
    values = dict.fromkeys(DIRECTION, 0)
    mode: dict[str, int] = {}
    rate = direction.get("rate_bps")
    values["rate_bps"] = 0 if rate is None else rate
    mode["unlimited_rate"] = rate is None
    overhead = direction.get("overhead_bytes", 0)
    values["overhead_bytes"] = overhead
    values["delay_ns"] = direction.get("delay_ns", 0)
    _set_queue(values, mode, direction.get("queue", {}))
    _set_mark(values, mode, direction.get("mark"))
    _set_loss(values, mode, direction.get("loss", {"model": "none"}), rate, overhead)
    values["mode"] = sum(int(value) << FIELDS["mode"][name][1] for name, value in mode.items())
    return values


def _set_queue(values: dict[str, int], mode: dict[str, int], queue: Mapping[str, Any]) -> None:
    """Set the registers in `values` and the fields in `mode` that configure the queue."""
    if queue.get("discipline", "drop_tail") != "drop_tail":
        raise Unsupported(
            "queue.discipline", f"the core does not support {queue['discipline']}, only drop_tail"
        )
    if "bdp" in queue:
        raise Unsupported("queue.bdp", "the core supports a limit in packets or bytes only")
    mode["counts_transmission"] = bool(queue.get("counts_transmission", False))
    for unit in ("packets", "bytes"):
        if unit in queue:
            mode["queue_limit"] = VALUES["mode"]["queue_limit"][unit]
            values["queue_limit"] = queue[unit]


def _set_mark(values: dict[str, int], mode: dict[str, int], mark: Mapping[str, Any] | None) -> None:
    """Set the registers in `values` and the fields in `mode` for marking; None means no marking."""
    if mark is None:
        return
    if mark.get("weight", 1) != 1:
        raise Unsupported(
            "mark.weight", "the core compares the current queue length (weight 1), not an average"
        )
    for unit in ("packets", "bytes"):
        if f"threshold_{unit}" in mark:
            mode["mark"] = VALUES["mode"]["mark"][unit]
            values["mark_threshold"] = mark[f"threshold_{unit}"]


def _set_loss(
    values: dict[str, int],
    mode: dict[str, int],
    loss: Mapping[str, Any],
    rate: int | None,
    overhead: int,
) -> None:
    """Set the registers and fields that configure losses.

    Args:
        values: Values of registers.
        mode: Values of the fields of the register `mode`.
        loss: Settings of the loss model.
        rate: Rate of the link in bit/s, or None if it is unlimited.
        overhead: Overhead of the link in bytes per packet.
    """
    model = loss["model"]
    if model not in VALUES["mode"]["loss"]:
        models = ", ".join(VALUES["mode"]["loss"])
        raise Unsupported("loss.model", f"the core does not support {model}, only {models}")
    mode["loss"] = VALUES["mode"]["loss"][model]
    mode["loss_at_ingress"] = loss.get("at", "egress") == "ingress"
    if model == "bernoulli":
        _set_probabilities(values, mode, {"loss_in_good": loss["probability"]})
    elif model == "gilbert_elliott":
        defaults = {"loss_in_good": 0.0, "loss_in_bad": 1.0}
        probabilities = {name: loss.get(name, defaults.get(name)) for name in _PROBABILITIES}
        _set_probabilities(values, mode, probabilities)
    elif model == "poisson":
        if rate is None:
            raise Unsupported("loss.model", "poisson needs a rate")
        mean = compute_poisson_mean_ps(
            loss["packet_loss_rate"], loss["packet_bytes"] + overhead, rate
        )
        if mean is None:
            mode["loss"] = VALUES["mode"]["loss"]["none"]
        else:
            values["poisson_mean_ps"] = mean


def _set_probabilities(
    values: dict[str, int], mode: dict[str, int], probabilities: Mapping[str, float]
) -> None:
    for name, probability in probabilities.items():
        threshold = math.floor(Fraction(probability) * _CERTAIN)
        mode[f"{name}_certain"] = threshold == _CERTAIN
        values[name] = 0 if threshold == _CERTAIN else threshold


def compute_poisson_mean_ps(
    packet_loss_rate: float, framed_bytes: int, rate_bps: int
) -> int | None:
    """Return the mean time between loss events in ps, or None if there are no loss events.

    The computation is that of link-emulator/model/loss/poisson.hpp. A mean above _LONGEST_MEAN_PS
    counts as no loss events. A mean below _SHORTEST_MEAN_PS is raised to _SHORTEST_MEAN_PS.

    Args:
        packet_loss_rate: Probability that a packet is lost, below 1.
        framed_bytes: Size of a packet with the link's overhead.
        rate_bps: Rate of the link.
    """
    if packet_loss_rate == 0:
        return None
    packet_seconds = 8.0 * float(framed_bytes) / float(rate_bps)
    exact = packet_seconds / -math.log1p(-packet_loss_rate) * 1e12
    whole = math.floor(exact)
    mean = whole + 1 if exact - whole >= 0.5 else whole
    if mean >= _LONGEST_MEAN_PS:
        return None
    return max(mean, int(_SHORTEST_MEAN_PS))


def list_register_writes(
    seed: int, link: int, directions: Mapping[str, Mapping[str, Any]], epoch_ns: int = 0
) -> list[tuple[int, int]]:
    """List the writes (address, 32-bit value) that configure a disabled core, in their order.

    Args:
        seed: Seed of the run's random draws.
        link: Number of the link.
        directions: Configuration of `forward` and `backward`, as in nagi-link's configuration. A
            missing direction counts as an empty configuration.
        epoch_ns: Time of the core that becomes time 0 of records.

    Raises:
        Unsupported: The core does not support a setting.
    """
    writes: list[tuple[int, int]] = []

    def write(address: int, bits: int, value: int) -> None:
        for word in range(bits // 32):
            writes.append((address + 4 * word, value >> 32 * word & 0xFFFFFFFF))

    for name, value in {"seed": seed, "link": link, "epoch_ns": epoch_ns}.items():
        write(*REGISTERS[name], value)
    for direction, base in DIRECTIONS.items():
        for name, value in compute_direction_registers(directions.get(direction, {})).items():
            address, bits = DIRECTION[name]
            write(base + address, bits, value)
    return writes
