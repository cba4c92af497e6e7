# SPDX-License-Identifier: Apache-2.0
"""The command `nagi new`: the files that it writes, and the input that it refuses."""

from __future__ import annotations

import pytest
from nagi.cli.main import make_app
from nagi.cli.new import TEMPLATES
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.errors import InputError
from typer.testing import CliRunner


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_new(*arguments: str) -> str:
    result = CliRunner().invoke(make_app(), ["new", *arguments])
    if result.exception is not None:
        raise result.exception
    assert result.exit_code == 0
    return result.output


def test_every_template_can_be_planned_in_all_its_variants(directory):
    for template in TEMPLATES:
        output = run_new(f"my-{template}", "--template", template)
        assert f"wrote my-{template}.yaml\n" in output
        assert (
            f"nagi plan my-{template}.yaml " in output and f"nagi run my-{template}.yaml " in output
        )
        path = directory / f"my-{template}.yaml"
        text = path.read_text()
        assert "SPDX" not in text and text.startswith("# ")
        points = read_experiment(path, None)
        assert points[0].experiment.name == f"my-{template}"
        for variant in (None, *points[0].experiment.variants):
            assert all(plan_runs(point, variant) for point in read_experiment(path, variant))


def test_the_smallest_is_small(directory):
    run_new("first")
    text = (directory / "first.yaml").read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) < 20
    points = read_experiment(directory / "first.yaml", None)
    (flow,) = plan_runs(points[0], None)[0].flows
    assert (flow.bottleneck_bps, flow.base_rtt_s) == (10_000_000, 0.04)


def test_a_trace_comes_with_the_experiment_that_names_it(directory):
    (directory / "elsewhere").mkdir()
    run_new("mine", "--template", "trace", "--out", "elsewhere/spec.yaml")
    assert {path.name for path in (directory / "elsewhere").iterdir()} == {
        "spec.yaml",
        "mine.steps",
    }
    assert read_experiment(directory / "elsewhere" / "spec.yaml", None)


def test_nothing_is_overwritten(directory):
    run_new("mine")
    before = (directory / "mine.yaml").read_text()
    with pytest.raises(InputError, match=r"mine.yaml: this file exists already; give another name"):
        run_new("mine", "--template", "sweep")
    assert (directory / "mine.yaml").read_text() == before
    (directory / "other.steps").write_text("mine\n")
    with pytest.raises(InputError, match=r"other.steps: this file exists already"):
        run_new("other", "--template", "trace")
    assert not (directory / "other.yaml").exists()


@pytest.mark.parametrize("name", ["", "Mine", "a/b", "..", "a b", "a\n", "ä", "_a", "a.yaml"])
def test_names_that_no_experiment_may_have_are_refused(name, directory):
    with pytest.raises(InputError, match="is not a valid name of an experiment; use lower"):
        run_new(name)
    assert not list(directory.iterdir())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--template", "moon"], "there is no such template; one of: path, sweep"),
        (
            ["--out", "none/a.yaml"],
            "none/a.yaml: cannot write this file: No such file or directory",
        ),
        (["--out", "."], "this file exists already"),
    ],
)
def test_what_cannot_be_written_is_refused(arguments, complaint, directory):
    with pytest.raises(InputError) as refused:
        run_new("a", *arguments)
    assert complaint in str(refused.value)
    assert not list(directory.iterdir())
