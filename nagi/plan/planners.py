# SPDX-License-Identifier: Apache-2.0
"""Load the planners of all backends, and find the planner of a link, a node or a medium."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

from nagi_contracts.base import Contract

from nagi.backends.interface import Planner, Reach
from nagi.backends.names import DEFAULT
from nagi.backends.registry import load_keys, load_planners
from nagi.spec.shared_media import SharedMedium

if TYPE_CHECKING:
    from nagi.plan.request import PlanRequest


class Planners:
    """The planners of all backends for one point, in the order in which they are called.

    Attributes:
        media: Medium -> rate and times of its frame exchanges.

    Raises:
        InputError: If a backend does not support a setting of the point, or if two backends cannot
            be used in the same run.
    """

    def __init__(self, request: PlanRequest) -> None:
        self._planners = {name: factory(request) for name, factory in load_planners().items()}
        for planner in self:
            planner.require_compatible([other for other in self if other is not planner])
        self._carriers = {
            link: name for name, planner in self._planners.items() for link in planner.links
        }
        self._require_carriers(request)
        self._forwarders = {node: planner for planner in self for node in planner.nodes}
        self.media = {name: times for planner in self for name, times in planner.media.items()}

    def _require_carriers(self, request: PlanRequest) -> None:
        """Check that each link has an `emulator` and keys only of the backend that emulates it.

        The planner of a backend may already have refused the link, with a more helpful message.

        Raises:
            InputError: If a link has an `emulator` or a key of another backend.
        """
        candidates = product(load_keys().items(), request.experiment.links.items())
        for (backend, keys), (name, link) in candidates:
            if backend in (DEFAULT, self._carriers.get(name)):
                continue
            if link.emulator in keys.emulators:
                raise request.error(
                    ("links", name, "emulator"),
                    f"`emulator: {link.emulator}` without further settings of backend {backend}",
                    f"give it {' and '.join(f'`{key}: ...`' for key in keys.link_keys)}, or "
                    "remove `emulator`",
                )
            key = next((key for key in keys.link_keys if getattr(link, key) is not None), None)
            if key is not None:
                values = " or ".join(f"`emulator: {value}`" for value in keys.emulators)
                raise request.error(
                    ("links", name, key),
                    f"`{key}` on a link without {values}",
                    f"write {values} at the link, or remove `{key}`",
                )

    def __iter__(self) -> Iterator[Planner]:
        return iter(self._planners.values())

    def find_carrier(self, link: str) -> Planner | None:
        """Return the planner of the backend that emulates a link; None for nagi-link."""
        backend = self._carriers.get(link)
        return None if backend is None else self._planners[backend]

    def find_forwarder(self, node: str) -> Planner | None:
        """Return the planner of the backend that forwards packets in a node; None if none does."""
        return self._forwarders.get(node)

    def has_forwarders(self) -> bool:
        """Return whether a backend, not the kernel, forwards packets in at least one node."""
        return bool(self._forwarders)

    def get_link_fields(self, link: str) -> dict[str, Any]:
        """Return the fields that a backend adds to the plan of a link; {} for nagi-link."""
        backend = self._carriers.get(link)
        if backend is None:
            return {}
        plan = self._planners[backend].links[link]
        return {backend: plan} if isinstance(plan, Contract) else {"parts": {backend: plan}}

    def list_ignored_by_seed(self) -> list[str]:
        """Return the names of the backends whose plans of links do not change seeds."""
        return [name for name, planner in self._planners.items() if not planner.decides_seed]


def find_reach(medium: SharedMedium) -> Reach:
    """Return the reach of a medium: an object that knows which stations receive each other."""
    reaches = (factory.find_reach(medium) for factory in load_planners().values())
    return next(reach for reach in reaches if reach is not None)
