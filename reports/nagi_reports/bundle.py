# SPDX-License-Identifier: Apache-2.0
"""A campaign as one file to publish, and back.

NAME.tar.zst: a POSIX tar archive, compressed by zstd, with everything in one folder NAME/:

README.md          what it is and how to read it
SHA256SUMS         of every other file, as sha256sum -c takes it
campaign.json, results.parquet, report.pdf, report.html (what there is of the reports)
runs/RUN_ID/       the runs that make up the campaign

What is not of the campaign's runs stays out: logs of failed runs, invalid attempts that were tried
again, locks, anything half written. The same campaign gives the same bytes (files sorted, no
owners, no times; for one version of the zstd library).

What it says of the machines it was made on: each manifest.json has kernel release, machine type,
number of processors, versions of programs, sysctls and offloads; captures have the addresses of the
lab's own interfaces. No host name, user or path, but what programs of `traffic: command` said: a
file that has the campaign's path is refused.
"""

from __future__ import annotations

import hashlib
import shutil
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, cast

import pyarrow as pa
from nagi_contracts.errors import printable, refuse, shown
from nagi_contracts.records import Campaign, Manifest, sha256_of

SUFFIX = ".tar.zst"
README, SUMS = "README.md", "SHA256SUMS"
_AT_TOP = ("campaign.json", "results.parquet", "report.pdf", "report.html")
_CHUNK = 1 << 20


def write_bundle(campaign_directory: Path, out: Path) -> dict[str, str]:
    """Writes the bundle of a campaign to `out`, whole or not at all; returns the SHA-256 of each
    file in it, by name.

    Raises InputError if `out` exists, there is nothing to publish, or a file is not what its run's
    manifest says.
    """
    if out.exists():
        raise refuse("exists already", "remove it, or give another name with --out", file=str(out))
    campaign = Campaign.read(campaign_directory / "campaign.json")
    files = _files(campaign_directory, campaign)
    sums = {name: _checked_sum(campaign_directory, name, path) for name, path in files.items()}
    _check_manifests(campaign_directory, campaign, sums)
    readme = _readme(campaign, sorted(files)).encode()
    sums[README] = hashlib.sha256(readme).hexdigest()
    listed = format_sums(sums).encode()
    folder = PurePosixPath(name_bundle(campaign))
    partial = out.with_name(out.name + ".partial")
    try:
        with (
            pa.CompressedOutputStream(str(partial), "zstd") as stream,
            tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar,
        ):
            for name, content in ((README, readme), (SUMS, listed)):
                tar.addfile(_member(folder / name, len(content)), BytesIO(content))
            for name in sorted(files):
                with files[name].open("rb") as file:
                    tar.addfile(_member(folder / name, files[name].stat().st_size), file)
        partial.rename(out)
    except OSError as error:
        raise refuse(
            f"cannot write it: {error.strerror or error}",
            "give another place with --out",
            file=str(out),
        ) from None
    finally:
        partial.unlink(missing_ok=True)
    return sums


def format_sums(sums: dict[str, str]) -> str:
    """As sha256sum(1) writes and takes them."""
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))


