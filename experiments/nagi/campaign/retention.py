# SPDX-License-Identifier: Apache-2.0
"""What is kept of a run once its metrics have been computed: the experiment's `keep`.

Captures are compressed by zstd or removed, the records of packets and of transmissions may be
removed; everything else stays. manifest.json lists the files there are and, under `removed`, those
there were, each with its checksum; metrics.json says the same in words. A run that failed keeps
everything.

Each step leaves the run whole: a new file is in place before the manifest names it, and the old one
is removed only after that. So what was interrupted is done by the next call.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import COMPRESSED, FileSum, Keep, Manifest
from nagi_contracts.results import Metrics

PACKETS, TRANSMISSIONS, FRAMES = "packets.parquet", "transmissions.parquet", "frames.parquet"


def retain(run: Path, keep: Keep) -> None:
    """Applies `keep` to a run directory that has its metrics. What was removed before stays so."""
    if not (run / "metrics.json").exists():
        return
    plan = RunPlan.read(run / "plan.json")
    manifest = Manifest.read(run / "manifest.json")
    wanted = _wanted_captures(plan, keep)
    for capture in plan.captures:
        if capture.file not in wanted:
            manifest = _remove(run, manifest, capture.file)
            manifest = _remove(run, manifest, capture.file + COMPRESSED)
        elif keep.compress == "zstd":
            manifest = _compress(run, manifest, capture.file)
    for medium in plan.media:
        if medium.monitor is not None and keep.compress == "zstd":
            manifest = _compress(run, manifest, medium.monitor)
    if keep.packets == "drop":
        manifest = _remove(run, manifest, PACKETS)
        manifest = _remove(run, manifest, TRANSMISSIONS)
        manifest = _remove(run, manifest, FRAMES)
    fates = manifest.fates(plan)
    metrics = Metrics.read(run / "metrics.json")
    if metrics.files != fates:
        metrics.model_copy(update={"files": fates}).write(run / "metrics.json")


def _wanted_captures(plan: RunPlan, keep: Keep) -> set[str]:
    """The captures to keep; one that is of a sender and of a receiver counts as both."""
    wanted = set()
    for flow in plan.flows:
        for end, node, direction in (
            ("sender", flow.sender, flow.path[0]),
            ("receiver", flow.receiver, flow.path[-1]),
        ):
            if keep.captures in ("both", end):
                wanted |= {
                    c.file for c in plan.captures if (c.node, c.link) == (node, direction.link)
                }
    return wanted


def _remove(run: Path, manifest: Manifest, name: str) -> Manifest:
    if name in manifest.files:
        manifest = _moved(manifest, name, {})
        manifest.write(run / "manifest.json")
    if name not in manifest.files:
        (run / name).unlink(missing_ok=True)
    return manifest


def _compress(run: Path, manifest: Manifest, name: str) -> Manifest:
    target = run / (name + COMPRESSED)
    if name in manifest.files:
        partial = target.with_name(target.name + ".partial")
        with (run / name).open("rb") as raw, pa.CompressedOutputStream(str(partial), "zstd") as out:
            shutil.copyfileobj(raw, out, 1 << 20)
        partial.replace(target)
        manifest = _moved(manifest, name, {target.name: FileSum.from_file(target)})
        manifest.write(run / "manifest.json")
    if target.name in manifest.files:
        (run / name).unlink(missing_ok=True)
    return manifest


def _moved(manifest: Manifest, name: str, instead: dict[str, FileSum]) -> Manifest:
    """The manifest with the file `name` removed and what there is instead of it."""
    files = {key: value for key, value in manifest.files.items() if key != name} | instead
    removed = manifest.removed
    # A compressed capture that is removed later is still known by what it was at first.
    if not name.endswith(COMPRESSED):
        removed = removed | {name: manifest.files[name]}
    return manifest.model_copy(
        update={"files": dict(sorted(files.items())), "removed": dict(sorted(removed.items()))}
    )
