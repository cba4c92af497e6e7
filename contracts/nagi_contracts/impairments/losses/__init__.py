# SPDX-License-Identifier: Apache-2.0
"""All models of losses on the channel.

Each model is a module. To add one, add it to both unions here.
"""

from __future__ import annotations

from typing import Annotated, get_args

from pydantic import Field

from nagi_contracts.impairments.losses.base import LossPlanBase
from nagi_contracts.impairments.losses.bernoulli import BernoulliLoss, BernoulliLossPlan
from nagi_contracts.impairments.losses.bernoulli_bit import BernoulliBitLoss, BernoulliBitLossPlan
from nagi_contracts.impairments.losses.bernoulli_trace import (
    BernoulliTraceLoss,
    BernoulliTraceLossPlan,
)
from nagi_contracts.impairments.losses.gilbert_elliott import (
    GilbertElliottLoss,
    GilbertElliottLossPlan,
)
from nagi_contracts.impairments.losses.markov import MarkovLoss, MarkovLossPlan
from nagi_contracts.impairments.losses.none import NoLoss, NoLossPlan
from nagi_contracts.impairments.losses.poisson import PoissonLoss, PoissonLossPlan
from nagi_contracts.impairments.losses.radio import RadioLossPlan
from nagi_contracts.impairments.losses.sdr import SdrLoss, SdrLossPlan
from nagi_contracts.impairments.losses.trace import TraceLoss, TraceLossPlan
from nagi_contracts.impairments.plain import accept_names, accept_scalar
from nagi_contracts.units import Share

_Losses = Annotated[
    NoLoss
    | BernoulliLoss
    | PoissonLoss
    | BernoulliBitLoss
    | BernoulliTraceLoss
    | GilbertElliottLoss
    | MarkovLoss
    | TraceLoss
    | SdrLoss,
    Field(discriminator="model"),
]
# In place of a mapping, a rate stands for Bernoulli losses, and a name for the model of that name.
Loss = Annotated[
    _Losses,
    accept_scalar("rate", Share | _Losses, model="bernoulli"),
    accept_names("model", get_args(get_args(_Losses)[0]), Share | _Losses),
]
LossPlan = Annotated[
    NoLossPlan
    | BernoulliLossPlan
    | PoissonLossPlan
    | BernoulliBitLossPlan
    | BernoulliTraceLossPlan
    | GilbertElliottLossPlan
    | MarkovLossPlan
    | TraceLossPlan
    | SdrLossPlan
    | RadioLossPlan,
    Field(discriminator="model"),
]
LOSS_PLANS: tuple[type[LossPlanBase], ...] = get_args(get_args(LossPlan)[0])
