# SPDX-License-Identifier: Apache-2.0
"""Replacement of characters that the font of figures and of the PDF cannot show.

The font is DejaVu Sans, which is part of matplotlib and thus the same on every machine. A character
without a glyph would be a box in figures, and PDF/UA forbids such characters.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from pathlib import Path

import matplotlib as mpl
from matplotlib.ft2font import FT2Font

MISSING = "\ufffd"  # REPLACEMENT CHARACTER, in place of a character without a glyph
_FONTS = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSans-Oblique.ttf")
_SPACES = "\n\t \u00a0\u202f\u2009"


def list_font_files() -> list[Path]:
    """Return the files of the font."""
    directory = Path(mpl.get_data_path()) / "fonts" / "ttf"
    return [directory / name for name in _FONTS]


def replace_missing_glyphs(text: str) -> str:
    """Return `text` with MISSING in place of characters that have no glyph.

    Format characters (Unicode category Cf), such as marks of the writing direction, are removed.
    """
    if text.isascii() and text.isprintable():
        return text
    characters = (
        character
        for character in text
        if character in _SPACES or unicodedata.category(character) != "Cf"
    )
    return "".join(
        character if character in _SPACES or ord(character) in _list_glyphs() else MISSING
        for character in characters
    )


@cache
def _list_glyphs() -> frozenset[int]:
    """Return the characters that have a glyph in the upright and in the bold font."""
    upright, bold, _ = (set(FT2Font(str(file)).get_charmap()) for file in list_font_files())
    return frozenset(upright & bold)
