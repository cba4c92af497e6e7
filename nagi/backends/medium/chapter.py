# SPDX-License-Identifier: Apache-2.0
"""Shared media in the report of a campaign: their section, their row in Setup, and definitions."""

from __future__ import annotations

from nagi_contracts.media import MatrixReach, MediumPlan, RangeReach
from nagi_contracts.plan import DirectionPlan
from nagi_reports.chapters.backends import Chapter, Notes
from nagi_reports.chapters.material import Material
from nagi_reports.chapters.ranges import describe_directions, format_range
from nagi_reports.content import Block, Definition, Section
from nagi_reports.formula import fraction, text

from nagi.backends.medium import report_section


class _MediumChapter(Chapter):
    """The parts of a report that describe shared media."""

    def compose_sections(self, material: Material) -> list[Section]:
        return [Section("media", "Shared media", report_section.compose_blocks(material))]

    def compose_setup_rows(self, material: Material) -> list[tuple[str, str]]:
        """Return one row that describes all shared media of all runs; empty without media."""
        by_name: dict[str, list[MediumPlan]] = {}
        for plan in material.plans.values():
            for medium in plan.media:
                by_name.setdefault(medium.name, []).append(medium)
        descriptions = [
            ". ".join([_describe_medium(medium_plans), *_describe_reach(medium_plans)])
            for medium_plans in by_name.values()
        ]
        return [("Shared media", ". ".join(descriptions))] if descriptions else []

    def compose_definitions(self, material: Material) -> list[Block]:
        """Return definitions of metrics on media; empty if no result has an airtime."""
        if "airtime_share" not in material.table or material.table["airtime_share"].isna().all():
            return []
        return [
            Definition(
                "Given up on media",
                fraction(text("packets given up at the retry limit"), text("packets tried")),
                "Link-layer drop probability. Over the packets of a flow, including ACKs, that "
                "were delivered or given up during the measurement interval. A packet counts at "
                "each station that tried to send it. A packet that a queue dropped was not tried.",
            ),
            Definition(
                "Retries per hop",
                None,
                "The mean number of attempts after the first, over the packets and stations that "
                "the definition above counts. An attempt is an RTS, or the packet itself if no RTS "
                "precedes the packet.",
            ),
            Definition(
                "Airtime",
                None,
                "The share of the measurement interval in which at least one RTS, CTS, DATA or ACK "
                "frame of the flow's packets was on the air. Frames that different stations send "
                "at the same time count once.",
            ),
        ]

    def compose_notes(self, material: Material) -> Notes:
        if not material.plan.media:
            return {}
        return {
            "time series": " On a shared medium, the queue is the queue of the station that sends "
            "over the first hop with the smallest rate. Losses are the packets that this station "
            "gave up.",
            "queue": " At a station of a medium, the transmission of a packet lasts until the "
            "packet has been acknowledged or given up.",
            "bottleneck": " A medium is one direction, which a flow crosses once per hop.",
        }


def _describe_medium(plans: list[MediumPlan]) -> str:
    """Return the description of a medium's PHY, MAC and queues over all runs.

    Args:
        plans: The plans of one medium in all runs.
    """
    first = plans[0]
    stations = format_range({len(plan.stations) for plan in plans}, "stations")
    phrases = [" or ".join(dict.fromkeys(plan.phy for plan in plans))]
    if preambles := dict.fromkeys(plan.preamble for plan in plans if plan.preamble is not None):
        phrases.append(f"{' or '.join(preambles)} preamble")
    phrases.append(f"data at {format_range([plan.data_rate_bps / 1e6 for plan in plans], 'Mb/s')}")
    phrases.append(
        "control frames and broadcasts at "
        f"{format_range([plan.basic_rate_bps / 1e6 for plan in plans], 'Mb/s')}"
    )
    thresholds = [
        plan.rts_threshold_bytes for plan in plans if plan.rts_threshold_bytes is not None
    ]
    if not thresholds:
        phrases.append("no RTS and CTS")
    elif len(thresholds) == len(plans) and not any(thresholds):
        phrases.append("RTS and CTS before every packet")
    else:
        exception = "" if len(thresholds) == len(plans) else " in some runs"
        phrases.append(
            f"RTS and CTS before MPDUs longer than {format_range(thresholds, 'bytes')}{exception}"
        )
    phrases.append(
        f"retry limits {format_range({plan.short_retry_limit for plan in plans}, '').strip()} "
        "(short) "
        f"and {format_range({plan.long_retry_limit for plan in plans}, '').strip()} (long)"
    )
    phrases.append(
        f"CW from {format_range({plan.cw_min for plan in plans}, '').strip()} "
        f"to {format_range({plan.cw_max for plan in plans}, '').strip()}"
    )
    queue, loss = describe_directions(
        [DirectionPlan(queue=plan.queue, loss=plan.loss) for plan in plans]
    )[2:4]
    phrases.append(f"queue of {queue} at each station")
    if loss != "none":
        phrases.append(f"frames lost: {loss}")
    if not first.resets_nav:
        phrases.append("a NAV set by an RTS is not reset")
    if first.eifs_after == "signals":
        phrases.append("EIFS also after signals that were only sensed")
    return f"{first.name}: {stations}, {'; '.join(phrases)}"


def _describe_reach(plans: list[MediumPlan]) -> list[str]:
    """Return the descriptions of a medium's reach model, one for each variant among the runs.

    Args:
        plans: The plans of one medium in all runs.
    """
    descriptions: dict[str, None] = {}
    for reach in (plan.reach for plan in plans):
        if isinstance(reach, RangeReach):
            capture = "" if reach.capture_db is None else f", capture {reach.capture_db:g} dB"
            description = (
                f"Ranges: transmission {reach.transmission_m:g} m, carrier sense "
                f"{reach.carrier_sense_m:g} m, interference {reach.interference_m:g} m{capture}"
            )
        elif isinstance(reach, MatrixReach):
            description = "A matrix lists which stations hear each other"
        else:
            description = (
                f"Reach by SINR: {reach.tx_power_dbm:g} dBm sent, path loss exponent "
                f"{reach.path_loss_exponent:g} with {reach.reference_loss_db:g} dB at 1 m, noise "
                f"{reach.noise_dbm:g} dBm, sensitivity {reach.sensitivity_dbm:g} dBm, carrier "
                f"sense {reach.carrier_sense_dbm:g} dBm, capture {reach.capture_db:g} dB"
            )
        descriptions[description] = None
    return list(descriptions)


part = _MediumChapter()
