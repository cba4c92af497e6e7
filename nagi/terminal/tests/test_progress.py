# SPDX-License-Identifier: Apache-2.0
"""The lines of a campaign's progress where there is no terminal."""

from __future__ import annotations

from nagi.terminal.progress import Progress
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Verdict
from rich.console import Console

(RECORDED,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())
PLAN = RunPlan.read(RECORDED / "plan.json")
RUN = "1 Mb/s, cubic"


def make_runs(*names: str) -> list[RunPlan]:
    return [PLAN.model_copy(update={"run_id": name}) for name in names]


def make_verdict(status: str) -> Verdict:
    return Verdict(run_id="", status=status, reasons=[], checks=[])


class Display:
    """A display of progress whose clock only moves when a test moves it. Every run lasts 10 s."""

    def __init__(self, total: int, **options) -> None:
        self.now = 0.0
        self._console = Console(width=100, record=True, force_terminal=False)
        self.progress = Progress(
            self._console, total, estimate=lambda plan: 10.0, clock=lambda: self.now, **options
        )

    def wait(self, seconds: float) -> list[str]:
        """Return the lines that are printed `seconds` later, and those printed before."""
        self.now += seconds
        self.progress.tick()
        return self.read_lines()

    def read_lines(self) -> list[str]:
        """Return the lines printed since the last call."""
        return self._console.export_text().splitlines()


def print_campaign(at_least: bool) -> list[str]:
    first, second, third, added = make_runs("a", "b", "c", "d")
    display = Display(3, at_least=at_least, tries=3)
    with display.progress as progress:
        progress.done_before([first])
        progress.run_over(second, make_verdict("invalid"))
        progress.run_over(second, make_verdict("valid"))  # another try is not another run
        progress.run_over(third, make_verdict("valid"))
        if at_least:
            progress.runs_added([added])
            progress.run_over(added, make_verdict("valid"))
    return display.read_lines()


def test_every_run_is_counted_once():
    assert print_campaign(at_least=False) == [
        f"[2/3] {RUN}: invalid",
        f"[2/3] {RUN}, attempt 2 of 3: valid",
        f"[3/3] {RUN}: valid",
    ]


def test_a_total_that_may_grow_is_said_to_be_the_least():
    assert print_campaign(at_least=True)[2:] == [
        f"[3/at least 3] {RUN}: valid",
        "1 more run, because confidence intervals are wider than requested",
        f"[4/at least 4] {RUN}: valid",
    ]


def test_retries_are_shown_as_retries():
    first, second, third = plans = make_runs("a", "b", "c")
    display = Display(3, tries=3, jobs=2)
    with display.progress as progress:
        progress.round_starting(plans)
        progress.batch_starting({"cell0": [first, third], "cell1": [second]}, lead_s=3.0)
        # 3 s until the first run begins, 2 s of shipping.
        assert display.wait(16) == ["running: about 2 of 3 runs done, 9 s left"]
        for plan, status in zip(plans, ("invalid", "valid", "invalid"), strict=True):
            progress.run_over(plan, make_verdict(status))
        display.read_lines()
        display.now = 25.0
        progress.round_starting([first, third])
        (line,) = display.read_lines()
        # A batch that should last 20 s took 25.
        assert line == ("3 of 3 runs tried; trying 2 runs again (attempt 2 of 3), 25 s left")
        progress.batch_starting({"cell0": [first, third]}, lead_s=3.0)
        assert display.wait(16) == [
            "trying 2 runs again (attempt 2 of 3): about 1 of 2 runs done, 9 s left"
        ]
        progress.run_over(first, make_verdict("valid"))
        progress.run_over(third, make_verdict("invalid"))
        assert display.read_lines() == [
            f"[3/3] {RUN}, attempt 2 of 3: valid",
            f"[3/3] {RUN}, attempt 2 of 3: invalid",
        ]
        progress.round_starting([third])
        (line,) = display.read_lines()
        assert line.startswith("3 of 3 runs tried; trying 1 run again (attempt 3 of 3), ")


def test_what_an_earlier_nagi_tried_is_tried_again():
    first, second, third = make_runs("a", "b", "c")
    display = Display(3, tries=3, tried={"b": 1})
    with display.progress as progress:
        progress.done_before([first])
        progress.round_starting([second, third])
        assert display.read_lines() == [
            "2 of 3 runs tried, 1 not yet; trying 1 run again (attempt 2 of 3), 20 s left"
        ]
        progress.run_over(third, make_verdict("valid"))
        progress.run_over(second, make_verdict("valid"))
    assert display.read_lines() == [f"[3/3] {RUN}: valid", f"[3/3] {RUN}, attempt 2 of 3: valid"]


def test_in_virtual_time_the_time_left_is_estimated_and_learns():
    plans = make_runs(*"abcdef")
    display = Display(6, jobs=2)
    with display.progress as progress:
        progress.round_starting(plans)
        progress.batch_starting({"cell0": plans[::2], "cell1": plans[1::2]}, lead_s=None)
        # Each run is expected to take 10 s. The first is late, so the following runs are expected
        # to be late, too. The estimate has the weight of one run.
        assert display.wait(15) == ["running: 0 of 6 runs done, 22 s left"]
        assert display.wait(15) == ["running: 0 of 6 runs done, 30 s left"]
        for plan in plans[:2]:
            progress.run_over(plan, make_verdict("valid"))
        display.read_lines()
        # The runs took 60 s instead of 20; with one run as estimated, the factor is 70 / 30.
        assert display.wait(15) == ["running: 2 of 6 runs done, 32 s left"]
        display.now += 10
        progress.run_over(plans[2], make_verdict("valid"))
        display.read_lines()
        # 135 s in place of 50, with the one that has had 40 s by now; another has had 15 s.
        assert display.wait(15) == ["running: 3 of 6 runs done, 13 s left"]
        for plan in plans[3:]:
            progress.run_over(plan, make_verdict("valid"))
        display.read_lines()
    assert display.wait(100) == ["running: 6 of 6 runs done"]


def test_that_it_takes_longer_than_estimated_is_said_once():
    (plan,) = make_runs("a")
    display = Display(1)
    with display.progress as progress:
        progress.round_starting([plan])
        progress.batch_starting({"cell0": [plan]}, lead_s=0.0)
        assert display.wait(100) == ["running: about 1 of 1 run done, longer than estimated"]
        assert display.wait(100) == ["running: about 1 of 1 run done"]


def test_metrics_that_are_computed_again_are_counted():
    display = Display(3)
    with display.progress as progress:
        progress.step("analysing")
        assert display.wait(14) == []
        assert display.wait(1) == ["analysing: 1 of 3 runs done"]
