# SPDX-License-Identifier: Apache-2.0
"""Formatting of numbers for people, in reports and messages."""

from __future__ import annotations


def format_bytes(count: float) -> str:
    """Format a number of bytes with a decimal unit: bytes, kB, MB, GB or TB.

    Numbers below 10 kB, MB, GB or TB have one decimal.
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return (
                f"{count:.0f} {unit}" if count >= 10 or unit == "bytes" else f"{count:.1f} {unit}"
            )
        count /= 1000
    return f"{count:.0f} TB" if count >= 10 else f"{count:.1f} TB"


def format_time(seconds: float) -> str:
    """Format a time in seconds, minutes or hours, rounded for people."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def format_count(number: int, noun: str) -> str:
    """Format a number with a noun, whose plural ends with s: `1 run`, `2 runs`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
