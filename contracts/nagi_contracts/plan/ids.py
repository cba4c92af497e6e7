# SPDX-License-Identifier: Apache-2.0
"""Canonical JSON, whose bytes decide ids and seeds, and hashes of it."""

from __future__ import annotations

import hashlib
import json

from nagi_contracts.base import Contract


def to_canonical_json(value: object) -> str:
    """Write a JSON value in its only canonical form: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(value: object) -> str:
    """Hash a JSON value to 16 hexadecimal digits."""
    return hash_text(to_canonical_json(value))


def hash_text(text: str) -> str:
    """Hash a text to 16 hexadecimal digits: the first 64 bits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def part_to_json(part: Contract) -> str:
    """Write a part of a plan as canonical JSON."""
    return to_canonical_json(part.model_dump(mode="json"))


def join_object(texts: dict[str, str]) -> str:
    """Join the canonical JSON of values to the canonical JSON of an object with these values."""
    return "{" + ",".join(f'"{key}":{texts[key]}' for key in sorted(texts)) + "}"
