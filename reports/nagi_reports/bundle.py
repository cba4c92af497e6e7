# SPDX-License-Identifier: Apache-2.0
"""Writing and unpacking of bundles. A bundle is a campaign as one file, for publication.

A bundle NAME.tar.zst is a POSIX tar archive, compressed by zstd, with everything in one folder
NAME/:

README.md          describes the campaign and how to read it
SHA256SUMS         checksums of all other files, in the format of sha256sum -c
campaign.json, results.parquet, report.pdf, report.html (reports if they exist)
runs/RUN_ID/       the runs of the campaign

Other files are left out: logs of failed runs, invalid attempts that were repeated, locks, and
partial files. Bundles of the same campaign are equal to the byte if they are written with the same
version of the zstd library: files are sorted, and have no owners and times.

Information on the machines: each manifest.json has kernel release, machine type, number of
processors, versions of programs, sysctls and offloads; captures have the addresses of the lab's own
interfaces. There are no host names, users or paths, except in the output of programs of
`traffic: command`. A JSON file that contains the campaign's path is refused.
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
from nagi_contracts.errors import escape_unprintable, format_value, refuse
from nagi_contracts.records import Campaign, Manifest, compute_sha256

SUFFIX = ".tar.zst"
README, SUMS = "README.md", "SHA256SUMS"
_TOP_FILES = ("campaign.json", "results.parquet", "report.pdf", "report.html")
_CHUNK = 1 << 20


def write_bundle(campaign_directory: Path, out: Path) -> dict[str, str]:
    """Write the bundle of a campaign to `out`, and return the SHA-256 of each file by name.

    The names are relative to the bundle's folder; SHA256SUMS is not among them.

    Raises:
        InputError: `out` exists or cannot be written, there is no run to publish, or a file differs
            from its run's manifest. `out` is then not written.
    """
    if out.exists():
        raise refuse("exists already", "remove it, or give another name with --out", file=str(out))
    campaign = Campaign.read(campaign_directory / "campaign.json")
    files = _list_files(campaign_directory, campaign)
    sums = {
        name: _compute_checked_sum(campaign_directory, name, path) for name, path in files.items()
    }
    _check_manifests(campaign_directory, campaign, sums)
    readme = _format_readme(campaign, sorted(files)).encode()
    sums[README] = hashlib.sha256(readme).hexdigest()
    sums_content = format_sums(sums).encode()
    folder = PurePosixPath(name_bundle(campaign))
    partial = out.with_name(out.name + ".partial")
    try:
        with (
            pa.CompressedOutputStream(str(partial), "zstd") as stream,
            tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar,
        ):
            for name, content in ((README, readme), (SUMS, sums_content)):
                tar.addfile(_make_member(folder / name, len(content)), BytesIO(content))
            for name in sorted(files):
                with files[name].open("rb") as file:
                    tar.addfile(_make_member(folder / name, files[name].stat().st_size), file)
        partial.rename(out)
    except OSError as error:
        raise refuse(
            f"cannot write it: {error.strerror or error}",
            "give another path with --out",
            file=str(out),
        ) from None
    finally:
        partial.unlink(missing_ok=True)
    return sums


def format_sums(sums: dict[str, str]) -> str:
    """Return checksums in the format of sha256sum(1), sorted by name."""
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))


def read_sums(path: Path) -> dict[str, str]:
    """Return the checksum of each file by name, from a file in the format of sha256sum(1).

    The lines are not checked.
    """
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def name_bundle(campaign: Campaign) -> str:
    """Return the name of a campaign's bundle, without its suffix, and of the folder within it.

    If only some repeats were selected for the campaign, the name contains their numbers.
    """
    parts = (campaign.experiment, campaign.variant, _name_repeats(campaign))
    return "-".join(part for part in parts if part)


def _name_repeats(campaign: Campaign) -> str:
    chosen = sorted(set(map(int, campaign.chosen_repeats)))
    if not chosen:
        return ""
    if len(chosen) > 1 and chosen == list(range(chosen[0], chosen[-1] + 1)):
        return f"repeats-{chosen[0]}-to-{chosen[-1]}"
    return "-".join(["repeats" if len(chosen) > 1 else "repeat", *map(str, chosen)])


def read_bundle(bundle: Path, out: Path | None) -> Path:
    """Unpack a bundle if every file agrees with SHA256SUMS, and return the new directory.

    Args:
        bundle: The bundle.
        out: The directory to create; None means the bundle's path without .tar.zst.

    Raises:
        InputError: The directory exists, `bundle` is no bundle, a file in it is missing, damaged,
            or not in SHA256SUMS, or it has too many files or bytes. The directory is then not
            created.
    """
    if out is None:
        if not bundle.name.endswith(SUFFIX):
            raise refuse(
                f"has a name that does not end in {SUFFIX}",
                "give the directory to unpack it to with --out",
                file=str(bundle),
            )
        out = bundle.with_name(bundle.name.removesuffix(SUFFIX))
    if out.exists():
        raise refuse(
            f"would be unpacked to {out}, which exists",
            f"use this directory (`nagi analyze {out}`), or give another one with --out",
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


def _list_files(directory: Path, campaign: Campaign) -> dict[str, Path]:
    """Return the path of each file of the bundle, by the file's name in the bundle.

    Raises:
        InputError: No run of the campaign was executed.
    """
    files = {name: directory / name for name in _TOP_FILES if (directory / name).is_file()}
    for run in campaign.runs:
        for path in _list_run_files(directory / "runs" / run.run_id):
            files[f"runs/{run.run_id}/{path.name}"] = path
    if not any(name.startswith("runs/") for name in files):
        raise refuse("no run of this campaign was executed", "run it first", file=str(directory))
    return files


def _list_run_files(run: Path) -> Iterator[Path]:
    """Yield the files of a run directory, without symbolic links and partial files."""
    if run.is_dir():
        for path in run.iterdir():
            if path.is_file() and not path.is_symlink() and not path.name.endswith(".partial"):
                yield path


def _compute_checked_sum(directory: Path, name: str, path: Path) -> str:
    """Return a file's checksum if the file may be published.

    Raises:
        InputError: A JSON file contains the campaign's path.
    """
    if name.endswith(".json") and str(directory.absolute()).encode() in path.read_bytes():
        raise refuse(
            f"contains the path {directory.absolute()}, which must not be published",
            "run the campaign again, which repeats failed runs",
            file=str(path),
        )
    return compute_sha256(path)


def _check_manifests(directory: Path, campaign: Campaign, sums: dict[str, str]) -> None:
    """Raise InputError if a file differs from its run's manifest."""
    for run in campaign.runs:
        path = directory / "runs" / run.run_id / "manifest.json"
        if not path.exists():
            continue  # the run was not executed, or failed before its manifest was written
        for name, recorded in Manifest.read(path).files.items():
            digest = sums.get(f"runs/{run.run_id}/{name}")
            if digest != recorded.sha256:
                problem = "is missing" if digest is None else "differs from manifest.json"
                raise refuse(
                    problem,
                    f"restore it, or remove {path.parent} and run the campaign again",
                    file=str(path.with_name(name)),
                )


