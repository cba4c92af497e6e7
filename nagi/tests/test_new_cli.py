# SPDX-License-Identifier: Apache-2.0
"""The command `nagi new`: what it writes, and what it refuses."""

from __future__ import annotations

import pytest
from nagi.cli.main import make_app
from nagi.cli.new import TEMPLATES
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.errors import InputError
from typer.testing import CliRunner


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def new(*arguments: str) -> str:
    done = CliRunner().invoke(make_app(), ["new", *arguments])
    if done.exception is not None:
        raise done.exception
    assert done.exit_code == 0
    return done.output


def test_every_template_can_be_planned_in_all_its_variants(here):
    for template in TEMPLATES:
        said = new(f"my-{template}", "--template", template)
        assert f"wrote my-{template}.yaml\n" in said
        assert f"nagi plan my-{template}.yaml " in said and f"nagi run my-{template}.yaml " in said
        path = here / f"my-{template}.yaml"
        text = path.read_text()
        assert "SPDX" not in text and text.startswith("# ")
        points = read_experiment(path, None)
        assert points[0].experiment.name == f"my-{template}"
        for variant in (None, *points[0].experiment.variants):
            assert all(plan_runs(point, variant) for point in read_experiment(path, variant))


def test_the_smallest_is_small(here):
    new("first")
    text = (here / "first.yaml").read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) < 20
    points = read_experiment(here / "first.yaml", None)
    (flow,) = plan_runs(points[0], None)[0].flows
    assert (flow.bottleneck_bps, flow.base_rtt_s) == (10_000_000, 0.04)


def test_a_trace_comes_with_the_experiment_that_names_it(here):
    (here / "elsewhere").mkdir()
    new("mine", "--template", "trace", "--out", "elsewhere/spec.yaml")
    assert {each.name for each in (here / "elsewhere").iterdir()} == {"spec.yaml", "mine.steps"}
    assert read_experiment(here / "elsewhere" / "spec.yaml", None)


def test_nothing_is_overwritten(here):
    new("mine")
    before = (here / "mine.yaml").read_text()
    with pytest.raises(InputError, match=r"mine.yaml: it exists already; give another name"):
        new("mine", "--template", "sweep")
    assert (here / "mine.yaml").read_text() == before
    (here / "other.steps").write_text("mine\n")
    with pytest.raises(InputError, match=r"other.steps: it exists already"):
        new("other", "--template", "trace")
    assert not (here / "other.yaml").exists()


@pytest.mark.parametrize("name", ["", "Mine", "a/b", "..", "a b", "a\n", "ä", "_a", "a.yaml"])
def test_names_that_no_experiment_may_have_are_refused(name, here):
    with pytest.raises(InputError, match="is no name of an experiment; begin with"):
        new(name)
    assert not list(here.iterdir())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--template", "moon"], "there is no such template; one of: path, sweep"),
        (["--out", "none/a.yaml"], "none/a.yaml: cannot write it: No such file or directory"),
        (["--out", "."], "it exists already"),
    ],
)
def test_what_cannot_be_written_is_refused(arguments, complaint, here):
    with pytest.raises(InputError) as refused:
        new("a", *arguments)
    assert complaint in str(refused.value)
    assert not list(here.iterdir())
