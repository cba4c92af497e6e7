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
    """Return backend -> its Keys from spec.py: the keys of the experiment file that it adds."""
    return load_parts("spec")


def load_planners() -> dict[str, PlannerFactory]:
    """Return backend -> the class from plan.py that plans its links, media and nodes."""
    return load_parts("plan")


def load_needs() -> dict[str, Needs]:
    """Return backend -> its Needs from needs.py: the programs and devices that runs need."""
    return load_parts("needs")


def load_programs() -> dict[str, Programs]:
    """Return backend -> its Programs from programs.py: the paths of programs for agents."""
    return load_parts("programs")


def load_verifiers() -> dict[str, Verifier]:
    """Return backend -> its Verifier from evidence.py, which measures checks from records."""
    return load_parts("evidence")


def load_stages() -> dict[str, Stage]:
    """Return backend -> its Stage from doctor.py: a group of checks of `nagi doctor`."""
    return load_parts("doctor")


def load_examinations() -> dict[str, Examination]:
    """Return backend -> its Examination from examination.py: the steps of `nagi doctor NAME`."""
    return load_parts("examination")


def load_chapters() -> dict[str, Chapter]:
    """Return backend -> its Chapter from chapter.py: the parts of a report that it adds."""
    return load_parts("chapter")