def _make_member(name: PurePosixPath, size: int) -> tarfile.TarInfo:
    """Return a tar header without owner and time."""
    member = tarfile.TarInfo(str(name))
    member.size, member.mode, member.mtime = size, 0o644, 0
    return member


def _unpack(bundle: Path, target: Path) -> dict[str, str]:
    """Unpack the files in a bundle's folder into `target`, and return each file's checksum.

    Only regular files with plain relative names are unpacked, so that no file can be written
    outside of `target`.

    Raises:
        InputError: The bundle is damaged, or has a file that is not permitted or occurs twice.
    """
    sums: dict[str, str] = {}
    position = "its beginning"
    try:
        with (
            pa.input_stream(str(bundle), compression="zstd") as stream,
            tarfile.open(
                fileobj=cast(IO[bytes], _BoundedStream(stream, bundle, target)), mode="r|"
            ) as tar,
        ):
            for member in tar:
                position = escape_unprintable(member.name[:_MAX_NAME])
                name = _extract_inner_name(bundle, member)
                if name in sums:
                    raise refuse(f"{position} is in it twice", _CURE, file=str(bundle))
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
    except (
        OSError,
        EOFError,
        ValueError,
        tarfile.TarError,
    ) as error:  # a bad header gives ValueError
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise refuse(f"cannot be read past {position}: {reason}", _CURE, file=str(bundle)) from None
    return sums


class _BoundedStream:
    """A stream that refuses to unpack more bytes than a bound.

    Without a bound, a small bundle could fill the disk with its files, or the memory with the
    headers of its archive.
    """

    def __init__(self, stream: pa.NativeFile, bundle: Path, target: Path) -> None:
        self._stream = stream
        self._bundle = bundle
        max_bytes = max(bundle.stat().st_size * _MAX_RATIO, _ALWAYS_ALLOWED_BYTES)
        self._bytes_left = min(max_bytes, shutil.disk_usage(target).free - _SPARE_BYTES)

    def read(self, size: int) -> bytes:
        """Return up to `size` unpacked bytes.

        Raises:
            InputError: The bundle unpacks to more bytes than the bound.
        """
        octets: bytes = self._stream.read(size)
        self._bytes_left -= len(octets)
        if self._bytes_left < 0:
            raise refuse(
                f"it unpacks to more than {_MAX_RATIO} times its size, or than the disk has free",
                "use it only if you trust its source, and free disk space",
                file=str(self._bundle),
            )
        return octets


