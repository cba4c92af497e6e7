# SPDX-License-Identifier: Apache-2.0
"""Functions for the pages of HTML reports and of the explorer.

They load templates, make the content security policy, and check whether files can be replaced.
"""

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
    """Return an environment of Jinja with the templates in a directory.

    Templates escape texts, and raise an error for a missing value.

    Args:
        directory: The directory with the templates.
        finalize: A function that is applied to each value before it is inserted.
    """
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(directory),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )


def make_content_policy(scripts: Iterable[str] = (), *, loads_scripts: bool = False) -> str:
    """Return a page's Content-Security-Policy.

    With this policy, the page cannot fetch or send anything, even if it contains untrusted text.

    Args:
        scripts: Texts of the scripts within the page, which may run.
        loads_scripts: Whether the page may also load scripts from its directory or server.
    """
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
    """Return whether `target` can be replaced: it is missing, empty, or has the file `mark`."""
    if not target.exists():
        return True
    return target.is_dir() and ((target / mark).exists() or not any(target.iterdir()))