def read_sums(path: Path) -> dict[str, str]:
    """File -> SHA-256."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def name_bundle(campaign: Campaign) -> str:
    """What a campaign's bundle and its folder are called; a part that has only some of the repeats
    says which."""
    parts = (campaign.experiment, campaign.variant, _chosen_repeats(campaign))
    return "-".join(part for part in parts if part)


def _chosen_repeats(campaign: Campaign) -> str:
    chosen = sorted(set(map(int, campaign.chosen_repeats)))
    if not chosen:
        return ""
    if len(chosen) > 1 and chosen == list(range(chosen[0], chosen[-1] + 1)):
        return f"repeats-{chosen[0]}-to-{chosen[-1]}"
    return "-".join(["repeats" if len(chosen) > 1 else "repeat", *map(str, chosen)])


def read_bundle(bundle: Path, out: Path | None) -> Path:
    """Unpacks a bundle to `out` (None: beside it, by its name without .tar.zst) and returns where.
    Nothing is there unless every file is what SHA256SUMS says.

    Raises InputError naming the file that is missing, damaged, or should not be there.
    """
    if out is None:
        if not bundle.name.endswith(SUFFIX):
            raise refuse(
                f"is not called *{SUFFIX}", "say with --out where to unpack it", file=str(bundle)
            )
        out = bundle.with_name(bundle.name.removesuffix(SUFFIX))
    if out.exists():
        raise refuse(
            f"would be unpacked to {out}, which exists",
            f"use what is there (`nagi analyze {out}`), or give another place with --out",
            file=str(bundle),
        )
    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        sums = _unpack(bundle, partial)
        _check_sums(bundle, partial, sums)
        if not (partial / "campaign.json").exists():
            raise refuse(
                "has no campaign.json", "give a file made by `nagi bundle`", file=str(bundle)
            )
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return out


def _files(directory: Path, campaign: Campaign) -> dict[str, Path]:
    """What belongs into the bundle, by its name there."""
    files = {name: directory / name for name in _AT_TOP if (directory / name).is_file()}
    for run in campaign.runs:
        for path in _files_of_run(directory / "runs" / run.run_id):
            files[f"runs/{run.run_id}/{path.name}"] = path
    if not any(name.startswith("runs/") for name in files):
        raise refuse("no run of this campaign has been done", "run it first", file=str(directory))
    return files


def _files_of_run(run: Path) -> Iterator[Path]:
    if run.is_dir():
        for path in run.iterdir():
            if path.is_file() and not path.is_symlink() and not path.name.endswith(".partial"):
                yield path


def _checked_sum(directory: Path, name: str, path: Path) -> str:
    """A file's checksum. Raises InputError if a text in it says where the campaign is."""
    if name.endswith(".json") and str(directory.absolute()).encode() in path.read_bytes():
        raise refuse(
            f"names the directory {directory.absolute()}, which is nobody else's business",
            "run the campaign again: runs that failed are tried anew",
            file=str(path),
        )
    return sha256_of(path)


def _check_manifests(directory: Path, campaign: Campaign, sums: dict[str, str]) -> None:
    """Raises InputError if a file is not what its run's manifest says."""
    for run in campaign.runs:
        path = directory / "runs" / run.run_id / "manifest.json"
        if not path.exists():
            continue  # not done, or failed before it was recorded
        for name, recorded in Manifest.read(path).files.items():
            found = sums.get(f"runs/{run.run_id}/{name}")
            if found != recorded.sha256:
                what = "is missing" if found is None else "is not what manifest.json says"
                raise refuse(
                    what,
                    f"restore it, or remove {path.parent} and run the campaign again",
                    file=str(path.with_name(name)),
                )


def _member(name: PurePosixPath, size: int) -> tarfile.TarInfo:
    """A tar header that says nothing of who wrote the file, and when."""
    member = tarfile.TarInfo(str(name))
    member.size, member.mode, member.mtime = size, 0o644, 0
    return member


def _unpack(bundle: Path, target: Path) -> dict[str, str]:
    """Unpacks into `target`, without the folder; returns each file's checksum.

    Only regular files with plain relative names are unpacked: nothing can land outside.
    """
    sums: dict[str, str] = {}
    at = "its beginning"
    try:
        with (
            pa.input_stream(str(bundle), compression="zstd") as stream,
            tarfile.open(
                fileobj=cast(IO[bytes], _Bounded(stream, bundle, target)), mode="r|"
            ) as tar,
        ):
            for member in tar:
                at = printable(member.name[:_MAX_NAME])
                name = _inner_name(bundle, member)
                if name in sums:
                    raise refuse(f"{at} is in it twice", _CURE, file=str(bundle))
                if len(sums) == _MAX_FILES:
                    raise refuse(f"it has more than {_MAX_FILES:,} files", _CURE, file=str(bundle))
                path = target / name
                path.parent.mkdir(parents=True, exist_ok=True)
                content = tar.extractfile(member)
                assert content is not None  # a regular file
                digest = hashlib.sha256()
                with path.open("xb") as file:
                    while chunk := content.read(_CHUNK):
                        digest.update(chunk)
                        file.write(chunk)
                sums[name] = digest.hexdigest()
    except (OSError, EOFError, ValueError, tarfile.TarError) as error:  # ValueError: of a header
        what = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise refuse(f"cannot be read past {at}: {what}", _CURE, file=str(bundle)) from None
    return sums


class _Bounded:
    """A stream that refuses to unpack more than a bound: a small file can unpack to one that fills
    the disk or, by the headers of its archive, the memory."""

    def __init__(self, stream: pa.NativeFile, bundle: Path, target: Path) -> None:
        self._stream = stream
        self._bundle = bundle
        allowed = max(bundle.stat().st_size * _MAX_RATIO, _ALWAYS_BYTES)
        self._left = min(allowed, shutil.disk_usage(target).free - _SPARE_BYTES)

    def read(self, size: int) -> bytes:
        got: bytes = self._stream.read(size)
        self._left -= len(got)
        if self._left < 0:
            raise refuse(
                f"it unpacks to more than {_MAX_RATIO} times its size, or than there is room for",
                "do not use it if you do not know where it is from; else make room",
                file=str(self._bundle),
            )
        return got


