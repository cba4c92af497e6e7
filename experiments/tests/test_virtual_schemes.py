# SPDX-License-Identifier: Apache-2.0
"""What schemes do at losses of chosen packets and at marks, as modules of the guest kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from marks import in_virtual_time
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Verdict
from specs import two_links
from test_virtual_lab import no_guest_left, run, runs_of  # noqa: F401 - a fixture

pytestmark = in_virtual_time

PAYLOAD = 1000
PACKETS = 20_000  # more than any run here sends
LOST = 3_000  # in congestion avoidance
RATE = 8e6
SPEC = two_links(
    "schemes",
    "rate: 100 Mb/s, delay: 10 ms",
    "rate: 8 Mb/s, delay: 10 ms, queue: 100 packets, LINK",
    "scheme: $scheme, payload: 1000 bytes",
    """\
host_profile: ns2
ecn: false
duration: 8 s
matrix: {scheme: [SCHEMES]}
report: {x: scheme}
""",
)
MARKING = "mark: {threshold: 10 packets, weight: 1}"


@dataclass(frozen=True)
class Observed:
    """A run: what its scheme told, and what became of each packet on the bottleneck."""

    plan: RunPlan
    events: pd.DataFrame
    packets: pd.DataFrame

    def of(self, event: str) -> pd.DataFrame:
        return self.events[self.events["event"] == event]

    @property
    def available(self) -> pd.Series[float]:
        """ownd of each event, in segments: RTTmin x R / segment size, but at least 2."""
        rate = self.events["bandwidth_bytes_per_second"]
        return (rate * self.events["min_rtt_us"] // 10**6 // PAYLOAD).clip(lower=2)


Runs = Callable[..., dict[str, Observed]]


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    def of(schemes: str, link: str, *, lost: list[int] | None = None) -> dict[str, Observed]:
        if lost is not None:
            trace = ["0"] * PACKETS
            for index in lost:
                trace[index] = "1"
            (tmp_path / "lost.txt").write_text("\n".join(trace))
            link += ", forward: {loss: {model: trace, file: lost.txt}}"
        spec = tmp_path / "spec.yaml"
        spec.write_text(SPEC.replace("SCHEMES", schemes).replace("LINK", link))
        run(spec, tmp_path / "out")
        return {name: _observed(place) for name, place in runs_of(tmp_path / "out").items()}

    return of


def _observed(place: Path) -> Observed:
    assert Verdict.read(place / "verdict.json").status == "valid"
    packets = pd.read_parquet(place / "packets.parquet")
    return Observed(
        RunPlan.read(place / "plan.json"),
        pd.read_parquet(place / "scheme_events.parquet"),
        packets[(packets["link"] == "radio") & (packets["direction"] == "forward")],
    )


def test_newjersey_takes_a_loss_without_a_mark_for_the_channel_s(runs: Runs) -> None:
    """Without marks nothing is reduced; reno, the control, halves."""
    found = runs("newjersey, reno", "mark: {threshold: 10000 packets}", lost=[LOST])
    jersey, reno = found["newjersey"], found["reno"]
    (loss,) = jersey.of("three_duplicates").itertuples()
    assert loss.verdict == "channel"
    assert (loss.cwnd, loss.ssthresh) == (loss.cwnd_before, loss.ssthresh_before)
    assert jersey.of("congestion_mark").empty and not jersey.packets["marked"].any()
    loss = next(reno.of("three_duplicates").itertuples())
    assert loss.verdict == "congestion"
    assert loss.cwnd == loss.cwnd_before // 2


def test_newjersey_sets_its_window_by_its_estimate_at_a_mark(runs: Runs) -> None:
    """At most once a round trip. Reno does not ask for ECN, so its packets are not marked."""
    found = runs("newjersey, reno", MARKING)
    jersey, reno = found["newjersey"], found["reno"]
    assert jersey.packets["marked"].any() and not reno.packets["marked"].any()
    marks = jersey.of("congestion_mark")
    assert len(marks) >= 2 and set(marks["verdict"]) == {"congestion"}
    ownd = jersey.available[marks.index]
    assert (marks["cwnd"] == ownd).all() and (marks["ssthresh"] == ownd).all()
    assert (marks["t_s"].diff().dropna() * 1e6 >= marks["min_rtt_us"].iloc[1:]).all()
    # What fills the path without a queue: the estimate of a full path is its rate.
    segments = RATE / 8 * jersey.events["min_rtt_us"].max() / 1e6 / (PAYLOAD + 52)
    assert marks["cwnd"].iloc[-1] == pytest.approx(segments, rel=0.1)


def test_newjersey_takes_a_loss_with_a_mark_for_congestion(runs: Runs) -> None:
    """The packet after one that is marked is lost: the window is set once, by the mark."""
    marked = runs("newjersey", MARKING)["newjersey"].packets
    first = int(marked["marked"].to_numpy().argmax())
    jersey = runs("newjersey", MARKING, lost=[first + 1])["newjersey"]
    mark = next(jersey.of("congestion_mark").itertuples())
    loss = next(jersey.of("three_duplicates").itertuples())
    assert mark.t_s < loss.t_s
    assert pd.isna(loss.verdict)  # that of the mark
    assert loss.cwnd == loss.cwnd_before == mark.cwnd == mark.ssthresh


def test_newjersey_begins_anew_after_a_timeout_with_its_estimate_as_threshold(runs: Runs) -> None:
    # The window when the first of them is lost, and no retransmission.
    jersey = runs("newjersey", MARKING, lost=list(range(LOST, LOST + 50)))["newjersey"]
    timeout = next(jersey.of("timeout").itertuples())
    assert timeout.verdict == "congestion"
    assert timeout.cwnd == 1
    assert timeout.ssthresh == jersey.available[timeout.Index]


def test_newjersey_is_refused_where_no_link_marks(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC.replace("SCHEMES", "newjersey").replace(", LINK", ""))
    said = run(spec, tmp_path / "out", status=2)
    assert "scheme.0: newjersey reacts to marks (ECN), and no link marks on its path" in said
    assert "wired (forward), radio (forward); let the bottleneck mark" in said
    assert not (tmp_path / "out").exists()
