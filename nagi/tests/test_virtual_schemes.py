# SPDX-License-Identifier: Apache-2.0
"""Check how schemes react to chosen losses and to marks, as modules of the guest kernel."""

from __future__ import annotations

import itertools
import re
import struct
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from marks import in_virtual_time
from nagi_captures import capture
from nagi_contracts.records import Verdict
from specs import two_links
from test_virtual_lab import NAGI, no_guest_left, run, runs_of  # noqa: F401 - a fixture

pytestmark = in_virtual_time

PAYLOAD = 1000
PACKETS = 20_000  # more than any run here sends
LOST = 3_000  # in congestion avoidance
RATE = 8e6
SPEC = two_links(
    "schemes",
    "rate: 100 Mb/s, delay: 10 ms",
    "RATE, delay: 10 ms, queue: 100 packetsLINK",
    "scheme: $scheme, payload: 1000 bytes, traffic: {application: bulk, program: PROGRAM}",
    """\
EXTRA
host_profile: ns2
ecn: false
duration: 8 s
matrix: {scheme: [SCHEMES]}
report: {x: scheme}
""",
)
MARKING = ", mark: {threshold: 10 packets, weight: 1}"


@dataclass(frozen=True)
class Observed:
    """A run: the events of its scheme, and the fate of each packet on the bottleneck."""

    directory: Path
    events: pd.DataFrame
    packets: pd.DataFrame

    def select_events(self, event: str) -> pd.DataFrame:
        return self.events[self.events["event"] == event]

    @property
    def available(self) -> pd.Series[float]:
        """The value of ownd at each event, in segments: RTTmin x R / segment size, at least 2."""
        rate = self.events["bandwidth_bytes_per_second"]
        return (rate * self.events["min_rtt_us"] // 10**6 // PAYLOAD).clip(lower=2)


Runs = Callable[..., dict[str, Observed]]


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    numbers = itertools.count()

    def run_schemes(
        schemes: str,
        link: str,
        *,
        lost: list[int] | None = None,
        rate: str = "rate: 8 Mb/s",
        extra: str = "",
        program: str = "nagi-traffic",
    ) -> dict[str, Observed]:
        if lost is not None:
            trace = ["0"] * PACKETS
            for index in lost:
                trace[index] = "1"
            (tmp_path / "lost.txt").write_text("\n".join(trace))
            link += ", forward: {loss: {model: trace, file: lost.txt}}"
        spec = tmp_path / "spec.yaml"
        text = SPEC.replace("SCHEMES", schemes).replace("LINK", link)
        spec.write_text(
            text.replace("RATE", rate).replace("EXTRA", extra).replace("PROGRAM", program)
        )
        out = tmp_path / f"out{next(numbers)}"
        run(spec, out)
        return {name: _observed(directory) for name, directory in runs_of(out).items()}

    return run_schemes


def _observed(directory: Path) -> Observed:
    assert Verdict.read(directory / "verdict.json").status == "valid"
    packets = pd.read_parquet(directory / "packets.parquet")
    events = directory / "scheme_events.parquet"
    return Observed(
        directory,
        pd.read_parquet(events) if events.exists() else pd.DataFrame({"event": []}),
        packets[(packets["link"] == "radio") & (packets["direction"] == "forward")],
    )


def test_newjersey_takes_a_loss_without_a_mark_for_the_channel_s(runs: Runs) -> None:
    """Reduce nothing without marks; as a control, reno halves its window."""
    found = runs("newjersey, reno", ", mark: {threshold: 10000 packets}", lost=[LOST])
    jersey, reno = found["newjersey"], found["reno"]
    (loss,) = jersey.select_events("three_duplicates").itertuples()
    assert loss.verdict == "channel"
    assert (loss.cwnd, loss.ssthresh) == (loss.cwnd_before, loss.ssthresh_before)
    assert jersey.select_events("congestion_mark").empty and not jersey.packets["marked"].any()
    loss = next(reno.select_events("three_duplicates").itertuples())
    assert loss.verdict == "congestion"
    assert loss.cwnd == loss.cwnd_before // 2


def test_newjersey_sets_its_window_by_its_estimate_at_a_mark(runs: Runs) -> None:
    """Set the window at most once per round trip.

    Reno does not negotiate ECN, so its packets are not marked.
    """
    found = runs("newjersey, reno", MARKING)
    jersey, reno = found["newjersey"], found["reno"]
    assert jersey.packets["marked"].any() and not reno.packets["marked"].any()
    marks = jersey.select_events("congestion_mark")
    assert len(marks) >= 2 and set(marks["verdict"]) == {"congestion"}
    ownd = jersey.available[marks.index]
    assert (marks["cwnd"] == ownd).all() and (marks["ssthresh"] == ownd).all()
    assert (marks["t_s"].diff().dropna() * 1e6 >= marks["min_rtt_us"].iloc[1:]).all()
    # What fills the path without a queue: the estimate of a full path is its rate.
    segments = RATE / 8 * jersey.events["min_rtt_us"].max() / 1e6 / (PAYLOAD + 52)
    assert marks["cwnd"].iloc[-1] == pytest.approx(segments, rel=0.1)


def test_newjersey_takes_a_loss_with_a_mark_for_congestion(runs: Runs) -> None:
    """Lose the packet after a marked one: the mark sets the window, and only once."""
    marked = runs("newjersey", MARKING)["newjersey"].packets
    first = int(marked["marked"].to_numpy().argmax())
    jersey = runs("newjersey", MARKING, lost=[first + 1])["newjersey"]
    mark = next(jersey.select_events("congestion_mark").itertuples())
    loss = next(jersey.select_events("three_duplicates").itertuples())
    assert mark.t_s < loss.t_s
    assert pd.isna(loss.verdict)  # that of the mark
    assert loss.cwnd == loss.cwnd_before == mark.cwnd == mark.ssthresh


def test_newjersey_begins_anew_after_a_timeout_with_its_estimate_as_threshold(runs: Runs) -> None:
    # The window when the first of them is lost, and no retransmission.
    jersey = runs("newjersey", MARKING, lost=list(range(LOST, LOST + 50)))["newjersey"]
    timeout = next(jersey.select_events("timeout").itertuples())
    assert timeout.verdict == "congestion"
    assert timeout.cwnd == 1
    assert timeout.ssthresh == jersey.available[timeout.Index]


def test_newjersey_is_refused_where_no_link_marks(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    text = SPEC.replace("SCHEMES", "newjersey").replace("LINK", "").replace("EXTRA", "")
    text = text.replace("PROGRAM", "iperf")
    spec.write_text(text.replace("RATE", "rate: 8 Mb/s"))
    said = run(spec, tmp_path / "out", status=2)
    assert "scheme.0: newjersey reacts to marks (ECN), and no link marks on its path" in said
    assert "wired (forward), radio (forward); let the bottleneck mark" in said
    assert not (tmp_path / "out").exists()


# --- ACK thinning


def acks_of(found: Observed) -> pd.DataFrame:
    """Return the receiver's ACKs without data, with the segments that each newly acknowledges."""
    (file,) = found.directory.glob("D.*.pcap*")
    packets = pd.concat(capture.read_packets(file))
    ack = (
        (packets["payload"] == 0) & (packets["flags"] & 0x17 == 0x10) & (packets["direction"] == 1)
    )
    packets = packets[ack].reset_index(drop=True)
    packets["segments"] = packets["acknowledgement"].diff() / PAYLOAD
    return packets


def test_thinned_acks_are_as_many_as_the_sequence_number_says(runs: Runs) -> None:
    """Count ACKs: `d` is 1, 2, 3 and 4 from segments 1, 2, 5 and 9 on, or as configured.

    Without thinning, each segment has an ACK.
    """
    found = runs("vegas, vegas-ackthin", "")
    assert set(acks_of(found["vegas"])["segments"].iloc[10:]) == {1}
    thinned = acks_of(found["vegas-ackthin"])["segments"]
    assert set(thinned.iloc[20:]) <= {3, 4} and (thinned.iloc[20:] == 4).mean() > 0.99
    later = runs(
        "vegas-ackthin", "", extra="parameters: {ackthin: {second: 2, third: 200, fourth: 5000}}"
    )
    segments = acks_of(later["vegas-ackthin"])["segments"].iloc[3:]
    at = segments.cumsum()
    assert set(segments[at < 180]) <= {1, 2}
    assert (segments[(at > 220) & (at < 4900)] == 3).mean() > 0.99
    assert (segments[at > 5100] == 4).mean() > 0.99


def test_a_thinned_ack_waits_for_its_timer_at_most(runs: Runs) -> None:
    """Use a window of one segment, which never reaches d = 4."""
    extra = "parameters: {newreno-optwin: {window: 1}, ackthin: {timer: 60}}"
    found = runs("newreno-optwin-ackthin", "", extra=extra)["newreno-optwin-ackthin"]
    acks = acks_of(found)
    assert set(acks["segments"].iloc[10:]) == {1}
    # A round trip and the timer, from one ACK to the next.
    assert acks["time_ns"].diff().iloc[10:].median() / 1e6 == pytest.approx(40 + 60 + 1.2, abs=1)


def test_thinning_lets_duplicate_acks_go(runs: Runs) -> None:
    """Check that three duplicate ACKs repair a loss, without a timeout."""
    found = runs("reno-ackthin", "", lost=[LOST], extra="max_window: 60 packets")["reno-ackthin"]
    assert len(found.select_events("three_duplicates")) == 1
    assert found.select_events("timeout").empty
    acks = acks_of(found)
    duplicates = acks[acks["segments"] == 0]
    assert len(duplicates) > 20
    # The ACK of the retransmission comes at once, and for all that had come.
    assert acks.loc[duplicates.index[-1] + 1, "segments"] > 20


# --- TCP-Real


def levels_of(found: Observed) -> pd.DataFrame:
    """Return the level in the receiver's option, for each of its ACKs without data."""
    (file,) = found.directory.glob("D.*.pcap*")
    rows = []
    for at_ns, tcp in tcp_headers(file):
        if int.from_bytes(tcp[0:2]) == 5001 and tcp[13] == 0x10:
            options = dict(tcp_options(tcp))
            assert 253 in options, "an ACK without the option"
            rows.append((at_ns / 1e9, int.from_bytes(options[253])))
    return pd.DataFrame(rows, columns=["t_s", "level"])


def tcp_options(tcp: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield kind and data of each TCP option; the data of timestamps can be any bytes."""
    rest = tcp[20 : (tcp[12] >> 4) * 4]
    while rest and rest[0] != 0:
        length = 1 if rest[0] == 1 else rest[1]
        yield rest[0], rest[2:length]
        rest = rest[length:]


def tcp_headers(file: Path) -> Iterator[tuple[int, bytes]]:
    """Yield time and content of each TCP packet of a pcap file.

    The time is in nanoseconds; the content starts at the TCP header.
    """
    raw = subprocess.run(["zstd", "-dcf", file], capture_output=True, check=True).stdout
    at = 24
    while at < len(raw):
        seconds, nanoseconds, length = struct.unpack_from("<3I", raw, at)
        frame = raw[at + 16 : at + 16 + length]
        if frame[12:14] == b"\x08\x00" and frame[23] == 6:
            yield seconds * 10**9 + nanoseconds, frame[14 + (frame[14] & 15) * 4 :]
        at += 16 + length


def test_real_keeps_to_the_level_of_its_receiver(runs: Runs) -> None:
    """Expect a window of two segments per level; a steady rate keeps the level."""
    real = runs("real", "", extra="parameters: {real: {initial_level: 20, max_level: 20}}")["real"]
    assert set(levels_of(real)["level"]) == {20}
    assert set(real.select_events("sample")["cwnd"].iloc[1:]) == {40}
    assert real.select_events("fallback").empty


@pytest.mark.parametrize(("threshold", "share"), [(4, 0.618 + 0.382 / 2), (24, 0.382 + 0.618 / 2)])
def test_real_lowers_its_level_where_the_rate_falls(runs: Runs, threshold, share) -> None:
    """Halve the rate, with the ratio of Figure 1 above the threshold and below it."""
    real = runs(
        "real",
        "",
        rate="rate_trace: {steps: {0 s: 8 Mb/s, 4 s: 4 Mb/s}, period: 100 s}",
        extra=f"parameters: {{real: {{initial_level: 24, initial_threshold: {threshold}}}}}",
    )["real"]
    levels = levels_of(real)["level"]
    changes = levels[levels.diff().fillna(0) != 0].tolist()
    # The wave in which the rate changes has part of each; with the next the rate is half.
    assert len(changes) in (1, 2)
    assert changes[-1] == pytest.approx(24 * share, abs=1)


def test_real_lowers_its_level_if_the_last_segment_of_a_wave_is_lost(runs: Runs) -> None:
    """Lose the last segment of a wave; as a control, lose one in the middle.

    The wave-decision timer ends the wave with the next segment, one round trip after the wave's
    first segment. A loss in the middle of a wave changes nothing.
    """
    # A window of 12, less than fills the path: there are gaps between waves. The first segment goes
    # alone (ns2's initial window). That is iperf's header, so waves of data are sent at once.
    of_real = partial(runs, "real", "", program="iperf")
    extra = "parameters: {real: {initial_level: 6, max_level: 6}}"
    whole = of_real(extra=extra)["real"]
    assert set(levels_of(whole)["level"]) == {6}
    gaps = whole.packets["arrived_ns"].diff().shift(-1) > 10e6
    last = next(int(index) for index in whole.packets["index"][gaps] if index > 1000)
    middle = of_real(lost=[last - 6], extra=extra)["real"]
    (loss,) = middle.select_events("three_duplicates").itertuples()
    assert (loss.verdict, loss.cwnd) == ("undecided", 12)
    assert set(levels_of(middle)["level"]) == {6}
    lost = of_real(lost=[last], extra=extra)["real"]
    levels = levels_of(lost)["level"]
    # 12 segments in 41 ms in place of 11.6: the ratio is 0.28, and 6 is above the threshold of 3.
    assert levels.min() == round(6 * (0.618 + 0.382 * 11.6 / 41))
    assert levels.iloc[-1] >= 6


def test_real_keeps_its_window_at_a_timeout_with_duplicate_acks(runs: Runs) -> None:
    """Lose a retransmission, so that a timeout follows duplicate ACKs."""
    extra = "parameters: {real: {initial_level: 12, max_level: 12}}"
    # The 24 segments after the lost one bring duplicate ACKs, the third of which sends it again.
    real = runs("real", "", lost=[LOST, LOST + 25, LOST + 26, LOST + 27], extra=extra)["real"]
    timeout = next(real.select_events("timeout").itertuples())
    assert timeout.verdict == "undecided"
    assert timeout.cwnd == timeout.cwnd_before >= 12


def test_real_has_a_window_of_two_after_a_timeout_without_duplicate_acks(runs: Runs) -> None:
    extra = "parameters: {real: {initial_level: 12, max_level: 12}}"
    real = runs("real", "", lost=list(range(LOST, LOST + 24)), extra=extra)["real"]
    timeout = next(real.select_events("timeout").itertuples())
    assert (timeout.cwnd_before, timeout.cwnd) == (24, 2)
    after = real.select_events("sample")
    assert after[after["t_s"] > timeout.t_s]["cwnd"].iloc[-1] == 24


# --- a scheme of the user's own, in C


def new_scheme(directory: Path) -> Path:
    new = [NAGI, "new", "--scheme", "mine"]
    subprocess.run(new, cwd=directory, check=True, capture_output=True)
    return directory / "mine.c"


def test_a_scheme_in_c_runs_as_a_module(runs: Runs, tmp_path: Path) -> None:
    """Run nagi's template, which keeps 70 % of the window after a loss."""
    new_scheme(tmp_path)
    extra = "parameters: {mine.c: {keep: 70}}\nmax_window: 60 packets"
    mine = runs("mine.c", "", lost=[LOST], extra=extra)["mine.c"]
    (loss,) = mine.select_events("three_duplicates").itertuples()
    assert loss.cwnd == loss.cwnd_before * 70 // 100


def test_what_no_module_can_be_is_refused_by_file_and_line(tmp_path: Path) -> None:
    source = new_scheme(tmp_path)
    text = source.read_text()
    source.write_text(
        text.replace("{ (void)connection; }", "{ (void)connection; bpf_ktime_get_ns(); }")
    )
    said = run(tmp_path / "mine.yaml", tmp_path / "out", status=2)
    assert "mine.c is not available: " in said
    assert re.search(r"mine\.c:\d+: implicit declaration of function .bpf_ktime_get_ns", said)