_CURE = "get it again from where it was published"
_MAX_FILES = 1_000_000
_MAX_NAME = 500  # characters of a name in it, with its folders
# Captures and tables are compressed as they are, and texts come to some 20 times their part of it.
_MAX_RATIO = 100
_ALWAYS_BYTES = 64 << 20
_SPARE_BYTES = 64 << 20  # that stay free on the disk


def _inner_name(bundle: Path, member: tarfile.TarInfo) -> str:
    """Return a member's name below the bundle's folder. Raises InputError if it is no plain one."""
    name = member.name
    parts = PurePosixPath(name).parts if len(name) <= _MAX_NAME and name.isprintable() else ()
    # A sparse file becomes as large as its header says, whatever there is of it in the archive.
    is_whole = member.isreg() and not member.issparse()
    if not is_whole or len(parts) < 2 or ".." in parts or name.startswith("/"):
        raise refuse(f"{shown(name)} in it is not a file of a campaign", _CURE, file=str(bundle))
    return str(PurePosixPath(*parts[1:]))


def _check_sums(bundle: Path, directory: Path, found: dict[str, str]) -> None:
    """Raises InputError if the files are not those of SHA256SUMS."""
    if SUMS not in found:
        raise refuse(f"has no {SUMS}", "give a file made by `nagi bundle`", file=str(bundle))
    listed = read_sums(directory / SUMS)
    for name in sorted(listed.keys() | found.keys() - {SUMS}):
        if name not in found:
            raise refuse(f"{name} is missing in it", _CURE, file=str(bundle))
        if name not in listed:
            raise refuse(f"{name} in it is not in {SUMS}", _CURE, file=str(bundle))
        if listed[name] != found[name]:
            raise refuse(f"{name} in it is damaged", _CURE, file=str(bundle))


def _readme(campaign: Campaign, names: list[str]) -> str:
    name = name_bundle(campaign)
    done = len({each.split("/")[1] for each in names if each.startswith("runs/")})
    top = [each for each in names if "/" not in each]
    reference = f"\nReference: {campaign.reference}\n" if campaign.reference else ""
    return f"""\
# {campaign.title}
{reference}
A campaign of nagi {campaign.build.version} (build {campaign.build.id}) in the {campaign.lab} lab:
experiment {campaign.experiment}, variant {campaign.variant or "as it stands"}; {done} of \
{len(campaign.runs)} runs.

## Reading it

    nagi analyze {name}{SUFFIX}   # verifies, unpacks, computes all again from the captures
    nagi report {name}{SUFFIX}    # the same, and writes the report

Without nagi: `tar --zstd -xf {name}{SUFFIX} && cd {name} && sha256sum -c {SUMS}`. Tables are Apache
Parquet, captures pcap (some compressed by zstd), the rest is JSON.

## What is in it

- {", ".join(top)}: which runs there are, what they came to, a row a flow a run, and the report.
- `runs/RUN_ID/`: a folder a run.
  - `plan.json`: everything the run needed. `manifest.json`: what ran it, with checksums.
  - `*.pcap`, `*.pcap.zst`: captures at the hosts, headers only; some may have been left out, which
    `metrics.json` says under `files`.
  - `links.json`, `packets.parquet`, `drops.pcapng`: the link emulator's account of itself and of
    every packet. `flows.json`, `tcp_info.parquet`: the senders' kernels' account;
    `scheme_events.parquet`: what schemes of nagi's own told.
    `transmissions.parquet`: what became of every transmission, where links are radios.
    `radios.json`: what the devices of such links are, and what was measured with them.
    `frames.parquet`: what became of every frame on shared media; `monitor.*`: captures of them.
    `command-*.log`: what programs said whose traffic a flow was.
    `goodput.parquet`: goodput over time of flows that share a bottleneck.
  - `verdict.json`: did the links do what was asked? `metrics.json`: what the run came to.

Of the machines it was made on it says: kernel release, machine type, number of processors, versions
of programs, sysctls, offloads. It has no host names, users or paths, but for what programs said
(`command-*.log`).
"""
