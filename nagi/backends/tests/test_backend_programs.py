# SPDX-License-Identifier: Apache-2.0
"""The programs and settings of backends that agents get from each lab."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from nagi import backends
from nagi.labs.programs import (
    list_guest_mounts,
    list_guest_programs,
    list_local_programs,
    list_remote_programs,
    list_shipped_programs,
    read_settings,
)
from nagi.labs.shape import EMULATOR, Shape
from nagi_contracts import paths
from nagi_contracts.batch import SwitchPrograms
from nagi_contracts.errors import BadValue

SHAPE = Shape(("S", "N"), (), switches=("N",))
ACCESS = {"address": "10.0.0.9:9559"}


def test_programs_of_a_lab_on_this_machine_are_in_its_prefix() -> None:
    emulator = list_local_programs(EMULATOR, SHAPE)
    assert emulator == {
        "radio": {"nagi_sdr": str(paths.executable("nagi-sdr"))},
        "fpga": {"nagi_fpga": str(paths.executable("nagi-fpga"))},
    }
    assert list_local_programs("S", SHAPE) == {}
    (switch,) = list_local_programs("N", SHAPE).values()
    programs = SwitchPrograms.model_validate(switch)
    assert programs.nagi_switch == str(paths.executable("nagi-switch"))
    assert programs.p4runtime is None and programs.p4runtime_here is not None


def test_guests_see_programs_at_paths_of_their_own() -> None:
    assert list_guest_programs("S", SHAPE) == {}
    emulator, switch = list_guest_programs(EMULATOR, SHAPE), list_guest_programs("N", SHAPE)
    assert emulator["fpga"] == {"nagi_fpga": "/mnt/nagi/nagi-fpga"}
    assert emulator["radio"] == list_local_programs(EMULATOR, SHAPE)["radio"]
    assert switch["switch"]["nagi_switch"] == "/mnt/nagi/nagi-switch"
    nagi_switch = paths.executable("nagi-switch")
    inside = Path("/mnt/nagi/nagi-switch")
    for switches, mount in ((["N"], nagi_switch), ([], None)):
        plan = SimpleNamespace(
            switches=switches.copy, switch_target="nagi", carried_by=lambda _: []
        )
        assert list_guest_mounts([plan]).get(inside) == mount


@pytest.mark.parametrize(
    ("node", "variables", "programs", "is_shipped"),
    [
        ("S", {}, {}, False),
        ("N", {}, {"switch": {"nagi_switch": "/opt/nagi-switch"}}, True),
        (
            "N",
            {"nagi_switch": "/usr/bin/nagi-switch"},
            {"switch": {"nagi_switch": "/usr/bin/nagi-switch"}},
            False,
        ),
        ("S", {"nagi_switch": "/own"}, {"switch": {"nagi_switch": "/own"}}, False),
        (
            "N",
            {"nagi_p4runtime": ACCESS},
            {
                "switch": {
                    "nagi_switch": "/opt/nagi-switch",
                    "p4runtime": ACCESS | {"device_id": 1, "ports": {}, "pipeline": "set"},
                }
            },
            True,
        ),
        (
            EMULATOR,
            {},
            {
                "radio": {"nagi_sdr": "nagi-sdr"},
                "fpga": {"nagi_fpga": "nagi-fpga", "images": "/usr/local/lib/nagi/fpga"},
            },
            False,
        ),
        (
            EMULATOR,
            {"nagi_sdr": "/sdr", "nagi_fpga": "/fpga", "nagi_fpga_images": "/images"},
            {
                "radio": {"nagi_sdr": "/sdr"},
                "fpga": {"nagi_fpga": "/fpga", "images": "/images"},
            },
            False,
        ),
    ],
)
def test_real_hosts_have_the_programs_of_their_inventory(
    node: str, variables: dict, programs: dict, is_shipped: bool
) -> None:
    settings = read_settings(variables)
    assert list_remote_programs(node, SHAPE, settings, "/opt") == programs
    shipped = list_shipped_programs(settings, programs)
    source = {"nagi_switch_source": str(paths.executable("nagi-switch"))}
    assert shipped == (source if is_shipped else {})


def test_a_wrong_variable_is_named() -> None:
    with pytest.raises(BadValue, match=r"write it as {address: ") as error:
        read_settings({"nagi_p4runtime": {"device_id": 2}})
    assert error.value.key == "nagi_p4runtime.address"


@pytest.fixture
def further_backends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder of further backends, whose modules are forgotten after the test."""
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(tmp_path)])
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("nagi.backends.echo")]:
        del sys.modules[name]
    vars(backends).pop("echo", None)


def test_a_further_backend_adds_its_programs(further_backends: Path) -> None:
    echo = further_backends / "echo"
    echo.mkdir()
    (echo / "__init__.py").touch()
    (echo / "programs.py").write_text(
        "from nagi.backends.interface import Programs\n"
        "class EchoPrograms(Programs):\n"
        "    def list_local(self, node, shape):\n"
        "        return {'program': '/usr/bin/nagi-echo'} if node == 'emulator' else {}\n"
        "part = EchoPrograms()\n"
    )
    for list_programs in (list_local_programs, list_guest_programs):
        assert list_programs(EMULATOR, SHAPE)["echo"] == {"program": "/usr/bin/nagi-echo"}
        assert "echo" not in list_programs("S", SHAPE)
