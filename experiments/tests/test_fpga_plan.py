# SPDX-License-Identifier: Apache-2.0
"""Links that an FPGA's core carries, as they are planned: what the core lacks, and what does not
fit its memory, is refused before anything runs."""

from __future__ import annotations

import pytest
from fpga_specs import FPGA, LINK, changed, plans_of, points_of
from nagi.campaign.build import current_build
from nagi.campaign.campaign import has_simulated_fpgas, select
from nagi.cli.main import make_app
from nagi.cli.run import leave_out
from nagi.plan import fpga
from nagi.plan.fpga_links import SIMULATED
from nagi.plan.planner import plan_runs
from nagi.plan.schemes import Availability
from nagi.spec.points import read_experiment
from nagi.terminal.site import choose_jobs
from nagi_contracts.errors import InputError
from nagi_contracts.paths import EXPERIMENTS
from prefixes import make_prefix
from typer.testing import CliRunner

MISSING = Availability(False, "there is no nagi-fpga", fpga.INSTALL)
THERE = Availability(True)
DELAY = "    delay: 20 ms\n"


def test_an_fpga_meets_the_channel_that_nagi_link_does(tmp_path):
    (mine,), (its,) = plans_of(tmp_path), plans_of(tmp_path, LINK)
    assert mine.simulated_fpgas() == [mine.link("wireless")]
    assert its.simulated_fpgas() == []
    assert mine.seed == its.seed
    assert mine.link("wireless").forward == its.link("wireless").forward
    assert mine.timeline == its.timeline
    assert mine.with_ids("b").run_id != its.with_ids("b").run_id
    assert "fpga" not in its.link("wireless").model_dump(mode="json")


def test_an_fpga_is_simulated_unless_something_else_is_said(tmp_path):
    said = changed(("emulator: fpga", "emulator: fpga\n    fpga: {by: simulated}"))
    assert plans_of(tmp_path, said) == plans_of(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "place", "what"),
    [
        (DELAY, DELAY + "    burst: 32 kB\n", ":13: links.wireless.burst", "no token bucket"),
        (DELAY, DELAY + "    jitter: {distribution: uniform, half_width: 1 ms}\n",
         ":13: links.wireless.jitter", "no jitter"),
        (DELAY, "    delay_trace: {steps: {0 s: 1 ms, 1 s: 2 ms}, period: 2 s}\n",
         ":12: links.wireless.delay_trace", "delay of the FPGA's core does not change; give"),
        ("    rate: $rate\n", "    rate_trace: {steps: {0 s: 1 Mb/s}, period: 2 s}\n",
         ":11: links.wireless.rate_trace", "rate of the FPGA's core does not change; give"),
        (DELAY, DELAY + "    arq: {retries: 3, feedback: 8 ms}\n", ":13: links.wireless.arq",
         "no ARQ"),
        (DELAY, DELAY + "    corruption: {rate: 1 %}\n", ":13: links.wireless.corruption",
         "corrupts no packets"),
        (DELAY, DELAY + "    duplication: {rate: 1 %}\n", ":13: links.wireless.duplication",
         "duplicates no packets"),
        (DELAY, DELAY + "    reordering: {rate: 1 %, delay: 1 ms}\n",
         ":13: links.wireless.reordering", "reorders no packets"),
        ("queue: 20 packets", "queue: {limit: 20 packets, discipline: codel}",
         ":13: links.wireless.queue", "no queue discipline codel; give it `drop_tail`"),
        (DELAY, DELAY + "    mark: {threshold: 5 packets}\n", ":13: links.wireless.mark",
         "marks by the queue itself, not by its average; give `weight: 1`"),
        ("{model: poisson, rate: 1 %}", "{model: bernoulli_bit, rate: 1e-6}",
         ":15: links.wireless.forward.loss",
         "no loss model bernoulli_bit; use none, bernoulli, gilbert_elliott, poisson"),
        (DELAY, "    delay: 100 s\n", ":12: links.wireless.delay",
         "the core's memory holds 17 MB in 16,384"),
        ("queue: 20 packets", "queue: 20000 packets", ":13: links.wireless.queue",
         "packets; the core's memory holds"),
        ("    rate: $rate\n    delay: 20 ms\n    queue: 20 packets\n    forward:\n"
         "      loss: {model: poisson, rate: 1 %}\n", DELAY, ":10: links.wireless.emulator",
         "without a rate forward nothing bounds what is under way"),
    ],
)  # fmt: skip
def test_what_the_core_cannot_do_is_refused_with_key_and_cure(tmp_path, old, new, place, what):
    text = changed((old, new))
    if "$rate" not in text:
        text = text.replace("title: A test", "title: $rate")
    with pytest.raises(InputError) as refused:
        plans_of(tmp_path, text)
    said = str(refused.value)
    assert f"{place}: " in said
    assert what in said
    assert "or write `emulator: link`" in said


