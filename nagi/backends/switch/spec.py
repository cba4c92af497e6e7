# SPDX-License-Identifier: Apache-2.0
"""Define the settings of nodes that are switches: edge.p4, or a user's P4 program."""

from __future__ import annotations

import shlex
from pathlib import PurePath
from typing import Annotated

from nagi_contracts.base import Strict, Whole
from nagi_contracts.errors import BadValue, format_value
from nagi_contracts.switches import CONTROLLER_FILES
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from nagi.backends.keys import Keys, NodeKind
from nagi.spec.commands import check_program

P4_SUFFIX, JSON_SUFFIX = ".p4", ".json"
MAX_CPU_PORT = 510  # packets to port 511 are dropped


def _split_command(value: object) -> object:
    """Split a command line into arguments, as a shell does. Return other values unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as error:
        raise BadValue(
            f"{format_value(value)} is not a command line: {error}", "close the quotes"
        ) from None


def _check_arguments(command: list[str]) -> list[str]:
    if not command:
        raise BadValue(
            "the command is empty", "write a command, such as `python3 forward.py`, or remove it"
        )
    if any("\0" in argument for argument in command):
        raise BadValue("an argument with a zero byte", "remove it")
    return check_program(command)


ControllerCommand = Annotated[
    list[str],
    BeforeValidator(_split_command, json_schema_input_type=str | list[str]),
    AfterValidator(_check_arguments),
]


class OwnProgram(Strict):
    """A user's P4 program for a switch; paths are relative to the experiment file."""

    program: str = Field(
        description="path of a P4 program for v1model (.p4), which p4c-bm2-ss compiles, or of the "
        "JSON that p4c-bm2-ss wrote (.json)"
    )
    entries: str | None = Field(
        None,
        description="path of a file of operations that are performed before the run, one per line, "
        "as JSON: see p4/switch/daemon/operations.hpp",
    )
    p4info: str | None = Field(
        None,
        description="path of the P4Info (protobuf's text format), if the program is a .json",
    )
    cpu_port: Whole | None = Field(
        None,
        ge=1,
        le=MAX_CPU_PORT,
        description="number of the port in the program that is for packet-in and packet-out",
    )
    controller: ControllerCommand | None = Field(
        None,
        description="command line of the controller, which is started together with the switch; "
        "nagi adds the path of controller.json, which lists ports, addresses and routes, as last "
        "argument",
    )
    files: list[str] = Field(
        [], description="paths of text files that are copied to the controller's working directory"
    )

    @model_validator(mode="after")
    def _check_files(self) -> OwnProgram:
        """Check the names of the files, and that `p4info` and `files` are used correctly."""
        suffix = PurePath(self.program).suffix
        if suffix not in (P4_SUFFIX, JSON_SUFFIX):
            message = f"the name {format_value(self.program)} ends neither in .p4 nor in .json"
            raise BadValue(message, "give a .p4 file, or the .json that p4c wrote", "program")
        if self.p4info is not None and suffix == P4_SUFFIX:
            message = "`p4info` for a .p4 file, for which p4c generates the P4Info"
            raise BadValue(message, "remove it, or give the .json as program", "p4info")
        if self.files and self.controller is None:
            raise BadValue("files without a controller", "add `controller: COMMAND`", "files")
        names: set[str] = set()
        for path in self.files:
            name = PurePath(path).name
            if not name or name in names or name in CONTROLLER_FILES:
                message = (
                    f"two files in the controller's directory have the name {name}"
                    if name
                    else f"{format_value(path)} is not the path of a file"
                )
                raise BadValue(message, "give each file a different name", "files")
            names.add(name)
        return self


class SwitchSettings(Strict):
    """A node that is a switch with a user's program."""

    switch: OwnProgram = Field(description="its P4 program, instead of p4/edge.p4")


part = Keys(
    node_kinds={
        "switch": NodeKind(
            "a switch by p4/edge.p4, or by a P4 program of your own: {switch: {program: mine.p4}}",
            SwitchSettings,
            shapes_directions=True,
        )
    }
)
