# SPDX-License-Identifier: Apache-2.0
"""All distributions of jitter.

Each distribution is a module. To add one, add it to both unions here.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from nagi_contracts.impairments.jitters.exponential import ExponentialJitter, ExponentialJitterPlan
from nagi_contracts.impairments.jitters.normal import NormalJitter, NormalJitterPlan
from nagi_contracts.impairments.jitters.table import TableJitter, TableJitterPlan
from nagi_contracts.impairments.jitters.uniform import UniformJitter, UniformJitterPlan
from nagi_contracts.impairments.plain import refuse_scalar

Jitter = Annotated[
    Annotated[
        UniformJitter | NormalJitter | ExponentialJitter | TableJitter,
        Field(discriminator="distribution"),
    ],
    refuse_scalar(
        "how jitter is distributed",
        "write `{{distribution: uniform, half_width: {0}}}`, or `{{distribution: normal, "
        "deviation: {0}}}`",
    ),
]
JitterPlan = Annotated[
    UniformJitterPlan | NormalJitterPlan | ExponentialJitterPlan | TableJitterPlan,
    Field(discriminator="distribution"),
]
