# SPDX-License-Identifier: Apache-2.0
"""Provisioning and removal of switches of both targets.

bmv2 comes from a signed repository that the tests make; they download nothing. The package in it is
a dummy, whose program only prints a version. If the real simple_switch is installed, a test runs it
as a service.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from nagi_contracts.paths import P4
from nagi_p4.simple_switch_client import find_client_directory
from provisioning import Provision

HOST = {"nagi_node": "N", "nagi_links": {"wired": "enp2s0"}}
STANDING = HOST | {
    "nagi_switch_pipeline": str(P4 / "edge.json"),
    "nagi_switch_entries": str(P4 / "tests/programs/edge.entries.jsonl"),
    "nagi_switch_ports": [{"number": 1, "interface": "enp2s0", "depth_packets": 50}],
}
NAGI = STANDING | {"nagi_switch_target": "nagi"}
BMV2 = HOST | {"nagi_switch_target": "bmv2"}
PLACES = (
    *("/etc/systemd/system/nagi-*", "/etc/nagi/*", "/usr/local/bin/nagi*", "/usr/local/lib/nagi"),
    *("/etc/apt/sources.list.d/nagi*", "/etc/apt/keyrings/nagi*"),
)
ONLY = ("--tags", "switch")
OWN = f"ls -d {' '.join(PLACES)} 2>/dev/null; true"
CONTROL = """
Package: {name}
Version: 1.0
Architecture: all
Maintainer: nobody <nobody@example.org>
Description: stands for the real one in a test
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def host(boot_host):
    """Boot a host with a peer at its interface.

    apt has no repository, so that it uses no network.
    """
    machine = boot_host()
    machine.run(*["ip", "link", "add", "enp2s0", "type", "veth", "peer", "name", "far"])
    machine.run(
        "sh", "-c", "rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /var/lib/apt/lists/*"
    )
    return machine


@pytest.fixture(scope="module")
def provision(host, tmp_path_factory):
    return Provision({"relay": host}, tmp_path_factory.mktemp("ansible"))


def package(name: str, directory: Path, program: str | None = None) -> Path:
    """Build a package with a shell script as its program."""
    tree = directory / name
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(CONTROL.format(name=name).lstrip())
    if program is not None:
        (tree / "usr/bin").mkdir(parents=True)
        (tree / "usr/bin" / program).write_text("#!/bin/sh\necho 1.0-dummy\n")
        (tree / "usr/bin" / program).chmod(0o755)
    made = directory / f"{name}_1.0_all.deb"
    command = ["dpkg-deb", "--root-owner-group", "--build", tree, made]
    subprocess.run(command, check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """Make a flat repository with a dummy of bmv2's package, and the key that signs it."""
    for program in ("dpkg-scanpackages", "gpg"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}: install dpkg-dev and gnupg")
    directory, home = tmp_path_factory.mktemp("repository"), tmp_path_factory.mktemp("gnupg")
    home.chmod(0o700)
    package("p4lang-bmv2", tmp_path_factory.mktemp("tree"), "simple_switch").rename(
        directory / "p4lang-bmv2_1.0_all.deb"
    )
    scanned = subprocess.run(
        ["dpkg-scanpackages", "--multiversion", "."], cwd=directory, check=True, capture_output=True
    )
    (directory / "Packages").write_bytes(scanned.stdout)
    checksum = hashlib.sha256(scanned.stdout).hexdigest()
    sums = f"SHA256:\n {checksum} {len(scanned.stdout)} Packages\n"
    release = f"Date: Thu, 01 Jan 2026 00:00:00 UTC\n{sums}"
    gpg = ["gpg", "--homedir", home, "--batch", "--quiet", "--passphrase", ""]
    make = ["--quick-generate-key", "test@example.org", "ed25519", "sign", "never"]
    subprocess.run([*gpg, *make], check=True, capture_output=True)
    signed = subprocess.run(
        [*gpg, "--clearsign"], input=release.encode(), check=True, capture_output=True
    )
    (directory / "InRelease").write_bytes(signed.stdout)
    key = home / "key.asc"
    key.write_bytes(
        subprocess.run([*gpg, "--armor", "--export"], check=True, capture_output=True).stdout
    )
    subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=True)
    return directory, key


def give(host, repository: Path) -> dict[str, str]:
    """Copy the repository to the host, and return its line for apt's sources."""
    host.run("mkdir", "-p", "/srv/bmv2")
    for file in repository.iterdir():
        host.copy(file, f"/srv/bmv2/{file.name}")
    return {"nagi_bmv2_repository": "file:/srv/bmv2/"}


