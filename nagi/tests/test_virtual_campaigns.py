# SPDX-License-Identifier: Apache-2.0
"""Check the directory of a campaign after changed experiments and after guests that hang."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from forked import nagi
from marks import in_virtual_time
from nagi.labs.guest import CONSOLE
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.records import Verdict
from specs import two_links
from test_virtual_lab import no_guest_left  # noqa: F401 - a fixture

EXAMPLE = SCHEMAS / "example" / "campaign"
SPEC = two_links(
    "edited",
    "rate: 10 Mb/s, delay: 2 ms",
    "rate: 10 Mb/s, delay: DELAY, queue: 20 packets",
    "scheme: $scheme, traffic: command, client: CLIENT",
    """\
duration: 1 s
matrix: {scheme: [cubic]}
report: {x: scheme}
""",
)


_SENDS = (
    '[python3, -c, "import socket; '
    "socket.socket(type=socket.SOCK_DGRAM).sendto(bytes(100), ('{receiver}', {port}))\"]"
)


def spec_in(directory: Path, client: str = _SENDS, delay: str = "5 ms") -> Path:
    spec = directory / "edited.yaml"
    spec.write_text(SPEC.replace("DELAY", delay).replace("CLIENT", client))
    return spec


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Make a campaign of another experiment."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "results"))


class TestInGuests:
    pytestmark = in_virtual_time

    def test_another_experiment_does_not_replace_a_campaign(self, elsewhere, tmp_path):
        before = (elsewhere / "campaign.json").read_bytes()
        spec_in(tmp_path)
        done = nagi("run", "edited.yaml", "--out", "results", cwd=tmp_path)
        assert done.returncode == 2
        assert "are of experiment example, variant short, and the new runs would be" in done.stderr
        assert "give another directory with --out" in done.stderr
        assert (elsewhere / "campaign.json").read_bytes() == before

    def test_a_failed_run_is_run_again_and_what_is_left_is_listed_and_removed(self, tmp_path):
        """Repeat a failed run in a guest that begins at the same instant.

        Formerly, nagi took the records of the second attempt for those of the first.
        """
        spec_in(tmp_path, client="[sh, -c, 'exit 3']")
        for _ in range(2):
            done = nagi("run", "edited.yaml", cwd=tmp_path)
            assert done.returncode == 1
            assert "the client of flow bulk ended with status 3" in done.stdout
            assert "an agent wrote no record" not in done.stdout
        spec_in(tmp_path)
        assert nagi("run", "edited.yaml", cwd=tmp_path).returncode == 0
        done = nagi("plan", "edited.yaml", cwd=tmp_path)
        assert "done in this directory: 1 valid, 0 invalid, 0 failed; to run: 0\n" in done.stdout
        shown = nagi("show", "results/edited", cwd=tmp_path).stdout
        for said in (done.stdout, shown):
            assert "1 run that this campaign no longer lists, " in said and "nagi prune " in said
        before = {run.name for run in (tmp_path / "results" / "edited" / "runs").iterdir()}
        assert nagi("prune", "results/edited", cwd=tmp_path).returncode == 2  # nobody to ask
        done = nagi("prune", "results/edited", "--yes", cwd=tmp_path)
        assert done.returncode == 0 and "scheme=cubic" in done.stdout
        (kept,) = (tmp_path / "results" / "edited" / "runs").iterdir()
        assert len(before) == 2 and kept.name in before
        assert "1 valid" in nagi("show", "results/edited", cwd=tmp_path).stdout
        assert "nothing to remove" in nagi("prune", "results/edited", "--yes", cwd=tmp_path).stdout

    def test_a_guest_whose_clock_stands_still_is_ended_and_its_console_kept(self, tmp_path):
        spec_in(tmp_path, client="[sh, -c, 'while :; do :; done']")
        soon = {"nagi.labs.guest.STUCK_PROCESSOR_S": 8.0}
        done = nagi("run", "edited.yaml", cwd=tmp_path, constants=soon)
        assert done.returncode == 1
        assert "recorded nothing for 8 s of processor time: its clock stands" in done.stdout
        assert f"logs/{CONSOLE} of the run" in done.stdout
        (run,) = (tmp_path / "results" / "edited" / "runs").iterdir()
        assert Verdict.read(run / "verdict.json").status == "failed"
        assert (run / "logs" / CONSOLE).is_file()
