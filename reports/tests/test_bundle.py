# SPDX-License-Identifier: Apache-2.0
"""A campaign as one file, and back: the same bytes each time, and all damage is detected."""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import tarfile

import pyarrow as pa
import pytest
from nagi.campaign.retention import retain
from nagi_contracts.errors import InputError
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.records import Campaign, Keep, Verdict
from nagi_reports.analysis import analyse_run, build_table
from nagi_reports.bundle import name_bundle, read_bundle, write_bundle

EXAMPLE = SCHEMAS / "example" / "campaign"


@pytest.fixture
def campaign(tmp_path):
    return shutil.copytree(EXAMPLE, tmp_path / "campaign")


@pytest.fixture
def bundle(campaign, tmp_path):
    path = tmp_path / "example.tar.zst"
    write_bundle(campaign, path)
    return path


def members(bundle) -> dict[str, bytes]:
    with (
        pa.input_stream(str(bundle), compression="zstd") as stream,
        tarfile.open(fileobj=stream, mode="r|") as tar,
    ):
        return {member.name: tar.extractfile(member).read() for member in tar}


def pack(path, files: dict[str, bytes], *special: tarfile.TarInfo):
    """Write a bundle with only these files, and members of other kinds."""
    with (
        pa.CompressedOutputStream(str(path), "zstd") as stream,
        tarfile.open(fileobj=stream, mode="w|") as tar,
    ):
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for member in special:
            tar.addfile(member)
    return path


def tree(directory) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_there_and_back(campaign, bundle, tmp_path):
    out = read_bundle(bundle, None)
    assert out == tmp_path / "example"
    unpacked = tree(out)
    assert {name: unpacked[name] for name in tree(campaign)} == tree(campaign)
    assert set(unpacked) - set(tree(campaign)) == {"README.md", "SHA256SUMS"}
    (run,) = (out / "runs").iterdir()
    before = (run / "metrics.json").read_bytes()
    analyse_run(run)
    assert (run / "metrics.json").read_bytes() == before
    assert len(build_table(out, Campaign.read(out / "campaign.json"))) == 2


def test_a_compressed_campaign_gives_the_same_metrics_back(campaign, tmp_path):
    (run,) = (campaign / "runs").iterdir()
    retain(run, Keep())
    rows = (run / "metrics.json").read_bytes()
    write_bundle(campaign, tmp_path / "b.tar.zst")
    out = read_bundle(tmp_path / "b.tar.zst", tmp_path / "back")
    analyse_run(out / "runs" / run.name)
    assert (out / "runs" / run.name / "metrics.json").read_bytes() == rows


def test_the_same_campaign_is_the_same_bytes(campaign, bundle, tmp_path):
    elsewhere = tmp_path / "a" / "longer" / "name"
    shutil.copytree(campaign, elsewhere, copy_function=shutil.copyfile)
    write_bundle(elsewhere, tmp_path / "again.tar.zst")
    assert (tmp_path / "again.tar.zst").read_bytes() == bundle.read_bytes()


def test_the_programs_everyone_has_read_it(bundle, tmp_path):
    if shutil.which("zstd") is None:
        pytest.skip("zstd is not installed")
    command = f"zstd -dc {bundle} | tar -x -C {tmp_path} && cd {tmp_path}/example-short && "
    subprocess.run(command + "sha256sum --strict -c SHA256SUMS", shell=True, check=True)


def test_nothing_but_the_campaign_s_runs_is_in_it(campaign, bundle, tmp_path):
    (run,) = (campaign / "runs").iterdir()
    shutil.copytree(run, campaign / "runs" / f"{run.name}.invalid-1")
    shutil.copytree(run, campaign / "runs" / "0123456789abcdef")
    (run / "logs").mkdir()
    (run / "logs" / "a.log").write_text("x")
    (run / "x.partial").write_text("x")
    (run / "link").symlink_to("/etc/passwd")
    (campaign / ".lock").write_text("")
    write_bundle(campaign, tmp_path / "again.tar.zst")
    assert (tmp_path / "again.tar.zst").read_bytes() == bundle.read_bytes()


