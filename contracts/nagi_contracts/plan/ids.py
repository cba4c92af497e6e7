# SPDX-License-Identifier: Apache-2.0
"""Canonical JSON, and its hashes, which are the ids and the seeds of runs."""

from __future__ import annotations

import hashlib
import json

from nagi_contracts.base import Contract


def to_canonical_json(value: object) -> str:
    """Return a JSON value as text in canonical form: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(value: object) -> str:
    """Hash the canonical JSON of a value to 16 hexadecimal digits."""
    return hash_text(to_canonical_json(value))


def hash_text(text: str) -> str:
    """Hash a text to 16 hexadecimal digits: the first 64 bits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def part_to_json(part: Contract) -> str:
    """Return a part of a plan, such as a node or a link, as canonical JSON."""
    return to_canonical_json(part.model_dump(mode="json"))


def join_object(texts: dict[str, str]) -> str:
    """Return the canonical JSON of an object.

    Args:
        texts: Key -> canonical JSON of the key's value.
    """
    return "{" + ",".join(f'"{key}":{texts[key]}' for key in sorted(texts)) + "}"
