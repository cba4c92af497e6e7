# SPDX-License-Identifier: Apache-2.0
"""The report of a campaign, as PDF or HTML.

chapters/ composes the content; report.typ and report.html.jinja lay it out. Reports of the same
runs are equal to the byte.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd
import typst
from markupsafe import Markup, escape
from nagi_contracts.errors import refuse
from nagi_contracts.records import Campaign

from nagi_reports import explorer
from nagi_reports.chapters import compose, read_material
from nagi_reports.chapters.backends import Chapter
from nagi_reports.content import Report
from nagi_reports.glyphs import MISSING, list_font_files, replace_missing_glyphs
from nagi_reports.pages import load_templates, make_content_policy
from nagi_reports.summary import summarise

Format = Literal["pdf", "html"]
FORMATS: tuple[str, ...] = get_args(Format)

_UNIT = re.compile(r"([0-9]) (%|[kMG]?b/s|m?s\b)")
_HERE = Path(__file__).parent
_LAYOUT = _HERE / "report.typ"
_PAGE = "report.html.jinja"
_WORK = ".report-"  # prefix of temporary directories


def write_report(
    out: Path,
    campaign: Campaign,
    table: pd.DataFrame,
    format: Format = "pdf",
    *,
    chapters: Mapping[str, Chapter],
    link_explorer: bool = True,
) -> Path:
    """Write the report of a campaign and its figures, and return the path of the report.

    The files are `out`/report.pdf or `out`/report.html, and `out`/figures/*.svg. Earlier figures
    are deleted.

    Args:
        out: The directory of the campaign.
        campaign: The campaign.
        table: The campaign's table of results.
        format: Format of the report.
        chapters: The chapter of each backend, by the backend's name.
        link_explorer: Whether an HTML report links to the explorer, if the explorer exists.

    Raises:
        InputError: There is no valid run.
    """
    summary = summarise(campaign, table)
    if summary.valid == 0:
        raise refuse(
            "there is no valid run to report", "`nagi show` lists the reasons", file=str(out)
        )
    report = compose(read_material(out, campaign, table, summary), chapters)
    figures = out / "figures"
    figures.mkdir(exist_ok=True)
    for leftover in out.glob(f"{_WORK}*"):  # temporary directories of a process that was killed
        shutil.rmtree(leftover)
    page = Path(explorer.NAME) / explorer.PAGE
    link = page.as_posix() if link_explorer and (out / page).exists() else None
    with _lay_out(report, out, format, link) as (file, drawings):
        for old_figure in figures.glob("*.svg"):
            old_figure.unlink()
        for drawing in drawings:
            drawing.replace(figures / drawing.name)
        return file.replace(out / file.name)


def write_document(target: Path, report: Report, format: Format) -> None:
    """Write a report to `target`, without the files of its figures."""
    with _lay_out(report, target.parent, format) as (file, _):
        file.replace(target)


@contextmanager
def _lay_out(
    report: Report, out: Path, format: Format, link: str | None = None
) -> Iterator[tuple[Path, list[Path]]]:
    """Yield the paths of the report and of its figures, in a temporary directory within `out`.

    The directory is deleted afterwards. `link` is the path of the explorer for an HTML report.
    """
    with tempfile.TemporaryDirectory(dir=out, prefix=_WORK) as name:
        work = Path(name)
        for figure in report.iterate_figures():
            (work / f"{figure.name}.svg").write_text(figure.svg, encoding="utf-8")
        file = work / f"report.{format}"
        if format == "pdf":
            _typeset(report, work, file)
        else:
            file.write_text(render_html(report, link), encoding="utf-8")
        yield file, sorted(work.glob("*.svg"))


def _typeset(report: Report, work: Path, target: Path) -> None:
    """Write the report as PDF by typst."""
    content = dataclasses.asdict(report)
    for section in content["sections"]:
        for block in section["blocks"]:
            block.pop("svg", None)  # the figure is a separate file
    content = _replace_missing_glyphs(content)
    text = json.dumps(content, ensure_ascii=False)
    if MISSING in text:
        content["footer"] += f" · {MISSING}: a character without a glyph in the PDF's fonts"
        content["footer"] += "; `nagi report --format html` shows it"
        text = json.dumps(content, ensure_ascii=False)
    (work / "report.json").write_text(text, encoding="utf-8")
    fonts = work / "fonts"
    fonts.mkdir()
    for file in list_font_files():
        shutil.copy(file, fonts)
    shutil.copyfile(_LAYOUT, work / _LAYOUT.name)
    typst.compile(
        str(work / _LAYOUT.name),
        output=str(target),
        # Every machine has these fonts: those of typst, and matplotlib's for further characters.
        ignore_system_fonts=True,
        font_paths=[str(fonts)],
        pdf_standards=["ua-1"],
        timestamp=report.created_s,
    )


def _replace_missing_glyphs(content: Any) -> Any:
    """Return `content` with MISSING in place of characters that the fonts cannot show."""
    if isinstance(content, str):
        return replace_missing_glyphs(content)
    if isinstance(content, dict):
        return {key: _replace_missing_glyphs(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_replace_missing_glyphs(value) for value in content]
    return content


def render_html(report: Report, link: str | None = None) -> str:
    """Return the report as one HTML page without scripts, which needs neither files nor a network.

    Args:
        report: The report.
        link: Path of the explorer, relative to the page; None without an explorer.
    """
    environment = load_templates(_HERE, finalize=_join_units)
    environment.filters["inline"] = inline_svg
    environment.filters["mathml"] = _mark_as_safe
    return environment.get_template(_PAGE).render(
        report=report, explorer=link, policy=make_content_policy()
    )


def _join_units(value: Any) -> Any:
    """Return a text with no-break spaces between numbers and units, or another value unchanged."""
    return _UNIT.sub("\\1\u00a0\\2", value) if type(value) is str else value


def _mark_as_safe(formula: Any) -> Markup:
    return Markup(formula.mathml)  # formula.py escapes texts


# Colours of figures -> variables of the page, which has other colours in dark mode.
_COLOURS = {
    "#000000": "var(--ink)",
    "#ffffff": "var(--paper)",
    "#8c8c8c": "var(--grey)",
    "#d0d0d0": "var(--pale)",
    "#0072b2": "var(--blue)",
    "#d55e00": "var(--vermilion)",
    "#009e73": "var(--green)",
    "#cc79a7": "var(--pink)",
    "#b07800": "var(--ochre)",
    "#3793c8": "var(--sky)",
    "#7a5195": "var(--violet)",
    "#6b6b00": "var(--olive)",
    "#a03040": "var(--red)",
}


def inline_svg(svg: str, name: str, alt: str) -> Markup:
    """Return an SVG figure for insertion into a page, with the page's colours and a description.

    Args:
        svg: The text of the SVG file.
        name: Name of the figure, which is added to ids to make them unique in the page.
        alt: Description for readers who do not see the figure.
    """
    name = str(escape(name))
    drawing = svg[svg.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', drawing)
    drawing = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', drawing)
    drawing = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", drawing)
    for colour, variable in _COLOURS.items():
        drawing = re.sub(colour, variable, drawing, flags=re.IGNORECASE)
    drawing = drawing.replace("xlink:href", "href").replace(
        'xmlns:xlink="http://www.w3.org/1999/xlink"', ""
    )
    # Elements without a colour, mostly letters, would be black: give them the page's colour.
    heading = f'<svg class="drawing" role="img" aria-labelledby="{name}-title" fill="var(--ink)"'
    drawing = drawing.replace("<svg", heading, 1)
    end = drawing.index(">") + 1
    title = Markup("<title id='{}-title'>{}</title>").format(name, alt)
    return Markup(drawing[:end] + str(title) + drawing[end:])
