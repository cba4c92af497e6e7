# SPDX-License-Identifier: Apache-2.0
"""manifest.json: the build that executed a run, its hosts, and the checksums of its files."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field

from nagi_contracts.base import (
    RUN_CURE,
    Contract,
    Date,
    PlainName,
    PlainNameOrEmpty,
    is_empty,
    is_none,
)
from nagi_contracts.errors import refuse
from nagi_contracts.plan import RunPlan
from nagi_contracts.records.node import NodeRecord


class Build(Contract):
    """The programs that executed a run. `id` is a hash of all programs that can change a result."""

    id: str
    version: str
    commit: str | None
    nagi_link: str = Field(description="SHA-256 of the program")
    nagi_sdr: str | None = Field(
        None, exclude_if=is_none, description="SHA-256 of the radio programs; null: no radio links"
    )
    nagi_fpga: str | None = Field(
        None,
        exclude_if=is_none,
        description="SHA-256 of the program that simulates an FPGA core; null: no simulated core",
    )
    nagi_agent: str = Field(description="SHA-256 of its sources")
    nagi_tcp: str | None = Field(None, exclude_if=is_none, description="SHA-256 of the program")
    nagi_traffic: str | None = Field(None, exclude_if=is_none, description="SHA-256 of the program")
    nagi_switch: str | None = Field(
        None, exclude_if=is_none, description="SHA-256 of the program of switches"
    )
    simple_switch: str | None = Field(
        None,
        exclude_if=is_none,
        description="SHA-256 of bmv2's program, if it runs on this machine as a switch; for other "
        "hosts, switches.json has the version",
    )
    nagi_p4runtime: str | None = Field(
        None,
        exclude_if=is_none,
        description="SHA-256 of the sources of the P4Runtime client and server, if P4Runtime "
        "controls the switches",
    )
    parts: dict[str, str] = Field(
        {},
        exclude_if=is_empty,
        description="name of a further backend -> SHA-256 of its programs",
    )
    guest: str | None = Field(
        None,
        exclude_if=is_none,
        description="in the virtual lab: hash of the guests' kernel, modules and preloaded library",
    )


def compute_sha256(path: Path) -> str:
    """Compute the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class FileSum(Contract):
    """The size and the checksum of a file."""

    bytes: int
    sha256: str

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Compute the size and the SHA-256 of a file."""
        return cls(bytes=path.stat().st_size, sha256=compute_sha256(path))


FileFate = Literal["kept", "compressed", "removed"]
COMPRESSED = ".zst"  # appended to the name of a file compressed by zstd (RFC 8878)


class Manifest(Contract):
    """manifest.json: the build, the hosts and the files of a run."""

    damage_cure: ClassVar[str] = RUN_CURE

    schema_version: Literal[1] = 1
    run_id: PlainNameOrEmpty
    point_id: str
    lab: str
    cell: str
    build: Build
    began_realtime_s: Date = Field(
        description="start of the run by the emulator's clock; in a guest, this clock does not "
        "show the real date"
    )
    collected_s: Date | None = Field(
        None,
        exclude_if=is_none,
        description="instant at which nagi collected the run's records, in seconds since 1970 by "
        "the clock of the machine that runs nagi; null: recorded by an earlier version",
    )
    nodes: dict[str, NodeRecord]
    files: dict[PlainName, FileSum]
    removed: dict[PlainName, FileSum] = Field(
        {},
        exclude_if=is_empty,
        description="files removed or compressed after the run's metrics were computed, with their "
        "original sizes and checksums",
    )

    @property
    def date_s(self) -> float:
        """The date of the run in seconds since 1970; only for display."""
        return self.began_realtime_s if self.collected_s is None else self.collected_s

    def require_files(
        self, run: Path, *, only_sizes: bool = False, allow_missing: bool = False
    ) -> None:
        """Check that the files in the manifest are unchanged since they were recorded.

        Other files in the run directory are not checked.

        Args:
            run: The run directory.
            only_sizes: Whether to compare only the sizes of files, which is fast, not the SHA-256.
            allow_missing: Whether files may be missing, such as captures that were removed.

        Raises:
            InputError: A file is missing or has changed.
        """
        for name, recorded in self.files.items():
            path = run / name
            if allow_missing and not path.exists():
                continue
            has_same_size = path.is_file() and path.stat().st_size == recorded.bytes
            if has_same_size and (only_sizes or compute_sha256(path) == recorded.sha256):
                continue
            raise refuse(
                "it has changed: its size or checksum differs from manifest.json"
                if path.is_file()
                else "it is missing",
                f"restore it, or remove {run} and run the campaign again",
                file=str(path),
            )

    def fate(self, file: str) -> FileFate:
        """Return whether a file of the run was kept, compressed or removed after the analysis."""
        if file in self.files:
            return "kept"
        return "compressed" if file + COMPRESSED in self.files else "removed"

    def fates(self, plan: RunPlan) -> dict[str, FileFate]:
        """Return file name -> fate, for the files that the experiment's `keep` may remove."""
        names = [*(capture.file for capture in plan.captures), "packets.parquet"]
        if plan.records_transmissions():
            names.append("transmissions.parquet")
        if plan.media:
            names.append("frames.parquet")
        names += [medium.monitor for medium in plan.media if medium.monitor is not None]
        return {name: self.fate(name) for name in names}
