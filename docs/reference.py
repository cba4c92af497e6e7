# SPDX-License-Identifier: Apache-2.0
"""The pages of the reference in Markdown, generated from the program and its schemas.

The pages describe commands, experiment files, checks of the certificate, formats, and variables of
inventories.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import roles
from nagi.cli.main import make_whole_command
from nagi.verdict.limits import list_limits
from nagi_contracts import paths, units
from tables import format_value, make_table

NATIVE = ("nagi-link", "nagi-switch", "nagi-tcp", "nagi-traffic")
_SUBCOMMAND = re.compile(r"^  ([a-z]+[a-z-]*) ", re.M)  # in CLI11's help
_GENERATED = "Generated from {source} when the manuals are built.\n"


def make_pages() -> dict[str, str]:
    """Return all pages: path in the site -> Markdown."""
    return {
        "reference/commands.md": describe_commands(),
        "reference/experiment.md": describe_experiment(),
        "reference/certificate.md": describe_checks(),
        "reference/formats.md": describe_formats(),
        "reference/inventory.md": describe_inventory(),
    }


def describe_commands() -> str:
    """Return the page on all commands of nagi and of the native programs, with their options.

    Raises:
        FileNotFoundError: A native program is not built.
    """
    out = [
        "# Commands\n",
        _GENERATED.format(source="the programs themselves"),
        "Exit status of `nagi`: 0 done; 1 some runs failed or are invalid; 2 the input was "
        "refused; 130 interrupted.\n",
        *_describe_command(make_whole_command(), "nagi"),
    ]
    for name in NATIVE:
        out += [f"## {name}\n", f"```text\n{_read_help(name)}\n```\n"]
        for words in _list_commands(name):
            text = _read_help(name, *words)
            out += [f"### {name} {' '.join(words)}\n", f"```text\n{text}\n```\n"]
    return "\n".join(out)


def _describe_command(command: Any, name: str) -> Iterator[str]:
    """Yield the text on a command, then the texts on its subcommands, sorted by name."""
    context = type(command).context_class(command, info_name=name)
    yield f"## {name}\n"
    if command.help:
        yield command.help + "\n"
    yield f"```text\n{command.get_usage(context)}\n```\n"
    records = (parameter.get_help_record(context) for parameter in command.get_params(context))
    rows = [(f"`{record[0]}`", record[1]) for record in records if record]
    yield make_table(("argument or option", "meaning"), rows)
    for word, subcommand in sorted(getattr(command, "commands", {}).items()):
        yield from _describe_command(subcommand, f"{name} {word}")


def _list_commands(program: str, *command: str) -> Iterator[list[str]]:
    """Yield the words of each subcommand of PROGRAM COMMAND, followed by its own subcommands."""
    for name in _SUBCOMMAND.findall(_read_help(program, *command).partition("Subcommands:")[2]):
        yield [*command, name]
        yield from _list_commands(program, *command, name)


def _read_help(program: str, *command: str) -> str:
    """Return the output of `PROGRAM COMMAND --help`."""
    path = paths.executable(program)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; run `make setup`")
    words = [program, *command, "--help"]
    done = subprocess.run(words, executable=path, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def describe_experiment() -> str:
    """Return the page on all keys of the experiment file."""
    schema = json.loads((paths.SCHEMAS / "experiment.schema.json").read_text())
    out = [
        "# Experiment file\n",
        _GENERATED.format(source="`experiments/schemas/experiment.schema.json`"),
        "An experiment file is YAML. [Experiments](../experiments.md) explains it. A key without a "
        "default must be given, unless null is one of its types. In the column `$axis`, *yes* "
        "means that the value may be `$NAME`, which is replaced by each value of the axis NAME of "
        "`matrix`, one per run.\n",
        "## Quantities {#quantities}\n",
        "A quantity is a number and a unit. Prefixes are decimal: 1 Mb/s is 10^6 bit/s.\n",
        make_table(
            ("quantity", "example", "units"),
            [
                (
                    quantity.noun,
                    f"`{quantity.example}`",
                    ", ".join(f"`{unit}`" for unit in quantity.units),
                )
                for quantity in _QUANTITIES
            ]
            + [
                ("share", f"`{units.Share.example}`", "`%`, or a plain number from 0 to 1"),
                ("queue size", f"`{units.QueueSize.example}`", "`packets`, `bdp`, or a size"),
            ],
        ),
        "## Top level {#experiment}\n",
        *_describe_object(schema, schema["$defs"], axes=True),
    ]
    for name, definition in sorted(schema["$defs"].items()):
        out += [
            f"## {name} {{#{name.lower()}}}\n",
            *_describe_object(definition, schema["$defs"], axes=True),
        ]
    return "\n".join(out)


def describe_formats() -> str:
    """Return the page on all published formats except for the experiment file."""
    out = [
        "# Formats\n",
        _GENERATED.format(source="`experiments/schemas/*.schema.json`"),
        "[Run directory](../run-directory.md) lists the format of each file. A schema of a row "
        "describes the columns of a Parquet file.\n",
    ]
    for path in sorted(paths.SCHEMAS.glob("*.schema.json")):
        name = path.name.removesuffix(".schema.json")
        if name == "experiment":
            continue
        schema = json.loads(path.read_text())
        definitions = schema.get("$defs", {})
        out += [f"## {name}\n", *_describe_object(schema, definitions, prefix=f"{name}-")]
        for class_name, definition in sorted(definitions.items()):
            out += [f"### {name}: {class_name} {{#{name}-{class_name.lower()}}}\n"]
            out += _describe_object(definition, definitions, prefix=f"{name}-")
    return "\n".join(out)


def describe_checks() -> str:
    """Return the page on the checks and limits of the certificate."""
    out = [
        "# Checks of the certificate\n",
        _GENERATED.format(source="`nagi/verdict/limits.py` and the `evidence.py` of each backend"),
        "A run is valid if no measured value exceeds its limit. "
        "[Reports and metrics](../reports-and-metrics.md#the-certificate) explains the checks.\n",
    ]
    for head, limits in list_limits().items():
        rows = [
            (
                f"`{name}`",
                f"{limit.maximum:g} {limit.unit}",
                f"{limit.maximum_for(True):g} {limit.unit}",
                limit.description,
            )
            for name, limit in limits.items()
        ]
        out += [
            f"## {head}\n",
            make_table(("check", "limit", "in virtual time", "what is measured"), rows),
        ]
    return "\n".join(out)


def describe_inventory() -> str:
    """Return the page on all variables that provisioning reads, by role."""
    out = [
        "# Variables of an inventory\n",
        _GENERATED.format(source="the `meta/argument_specs.yml` of each role"),
        "[Real hosts](../real-hosts.md) shows an inventory.\n",
    ]
    for name in roles.list_names():
        role = roles.read_role(name)
        out += [f"## {name}\n", f"{role.summary}\n", *roles.tabulate_variables(role)]
    return "\n".join(out)


_QUANTITIES: tuple[Any, ...] = (
    units.Bitrate,
    units.Duration,
    units.ByteCount,
    units.PacketCount,
    units.SampleRate,
    units.Level,
    units.FrequencyOffset,
)
_NOUNS = {f"^{quantity.pattern}$": quantity.noun for quantity in reversed(_QUANTITIES)} | {
    f"^{units.Share.pattern}$": "share",
    f"^{units.QueueSize.pattern}$": "queue size",
}
_AXIS = {"type": "string", "pattern": r"^\$"}


def _describe_object(
    schema: dict[str, Any], definitions: dict[str, Any], *, axes: bool = False, prefix: str = ""
) -> Iterator[str]:
    """Yield the description of an object of a schema, and a table of its keys.

    Args:
        schema: The schema of the object.
        definitions: The `$defs` of the schema's file.
        axes: Whether the object is in an experiment file, in which values may be `$axis`.
        prefix: Prefix of the anchors of the tables of `definitions`.

    Raises:
        ValueError: A key of the experiment file has no description.
    """
    if schema.get("description"):
        yield schema["description"] + "\n"
    rows = []
    required = schema.get("required", ())
    for key, value in schema.get("properties", {}).items():
        meaning = value.get("description", "")
        if axes and not meaning:
            raise ValueError(f"{schema['title']}.{key} has no description")
        type_text = _describe_type(value, definitions, prefix)
        row = [f"`{key}`", type_text, _describe_default(key, value, required), meaning]
        if axes:
            row.insert(3, "yes" if _AXIS in value.get("anyOf", ()) else "")
        rows.append(row)
    heads = ["key", "type", "default", *(["`$axis`"] if axes else []), "meaning"]
    if rows:
        yield make_table(heads, rows)


def _describe_default(key: str, value: dict[str, Any], required: list[str]) -> str:
    return "required" if key in required else format_value(value.get("default"))


def _describe_type(schema: dict[str, Any], definitions: dict[str, Any], prefix: str) -> str:
    """Return the type of a schema's value in words, with links to the tables of `definitions`."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        if definitions[name].get("properties") is None:
            return _describe_type(definitions[name], definitions, prefix)
        return f"[{name}](#{prefix}{name.lower()})"
    for union in ("anyOf", "oneOf"):
        if union in schema:
            members = [member for member in schema[union] if member != _AXIS]
            texts = [_describe_type(member, definitions, prefix) for member in members]
            return " or ".join(dict.fromkeys(texts))
    if "const" in schema:
        return format_value(schema["const"])
    if "enum" in schema:
        return ", ".join(format_value(value) for value in schema["enum"])
    if schema.get("pattern") in _NOUNS:
        return f"[{_NOUNS[schema['pattern']]}](#quantities)"
    name = str(schema.get("type", "any"))
    if name == "array":
        if "prefixItems" in schema:
            items = [_describe_type(item, definitions, prefix) for item in schema["prefixItems"]]
            return f"list of {len(items)}: {', '.join(dict.fromkeys(items))}"
        return f"list of {_describe_type(schema.get('items', {}), definitions, prefix)}"
    if name == "object":
        schemas = [*schema.get("patternProperties", {}).values()]
        schemas += [schema["additionalProperties"]] if schema.get("additionalProperties") else []
        values = dict.fromkeys(
            _describe_type(value, definitions, prefix) for value in schemas if value is not True
        )
        return f"mapping to {' or '.join(values)}" if values else "mapping"
    return {"string": "text", "integer": "whole number"}.get(name, name) + _describe_range(schema)


def _describe_range(schema: dict[str, Any]) -> str:
    bounds = [
        f"{words} {schema[key]:,}"
        for key, words in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "more than"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "less than"),
        )
        if key in schema
    ]
    return f", {' and '.join(bounds)}" if bounds else ""
