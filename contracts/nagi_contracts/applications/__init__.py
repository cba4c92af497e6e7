# SPDX-License-Identifier: Apache-2.0
"""All applications: their settings, their plans, and the records of their clients and servers.

Each application is a module. To add one, add it to SETTINGS, AnyPlan, Traffic and AnyEnd here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from nagi_contracts.applications.base import ApplicationPlan, ApplicationSettings
from nagi_contracts.applications.cbr import Cbr, CbrClient, CbrPlan, CbrServer
from nagi_contracts.applications.onoff import OnOff, OnOffClient, OnOffPlan, OnOffServer
from nagi_contracts.applications.playback import (
    Playback,
    PlaybackClient,
    PlaybackPlan,
    PlaybackServer,
)
from nagi_contracts.applications.poisson import (
    Poisson,
    PoissonClient,
    PoissonPlan,
    PoissonServer,
)
from nagi_contracts.applications.request_response import (
    RequestResponse,
    RequestResponseClient,
    RequestResponsePlan,
    RequestResponseServer,
)
from nagi_contracts.applications.token_bucket import (
    TokenBucket,
    TokenBucketClient,
    TokenBucketPlan,
    TokenBucketServer,
)
from nagi_contracts.applications.transfer import (
    Transfer,
    TransferClient,
    TransferPlan,
    TransferServer,
)
from nagi_contracts.base import Contract

__all__ = [
    "AnyEnd",
    "AnyPlan",
    "ApplicationPlan",
    "ApplicationSettings",
    "Applications",
    "BulkProgram",
    "Traffic",
]

SETTINGS = Transfer | Playback | Cbr | TokenBucket | RequestResponse | Poisson | OnOff
AnyPlan = Annotated[
    TransferPlan
    | PlaybackPlan
    | CbrPlan
    | TokenBucketPlan
    | RequestResponsePlan
    | PoissonPlan
    | OnOffPlan,
    Field(discriminator="application"),
]
# The traffic of a flow in plans: bulk data, a user's command, or an application of nagi-traffic.
Traffic = Literal[
    "bulk",
    "command",
    "transfer",
    "playback",
    "cbr",
    "token_bucket",
    "request_response",
    "poisson",
    "onoff",
]

# The program that sends and receives bulk data: nagi-traffic, or iperf 2.
BulkProgram = Literal["nagi-traffic", "iperf"]


def _find_tag(value: Any) -> str:
    """Return APPLICATION ROLE, such as "cbr client", which selects a record's class in AnyEnd."""
    if isinstance(value, dict):
        return f"{value.get('application')} {value.get('role')}"
    return f"{getattr(value, 'application', None)} {getattr(value, 'role', None)}"


AnyEnd = Annotated[
    Annotated[TransferClient, Tag("transfer client")]
    | Annotated[TransferServer, Tag("transfer server")]
    | Annotated[PlaybackClient, Tag("playback client")]
    | Annotated[PlaybackServer, Tag("playback server")]
    | Annotated[CbrClient, Tag("cbr client")]
    | Annotated[CbrServer, Tag("cbr server")]
    | Annotated[TokenBucketClient, Tag("token_bucket client")]
    | Annotated[TokenBucketServer, Tag("token_bucket server")]
    | Annotated[RequestResponseClient, Tag("request_response client")]
    | Annotated[RequestResponseServer, Tag("request_response server")]
    | Annotated[PoissonClient, Tag("poisson client")]
    | Annotated[PoissonServer, Tag("poisson server")]
    | Annotated[OnOffClient, Tag("onoff client")]
    | Annotated[OnOffServer, Tag("onoff server")],
    Discriminator(_find_tag),
]


class ApplicationEnds(Contract):
    """The records of client and server of a flow."""

    flow: str
    client: AnyEnd
    server: AnyEnd


class Applications(Contract):
    """applications.json: the records of all flows of a run that nagi-traffic generates."""

    schema_version: Literal[1] = 1
    flows: list[ApplicationEnds]
