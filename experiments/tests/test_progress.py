# SPDX-License-Identifier: Apache-2.0
"""What a campaign says of itself where there is no terminal."""

from __future__ import annotations

from nagi.contracts.plan import RunPlan
from nagi.contracts.records import Verdict
from nagi.paths import SCHEMAS
from nagi.progress import Progress
from rich.console import Console

(RECORDED,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())
PLAN = RunPlan.read(RECORDED / "plan.json")


def runs(*names: str) -> list[RunPlan]:
    return [PLAN.model_copy(update={"run_id": name}) for name in names]


def verdict(status: str) -> Verdict:
    return Verdict(run_id="", status=status, reasons=[], checks=[])


def said_by(at_least: bool) -> list[str]:
    console = Console(width=100, record=True, quiet=False, force_terminal=False)
    first, second, third, added = runs("a", "b", "c", "d")
    with Progress(console, 3, at_least=at_least) as progress:
        progress.done_before([first])
        progress.run_over(second, verdict("invalid"))
        progress.run_over(second, verdict("valid"))  # another try is not another run
        progress.run_over(third, verdict("valid"))
        if at_least:
            progress.runs_added([added])
            progress.run_over(added, verdict("valid"))
    return console.export_text().splitlines()


def test_every_run_is_counted_once():
    assert said_by(at_least=False) == [
        "[2/3] 1 Mb/s, cubic: invalid",
        "[2/3] 1 Mb/s, cubic: valid",
        "[3/3] 1 Mb/s, cubic: valid",
    ]


def test_a_total_that_may_grow_is_said_to_be_the_least():
    assert said_by(at_least=True)[2:] == [
        "[3/at least 3] 1 Mb/s, cubic: valid",
        "1 more run, as intervals are wider than asked for",
        "[4/at least 4] 1 Mb/s, cubic: valid",
    ]
