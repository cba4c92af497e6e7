# SPDX-License-Identifier: Apache-2.0
"""Packages come and go, and those that were there before nagi are as before.

The packages are made by the test, and installed by apt on a throw-away host.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
from owned_module import Module

# name, version, further fields, script that runs when the package is purged. Every package has a
# configuration file.
_PACKAGES = (
    ("base", "1.0", "", ""),
    ("base", "1.1", "", ""),
    ("old", "1.0", "", ""),
    ("lib", "1.0", "", ""),
    ("tool", "1.0", "Depends: base (>= 1.1), lib\nConflicts: old\n", ""),
    ("left", "1.0", "", ""),
    ("clockd", "1.0", "", "rm -rf /etc/clockd"),
)
# $1...: name, version, fields and script of a package.
_MAKE = """
set -e
name=$1 version=$2 fields=$3 purge=$4
mkdir -p /srv/made/DEBIAN "/srv/made/etc/$name" /srv/archive
cd /srv/archive
echo "default of $version" >"/srv/made/etc/$name/$name.conf"
echo "/etc/$name/$name.conf" >/srv/made/DEBIAN/conffiles
printf '#!/bin/sh\nif test "$1" = purge; then :; %s\nfi\n' "$purge" >/srv/made/DEBIAN/postrm
chmod 755 /srv/made/DEBIAN/postrm
{ echo "Package: nagi-test-$name"
  echo "Version: $version"
  echo "Architecture: all"
  echo "Maintainer: nobody"
  printf '%s' "$fields"
  echo "Description: none"
} >/srv/made/DEBIAN/control
file=$name-$version.deb
dpkg-deb --build /srv/made "$file" >/dev/null
{ cat /srv/made/DEBIAN/control
  echo "Filename: $file"
  echo "Size: $(stat -c %s "$file")"
  echo "SHA256: $(sha256sum "$file" | cut -d ' ' -f 1)"
  echo
} >"$file.entry"
cat *.entry >Packages
rm -r /srv/made
"""
_PREPARE = """
set -e
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d
echo 'deb [trusted=yes] file:/srv/archive ./' >/etc/apt/sources.list
apt-get -qq update
apt-get -qq install nagi-test-base=1.0 nagi-test-old nagi-test-left >/dev/null
apt-mark auto nagi-test-base >/dev/null
apt-get -qq remove nagi-test-left >/dev/null
echo mine >/etc/left/left.conf
echo mine >/etc/base/base.conf
"""
# What is compared: packages with their state, marks, and all files but those that apt and dpkg keep
# of their work.
_STATE = r"""
dpkg-query --show --showformat '${db:Status-Abbrev} ${Package} ${Version}\n'
apt-mark showauto
find /etc -printf '%p %m %u %g %l\n' | sort
find /etc -type f -exec sha256sum {} + | sort -k 2
"""


@pytest.fixture
def host(boot_host):
    """Boot a host that has some of the packages, and an archive of all."""
    machine = boot_host()
    for name, version, fields, purge in _PACKAGES:
        fields = fields.replace("base", "nagi-test-base").replace("lib", "nagi-test-lib")
        fields = fields.replace("old", "nagi-test-old")
        machine.run("sh", "-c", _MAKE, "make", name, version, fields, purge)
    machine.run("sh", "-c", _PREPARE)
    return machine


@pytest.fixture
def owned(host, tmp_path):
    return Module(tmp_path, Path("/var/lib/nagi-testbed"), host)


def list_difference(before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def provision(owned: Module) -> None:
    owned(role="packages", packages=["nagi-test-tool", "nagi-test-left"])
    file = {"path": "/etc/clockd/nagi.conf", "content": "ours\n"}
    owned(role="clock", packages=["nagi-test-clockd"], files=[file])


@pytest.mark.timeout(600)
def test_packages_that_were_there_before_are_as_before(host, owned):
    """One was upgraded, one removed; of one, an edited configuration file had stayed."""
    before = host.run("sh", "-c", _STATE)
    checked = owned("--check", role="packages", packages=["nagi-test-tool"])["changes"]
    assert checked == [
        "package nagi-test-tool",
        "package nagi-test-lib: installed",
        "package nagi-test-base: upgraded from 1.0 to 1.1",
        "package nagi-test-old: removed",
    ]
    assert list_difference(before, host.run("sh", "-c", _STATE)) == []
    provision(owned)
    status = "dpkg-query --show --showformat '${db:Status-Abbrev} ${Package} ${Version}\n'"
    installed = host.run("sh", "-c", status).splitlines()
    assert "ii  nagi-test-base 1.1" in installed and "ii  nagi-test-lib 1.0" in installed
    assert "rc  nagi-test-old 1.0" in installed
    checked = owned("--check", absent=True)["changes"]
    assert {"package nagi-test-old: installed again", "package nagi-test-lib: removed"} < {*checked}
    assert owned(absent=True)["kept"] == []
    assert list_difference(before, host.run("sh", "-c", _STATE)) == []


@pytest.mark.timeout(600)
def test_what_stays_is_said_and_stays(host, owned):
    """Purging clockd deletes its directory, with an operator's files in it."""
    provision(owned)
    host.run("sh", "-c", "echo edited >/etc/clockd/clockd.conf; echo edited >/etc/clockd/nagi.conf")
    host.run("chown", "nobody", "/etc/clockd/nagi.conf")
    host.run("sh", "-c", "cd /srv/archive; rm base-1.0.*; cat *.entry >Packages")
    host.run("apt-get", "-qq", "update")
    kept = owned(absent=True)["kept"]
    assert sorted(kept) == [
        "/etc/clockd/clockd.conf: the file was edited since package nagi-test-clockd came",
        "/etc/clockd/nagi.conf: the file was edited since nagi wrote it",
        "package nagi-test-base: it stays at version 1.1, because apt can no longer install "
        "version 1.0, which was there before",
    ]
    for name in ("clockd.conf", "nagi.conf"):
        assert host.run("cat", f"/etc/clockd/{name}") == "edited\n"
    assert host.run("stat", "-c", "%U %a", "/etc/clockd/nagi.conf") == "nobody 644\n"
    listing = host.run("sh", "-c", "dpkg-query --show --showformat '${Status} ${Package}\n'")
    assert "installed nagi-test-clockd" not in listing
