# SPDX-License-Identifier: Apache-2.0
"""Test that a folder beside nagi's own backends takes part in plans, with no other file changed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from nagi import backends
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.errors import InputError
from nagi_contracts.plan import RunPlan
from specs import two_links

PLAN = '''
"""Plan links whose name begins with `echo`: they have 3 Mb/s, and no marks."""

from nagi.backends.interface import Planner
from nagi_contracts.plan import DirectionPlan


class EchoPlanner(Planner):
    noun = "an echo"

    def __init__(self, request):
        super().__init__(request)
        names = [name for name in request.experiment.links if name.startswith("echo")]
        self.links = {name: {"answers": 2} for name in names}

    @property
    def start_s(self):
        return 1.5 if self.links else 0.0

    @property
    def finish_s(self):
        return 0.5 if self.links else 0.0

    def plan_channel(self, link, settings):
        return DirectionPlan(rate_bps=3_000_000, delay_ns=7_000_000)

    def require_fit(self, directions):
        for (link, direction), plan in directions.items():
            if link in self.links and plan.mark is not None:
                key_path = self._request.locate_setting(link, direction, "mark")
                raise self._request.error(key_path, "an echo has no marks", "remove it")


part = EchoPlanner
'''
OWN = "rate: 10 Mb/s, delay: 7 ms, queue: 20 packets"


def plan_one(directory: Path, name: str, settings: str = OWN) -> RunPlan:
    """Return the plan of an experiment whose second link is called `name`."""
    text = two_links(
        "test",
        "rate: 10 Mb/s, delay: 5 ms",
        settings,
        "scheme: $scheme",
        "duration: 2 s\nmatrix: {scheme: [newreno]}\nreport: {x: scheme}\n",
        radio_name=name,
    )
    path = directory / "spec.yaml"
    path.write_text(text)
    (point,) = read_experiment(path, None)
    (plan,) = plan_runs(point, None)
    return plan


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put a backend called `echo` beside nagi's own."""
    folder = tmp_path / "further" / "echo"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "plan.py").write_text(PLAN)
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(folder.parent)])
    yield
    for module in ("nagi.backends.echo", "nagi.backends.echo.plan"):
        sys.modules.pop(module, None)
    vars(backends).pop("echo", None)


@pytest.mark.usefixtures("echo")
def test_a_further_backend_plans_its_links(tmp_path):
    plan = plan_one(tmp_path, "echo1")
    (link,) = plan.carried_by("echo")
    assert link.name == "echo1"
    assert link.parts == {"echo": {"answers": 2}}
    assert (link.forward.rate_bps, link.forward.delay_ns) == (3_000_000, 7_000_000)
    assert link.forward.queue.packets == 20
    assert json.loads(plan.model_dump_json())["links"][1]["parts"] == {"echo": {"answers": 2}}
    assert [other.name for other in plan.carried_by("link")] == ["wired"]


@pytest.mark.usefixtures("echo")
def test_the_programs_of_a_further_backend_have_time_to_start_and_to_end(tmp_path):
    with_echo, without = plan_one(tmp_path, "echo1").timeline, plan_one(tmp_path, "air").timeline
    assert with_echo.capture_s - without.capture_s == pytest.approx(1.5)
    after = [times.end_s - times.capture_end_s for times in (with_echo, without)]
    assert after[0] - after[1] == pytest.approx(0.5)


@pytest.mark.usefixtures("echo")
def test_links_of_other_backends_are_planned_as_without_it(tmp_path, monkeypatch):
    with_echo = plan_one(tmp_path, "air")
    monkeypatch.undo()
    assert with_echo == plan_one(tmp_path, "air")


@pytest.mark.usefixtures("echo")
def test_a_further_backend_refuses_what_it_does_not_support(tmp_path):
    with pytest.raises(InputError, match="an echo has no marks") as error:
        plan_one(tmp_path, "echo1", f"{OWN}, mark: {{threshold: 5 packets}}")
    assert error.value.problems[0].key == "links.echo1.mark"


@pytest.mark.usefixtures("echo")
@pytest.mark.parametrize("in_seed", [True, False])
def test_a_further_backend_says_whether_its_plans_decide_the_seed(tmp_path, monkeypatch, in_seed):
    first = plan_one(tmp_path, "echo1")
    planner = sys.modules["nagi.backends.echo.plan"].EchoPlanner
    monkeypatch.setattr(planner, "decides_seed", in_seed)
    original = planner.__init__

    def answer_thrice(self, request):
        original(self, request)
        self.links = {name: {"answers": 3} for name in self.links}

    seed = plan_one(tmp_path, "echo1").seed
    monkeypatch.setattr(planner, "__init__", answer_thrice)
    assert (plan_one(tmp_path, "echo1").seed == seed) is not in_seed
    assert (first.seed == seed) is in_seed
