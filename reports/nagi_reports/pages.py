# SPDX-License-Identifier: Apache-2.0
"""What the HTML report and the explorer are written by, and where what is written may be put."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jinja2


def load_templates(
    directory: Path, finalize: Callable[[Any], Any] | None = None
) -> jinja2.Environment:
    """The templates in a directory: texts are escaped, and a value that is missing is an error.
    `finalize`: what is done to each value first."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(directory),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )


def make_content_policy(scripts: Iterable[str] = (), *, loads_scripts: bool = False) -> str:
    """Return a page's Content-Security-Policy. With it the page fetches and sends nothing, even if
    a stranger's text got into it, and runs only `scripts`, which are in the page, and with
    `loads_scripts` those beside it on the disk or the server."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    sources = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
    if loads_scripts:
        sources += ["'self'", "file:"]
    return "; ".join(
        [
            "default-src 'none'",
            "script-src " + " ".join(sources or ["'none'"]),
            "style-src 'unsafe-inline'",
            "img-src data: blob:",
            "font-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def can_replace(target: Path, mark: str) -> bool:
    """Whether nothing is lost with a directory: it is not there, empty, or has the file `mark`, by
    which its writer knows its own."""
    if not target.exists():
        return True
    return target.is_dir() and ((target / mark).exists() or not any(target.iterdir()))
