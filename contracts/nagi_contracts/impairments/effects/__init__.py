# SPDX-License-Identifier: Apache-2.0
"""All that may happen to packets that the channel does not lose. An effect in a module of its own
is added to both classes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from nagi_contracts.base import Contract, Strict, is_none
from nagi_contracts.impairments.effects.corruption import Corruption, CorruptionPlan
from nagi_contracts.impairments.effects.duplication import Duplication, DuplicationPlan
from nagi_contracts.impairments.effects.reordering import Reordering, ReorderingPlan
from nagi_contracts.impairments.plain import never_plain, plain
from nagi_contracts.units import Share

# A share alone is their rate.
_Corruption = Annotated[Corruption, plain("rate", Share | Corruption)]
_Duplication = Annotated[Duplication, plain("rate", Share | Duplication)]
_Reordering = Annotated[
    Reordering,
    never_plain("how long packets are held", "write `{{rate: {}, delay: 5 ms}}`"),
]


class Effects(Strict):
    """By name, as settings of a direction of a link."""

    corruption: _Corruption | None = Field(
        None, description="packets that arrive with a wrong checksum; none if not given"
    )
    duplication: _Duplication | None = Field(
        None, description="packets that arrive twice; none if not given"
    )
    reordering: _Reordering | None = Field(
        None, description="packets that others overtake; none if not given"
    )

    def plans(self) -> dict[str, Contract | None]:
        """By name."""
        given = {name: getattr(self, name) for name in Effects.model_fields}
        return {name: effect.plan() if effect else None for name, effect in given.items()}


class EffectPlans(Contract):
    """By name, in the plan of a direction of a link."""

    corruption: CorruptionPlan | None = Field(None, exclude_if=is_none)
    duplication: DuplicationPlan | None = Field(None, exclude_if=is_none)
    reordering: ReorderingPlan | None = Field(None, exclude_if=is_none)

    @property
    def effects(self) -> list[CorruptionPlan | DuplicationPlan | ReorderingPlan]:
        """Those that there are."""
        return [
            effect
            for name in EffectPlans.model_fields
            if (effect := getattr(self, name)) is not None
        ]
