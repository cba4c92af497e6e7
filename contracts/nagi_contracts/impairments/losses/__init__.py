# SPDX-License-Identifier: Apache-2.0
"""All losses on the channel. A model in a module of its own is added to both unions."""

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
from nagi_contracts.impairments.plain import accept_names, plain
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
# A rate alone is of Bernoulli losses, and a name alone is of the model that has it.
Loss = Annotated[
    _Losses,
    plain("rate", Share | _Losses, model="bernoulli"),
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