def test_it_says_nothing_of_where_it_was_made(campaign, bundle, tmp_path):
    everything = b"".join(members(bundle).values())
    assert str(tmp_path).encode() not in everything
    (run,) = (campaign / "runs").iterdir()
    verdict = Verdict.read(run / "verdict.json")
    reasons = [f"{campaign}/runs/x/S.wired.pcap: cannot read it"]
    verdict.model_copy(update={"reasons": reasons}).write(run / "verdict.json")
    with pytest.raises(InputError, match=r"verdict\.json: contains the path"):
        write_bundle(campaign, tmp_path / "again.tar.zst")
    assert not list(tmp_path.glob("again*"))


def test_what_cannot_be_published_is_refused(campaign, bundle, tmp_path):
    out = tmp_path / "again.tar.zst"
    with pytest.raises(InputError, match=r"example\.tar\.zst: exists already"):
        write_bundle(campaign, bundle)
    with pytest.raises(InputError, match="cannot write it"):
        write_bundle(campaign, tmp_path / "no" / "such" / "place.tar.zst")
    (run,) = (campaign / "runs").iterdir()
    capture = run / "client.radio.pcap"
    capture.write_bytes(capture.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match=r"client\.radio\.pcap: differs from manifest\.json"):
        write_bundle(campaign, out)
    capture.unlink()
    with pytest.raises(InputError, match=r"client\.radio\.pcap: is missing"):
        write_bundle(campaign, out)
    shutil.rmtree(run)
    with pytest.raises(InputError, match="no run of this campaign was executed"):
        write_bundle(campaign, out)
    assert not list(tmp_path.glob("again*"))


def test_every_cut_is_seen_and_leaves_nothing(bundle, tmp_path):
    whole = bundle.read_bytes()
    for length in range(0, len(whole) - 1, len(whole) // 40):
        bundle.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"example\.tar\.zst: "):
            read_bundle(bundle, None)
    assert {path.name for path in tmp_path.iterdir()} == {"campaign", bundle.name}


def test_every_flipped_byte_of_a_file_is_seen_and_named(bundle, tmp_path):
    files = members(bundle)
    for name in files:
        if name.endswith("/SHA256SUMS"):
            continue
        changed = files | {name: files[name][:-1] + bytes([files[name][-1] ^ 1])}
        pack(bundle, changed)
        inner = name.split("/", 1)[1]
        with pytest.raises(InputError, match=f"{inner} in it is damaged"):
            read_bundle(bundle, None)
    assert {path.name for path in tmp_path.iterdir()} == {"campaign", bundle.name}


def test_missing_and_additional_files_are_named(bundle):
    files = members(bundle)
    pack(bundle, {name: content for name, content in files.items() if "links.json" not in name})
    with pytest.raises(InputError, match=r"runs/.*/links\.json is missing in it"):
        read_bundle(bundle, None)
    pack(bundle, files | {"example-short/extra": b"x"})
    with pytest.raises(InputError, match="extra in it is not in SHA256SUMS"):
        read_bundle(bundle, None)
    pack(bundle, {"x/readme": b"x"})
    with pytest.raises(InputError, match="has no SHA256SUMS"):
        read_bundle(bundle, None)
    sums = f"{hashlib.sha256(b'x').hexdigest()}  readme\n".encode()
    pack(bundle, {"x/readme": b"x", "x/SHA256SUMS": sums})
    with pytest.raises(InputError, match=r"has no campaign\.json"):
        read_bundle(bundle, None)


def _member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


# 3 GB of zeros, of which nothing is in the archive.
_SPARSE = {
    "GNU.sparse.map": "0,0",
    "GNU.sparse.numblocks": "1",
    "GNU.sparse.size": str(3 << 30),
}


