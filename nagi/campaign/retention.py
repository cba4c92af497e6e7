# SPDX-License-Identifier: Apache-2.0
"""Removes and compresses files of a run after its metrics were computed: the experiment's `keep`.

Captures are compressed by zstd or removed. The tables of packets, transmissions and frames may be
removed. All other files stay. manifest.json lists the existing files and, under `removed`, the
removed or replaced files, with their checksums. metrics.json says in words what happened to each
file. A run that failed keeps all files.

The run directory is consistent after each step: a new file exists before the manifest lists it, and
the old file is removed afterwards. If a call is interrupted, the next call completes it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import COMPRESSED, FileSum, Keep, Manifest
from nagi_contracts.results import Metrics


def retain(run: Path, keep: Keep) -> None:
    """Remove and compress files of a run directory by `keep`.

    Write what happened to each file to metrics.json. Do nothing if the run has no metrics. Files
    that an earlier call removed stay removed.
    """
    if not (run / "metrics.json").exists():
        return
    plan = RunPlan.read(run / "plan.json")
    manifest = Manifest.read(run / "manifest.json")
    captures = {capture.file for capture in plan.captures}
    kept_captures = _select_captures(plan, keep)
    for name in manifest.fates(plan):
        if name in captures - kept_captures:
            manifest = _remove(run, manifest, name)
            manifest = _remove(run, manifest, name + COMPRESSED)
        elif name.endswith(".parquet"):
            if keep.packets == "drop":
                manifest = _remove(run, manifest, name)
        elif keep.compress == "zstd":
            manifest = _compress(run, manifest, name)
    fates = manifest.fates(plan)
    metrics = Metrics.read(run / "metrics.json")
    if metrics.files != fates:
        metrics.model_copy(update={"files": fates}).write(run / "metrics.json")


def _select_captures(plan: RunPlan, keep: Keep) -> set[str]:
    """Return the names of the captures to keep.

    A capture that shows the sender of one flow and the receiver of another flow is kept if `keep`
    selects one of the two.
    """
    files = set()
    for flow in plan.flows:
        for role, node, direction in (
            ("sender", flow.sender, flow.path[0]),
            ("receiver", flow.receiver, flow.path[-1]),
        ):
            if keep.captures in ("both", role):
                files |= {
                    capture.file
                    for capture in plan.captures
                    if (capture.node, capture.link) == (node, direction.link)
                }
    return files


def _remove(run: Path, manifest: Manifest, name: str) -> Manifest:
    """Remove a file, if it exists; write and return the manifest, which lists it as removed."""
    if name in manifest.files:
        manifest = _replace_in_manifest(manifest, name, {})
        manifest.write(run / "manifest.json")
    if name not in manifest.files:
        (run / name).unlink(missing_ok=True)
    return manifest


def _compress(run: Path, manifest: Manifest, name: str) -> Manifest:
    """Compress a file by zstd and remove the original; write and return the new manifest."""
    target = run / (name + COMPRESSED)
    if name in manifest.files:
        partial = target.with_name(target.name + ".partial")
        with (
            (run / name).open("rb") as raw,
            pa.CompressedOutputStream(str(partial), "zstd") as compressed,
        ):
            shutil.copyfileobj(raw, compressed, 1 << 20)
        partial.replace(target)
        manifest = _replace_in_manifest(manifest, name, {target.name: FileSum.from_file(target)})
        manifest.write(run / "manifest.json")
    if target.name in manifest.files:
        (run / name).unlink(missing_ok=True)
    return manifest


def _replace_in_manifest(
    manifest: Manifest, name: str, replacements: dict[str, FileSum]
) -> Manifest:
    """Return the manifest with the file `name` replaced by the files `replacements`.

    The original file is listed under `removed`, with its checksum.
    """
    files = {key: value for key, value in manifest.files.items() if key != name} | replacements
    removed = manifest.removed
    # The manifest has the original checksum of a capture that was compressed before.
    if not name.endswith(COMPRESSED):
        removed = removed | {name: manifest.files[name]}
    return manifest.model_copy(
        update={"files": dict(sorted(files.items())), "removed": dict(sorted(removed.items()))}
    )
