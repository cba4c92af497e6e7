# SPDX-License-Identifier: Apache-2.0
"""Define which names experiments, nodes, links, flows, axes and variants may have."""

from __future__ import annotations

from typing import Annotated

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

MAX_ENDS = 250  # nodes that a link or medium joins at most, a limit of nagi-link

Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Axis = Annotated[str, Field(pattern=AXIS_PATTERN)]
