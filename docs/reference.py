# SPDX-License-Identifier: Apache-2.0
"""The pages of the reference, as Markdown: commands, experiment file, certificate, formats,
inventory. Everything comes from where the program has it; nothing here is written by hand twice."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import roles
from nagi.cli.main import make_app
from nagi.verdict import certificate
from nagi_contracts import paths, units
from tables import table, value_of
from typer.main import get_command

NATIVE = ("nagi-link", "nagi-switch", "nagi-tcp", "nagi-traffic")
_SUBCOMMAND = re.compile(r"^  ([a-z]+[a-z-]*) ", re.M)  # in CLI11's help
_GENERATED = "Generated from {source} when the manuals are built.\n"


def pages() -> dict[str, str]:
    """Path in the site -> Markdown."""
    return {
        "reference/commands.md": commands(),
        "reference/experiment.md": experiment(),
        "reference/certificate.md": checks(),
        "reference/formats.md": formats(),
        "reference/inventory.md": inventory(),
    }


def commands() -> str:
    """Every command of nagi with every argument and option; what the native programs say of
    themselves."""
    out = [
        "# Commands\n",
        _GENERATED.format(source="the programs themselves"),
        "Exit status of `nagi`: 0 done; 1 some runs failed or are invalid; 2 the input was "
        "refused; 130 interrupted.\n",
        *_command(get_command(make_app()), "nagi"),
    ]
    for name in NATIVE:
        out += [f"## {name}\n", f"```text\n{_help_of(name)}\n```\n"]
        for words in _commands_of(name):
            out += [f"### {name} {' '.join(words)}\n", f"```text\n{_help_of(name, *words)}\n```\n"]
    return "\n".join(out)


def _command(command: Any, name: str) -> Iterator[str]:
    """A command, then the commands that it has."""
    context = type(command).context_class(command, info_name=name)
    yield f"## {name}\n"
    if command.help:
        yield command.help + "\n"
    yield f"```text\n{command.get_usage(context)}\n```\n"
    given = (each.get_help_record(context) for each in command.get_params(context))
    records = [record for record in given if record]
    yield table(("argument or option", "meaning"), [(f"`{it}`", help_) for it, help_ in records])
    for part, inner in sorted(getattr(command, "commands", {}).items()):
        yield from _command(inner, f"{name} {part}")


def _commands_of(program: str, *command: str) -> Iterator[list[str]]:
    """The commands of a native program, each before those that it has."""
    for name in _SUBCOMMAND.findall(_help_of(program, *command).partition("Subcommands:")[2]):
        yield [*command, name]
        yield from _commands_of(program, *command, name)


def _help_of(program: str, *command: str) -> str:
    path = paths.executable(program)
    if not path.exists():
        raise FileNotFoundError(f"{path}: the reference has its options; run `make setup` first")
    asked = [program, *command, "--help"]
    done = subprocess.run(asked, executable=path, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def experiment() -> str:
    """Every key of the experiment file."""
    schema = json.loads((paths.SCHEMAS / "experiment.schema.json").read_text())
    out = [
        "# Experiment file\n",
        _GENERATED.format(source="`experiments/schemas/experiment.schema.json`"),
        "An experiment file is YAML. [Experiments](../experiments.md) explains it. A key without a "
        "default must be given, unless its type says that it may be null. In the column `$axis`, "
        "*yes* means that `$NAME` may stand for the value: it takes the values of the axis NAME "
        "of `matrix`, one run after the other.\n",
        "## Quantities {#quantities}\n",
        "A quantity is a number and a unit. Prefixes are decimal: 1 Mb/s is 10^6 bit/s.\n",
        table(
            ("quantity", "example", "units"),
            [
                (kind.noun, f"`{kind.example}`", ", ".join(f"`{unit}`" for unit in kind.units))
                for kind in _QUANTITIES
            ]
            + [
                ("share", f"`{units.Share.example}`", "`%`, or a plain number from 0 to 1"),
                ("queue size", f"`{units.QueueSize.example}`", "`packets`, `bdp`, or a size"),
            ],
        ),
        "## Top level {#experiment}\n",
        *_object(schema, schema["$defs"], axes=True),
    ]
    for name, definition in sorted(schema["$defs"].items()):
        out += [
            f"## {name} {{#{name.lower()}}}\n",
            *_object(definition, schema["$defs"], axes=True),
        ]
    return "\n".join(out)


def formats() -> str:
    """Every published format but the experiment's."""
    out = [
        "# Formats\n",
        _GENERATED.format(source="`experiments/schemas/*.schema.json`"),
        "[Run directory](../run-directory.md) says which file has which format. A schema of a row "
        "describes the columns of a Parquet file.\n",
    ]
    for path in sorted(paths.SCHEMAS.glob("*.schema.json")):
        name = path.name.removesuffix(".schema.json")
        if name == "experiment":
            continue
        schema = json.loads(path.read_text())
        parts = schema.get("$defs", {})
        out += [f"## {name}\n", *_object(schema, parts, prefix=f"{name}-")]
        for part, definition in sorted(parts.items()):
            out += [f"### {name}: {part} {{#{name}-{part.lower()}}}\n"]
            out += _object(definition, parts, prefix=f"{name}-")
    return "\n".join(out)