_CURE = "get it again from where it was published"
_MAX_FILES = 1_000_000
_MAX_NAME = 500  # characters of a file's path
# Captures and tables are already compressed; texts unpack to about 20 times their compressed size.
_MAX_RATIO = 100
_ALWAYS_ALLOWED_BYTES = 64 << 20
_SPARE_BYTES = 64 << 20  # must stay free on the disk


def _extract_inner_name(bundle: Path, member: tarfile.TarInfo) -> str:
    """Return a member's name relative to the bundle's folder.

    Raises:
        InputError: The member is not a regular file with a plain name.
    """
    name = member.name
    parts = PurePosixPath(name).parts if len(name) <= _MAX_NAME and name.isprintable() else ()
    # A sparse file is unpacked to the size in its header, even if it has little data.
    is_regular = member.isreg() and not member.issparse()
    if not is_regular or len(parts) < 2 or ".." in parts or name.startswith("/"):
        raise refuse(
            f"{format_value(name)} in it is not a file of a campaign", _CURE, file=str(bundle)
        )
    return str(PurePosixPath(*parts[1:]))


def _check_sums(bundle: Path, directory: Path, sums: dict[str, str]) -> None:
    """Raise InputError if unpacked files differ from SHA256SUMS.

    Args:
        bundle: The bundle, for messages.
        directory: The directory with the unpacked files.
        sums: The checksum of each file, by name.
    """
    if SUMS not in sums:
        raise refuse(f"has no {SUMS}", "give a file made by `nagi bundle`", file=str(bundle))
    listed_sums = read_sums(directory / SUMS)
    for name in sorted(listed_sums.keys() | sums.keys() - {SUMS}):
        if name not in sums:
            raise refuse(f"{name} is missing in it", _CURE, file=str(bundle))
        if name not in listed_sums:
            raise refuse(f"{name} in it is not in {SUMS}", _CURE, file=str(bundle))
        if listed_sums[name] != sums[name]:
            raise refuse(f"{name} in it is damaged", _CURE, file=str(bundle))


def _format_readme(campaign: Campaign, names: list[str]) -> str:
    """Return the README of a bundle that has the files `names`."""
    name = name_bundle(campaign)
    run_count = len({name.split("/")[1] for name in names if name.startswith("runs/")})
    top_names = ", ".join(name for name in names if "/" not in name)
    reference = f"\nReference: {campaign.reference}\n" if campaign.reference else ""
    return f"""\
# {campaign.title}
{reference}
A campaign of nagi {campaign.build.version} (build {campaign.build.id}) in the {campaign.lab} lab:
experiment {campaign.experiment}, variant {campaign.variant or "as it stands"}; {run_count} of \
{len(campaign.runs)} runs.

## Reading it

    nagi analyze {name}{SUFFIX}   # verifies, unpacks, and recomputes all results from the captures
    nagi report {name}{SUFFIX}    # does the same and writes the report

Without nagi: `tar --zstd -xf {name}{SUFFIX} && cd {name} && sha256sum -c {SUMS}`. Tables are Apache
Parquet, captures pcap (some compressed by zstd), the rest is JSON.

## What is in it

- {top_names}: the list of runs, their results (one row per flow of each run), and the report.
- `runs/RUN_ID/`: one folder per run.
  - `plan.json`: the run plan. `manifest.json`: hosts and programs of the run, with checksums.
  - `*.pcap`, `*.pcap.zst`: captures at the hosts, headers only; `files` in `metrics.json` lists
    captures that were left out.
  - `links.json`, `packets.parquet`, `drops.pcapng`: the link emulator's counters, and its records
    of every packet and every drop. `flows.json`, `tcp_info.parquet`: records of the senders'
    kernels. `scheme_events.parquet`: events that nagi's own schemes reported.
    `transmissions.parquet`: outcome of every transmission on radio links.
    `radios.json`: devices of radio links, and measurements with them.
    `frames.parquet`: outcome of every frame on shared media; `monitor.*`: captures of them.
    `command-*.log`: output of the programs that generated a flow's traffic.
    `goodput.parquet`: goodput over time of flows that share a bottleneck.
  - `verdict.json`: whether the links did what the plan requires. `metrics.json`: the run's results.

The bundle states of its machines: kernel release, machine type, number of processors, versions of
programs, sysctls, offloads. It has no host names, users or paths, except in the output of programs
(`command-*.log`).
"""
