# SPDX-License-Identifier: Apache-2.0
"""Plan FPGA links, and refuse settings that the core does not support or has no memory for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from nagi_contracts.impairments.losses import LossPlan
from nagi_contracts.impairments.losses.bernoulli import BernoulliLossPlan
from nagi_contracts.impairments.losses.gilbert_elliott import GilbertElliottLossPlan
from nagi_contracts.impairments.losses.none import NoLossPlan
from nagi_contracts.impairments.losses.poisson import PoissonLossPlan
from nagi_contracts.impairments.markings.threshold import ThresholdMarkingPlan
from nagi_contracts.impairments.queues.drop_tail import DropTailPlan
from nagi_contracts.plan import DIRECTIONS, DirectionName, DirectionPlan, FpgaPlan
from nagi_contracts.units import format_bytes
from nagi_fpga.kinds import DEFAULT, KINDS, MAX_PACKETS, WORD_BYTES

from nagi.backends.fpga.spec import Fpga, get_fpga
from nagi.backends.interface import Planner
from nagi.plan.request import PlanRequest
from nagi.spec.links import Link

_ETHERNET_HEADER = 14  # bytes
_LOSSES = (NoLossPlan, BernoulliLossPlan, GilbertElliottLossPlan, PoissonLossPlan)
_ON_NAGI_LINK = "or write `emulator: link`"
# Settings that the core does not implement: key -> (message, cure).
UNSUPPORTED_SETTINGS = {
    "burst": ("the FPGA's core has no token bucket", "remove it"),
    "rate_trace": ("the FPGA's core supports only a constant rate", "give `rate`"),
    "delay_trace": ("the FPGA's core supports only a constant delay", "give `delay`"),
    "jitter": ("the FPGA's core has no jitter", "remove it"),
    "keep_order": ("the FPGA's core always keeps packets in order", "remove it"),
    "arq": ("the FPGA's core has no ARQ", "remove it"),
    "corruption": ("the FPGA's core corrupts no packets", "remove it"),
    "duplication": ("the FPGA's core duplicates no packets", "remove it"),
    "reordering": ("the FPGA's core reorders no packets", "remove it"),
    "shaped_by": ("a switch cannot shape an FPGA link", "remove it"),
}


class Memory(NamedTuple):
    """The packet memory of one direction of a core."""

    words: int  # number of words for the bytes of packets
    word_bytes: int  # bytes per word; a packet occupies whole words
    packets: int  # number of descriptors, which limits the number of packets

    @property
    def bytes(self) -> int:
        return self.words * self.word_bytes


# The same values are in link-emulator/fpga/simulation/core.hpp.
SIMULATED = Memory(words=1 << 18, word_bytes=64, packets=1 << 14)


def _get_board_memory(board: str) -> Memory:
    kind = KINDS[board]
    return Memory(kind.memory_bytes // WORD_BYTES, WORD_BYTES, MAX_PACKETS)


def _plan_fpga(fpga: Fpga) -> FpgaPlan:
    if fpga.by == "simulated":
        return FpgaPlan(by="simulated")
    return FpgaPlan(
        by="board",
        board=fpga.board or DEFAULT,
        address=fpga.address,
        serial=fpga.serial,
        cable=fpga.cable,
    )


class FpgaPlanner(Planner):
    """The planner of FPGA links.

    Raises:
        InputError: An FPGA link has settings that the core does not implement, or the boards of the
            point cannot be used together.
    """

    noun = "an FPGA link"
    decides_seed = False  # so that FPGA and nagi-link draw the same losses

    def __init__(self, request: PlanRequest) -> None:
        super().__init__(request)
        self.links: dict[str, FpgaPlan] = {
            name: request.memo.get_or_make(
                partial(_plan_fpga, get_fpga(link)), ("fpga", name), link
            )
            for name, link in request.experiment.links.items()
            if self._is_fpga(name, link)
        }
        self._require_all_on_boards()
        self._require_networks()

    def require_compatible(self, others: Sequence[Planner]) -> None:
        """Refuse a backend whose program carries all links of the run in place of nagi-link."""
        other_links = [
            (link, other.noun)
            for other in others
            if other.replaces_emulator
            for link in other.links
        ]
        if self.links and other_links:
            other_link, noun = other_links[0]
            raise self._request.error(
                ("links", next(iter(self.links)), "emulator"),
                f"an FPGA link in a run with {other_link}, which is {noun}",
                "write `emulator: link` at one of the two links",
            )

    def _require_networks(self) -> None:
        """Refuse an IP address for boards that can only be controlled over their UART."""
        for name, plan in self.links.items():
            if plan.board is not None and plan.address and not KINDS[plan.board].has_network:
                raise self._request.error(
                    ("links", name, "fpga", "address"),
                    f"a {plan.board} is controlled over its UART only",
                    "give its serial device as `serial`, in place of `address`",
                )

    def _require_all_on_boards(self) -> None:
        """Refuse runs in which only some links have a board, or two links have the same board.

        A run with boards and shared media is refused as well. Boards and nagi-link cannot be used
        in the same run, because both write packets.bin and links.json.
        """
        on_boards = [name for name, plan in self.links.items() if plan.by == "board"]
        experiment = self._request.experiment
        emulated_names = [
            name for name in (*experiment.links, *experiment.shared_media) if name not in on_boards
        ]
        if on_boards and emulated_names:
            raise self._request.error(
                ("links", on_boards[0], "fpga", "by"),
                f"a board carries this link, but no board carries {emulated_names[0]}",
                "give each link a board, or write `by: simulated`",
            )
        addresses = [
            plan.serial or plan.address for plan in self.links.values() if plan.by == "board"
        ]
        for name, address in zip(on_boards, addresses, strict=True):
            if addresses.count(address) > 1:
                raise self._request.error(
                    ("links", name, "fpga"),
                    f"two links use the board at {address}",
                    "give each link a different board",
                )

    def _is_fpga(self, name: str, link: Link) -> bool:
        """Return whether an FPGA carries a link.

        Raises:
            InputError: The link has settings that the core does not support, or the key `fpga`
                without `emulator: fpga`.
        """
        if link.emulator != "fpga":
            if link.find_settings(Fpga) is not None:
                raise self._request.error(
                    ("links", name, "fpga"),
                    "`fpga` on a link that is not `emulator: fpga`",
                    "write `emulator: fpga` at the link, or remove `fpga`",
                )
            return False
        for direction in DIRECTIONS:
            self._request.require_supported(name, direction, UNSUPPORTED_SETTINGS, _ON_NAGI_LINK)
        return True

    def require_fit(self, directions: Mapping[tuple[str, DirectionName], DirectionPlan]) -> None:
        """Check that the core supports each direction of FPGA links, and has enough memory.

        Raises:
            InputError: The core does not support a setting of a direction, or has too little memory
                for the direction's queue and packets in flight.
        """
        for link in self.links:
            for direction in DIRECTIONS:
                self._require_fit(link, direction, directions[link, direction])

    def _require_fit(
        self, link: str, direction: DirectionName, direction_plan: DirectionPlan
    ) -> None:
        problem = find_unsupported(direction_plan)
        if problem is not None:
            key, message, cure = problem
            key_path = self._request.locate_setting(link, direction, key)
            raise self._request.error(key_path, message, f"{cure}, {_ON_NAGI_LINK}")
        self._require_poisson(link, direction, direction_plan)
        self._require_port(link, direction, direction_plan)
        self._require_memory(link, direction, direction_plan)

    def _require_poisson(
        self, link: str, direction: DirectionName, direction_plan: DirectionPlan
    ) -> None:
        """Refuse Poisson losses on boards whose FPGA is too small to implement them."""
        board = self.links[link].board
        if (
            board is not None
            and not KINDS[board].has_poisson
            and isinstance(direction_plan.loss, PoissonLossPlan)
        ):
            raise self._request.error(
                self._request.locate_setting(link, direction, "loss"),
                f"the core of a {board} has no Poisson losses",
                f"use another board, another loss model, {_ON_NAGI_LINK}",
            )

    def _require_port(
        self, link: str, direction: DirectionName, direction_plan: DirectionPlan
    ) -> None:
        """Refuse a rate that is higher than the rate of the board's ports."""
        board = self.links[link].board
        if board is not None and (direction_plan.rate_bps or 0) > KINDS[board].port_bps:
            raise self._request.error(
                self._request.locate_setting(link, direction, "rate"),
                f"the ports of a {board} have {KINDS[board].port_bps // 10**6} Mb/s",
                f"give a lower rate, {_ON_NAGI_LINK}",
            )

    def _require_memory(
        self, link: str, direction: DirectionName, direction_plan: DirectionPlan
    ) -> None:
        """Refuse a direction whose queue and packets in flight exceed the core's memory.

        All packets are assumed to have the size of the link's MTU.
        """
        plan = self.links[link]
        memory = SIMULATED if plan.board is None else _get_board_memory(plan.board)
        if direction_plan.rate_bps is None:
            if direction_plan.delay_ns:
                raise self._request.error(
                    ("links", link, "emulator"),
                    f"direction {direction} has no rate, so its packets in flight are unlimited, "
                    "but the core's memory is limited",
                    f"give `rate`, {_ON_NAGI_LINK}",
                )
            return
        mtu_bytes = self._request.experiment.links[link].mtu_bytes
        queued_bytes, packets = find_max_queue(direction_plan, mtu_bytes)
        in_flight_bytes = -(-direction_plan.rate_bps * direction_plan.delay_ns // (8 * 10**9))
        # Three further packets: one in transmission, one that arrives, and one that leaves.
        packets += in_flight_bytes // (mtu_bytes + direction_plan.overhead_bytes) + 3
        stored_packet_bytes = (
            -(-(mtu_bytes + _ETHERNET_HEADER) // memory.word_bytes) * memory.word_bytes
        )
        needed_bytes = (
            queued_bytes + in_flight_bytes
        ) * stored_packet_bytes // mtu_bytes + 3 * stored_packet_bytes
        if needed_bytes <= memory.bytes and packets <= memory.packets:
            return
        key_path = self._request.locate_setting(
            link, direction, "queue" if queued_bytes > in_flight_bytes else "delay"
        )
        raise self._request.error(
            key_path,
            f"queued packets and packets in flight in direction {direction} take up to "
            f"{format_bytes(needed_bytes)} "
            f"in {packets:,} packets; the core's memory holds {format_bytes(memory.bytes)} in "
            f"{memory.packets:,}",
            f"give a smaller queue, delay or rate, {_ON_NAGI_LINK}",
        )


def find_max_queue(direction: DirectionPlan, packet_bytes: int) -> tuple[int, int]:
    """Return the limit of a direction's queue, in IP bytes and in packets of `packet_bytes`.

    Return (0, 0) for a direction without a queue, or with a queue without a limit.
    """
    queue = direction.queue
    if queue is None:
        return 0, 0
    if queue.bytes is not None:
        return queue.bytes, -(-queue.bytes // packet_bytes)
    packets = queue.packets or 0
    return packets * packet_bytes, packets


def find_unsupported(direction: DirectionPlan) -> tuple[str, str, str] | None:
    """Return (key, message, cure) for the first setting that the core does not support, or None."""
    if direction.queue is not None and not isinstance(direction.queue, DropTailPlan):
        message = f"the FPGA's core has no queue discipline {direction.queue.discipline}"
        return "queue", message, "use `drop_tail`"
    mark = direction.mark
    if mark is not None and not (isinstance(mark, ThresholdMarkingPlan) and mark.weight == 1):
        message = "the FPGA's core marks by the current length of the queue, not by its average"
        return "mark", message, "give `weight: 1`"
    if not isinstance(direction.loss, _LOSSES):
        names = ", ".join(_get_model_name(model) for model in _LOSSES)
        message = f"the FPGA's core has no loss model {direction.loss.model}"
        return "loss", message, f"use {names}"
    return None


def _get_model_name(loss: type[LossPlan]) -> str:
    name: str = loss.model_fields["model"].default
    return name


part = FpgaPlanner
