# SPDX-License-Identifier: Apache-2.0
"""Load the file with a given name, such as plan.py, of all backends.

Each function imports only the files of one name. Thus `nagi plan` does not import numpy, which
only evidence.py needs. Results are in the order of names.list_backends(). Keys are the names of
backends; values are the objects `part`, which interface.py describes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nagi.backends.names import load_parts

if TYPE_CHECKING:
    from nagi_reports.chapters.backends import Chapter

    from nagi.backends.interface import (
        Examination,
        Needs,
        PlannerFactory,
        Programs,
        Stage,
        Verifier,
    )
    from nagi.backends.keys import Keys


def load_keys() -> dict[str, Keys]:
    """Return backend -> its keys of the experiment file (spec.py)."""
    return load_parts("spec")


def load_planners() -> dict[str, PlannerFactory]:
    """Return backend -> the class that plans its links, media and nodes (plan.py)."""
    return load_parts("plan")


def load_needs() -> dict[str, Needs]:
    """Return backend -> the programs and devices that it needs (needs.py)."""
    return load_parts("needs")


def load_programs() -> dict[str, Programs]:
    """Return backend -> the paths of programs that its agents get (programs.py)."""
    return load_parts("programs")


def load_verifiers() -> dict[str, Verifier]:
    """Return backend -> the reader of its records, which measures checks (evidence.py)."""
    return load_parts("evidence")


def load_stages() -> dict[str, Stage]:
    """Return backend -> its stage of `nagi doctor` (doctor.py)."""
    return load_parts("doctor")


def load_examinations() -> dict[str, Examination]:
    """Return backend -> its steps of `nagi doctor NAME` (examination.py)."""
    return load_parts("examination")


def load_chapters() -> dict[str, Chapter]:
    """Return backend -> its parts of a report (chapter.py)."""
    return load_parts("chapter")