def test_a_switch_shapes_no_link_of_an_fpga(tmp_path):
    text = changed(
        ("N: router", "N: switch"), ("    forward:\n", "    forward:\n      shaped_by: switch\n")
    )
    with pytest.raises(InputError, match=r":15: links\.wireless\.forward\.shaped_by: a switch can"):
        plans_of(tmp_path, text)


def test_an_fpga_and_a_radio_are_not_of_one_run(tmp_path):
    text = changed(
        (
            "{between: [S, N], rate: 10 Mb/s, delay: 30 ms, queue: 1 bdp}",
            "{between: [S, N], emulator: sdr, delay: 30 ms, queue: 9 packets, "
            "radio: {modem: ofdm, modulation: qpsk, rate: 2 Mb/s, snr: 12 dB}}",
        )
    )
    with pytest.raises(InputError, match=r"links\.wireless\.emulator: an FPGA's link beside wired"):
        plans_of(tmp_path, text)


def test_what_the_core_has_is_planned(tmp_path):
    plans_of(
        tmp_path,
        changed(
            (
                "queue: 20 packets",
                "queue: {discipline: drop_tail, limit: 20 packets, counts_transmission: true}",
            ),
            (
                DELAY,
                DELAY + "    mark: {threshold: 5 packets, weight: 1}\n    overhead: 30 bytes\n",
            ),
            (
                "{model: poisson, rate: 1 %}",
                "{model: gilbert_elliott, good_to_bad: 1 %, bad_to_good: 30 %, at: ingress}",
            ),
        ),
    )


def test_settings_of_an_fpga_are_for_fpgas(tmp_path):
    text = LINK.replace(DELAY, DELAY + "    fpga: {by: simulated}\n")
    with pytest.raises(InputError, match=r":12: links\.wireless\.fpga: `fpga` on a link that is"):
        plans_of(tmp_path, text)
    with pytest.raises(InputError, match=r"links\.wireless\.fpga\.by"):
        plans_of(tmp_path, changed(("emulator: fpga", "emulator: fpga\n    fpga: {by: magic}")))


def test_the_papers_links_fit_the_memory():
    for point in read_experiment(EXPERIMENTS / "achievement-2008.yaml", "fpga"):
        for plan in plan_runs(point, "fpga"):
            assert plan.simulated_fpgas()
    assert SIMULATED.bytes == 16 << 20


def test_runs_wait_for_nagi_fpga(tmp_path):
    points = points_of(tmp_path)
    assert has_simulated_fpgas(points)
    assert not has_simulated_fpgas(points_of(tmp_path, LINK))
    build = current_build()
    chosen = select(points, None, {}, build, lambda _: THERE, fpgas=lambda: MISSING)
    assert chosen.available() == []
    assert chosen.missing(chosen.plans[0]) == ["link wireless"]
    with pytest.raises(InputError) as refused:
        leave_out(chosen, skip_unavailable=False)
    assert (
        "spec.yaml:10: links.wireless.emulator: link wireless is an FPGA's: there is no nagi-fpga; "
        "build it: `make fpga-simulation`" in str(refused.value)
    )


def test_the_command_says_that_nagi_fpga_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("NAGI_PREFIX", str(make_prefix(tmp_path / "p", without=["nagi-fpga"])))
    (tmp_path / "spec.yaml").write_text(FPGA)
    said = CliRunner().invoke(make_app(), ["plan", str(tmp_path / "spec.yaml")])
    assert said.exit_code == 0
    assert "link wireless is an FPGA's: there is no" in " ".join(said.output.split())


def test_the_build_of_a_run_has_nagi_fpga(tmp_path, monkeypatch):
    prefix = make_prefix(tmp_path / "p", without=["nagi-fpga"])
    monkeypatch.setenv("NAGI_PREFIX", str(prefix))
    program = prefix / "bin" / "nagi-fpga"
    ids = set()
    for text in ("one", "another"):
        program.write_text(text)
        build = current_build(fpgas=True)
        assert build.nagi_fpga is not None
        ids.add(build.id)
    assert len(ids) == 2
    assert current_build().nagi_fpga is None


def test_a_simulated_fpga_keeps_a_processor_busy(tmp_path):
    (plan,) = plans_of(tmp_path)
    assert choose_jobs([plan], processors=4) == 4
    (both,) = plans_of(tmp_path, changed(("delay: 30 ms, ", "delay: 30 ms, emulator: fpga, ")))
    assert choose_jobs([both], processors=4) == 2
