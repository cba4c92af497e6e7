# SPDX-License-Identifier: Apache-2.0
"""The explorer: a page for a browser that shows a campaign and its runs.

EXPLORER/index.html     the campaign, with plotly.js, so that the page needs no other file
EXPLORER/runs/ID.js     data of one run, loaded when the user opens the run
EXPLORER/runs/ID/F-N.js part N of flow F with every packet, loaded when the user zooms in

The data are scripts, because a page that was opened from a disk may load scripts, but no other
files. Existing files are kept if the run's directory has not changed and this user wrote them. A
seal (HMAC) in the first line proves this: scripts in results from somebody else must not run in the
page.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import shutil
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from markupsafe import Markup
from nagi_contracts.base import write_atomically
from nagi_contracts.errors import refuse
from nagi_contracts.records import Campaign, compute_sha256

from nagi_reports.explorer.campaign import collect_campaign_data
from nagi_reports.explorer.run import MAX_FLOWS, RunFiles, read_flows
from nagi_reports.explorer.tracks import pack_parts
from nagi_reports.pages import can_replace, load_templates, make_content_policy

NAME = "explorer"  # directory in the directory of a campaign
PAGE = "index.html"

_HERE = Path(__file__).parent
_SCRIPTS = ("codec.js", "campaign.js", "run.js", "main.js")
_MARK_FILE = ".nagi-explorer"  # marks a directory that may be replaced
_FORMAT = 2  # version of the runs' files; files of other versions are written again
_PROCESS_KEY = secrets.token_bytes(32)


def write_explorer(
    out: Path,
    campaign: Campaign,
    target: Path,
    report_progress: Callable[[], None] = lambda: None,
    key: bytes = _PROCESS_KEY,
) -> Path:
    """Write the page of a campaign and the data of its runs, and return the path of the page.

    Args:
        out: The directory of the campaign.
        campaign: The campaign.
        target: The directory to write. Files of runs that no longer have data are deleted.
        report_progress: A function that is called after each run.
        key: The user's key, which seals files; files with another seal are written again. The
            default is a random key of this process.

    Raises:
        InputError: `target` has files but no explorer, or a file of the campaign is missing or
            damaged.
    """
    if not can_replace(target, _MARK_FILE):
        raise refuse(
            "contains other files than an explorer", "give another directory", file=str(target)
        )
    runs = target / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    (target / _MARK_FILE).touch()
    ids_with_data = set()
    for run in campaign.runs:
        if (out / "runs" / run.run_id / "plan.json").exists():
            write_run(out / "runs" / run.run_id, run.run_id, runs, key)
            ids_with_data.add(run.run_id)
        report_progress()
    for old_path in runs.iterdir():
        if old_path.name.removesuffix(".js") not in ids_with_data:
            _remove(old_path)
    page = target / PAGE
    write_atomically(page, render_page(collect_campaign_data(out, campaign, ids_with_data)))
    return page


def write_run(directory: Path, run_id: str, target: Path, key: bytes) -> None:
    """Write the files of a run.

    Existing files are kept if this user wrote them and the run has not changed since. Otherwise,
    they are deleted first.

    Args:
        directory: The run directory.
        run_id: The run's id, which names the files.
        target: The directory to write to.
        key: The user's key, which seals the files.

    Raises:
        InputError: A file of the run is damaged.
    """
    file, folder = target / f"{run_id}.js", target / run_id
    stamp = _hash_file_list(directory)
    if file.is_file():
        heading_line, _, body_bytes = file.read_bytes().partition(b"\n")
        if hmac.compare_digest(heading_line, _make_heading(stamp, body_bytes, folder, key)):
            return
    _remove(file)
    _remove(folder)
    run = RunFiles(directory)
    if run.plan and run.manifest is not None:  # reading a damaged plan raises InputError
        run.manifest.require_files(directory, allow_missing=True)
    flows = read_flows(run)
    end_s = run.find_end_s(flows)
    for number, flow in enumerate(flows):
        if not flow.packets:
            continue
        folder.mkdir(exist_ok=True)
        for index, part in enumerate(pack_parts(flow.packets, flow.choose_edges(end_s))):
            write_atomically(
                folder / f"{number}-{index}.js",
                f"nagi.part({to_script_json([run_id, number, index])}, {to_script_json(part)});\n",
            )
    timeline = run.plan.timeline
    data = {
        "id": run_id,
        "seed": str(run.plan.seed),
        "end_s": end_s,
        "measured_s": [
            run.plan.measure.start_s - timeline.traffic_s,
            run.plan.measure.end_s - timeline.traffic_s,
        ],
        "flows": [flow.to_data(end_s) for flow in flows],
        "left_out": max(len(run.plan.flows) - MAX_FLOWS, 0),
    }
    # This file is written last: if it exists, all files of the run exist.
    body = f"nagi.run({to_script_json(data)});\n"
    heading = _make_heading(stamp, body.encode(), folder, key).decode()
    write_atomically(file, f"{heading}\n{body}")


def _remove(path: Path) -> None:
    """Remove a file or a directory if it exists."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _make_heading(stamp: str, body: bytes, folder: Path, key: bytes) -> bytes:
    """Return the first line of a run's script, with a seal of all scripts of the run.

    Args:
        stamp: Hash of the run's state, by _hash_file_list().
        body: The script without its first line.
        folder: The directory with the run's other scripts, which may be missing.
        key: The user's key.
    """
    parts = sorted(folder.iterdir()) if folder.is_dir() else []
    sums = [[path.name, compute_sha256(path) if path.is_file() else ""] for path in parts]
    sealed = json.dumps([stamp, hashlib.sha256(body).hexdigest(), sums]).encode()
    seal = hmac.new(key, sealed, hashlib.sha256).hexdigest()
    return f"// nagi explorer {_FORMAT} {stamp} {seal}".encode()


def render_page(data: dict[str, Any]) -> str:
    """Return the page of a campaign as HTML, given the data of collect_campaign_data()."""
    sources = ((_HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    scripts = [_read_plotly(), *sources, f"start({to_script_json(data)});"]
    return (
        load_templates(_HERE)
        .get_template("page.html.jinja")
        .render(
            title=data["title"],
            style=Markup((_HERE / "explorer.css").read_text(encoding="utf-8")),
            scripts=[Markup(script) for script in scripts],
            policy=make_content_policy(scripts, loads_scripts=True),
        )
    )


def to_script_json(value: Any) -> str:
    """Return a value as JSON in which no text can end the script that contains it."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _read_plotly() -> str:
    """Return the source of plotly.js from its Python package, without the package's slow import."""
    path = Path(str(distribution("plotly").locate_file("plotly/package_data/plotly.min.js")))
    return path.read_text(encoding="utf-8").replace("</script", "<\\/script")


def _hash_file_list(directory: Path) -> str:
    """Return a hash of names, sizes and times of the files in a run's directory."""
    files = sorted(path for path in directory.iterdir() if path.is_file())
    facts = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
