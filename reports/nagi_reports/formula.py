# SPDX-License-Identifier: Apache-2.0
"""Formulas in three notations: typst, MathML for HTML, and words for screen readers."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Formula:
    typst: str
    mathml: str
    words: str


def symbol(name: str, index: str = "") -> Formula:
    """Return a variable, a letter or a number, with an optional index."""
    letter = name if len(name) == 1 or not name.isalpha() else f'"{name}"'
    tag = "mn" if name.replace(".", "").isdigit() else "mi"
    base = f"<{tag}>{escape(name)}</{tag}>"
    if not index:
        return Formula(letter, base, name)
    return Formula(
        f'{letter}_"{index}"' if len(index) > 1 else f"{letter}_{index}",
        f"<msub>{base}<mi>{escape(index)}</mi></msub>",
        f"{name} {index}",
    )


def text(words: str) -> Formula:
    """Return words within a formula."""
    return Formula(f'"{words}"', f"<mtext>{escape(words)}</mtext>", words)


def row(*parts: Formula | str) -> Formula:
    """Return parts in a row; a string is an operator."""
    formulas = [operator(part) if isinstance(part, str) else part for part in parts]
    return Formula(
        " ".join(part.typst for part in formulas),
        f"<mrow>{''.join(part.mathml for part in formulas)}</mrow>",
        " ".join(part.words for part in formulas),
    )


_SPOKEN_SIGNS = {"=": "is", "·": "times", "−": "minus", "±": "plus or minus"}


def operator(sign: str) -> Formula:
    """Return an operator, such as "=" or "·"."""
    typst_sign = {"·": "dot", "−": "-", "±": "plus.minus"}.get(sign, sign)
    return Formula(typst_sign, f"<mo>{escape(sign)}</mo>", _SPOKEN_SIGNS.get(sign, sign))


def fraction(numerator: Formula, denominator: Formula) -> Formula:
    """Return a fraction."""
    return Formula(
        f"frac({numerator.typst}, {denominator.typst})",
        f"<mfrac>{numerator.mathml}{denominator.mathml}</mfrac>",
        f"{numerator.words} divided by {denominator.words}",
    )


def squared(term: Formula, *, is_sum: bool = False) -> Formula:
    """Return the square of a term, with the term in brackets if it is a sum."""
    opening, closing = ("(", ")") if is_sum else ("", "")
    base = f"<mo>(</mo>{term.mathml}<mo>)</mo>" if is_sum else term.mathml
    return Formula(
        f"{opening}{term.typst}{closing}^2",
        f"<msup><mrow>{base}</mrow><mn>2</mn></msup>",
        f"the square of {term.words}",
    )


def root(term: Formula) -> Formula:
    """Return a square root."""
    return Formula(
        f"sqrt({term.typst})",
        f"<msqrt>{term.mathml}</msqrt>",
        f"the square root of {term.words}",
    )


def total(term: Formula, index: str, last: str) -> Formula:
    """Return the sum of a term over index = 1 to last."""
    return Formula(
        f"sum_({index}=1)^{last} {term.typst}",
        f"<munderover><mo>∑</mo><mrow><mi>{index}</mi><mo>=</mo><mn>1</mn></mrow>"
        f"<mi>{last}</mi></munderover>{term.mathml}",
        f"the sum over {index} of {term.words}",
    )
