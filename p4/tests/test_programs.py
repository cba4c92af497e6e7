# SPDX-License-Identifier: Apache-2.0
"""Tests that nagi-switch sends what simple_switch sent, for varied v1model programs and edge.p4.

Both get the same entries and packets. What simple_switch sent is recorded in programs/.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import corpus
import pytest
from programs import (
    ALL,
    UNORDERED,
    Program,
    find_difference,
    format_entries,
    format_packets,
    group_by_port,
    read_digests,
    read_packets,
)
from replay import make_recorded_run, replay
from scipy.stats import chisquare

SIGNIFICANCE = 1e-4  # of statistical tests; the seed is fixed


@pytest.mark.parametrize("program", [p for p in ALL if not p.is_random], ids=lambda p: p.name)
def test_sends_what_simple_switch_sends(program: Program, tmp_path: Path) -> None:
    expected = group_by_port(read_packets(program.expected))
    sent = replay(make_recorded_run(program), tmp_path, digests="digests.jsonl")
    problem = find_difference(program, expected, sent)
    assert problem is None, problem
    lines = map(json.loads, (tmp_path / "digests.jsonl").read_text().splitlines())
    digests = {(line["digest"], tuple(line["values"])) for line in lines}
    assert digests == read_digests(program)


@pytest.mark.parametrize("program", ALL, ids=lambda p: p.name)
def test_what_is_committed_is_what_the_generator_makes(program: Program) -> None:
    """Else expectations would be of other packets than corpus.py says."""
    case = corpus.make(program.name)
    assert program.entries.read_text() == format_entries(case.entries)
    assert program.packets.read_text() == format_packets(case.packets)


def test_the_corpus_reaches_every_port_and_drops_some() -> None:
    """Check the corpus: one that is dropped as a whole would pass every comparison."""
    for program in ALL:
        if program.is_random:
            continue
        expected = read_packets(program.expected)
        assert len(expected) >= 90, f"{program.name} sends next to nothing"
        assert len({data for _, data in expected}) > len(expected) / 2, program.name
    assert set(UNORDERED) <= {program.name for program in ALL}


def test_random_numbers_are_uniform_and_seeded(tmp_path: Path) -> None:
    """H0: each value of random() is as likely as the others (chi-square, 1,200 draws)."""
    program = next(p for p in ALL if p.is_random)
    directories = [tmp_path / name for name in ("first", "again", "other")]
    for directory in directories:
        directory.mkdir()
    first, again, other = (
        replay(make_recorded_run(program), directory, seed=seed)[1]
        for directory, seed in zip(directories, (1, 1, 2), strict=True)
    )
    assert first == again
    assert first != other
    draws = [frame[14:] for frame in first]
    assert len(draws) == len(read_packets(program.packets))
    dice = Counter(draw[0] for draw in draws)
    assert set(dice) == set(range(1, 7))
    assert chisquare(list(dice.values())).pvalue > SIGNIFICANCE
    coins = Counter(draw[1] for draw in draws)
    assert set(coins) == {0, 1}
    assert chisquare(list(coins.values())).pvalue > SIGNIFICANCE
    for byte in range(2, 6):  # of the 32-bit word
        sixteenths = Counter(draw[byte] >> 4 for draw in draws)
        assert chisquare([sixteenths[n] for n in range(16)]).pvalue > SIGNIFICANCE
    assert all(draw[6:8] == (77).to_bytes(2, "big") for draw in draws)
    assert all(draw[8:10] == b"\xbe\xef" for draw in draws)  # lo > hi: as it came
