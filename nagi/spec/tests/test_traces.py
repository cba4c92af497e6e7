# SPDX-License-Identifier: Apache-2.0
"""Test trace files: their contents, messages about mistakes, and `nagi trace`."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nagi.cli.main import make_app
from nagi.spec.traces import read_trace
from nagi_contracts.errors import InputError
from nagi_contracts.impairments.losses.trace import TraceLossPlan
from nagi_contracts.plan import DirectionPlan
from nagi_contracts.traces import OpportunityTrace, StepTrace
from typer.testing import CliRunner

MS = 10**6
STEPS = """\
# A rate that breaks down
0 s, 10 Mb/s

2 s, 0 b/s   # an outage
2.5 s, 1 Mb/s
4 s, end
"""


@pytest.fixture
def read(tmp_path):
    def read(text, format_, quantity="rate"):
        path = tmp_path / "trace"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_trace(path, format_, quantity)

    return read


def test_mahimahi_s_traces_repeat_after_their_last_instant(read):
    trace = read("0\n3\n3\n10\n", "mahimahi")
    assert trace == OpportunityTrace(
        opportunities_ns=[0, 3 * MS, 3 * MS, 10 * MS], bytes=1504, period_ns=10 * MS
    )
    assert trace.mean == 4 * 1504 * 8 * 100
    assert read("5", "mahimahi") == read("5\r\n", "mahimahi")


def test_steps_are_rates_or_delays(read):
    trace = read(STEPS, "steps")
    assert trace.steps == [(0, 10_000_000), (2000 * MS, 0), (2500 * MS, 1_000_000)]
    assert trace.period_ns == 4000 * MS
    assert trace.mean == (2 * 10_000_000 + 1_500_000) / 4
    trace = read("0 s,5 ms\n10 ms,0 ms\n1 s,end", "steps", "delay")
    assert trace == StepTrace(steps=[(0, 5 * MS), (10 * MS, 0)], period_ns=1000 * MS)


def test_losses_are_numbered_from_0(read):
    trace = read("# a burst\n0001 11 0 # and\n\n01\n", "loss")
    assert trace == TraceLossPlan(lost=[3, 4, 5, 8], length=9)
    assert read("000", "loss").lost == []


# (format, text, line, complaint and cure)
BAD = [
    ("mahimahi", "", 0, "the file has no line; write one instant per line"),
    ("mahimahi", "1\n\n2\n", 2, "an empty line; write one whole number per line, and nothing else"),
    ("mahimahi", "1\n2.5\n", 2, "not a number of milliseconds: '2.5'; write one whole number per"),
    ("mahimahi", "-1\n", 1, "not a number of milliseconds: '-1'; write one whole number per"),
    ("mahimahi", "1 # no comments\n", 1, "not a number of milliseconds: '1 # no comments'; write"),
    ("mahimahi", "٣\n", 1, "not a number of milliseconds"),
    ("mahimahi", "1\n5\n4\n", 3, "4 ms is before 5 ms; sort the lines: instants do not decrease"),
    ("mahimahi", "0\n0\n", 2, "the trace lasts 0 ms; end it with a later instant, after which"),
    ("mahimahi", "1\n" + "9" * 5000, 2, "999"),
    ("mahimahi", "3600000\n3600001\n", 2, "3600001 ms is too late; give at most 3600 s"),
    ("steps", "", 0, "the file has no step; end it with a line such as '4 s, end'"),
    ("steps", "# nothing\n", 0, "the file has no step; end it with a line"),
    ("steps", "0 s, 1 Mb/s\n", 1, "the trace has no end; end it with a line"),
    ("steps", "0 s 1 Mb/s\n", 1, "not a step: '0 s 1 Mb/s'; write it like '2 s, 100 Mb/s'"),
    ("steps", "0, 1 Mb/s\n", 1, "0 has no unit; write it like '45 ms'"),
    ("steps", "0 s, 1 Mb/s\n\n1 s, 5 ms\n", 3, "'ms' is no unit of a rate; one of: b/s, kb/s"),
    ("steps", "1 s, 1 Mb/s\n", 1, "the first step is at 1 s; give the value at 0 s first"),
    ("steps", "0 s, end\n", 1, "no step before the end; give the value at 0 s first"),
    ("steps", "0 s, 1 Mb/s\n0 s, 2 Mb/s\n", 2, "0 ns is not after 0 ns; give every instant once,"),
    ("steps", "0 s, 1 Mb/s\n1 s, 2 Mb/s\n1 s, end\n", 3, "1 s is not after 1 s; give every inst"),
    ("steps", "0 s, 1 Mb/s\n1 s, end\n\n2 s, end\n", 4, "a line after the end; remove it"),
    ("steps", "0 s, 0 b/s\n1 s, end\n", 0, "the rate is always 0; give a step another rate"),
    ("steps", "0 s, 1 Mb/s\n2 h, end\n", 2, "7200 s is too late; give at most 3600 s"),
    ("loss", "", 0, "the file has no packet; write 0 or 1 for each packet"),
    ("loss", "01\n012\n", 2, "not a packet: '2'; write 1 for a packet that is lost and 0 for any"),
    ("loss", b"\xff\xfe", 0, "cannot read it: Is not a text in UTF-8; give the path of a trace f"),
]


@pytest.mark.parametrize(("format_", "text", "line", "complaint"), BAD)
def test_what_is_wrong_is_named_with_its_line_and_cure(
    read, tmp_path, format_, text, line, complaint
):
    with pytest.raises(InputError) as caught:
        read(text, format_)
    location = f"{tmp_path / 'trace'}:{line}: " if line else f"{tmp_path / 'trace'}: "
    assert str(caught.value).startswith(location + complaint)
    assert all(problem.cure for problem in caught.value.problems)


def test_delays_are_no_rates(read):
    with pytest.raises(InputError, match=r"trace:1: 'Mb/s' is no unit of a duration; one of: ns"):
        read(STEPS.partition("\n")[2], "steps", "delay")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match="gone: cannot read it: No such file or directory; give"):
        read_trace(tmp_path / "gone", "mahimahi")
    with pytest.raises(InputError, match="cannot read it: Is a directory; give the path of a tr"):
        read_trace(tmp_path, "mahimahi")


def test_files_that_are_no_traces(tmp_path):
    with pytest.raises(InputError, match="cannot read it: Is not a regular file; give the path"):
        read_trace(Path("/dev/zero"), "mahimahi")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(InputError, match=r"huge: the file has 1.0 TB, more than 100 MB; give a pa"):
        read_trace(tmp_path / "huge", "loss")
    (tmp_path / "long").write_bytes(b"x" * 10**6)
    with pytest.raises(InputError) as refused:
        read_trace(tmp_path / "long", "steps")
    assert f"not a step: '{'x' * 60}...'; write it like" in str(refused.value)


def test_traces_have_an_end(read):
    many = 2_000_000
    assert read("#\n" * (many - 1) + "01\n", "loss").length == 2
    too_long = r"trace:2000001: more than 2,000,000 lines; give a part of it, because "
    with pytest.raises(InputError, match=too_long):
        read("#\n" * many + "01\n", "loss")
    assert read("01" * (many // 2), "loss").length == many
    too_long = r"trace:2: more than 2,000,000 packets; give a part of it, because "
    with pytest.raises(InputError, match=too_long):
        read("01" * (many // 2) + "\n1", "loss")


def test_a_file_that_changes_is_read_again(read):
    assert read("10\n", "mahimahi").period_ns == 10 * MS
    assert read("5\n10\n20\n", "mahimahi").period_ns == 20 * MS


@given(st.lists(st.integers(0, 3_600_000), min_size=1).map(sorted).filter(lambda ms: ms[-1] > 0))
def test_every_line_of_mahimahi_s_is_an_opportunity(instants):
    with TemporaryDirectory() as directory:
        path = Path(directory) / "trace"
        path.write_text("".join(f"{ms}\n" for ms in instants))
        trace = read_trace(path, "mahimahi")
    assert [instant_ns // MS for instant_ns in trace.opportunities_ns] == instants
    assert trace.mean == pytest.approx(1504 * 8e3 * len(instants) / instants[-1], abs=0.5)


@given(
    st.dictionaries(st.integers(1, 10**12), st.integers(0, 10**10), max_size=20),
    st.integers(1, 10**10),
    st.integers(1, 10**12),
)
def test_a_mean_is_between_the_least_and_the_most(later, first, rest):
    steps = [(0, first), *sorted(later.items())]
    trace = StepTrace(steps=steps, period_ns=steps[-1][0] + rest)
    values = [value for _, value in steps]
    assert min(values) <= trace.mean <= max(values)
    direction = DirectionPlan(rate_trace=trace, delay_trace=trace)
    assert direction.mean_rate_bps == max(1, trace.mean)
    assert (direction.min_delay_ns, direction.max_delay_ns) == (min(values), max(values))


def test_the_command_prints_what_nagi_link_takes(tmp_path, monkeypatch):
    (tmp_path / "lte").write_text("1\n2\n")
    (tmp_path / "steps").write_text(STEPS)
    (tmp_path / "delays").write_text("0 s, 5 ms\n1 s, end\n")
    (tmp_path / "loss").write_text("0100\n")
    monkeypatch.chdir(tmp_path)
    assert printed("lte") == {"opportunities_ns": [MS, 2 * MS], "bytes": 1504, "period_ns": 2 * MS}
    assert printed("steps", "--format", "steps")["period_ns"] == 4000 * MS
    assert printed("delays", "--format", "steps", "--quantity", "delay") == {
        "steps": [[0, 5 * MS]],
        "period_ns": 1000 * MS,
    }
    assert printed("loss", "--format", "loss") == {
        "model": "trace",
        "lost": [1],
        "length": 4,
        "at": "egress",
    }


def printed(*arguments):
    done = CliRunner().invoke(make_app(), ["trace", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ["--format", "pcap"],
            "--format pcap: no such format; one of: mahimahi, steps, loss, quantiles",
        ),
        (["--quantity", "loss"], "--quantity loss: no such quantity; one of: rate, delay, snr"),
        (
            ["--quantity", "delay"],
            "--format mahimahi: this format has no delay; use --format steps",
        ),
        ([], "gone: cannot read it: No such file or directory; give the path of a trace file"),
    ],
)
def test_what_the_command_refuses(arguments, complaint):
    done = CliRunner().invoke(make_app(), ["trace", "gone", *arguments])
    assert isinstance(done.exception, InputError)
    assert str(done.exception) == complaint
    assert done.stdout == ""
