# SPDX-License-Identifier: Apache-2.0
"""Experiment files have the keys of every backend, also of one that is not nagi's."""

import subprocess
import sys

import pytest

SPEC = """
from nagi.backends.keys import Key, Keys, NodeKind, SectionKey
from nagi.spec.shared_media import Station
from nagi_contracts.base import Strict
from pydantic import Field


class Echo(Strict):
    gain: int = Field(1, description="gain")


class EchoDirection(Strict):
    tail: int = 0


class Room(Strict):
    walls: int
    stations: dict[str, Station] = {}
    routes: dict[str, dict[str, str]] = {}
    marks: bool = False


class MirrorSettings(Strict):
    mirror: Echo


part = Keys(
    emulators={"echo": "an echo"},
    link_keys={"echo": Key(Echo, "the echo")},
    direction_keys={"echo": Key(EchoDirection, "the echo in this direction")},
    sections={"rooms": SectionKey(Room, "room", "name -> room")},
    node_kinds={"mirror": NodeKind("a mirror reflects", MirrorSettings, shapes_directions=True)},
)
"""
EXPERIMENT = """
schema_version: 1
name: echo
title: Echo
seed: 1
nodes: {S: host, N: {mirror: {gain: 3}}, D: host, M: mirror}
links:
  wired:
    between: [S, N]
    emulator: echo
    echo: {gain: $gain}
    forward: {echo: {tail: 4}}
  other: {between: [N, D], forward: {shaped_by: mirror}}
rooms: {hall: {walls: 4}}
flows: {data: {from: S, to: D, scheme: cubic}}
duration: 10 s
matrix: {gain: [1, 2]}
report: {x: gain, series: gain}
"""
# Models are made when nagi.spec is imported, hence a process of its own.
READ = """
import sys
from pathlib import Path

from nagi import backends

backends.__path__.append(sys.argv[1])

from nagi.backends.echo.spec import Echo, EchoDirection, Room
from nagi.spec.points import read_experiment
from nagi_contracts.errors import InputError

try:
    _, point = read_experiment(Path(sys.argv[2]), None)
except InputError as error:
    sys.exit(str(error))
experiment = point.experiment
link = experiment.links["wired"]
print(link.emulator, link.find_settings(Echo), end=" ")
print(link.forward.find_settings(EchoDirection), link.backward.echo)
print(experiment.get_section(Room)["hall"].walls, *experiment.shared_media)
print(*experiment.locate_medium("hall"), *map(experiment.get_kind, experiment.nodes))
"""


def read(directory, *changes):
    """Read the experiment in a process that has the backend, and return what it prints."""
    backend, file = directory / "echo", directory / "spec.yaml"
    backend.mkdir()
    (backend / "__init__.py").touch()
    (backend / "spec.py").write_text(SPEC)
    text = EXPERIMENT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    command = [sys.executable, "-c", READ, str(directory), str(file)]
    process = subprocess.run(command, capture_output=True, text=True)
    return process.stdout + process.stderr


def test_a_further_backend_has_keys_at_every_place(tmp_path):
    assert read(tmp_path).splitlines() == [
        "echo gain=2 tail=4 None",
        "4 hall",
        "rooms hall host mirror host mirror",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("{gain: $gain}", "{gian: $gain}"), "11: links.wired.echo.gian: unknown key `gian`; did "
         "you mean `gain`?"),
        (("tail", "tial"), "12: links.wired.forward.echo.tial: unknown key `tial`; did you mean"),
        (("echo: {gain: $gain}", "ehco: {}"), "11: links.wired.ehco: unknown key `ehco`; did you "
         "mean `echo`? known here: arq, backward"),
        (("emulator: echo", "emulator: ehco"), "10: links.wired.emulator: unknown value 'ehco'; "
         "did you mean `echo`? one of: link, sdr, fpga, echo"),
        (("shaped_by: mirror", "shaped_by: door"), "13: links.other.forward.shaped_by: unknown "
         "value 'door'; one of: switch, mirror, emulator"),
        (("walls", "wals"), "14: rooms.hall.wals: unknown key `wals`; did you mean `walls`?"),
        (("hall:", "wired:"), "14: rooms.wired: a link is also called wired; give the room an"),
        (("{gain: 3}", "{gian: 3}"), "6: nodes.N.mirror.gian: unknown key `gian`; did you mean"),
        (("{mirror:", "{miror:"), "6: nodes.N.miror: unknown key `miror`; did you mean `mirror`?"),
        (("M: mirror", "M: miror"), "6: nodes.M: unknown value 'miror'; did you mean `mirror`? "
         "one of: host, router, switch, mirror"),
    ],
)  # fmt: skip
def test_mistakes_in_its_keys_have_line_and_cure(tmp_path, change, message):
    assert f"{tmp_path}/spec.yaml:{message}" in read(tmp_path, change)
