# SPDX-License-Identifier: Apache-2.0
"""Results of strangers are data.

Whatever a results directory contains, nothing outside of it is written, removed, or sent to the
terminal as a command.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forked import nagi
from nagi.terminal.console import PlainConsole, replace_control_characters
from nagi_contracts.base import write_atomically
from nagi_contracts.paths import SCHEMAS
from recorded import record_again
from rich.table import Table

EXAMPLE = SCHEMAS / "example" / "campaign"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "results"))


def change(file: Path, **values: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


@pytest.mark.parametrize("command", [["view", "--no-open"], ["report"], ["analyze"], ["show"]])
@pytest.mark.parametrize("run_id", ["/{victim}", "../../victim", "..", ".", "", "a/b"])
def test_a_run_s_id_leads_nowhere(results, tmp_path, command, run_id):
    """Remove no directory that an absolute run_id names, as the explorer once did."""
    victim = tmp_path / "victim"
    shutil.copytree(next((EXAMPLE / "runs").iterdir()), victim)
    content_before = sorted(victim.iterdir())
    campaign = json.loads((results / "campaign.json").read_text())
    campaign["runs"][0]["run_id"] = run_id.format(victim=str(victim)[1:])
    change(results / "campaign.json", runs=campaign["runs"])
    process = nagi(command[0], str(results), *command[1:], cwd=tmp_path)
    assert process.returncode == 2
    assert "campaign.json: runs.0.run_id: String should match pattern" in process.stderr
    assert sorted(victim.iterdir()) == content_before


@pytest.mark.parametrize("command", [["publish", "there"], ["bundle"]])
@pytest.mark.parametrize("key", ["experiment", "variant"])
@pytest.mark.parametrize("name", ["{where}/victim", "../victim", ".."])
def test_a_campaign_s_name_leads_nowhere(results, tmp_path, command, key, name):
    """Check that the experiment's name selects no path.

    Formerly, `nagi bundle` wrote to that path and removed an older bundle there.
    """
    victim = tmp_path / "victim.tar.zst"
    victim.write_text("precious")
    (tmp_path / "cwd").mkdir()
    others = {"experiment": "example", "variant": None}
    change(results / "campaign.json", **others | {key: name.format(where=tmp_path)})
    process = nagi(command[0], str(results), *command[1:], cwd=tmp_path / "cwd")
    assert (
        process.returncode == 2 and f"campaign.json: {key}: String should match" in process.stderr
    )
    assert victim.read_text() == "precious"
    assert sorted(tmp_path.iterdir()) == [tmp_path / "cwd", results, victim]


def test_repeats_are_numbers(results, tmp_path):
    change(results / "campaign.json", only={"repeat": ["x"]})
    process = nagi("bundle", str(results), cwd=tmp_path)
    assert process.returncode == 2 and "only: values of `repeat`" in process.stderr


@pytest.mark.parametrize("command", [["view", "--no-open"], ["report"], ["show", "6"]])
def test_a_pipe_is_not_waited_for(results, tmp_path, command):
    (run,) = (results / "runs").iterdir()
    (run / "plan.json").unlink()
    os.mkfifo(run / "plan.json")
    process = nagi(command[0], str(results), *command[1:], cwd=tmp_path)
    assert process.returncode == 2
    assert f"{run / 'plan.json'}: it is " in process.stderr


def test_directories_in_each_other_are_bounded(results, tmp_path):
    """Refuse deeply nested directories; 1,500 formerly raised a RecursionError."""
    deep = results
    for _ in range(20):
        deep /= "d"
    deep.mkdir(parents=True)
    process = nagi("report", str(results), cwd=tmp_path)
    assert (
        process.returncode == 2
        and "more than 16 levels of directories, which results do not have" in process.stderr
    )


@pytest.mark.parametrize(
    "name", ["report.pdf", "figures", "explorer", "results.parquet", ".lock", ".records", "runs/*"]
)
def test_links_are_not_followed_for_writing(results, tmp_path, name):
    victim = tmp_path / "victim"
    is_directory = name in ("figures", "explorer", ".records") or "*" in name
    if is_directory:
        victim.mkdir()
        (victim / "precious.svg").write_text("precious")
    else:
        victim.write_text("precious")
    (target,) = results.glob(name) if "*" in name else [results / name]
    if target.exists():
        shutil.rmtree(target) if target.is_dir() else target.unlink()
    target.symlink_to(victim)
    for command in (["report"], ["analyze"], ["view", "--no-open"]):
        process = nagi(command[0], str(results), *command[1:], cwd=tmp_path)
        assert process.returncode == 2
        assert f"{target}: it is a symbolic link, which results do not have" in process.stderr
    kept = victim / "precious.svg" if is_directory else victim
    assert kept.read_text() == "precious"
    assert not is_directory or list(victim.iterdir()) == [kept]


def test_a_planted_link_beside_a_file_that_is_written_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("metrics.json", "metrics.json.partial"):
        (tmp_path / name).symlink_to(victim)
    write_atomically(tmp_path / "metrics.json", "{}")
    assert victim.read_text() == "precious"
    assert (tmp_path / "metrics.json").read_text() == "{}"
    assert not (tmp_path / "metrics.json").is_symlink()


@pytest.mark.parametrize(
    "content", ["", "{", '{"a": ' * 5000, "\xff\xfe", "[1]", '{"runs": 1e999}']
)
@pytest.mark.parametrize(
    ("file", "cure"),
    [
        ("campaign.json", "give `nagi run` the same experiment and --out again"),
        ("plan.json", "remove its run's directory and run the campaign again"),
        ("manifest.json", "remove its run's directory and run the campaign again"),
        ("metrics.json", "compute it again: `nagi analyze RESULTS`"),
    ],
)
def test_a_damaged_file_is_named_with_the_cure_that_helps(results, tmp_path, file, cure, content):
    (run,) = (results / "runs").iterdir()
    path = results / file if file == "campaign.json" else run / file
    path.write_bytes(content.encode("latin-1"))
    command = "analyze" if file == "manifest.json" else "view"
    process = nagi(
        command, str(results), *(["--no-open"] if command == "view" else []), cwd=tmp_path
    )
    assert process.returncode == 2 and "Traceback" not in process.stderr
    assert process.stderr.startswith(f"nagi: {path}: ") and cure in process.stderr


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("results.parquet", b"PAR1 damaged"),
        ("results.parquet", None),
        ("SHA256SUMS", b"damaged"),
        ("SHA256SUMS", b""),
        ("SHA256SUMS", None),
    ],
)
def test_damage_of_what_was_published_is_named(results, tmp_path, file, content):
    """Report damaged checksums.

    Formerly, `nagi verify` then compared nothing, and reported success.
    """
    published = tmp_path / "published"
    assert nagi("publish", str(results), str(published), cwd=tmp_path).returncode == 0
    verify = ("verify", str(results), str(published), "--release", str(results / "release"))
    assert nagi(*verify, cwd=tmp_path).returncode == 0
    path = published / file
    if not path.exists():
        (path,) = (results / "release").glob(f"*.{file}")
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    process = nagi(*verify, cwd=tmp_path)
    assert process.returncode == 2 and process.stderr.startswith(f"nagi: {path}:")
    assert "get the publication again" in process.stderr


def test_a_table_is_as_long_as_its_file_can_be(results, tmp_path):
    """Refuse rows of equal content, which take memory, but almost no space in the file."""
    path = results / "results.parquet"
    rows = 20_000_000
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), ["valid"])
    pq.write_table(pa.table({"status": column}), path)
    assert path.stat().st_size < 100_000
    process = nagi("compare", str(results), str(results), cwd=tmp_path)
    assert process.returncode == 2
    assert f"{path}: cannot read the table: 20,000,000 rows" in process.stderr


def test_a_table_without_the_columns_of_results_is_named(results, tmp_path):
    pq.write_table(pa.table({"agi": [1.0]}), results / "results.parquet")
    process = nagi("compare", str(results), str(results), cwd=tmp_path)
    assert process.returncode == 2 and "results.parquet: it has no column run_id" in process.stderr


@pytest.mark.parametrize("command", [["view", "--no-open"], ["report"], ["analyze"]])
def test_a_capture_that_was_cut_is_not_shown(results, tmp_path, command):
    """Refuse a truncated capture.

    Formerly, nagi showed the metrics of the complete capture together with the truncated one.
    """
    (run,) = (results / "runs").iterdir()
    capture = run / "server.core.pcap"
    capture.write_bytes(capture.read_bytes()[: capture.stat().st_size // 2])
    process = nagi(command[0], str(results), *command[1:], cwd=tmp_path)
    assert process.returncode == 2
    assert (
        f"{capture}: it has changed: its size or checksum differs from manifest.json; restore it"
        in process.stderr
    )


@pytest.mark.parametrize("content", ["", "{}", "[" * 10_000])
def test_a_damaged_verdict_is_named(results, tmp_path, content):
    """Report a damaged verdict.

    Formerly, `nagi show` reported a missing run, and showed its metrics.
    """
    (run,) = (results / "runs").iterdir()
    (run / "verdict.json").write_text(content)
    process = nagi("show", str(results), cwd=tmp_path)
    assert process.returncode == 2
    assert process.stderr.startswith(f"nagi: {run / 'verdict.json'}: ")


def test_scripts_that_came_with_results_are_not_run(results, tmp_path):
    """Check that nagi replaces the scripts of runs.

    Formerly, nagi kept scripts with the expected first line, which strangers can write.
    """
    assert nagi("view", str(results), "--no-open", cwd=tmp_path).returncode == 0
    scripts = sorted((results / "explorer" / "runs").rglob("*.js"))
    assert len(scripts) > 1
    whole = {path: path.read_bytes() for path in scripts}
    for path in scripts:
        heading, line, _ = whole[path].partition(b"\n")
        path.write_bytes((heading + line if heading.startswith(b"//") else b"") + b"evil();\n")
        assert nagi("view", str(results), "--no-open", cwd=tmp_path).returncode == 0
        assert {item: item.read_bytes() for item in scripts} == whole
    content_before = scripts[-1].stat().st_mtime_ns
    assert nagi("view", str(results), "--no-open", cwd=tmp_path).returncode == 0
    assert scripts[-1].stat().st_mtime_ns == content_before


def test_links_of_a_page_elsewhere_are_not_followed(results, tmp_path):
    victim, page = tmp_path / "victim", tmp_path / "page"
    victim.mkdir()
    (victim / "precious").write_text("precious")
    assert nagi("view", str(results), "--no-open", "--out", str(page)).returncode == 0
    shutil.rmtree(page / "runs")
    (page / "runs").symlink_to(victim)
    process = nagi("view", str(results), "--no-open", "--out", str(page))
    assert process.returncode == 2 and "it is a symbolic link" in process.stderr
    assert (victim / "precious").read_text() == "precious"


@pytest.mark.parametrize("command", [["view", "--no-open"], ["analyze"]])
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("plan.json", '"base_rtt_s": ', '"base_rtt_s": Infinity'),
        ("plan.json", '"bottleneck_bps": ', '"bottleneck_bps": 1' + "0" * 400),
        ("plan.json", '"capture_end_s": ', '"capture_end_s": 1e12'),
        ("plan.json", '"start_s": ', '"start_s": NaN'),
        ("verdict.json", '"value": ', '"value": 1e999'),
        ("plan.json", '"base_rtt_s": ', '"base_rtt_s": "NaN"'),
        ("plan.json", '"seed": ', '"seed": "7"'),
        ("manifest.json", '"began_realtime_s": ', '"began_realtime_s": 1e20'),
    ],
)
def test_numbers_are_bounded(results, tmp_path, command, file, old, new):
    """Refuse numbers that formerly ended in tracebacks, or in a table of 364 TiB."""
    (run,) = (results / "runs").iterdir()
    text = (run / file).read_text()
    number = re.compile(re.escape(old) + r"[0-9.e+-]+")
    assert number.search(text)
    (run / file).write_text(number.sub(new, text, count=1))
    if file != "manifest.json":
        record_again(run)
    process = nagi(command[0], str(results), *command[1:], cwd=tmp_path)
    assert process.returncode == 2 and process.stderr.startswith(f"nagi: {run / file}: ")


ATTACK = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\r[red]x[/red][/]"


def test_the_terminal_gets_no_command_from_a_file(results, tmp_path):
    change(results / "campaign.json", title=ATTACK, reference=ATTACK)
    process = nagi("show", str(results), cwd=tmp_path)
    assert process.returncode == 0
    assert not any(item in process.stdout for item in "\x1b\x07\x9b\u202e\r")
    assert "[red]x[/red][/]" in process.stdout
    assert replace_control_characters(ATTACK).endswith("\ufffdevil\ufffd[red]x[/red][/]")


def test_a_table_takes_nothing_for_markup():
    """Print IPv6 addresses in brackets.

    Formerly, they were interpreted as styles and disappeared.
    """
    console = PlainConsole(width=60, record=True)
    table = Table("from")
    table.add_row("[fd00:1::1]:40000")
    table.add_row(ATTACK)
    with console.capture() as written:
        console.print(table)
    assert "[fd00:1::1]:40000" in written.get()
    assert not any(item in written.get() for item in "\x1b\x07\x9b\u202e\r")


@pytest.mark.parametrize("name", ["$$", r"$\frac{$ $x^{2$"])
def test_a_name_is_no_formula(results, tmp_path, name):
    """Draw a name with two $, which formerly was a formula that matplotlib could not read."""
    (run,) = (results / "runs").iterdir()
    campaign = json.loads((results / "campaign.json").read_text())
    for item in campaign["runs"]:
        item["point"] = dict.fromkeys(item["point"], name)
    change(results / "campaign.json", title=name, runs=campaign["runs"])
    rows = json.loads((run / "metrics.json").read_text())["rows"]
    for row in rows:
        row |= {"scheme": name, "flow": name, "point": dict.fromkeys(row["point"], name)}
    change(run / "metrics.json", rows=rows)
    process = nagi("report", str(results), "--format", "html", cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    assert name in (results / "report.html").read_text()


def test_a_page_runs_nothing_that_a_name_has_in_it(results, tmp_path):
    """Escape a medium's name, which report.html has in an attribute."""
    nasty = "<img src=x onerror=alert(1)>\"'><script>alert(1)</script>"
    change(results / "campaign.json", title=nasty, reference=nasty)
    assert nagi("report", str(results), "--format", "html", cwd=tmp_path).returncode == 0
    page = (results / "report.html").read_text()
    assert "<img" not in page and "<script" not in page
    assert "default-src &#39;none&#39;; script-src &#39;none&#39;" in page
    assert nagi("view", str(results), "--no-open", cwd=tmp_path).returncode == 0
    page = (results / "explorer" / "index.html").read_text()
    assert "<img src=x" not in page
    assert page.count("<script>") == page.count("</script>") == page.count("sha256-")
