# SPDX-License-Identifier: Apache-2.0
"""Draw the figures of README.md from the published results: `make results`.

Each function draw_*() writes one figure to the SVG file `target`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from nagi_reports.figures import WIDTH, figure_style, render_svg
from nagi_reports.statistics import mean
from publications import HERE, read_published_results

# Colours; _PAPER is the colour of values from papers.
_BLUE, _ORANGE, _GREY, _PAPER = "#0072B2", "#D55E00", "#8C8C8C", "#000000"


def compute_ratios(
    table: pd.DataFrame, column: str, x: str, scheme: str, reference: str
) -> dict[float, list[float]]:
    """Divide a metric of a scheme by the same metric of a reference scheme, for each repeat.

    Args:
        table: Results of a campaign.
        column: The metric.
        x: Name of an axis of the matrix.
        scheme: The scheme.
        reference: The reference scheme.

    Returns:
        Value of `x` as a number without unit -> ratio of each repeat that has both schemes.
    """
    ratios = {}
    for value, runs in table.groupby(f"point.{x}", sort=False):
        by_scheme = runs.pivot_table(index="repeat", columns="point.scheme", values=column)
        ratios[_parse_number(value)] = list((by_scheme[scheme] / by_scheme[reference]).dropna())
    return ratios


def _group_values(x: str, table: pd.DataFrame, values: pd.Series) -> dict[float, list[float]]:
    """Group `values`, one per row of `table`, by the row's value of the axis `x` as a number."""
    groups = values.groupby(table[f"point.{x}"], sort=False)
    return {_parse_number(value): list(group) for value, group in groups}


def _parse_number(value: object) -> float:
    """Return the number of a quantity, without its unit."""
    return float(str(value).split()[0])


def draw_westwoodvt(target: Path) -> None:
    """Draw the goodput of westwoodvt / reno over the error rate, with two minimum timeouts."""
    default_rto = read_published_results("westwoodvt-2007")
    longer_rto = read_published_results("westwoodvt-2007-min-rto")
    with figure_style():
        figure = Figure(figsize=(WIDTH * 0.75, 2.6), layout="constrained")
        ax = figure.subplots()
        for table, colour, marker, label in (
            (default_rto, _BLUE, "o", "nagi, timeouts of Linux: RTT + 200 ms at least"),
            (longer_rto, _ORANGE, "s", "nagi, min_rto: 1 s"),
        ):
            ratios = compute_ratios(table, "goodput_bps", "error_rate", "westwoodvt", "reno")
            _draw_errorbars(ax, ratios, color=colour, marker=marker, label=label)
        ax.plot([1, 2], [1.21, 1.54], color=_PAPER, marker="X", ls="none", label="the paper")
        ax.set_xlabel("Error rate (%)")
        ax.set_ylabel("Goodput of westwoodvt / reno")
        ax.legend()
        target.write_text(render_svg(figure), encoding="utf-8")


def draw_cross(target: Path) -> None:
    """Draw the goodput of each scheme / westwoodnr over the error rate, with cross traffic."""
    table = read_published_results("westwoodvt-2007-cross")
    table = table[~table["background"]]
    with figure_style():
        figure = Figure(figsize=(WIDTH * 0.75, 2.6), layout="constrained")
        ax = figure.subplots()
        ax.fill_between([1, 5], 1.06, 1.24, color=_GREY, alpha=0.3, lw=0,
                        label="westwoodvt in the paper")  # fmt: skip
        ax.axhline(1, color=_GREY, lw=0.6, ls=":")
        schemes = {"westwoodvt": (_BLUE, "o"), "newjersey": (_ORANGE, "s"), "reno": (_PAPER, "^")}
        _draw_ratios(ax, table, "error_rate", schemes, "westwoodnr")
        ax.set_xlabel("Error rate (%)")
        ax.set_ylim(0.3, 1.35)
        ax.legend(loc="upper right", bbox_to_anchor=(1, 0.62), ncols=2)
        target.write_text(render_svg(figure), encoding="utf-8")