def checks() -> str:
    """The limits of the certificate."""
    out = [
        "# Checks of the certificate\n",
        _GENERATED.format(source="`experiments/nagi/verdict/certificate.py`"),
        "A run is valid if no measured value exceeds its limit. "
        "[Reports and metrics](../reports-and-metrics.md#the-certificate) explains the checks.\n",
    ]
    for head, limits in certificate.LIMITS_BY_RUNS.items():
        rows = [
            (
                f"`{name}`",
                f"{limit.maximum:g} {limit.unit}",
                f"{limit.of(True):g} {limit.unit}",
                limit.description,
            )
            for name, limit in limits.items()
        ]
        out += [
            f"## {head}\n",
            table(("check", "limit", "in virtual time", "what is measured"), rows),
        ]
    return "\n".join(out)


def inventory() -> str:
    """Every variable that provisioning reads, by role."""
    out = [
        "# Variables of an inventory\n",
        _GENERATED.format(source="the `meta/argument_specs.yml` of each role"),
        "[Real hosts](../real-hosts.md) shows an inventory.\n",
    ]
    for name in roles.names():
        role = roles.read(name)
        out += [f"## {name}\n", f"{role.summary}\n", *roles.variables(role)]
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
_WHAT = {f"^{kind.pattern}$": kind.noun for kind in reversed(_QUANTITIES)} | {
    f"^{units.Share.pattern}$": "share",
    f"^{units.QueueSize.pattern}$": "queue size",
}
_AXIS = {"type": "string", "pattern": r"^\$"}


def _object(
    schema: dict[str, Any], parts: dict[str, Any], *, axes: bool = False, prefix: str = ""
) -> Iterator[str]:
    """An object of a schema: what it is, and a table of its keys. Raises ValueError if a key of
    the experiment file has no description."""
    if schema.get("description"):
        yield schema["description"] + "\n"
    rows = []
    required = schema.get("required", ())
    for key, value in schema.get("properties", {}).items():
        said = value.get("description", "")
        if axes and not said:
            raise ValueError(f"{schema['title']}.{key} has no description")
        row = [f"`{key}`", _type(value, parts, prefix), _default(key, value, required), said]
        if axes:
            row.insert(3, "yes" if _AXIS in value.get("anyOf", ()) else "")
        rows.append(row)
    heads = ["key", "type", "default", *(["`$axis`"] if axes else []), "meaning"]
    if rows:
        yield table(heads, rows)


def _default(key: str, value: dict[str, Any], required: list[str]) -> str:
    return "required" if key in required else value_of(value.get("default"))


def _type(schema: dict[str, Any], parts: dict[str, Any], prefix: str) -> str:
    """A schema's type in words; parts of the file are links to their tables."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        if parts[name].get("properties") is None:
            return _type(parts[name], parts, prefix)
        return f"[{name}](#{prefix}{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            kinds = [_type(one, parts, prefix) for one in schema[several] if one != _AXIS]
            return " or ".join(dict.fromkeys(kinds))
    if "const" in schema:
        return value_of(schema["const"])
    if "enum" in schema:
        return ", ".join(value_of(value) for value in schema["enum"])
    if schema.get("pattern") in _WHAT:
        return f"[{_WHAT[schema['pattern']]}](#quantities)"
    kind = str(schema.get("type", "any"))
    if kind == "array":
        if "prefixItems" in schema:
            items = [_type(item, parts, prefix) for item in schema["prefixItems"]]
            return f"list of {len(items)}: {', '.join(dict.fromkeys(items))}"
        return f"list of {_type(schema.get('items', {}), parts, prefix)}"
    if kind == "object":
        inside = [*schema.get("patternProperties", {}).values()]
        inside += [schema["additionalProperties"]] if schema.get("additionalProperties") else []
        values = dict.fromkeys(_type(one, parts, prefix) for one in inside if one is not True)
        return f"mapping to {' or '.join(values)}" if values else "mapping"
    return {"string": "text", "integer": "whole number"}.get(kind, kind) + _range(schema)


def _range(schema: dict[str, Any]) -> str:
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
