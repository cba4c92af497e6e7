# SPDX-License-Identifier: Apache-2.0
"""Hooks of mkdocs that add pages to the site of the manuals.

The hooks add the reference, which is generated from the program and its schemas. If a manual links
to a file outside docs/, the hooks also add a copy of this file.

A link that leaves docs/, such as ../experiments/application.yaml, works in the repository. On the
site, such a link leads to a copy of the file, in files/. A link from such a copy into docs/ leads
to the manual.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
import reference

ROOT = Path(__file__).resolve().parents[1]
_COPIES = "files"
_LINK_OUT = re.compile(r"\]\(\.\./([^)#\s]+)")
_LINK_IN = re.compile(r"\]\((?:\.\./)*docs/")  # a link from a copy to a manual


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add the generated pages, and copies of the files outside docs/ to which manuals link."""
    for name, text in reference.make_pages().items():
        files.append(File.generated(config, name, content=text))
    targets = {
        target
        for page in files.documentation_pages()
        for target in _LINK_OUT.findall(page.content_string)
        if (ROOT / target).is_file()
    }
    for target in sorted(targets):
        files.append(File.generated(config, _copy_path(target), abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Return a page with links that work on the site.

    In a manual, links to files outside docs/ lead to the copies of these files. In a copy, links to
    files in docs/ lead to the manuals. Links to files that do not exist are kept.
    """
    up = "../" * page.file.src_uri.count("/")
    if page.file.src_uri.startswith(f"{_COPIES}/"):
        return _LINK_IN.sub(f"]({up}", markdown)

    def replace(match: re.Match[str]) -> str:
        exists = (ROOT / match[1]).is_file()
        return f"]({up}{_copy_path(match[1])}" if exists else match[0]

    return _LINK_OUT.sub(replace, markdown)


def _copy_path(target: str) -> str:
    """Return the path of a file's copy.

    Copies other than *.md and *.svg have the suffix .txt, so that browsers show them as text.
    """
    return f"{_COPIES}/{target}" if target.endswith((".md", ".svg")) else f"{_COPIES}/{target}.txt"
