# SPDX-License-Identifier: Apache-2.0
"""campaign.json: the runs of a campaign and its settings."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from nagi_contracts.base import Contract, PlainName, is_default, is_empty, is_none
from nagi_contracts.plan import SwitchTarget
from nagi_contracts.records.manifest import Build
from nagi_contracts.statements import Statement


class Keep(Contract):
    """The files of a run that remain after the run's metrics have been computed."""

    captures: Literal["both", "sender", "receiver", "none"] = Field(
        "both",
        description="captures (headers only) to keep: of senders, of receivers, both or none. "
        "The metrics remain without captures, but nagi cannot compute them again",
    )
    compress: Literal["zstd", "none"] = Field("zstd", description="compression of captures")
    packets: Literal["keep", "drop"] = Field(
        "keep",
        description="packets.parquet, with the fate of every packet on every link, and "
        "transmissions.parquet; without them the report cannot show queues over time",
    )


class Until(Contract):
    """A rule by which each point is repeated until the mean of a metric is precise enough."""

    metric: str = Field(description="a column of results.parquet, such as agi or goodput_bps")
    halfwidth: float = Field(
        strict=True,
        allow_inf_nan=False,
        gt=0,
        description="half the width of the mean's 95 % confidence interval over valid runs, in the "
        "metric's unit",
    )
    at_most: int = Field(
        strict=True, ge=2, le=1000, description="maximum number of repeats of a point"
    )


class CampaignRun(Contract):
    """One run of a campaign: one repeat of one point of the matrix."""

    run_id: PlainName
    point_id: str
    point: dict[str, str]
    repeat: int


class Campaign(Contract):
    """campaign.json: the runs of the campaign, in the order of the matrix."""

    damage_cure: ClassVar[str] = (
        "restore it, or remove it and give `nagi run` the same experiment and --out again, which "
        "keeps the runs that are done"
    )

    schema_version: Literal[1] = 1
    experiment: PlainName
    variant: PlainName | None
    only: dict[str, list[str]] = Field(
        {},
        exclude_if=is_empty,
        description="axis, or `repeat` -> values that the option --only selected",
    )
    switch: SwitchTarget = Field(
        "nagi", exclude_if=is_default("nagi"), description="target of all switches"
    )
    title: str
    reference: str = Field(description="source of the experiment, such as a paper")
    lab: str
    build: Build
    x: str = Field(description="axis of the matrix on the x axis of the report's figures")
    series: str = Field(description="axis of the matrix with one curve per value")
    panels: str | None = Field(description="axis of the matrix with one panel per value")
    competitor: str | None = Field(
        None, exclude_if=is_none, description="the axis of the competing flows' schemes"
    )
    runs: list[CampaignRun]
    left_out: dict[str, str] = Field(
        description="scheme whose runs --skip-unavailable left out -> reason"
    )
    keep: Keep = Field(Keep(), description="files of each run that remain after the analysis")
    until: Until | None = Field(
        None, description="rule for the number of repeats; null: a fixed number"
    )
    statements: list[Statement] = Field(
        [], description="claims that the report checks against the results"
    )

    @model_validator(mode="after")
    def _refuse_repeats_without_number(self) -> Self:
        if not all(repeat.isascii() and repeat.isdecimal() for repeat in self.chosen_repeats):
            raise ValueError("only: values of `repeat` must be whole numbers")
        return self

    @property
    def chosen_repeats(self) -> list[str]:
        """The repeats that --only selected, counted from 1.

        The list is empty if --only selected no repeats, or if an axis has the name `repeat`.
        """
        is_axis = any("repeat" in run.point for run in self.runs)
        return [] if is_axis else self.only.get("repeat", [])

    @property
    def narrowed_by(self) -> str:
        """The option that left runs out of the campaign: --only or --skip-unavailable.

        It is empty if no option did, and --only if both did.
        """
        if self.only:
            return "--only"
        return "--skip-unavailable" if self.left_out else ""

    def command(self, spec: str) -> list[str]:
        """Return the words of the command that executes this campaign's runs of the file `spec`."""
        return [
            *("nagi", "run", spec),
            *(("--variant", self.variant) if self.variant else ()),
            *(
                word
                for axis, values in self.only.items()
                for value in values
                for word in ("--only", f"{axis}={value}")
            ),
            *(("--switch", self.switch) if self.switch != "nagi" else ()),
            *(("--skip-unavailable",) if self.left_out else ()),
        ]
