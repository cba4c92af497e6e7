# SPDX-License-Identifier: Apache-2.0
"""Give the planner access to a point, to the planners of backends, and to a shared memo."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from nagi_contracts.errors import InputError, format_value, suggest
from nagi_contracts.memo import Memo
from nagi_contracts.plan import (
    DIRECTIONS,
    DirectionName,
    DirectionPlan,
    LinkDirection,
    SwitchTarget,
)

from nagi.plan.planners import Planners
from nagi.plan.schemes import Profile, read_profiles
from nagi.plan.topology import Topology
from nagi.spec.experiment import Flow
from nagi.spec.links import DirectionSettings, Link
from nagi.spec.points import Point
from nagi.spec.yaml_source import KeyPath


class PlanRequest:
    """A point to plan, with its topology, the planners of backends, and a memo.

    Args:
        point: The point of the matrix (one value of each axis).
        switch: The program that runs the P4 pipelines of switches.
        memo: Results of earlier calls. Points of an experiment share it, because many of their
            links and flows are equal.

    Raises:
        InputError: If the topology or the host profile is wrong, or if a backend does not support
            the point.
    """

    def __init__(self, point: Point, switch: SwitchTarget, memo: Memo) -> None:
        self.memo = memo
        self.switch = switch
        self.experiment = point.experiment
        self.document = point.document
        links = self.experiment.links
        self.topology = memo.get_or_make(
            lambda: Topology(point.experiment, point.document),
            (
                "topology",
                self.experiment.ip_version,
                tuple((name, link.between, link.mtu) for name, link in links.items()),
            ),
            self.experiment.nodes,
            *self.experiment.shared_media.values(),
        )
        self.ip = self.topology.ip
        self.profile = self._read_profile()
        self.planners = Planners(self)

    def _read_profile(self) -> Profile:
        name = self.experiment.host_profile
        if name not in read_profiles():
            message = f"unknown host profile {format_value(name)}"
            raise self.error(("host_profile",), message, suggest(name, read_profiles()))
        return read_profiles()[name]

    def list_flows(self) -> list[tuple[str, Flow]]:
        """Return the names and settings of this point's flows, except those of `scheme: none`."""
        return [(name, flow) for name, flow in self.experiment.flows.items() if not flow.is_absent]

    def list_absent_flows(self) -> list[tuple[str, Flow]]:
        """Return the flows that this point omits (`scheme: none`) and other points may have."""
        return [(name, flow) for name, flow in self.experiment.flows.items() if flow.is_absent]

    def error(self, key_path: KeyPath, message: str, cure: str) -> InputError:
        """Return an InputError that names the line of `key_path` in the experiment file."""
        return self.document.error(key_path, message, cure)

    def missing_file(self, key_path: KeyPath, name: str) -> InputError:
        """Return an InputError: there is no file `name`, which the value at `key_path` names."""
        directory = self.document.resolve_path(".").absolute()
        return self.error(
            key_path, f"there is no file {format_value(name)}", f"give its path from {directory}"
        )

    def get_settings(self, link: Link, direction: DirectionName) -> DirectionSettings:
        """Return the settings of one direction, including those that it inherits from the link."""
        return self.memo.get_or_make(
            partial(link.resolve_direction, direction), ("settings", direction), link
        )

    def locate_setting(self, link: str, direction: DirectionName, key: str) -> KeyPath:
        """Return the key path of a direction's setting.

        It is a key path below the direction, or below the link if the direction inherits `key`.
        """
        inherits = self.experiment.links[link].inherits(direction, key)
        return ("links", link, key) if inherits else ("links", link, direction, key)

    def require_supported(
        self,
        link: str,
        direction: DirectionName,
        unsupported: Mapping[str, tuple[str, str]],
        alternative: str = "",
    ) -> None:
        """Raise InputError if a direction has a setting that a backend does not support.

        `shaped_by: emulator` is always supported.

        Args:
            link: Name of the link.
            direction: The direction of the link.
            unsupported: Key of each unsupported setting -> message and cure.
            alternative: A further cure, which is appended to each cure.
        """
        settings = self.get_settings(self.experiment.links[link], direction)
        for key, (message, cure) in unsupported.items():
            if getattr(settings, key) not in (None, "emulator"):
                raise self.error(
                    self.locate_setting(link, direction, key),
                    message,
                    f"{cure}, {alternative}" if alternative else cure,
                )

    def is_ecn_requested(self) -> bool:
        """Return whether hosts request ECN for their connections.

        If the experiment does not set `ecn`, hosts request ECN if a link or medium marks packets.
        """
        if self.experiment.ecn is not None:
            return self.experiment.ecn
        links = self.experiment.links.values()
        return any(medium.marks for medium in self.experiment.shared_media.values()) or any(
            self.get_settings(link, direction).marks for link in links for direction in DIRECTIONS
        )

    def has_marking(self, direction: LinkDirection) -> bool:
        """Return whether a direction of a link, or the medium of a hop, marks packets (ECN)."""
        if direction.is_hop:
            return self.experiment.shared_media[direction.link].marks
        return self.get_settings(self.experiment.links[direction.link], direction.direction).marks

    def get_address(self, node: str, direction: LinkDirection) -> str:
        """Return the address of `node` on the link or medium of `direction`."""
        return self.topology.get_attachment(direction.link, node).address

    def find_sending_node(self, link: str, direction: DirectionName) -> str:
        """Return the node that sends into a direction of a link."""
        first, second = self.experiment.links[link].between
        return first if direction == "forward" else second

    def get_mean_rate_bps(self, direction: DirectionPlan) -> int | None:
        """Return the mean rate of a direction in bit/s, or None if it has no rate.

        The memo keeps the result, because the mean of a trace takes long to compute.
        """
        return self.memo.get_or_make(lambda: direction.mean_rate_bps, "rate", direction)
