# SPDX-License-Identifier: Apache-2.0
"""Links that an FPGA's core carries: what the core lacks is refused, and what does not fit its
memory."""

from __future__ import annotations

from typing import NamedTuple

from nagi_contracts.impairments.losses import LossPlan
from nagi_contracts.impairments.losses.bernoulli import BernoulliLossPlan
from nagi_contracts.impairments.losses.gilbert_elliott import GilbertElliottLossPlan
from nagi_contracts.impairments.losses.none import NoLossPlan
from nagi_contracts.impairments.losses.poisson import PoissonLossPlan
from nagi_contracts.impairments.markings.threshold import ThresholdMarkingPlan
from nagi_contracts.impairments.queues.drop_tail import DropTailPlan
from nagi_contracts.plan import DIRECTIONS, DirectionName, DirectionPlan, FpgaPlan
from nagi_contracts.units import in_bytes
from nagi_fpga.kinds import DEFAULT, KINDS, MAX_PACKETS, WORD_BYTES

from nagi.plan.directions import Directions
from nagi.plan.request import PlanRequest
from nagi.spec.links import Fpga, Link

_ETHERNET_HEADER = 14
_LOSSES = (NoLossPlan, BernoulliLossPlan, GilbertElliottLossPlan, PoissonLossPlan)
_ON_NAGI_LINK = "or write `emulator: link`"
# What the core has no part for: key -> why it is refused, and the cure.
_LACKING = {
    "burst": ("the FPGA's core has no token bucket", "remove it"),
    "rate_trace": ("the rate of the FPGA's core does not change", "give `rate`"),
    "delay_trace": ("the delay of the FPGA's core does not change", "give `delay`"),
    "jitter": ("the FPGA's core has no jitter", "remove it"),
    "keep_order": ("the FPGA's core always keeps packets in order", "remove it"),
    "arq": ("the FPGA's core has no ARQ", "remove it"),
    "corruption": ("the FPGA's core corrupts no packets", "remove it"),
    "duplication": ("the FPGA's core duplicates no packets", "remove it"),
    "reordering": ("the FPGA's core reorders no packets", "remove it"),
    "shaped_by": ("a switch cannot shape a link of the FPGA's", "remove it"),
}


class Memory(NamedTuple):
    """What one direction of a core can hold."""

    words: int  # of packets' bytes
    word_bytes: int  # a packet takes whole words
    packets: int  # descriptors

    @property
    def bytes(self) -> int:
        return self.words * self.word_bytes


# As link-emulator/fpga/simulation/core.hpp has it.
SIMULATED = Memory(words=1 << 18, word_bytes=64, packets=1 << 14)


