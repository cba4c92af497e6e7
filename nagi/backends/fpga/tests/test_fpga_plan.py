# SPDX-License-Identifier: Apache-2.0
"""Test links of FPGAs: settings that the core lacks, and queues that exceed its memory."""

from __future__ import annotations

import pytest
from fpga_specs import FPGA, LINK, change_lines, plan_points, read_points
from nagi.backends.availability import Availability
from nagi.backends.fpga.needs import INSTALL
from nagi.backends.fpga.plan import SIMULATED
from nagi.campaign.build import identify_build
from nagi.campaign.selection import find_backends, select_runs
from nagi.cli.main import make_app
from nagi.commands.run import leave_out
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi.terminal.site import choose_jobs
from nagi_contracts.errors import InputError
from nagi_contracts.paths import EXPERIMENTS
from prefixes import make_prefix
from typer.testing import CliRunner

MISSING = Availability(False, "there is no nagi-fpga", INSTALL)
THERE = Availability(True)
DELAY = "    delay: 20 ms\n"


def test_an_fpga_meets_the_channel_that_nagi_link_does(tmp_path):
    (with_fpga,), (with_nagi_link,) = plan_points(tmp_path), plan_points(tmp_path, LINK)
    assert with_fpga.carried_by("fpga") == [with_fpga.link("wireless")]
    assert with_nagi_link.carried_by("fpga") == []
    assert with_fpga.seed == with_nagi_link.seed
    assert with_fpga.link("wireless").forward == with_nagi_link.link("wireless").forward
    assert with_fpga.timeline == with_nagi_link.timeline
    assert with_fpga.with_ids("b").run_id != with_nagi_link.with_ids("b").run_id
    assert "fpga" not in with_nagi_link.link("wireless").model_dump(mode="json")


def test_an_fpga_is_simulated_unless_something_else_is_said(tmp_path):
    text = change_lines(("emulator: fpga", "emulator: fpga\n    fpga: {by: simulated}"))
    assert plan_points(tmp_path, text) == plan_points(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "location", "complaint"),
    [
        (DELAY, DELAY + "    burst: 32 kB\n", ":13: links.wireless.burst", "no token bucket"),
        (DELAY, DELAY + "    jitter: {distribution: uniform, half_width: 1 ms}\n",
         ":13: links.wireless.jitter", "no jitter"),
        (DELAY, "    delay_trace: {steps: {0 s: 1 ms, 1 s: 2 ms}, period: 2 s}\n",
         ":12: links.wireless.delay_trace", "the FPGA's core supports only a constant delay; give"),
        ("    rate: $rate\n", "    rate_trace: {steps: {0 s: 1 Mb/s}, period: 2 s}\n",
         ":11: links.wireless.rate_trace", "the FPGA's core supports only a constant rate; give"),
        (DELAY, DELAY + "    arq: {retries: 3, feedback: 8 ms}\n", ":13: links.wireless.arq",
         "no ARQ"),
        (DELAY, DELAY + "    corruption: {rate: 1 %}\n", ":13: links.wireless.corruption",
         "corrupts no packets"),
        (DELAY, DELAY + "    duplication: {rate: 1 %}\n", ":13: links.wireless.duplication",
         "duplicates no packets"),
        (DELAY, DELAY + "    reordering: {rate: 1 %, delay: 1 ms}\n",
         ":13: links.wireless.reordering", "reorders no packets"),
        ("queue: 20 packets", "queue: {limit: 20 packets, discipline: codel}",
         ":13: links.wireless.queue", "no queue discipline codel; use `drop_tail`"),
        (DELAY, DELAY + "    mark: {threshold: 5 packets}\n", ":13: links.wireless.mark",
         "marks by the current length of the queue, not by its average; give `weight: 1`"),
        ("{model: poisson, rate: 1 %}", "{model: bernoulli_bit, rate: 1e-6}",
         ":15: links.wireless.forward.loss",
         "no loss model bernoulli_bit; use none, bernoulli, gilbert_elliott, poisson"),
        (DELAY, "    delay: 100 s\n", ":12: links.wireless.delay",
         "the core's memory holds 17 MB in 16,384"),
        ("queue: 20 packets", "queue: 20000 packets", ":13: links.wireless.queue",
         "packets; the core's memory holds"),
        ("    rate: $rate\n    delay: 20 ms\n    queue: 20 packets\n    forward:\n"
         "      loss: {model: poisson, rate: 1 %}\n", DELAY, ":10: links.wireless.emulator",
         "direction forward has no rate, so its packets in flight are unlimited"),
    ],
)  # fmt: skip
def test_what_the_core_cannot_do_is_refused_with_key_and_cure(
    tmp_path, old, new, location, complaint
):
    text = change_lines((old, new))
    if "$rate" not in text:
        text = text.replace("title: A test", "title: $rate")
    with pytest.raises(InputError) as refused:
        plan_points(tmp_path, text)
    message = str(refused.value)
    assert f"{location}: " in message
    assert complaint in message
    assert "or write `emulator: link`" in message


