# SPDX-License-Identifier: Apache-2.0
"""The report on radio links, from campaigns with known answers.

It has transmissions by cause at each SNR, and packet error rates.
"""

from __future__ import annotations

import pandas as pd
import pytest
from nagi.backends.registry import load_chapters
from nagi_contracts.impairments.losses.radio import RadioLossPlan
from nagi_contracts.links import Links, TransmissionCounts
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.plan import (
    ArqPlan,
    RadioChannelPlan,
    RadioModePlan,
    RadioPlan,
    RunPlan,
    TapPlan,
)
from nagi_contracts.records import Information, Verdict
from nagi_contracts.statements import parse_measure
from nagi_reports import figures
from nagi_reports.chapters import compose, read_material
from nagi_reports.content import Facts, Figure, Paragraph, Table
from nagi_reports.figures import ErrorRate
from nagi_reports.report import render_html, write_report
from nagi_reports.summary import Axis, summarise

RECORDED = SCHEMAS / "example" / "campaign" / "runs" / "6ca9af3cee70cdc8"
SNRS = {"0 %": 20.0, "1 %": 12.0}  # what the runs' error rates are replaced by
# What became of transmissions forward, of each run.
COUNTS = {
    20.0: {"sent": 500, "received": 500},
    12.0: {
        "sent": 1001, "received": 700, "not_detected": 50, "header_errors": 100,
        "payload_errors": 150,
    },
}  # fmt: skip
NOTHING = dict.fromkeys(TransmissionCounts.model_fields, 0)


def radio_of(snr_db: float) -> RadioPlan:
    forward = RadioChannelPlan(
        snr_db=snr_db,
        fading="rician",
        doppler_hz=5.0,
        k_factor_db=6.0,
        taps=[TapPlan(delay_ns=0, power_db=0.0), TapPlan(delay_ns=500, power_db=-3.0)],
    )
    return RadioPlan(
        by="simulated",
        modem="ofdm",
        modulation="qpsk",
        sample_rate_hz=1_666_667,
        code_rate="1/2",
        forward=forward,
        backward=RadioChannelPlan(snr_db=30.0),
    )


@pytest.fixture
def campaign(synthetic):
    """Write a campaign whose wireless link is a radio, with four points and two runs at each."""
    out, campaign, table = synthetic(capacities=(10, 50), schemes=("newreno",), repeats=2)
    recorded = Links.read(RECORDED / "links.json")
    for run in campaign.runs:
        directory = out / "runs" / run.run_id
        snr_db = SNRS[run.point["error_rate"]]
        plan = RunPlan.read(directory / "plan.json")
        lossy = {"loss": RadioLossPlan(), "arq": ArqPlan(retries=3, feedback_ns=8_000_000)}
        links = [
            link.model_copy(
                update={
                    "radio": radio_of(snr_db),
                    "forward": link.forward.model_copy(update=lossy),
                    "backward": link.backward.model_copy(update={"loss": RadioLossPlan()}),
                }
            )
            if link.name == "wireless"
            else link
            for link in plan.links
        ]
        plan.model_copy(update={"links": links}).write(directory / "plan.json")
        counts = TransmissionCounts(**{**NOTHING, **COUNTS[snr_db]})
        back = TransmissionCounts(**{**NOTHING, "sent": 300, "received": 300})
        accounts = [
            account.model_copy(
                update={
                    "name": link.name,
                    "forward": account.forward.model_copy(update={"transmissions": counts}),
                    "backward": account.backward.model_copy(update={"transmissions": back}),
                }
            )
            for account, link in zip(recorded.links, links, strict=True)
        ]
        recorded.model_copy(update={"links": accounts}).write(directory / "links.json")
        verdict = Verdict.read(directory / "verdict.json")
        told = Information(
            name="radio_snr",
            description="",
            value=snr_db + (0.5 if run.repeat else 0.3),
            unit="dB",
            subject="wireless forward",
        )
        verdict.model_copy(update={"information": [told]}).write(directory / "verdict.json")
    return out, campaign, table


def report_of(out, campaign, table):
    return compose(read_material(out, campaign, table, summarise(campaign, table)), load_chapters())


def section(report, name):
    return next(each for each in report.sections if each.name == name)


def blocks_of(report, name, kind):
    return [block for block in section(report, name).blocks if isinstance(block, kind)]


def test_transmissions_are_counted_by_cause_at_each_snr(campaign):
    report = report_of(*campaign)
    (table,) = blocks_of(report, "radio", Table)
    words = "OFDM QPSK, code rate 1/2, 1.66667 MHz, Rician 5 Hz, K 6 dB, 2 paths"
    # Four runs a row; lost is 300 of those 1,000 of which the radio told, SNR the mean of powers.
    assert table.rows == [
        ["wireless forward", words, "12 dB", "4,004", "200", "400", "600", "4", "30.000%",
         "12.40 dB"],
        ["wireless forward", words, "20 dB", "2,000", "0", "0", "0", "0", "0.000%", "20.40 dB"],
        ["wireless backward", "OFDM QPSK, code rate 1/2, 1.66667 MHz", "30 dB", "2,400", "0",
         "0", "0", "0", "0.000%", "–"],
    ]  # fmt: skip
    (said,) = blocks_of(report, "radio", Paragraph)
    assert "All received packets had the bytes that were sent." in said.text
    assert "the sums of up to 8 runs" in said.text


