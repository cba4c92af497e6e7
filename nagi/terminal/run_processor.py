# SPDX-License-Identifier: Apache-2.0
"""Collects and analyses the runs of `nagi run`, by modules that are imported late.

The modules need pandas and matplotlib, whose import takes as long as a short run. While guests of
the virtual lab run, the import costs no time. Runs in real time would be disturbed by the import,
so in other labs the import ends before the first run.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Thread

from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Build, Keep, Verdict

_MODULES = ("nagi.campaign.one_run", "nagi_reports.report")


class RunProcessor:
    """Collects and analyses runs, by modules that are imported in the background if allowed."""

    def __init__(self, keep: Keep, *, in_background: bool) -> None:
        """Start to import the Python modules that process runs, in a thread.

        Args:
            keep: The files of runs to keep.
            in_background: True: return at once. False: wait until the modules are imported.
        """
        self._keep = keep
        self._importer = Thread(target=_import_modules)
        self._importer.start()
        if not in_background:
            self._importer.join()

    def collect(
        self, records: Path, runs: Path, plan: RunPlan, cell: str, lab: str, build: Build
    ) -> Verdict:
        """Make the run directory of a run that has ended. See collection.collect()."""
        self._importer.join()
        from nagi.campaign.collection import collect

        return collect(records, runs, plan, cell, lab, build)

    def analyse(self, run: Path) -> None:
        """Compute the metrics of a run directory, and remove the files that are not kept."""
        self._importer.join()
        from nagi.campaign.one_run import analyse_and_retain

        analyse_and_retain(run, self._keep)


def _import_modules() -> None:
    for module in _MODULES:
        with suppress(ImportError):  # raised again where the module is used
            import_module(module)
