# SPDX-License-Identifier: Apache-2.0
"""Check that nagi-echo recorded the words of the links."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nagi.backends.interface import Verifier
from nagi.labs.shape import EMULATOR
from nagi.records.files import copy_file
from nagi.records.run import RunRecords
from nagi.verdict.limits import Limit
from nagi.verdict.values import Evidence
from nagi_contracts.errors import refuse
from nagi_contracts.plan import RunPlan

FILE = "echo.json"
LIMITS = {"echo_misheard": Limit(0, "words", "words that nagi-echo did not record as planned")}


class EchoVerifier(Verifier):
    """The check that echo.json contains the words of the plan."""

    limits: Mapping[str, Mapping[str, Limit]] = {"Runs with echoes": LIMITS}

    def get_limits(self, plan: RunPlan) -> Mapping[str, Limit]:
        return LIMITS if plan.carried_by("echo") else {}

    def copy_files(self, plan: RunPlan, sources: Mapping[str, Path], target: Path) -> None:
        copy_file(sources[EMULATOR], target, FILE)

    def load(self, plan: RunPlan, directory: Path) -> Any:
        if not plan.carried_by("echo"):
            return None
        try:
            return json.loads((directory / FILE).read_text())
        except (OSError, ValueError) as error:
            raise refuse(f"cannot read it: {error}", "repeat the run", file=FILE) from None

    def collect(
        self, plan: RunPlan, sources: Mapping[str, Path], began_s: float, target: Path
    ) -> Any:
        return self.load(plan, target)

    def measure(self, run: RunRecords) -> Evidence:
        links = run.plan.carried_by("echo")
        if not links:
            return Evidence()
        recorded_words = run.parts["echo"]
        values = [
            (float(word != link.parts["echo"]["says"]), link.name)
            for word, link in zip(recorded_words, links, strict=True)
        ]
        return Evidence(values={"echo_misheard": values})


part = EchoVerifier()
