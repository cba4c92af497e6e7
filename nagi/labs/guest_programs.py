# SPDX-License-Identifier: Apache-2.0
"""Programs that a guest starts from the directories in which they are installed.

Some programs find their files relative to their own path, so a guest must see them at this path.
All guests see /usr.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nagi_contracts.plan import RunPlan

from nagi.backends.registry import load_programs


def list_visible_programs(plans: Iterable[RunPlan]) -> dict[Path, Path]:
    """Return this machine's files outside /usr that guests must see to execute `plans`.

    Returns:
        path inside -> path outside, which are equal
    """
    plans = list(plans)
    files = [file for part in load_programs().values() for file in part.list_guest_files(plans)]
    outside = [path for path in files if path.exists() and not path.is_relative_to("/usr")]
    return {path: path for path in dict.fromkeys(outside)}
