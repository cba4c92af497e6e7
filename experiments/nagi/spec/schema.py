# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of experiment files, and which keys there are at a place."""

from __future__ import annotations

from functools import cache
from typing import Any

from nagi_contracts.units import Text
from pydantic.json_schema import GenerateJsonSchema

from nagi.spec.experiment import Experiment
from nagi.spec.yaml_source import KeyPath


def experiment_schema() -> dict[str, Any]:
    """The JSON Schema of the experiment file, for editors: `$axis` is allowed for every value."""
    schema = Experiment.model_json_schema(by_alias=True, schema_generator=_SchemaGenerator)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    _allow_axes(schema, under_key="")
    return schema


_FOR_ALL_POINTS = ("Keep", "Until")  # what holds for the whole campaign has no axes in it
# Keys whose values hold for the whole campaign: no axis stands in them.
NO_AXES = ("schema_version", "name", "matrix", "report")
# The keys that say which of several a mapping is, and of what.
UNION_TAGS = {
    "model": "loss model",
    "discipline": "queue discipline",
    "distribution": "jitter distribution",
    "kind": "kind",
    "application": "application",
    "by": "way of saying who hears whom",
}


class _SchemaGenerator(GenerateJsonSchema):
    """Writes defaults as the file would have them: `1000 bytes`."""

    def encode_default(self, dft: Any) -> Any:
        return str(dft) if isinstance(dft, Text) else super().encode_default(dft)


def _allow_axes(node: Any, under_key: str) -> None:
    if isinstance(node, list):
        for item in node:
            _allow_axes(item, "")
    if not isinstance(node, dict):
        return
    for key, value in list(node.items()):
        if key in ("properties", "patternProperties"):
            for name, schema in value.items():
                if name in ("schema_version", "name", "matrix", "variants", "report", "between"):
                    continue
                kept = {
                    k: schema.pop(k) for k in ("description", "default", "title") if k in schema
                }
                is_tag = name in UNION_TAGS and "const" in schema
                if not is_tag and _is_scalar(schema):
                    value[name] = {**_or_axis(schema), **kept}
                else:
                    schema.update(kept)
        if key == "additionalProperties" and isinstance(value, dict) and "type" in value:
            node[key] = value = _or_axis(value) if _is_scalar(value) else value
        if key == "prefixItems" and under_key != "between":
            node[key] = value = [_or_axis(item) if _is_scalar(item) else item for item in value]
        if key not in _FOR_ALL_POINTS:
            _allow_axes(value, key)
    if "discriminator" in node:
        tag = node["discriminator"]["propertyName"]
        by_axis = {"properties": {tag: {"type": "string", "pattern": r"^\$"}}, "required": [tag]}
        node["oneOf"].append({"type": "object", **by_axis})


def _or_axis(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [dict(schema), {"type": "string", "pattern": r"^\$"}]}


def _is_scalar(schema: dict[str, Any]) -> bool:
    """Whether a value may be a scalar, which an axis can stand for."""
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return any(_is_scalar(option) for option in schema[key])
    return schema.get("type") in ("string", "boolean", "integer", "number")


@cache
def _schema() -> dict[str, Any]:
    return Experiment.model_json_schema(by_alias=True)


def known_keys(key_path: KeyPath, data: Any) -> list[str]:
    """The keys that the schema knows at `place` of `data`."""
    nodes = _schema_at(key_path, data)
    return sorted({key for node in _resolved(*nodes) for key in node.get("properties", {})})


def known_tags(key_path: KeyPath, data: Any) -> list[str]:
    """What the schema knows the mapping at `place` of `data` to be."""
    nodes, _ = _schema_at(key_path, data)
    found = []
    while nodes:
        node = nodes.pop()
        found += node.get("discriminator", {}).get("mapping", {})
        nodes += [each for key in ("anyOf", "oneOf") for each in node.get(key, [])]
    return list(dict.fromkeys(found))


def _schema_at(key_path: KeyPath, data: Any) -> tuple[list[dict[str, Any]], Any]:
    """The schema's nodes for `place` of `data`, references in them not followed; and its data."""
    nodes = [_schema()]
    for step in key_path:
        nodes = [child for node in _resolved(nodes, data) for child in _children(node, step)]
        data = data[step]
    return nodes, data


def _resolved(nodes: list[dict[str, Any]], data: Any) -> list[dict[str, Any]]:
    """What `nodes` refer to; where `data` says which of several it is, only that one."""
    found = []
    for node in nodes:
        if "$ref" in node:
            name = node["$ref"].rsplit("/", 1)[1]
            found += _resolved([_schema()["$defs"][name]], data)
        elif "discriminator" in node and isinstance(data, dict):
            mapping = node["discriminator"]["mapping"]
            tag = data.get(node["discriminator"]["propertyName"])
            tags = [tag] if isinstance(tag, str) and tag in mapping else list(mapping)
            found += _resolved([{"$ref": mapping[each]} for each in tags], data)
        elif "anyOf" in node or "oneOf" in node:
            found += _resolved(node.get("anyOf", []) + node.get("oneOf", []), data)
        else:
            found.append(node)
    return found


def _children(node: dict[str, Any], step: str | int) -> list[dict[str, Any]]:
    if step in node.get("properties", {}):
        return [node["properties"][step]]
    children = [node.get("additionalProperties"), node.get("items")]
    children += node.get("patternProperties", {}).values()
    return [child for child in children if isinstance(child, dict)]
