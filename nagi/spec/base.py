# SPDX-License-Identifier: Apache-2.0
"""Define which names an experiment file may use, and which values its axes may have."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

# Names become parts of interface names, which Linux limits to 15 characters.
NAME_PATTERN = r"^[A-Za-z][A-Za-z0-9_-]{0,10}$"
AXIS_PATTERN = r"^[a-z][a-z0-9_]{0,63}$"
EXPERIMENT_NAME = r"^[a-z0-9][a-z0-9-]{0,63}$"
VARIANT_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
# The cure for a name that does not match a pattern.
PATTERNS = {
    NAME_PATTERN: "use 1 to 11 of A-Z, a-z, 0-9, - and _, and begin with a letter",
    AXIS_PATTERN: "use 1 to 64 of a-z, 0-9 and _, and begin with a letter",
    EXPERIMENT_NAME: "use 1 to 64 of a-z, 0-9 and -, and begin with a letter or digit",
    VARIANT_PATTERN: "use 1 to 64 of A-Z, a-z, 0-9, - and _, and begin with a letter or digit",
}

VALUE_TYPES = str | int | float  # types of an axis's values; bool is an int
MAX_ENDS = 250  # nodes that a link or medium joins at most, a limit of nagi-link

Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Axis = Annotated[str, Field(pattern=AXIS_PATTERN)]


def format_axis_value(value: Any) -> str:
    """Return a value of an axis as the file writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# The axes in a part of a document: the axis if the part is `$axis`, otherwise a mapping from each
# key with axes below it to these axes.
