# SPDX-License-Identifier: Apache-2.0
"""`files` of a flow: what the applications of `traffic: command` find in their directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from marks import in_virtual_time
from nagi.plan.command_files import require_same_machine
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.errors import InputError
from nagi_contracts.plan import RunPlan
from specs import two_links
from test_virtual_lab import run, runs_of

_SPEC = two_links(
    "files",
    "rate: 10 Mb/s, delay: 5 ms",
    "rate: 10 Mb/s, delay: 5 ms, queue: 100 packets",
    "scheme: $scheme, traffic: command, files: [bin/serve, www], server: SERVER, client: CLIENT",
    """\
duration: 2 s
matrix: {scheme: [cubic]}
report: {x: scheme}
""",
)
_SERVE = '#!/bin/sh\ncat www/page; exec python3 -m http.server "$1" --directory www\n'
_GET = (
    '[python3, -c, "from urllib.request import urlopen; '
    "print(urlopen('http://{receiver}:{port}/page').read())\"]"
)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """Write an experiment file, with its `files` beside it, one of them a program."""
    (tmp_path / "www").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "www" / "page").write_text("forty-two")
    (tmp_path / "www" / "alias").symlink_to("gone")
    (tmp_path / "bin" / "serve").write_text(_SERVE)
    for path in (tmp_path / "bin" / "serve", tmp_path / "www"):
        path.chmod(0o755)
    (tmp_path / "www" / "page").chmod(0o644)
    path = tmp_path / "spec.yaml"
    path.write_text(_SPEC.replace("SERVER", '[./serve, "{port}"]').replace("CLIENT", _GET))
    return path


def _read_plan(spec: Path) -> RunPlan:
    (point,) = read_experiment(spec, None)
    (plan,) = plan_runs(point, None)
    return plan


def _refused(spec: Path) -> str:
    with pytest.raises(InputError) as refused:
        _read_plan(spec)
    return str(refused.value)


def test_another_content_or_mode_is_another_run(spec):
    """Check content with a symbolic link that has no target; nagi does not follow the link."""
    before = _read_plan(spec)
    assert [file.name for file in before.files()] == ["serve", "www"]
    page = spec.parent / "www" / "page"
    page.write_text("forty-three")
    assert _read_plan(spec).files() != before.files()
    page.write_text("forty-two")
    assert _read_plan(spec).files() == before.files()
    page.chmod(0o755)
    assert _read_plan(spec).files() != before.files()


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda beside: (beside / "bin" / "serve").unlink(), "files.0: there is no file"),
        (lambda beside: (beside / "www").chmod(0o700), "files.1: '"),
        (lambda beside: (beside / "www" / "page").chmod(0o600), "cannot be read by everybody"),
        (lambda beside: (beside / "bin" / "serve").chmod(0o644), "server.0: '"),
    ],
)
def test_what_applications_could_not_use_is_refused(spec, spoil, complaint):
    spoil(spec.parent)
    said = _refused(spec)
    assert said.startswith(f"{spec}:10: flows.bulk.") and complaint in said


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("bin/serve, www", "www", "'serve' is not in the flow's `files`"),
        ("bin/serve, www", "bin/serve, bin/serve", "a second file is called 'serve'"),
        ("traffic: command, files", "files", "client cannot be combined with `traffic: bulk`"),
        ("./serve", "bin/serve", "is not the name of a program or an absolute path"),
    ],
)
def test_files_and_programs_have_to_fit(spec, old, new, complaint):
    spec.write_text(spec.read_text().replace(old, new))
    assert complaint in _refused(spec)


def test_a_link_has_its_own_name(spec):
    (spec.parent / "bin" / "serve").rename(spec.parent / "bin" / "serve-1.2")
    (spec.parent / "bin" / "serve").symlink_to("serve-1.2")
    assert [file.name for file in _read_plan(spec).files()] == ["serve", "www"]
    (spec.parent / "bin" / "serve").unlink()
    (spec.parent / "bin" / "serve").symlink_to("serve")
    assert "files.0: there is no file" in _refused(spec)


def test_a_program_is_among_the_files(spec):
    spec.write_text(spec.read_text().replace("./serve", "./www/../../bin/serve"))
    assert "is not in `files`" in _refused(spec)


def test_other_machines_are_not_sent_files(spec):
    with pytest.raises(InputError, match="flow bulk has `files`, which are not sent to other"):
        require_same_machine([_read_plan(spec)])


@pytest.mark.virtual
@in_virtual_time[1]
def test_applications_find_their_files_and_nothing_else(spec, tmp_path):
    """Include two files with equal content, and one file by a link."""
    for name in ("one.conf", "two.conf"):
        (tmp_path / name).touch(mode=0o644)
    (tmp_path / "bin" / "serve-1.2").write_text(
        f'#!/bin/sh\ntest -e "{spec}" && exit 3\ncat one.conf two.conf || exit 4\n{_SERVE[10:]}'
    )
    (tmp_path / "bin" / "serve-1.2").chmod(0o755)
    (tmp_path / "bin" / "serve").unlink()
    (tmp_path / "bin" / "serve").symlink_to("serve-1.2")
    spec.write_text(spec.read_text().replace("serve, www", "serve, www, one.conf, two.conf"))
    run(spec, tmp_path / "out")
    (done,) = runs_of(tmp_path / "out").values()
    assert "forty-two" in (done / "command-server.bulk.log").read_text()
    assert (done / "command-client.bulk.log").read_text() == "b'forty-two'\n"


@pytest.mark.virtual
@in_virtual_time[1]
def test_directories_are_the_same_however_the_machine_keeps_them(spec, tmp_path):
    """Vary the orders and inode numbers that find(1) and cp(1) use."""
    listing = "find www -printf '%i %p\\n'; cp -r www copy; ls -fi copy"
    (tmp_path / "bin" / "serve").write_text(f"#!/bin/sh\n{listing}\n{_SERVE[10:]}")
    said = []
    for order in (1, -1):
        for name in map(str, range(40)[::order]):
            (tmp_path / "www" / name).unlink(missing_ok=True)
            (tmp_path / "www" / name).touch(mode=0o644)
        out = tmp_path / f"out{order}"
        run(spec, out)
        (done,) = runs_of(out).values()
        said.append((done / "command-server.bulk.log").read_text())
    assert said[0].count("www/") == 42 and said[0] == said[1]
