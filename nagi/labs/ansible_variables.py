# SPDX-License-Identifier: Apache-2.0
"""Writes variables for Ansible.

Ansible evaluates every text as a Jinja template, and a template can run programs. Texts of users,
such as the path of a results directory, are therefore marked `!unsafe`, so that Ansible does not
evaluate them.
"""

from __future__ import annotations

from typing import Any

import yaml


class Template(str):
    """A text that Ansible evaluates as a template."""


class _Text(str):
    """A text that Ansible does not evaluate."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(Template, lambda dumper, text: dumper.represent_str(str(text)))
_Dumper.add_representer(
    _Text, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text), style='"')
)


def to_yaml(variables: dict[str, Any], *, in_one_line: bool = False) -> str:
    """Return variables, or an inventory, as YAML.

    All texts except objects of class Template are marked `!unsafe`; keys are not marked.
    """
    width = 1 << 30 if in_one_line else None
    return yaml.dump(
        _mark_texts(variables),
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=in_one_line,
        width=width,
    )


def _mark_texts(value: Any) -> Any:
    """Return `value` with all texts except Templates marked as `!unsafe`."""
    if isinstance(value, dict):
        return {key: _mark_texts(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mark_texts(item) for item in value]
    if isinstance(value, str) and not isinstance(value, Template):
        return _Text(value)
    return value