# The bandwidth-delay product (40 Mb/s x 100 ms) in packets of 1052 bytes, and with a full queue.
_BDP, _BDP_AND_QUEUE = 475, 950
_SCHEMES = {
    "sack": _PAPER,
    "newreno": _GREY,
    "reno": _BLUE,
    "tahoe": _ORANGE,
    "vegas": "#009E73",
    "westwood": "#CC79A7",
}


def draw_achievement(target: Path) -> None:
    """Draw windows over time at 40 Mb/s without loss, and windows and goodput at 0.1 % loss."""
    windows = _read_windows("achievement-2008")
    without_loss = windows[windows["error_rate"] == "0 %"]
    with figure_style():
        figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
        (first, second), (third, fourth) = figure.subplots(2, 2)
        for ax, schemes, path_label in (
            (first, ("sack", "reno"), (118, _BDP - 8, "top")),
            (second, ("vegas", "tahoe"), (190, _BDP + 8, "bottom")),
        ):
            for scheme in schemes:
                rows = without_loss[without_loss["scheme"] == scheme]
                ax.plot(
                    rows["second"], rows["window_packets"], color=_SCHEMES[scheme], label=scheme
                )
            for label, packets, (x, y, va) in (
                ("fills the path", _BDP, path_label),
                ("and the queue", _BDP_AND_QUEUE, (60, _BDP_AND_QUEUE + 8, "bottom")),
            ):
                ax.axhline(packets, color=_GREY, lw=0.6, ls=":")
                ax.text(x, y, label, ha="right", va=va, color=_GREY)
            ax.set_title("40 Mb/s, no loss")
            ax.set_ylim(0, 1250)
            ax.legend(loc="upper right", ncols=2)
        rows = windows[windows["error_rate"] == "0.1 %"]
        third.plot(
            rows["second"], rows["window_packets"], color=_SCHEMES["westwood"], label="westwood"
        )
        third.set_title("100 Mb/s, loss of 0.1 %")
        third.set_ylim(0, 1250)
        third.legend(loc="upper right")
        for ax in (first, second, third):
            ax.set_xlabel("Time (s)")
            ax.set_ylabel("Window (packets)")
        table = read_published_results("achievement-2008")
        for scheme, colour in _SCHEMES.items():
            rows = table[table["point.scheme"] == scheme]
            indices = _compute_indices(rows, "0.1 %")
            _draw_errorbars(fourth, indices, color=colour, marker="o", label=scheme)
        longer_rto = read_published_results("achievement-2008-westwood-min-rto")
        _draw_errorbars(fourth, _compute_indices(longer_rto, "0.1 %"), color=_SCHEMES["westwood"],
                        marker="s", ls="--", label="its RTO from 1 s")  # fmt: skip
        fourth.fill_between([75, 205], 0.2, color=_GREY, alpha=0.2, lw=0, label="the paper")
        fourth.set_xlabel("Capacity of the wireless link (Mb/s)")
        fourth.set_ylabel("AGI of what headers leave")
        fourth.set_title("Loss of 0.1 %")
        fourth.set_ylim(0, 1.45)
        fourth.legend(ncols=2, loc="upper right", columnspacing=0.8, handlelength=1.4)
        target.write_text(render_svg(figure), encoding="utf-8")


def draw_uncapped(target: Path) -> None:
    """Draw AGI / ceiling with and without the cap on windows, and windows over time without it."""
    with figure_style():
        figure = Figure(figsize=(WIDTH, 2.8), layout="constrained")
        first, second, third = figure.subplots(1, 3)
        for ax, name, title in (
            (first, "achievement-2008", "Windows up to 1,000 packets"),
            (second, "achievement-2008-uncapped", "Windows without a cap"),
        ):
            table = read_published_results(name)
            for scheme, colour in _SCHEMES.items():
                indices = _compute_indices(table[table["point.scheme"] == scheme], "0 %")
                ax.plot(list(indices), list(indices.values()), color=colour, marker="o", ms=3,
                        label=scheme)  # fmt: skip
            ax.set_xlabel("Wireless link (Mb/s)")
            ax.set_ylabel("AGI of what headers leave")
            ax.set_title(title)
            ax.set_ylim(0, 1.05)
        first.legend(loc="lower left", ncols=2, columnspacing=0.8, handlelength=1.4)
        windows = _read_windows("achievement-2008-uncapped")
        for scheme in ("sack", "newreno", "vegas"):
            rows = windows[windows["scheme"] == scheme]
            third.plot(rows["second"], rows["window_packets"], color=_SCHEMES[scheme], label=scheme)
        third.set_xlabel("Time (s)")
        third.set_ylabel("Window (packets)")
        third.set_title("100 Mb/s, no cap")
        third.set_ylim(0, 3400)
        third.legend(loc="upper right")
        target.write_text(render_svg(figure), encoding="utf-8")


