# SPDX-License-Identifier: Apache-2.0
"""Directions of links: queues, marking, losses and ARQ, beside rate and delay."""

from __future__ import annotations

from functools import partial

from nagi_contracts.bounds import whole
from nagi_contracts.plan import WAYS, ArqPlan, DirectionPlan, LossPlan, MarkPlan, QueueLimit, Way
from nagi_contracts.units import BdpCount, Bitrate, ByteCount, Duration, PacketCount, QueueSize

from nagi.plan.channels import Channels
from nagi.plan.flows import Crossing
from nagi.plan.radio_links import RadioLinks
from nagi.plan.request import PlanRequest
from nagi.plan.shaping import Impossible, of_emulator, of_switch
from nagi.plan.trace_files import trace_file
from nagi.spec.links import (
    BernoulliBitLoss,
    BernoulliLoss,
    DirectionSettings,
    GilbertElliottLoss,
    MarkovLoss,
    PoissonLoss,
    TraceLoss,
)


class Directions:
    """What each direction of each link does, and which part of it a switch does."""

    def __init__(
        self,
        request: PlanRequest,
        radios: RadioLinks,
        channels: Channels,
        crossings: dict[str, Crossing],
    ) -> None:
        self._request = request
        self._radios = radios
        self._channels = channels
        self._crossings = crossings
        self.plans = {
            (name, way): request.memo.of(
                partial(self._direction, name, way),
                ("direction", name, way, crossings[name]),
                link,
                channels[name, way],
            )
            for name, link in request.experiment.links.items()
            for way in WAYS
        }

    def part_of_switch(self, link: str, way: Way) -> DirectionPlan:
        try:
            return of_switch(self.plans[link, way], self._request.switch)
        except Impossible as problem:
            place = self._request.place(link, way, problem.key)
            raise self._request.error(place, problem.what, problem.cure) from None

    def part_of_emulator(self, link: str, way: Way) -> DirectionPlan:
        whole = self.plans[link, way]
        return of_emulator(whole) if self._request.is_shaped_by_switch(link, way) else whole

    def _direction(self, link: str, way: Way) -> DirectionPlan:
        settings = self._request.settings(self._request.experiment.links[link], way)
        return self._channels[link, way].model_copy(
            update={
                "queue": self._queue(link, way, settings),
                "mark": self._mark(link, way, settings),
                "loss": self._loss(link, way, settings),
                "arq": self._arq(link, way, settings),
            }
        )

    def _arq(self, link: str, way: Way, settings: DirectionSettings) -> ArqPlan | None:
        arq = settings.arq
        if arq is None:
            return None
        if settings.shaped_by == "switch":
            raise self._request.error(
                self._request.place(link, way, "arq"),
                "ARQ is the emulator's and does not see what a switch loses",
                "remove it, or write `shaped_by: emulator`",
            )
        if settings.loss is not None and getattr(settings.loss, "at", "egress") == "ingress":
            raise self._request.error(
                self._request.place(link, way, "arq"),
                "ARQ does not see losses at ingress, which come before the first transmission",
                "remove `at: ingress`, or `arq`",
            )
        return ArqPlan(retries=arq.retries, feedback_ns=arq.feedback.value)

    def _queue(self, link: str, way: Way, settings: DirectionSettings) -> QueueLimit | None:
        if settings.queue is None:
            return None
        return self._limit(link, way, settings.queue, "queue")

    def _mark(self, link: str, way: Way, settings: DirectionSettings) -> MarkPlan | None:
        if settings.mark is None:
            return None
        threshold = self._limit(link, way, settings.mark.threshold, "mark")
        return MarkPlan(
            threshold_packets=threshold.packets,
            threshold_bytes=threshold.bytes,
            weight=settings.mark.weight.value,
        )

    def _limit(self, link: str, way: Way, size: QueueSize, key: str) -> QueueLimit:
        """A size of a direction's queue in packets or bytes; `key` is what asks for it."""
        place = self._request.place(link, way, key)
        rate = self._request.rate_bps(self._channels[link, way])
        if rate is None:
            raise self._request.error(
                place, f"`{key}` on a link without a rate", "give the link a rate"
            )
        limit = size.limit
        if isinstance(limit, PacketCount):
            return QueueLimit(packets=limit.value)
        if isinstance(limit, ByteCount):
            return QueueLimit(bytes=limit.value)
        assert isinstance(limit, BdpCount)
        crossing = self._crossings[link]
        if not crossing.base_rtt_ns or crossing.packet is None:
            why = (
                "no flow crosses this link" if crossing.packet is None else "the path has no delay"
            )
            what = f"`{key}` in bandwidth-delay products, but {why}"
            raise self._request.error(place, what, "give it in packets, like '20 packets'")
        rtt, packet = Duration(crossing.base_rtt_ns), ByteCount(crossing.packet)
        packets = limit.packets(Bitrate(rate), rtt, packet)
        _, most = whole("queue_packets" if key == "queue" else "mark_threshold_packets")
        if packets > most:
            what = f"{limit} at {Bitrate(rate)} and {rtt} is {packets} packets of {packet}"
            raise self._request.error(place, what, f"give less: at most {most} packets")
        return QueueLimit(packets=packets)

    def _loss(self, link: str, way: Way, settings: DirectionSettings) -> LossPlan:
        if link in self._radios.plans:
            return LossPlan(model="radio")
        loss = settings.loss
        place = self._request.place(link, way, "loss")
        if isinstance(loss, BernoulliLoss):
            return LossPlan(model="bernoulli", probability=loss.rate.value, at=loss.at)
        if isinstance(loss, BernoulliBitLoss):
            return LossPlan(model="bernoulli_bit", bit_error_rate=loss.rate.value, at=loss.at)
        if isinstance(loss, GilbertElliottLoss):
            return LossPlan(
                model="gilbert_elliott",
                good_to_bad=loss.good_to_bad.value,
                bad_to_good=loss.bad_to_good.value,
                loss_in_good=loss.loss_in_good.value,
                loss_in_bad=loss.loss_in_bad.value,
                at=loss.at,
            )
        if isinstance(loss, MarkovLoss):
            return LossPlan(
                model="markov",
                good_sojourn_ns=loss.good.value,
                bad_sojourn_ns=loss.bad.value,
                loss_in_good=loss.loss_in_good.value,
                loss_in_bad=loss.loss_in_bad.value,
                at=loss.at,
            )
        if isinstance(loss, TraceLoss):
            trace = trace_file(self._request, place, loss.file, "loss")
            assert isinstance(trace, LossPlan)
            return trace.model_copy(update={"at": loss.at})
        if isinstance(loss, PoissonLoss):
            if settings.rate_trace is not None:
                raise self._request.error(
                    place,
                    "Poisson loss on a link with a rate_trace",
                    "give the link a constant rate, or use loss model markov or bernoulli",
                )
            if settings.rate is None:
                raise self._request.error(
                    place, "Poisson loss on a link without a rate", "give the link a rate"
                )
            packet = loss.packet.value if loss.packet else self._crossings[link].packet
            if packet is None:
                raise self._request.error(
                    place,
                    "Poisson loss without a packet size: no flow crosses this link",
                    "add the size of a full-size packet: `packet: 1500 bytes`",
                )
            return LossPlan(
                model="poisson",
                packet_loss_rate=loss.rate.value,
                packet_bytes=packet,
                at=loss.at,
            )
        return LossPlan(model="none")

    def longest_queueing_s(self) -> float:
        """How long the last packet of any full queue waits, transmissions again included."""
        longest = 0.0
        for (link, _), direction in self.plans.items():
            rate = self._request.rate_bps(direction)
            if direction.queue is None or rate is None:
                continue
            packet = self._crossings[link].packet or 0
            waiting = direction.queue.bytes or (direction.queue.packets or 0) * packet
            if link in self._radios.plans:
                waiting += (direction.queue.packets or 0) * direction.overhead_bytes
            drained = waiting * 8 / rate
            if direction.arq is not None:
                drained *= 1 + direction.arq.retries
                drained += direction.arq.retries * direction.arq.feedback_ns / 1e9
            longest = max(longest, drained)
        return longest