def _memory_of(board: str) -> Memory:
    kind = KINDS[board]
    return Memory(kind.memory_bytes // WORD_BYTES, WORD_BYTES, MAX_PACKETS)


def _plan(fpga: Fpga) -> FpgaPlan:
    if fpga.by == "simulated":
        return FpgaPlan(by="simulated")
    return FpgaPlan(
        by="board",
        board=fpga.board or DEFAULT,
        address=fpga.address,
        serial=fpga.serial,
        cable=fpga.cable,
    )


class FpgaLinks:
    """The links that FPGAs carry. Raises InputError where one has settings that the core lacks."""

    def __init__(self, request: PlanRequest) -> None:
        self._request = request
        self.plans = {
            name: _plan(link.fpga or Fpga())
            for name, link in request.experiment.links.items()
            if self._is_fpga(name, link)
        }
        self._require_all_on_boards()
        self._require_networks()
        self._require_no_radios()

    def _require_no_radios(self) -> None:
        """nagi-sdr, which carries all links of a run with radios, knows no cores."""
        radios = [n for n, link in self._request.experiment.links.items() if link.emulator == "sdr"]
        if self.plans and radios:
            raise self._request.error(
                ("links", next(iter(self.plans)), "emulator"),
                f"an FPGA's link beside {radios[0]}, which is a radio",
                "write `emulator: link` at one of them",
            )

    def _require_networks(self) -> None:
        """Some boards have no room for control over a port."""
        for name, plan in self.plans.items():
            if plan.board is not None and plan.address and not KINDS[plan.board].has_network:
                raise self._request.error(
                    ("links", name, "fpga", "address"),
                    f"a {plan.board} is controlled by its UART alone",
                    "give `serial`, the device, in place of `address`",
                )

    def _require_all_on_boards(self) -> None:
        """Boards and nagi-link do not share a run: its records are of one or the other."""
        on_boards = [name for name, plan in self.plans.items() if plan.by == "board"]
        experiment = self._request.experiment
        others = [name for name in (*experiment.links, *experiment.media) if name not in on_boards]
        if on_boards and others:
            raise self._request.error(
                ("links", on_boards[0], "fpga", "by"),
                f"a board carries this link, and none carries {others[0]}",
                "give all links a board, or none",
            )
        places = [plan.serial or plan.address for plan in self.plans.values() if plan.by == "board"]
        for name, place in zip(on_boards, places, strict=True):
            if places.count(place) > 1:
                raise self._request.error(
                    ("links", name, "fpga"),
                    f"two links have the board at {place}",
                    "give each link a board of its own",
                )

    def _is_fpga(self, name: str, link: Link) -> bool:
        """Whether an FPGA carries a link. Refuses settings that the core has no part for."""
        if link.emulator != "fpga":
            if link.fpga is not None:
                raise self._request.error(
                    ("links", name, "fpga"),
                    "`fpga` on a link that is not `emulator: fpga`",
                    "write `emulator: fpga` at the link, or remove it",
                )
            return False
        for direction in DIRECTIONS:
            settings = self._request.settings(link, direction)
            for key, (what, cure) in _LACKING.items():
                if getattr(settings, key) not in (None, "emulator"):
                    place = self._request.place(name, direction, key)
                    raise self._request.error(place, what, f"{cure}, {_ON_NAGI_LINK}")
        return True

    def require_fit(self, directions: Directions) -> None:
        """Raises InputError where a direction does what the core cannot do, or holds more than its
        memory."""
        for link in self.plans:
            for name in DIRECTIONS:
                self._require_fit(link, name, directions.plans[link, name])

    def _require_fit(self, link: str, name: DirectionName, direction: DirectionPlan) -> None:
        problem = _what_is_lacking(direction)
        if problem is not None:
            key, what, cure = problem
            place = self._request.place(link, name, key)
            raise self._request.error(place, what, f"{cure}, {_ON_NAGI_LINK}")
        self._require_poisson(link, name, direction)
        self._require_port(link, name, direction)
        self._require_memory(link, name, direction)

    def _require_poisson(self, link: str, name: DirectionName, direction: DirectionPlan) -> None:
        """Some boards have no room for Poisson losses."""
        board = self.plans[link].board
        if (
            board is not None
            and not KINDS[board].has_poisson
            and isinstance(direction.loss, PoissonLossPlan)
        ):
            raise self._request.error(
                self._request.place(link, name, "loss"),
                f"the core of a {board} has no Poisson losses",
                f"use another board, another loss model, {_ON_NAGI_LINK}",
            )

    def _require_port(self, link: str, name: DirectionName, direction: DirectionPlan) -> None:
        """A board's port is no faster than its cable."""
        board = self.plans[link].board
        if board is not None and (direction.rate_bps or 0) > KINDS[board].port_bps:
            raise self._request.error(
                self._request.place(link, name, "rate"),
                f"the ports of a {board} have {KINDS[board].port_bps // 10**6} Mb/s",
                f"give less, {_ON_NAGI_LINK}",
            )

    def _require_memory(self, link: str, name: DirectionName, direction: DirectionPlan) -> None:
        plan = self.plans[link]
        memory = SIMULATED if plan.board is None else _memory_of(plan.board)
        if direction.rate_bps is None:
            if direction.delay_ns:
                raise self._request.error(
                    ("links", link, "emulator"),
                    f"without a rate {name} nothing bounds what is under way, and the core's "
                    "memory has an end",
                    f"give `rate`, {_ON_NAGI_LINK}",
                )
            return
        size = self._request.experiment.links[link].mtu_bytes
        waiting, packets = _waiting(direction, size)
        under_way = -(-direction.rate_bps * direction.delay_ns // (8 * 10**9))
        # A packet in transmission, one that comes in, and one that goes out.
        packets += under_way // (size + direction.overhead_bytes) + 3
        a_packet = -(-(size + _ETHERNET_HEADER) // memory.word_bytes) * memory.word_bytes
        needed = (waiting + under_way) * a_packet // size + 3 * a_packet
        if needed <= memory.bytes and packets <= memory.packets:
            return
        place = self._request.place(link, name, "queue" if waiting > under_way else "delay")
        raise self._request.error(
            place,
            f"what waits and what is under way {name} take up to {in_bytes(needed)} in {packets:,} "
            f"packets; the core's memory holds {in_bytes(memory.bytes)} in {memory.packets:,}",
            f"give a smaller queue, delay or rate, {_ON_NAGI_LINK}",
        )


def _waiting(direction: DirectionPlan, size: int) -> tuple[int, int]:
    """The most that may wait, in IP bytes and in packets of `size`; (0, 0): no limit says."""
    queue = direction.queue
    if queue is None:
        return 0, 0
    if queue.bytes is not None:
        return queue.bytes, -(-queue.bytes // size)
    packets = queue.packets or 0
    return packets * size, packets


def _what_is_lacking(direction: DirectionPlan) -> tuple[str, str, str] | None:
    """What the core does not do: key, why, and what would do. None: it does all."""
    if direction.queue is not None and not isinstance(direction.queue, DropTailPlan):
        what = f"the FPGA's core has no queue discipline {direction.queue.discipline}"
        return "queue", what, "give it `drop_tail`"
    mark = direction.mark
    if mark is not None and not (isinstance(mark, ThresholdMarkingPlan) and mark.weight == 1):
        what = "the FPGA's core marks by the queue itself, not by its average"
        return "mark", what, "give `weight: 1`"
    if not isinstance(direction.loss, _LOSSES):
        known = ", ".join(_name(each) for each in _LOSSES)
        what = f"the FPGA's core has no loss model {direction.loss.model}"
        return "loss", what, f"use {known}"
    return None


def _name(loss: type[LossPlan]) -> str:
    name: str = loss.model_fields["model"].default
    return name
