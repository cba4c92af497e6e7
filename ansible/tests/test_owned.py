# SPDX-License-Identifier: Apache-2.0
"""The module nagi.testbed.owned records its changes of a host, and restores files to the byte.

The tests run the module on this machine, in temporary directories.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from owned_module import Module


def list_files(host_etc: Path) -> dict[str, object]:
    """Return the content (or the target of a link), mode and time of all files in a directory."""
    return {
        str(path.relative_to(host_etc)): (
            str(path.readlink()) if path.is_symlink() else path.is_file() and path.read_bytes(),
            path.lstat().st_mode,
            path.lstat().st_mtime_ns if path.is_file() else 0,
        )
        for path in sorted(host_etc.rglob("*"))
    }


@pytest.fixture
def owned(tmp_path):
    return Module(tmp_path, tmp_path / "state")


@pytest.fixture
def host_etc(tmp_path):
    """Make a host's /etc with an operator's files."""
    etc = tmp_path / "etc"
    (etc / "chrony").mkdir(parents=True)
    (etc / "chrony" / "chrony.conf").write_text("pool example.org\n")
    (etc / "chrony" / "chrony.conf").chmod(0o640)
    os.utime(etc / "chrony" / "chrony.conf", ns=(10**18, 10**18))
    (etc / "link").symlink_to("elsewhere")
    return etc


def make_arguments(host_etc: Path, **more: Any) -> dict[str, Any]:
    files = [
        {"path": f"{host_etc}/chrony/chrony.conf", "content": "server 192.0.2.1\n"},
        {"path": f"{host_etc}/systemd/system/nagi.conf.d/own", "content": "ours\n", "mode": "0600"},
        {"path": f"{host_etc}/link", "content": "no link any more\n"},
    ]
    return {"role": "clock", "files": files, **more}


def test_what_is_made_is_put_back_to_the_byte(owned, host_etc):
    before = list_files(host_etc)
    checked = owned("--check", "--diff", **make_arguments(host_etc))
    assert checked["changed"] and list_files(host_etc) == before and not owned.directory.exists()
    made = owned(**make_arguments(host_etc))
    assert checked["changes"] == made["changes"]
    assert (host_etc / "chrony" / "chrony.conf").read_text() == "server 192.0.2.1\n"
    assert (host_etc / "systemd/system/nagi.conf.d/own").stat().st_mode & 0o777 == 0o600
    assert owned.directory.stat().st_mode & 0o777 == 0o700

    after = list_files(host_etc)
    assert owned(**make_arguments(host_etc)) | {"diff": []} == {
        **{"changed": False, "changes": [], "kept": [], "lacking": [], "diff": []}
    }
    assert list_files(host_etc) == after
    assert owned("--check", absent=True)["changed"] and list_files(host_etc) == after
    assert owned(absent=True)["kept"] == []
    assert list_files(host_etc) == before and not owned.directory.exists()
    assert not owned(absent=True)["changed"]


def test_extended_attributes_come_back(owned, host_etc):
    """Access control lists and labels are extended attributes, as are those of users."""
    path = host_etc / "chrony" / "chrony.conf"
    # An access control list of version 2: owner rw-, user 1 r--, group r--, mask r--, others ---.
    entries = ((1, 6, -1), (2, 4, 1), (4, 4, -1), (0x10, 4, -1), (0x20, 0, -1))
    acl = struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", tag, permissions, number & 0xFFFFFFFF)
        for tag, permissions, number in entries
    )
    attributes = {"user.origin": b"mine"}
    if os.geteuid() == 0:
        attributes |= {"trusted.origin": b"root's", "security.selinux": b"system_u:object_r:etc_t"}
    try:
        os.setxattr(path, "system.posix_acl_access", acl)
        for name, value in attributes.items():
            os.setxattr(path, name, value)
    except OSError as error:
        pytest.skip(f"the file system of {host_etc} has no {error}")
    before = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    owned(**make_arguments(host_etc))
    assert set(os.listxattr(path)) == {"security.selinux"} & set(before)
    owned(absent=True)
    assert {name: os.getxattr(path, name) for name in os.listxattr(path)} == before


def test_what_a_role_does_not_want_any_more_goes_and_what_another_wants_stays(owned, host_etc):
    before = list_files(host_etc)
    shared = {"path": f"{host_etc}/systemd/shared", "content": "both\n"}
    owned(**make_arguments(host_etc))
    owned(role="switch", files=[shared])
    owned(role="services", files=[shared])
    changed = owned(role="clock")
    assert [each.removeprefix("restore: ") for each in changed["changes"]] == [
        f"file {host_etc}/link",
        f"file {host_etc}/systemd/system/nagi.conf.d/own",
        f"file {host_etc}/chrony/chrony.conf",
        f"directory {host_etc}/systemd/system/nagi.conf.d",
        f"directory {host_etc}/systemd/system",
        f"directory {host_etc}/systemd",
    ]
    assert changed["kept"] == [
        f"{host_etc}/systemd: the directory has files that nagi did not make: shared"
    ]
    assert owned(role="switch") == owned(role="switch")  # it is the other's
    assert (host_etc / "systemd/shared").exists()
    owned(role="services")
    (host_etc / "systemd").rmdir()
    assert list_files(host_etc) == before


def test_what_an_operator_has_edited_is_not_lost(owned, host_etc):
    owned(**make_arguments(host_etc))
    (host_etc / "chrony/chrony.conf").write_text("mine\n")
    (host_etc / "systemd/system/nagi.conf.d/own").write_text("mine, too\n")
    again = owned(**make_arguments(host_etc))
    assert len(again["kept"]) == 2
    copies = [Path(each.rpartition(" ")[2]).read_text() for each in again["kept"]]
    assert sorted(copies) == ["mine\n", "mine, too\n"]

    (host_etc / "chrony/chrony.conf").write_text("mine\n")
    (host_etc / "systemd/system/nagi.conf.d/own").write_text("mine, too\n")
    back = owned(absent=True)
    assert (host_etc / "chrony/chrony.conf").read_text() == "mine\n"
    assert (host_etc / "chrony/chrony.conf.before-nagi").read_text() == "pool example.org\n"
    assert (host_etc / "systemd/system/nagi.conf.d/own").read_text() == "mine, too\n"
    assert any("edited since nagi wrote it; the original is" in each for each in back["kept"])
    # Both had been edited before, when nagi replaced them.
    for path, text in (
        ("chrony/chrony.conf", "mine\n"),
        ("systemd/system/nagi.conf.d/own", "mine, too\n"),
    ):
        assert (host_etc / f"{path}.edited-1").read_text() == text
        assert f"{host_etc}/{path}.edited-1: an edited version of the file" in str(back["kept"])


def test_what_others_put_into_nagi_s_directories_stays(owned, host_etc):
    spool = host_etc / "spool"
    owned(role="services", directories=[{"path": str(spool), "contents": ["[0-9]" * 4]}])
    for name in ("1234/runs", "notes/deep", "empty"):
        (spool / name).mkdir(parents=True)
    (spool / "5678").write_text("a file of nagi\n")
    (spool / "notes/deep/todo").write_text("mine\n")
    kept = owned(absent=True)["kept"]
    assert kept == [f"{spool}: the directory has files that nagi did not make: notes"]
    assert [path.name for path in spool.iterdir()] == ["notes"]
    assert (spool / "notes/deep/todo").read_text() == "mine\n"


def test_an_edited_manifest_is_refused_with_the_cure(owned, host_etc):
    owned(**make_arguments(host_etc))
    manifest = owned.directory / "manifest.json"
    whole = manifest.read_text()
    after = list_files(host_etc)
    for text in (whole.replace("chrony.conf", "passwd"), whole[:-20], "[]", ""):
        manifest.write_text(text)
        for arguments in (make_arguments(host_etc), {"absent": True}):
            result = owned(fails=True, **arguments)["msg"]
            assert "was changed since nagi wrote it" in result and list_files(host_etc) == after
    cure = result.partition("`")[2].partition("`")[0]
    subprocess.run(cure, shell=True, check=True)
    owned(absent=True)
    assert (host_etc / "chrony/chrony.conf").read_text() == "pool example.org\n"

    owned(**make_arguments(host_etc))
    found = json.loads(manifest.read_text()) | {"schema_version": 2}
    manifest.write_text(json.dumps(found))
    assert "another version of nagi wrote it" in owned(fails=True, absent=True)["msg"]


def test_a_file_that_is_refused_is_not_put_in_its_place(owned, host_etc, tmp_path):
    own = tmp_path / "nagi-link"
    own.write_text("#!/bin/sh\nexit 0\n")
    file = {"path": f"{host_etc}/bin/nagi-link", "source": str(own), "mode": "0755"}
    owned(role="services", files=[file])
    assert (host_etc / "bin/nagi-link").read_text() == own.read_text()
    own.write_text("#!/bin/sh\necho of another release >&2\nexit 1\n")
    refused = owned(fails=True, role="services", files=[{**file, "validate": ["%s", "--version"]}])
    assert "nagi-link: refused: " in refused["msg"] and "of another release" in refused["msg"]
    assert (host_etc / "bin/nagi-link").read_text() == "#!/bin/sh\nexit 0\n"
    missing = owned(
        fails=True, role="services", files=[{**file, "source": "/proc/nowhere/nagi-link"}]
    )
    assert "/proc/nowhere/nagi-link: No such file" in missing["msg"]
    owned(absent=True)
    assert not (host_etc / "bin").exists()


def test_killed_in_the_middle_a_second_call_completes_it_and_all_can_be_put_back(owned, host_etc):
    """Kill the module by the program that validates a file, at each file in turn."""
    before = list_files(host_etc)
    for number in range(3):
        arguments = make_arguments(host_etc)
        arguments["files"][number]["validate"] = ["sh", "-c", "kill -KILL $PPID"]
        assert owned.start(**arguments).wait() != 0
        assert list_files(host_etc) != before or number == 0
        assert len(owned.things()) == 6
        made = owned(**make_arguments(host_etc))
        assert made["changed"] and made["kept"] == []
        assert not owned(**make_arguments(host_etc))["changed"]

        assert owned.start(**arguments).wait() == 0  # there is nothing left to look at
        owned(absent=True)
        assert list_files(host_etc) == before


def test_two_at_once_do_not_mix(owned, host_etc, tmp_path):
    slow = make_arguments(host_etc)
    os.mkfifo(tmp_path / "begun")
    os.mkfifo(tmp_path / "end")
    waits = f"echo >{tmp_path}/begun; read line <{tmp_path}/end"
    slow["files"][0]["validate"] = ["sh", "-c", waits]
    first = owned.start(**slow)
    (tmp_path / "begun").read_text()
    refused = owned(fails=True, **make_arguments(host_etc))
    assert "another process is provisioning this host" in refused["msg"]
    (tmp_path / "end").write_text("\n")
    assert first.wait() == 0
    assert not owned(**make_arguments(host_etc))["changed"]