def test_packet_error_rates_are_drawn_over_snr(campaign):
    (figure,) = blocks_of(report_of(*campaign), "radio", Figure)
    assert figure.alt == (
        "Share of transmissions lost over SNR. wireless forward: 0.3 at 12 dB, 0 at 20 dB."
    )
    assert figure.svg.startswith("<?xml")


def adapt(out, campaign):
    """Let the radio adapt its rate between two modes.

    Above 10 dB it uses the faster mode and loses every fourth transmission.
    """
    modes = [
        RadioModePlan(modulation="bpsk", code_rate="1/2"),
        RadioModePlan(modulation="qpsk", code_rate="3/4"),
    ]
    rows = [
        (
            "wireless",
            "forward",
            snr_db,
            int((snr_db or 0) > 10),
            "payload error" if bad else "received",
        )
        for snr_db in (5.2, 10.4, 14.9, None)
        for bad in (snr_db != 5.2, False, False, False)
        for _ in range(int(bad) if snr_db == 10.4 else 20)
    ]
    columns = ["link", "direction", "snr_db", "mode", "outcome"]
    for run in campaign.runs:
        directory = out / "runs" / run.run_id
        plan = RunPlan.read(directory / "plan.json")
        links = [
            link.model_copy(update={"radio": link.radio.model_copy(
                update={"modulation": None, "code_rate": None, "modes": modes})})
            if link.radio else link
            for link in plan.links
        ]  # fmt: skip
        plan.model_copy(update={"links": links}).write(directory / "plan.json")
        pd.DataFrame(rows, columns=columns).to_parquet(directory / "transmissions.parquet")


def test_modes_of_rate_adaptation_are_drawn_over_the_measured_snr(campaign):
    adapt(*campaign[:2])
    _, figure = blocks_of(report_of(*campaign), "radio", Figure)
    assert figure.alt == (
        "Shares of modes over SNR. wireless forward: mostly BPSK 1/2 at 5 dB, QPSK 3/4 at 15 dB."
    )
    assert "less than 30 transmissions" in figure.caption


def test_what_a_radio_is_stands_with_the_setting(campaign):
    report = report_of(*campaign)
    (facts,) = blocks_of(report, "setting", Facts)
    items = dict(facts.items)
    assert "nagi-sdr" in items["Lab"]
    assert items["Radios"].count("wireless: simulated, OFDM QPSK") == 1
    assert "forward Rician 5 Hz, K 6 dB, 2 paths" in items["Radios"]
    (links,) = blocks_of(report, "setting", Table)
    wireless = [row for row in links.rows if row[0] == "wireless"]
    losses = [row[-1] for row in wireless]
    assert losses == [
        "what the radio does not receive; link-layer ARQ, up to 3 retries",
        "what the radio does not receive",
    ]


def test_packets_that_came_with_other_bytes_are_not_kept_quiet(campaign):
    out, described, table = campaign
    path = out / "runs" / described.runs[0].run_id / "links.json"
    account = Links.read(path)
    radio = account.links[1]
    counts = radio.forward.transmissions.model_copy(update={"undetected_errors": 2})
    direction = radio.forward.model_copy(update={"transmissions": counts})
    links = [account.links[0], radio.model_copy(update={"forward": direction})]
    account.model_copy(update={"links": links}).write(path)
    (said,) = blocks_of(report_of(out, described, table), "radio", Paragraph)
    assert "2 packets arrived with wrong bytes, which the CRC did not" in said.text


def test_campaigns_without_radios_say_nothing_of_them(synthetic):
    report = report_of(*synthetic(repeats=1))
    assert "radio" not in [each.name for each in report.sections]
    (facts,) = blocks_of(report, "setting", Facts)
    assert "Radios" not in dict(facts.items) and "nagi-sdr" not in dict(facts.items)["Lab"]


def test_it_can_be_written(campaign):
    out, described, table = campaign
    assert "Radio links" in render_html(report_of(out, described, table))
    assert write_report(out, described, table, chapters=load_chapters()).stat().st_size > 10_000
    assert (out / "figures" / "radio.svg").exists()


def test_curves_show_what_was_lost_and_mark_where_nothing_was():
    rates = [ErrorRate(10, 50, 100), ErrorRate(12, 1, 1000), ErrorRate(14, 0, 2000)]
    figure = figures.make_error_rate_figure([("there", rates), ("back", rates[:2])])
    (axes,) = figure.axes
    assert axes.get_yscale() == "log"
    some, none, *_ = axes.get_lines()
    assert [list(data) for data in some.get_data()] == [[10, 12], [0.5, 0.001]]
    assert [list(data) for data in none.get_data()] == [[14], [1 / 2000]]
    assert none.get_marker() == "v" and some.get_linestyle() != "None"
    legend = {text.get_text() for text in figure.legends[0].get_texts()}
    assert legend == {"there", "back"}
    # A curve of which nothing was lost is a row of triangles.
    figures.render_svg(figures.make_error_rate_figure([("all", rates[2:])]))


def test_snr_is_a_quantity_of_axes_and_statements():
    axis = Axis("snr", ["12 dB", "-3 dB"])
    assert axis.title == axis.phrase == "SNR"
    assert Axis("error_rate", []).title == "Error rate"
    assert axis.to_numbers() == ([12.0, -3.0], "dB")
    assert parse_measure("12 dB") == ("Level", 12.0)
