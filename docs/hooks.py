# SPDX-License-Identifier: Apache-2.0
"""What mkdocs asks of the manuals' site beyond their text: the pages of the reference, generated
from the program and its schemas, and files of the repository that manuals link to.

A link that leaves docs/, such as ../experiments/application.yaml, works where the repository is
browsed. In the site it leads to a copy of the file, below files/. A link of such a copy into docs/
leads to the manual.
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
_LEAVING = re.compile(r"\]\(\.\./([^)#\s]+)")
_COMING = re.compile(r"\]\((?:\.\./)*docs/")  # from a copy


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Adds generated pages, and copies of what manuals link to outside docs/."""
    for name, text in reference.pages().items():
        files.append(File.generated(config, name, content=text))
    wanted = {
        target
        for page in files.documentation_pages()
        for target in _LEAVING.findall(page.content_string)
        if (ROOT / target).is_file()
    }
    for target in sorted(wanted):
        files.append(File.generated(config, _copy_of(target), abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Lets links that leave docs/ lead to the copies. A page of the reference has none."""
    up = "../" * page.file.src_uri.count("/")
    if page.file.src_uri.startswith(f"{_COPIES}/"):
        return _COMING.sub(f"]({up}", markdown)

    def copied(match: re.Match[str]) -> str:
        is_there = (ROOT / match[1]).is_file()
        return f"]({up}{_copy_of(match[1])}" if is_there else match[0]

    return _LEAVING.sub(copied, markdown)


def _copy_of(target: str) -> str:
    """A page stays a page; any other file is shown as text, which browsers do by its name."""
    return f"{_COPIES}/{target}" if target.endswith((".md", ".svg")) else f"{_COPIES}/{target}.txt"
