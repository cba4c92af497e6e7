# SPDX-License-Identifier: Apache-2.0
"""Which characters the fonts of figures and of the PDF can show: DejaVu Sans, which comes with
matplotlib, and so is the same on every machine. Others would be boxes, or no report at all (PDF/UA
forbids text without glyphs)."""

from __future__ import annotations

import unicodedata
from functools import cache
from pathlib import Path

import matplotlib as mpl
from matplotlib.ft2font import FT2Font

MISSING = "\ufffd"  # REPLACEMENT CHARACTER, in the place of one that has no glyph
_FONTS = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSans-Oblique.ttf")
_SPACES = "\n\t \u00a0\u202f\u2009"


def list_font_files() -> list[Path]:
    """Return the files of the font."""
    directory = Path(mpl.get_data_path()) / "fonts" / "ttf"
    return [directory / name for name in _FONTS]


def replace_missing_glyphs(text: str) -> str:
    """Return `text` with MISSING in the place of characters that have no glyph, without those that
    only direct others, such as marks of the direction of writing."""
    if text.isascii() and text.isprintable():
        return text
    kept = (each for each in text if each in _SPACES or unicodedata.category(each) != "Cf")
    return "".join(each if each in _SPACES or ord(each) in _glyphs() else MISSING for each in kept)


@cache
def _glyphs() -> frozenset[int]:
    """Return the characters that have one in the upright font and in the bold one."""
    upright, bold, _ = (set(FT2Font(str(file)).get_charmap()) for file in list_font_files())
    return frozenset(upright & bold)
