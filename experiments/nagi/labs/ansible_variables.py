# SPDX-License-Identifier: Apache-2.0
"""Variables for Ansible.

Ansible evaluates each text that it is given as a Jinja template, and a template can run programs.
So texts of users, such as the path of a results directory, are marked `!unsafe`, by which Ansible
leaves them alone.
"""

from __future__ import annotations

from typing import Any

import yaml


class Template(str):
    """A text of ours that Ansible is to evaluate."""


class _Text(str):
    """A text that is what it is."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(Template, lambda dumper, text: dumper.represent_str(str(text)))
_Dumper.add_representer(
    _Text, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text), style='"')
)


def to_yaml(variables: dict[str, Any], *, in_one_line: bool = False) -> str:
    """Return variables, or an inventory, as YAML in which only a Template is a template. Keys are
    as they are given."""
    width = 1 << 30 if in_one_line else None
    return yaml.dump(
        _mark_texts(variables),
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=in_one_line,
        width=width,
    )


def _mark_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _mark_texts(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mark_texts(item) for item in value]
    if isinstance(value, str) and not isinstance(value, Template):
        return _Text(value)
    return value
