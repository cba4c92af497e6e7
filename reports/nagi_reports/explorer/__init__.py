# SPDX-License-Identifier: Apache-2.0
"""The explorer: a page for a browser that shows a campaign and its runs.

EXPLORER/index.html     the campaign; with plotly.js, so that it needs no other file
EXPLORER/runs/ID.js     what the page shows of a run, loaded when it is opened
EXPLORER/runs/ID/F-N.js a part of flow F with every packet, loaded when someone looks closer

They are scripts because a page that was opened from a disk may load scripts, but no other files.
What is there stays as long as the run's directory has not changed, and if this user wrote it: the
first line has a seal, as the scripts of a stranger's results would run in the page.
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
from nagi_contracts.records import Campaign, sha256_of

from nagi_reports.explorer.campaign import campaign_data
from nagi_reports.explorer.run import MAX_FLOWS, RunFiles, flows_of
from nagi_reports.explorer.tracks import parts
from nagi_reports.pages import content_policy, html_templates, may_replace

NAME = "explorer"  # in the directory of a campaign
PAGE = "index.html"

_HERE = Path(__file__).parent
_SCRIPTS = ("codec.js", "campaign.js", "run.js", "main.js")
_MARK = ".nagi-explorer"  # says that what is beside it may be replaced
_FORMAT = 2  # of the runs' files: others are written anew
_PROCESS_KEY = secrets.token_bytes(32)


def write_explorer(
    out: Path,
    campaign: Campaign,
    target: Path,
    step: Callable[[], None] = lambda: None,
    key: bytes = _PROCESS_KEY,
) -> Path:
    """Writes the page of a campaign and the data of its runs to a directory, and returns the page.
    `step` is called after each run. `key`: the user's, by which files are known that were written
    before; other files are written anew.

    Raises InputError if `target` has something else in it, or a file of the campaign is missing or
    damaged.
    """
    if not may_replace(target, _MARK):
        raise refuse("has something else in it than an explorer", "give another", file=str(target))
    runs = target / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    (target / _MARK).touch()
    with_data = set()
    for run in campaign.runs:
        if (out / "runs" / run.run_id / "plan.json").exists():
            write_run(out / "runs" / run.run_id, run.run_id, runs, key)
            with_data.add(run.run_id)
        step()
    for left in runs.iterdir():
        if left.name.removesuffix(".js") not in with_data:
            _remove(left)
    page = target / PAGE
    write_atomically(page, html(campaign_data(out, campaign, with_data)))
    return page


def write_run(directory: Path, run_id: str, target: Path, key: bytes) -> None:
    """Write the files of a run, unless `key`'s user has written them and the run has not changed.
    Raises InputError if a file of the run is damaged."""
    file, folder = target / f"{run_id}.js", target / run_id
    stamp = _stamp(directory)
    if file.is_file():
        there, _, rest = file.read_bytes().partition(b"\n")
        if hmac.compare_digest(there, _heading(stamp, rest, folder, key)):
            return
    _remove(file)
    _remove(folder)
    run = RunFiles(directory)
    if run.plan and run.manifest is not None:  # a plan that is damaged says so itself
        run.manifest.require_files(directory, allow_missing=True)
    flows = flows_of(run)
    end_s = run.end_s(flows)
    for number, flow in enumerate(flows):
        if not flow.packets:
            continue
        folder.mkdir(exist_ok=True)
        for index, part in enumerate(parts(flow.packets, flow.edges(end_s))):
            write_atomically(
                folder / f"{number}-{index}.js",
                f"nagi.part({script_json([run_id, number, index])}, {script_json(part)});\n",
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
        "flows": [flow.data(end_s) for flow in flows],
        "left_out": max(len(run.plan.flows) - MAX_FLOWS, 0),
    }
    # The last one: with it the others are there.
    body = f"nagi.run({script_json(data)});\n"
    heading = _heading(stamp, body.encode(), folder, key).decode()
    write_atomically(file, f"{heading}\n{body}")


def _remove(path: Path) -> None:
    """Remove a file or a directory, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _heading(stamp: str, body: bytes, folder: Path, key: bytes) -> bytes:
    """Return the first line of a run's script: what it was made of, and a seal of it and of the
    run's other scripts."""
    parts = sorted(folder.iterdir()) if folder.is_dir() else []
    sums = [[path.name, sha256_of(path) if path.is_file() else ""] for path in parts]
    sealed = json.dumps([stamp, hashlib.sha256(body).hexdigest(), sums]).encode()
    seal = hmac.new(key, sealed, hashlib.sha256).hexdigest()
    return f"// nagi explorer {_FORMAT} {stamp} {seal}".encode()


def html(data: dict[str, Any]) -> str:
    """Return the page."""
    own = ((_HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    scripts = [_plotly(), *own, f"start({script_json(data)});"]
    return (
        html_templates(_HERE)
        .get_template("page.html.jinja")
        .render(
            title=data["title"],
            style=Markup((_HERE / "explorer.css").read_text(encoding="utf-8")),
            scripts=[Markup(script) for script in scripts],
            policy=content_policy(scripts, loads_scripts=True),
        )
    )


def script_json(value: Any) -> str:
    """JSON that can stand in a script within a page, whatever its texts have in them."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _plotly() -> str:
    """The source of plotly.js, as its Python package has it (which takes long to import)."""
    path = Path(str(distribution("plotly").locate_file("plotly/package_data/plotly.min.js")))
    return path.read_text(encoding="utf-8").replace("</script", "<\\/script")


def _stamp(directory: Path) -> str:
    """Stands for what a run's directory holds."""
    files = sorted(path for path in directory.iterdir() if path.is_file())
    facts = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
