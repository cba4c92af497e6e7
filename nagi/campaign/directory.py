# SPDX-License-Identifier: Apache-2.0
"""The directory of a campaign.

| path | content |
| --- | --- |
| `OUT/campaign.json` | the runs of the campaign |
| `OUT/runs/RUN_ID/` | one directory per run |
| `OUT/results.parquet` | one row per flow and run |
| `OUT/report.pdf` | the report |
| `OUT/.lab/` | files of the lab, while the lab exists |
| `OUT/.records/` | records that agents wrote and that are not collected yet |
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nagi_contracts.base import refuse_links
from nagi_contracts.errors import refuse
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Campaign, CampaignRun

from nagi.campaign.run_directory import needs_run, read_verdict

if TYPE_CHECKING:
    from nagi.campaign.selection import Selection


class CampaignDirectory:
    """The directory of a campaign. `lock()` lets one process at a time work in it."""

    def __init__(self, out: Path) -> None:
        self.out = out.absolute()
        self.runs = self.out / "runs"
        self.records = self.out / ".records"
        self.lab = self.out / ".lab"
        self.campaign_file = self.out / "campaign.json"
        self.lock_file = self.out / ".lock"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Create the directory, and lock it until the end of the `with` statement.

        If the directory is new and there is no campaign.json at the end, the new directories are
        removed again.

        Raises:
            InputError: Another process has locked the directory, or the directory cannot be written
                or contains symbolic links, pipes or devices.
        """
        created = [path for path in (self.runs, *self.runs.parents) if not path.exists()]
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise refuse(
                f"cannot write there: {error.strerror}",
                "give another directory with --out",
                file=str(self.out),
            ) from None
        refuse_links(self.out)
        with self.lock_file.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise refuse(
                    "another nagi process uses this directory",
                    "wait until it ends, or give another directory with --out",
                    file=str(self.out),
                ) from None
            try:
                yield
            finally:
                if self.out in created and not self.campaign_file.exists():
                    self.lock_file.unlink()
                    with suppress(OSError):  # a directory is not empty
                        for path in created:
                            path.rmdir()

    def needs_run(self, plan: RunPlan) -> bool:
        """Return whether a run must be executed, because it has no verdict or has failed."""
        return needs_run(read_verdict(self.runs, plan.run_id))

    def write_campaign(self, selection: Selection, lab: str, left_out: dict[str, str]) -> Campaign:
        """Write campaign.json, and return its content.

        Args:
            selection: The runs of the campaign. Only those that this machine can execute are
                written.
            lab: The name of the lab.
            left_out: Scheme or backend that this machine lacks -> why it is not available.
        """
        experiment = selection.experiment
        campaign = Campaign(
            experiment=experiment.name,
            variant=selection.variant,
            only=selection.only,
            switch=selection.switch,
            title=experiment.title,
            reference=experiment.reference,
            lab=lab,
            build=selection.build,
            x=experiment.report.x,
            series=experiment.report.series,
            panels=experiment.report.panels,
            competitor=experiment.report.competitor,
            runs=[
                CampaignRun(
                    run_id=plan.run_id, point_id=plan.point_id, point=plan.point, repeat=plan.repeat
                )
                for plan in selection.list_available()
            ],
            left_out=left_out,
            keep=experiment.keep,
            until=experiment.until,
            statements=experiment.report.statements,
        )
        campaign.write(self.campaign_file)
        return campaign