def test_either_target_is_installed_started_exchanged_and_removed(
    host, provision, repository, tmp_path
):
    before = host.run("sh", "-c", OWN)
    first = provision(*ONLY, relay=NAGI)
    assert first.status == 0, first.output
    account = json.loads(host.run("nagi-switch", "show", "/run/nagi-switch/switch/socket"))
    assert account["ports"][0]["interface"]["interface"] == "enp2s0"
    own = host.run("sh", "-c", OWN)

    # What cannot be had is refused, with the cure, and the switch that there is stays.
    without_thrift = "dpkg-query -W -f '${db:Status-Status}' python3-thrift | grep -qx installed"
    if subprocess.run(host.command("sh", "-c", without_thrift), check=False).returncode != 0:
        host.copy(package("python3-thrift", tmp_path), "/root/thrift.deb")
        host.run("dpkg", "--install", "/root/thrift.deb")
    refused = provision(*ONLY, relay=BMV2)
    assert refused.status != 0, refused.output
    assert "relay: apt has no package p4lang-bmv2 for" in refused.output, refused.output
    assert "nagi_bmv2_repository" in refused.output and "--switch nagi" in refused.output
    host.run("systemctl", "is-active", "nagi-switch@switch")
    assert host.run("sh", "-c", OWN) == own

    files, key = repository
    bmv2 = BMV2 | give(host, files) | {"nagi_bmv2_repository_key": str(key)}
    exchanged = provision(*ONLY, relay=bmv2)
    assert exchanged.status == 0, exchanged.output
    assert host.run("simple_switch", "--version") == "1.0-dummy\n"
    own = host.run("sh", "-c", OWN)
    assert "nagi-bmv2@.service" in own and "nagi-switch" not in own and "switch.json" not in own
    assert host.run("sh", "-c", "systemctl is-active nagi-switch@switch; true") == "inactive\n"
    again = provision(*ONLY, relay=bmv2)
    assert again.status == 0 and again.changed["relay"] == 0, again.output

    checked = provision(*ONLY, "--check", relay=HOST)
    assert checked.status == 0 and checked.changed["relay"] > 0, checked.output
    assert host.run("sh", "-c", OWN) == own
    removed = provision(*ONLY, relay=HOST)
    assert removed.status == 0, removed.output
    assert host.run("sh", "-c", OWN) == before
    said = host.fail("dpkg", "--status", "p4lang-bmv2")
    assert "package 'p4lang-bmv2' is not installed" in said
    assert provision(*ONLY, relay=HOST).changed["relay"] == 0


def test_a_repository_of_another_s_key_is_not_believed(host, provision, repository, tmp_path):
    files, _ = repository
    other = tmp_path / "other.asc"
    gpg = ["gpg", "--homedir", tmp_path, "--batch", "--quiet", "--passphrase", ""]
    make = ["--quick-generate-key", "other@example.org", "ed25519", "sign", "never"]
    subprocess.run([*gpg, *make], check=True, capture_output=True)
    exported = subprocess.run([*gpg, "--armor", "--export"], check=True, capture_output=True)
    other.write_bytes(exported.stdout)
    subprocess.run(["gpgconf", "--homedir", tmp_path, "--kill", "all"], check=True)
    variables = BMV2 | give(host, files) | {"nagi_bmv2_repository_key": str(other)}
    refused = provision(*ONLY, relay=variables)
    assert refused.status != 0, refused.output
    assert "apt has no package p4lang-bmv2" in refused.output and "NO_PUBKEY" in refused.output
    assert "nagi" not in host.run("ls", "/etc/apt/sources.list.d", "/etc/apt/keyrings")


def test_what_a_switch_says_against_its_program_is_the_error(host, provision, tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    refused = provision(*ONLY, relay=NAGI | {"nagi_switch_pipeline": str(broken)})
    assert refused.status != 0 and 'has no \\"header_types\\"' in refused.output, refused.output
    entries = tmp_path / "entries.jsonl"
    entries.write_text('{"op": "table_clear", "table": "roads"}\n')
    refused = provision(*ONLY, relay=NAGI | {"nagi_switch_entries": str(entries)})
    assert refused.status != 0, refused.output
    assert "nagi-switch@switch.service does not run: " in refused.output, refused.output
    assert "switch.entries.jsonl:1" in refused.output and "roads" in refused.output
    removed = provision(*ONLY, relay=HOST)
    assert removed.status == 0, removed.output


def test_nobody_outside_reaches_the_control_of_a_permanent_bmv2(host, provision):
    program, client = shutil.which("simple_switch"), find_client_directory()
    if program is None or client is None:
        pytest.skip("needs bmv2: its simple_switch on PATH, and its Python modules beside it")
    host.copy(Path(program), "/usr/local/bin/simple_switch")
    host.run("chmod", "755", "/usr/local/bin/simple_switch")
    packages = "/usr/local/lib/python3/dist-packages"
    host.run("mkdir", "-p", packages)
    pack = ["tar", "-C", client, "-c", "bm_runtime", "sswitch_runtime"]
    modules = subprocess.run(pack, check=True, capture_output=True)
    subprocess.run(host.command("tar", "-C", packages, "-x"), input=modules.stdout, check=True)

    host.run("sh", "-c", "ip netns add peer; ip link set far netns peer")
    started = provision(*ONLY, relay=STANDING | BMV2)
    assert started.status == 0, started.output
    assert host.run("ss", "-Hltn").split()[3] == "127.0.0.1:9090"
    reach = "import socket, sys; socket.create_connection((sys.argv[1], 9090), 2)"
    host.run("/usr/bin/python3", "-c", reach, "127.0.0.1")
    host.run("ip", "address", "add", "10.1.0.1/30", "dev", "enp2s0")
    inside = ("ip", "netns", "exec", "peer")
    host.run(*inside, "ip", "address", "add", "10.1.0.2/30", "dev", "far")
    host.run(*inside, "ip", "link", "set", "far", "up")
    host.run("ip", "link", "set", "enp2s0", "up")
    said = host.fail(*inside, "/usr/bin/python3", "-c", reach, "10.1.0.1")
    assert "ConnectionRefusedError" in said
    pid = host.run("pgrep", "-x", "simple_switch").strip()
    status = host.run("cat", f"/proc/{pid}/status")
    assert "CapEff:\t0000000000002000\n" in status  # CAP_NET_RAW
    assert provision(*ONLY, relay=STANDING | BMV2).changed["relay"] == 0
    removed = provision(*ONLY, relay=HOST)
    assert removed.status == 0 and host.run("ss", "-Hltn") == "", removed.output
