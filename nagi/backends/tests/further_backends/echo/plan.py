# SPDX-License-Identifier: Apache-2.0
"""Plan echo links. A link's plan contains its word; nagi-link carries the packets."""

from __future__ import annotations

from nagi.backends.interface import Planner
from nagi.plan.request import PlanRequest

from .spec import Echo


class EchoPlanner(Planner):
    """The planner of echo links."""

    noun = "an echo"

    def __init__(self, request: PlanRequest) -> None:
        super().__init__(request)
        self.links = {
            name: {"says": echo.says}
            for name, link in request.experiment.links.items()
            if link.emulator == "echo" and (echo := link.find_settings(Echo)) is not None
        }


part = EchoPlanner
