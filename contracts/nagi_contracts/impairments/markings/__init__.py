# SPDX-License-Identifier: Apache-2.0
"""All rules by which packets are marked (ECN).

Each rule is a module. To add a second one, make unions of both types here, discriminated by `rule`.
"""

from __future__ import annotations

from nagi_contracts.impairments.markings.threshold import ThresholdMarking, ThresholdMarkingPlan

Marking = ThresholdMarking
MarkingPlan = ThresholdMarkingPlan
