# SPDX-License-Identifier: Apache-2.0
"""Registers that follow from a direction's configuration."""

from typing import Any

import pytest
from nagi_fpga.configuration import (
    Unsupported,
    compute_direction_registers,
    compute_poisson_mean_ps,
    list_register_writes,
)
from nagi_fpga.register_map import DIRECTION, DIRECTIONS, FIELDS


def mode(values: dict[str, int], name: str) -> int:
    high, low = FIELDS["mode"][name]
    return values["mode"] >> low & (2 << high - low) - 1


def test_nothing_is_an_unlimited_link() -> None:
    values = compute_direction_registers({})
    assert mode(values, "unlimited_rate") == 1
    assert sum(values.values()) == 1


def test_queue_and_mark() -> None:
    queue = {"discipline": "drop_tail", "bytes": 1 << 40, "counts_transmission": True}
    values = compute_direction_registers(
        {"rate_bps": 10**12, "queue": queue, "mark": {"threshold_packets": 3, "weight": 1}}
    )
    assert (values["rate_bps"], values["queue_limit"], values["mark_threshold"]) == (
        10**12,
        1 << 40,
        3,
    )
    assert [mode(values, name) for name in ("queue_limit", "mark", "counts_transmission")] == [
        2,
        1,
        1,
    ]


def test_probabilities_are_the_thresholds_of_the_model() -> None:
    """Chance of link-emulator/model/random.hpp: probability x 2^64, and 1 is certain."""
    loss = {"model": "gilbert_elliott", "good_to_bad": 0.5, "bad_to_good": 1, "loss_in_good": 1e-30}
    values = compute_direction_registers({"loss": {**loss, "at": "ingress"}})
    assert values["good_to_bad"] == 1 << 63
    assert values["loss_in_good"] == 0  # below 2^-64
    assert mode(values, "bad_to_good_certain") == mode(values, "loss_in_bad_certain") == 1
    assert mode(values, "good_to_bad_certain") == mode(values, "loss_in_good_certain") == 0
    assert mode(values, "loss_at_ingress") == 1


def test_poisson_has_the_mean_of_the_model() -> None:
    """Figures of link-emulator/model/tests/loss_test.cpp."""
    assert compute_poisson_mean_ps(0.01, 1052, 10_000_000) == 83_738_495_138
    assert compute_poisson_mean_ps(0, 1052, 10_000_000) is None
    assert compute_poisson_mean_ps(1e-12, 1500, 1) is None  # less than one in a hundred days
    assert compute_poisson_mean_ps(0.999, 1, 10**12) == 1000
    loss = {"model": "poisson", "packet_loss_rate": 0.01, "packet_bytes": 1014}
    values = compute_direction_registers(
        {"rate_bps": 10_000_000, "overhead_bytes": 38, "loss": loss}
    )
    assert values["poisson_mean_ps"] == 83_738_495_138


@pytest.mark.parametrize(
    ("direction", "key"),
    [
        ({"jitter": {"distribution": "uniform", "half_width_ns": 1}}, "jitter"),
        ({"rate_trace": {}}, "rate_trace"),
        ({"queue": {"discipline": "codel"}}, "queue.discipline"),
        ({"queue": {"bdp": 1.0}}, "queue.bdp"),
        ({"mark": {"threshold_packets": 1, "weight": 0.5}}, "mark.weight"),
        ({"loss": {"model": "markov"}}, "loss.model"),
        ({"loss": {"model": "poisson", "packet_loss_rate": 0.1, "packet_bytes": 1}}, "loss.model"),
    ],
)
def test_what_the_core_lacks_is_refused(direction: dict[str, Any], key: str) -> None:
    with pytest.raises(Unsupported) as error:
        compute_direction_registers(direction)
    assert error.value.key == key


def test_all_words_are_written() -> None:
    found = dict(list_register_writes(0x1122334455667788, 5, {"backward": {"rate_bps": 7}}))
    assert (found[0x28], found[0x2C], found[0x24]) == (0x55667788, 0x11223344, 5)
    assert found[DIRECTIONS["backward"] + DIRECTION["rate_bps"][0]] == 7
    words = sum(bits // 32 for _, bits in DIRECTION.values())
    assert len(found) == 5 + 2 * words
