# SPDX-License-Identifier: Apache-2.0
"""All effects on packets other than losses, delays and queues.

Each effect is a module. To add one, add it to both classes here.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from nagi_contracts.base import Contract, Strict, is_none
from nagi_contracts.impairments.effects.corruption import Corruption, CorruptionPlan
from nagi_contracts.impairments.effects.duplication import Duplication, DuplicationPlan
from nagi_contracts.impairments.effects.reordering import Reordering, ReorderingPlan
from nagi_contracts.impairments.plain import accept_scalar, refuse_scalar
from nagi_contracts.units import Share

# A single share is the rate of corruption and duplication.
_Corruption = Annotated[Corruption, accept_scalar("rate", Share | Corruption)]
_Duplication = Annotated[Duplication, accept_scalar("rate", Share | Duplication)]
_Reordering = Annotated[
    Reordering,
    refuse_scalar("how long packets are held", "write `{{rate: {}, delay: 5 ms}}`"),
]


class Effects(Strict):
    """The settings of all effects of a direction of a link, by name."""

    corruption: _Corruption | None = Field(
        None, description="packets that arrive with a wrong checksum; none if not given"
    )
    duplication: _Duplication | None = Field(
        None, description="packets that arrive twice; none if not given"
    )
    reordering: _Reordering | None = Field(
        None, description="packets that later packets overtake; none if not given"
    )

    def to_plans(self) -> dict[str, Contract | None]:
        """Return name of the effect -> plan; None for an effect that is not set or has rate 0."""
        settings = {name: getattr(self, name) for name in Effects.model_fields}
        return {name: effect.to_plan() if effect else None for name, effect in settings.items()}


class EffectPlans(Contract):
    """The plans of all effects of a direction of a link, by name."""

    corruption: CorruptionPlan | None = Field(None, exclude_if=is_none)
    duplication: DuplicationPlan | None = Field(None, exclude_if=is_none)
    reordering: ReorderingPlan | None = Field(None, exclude_if=is_none)

    @property
    def effects(self) -> list[CorruptionPlan | DuplicationPlan | ReorderingPlan]:
        """The plans of the effects that occur, in the order of the fields."""
        return [
            effect
            for name in EffectPlans.model_fields
            if (effect := getattr(self, name)) is not None
        ]
