# SPDX-License-Identifier: Apache-2.0
"""Define the keys of the experiment file that a backend adds: the object `part` of its spec.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from nagi_contracts.base import Strict


class Key(NamedTuple):
    """A key of the experiment file: the class of its value, and its description in the schema."""

    settings: type[Strict]
    description: str


class SectionKey(NamedTuple):
    """A key at the top level of the experiment file, such as `media`.

    The value of the key in the file is a mapping: name -> settings of a shared medium.
    """

    settings: type[Strict]  # the class of one medium, a SharedMedium of nagi.spec.shared_media
    noun: str  # what messages call one entry, such as `medium`
    description: str  # of the key, in the schema


class NodeKind(NamedTuple):
    """A kind of nodes in addition to `host` and `router`."""

    description: str  # in the schema, where it follows `a router forwards by its kernel, `
    # The class of a node that is written as a mapping. The class has a key with the kind's name.
    settings: type[Strict] | None = None
    shapes_directions: bool = False  # whether links may have `shaped_by: KIND`


@dataclass(frozen=True)
class Keys:
    """Keys and values of the experiment file that belong to the backend (spec.py).

    spec.py must not import nagi.spec.links or nagi.spec.experiment, because these modules build
    their classes from the keys of all backends.

    Attributes:
        emulators: Value of `emulator:` -> its description.
        link_keys: Keys of a link.
        direction_keys: Keys of a direction, under `forward` or `backward` of a link.
        sections: Keys at the top level of the file.
        node_kinds: Values of a node, in addition to `host` and `router`.
        union_tags: Key that selects a model, such as `by` in `reach: {by: sinr}` -> what messages
            call it, such as `reach model`.
    """

    emulators: Mapping[str, str] = field(default_factory=dict)
    link_keys: Mapping[str, Key] = field(default_factory=dict)
    direction_keys: Mapping[str, Key] = field(default_factory=dict)
    sections: Mapping[str, SectionKey] = field(default_factory=dict)
    node_kinds: Mapping[str, NodeKind] = field(default_factory=dict)
    union_tags: Mapping[str, str] = field(default_factory=dict)