def test_a_switch_shapes_no_link_of_an_fpga(tmp_path):
    text = change_lines(
        ("N: router", "N: switch"), ("    forward:\n", "    forward:\n      shaped_by: switch\n")
    )
    with pytest.raises(InputError, match=r":15: links\.wireless\.forward\.shaped_by: a switch can"):
        plan_points(tmp_path, text)


def test_an_fpga_and_a_radio_are_not_of_one_run(tmp_path):
    text = change_lines(
        (
            "{between: [S, N], rate: 10 Mb/s, delay: 30 ms, queue: 1 bdp}",
            "{between: [S, N], emulator: sdr, delay: 30 ms, queue: 9 packets, "
            "radio: {modem: ofdm, modulation: qpsk, rate: 2 Mb/s, snr: 12 dB}}",
        )
    )
    message = r"links\.wireless\.emulator: an FPGA link in a run with wired"
    with pytest.raises(InputError, match=message):
        plan_points(tmp_path, text)


def test_what_the_core_has_is_planned(tmp_path):
    plan_points(
        tmp_path,
        change_lines(
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
        plan_points(tmp_path, text)
    with pytest.raises(InputError, match=r"links\.wireless\.fpga\.by"):
        plan_points(
            tmp_path, change_lines(("emulator: fpga", "emulator: fpga\n    fpga: {by: magic}"))
        )


def test_the_papers_links_fit_the_memory():
    for point in read_experiment(EXPERIMENTS / "achievement-2008.yaml", "fpga"):
        for plan in plan_runs(point, "fpga"):
            assert plan.carried_by("fpga")
    assert SIMULATED.bytes == 16 << 20


def test_runs_wait_for_nagi_fpga(tmp_path):
    points = read_points(tmp_path)
    assert "fpga" in find_backends(points)
    assert "fpga" not in find_backends(read_points(tmp_path, LINK))
    build = identify_build()
    chosen = select_runs(points, None, {}, build, lambda _: THERE, check_backend=lambda _: MISSING)
    assert chosen.list_available() == []
    assert chosen.list_missing(chosen.plans[0]) == ["link wireless"]
    with pytest.raises(InputError) as refused:
        leave_out(chosen, skip_unavailable=False)
    assert (
        "spec.yaml:10: links.wireless.emulator: link wireless is an FPGA link: there is no "
        "nagi-fpga; build it: `make fpga-simulation`" in str(refused.value)
    )


def test_the_command_says_that_nagi_fpga_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("NAGI_PREFIX", str(make_prefix(tmp_path / "p", without=["nagi-fpga"])))
    (tmp_path / "spec.yaml").write_text(FPGA)
    result = CliRunner().invoke(make_app(), ["plan", str(tmp_path / "spec.yaml")])
    assert result.exit_code == 0
    assert "link wireless is an FPGA link: there is no" in " ".join(result.output.split())


def test_the_build_of_a_run_has_nagi_fpga(tmp_path, monkeypatch):
    prefix = make_prefix(tmp_path / "p", without=["nagi-fpga"])
    monkeypatch.setenv("NAGI_PREFIX", str(prefix))
    program = prefix / "bin" / "nagi-fpga"
    ids = set()
    for text in ("one", "another"):
        program.write_text(text)
        build = identify_build(backends=["fpga"])
        assert build.nagi_fpga is not None
        ids.add(build.id)
    assert len(ids) == 2
    assert identify_build().nagi_fpga is None


def test_a_simulated_fpga_keeps_a_processor_busy(tmp_path):
    (plan,) = plan_points(tmp_path)
    assert choose_jobs([plan], processors=4) == 4
    (both,) = plan_points(
        tmp_path, change_lines(("delay: 30 ms, ", "delay: 30 ms, emulator: fpga, "))
    )
    assert choose_jobs([both], processors=4) == 2