def _pax_member(name: str, **headers: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.pax_headers = headers
    return member


@pytest.mark.parametrize(
    "member",
    [
        _member("../outside"),
        _member("example/../../outside"),
        _member("/tmp/outside"),
        _member("outside"),
        _member("example/outside", tarfile.SYMTYPE, "/etc/passwd"),
        _member("example/outside", tarfile.LNKTYPE, "../../etc/passwd"),
        _member("example/outside", tarfile.FIFOTYPE),
        _member("example/outside", tarfile.DIRTYPE),
        _pax_member("example/as-large-as-it-says", **_SPARSE),
        _pax_member("example/nul", path="example/a\0b"),
        _pax_member("example/deep", path="example/" + 2000 * "a/" + "b"),
    ],
    ids=lambda member: f"{member.name}-{member.type.decode()}",
)
def test_nothing_lands_outside(tmp_path, member):
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    bundle = pack(inside / "bad.tar.zst", {}, member)
    with pytest.raises(InputError, match="in it is not a file of a campaign"):
        read_bundle(bundle, None)
    assert tree(tmp_path) == {"a/b/bad.tar.zst": bundle.read_bytes()}


def test_an_existing_target_is_reported(bundle, tmp_path):
    read_bundle(bundle, None)
    with pytest.raises(InputError, match=r"would be unpacked to .*example, which exists; use"):
        read_bundle(bundle, None)
    other = bundle.rename(tmp_path / "noname")
    with pytest.raises(InputError, match="give the directory to unpack it to"):
        read_bundle(other, None)
    (tmp_path / "text.tar.zst").write_text("this is no archive of any kind")
    with pytest.raises(InputError, match=r"text\.tar\.zst: cannot be read past its beginning"):
        read_bundle(tmp_path / "text.tar.zst", None)


def test_names():
    campaign = Campaign.read(EXAMPLE / "campaign.json")
    assert name_bundle(campaign) == "example-short"
    assert name_bundle(campaign.model_copy(update={"variant": None})) == "example"


@pytest.mark.parametrize(
    ("repeats", "name"),
    [
        (["1", "2", "3"], "repeats-1-to-3"),
        (["10", "9"], "repeats-9-to-10"),
        (["1", "3"], "repeats-1-3"),
        (["6"], "repeat-6"),
    ],
)
def test_parts_are_named_by_their_repeats(repeats, name):
    campaign = Campaign.read(EXAMPLE / "campaign.json")
    part = campaign.model_copy(update={"only": {"scheme": ["cubic"], "repeat": repeats}})
    assert name_bundle(part) == f"example-short-{name}"


@pytest.mark.parametrize(
    "headers",
    [
        {"GNU.sparse.map": "abc"},
        {"GNU.sparse.size": "x"},
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"},
    ],
)
def test_a_header_that_makes_no_sense_is_refused(tmp_path, headers):
    path = tmp_path / "odd.tar.zst"
    member = tarfile.TarInfo("campaign/campaign.json")
    member.size = 512
    member.pax_headers = headers
    with pa.CompressedOutputStream(str(path), "zstd") as stream:
        stream.write(member.tobuf(tarfile.PAX_FORMAT) + bytes(512) + bytes(1024))
    with pytest.raises(InputError, match=r"cannot be read past|is not a file of a campaign"):
        read_bundle(path, tmp_path / "out")
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("header", [False, True])
def test_unpacking_stops_at_a_bound(tmp_path, header):
    """Refuse a file of zeros that fills the disk, and a header that is too large for memory."""
    out = tmp_path / "out"
    path = tmp_path / "bomb.tar.zst"
    member = tarfile.TarInfo("campaign/campaign.json")
    member.size = 1 << 30
    if header:
        member.type = tarfile.XHDTYPE
    zeros = bytes(1 << 20)
    with pa.CompressedOutputStream(str(path), "zstd") as stream:
        stream.write(member.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(1 << 10):
            stream.write(zeros)
    assert path.stat().st_size < 200_000
    with pytest.raises(InputError, match="it unpacks to more than 100 times its size"):
        read_bundle(path, out)
    assert sorted(tmp_path.iterdir()) == [path]
