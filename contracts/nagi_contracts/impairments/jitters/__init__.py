# SPDX-License-Identifier: Apache-2.0
"""All distributions of jitter. One in a module of its own is added to both unions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from nagi_contracts.impairments.jitters.exponential import ExponentialJitter, ExponentialJitterPlan
from nagi_contracts.impairments.jitters.normal import NormalJitter, NormalJitterPlan
from nagi_contracts.impairments.jitters.table import TableJitter, TableJitterPlan
from nagi_contracts.impairments.jitters.uniform import UniformJitter, UniformJitterPlan

Jitter = Annotated[
    UniformJitter | NormalJitter | ExponentialJitter | TableJitter,
    Field(discriminator="distribution"),
]
JitterPlan = Annotated[
    UniformJitterPlan | NormalJitterPlan | ExponentialJitterPlan | TableJitterPlan,
    Field(discriminator="distribution"),
]
