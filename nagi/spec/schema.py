# SPDX-License-Identifier: Apache-2.0
"""Generate the JSON Schema of experiment files, and find the keys that it allows at a key path."""

from __future__ import annotations

from functools import cache
from typing import Any

from nagi_contracts.units import Text
from pydantic.json_schema import GenerateJsonSchema

from nagi.spec import backend_keys
from nagi.spec.experiment import Experiment
from nagi.spec.yaml_source import KeyPath


def make_experiment_schema() -> dict[str, Any]:
    """Return the JSON Schema of experiment files for editors; it allows `$axis` for every value."""
    schema = Experiment.model_json_schema(by_alias=True, schema_generator=_SchemaGenerator)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    _allow_axes(schema, under_key="")
    return schema


# Models and keys whose values hold for the whole campaign, so that they contain no axes.
_WITHOUT_AXES = ("Keep", "Until")
NO_AXES = ("schema_version", "name", "matrix", "report")
# Keys by which a mapping selects one of several models: key -> name for messages.
UNION_TAGS = {
    "model": "loss model",
    "discipline": "queue discipline",
    "distribution": "jitter distribution",
    "application": "application",
    **backend_keys.UNION_TAGS,
}


class _SchemaGenerator(GenerateJsonSchema):
    """Writes defaults in the format of experiment files, such as `1000 bytes`."""

    def encode_default(self, dft: Any) -> Any:
        return str(dft) if isinstance(dft, Text) else super().encode_default(dft)


def _allow_axes(node: Any, under_key: str) -> None:
    """Allow `$axis` in place of scalar values below a node of the schema, in place.

    Keys for which an axis makes no sense, such as `name` and `between`, are left out.

    Args:
        node: A part of the schema.
        under_key: The key that has `node` in the schema; "" for an item of a list.
    """
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
                annotations = {
                    annotation: schema.pop(annotation)
                    for annotation in ("description", "default", "title")
                    if annotation in schema
                }
                is_tag = name in UNION_TAGS and "const" in schema
                if not is_tag and _allows_scalar(schema):
                    value[name] = {**_add_axis(schema), **annotations}
                else:
                    schema.update(annotations)
        if key == "additionalProperties" and isinstance(value, dict) and "type" in value:
            node[key] = value = _add_axis(value) if _allows_scalar(value) else value
        if key == "prefixItems" and under_key != "between":
            node[key] = value = [
                _add_axis(item) if _allows_scalar(item) else item for item in value
            ]
        if key not in _WITHOUT_AXES:
            _allow_axes(value, key)
    if "discriminator" in node:
        tag = node["discriminator"]["propertyName"]
        by_axis = {"properties": {tag: {"type": "string", "pattern": r"^\$"}}, "required": [tag]}
        node["oneOf"].append({"type": "object", **by_axis})


def _add_axis(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that also allows `$axis`."""
    return {"anyOf": [dict(schema), {"type": "string", "pattern": r"^\$"}]}


def _allows_scalar(schema: dict[str, Any]) -> bool:
    """Return whether a schema permits a scalar, for which an axis can stand."""
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return any(_allows_scalar(option) for option in schema[key])
    return schema.get("type") in ("string", "boolean", "integer", "number")


@cache
def _load_schema() -> dict[str, Any]:
    return Experiment.model_json_schema(by_alias=True)


def list_known_keys(key_path: KeyPath, data: Any) -> list[str]:
    """Return the keys that the schema allows in the mapping at a key path of `data`, sorted."""
    nodes = _find_schemas(key_path, data)
    return sorted(
        {key for node in _resolve_references(*nodes) for key in node.get("properties", {})}
    )


def list_known_tags(key_path: KeyPath, data: Any) -> list[str]:
    """Return the tags, such as names of loss models, that the schema allows at a key path.

    A tag is the value of a key in UNION_TAGS in the mapping at `key_path` of `data`.
    """
    nodes, _ = _find_schemas(key_path, data)
    tags = []
    while nodes:
        node = nodes.pop()
        tags += node.get("discriminator", {}).get("mapping", {})
        nodes += [option for key in ("anyOf", "oneOf") for option in node.get(key, [])]
    return list(dict.fromkeys(tags))


def _find_schemas(key_path: KeyPath, data: Any) -> tuple[list[dict[str, Any]], Any]:
    """Return the schemas of the value at a key path of `data`, and the value.

    There are several schemas if the value may be of several models. References (`$ref`) in them are
    not resolved.
    """
    nodes = [_load_schema()]
    for step in key_path:
        nodes = [
            child
            for node in _resolve_references(nodes, data)
            for child in _list_child_schemas(node, step)
        ]
        data = data[step]
    return nodes, data


def _resolve_references(nodes: list[dict[str, Any]], data: Any) -> list[dict[str, Any]]:
    """Return `nodes` with the models for which their references and unions stand.

    If the models of a union have tags, return only the model whose tag is in `data`, or all models
    if `data` has no valid tag.
    """
    resolved = []
    for node in nodes:
        if "$ref" in node:
            name = node["$ref"].rsplit("/", 1)[1]
            resolved += _resolve_references([_load_schema()["$defs"][name]], data)
        elif "discriminator" in node and isinstance(data, dict):
            mapping = node["discriminator"]["mapping"]
            tag = data.get(node["discriminator"]["propertyName"])
            tags = [tag] if isinstance(tag, str) and tag in mapping else list(mapping)
            resolved += _resolve_references([{"$ref": mapping[tag]} for tag in tags], data)
        elif "anyOf" in node or "oneOf" in node:
            resolved += _resolve_references(node.get("anyOf", []) + node.get("oneOf", []), data)
        else:
            resolved.append(node)
    return resolved


def _list_child_schemas(node: dict[str, Any], step: str | int) -> list[dict[str, Any]]:
    """Return the schemas that `node` has for the value at `step`, a key or an index."""
    if step in node.get("properties", {}):
        return [node["properties"][step]]
    children = [node.get("additionalProperties"), node.get("items")]
    children += node.get("patternProperties", {}).values()
    return [child for child in children if isinstance(child, dict)]
