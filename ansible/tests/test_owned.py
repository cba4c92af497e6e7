# SPDX-License-Identifier: Apache-2.0
"""The module nagi.testbed.owned records its changes of a host, and restores files to the byte.

The tests run the module on this machine, in temporary directories.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ANSIBLE = f"{sys.prefix}/bin/ansible"


class Module:
    """The module nagi.testbed.owned, with a manifest in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "state"
        self._home = directory / "home"

    def start(self, *options: str, **arguments: Any) -> subprocess.Popen[str]:
        """Start the module."""
        given = {"directory": str(self.directory), "start": False, **arguments}
        return subprocess.Popen(
            [
                *(ANSIBLE, "localhost", "-c", "local", *options, "-m", "nagi.testbed.owned"),
                *("-e", "ansible_python_interpreter=/usr/bin/python3", "-a", json.dumps(given)),
            ],
            cwd=self.directory.parent,
            env={
                **os.environ,
                "ANSIBLE_HOME": str(self._home),
                "ANSIBLE_LOCALHOST_WARNING": "False",
                "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
                "ANSIBLE_NOCOLOR": "1",
                "LC_ALL": "C.UTF-8",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __call__(self, *options: str, fails: bool = False, **arguments: Any) -> dict[str, Any]:
        """Run the module, and return its result."""
        called = self.start(*options, **arguments)
        out = called.communicate()[0]
        assert (called.returncode != 0) == fails, out
        said: dict[str, Any] = json.JSONDecoder().raw_decode(out, out.index("=> {") + 3)[0]
        return said

    def things(self) -> list[tuple[str, str]]:
        whole = json.loads((self.directory / "manifest.json").read_text())
        return [(thing["kind"], thing["name"]) for thing in whole["things"]]


def listing(place: Path) -> dict[str, object]:
    """Return the content (or the target of a link), mode and time of all files in a directory."""
    return {
        str(path.relative_to(place)): (
            str(path.readlink()) if path.is_symlink() else path.is_file() and path.read_bytes(),
            path.lstat().st_mode,
            path.lstat().st_mtime_ns if path.is_file() else 0,
        )
        for path in sorted(place.rglob("*"))
    }


@pytest.fixture
def owned(tmp_path):
    return Module(tmp_path)


@pytest.fixture
def place(tmp_path):
    """Make a host's /etc with an operator's files."""
    etc = tmp_path / "etc"
    (etc / "chrony").mkdir(parents=True)
    (etc / "chrony" / "chrony.conf").write_text("pool example.org\n")
    (etc / "chrony" / "chrony.conf").chmod(0o640)
    os.utime(etc / "chrony" / "chrony.conf", ns=(10**18, 10**18))
    (etc / "link").symlink_to("elsewhere")
    return etc


def wanted(place: Path, **more: Any) -> dict[str, Any]:
    files = [
        {"path": f"{place}/chrony/chrony.conf", "content": "server 192.0.2.1\n"},
        {"path": f"{place}/systemd/system/nagi.conf.d/own", "content": "ours\n", "mode": "0600"},
        {"path": f"{place}/link", "content": "no link any more\n"},
    ]
    return {"role": "clock", "files": files, **more}


def test_what_is_made_is_put_back_to_the_byte(owned, place):
    before = listing(place)
    checked = owned("--check", "--diff", **wanted(place))
    assert checked["changed"] and listing(place) == before and not owned.directory.exists()
    made = owned(**wanted(place))
    assert checked["changes"] == made["changes"]
    assert (place / "chrony" / "chrony.conf").read_text() == "server 192.0.2.1\n"
    assert (place / "systemd/system/nagi.conf.d/own").stat().st_mode & 0o777 == 0o600
    assert owned.directory.stat().st_mode & 0o777 == 0o700

    after = listing(place)
    assert owned(**wanted(place)) | {"diff": []} == {
        **{"changed": False, "changes": [], "kept": [], "lacking": [], "diff": []}
    }
    assert listing(place) == after
    assert owned("--check", absent=True)["changed"] and listing(place) == after
    assert owned(absent=True)["kept"] == []
    assert listing(place) == before and not owned.directory.exists()
    assert not owned(absent=True)["changed"]


def test_what_a_role_does_not_want_any_more_goes_and_what_another_wants_stays(owned, place):
    before = listing(place)
    shared = {"path": f"{place}/systemd/shared", "content": "both\n"}
    owned(**wanted(place))
    owned(role="switch", files=[shared])
    owned(role="services", files=[shared])
    changed = owned(role="clock")
    assert [each.removeprefix("put back: ") for each in changed["changes"]] == [
        f"file {place}/link",
        f"file {place}/systemd/system/nagi.conf.d/own",
        f"file {place}/chrony/chrony.conf",
        f"directory {place}/systemd/system/nagi.conf.d",
        f"directory {place}/systemd/system",
        f"directory {place}/systemd",
    ]
    assert changed["kept"] == [f"{place}/systemd: there is something in it that nagi did not make"]
    assert owned(role="switch") == owned(role="switch")  # it is the other's
    assert (place / "systemd/shared").exists()
    owned(role="services")
    (place / "systemd").rmdir()
    assert listing(place) == before


def test_what_an_operator_has_edited_is_not_lost(owned, place):
    owned(**wanted(place))
    (place / "chrony/chrony.conf").write_text("mine\n")
    (place / "systemd/system/nagi.conf.d/own").write_text("mine, too\n")
    again = owned(**wanted(place))
    assert len(again["kept"]) == 2
    copies = [Path(each.rpartition(" ")[2]).read_text() for each in again["kept"]]
    assert sorted(copies) == ["mine\n", "mine, too\n"]

    (place / "chrony/chrony.conf").write_text("mine\n")
    (place / "systemd/system/nagi.conf.d/own").write_text("mine, too\n")
    back = owned(absent=True)
    assert (place / "chrony/chrony.conf").read_text() == "mine\n"
    assert (place / "chrony/chrony.conf.before-nagi").read_text() == "pool example.org\n"
    assert (place / "systemd/system/nagi.conf.d/own").read_text() == "mine, too\n"
    assert any("edited since nagi wrote it; the original is" in each for each in back["kept"])


def test_an_edited_manifest_is_refused_with_the_cure(owned, place):
    owned(**wanted(place))
    manifest = owned.directory / "manifest.json"
    whole = manifest.read_text()
    after = listing(place)
    for text in (whole.replace("chrony.conf", "passwd"), whole[:-20], "[]", ""):
        manifest.write_text(text)
        for arguments in (wanted(place), {"absent": True}):
            said = owned(fails=True, **arguments)["msg"]
            assert "is not as nagi wrote it" in said and listing(place) == after
    cure = said.partition("`")[2].partition("`")[0]
    subprocess.run(cure, shell=True, check=True)
    owned(absent=True)
    assert (place / "chrony/chrony.conf").read_text() == "pool example.org\n"

    owned(**wanted(place))
    found = json.loads(manifest.read_text()) | {"schema_version": 2}
    manifest.write_text(json.dumps(found))
    assert "another version of nagi wrote it" in owned(fails=True, absent=True)["msg"]


def test_a_file_that_is_refused_is_not_put_in_its_place(owned, place, tmp_path):
    own = tmp_path / "nagi-link"
    own.write_text("#!/bin/sh\nexit 0\n")
    file = {"path": f"{place}/bin/nagi-link", "source": str(own), "mode": "0755"}
    owned(role="services", files=[file])
    assert (place / "bin/nagi-link").read_text() == own.read_text()
    own.write_text("#!/bin/sh\necho of another release >&2\nexit 1\n")
    refused = owned(fails=True, role="services", files=[{**file, "validate": ["%s", "--version"]}])
    assert "nagi-link: refused: " in refused["msg"] and "of another release" in refused["msg"]
    assert (place / "bin/nagi-link").read_text() == "#!/bin/sh\nexit 0\n"
    missing = owned(
        fails=True, role="services", files=[{**file, "source": "/proc/nowhere/nagi-link"}]
    )
    assert "/proc/nowhere/nagi-link: No such file" in missing["msg"]
    owned(absent=True)
    assert not (place / "bin").exists()


def test_killed_in_the_middle_a_second_call_completes_it_and_all_can_be_put_back(owned, place):
    """The program that validates a file kills the module, at each file in turn."""
    before = listing(place)
    for number in range(3):
        arguments = wanted(place)
        arguments["files"][number]["validate"] = ["sh", "-c", "kill -KILL $PPID"]
        assert owned.start(**arguments).wait() != 0
        assert listing(place) != before or number == 0
        assert len(owned.things()) == 6
        made = owned(**wanted(place))
        assert made["changed"] and made["kept"] == []
        assert not owned(**wanted(place))["changed"]

        assert owned.start(**arguments).wait() == 0  # there is nothing left to look at
        owned(absent=True)
        assert listing(place) == before


def test_two_at_once_do_not_mix(owned, place, tmp_path):
    slow = wanted(place)
    os.mkfifo(tmp_path / "begun")
    os.mkfifo(tmp_path / "end")
    waits = f"echo >{tmp_path}/begun; read line <{tmp_path}/end"
    slow["files"][0]["validate"] = ["sh", "-c", waits]
    first = owned.start(**slow)
    (tmp_path / "begun").read_text()
    refused = owned(fails=True, **wanted(place))
    assert "another process is provisioning this host" in refused["msg"]
    (tmp_path / "end").write_text("\n")
    assert first.wait() == 0
    assert not owned(**wanted(place))["changed"]
