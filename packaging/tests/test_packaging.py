# SPDX-License-Identifier: Apache-2.0
"""The sources and contents of Debian packages, and the refusals of `make deb`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from deb_files import PACKAGING, ROOT, build, find_packages, list_contents, read_control_field
from nagi_contracts import paths

PROGRAMS = ("nagi-link", "nagi-switch", "nagi-tcp", "nagi-traffic")
UNITS = {
    "nagi-link": paths.COLLECTION / "roles/services/files/nagi-link@.service",
    "nagi-switch": paths.COLLECTION / "roles/switch/files/nagi-switch@.service",
}
ARGPARSE = """
import argparse
parser = argparse.ArgumentParser(prog="sample")
parser.add_argument("--version", action="version", version="sample 1.2.3")
commands = parser.add_subparsers(dest="command", required=True)
commands.add_parser("run", help="work until SIGTERM").add_argument("config", help="a file (JSON)")
commands.add_parser("doctor", help="look").add_argument("--as-json", help="one object a stage")
parser.parse_args()
"""


def get_refusal(*options: str, **variables: str) -> str:
    """Return the message with which build_deb.py refuses options."""
    done = subprocess.run(
        [sys.executable, PACKAGING / "build_deb.py", *options],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    return line


@pytest.fixture
def bookworm(tmp_path: Path) -> str:
    """Write an os-release of bookworm, so that other releases need a tree; return its path."""
    file = tmp_path / "os-release"
    file.write_text('ID=debian\nVERSION_CODENAME="bookworm"\n')
    return str(file)


def test_what_there_is_not_is_refused() -> None:
    assert get_refusal("--release", "sarge") == (
        "nagi: nagi has no packages for sarge; one of: bookworm, trixie, noble"
    )
    output = get_refusal("--package", "nagi-tpc")
    assert output.startswith("nagi: there is no package nagi-tpc; one of: nagi-link, nagi-switch")


@pytest.mark.skipif(os.geteuid() != 0, reason="trees are made by root")
def test_a_tree_that_cannot_be_made_is_refused_with_the_cure(tmp_path: Path, bookworm: str) -> None:
    for name in ("apt-get", "mmdebstrap", "bwrap"):  # an apt without an archive
        (tmp_path / name).write_text("#!/bin/sh\necho E: no such suite >&2\nexit 100\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "apt-get").write_text("#!/bin/sh\n")
    variables = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "OS_RELEASE": bookworm,
    }
    options = ("--release", "noble")
    assert get_refusal(*options, **variables) == (
        "nagi: apt has no archive of Ubuntu, the distribution of noble; "
        "name an archive: `make deb RELEASE=noble MIRROR=URL`"
    )
    options += ("--mirror", "http://127.0.0.1:9/ubuntu", "--keyring")
    none = str(tmp_path / "none.gpg")
    assert get_refusal(*options, none, **variables).startswith(
        f"nagi: there is no {none}, with the keys of"
    )
    keyring = tmp_path / "some.gpg"
    keyring.touch()
    output = get_refusal(*options, str(keyring), **variables)
    assert (
        "no tree of noble could be made from http://127.0.0.1:9/ubuntu: E: no such suite" in output
    )
    assert "MIRROR=URL" in output
    assert list((tmp_path / "cache/nagi/deb").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes somebody else")
def test_a_tree_needs_root() -> None:
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    with tempfile.TemporaryDirectory(prefix="nagi-packaging-") as open_to_all:
        sources = Path(open_to_all)
        sources.chmod(0o755)
        guest = [f"hosts/guest/kernel_{part}.py" for part in ("messages", "source")]
        for name in ("packaging/build_deb.py", *guest):
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, sources / name)
        (sources / "os-release").write_text("VERSION_CODENAME=bookworm\n")
        done = subprocess.run(
            [
                *nobody,
                "/usr/bin/python3",
                sources / "packaging/build_deb.py",
                "--release",
                "trixie",
            ],
            env={**os.environ, "OS_RELEASE": str(sources / "os-release")},
            capture_output=True,
            text=True,
        )
    assert done.returncode == 2, done.stderr
    assert "nagi: only root can make and enter a tree of trixie; run it as root" in done.stderr


def test_make_installs_what_the_build_needs() -> None:
    control = (PACKAGING / "debian/control").read_text()
    needed = re.findall(r"^ ([a-z0-9-]+),$", control, re.M)  # gr-nagi needs more
    assert "libxdp-dev" in needed
    install = [ROOT / "tools" / "install_packages.sh", "--list", "run", "deb"]
    output = subprocess.run(install, capture_output=True, text=True, check=True)
    installed = {*output.stdout.split(), "python3", "dh-sequence-installsysusers"}
    assert [name for name in needed if name not in installed] == []


def test_units_differ_only_in_their_programs() -> None:
    link, switch = (unit.read_text() for unit in UNITS.values())
    assert link.replace("nagi-link", "nagi-switch").replace(
        "nagi link emulator", "nagi switch"
    ) == (switch)
    assert "\nExecStart=/usr/bin/nagi-link run /etc/nagi/%i.json\n" in link
    sysusers = (PACKAGING / "debian/nagi-link.sysusers").read_text()
    (user,) = re.findall(r"^User=(\w+)$", link, re.M)
    assert f"\nu {user} " in sysusers


def make_page(program: Path, text: Path) -> str:
    done = subprocess.run(
        [sys.executable, PACKAGING / "manual_page.py", text, program],
        env={**os.environ, "SOURCE_DATE_EPOCH": "86400"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def find_warnings(page: str) -> str:
    """Return groff's warnings about a manual page."""
    if shutil.which("man") is None:
        pytest.skip("needs man: install man-db")
    done = subprocess.run(
        ["man", "--warnings", "--encoding=UTF-8", "--local-file", "-"],
        input=page,
        env={**os.environ, "LC_ALL": "C.UTF-8", "MANPAGER": "cat", "MANROFFSEQ": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and len(done.stdout) > 500, done.stderr
    return done.stderr


def list_leaf_commands(program: Path, command: str) -> list[str]:
    """Return the subcommands of a command, or the command itself if it has none."""
    output = subprocess.run([program, command, "--help"], capture_output=True, text=True).stdout
    has = re.findall(r"^  ([a-z-]+) {2,}", output.partition("Subcommands:")[2], re.M)
    return [f"{command} {each}" for each in has] or [command]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_manual_page_has_every_command_and_option(name: str) -> None:
    program = paths.executable(name)
    page = make_page(program, PACKAGING / f"man/{name}.1")
    version = build.read_version()
    assert f'.TH {name.upper()} 1 1970-01-02 "nagi {version}" nagi'.replace("-", "\\-", 1) in page
    assert "@" not in re.sub(r"nagi\\-\w+@", "", page)
    plain = page.replace("\\-", "-")
    listed = subprocess.run([program, "--help"], capture_output=True, text=True).stdout
    commands = re.findall(r"^  ([a-z]+) {2,}", listed.lower().partition("subcommands:")[2], re.M)
    assert len(commands) >= 3
    for command in (each for above in commands for each in list_leaf_commands(program, above)):
        section = plain.partition(f".SS {command}\n")[2].partition(".S")[0]
        options = [program, *command.split(), "--help"]
        output = subprocess.run(options, capture_output=True, text=True).stdout
        for entry in re.findall(r"^  (\S+) .*  ", output, re.M):
            assert entry.startswith("-h") or f" {entry}" in section, f"{command}: {entry}"
        assert f".B {name} {command}\n" in plain
    assert find_warnings(page) == ""


def test_a_manual_page_of_a_program_with_argparse(tmp_path: Path) -> None:
    program, text = tmp_path / "sample", tmp_path / "sample.1"
    program.write_text(f"#!/usr/bin/python3\n{ARGPARSE}")
    program.chmod(0o755)
    text.write_text(
        ".TH S 1 @DATE@ @VERSION@\n.SH SYNOPSIS\n@SYNOPSIS@\n.SH COMMANDS\n@COMMANDS@\n"
    )
    page = make_page(program, text)
    assert ".B sample run\n.I config\n" in page
    assert ".SS run\nWork until SIGTERM.\n.TP\n.I config\na file (JSON)\n" in page
    assert ".B \\-\\-as\\-json AS_JSON\none object a stage\n" in page
    assert ".SH OPTIONS\n.TP\n.B \\-h, \\-\\-help\n" in page and "{run" not in page


def test_a_manual_page_without_a_mark_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "page.1"
    text.write_text(".TH X 1 @DATE@ @VERSION@\n@SYNOPSIS@\n")
    done = subprocess.run(
        [sys.executable, PACKAGING / "manual_page.py", text, paths.executable("nagi-tcp")],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0 and "the page has no @COMMANDS@" in done.stderr


@pytest.mark.parametrize("codename", sorted({build.read_codename(), *build.RELEASES}))
def test_packages_that_are_built_have_what_they_should(codename: str) -> None:
    files = find_packages(codename)
    if not files:
        pytest.skip(f"no packages for {codename}: `make deb RELEASE={codename}` builds them")
    objects = {f"/usr/lib/nagi/tcp/{name}.bpf.o" for name in ("reno", "vegas", "real", "ackthin")}
    for package, file in files.items():
        there = list_contents(file)
        assert read_control_field(file, "Version") == build.read_version()
        doc = f"/usr/share/doc/{package}"
        assert {f"{doc}/copyright", f"{doc}/changelog.gz", f"{doc}/CHANGELOG.md.gz"} <= set(there)
        program = "nagi-sdr" if package == build.RADIO else package
        assert there[f"/usr/bin/{program}"] == "-rwxr-xr-x"
        assert f"/usr/share/man/man1/{program}.1.gz" in there
        assert all(path.startswith("/usr/") for path in there), there
        depends = read_control_field(file, "Depends")
        assert "libc6 (>= " in depends, depends
        assert ("libspdlog" in depends) == (package != "nagi-traffic"), depends
        if package in UNITS:
            assert f"/usr/lib/systemd/system/{package}@.service" in there
            assert f"/usr/lib/sysusers.d/{package}.conf" in there
            assert "libxdp1" in depends and "systemd" in depends
        if package == "nagi-tcp":
            assert objects <= set(there) and all(there[name] == "-rw-r--r--" for name in objects)
            assert ("libelf1 " if codename == "bookworm" else "libelf1t64 ") in depends
