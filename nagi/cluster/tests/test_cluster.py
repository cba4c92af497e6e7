# SPDX-License-Identifier: Apache-2.0
"""`--dask`: refusals, and files by content. test_virtual_cluster.py has runs on clusters."""

from __future__ import annotations

import io
import json
import socket
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from nagi.campaign.collection import collect
from nagi.campaign.host_records import WHOLE, find_finished_cell
from nagi.cli.main import main
from nagi.cluster import content
from nagi.cluster.content import ensure_files, hash_files, hash_sums, pack, unpack, unpack_into
from nagi.cluster.installation import Installation, Requirements, list_differences
from nagi.labs import guest_kernel
from nagi_contracts.errors import InputError
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Manifest

EXPERIMENT = SCHEMAS / "example" / "experiment.yaml"
CAMPAIGN = SCHEMAS / "example" / "campaign"


@pytest.fixture
def refusal(monkeypatch, capsys, tmp_path):
    """Return a function that returns the message with which `nagi run --dask ADDRESS` refuses."""
    monkeypatch.setattr(guest_kernel, "require_installed", lambda: None)

    def run(address: str, *options: str) -> str:
        out = tmp_path / "out"
        command = ["nagi", "run", str(EXPERIMENT), "--out", str(out), "--dask", address]
        monkeypatch.setattr(sys, "argv", [*command, *options])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert not out.exists()
        output = capsys.readouterr().err.replace("\n", " ").strip()
        assert output.count("nagi: ") == 1
        return output

    return run


@pytest.fixture
def other_server() -> Iterator[int]:
    """Yield the port of a server that sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("cluster", "this address has no HOST:PORT; give the address that `dask scheduler` prints"),
        ("tcp://127.0.0.1:abc", "this address has no HOST:PORT"),
        (
            "http://127.0.0.1:8786",
            "http is no protocol of Dask; one of: tcp, tls",
        ),
        ("tcp://127.0.0.1:1", "no scheduler answers at this address: Connection refused"),
        ("tls://127.0.0.1:1", "Dask has no certificates for TLS; set distributed.comm.tls.ca-file"),
        (str(EXPERIMENT), "this is not a scheduler's file; give the file that `dask"),
    ],
)
def test_a_wrong_address_is_told_with_its_cure(address, complaint, refusal):
    assert complaint in refusal(address)


def test_a_server_that_is_no_scheduler_is_told(other_server, refusal, monkeypatch):
    monkeypatch.setattr("nagi.cluster.connection._TIMEOUT_S", 1)
    output = refusal(f"tcp://127.0.0.1:{other_server}")
    assert "the program that answers is no Dask scheduler" in output


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            ["--lab", "netns"],
            "--dask is for runs in the virtual lab, and --lab netns chooses an",
        ),
        (["-i", "lab.yml"], "-i names hosts of the physical lab; remove one of the two"),
        (["--jobs", "2"], "a cluster executes one run per worker thread; remove --jobs"),
    ],
)
def test_what_it_cannot_be_given_with_is_refused(options, complaint, refusal):
    assert complaint in refusal("tcp://127.0.0.1:1", *options)


def test_a_missing_package_is_told_with_its_cure(refusal, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("nagi.cluster.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "distributed", None)
    output = refusal("tcp://127.0.0.1:1")
    assert "--dask needs Python's package distributed, which is not installed" in output
    assert "install it: `pip install 'nagi[dask]'`" in output


def test_a_time_that_is_none_is_refused(refusal, monkeypatch):
    import dask

    with dask.config.set({"nagi.wait-for-workers": "soon"}):
        output = refusal("tcp://127.0.0.1:1")
    assert "Dask's setting nagi.wait-for-workers is soon, which is not a duration; write" in output


def test_installations_differ_in_words():
    here = {"nagi": "0.1.0", "nagi-link": "a" * 64, "pandas": "3.1.1"}
    there = {"nagi": "0.0.9", "nagi-link": "b" * 64, "pandas": "3.1.1"}
    assert list_differences(here, there) == ["nagi 0.0.9 in place of 0.1.0", "nagi-link"]
    local = Installation.from_this_machine(Requirements())
    assert list_differences(local.parts, Installation.from_this_machine(Requirements()).parts) == []


@pytest.fixture
def files(tmp_path, monkeypatch) -> list[Path]:
    """Provide two files and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    content._hash_cached_files.cache_clear()
    (tmp_path / "linux").write_bytes(b"kernel")
    (tmp_path / "linux").chmod(0o755)
    (tmp_path / "own.ko").write_bytes(b"module")
    return [tmp_path / "linux", tmp_path / "own.ko"]


def test_files_are_fetched_once_and_checked(files, tmp_path):
    sums, asked = hash_files(files), []

    def fetch(key: str) -> bytes:
        asked.append(key)
        return pack(tmp_path, files)

    place = ensure_files(sums, fetch)
    assert ensure_files(sums, fetch) == place and asked == [hash_sums(sums)]
    assert (place / "linux").read_bytes() == b"kernel"
    assert (place / "linux").stat().st_mode & 0o111
    assert [path.name for path in place.parent.iterdir()] == [place.name]
    # The next process fetches damaged files again.
    (place / "own.ko").write_bytes(b"spoilt")
    content._hash_cached_files.cache_clear()
    ensure_files(sums, fetch)
    assert (place / "own.ko").read_bytes() == b"module" and len(asked) == 2


def test_files_that_are_not_what_was_asked_for_are_refused(files, tmp_path):
    sums = hash_files(files)
    files[1].write_bytes(b"other")
    with pytest.raises(InputError, match="files with wrong checksums"):
        ensure_files(sums, lambda key: pack(tmp_path, files))
    assert not list((tmp_path / "cache").rglob("own.ko"))


@pytest.mark.parametrize("name", ["../outside", "/outside", "link"])
def test_an_archive_stays_in_its_directory(name, tmp_path):
    sink = pa.BufferOutputStream()
    with (
        pa.CompressedOutputStream(sink, "zstd") as stream,
        tarfile.open(fileobj=stream, mode="w|") as tar,
    ):
        member = tarfile.TarInfo(name)
        if name == "link":
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(member, io.BytesIO())
    archive = sink.getvalue().to_pybytes()
    for put in (unpack, unpack_into):
        with pytest.raises(OSError, match="more than plain files"):
            put(archive, tmp_path / "there")
    assert [path for path in tmp_path.rglob("*") if path.is_file() or path.is_symlink()] == []


def test_a_run_that_was_done_elsewhere_takes_its_place(tmp_path):
    (run,) = [path for path in (CAMPAIGN / "runs").iterdir() if (path / "manifest.json").exists()]
    plan = RunPlan.read(run / "plan.json")
    records, runs = tmp_path / "records", tmp_path / "runs"
    runs.mkdir()
    assert find_finished_cell(records, plan) is None
    unpack(pack(run, list(run.iterdir())), records / WHOLE / plan.run_id)
    cell = find_finished_cell(records, plan)
    assert cell is not None
    build = Manifest.read(run / "manifest.json").build
    verdict = collect(records, runs, plan, cell, "virtual", build)
    assert verdict.status == json.loads((run / "verdict.json").read_text())["status"]
    for file in run.iterdir():
        assert (runs / plan.run_id / file.name).read_bytes() == file.read_bytes()
    assert find_finished_cell(records, plan) is None
