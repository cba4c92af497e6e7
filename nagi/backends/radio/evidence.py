# SPDX-License-Identifier: Apache-2.0
"""Measure the certificate's checks of links that are radios."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from nagi_contracts.plan import RunPlan
from nagi_contracts.radios import Radios
from nagi_contracts.records import Information

from nagi.backends.interface import Verifier
from nagi.backends.radio.device_accounts import (
    RADIOS,
    count_by_outcome,
    describe_devices,
    list_uhd_links,
)
from nagi.backends.radio.outcomes import count_unanswered, describe_transmissions
from nagi.backends.radio.replaying import make_replay_settings
from nagi.labs.shape import EMULATOR
from nagi.records.files import copy_file
from nagi.records.packets import Settings
from nagi.records.run import RunRecords
from nagi.records.transmissions import NOT_RECEIVED, NOT_SENT, UNANSWERED
from nagi.verdict import witnesses
from nagi.verdict.limits import Limit
from nagi.verdict.values import Evidence, Value

RADIO_LIMITS = {
    "radio_unanswered": Limit(
        0,
        "transmissions",
        "transmissions whose outcome the radio did not report",
        order=4,
    ),
}
DEVICE_LIMITS = {
    "radio_not_sent": Limit(
        0,
        "transmissions",
        "transmissions that a device did not send, because samples came too late",
        timing=True,
        order=3,
    ),
    "radio_not_received": Limit(
        0,
        "transmissions",
        "transmissions that were not received, because a device lost samples",
        timing=True,
        order=3,
    ),
}


class RadioVerifier(Verifier):
    """The verifier of radios: they must report all outcomes, and devices must lose no samples.

    The emulator records transmissions. nagi-sdr writes measurements of UHD devices to radios.json.
    """

    limits: Mapping[str, Mapping[str, Limit]] = {
        "Runs with radios": RADIO_LIMITS,
        "Runs with radios that are devices": DEVICE_LIMITS,
    }

    def get_limits(self, plan: RunPlan) -> Mapping[str, Limit]:
        if not plan.carried_by("radio"):
            return {}
        return RADIO_LIMITS | DEVICE_LIMITS if list_uhd_links(plan) else RADIO_LIMITS

    def copy_files(self, plan: RunPlan, sources: Mapping[str, Path], target: Path) -> None:
        copy_file(sources[EMULATOR], target, RADIOS)

    def make_replay_settings(self, run: RunRecords) -> Settings:
        return (
            {} if run.transmissions is None else make_replay_settings(run.plan, run.transmissions)
        )

    def measure(self, run: RunRecords) -> Evidence:
        plan, transmissions = run.plan, run.transmissions
        if transmissions is None or not plan.carried_by("radio"):
            return Evidence()
        values: dict[str, list[Value]] = {
            "radio_unanswered": list(count_unanswered(plan, transmissions))
        }
        information: list[Information] = []
        if list_uhd_links(plan):
            values["radio_not_sent"] = list(count_by_outcome(plan, transmissions, NOT_SENT))
            values["radio_not_received"] = list(count_by_outcome(plan, transmissions, NOT_RECEIVED))
            information += describe_devices(plan, Radios.read(run.directory / RADIOS))
        information += describe_transmissions(plan, transmissions)
        return Evidence(
            values=values,
            information=information,
            witnesses={
                name: partial(witnesses.list_transmissions, plan, transmissions, outcome)
                for name, outcome in (
                    ("radio_unanswered", UNANSWERED),
                    ("radio_not_sent", NOT_SENT),
                    ("radio_not_received", NOT_RECEIVED),
                )
            },
        )


part = RadioVerifier()
