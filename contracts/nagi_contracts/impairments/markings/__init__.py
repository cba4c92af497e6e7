# SPDX-License-Identifier: Apache-2.0
"""All rules by which packets are marked (ECN). With a second one in a module of its own, both
become unions by `rule`."""

from __future__ import annotations

from nagi_contracts.impairments.markings.threshold import ThresholdMarking, ThresholdMarkingPlan

Marking = ThresholdMarking
MarkingPlan = ThresholdMarkingPlan