def _read_windows(campaign: str) -> pd.DataFrame:
    """Read the rows that window_series.py wrote about a campaign."""
    table = pd.read_csv(HERE / "achievement-2008.csv")
    return table[table["campaign"] == campaign]


def _compute_indices(table: pd.DataFrame, error_rate: str) -> dict[float, list[float]]:
    """Return AGI / ceiling of each run at an error rate, by capacity in Mb/s."""
    rows = table[table["point.error_rate"] == error_rate]
    return _group_values("capacity", rows, rows["agi"] / rows["agi_ceiling"])


# Table 1 of the paper, at 15 ms: scheme -> error rate in % -> goodput in KB/s.
_TABLE_1 = {
    "real": {0: 237.65, 1: 198.68, 5: 165.51, 10: 126.66, 20: 101.96, 33: 46.41, 50: 25.64},
    "reno": {0: 227.36, 1: 190.73, 5: 155.11, 10: 92.23, 20: 71.34, 33: 26.42, 50: 16.77},
}


def draw_tcp_real(target: Path) -> None:
    """Draw goodput over the error rate at a delay of 15 ms.

    Each scheme is drawn with two rates of the link and with a longer minimum timeout.
    """
    with figure_style():
        figure = Figure(figsize=(WIDTH, 2.7), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for ax, (scheme, paper) in zip(panels, _TABLE_1.items(), strict=True):
            for name, colour, marker, label in (
                ("tcp-real-2001", _GREY, "^", "nagi, 10 Mb/s"),
                ("tcp-real-2001-slow", _BLUE, "o", "nagi, 2 Mb/s"),
                ("tcp-real-2001-slow-min-rto", _ORANGE, "s", "nagi, 2 Mb/s, min_rto: 1 s"),
            ):
                table = read_published_results(name)
                table = table[table["point.delay"] == "15 ms"]
                table = table[table["point.scheme"] == scheme]
                values = _group_values("error_rate", table, table["transfer_goodput_bps"] / 8e3)
                _draw_errorbars(ax, values, color=colour, marker=marker, label=label)
            ax.plot(list(paper), list(paper.values()), color=_PAPER, marker="X", ls=":",
                    label="the paper")  # fmt: skip
            ax.set_yscale("log")
            ax.set_title(scheme)
            ax.set_xlabel("Error rate in bad periods (%)")
        panels[0].set_ylabel("Goodput (KB/s)")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        target.write_text(render_svg(figure), encoding="utf-8")


def draw_multihop(target: Path) -> None:
    """Draw the goodput of schemes / vegas in the chain, and of each flow in the grid in kb/s."""
    chain, grid = (
        read_published_results("multihop-2005"),
        read_published_results("multihop-2005-grid"),
    )
    with figure_style():
        figure = Figure(figsize=(WIDTH, 2.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        schemes = {
            "newreno": (_GREY, "^"),
            "vegas-ackthin": (_BLUE, "o"),
            "newreno-ackthin": (_ORANGE, "s"),
            "paced-udp": (_PAPER, "X"),
        }
        _draw_ratios(left, chain, "bandwidth", schemes, "vegas")
        left.set_xlabel("Bandwidth (Mb/s)")
        left.set_title("Chain of 7 hops")
        left.set_ylim(0.8, 1.85)
        left.legend(loc="upper center", ncols=2)
        at_11 = grid[grid["point.bandwidth"] == "11 Mb/s"]
        flows = sorted(at_11["flow"].unique())
        for scheme, colour, shift in (("vegas", _BLUE, -0.2), ("newreno", _ORANGE, 0.2)):
            means = at_11[at_11["point.scheme"] == scheme].groupby("flow")["goodput_bps"].mean()
            heights = [max(means[flow] / 1e3, 0.01) for flow in flows]
            positions = [position + shift for position in range(len(flows))]
            right.bar(positions, heights, 0.4, color=colour, label=scheme)
        right.set_yscale("log")
        right.set_xticks(range(len(flows)), flows)
        right.set_ylabel("Goodput (kb/s)")
        right.set_title("Grid, 11 Mb/s")
        right.legend()
        target.write_text(render_svg(figure), encoding="utf-8")


_BETWEEN_HANDOFFS_S = 5.5  # mean time from the begin of a handoff to the begin of the next
# Time of a transfer without losses: 50 MiB in segments of 1000 bytes (1052 with headers). At 15 ms,
# the rate of 10 Mb/s limits it; at 50 ms, a window of 48 segments per RTT.
_LOSS_FREE_S = {"15 ms": 52_429 * 1052 * 8 / 10e6, "50 ms": 52_429 / 48 * (0.1 + 1104 * 8 / 10e6)}
# Tables 7 and 9 of the paper, at 50 ms: seconds for 50 MiB without losses, and with handoffs.
_TABLE_9 = {
    "real": (52_428.8 / 315.61, 208.75),
    "reno": (52_428.8 / 452.44, 461.62),
    "tahoe": (52_428.8 / 506.26, 508.79),
}
_SECTION_4_4 = {"real": 11.12, "reno": 5.82, "tahoe": 3.65}  # of the paper: tokens of 1 KB per RTT


def draw_tcp_real_handoff(target: Path) -> None:
    """Draw the time that a handoff costs, and the tokens per RTT, for TCP Real, Reno and Tahoe."""
    with figure_style():
        figure = Figure(figsize=(WIDTH, 3.1), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(2.2, 1))
        _draw_handoffs(left)
        _draw_tokens(right)
        target.write_text(render_svg(figure), encoding="utf-8")


def _draw_handoffs(ax: Any) -> None:
    """Draw the time that a handoff costs, as one bar per campaign, delay and scheme.

    A bar has two parts: the time without arrivals, and the further time that the transfer takes in
    comparison with a transfer without losses.
    """
    table = pd.read_csv(HERE / "tcp-real-2001-handoff.csv")
    schemes = ["real", "reno", "tahoe"]
    position, ticks, schemes_in_paper = 0.0, {}, {}
    for campaign, delay, bar_schemes in (
        ("tcp-real-2001-handoff", "15 ms", schemes),
        ("tcp-real-2001-handoff", "50 ms", schemes),
        ("tcp-real-2001-handoff-reno2001", "50 ms", ["reno2001.c"]),
        ("tcp-real-2001-handoff-min-rto", "50 ms", schemes),
    ):
        rows = table[(table["campaign"] == campaign) & (table["delay"] == delay)]
        title = delay + ("\nmin_rto: 1 s" if "min-rto" in campaign else "")
        first_position = position
        for scheme in bar_schemes:
            runs = rows[rows["scheme"] == scheme]
            handoffs = runs["transfer_s"] / _BETWEEN_HANDOFFS_S
            silent = mean((runs["silent_s"] / handoffs).to_numpy())
            cost = mean(((runs["transfer_s"] - _LOSS_FREE_S[delay]) / handoffs).to_numpy())
            assert silent is not None and cost is not None
            ax.bar(position, silent.value, color=_GREY)
            ax.bar(position, cost.value - silent.value, bottom=silent.value, color=_BLUE,
                   yerr=cost.halfwidth, capsize=2)  # fmt: skip
            if campaign == "tcp-real-2001-handoff" and delay == "50 ms":
                schemes_in_paper[position] = scheme
            ticks[position] = scheme.removesuffix(".c")
            position += 1
        if bar_schemes == schemes:
            ax.text((first_position + position - 1) / 2, 4.75, title, ha="center", va="top")
            position += 0.6 if delay == "15 ms" else 0
        else:
            position += 0.6
    for position, scheme in schemes_in_paper.items():
        loss_free_s, with_handoffs_s = _TABLE_9[scheme]
        cost_s = (with_handoffs_s - loss_free_s) / (with_handoffs_s / _BETWEEN_HANDOFFS_S)
        ax.plot(position, cost_s, color=_PAPER, marker="X", ls="none",
                label="the paper" if scheme == "real" else None)  # fmt: skip
    ax.bar(0, 0, color=_BLUE, label="slower than without losses")
    ax.bar(0, 0, color=_GREY, label="nothing arrives")
    ax.set_xticks(list(ticks), list(ticks.values()), rotation=60)
    ax.set_ylim(0, 4.8)
    ax.set_ylabel("Time that a handoff costs (s)")
    ax.legend(loc="upper left", bbox_to_anchor=(0, 0.88))


def _draw_tokens(ax: Any) -> None:
    """Draw tokens per RTT by scheme."""
    schemes = list(_SECTION_4_4)
    for name, colour, marker, label, shift in (
        ("tcp-real-2001-token", _BLUE, "o", "nagi", -0.1),
        ("tcp-real-2001-token-min-rto", _ORANGE, "s", "nagi, min_rto: 1 s", 0.1),
    ):
        table = read_published_results(name)
        values = {
            position + shift: list(table[table["point.scheme"] == scheme]["tokens_per_rtt"])
            for position, scheme in enumerate(schemes)
        }
        _draw_errorbars(ax, values, color=colour, marker=marker, ls="none", label=label)
    table = read_published_results("tcp-real-2001-token-reno2001")
    table = table[table["point.scheme"] == "reno2001.c"]
    _draw_errorbars(ax, {schemes.index("reno") + 0.3: list(table["tokens_per_rtt"])},
                    color=_GREY, marker="^", ls="none", label="nagi, reno2001")  # fmt: skip
    ax.plot(range(len(schemes)), list(_SECTION_4_4.values()), color=_PAPER, marker="X", ls="none",
            label="the paper")  # fmt: skip
    ax.set_xticks(range(len(schemes)), schemes)
    ax.set_xlim(-0.5, 2.5)
    ax.set_ylim(0, 21)
    ax.set_ylabel("Tokens in an RTT")
    ax.legend(loc="upper right")


def _draw_ratios(
    ax: Any, table: pd.DataFrame, x: str, schemes: Mapping[str, tuple[str, str]], reference: str
) -> None:
    """Draw the goodput of schemes / the goodput of a reference scheme, over the axis `x`.

    `schemes` has colour and marker of each scheme.
    """
    for scheme, (colour, marker) in schemes.items():
        ratios = compute_ratios(table, "goodput_bps", x, scheme, reference)
        _draw_errorbars(ax, ratios, color=colour, marker=marker, label=scheme)
    ax.set_ylabel(f"Goodput / goodput of {reference}")


def _draw_errorbars(ax: Any, values: Mapping[float, list[float]], **options: Any) -> None:
    """Draw the mean of each list of values with its 95 % interval, at the list's key."""
    means = [mean(np.array(group)) for group in values.values()]
    ax.errorbar(
        list(values),
        [m.value for m in means if m is not None],
        [m.halfwidth for m in means if m is not None],
        capsize=2,
        **options,
    )


def main() -> None:
    draw_achievement(HERE / "achievement-2008.svg")
    draw_uncapped(HERE / "achievement-2008-uncapped.svg")
    draw_westwoodvt(HERE / "westwoodvt-2007.svg")
    draw_cross(HERE / "westwoodvt-2007-cross.svg")
    draw_tcp_real(HERE / "tcp-real-2001.svg")
    draw_tcp_real_handoff(HERE / "tcp-real-2001-handoff.svg")
    draw_multihop(HERE / "multihop-2005.svg")


if __name__ == "__main__":
    main()
