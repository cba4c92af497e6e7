# SPDX-License-Identifier: Apache-2.0
"""Define the nodes of an experiment: hosts, routers, and the kinds of nodes of backends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Union

from nagi_contracts.base import Strict
from pydantic import Discriminator, Tag

from nagi.spec.backend_keys import NODE_KINDS

_SETTINGS = {
    kind: node_kind.settings for kind, node_kind in NODE_KINDS.items() if node_kind.settings
}
DESCRIPTION = ", ".join(
    ["a router forwards by its kernel", *(kind.description for kind in NODE_KINDS.values())]
)


def get_kind(node: Node) -> str:
    """Return the kind of a node, such as `host`."""
    if isinstance(node, str):
        return node
    return next(kind for kind, settings in _SETTINGS.items() if isinstance(node, settings))


def _get_tag(value: object) -> str:
    """Return the tag of the union's member with which pydantic validates `value`."""
    if isinstance(value, dict):
        kind = next((kind for kind in _SETTINGS if kind in value), next(iter(_SETTINGS)))
        return _make_tag(kind)
    return _make_tag(get_kind(value)) if isinstance(value, Strict) else "kind"


def _make_tag(kind: str) -> str:
    # pydantic adds tags to locations of errors, so a tag must not be equal to a key of the file.
    return f"settings of {kind}"


if TYPE_CHECKING:
    Node = str | Strict
else:
    _MEMBERS = [
        Annotated[Literal["host", "router", *NODE_KINDS], Tag("kind")],
        *(Annotated[settings, Tag(_make_tag(kind))] for kind, settings in _SETTINGS.items()),
    ]
    Node = Annotated[Union[*_MEMBERS], Discriminator(_get_tag)]
