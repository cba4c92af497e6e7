# SPDX-License-Identifier: Apache-2.0
"""Shared media: IEEE 802.11 DCF among stations, as plans have it."""

from __future__ import annotations

import math
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from nagi_contracts import paths
from nagi_contracts.base import Contract, PlainName, is_empty, is_none
from nagi_contracts.impairments.losses import LossPlan
from nagi_contracts.impairments.losses.bernoulli import BernoulliLossPlan
from nagi_contracts.impairments.losses.none import NoLossPlan
from nagi_contracts.impairments.queues import QueuePlan

PhyName = Literal["802.11a", "802.11b", "802.11g"]
Preamble = Literal["long", "short"]
EifsAfter = Literal["frames", "signals"]

FRAMING_BYTES = 36  # of an IP packet: MAC header, FCS, LLC and SNAP
RTS_BYTES, CTS_BYTES, ACK_BYTES = 20, 14, 14


class Phy(BaseModel):
    """The times of a PHY, in ns."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    clause: str
    slot_ns: int
    sifs_ns: int
    preamble_ns: int  # with the PHY's header: until the first bit of the MPDU
    short_preamble_ns: int  # 0: the PHY has none
    symbol_ns: int  # the MPDU takes whole ones
    service_and_tail_bits: int
    extension_ns: int
    cw_min: int
    cw_max: int
    rates_bps: list[int]

    @property
    def difs_ns(self) -> int:
        return self.sifs_ns + 2 * self.slot_ns


@cache
def phys() -> dict[str, Phy]:
    """Every PHY: link-emulator/model/medium/phys.json, of which nagi-link is made, too. The file is
    nagi's own: it is taken to be right."""
    return TypeAdapter(dict[str, Phy]).validate_json(paths.PHYS.read_bytes())


def mac_address(number: int, index: int) -> str:
    """A locally administered address of an interface: the link's or medium's number, and the
    index of its end or station."""
    return f"02:6e:67:{number >> 8:02x}:{number & 0xFF:02x}:{index + 1:02x}"


Position = tuple[float, float]


def distance_squared(one: Position, other: Position) -> float:
    """In m^2, as nagi-link compares distances."""
    return (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2


class RangeReach(Contract):
    """Who hears whom follows from distances, as in ns-2."""

    by: Literal["ranges"] = "ranges"
    transmission_m: float = Field(description="up to which frames are decoded")
    carrier_sense_m: float = Field(description="up to which the medium is sensed busy")
    interference_m: float = Field(description="up to which frames collide with others")
    capture_db: float | None = Field(
        None, description="by which the stronger of two frames is received all the same; null: none"
    )

    def decodes(self, squared: float) -> bool:
        """At the square of a distance, in m^2."""
        return squared <= self.transmission_m**2

    def senses(self, squared: float) -> bool:
        """The same."""
        return squared <= self.carrier_sense_m**2


class SinrReach(Contract):
    """Who hears whom follows from powers: log-distance path loss, noise, and a threshold of
    SINR."""

    by: Literal["sinr"] = "sinr"
    tx_power_dbm: float
    path_loss_exponent: float
    reference_loss_db: float = Field(description="path loss at a distance of 1 m, and nearer")
    noise_dbm: float
    sensitivity_dbm: float = Field(description="power from which on frames are decoded")
    carrier_sense_dbm: float = Field(description="power from which on the medium is sensed busy")
    capture_db: float = Field(description="SINR from which on a frame is received")
    preamble_db: float = Field(description="SINR from which on a frame's preamble is found")

    @model_validator(mode="before")
    @classmethod
    def _read_earlier_plans(cls, values: Any) -> Any:
        """Plans of earlier versions have one threshold for both."""
        if isinstance(values, dict) and "capture_db" in values:
            return {"preamble_db": values["capture_db"], **values}
        return values

    def power_dbm(self, squared: float) -> float:
        """The power received at the square of a distance, in m^2."""
        decades = math.log10(max(squared, 1)) / 2
        return self.tx_power_dbm - self.reference_loss_db - 10 * self.path_loss_exponent * decades

    def decodes(self, squared: float) -> bool:
        """At the square of a distance, in m^2."""
        power = self.power_dbm(squared)
        return power >= self.sensitivity_dbm and power - self.noise_dbm >= self.capture_db

    def senses(self, squared: float) -> bool:
        """The same."""
        return self.power_dbm(squared) >= self.carrier_sense_dbm


class MatrixReach(Contract):
    """Who hears whom is given: [sender][receiver], in the order of the stations."""

    by: Literal["matrix"] = "matrix"
    decodes: list[list[bool]] = Field(description="at whom frames are decoded")
    senses: list[list[bool]] = Field(description="at whom the medium is sensed busy")
    interferes: list[list[bool]] = Field(description="at whom frames collide with others")


ReachPlan = Annotated[RangeReach | SinrReach | MatrixReach, Field(discriminator="by")]


class StationPlan(Contract):
    """A node's interface on a medium."""

    node: str
    address: str = Field(description="of the node's interface on this medium, with prefix length")
    mac: str = Field(description="of that interface, where the lab chooses it")
    position_m: Position | None = Field(
        None, exclude_if=is_none, description="at the start; null: reach is a matrix"
    )
    trace: list[tuple[int, float, float]] = Field(
        [],
        exclude_if=is_empty,
        description="(instant in ns from the start of the run, x and y in m from then on)",
    )

    def position_at(self, at_ns: int) -> Position:
        """Where it is at an instant."""
        assert self.position_m is not None
        found = self.position_m
        for start, x, y in self.trace:
            if start <= at_ns:
                found = (x, y)
        return found


class MediumTimes(Contract):
    """When the frames of a medium are on the air."""

    phy: PhyName
    preamble: Preamble | None = Field(description="of 802.11b; null: the PHY has one")
    data_rate_bps: int
    basic_rate_bps: int = Field(description="of RTS, CTS, ACK and broadcasts")
    rts_threshold_bytes: int | None = Field(
        description="longer MPDUs are preceded by RTS and CTS; null: none are"
    )

    def frame_ns(self, mpdu_bytes: int, rate_bps: int) -> int:
        """How long a frame is on the air."""
        phy = phys()[self.phy]
        preamble = phy.short_preamble_ns if self.preamble == "short" else phy.preamble_ns
        bits = phy.service_and_tail_bits + 8 * mpdu_bytes
        symbols = -(-bits * 10**9 // (rate_bps * phy.symbol_ns))
        return preamble + symbols * phy.symbol_ns + phy.extension_ns

    def exchange_ns(self, ip_bytes: int) -> int:
        """How long an undisturbed exchange takes: DIFS, RTS, CTS, the packet and ACK, without
        backoff."""
        phy, mpdu = phys()[self.phy], ip_bytes + FRAMING_BYTES
        answered = [self.frame_ns(mpdu, self.data_rate_bps)]
        if self.has_rts(ip_bytes):
            answered += [
                phy.sifs_ns + self.frame_ns(each, self.basic_rate_bps)
                for each in (RTS_BYTES, CTS_BYTES)
            ]
        ack = phy.sifs_ns + self.frame_ns(ACK_BYTES, self.basic_rate_bps)
        return phy.difs_ns + sum(answered) + ack

    def has_rts(self, ip_bytes: int) -> bool:
        """Return whether RTS and CTS come before a packet."""
        threshold = self.rts_threshold_bytes
        return threshold is not None and ip_bytes + FRAMING_BYTES > threshold


class MediumPlan(MediumTimes):
    """A medium; nagi-link takes it as it stands, with each station's `interface` and `name` in
    place of `node` and `address`, and without what is null."""

    name: PlainName
    id: int = Field(description="names the medium in random draws; those of links come before")
    short_retry_limit: int
    long_retry_limit: int
    cw_min: int
    cw_max: int
    queue: QueuePlan = Field(description="of each station")
    loss: LossPlan = Field(NoLossPlan(), description="of every frame, where it would be received")
    resets_nav: bool = Field(description="whether a NAV set by an RTS ends if nothing follows")
    eifs_after: EifsAfter = Field(
        description="frames: after frames with errors; signals: also after what was only sensed"
    )
    monitor: PlainName | None = Field(
        description="file of a capture of all frames on the air; null: none is made"
    )
    reach: ReachPlan
    stations: list[StationPlan]

    def mean_sending_ns(self, ip_bytes: int) -> float:
        """Return how long it takes in the mean to send a packet if nobody else sends: tries, and
        backoffs before all but the first.

        The window doubles with each try; that a CTS resets it is left out, so it takes no longer.
        Where the model does not give a frame's loss by itself, half of all tries are taken to fail.
        """
        exchange_ns = float(self.exchange_ns(ip_bytes))
        if isinstance(self.loss, NoLossPlan):
            return exchange_ns
        has_rts, failing = self.has_rts(ip_bytes), 0.5
        if isinstance(self.loss, BernoulliLossPlan):
            failing = 1 - (1 - self.loss.probability) ** (4 if has_rts else 2)
        short, long = self.short_retry_limit, self.long_retry_limit
        tries = short * long if has_rts else max(short, long)
        mean_ns, reached, window = 0.0, 1.0, self.cw_min
        for number in range(tries):
            backoff_ns = phys()[self.phy].slot_ns * window / 2 if number else 0.0
            mean_ns += reached * (exchange_ns + backoff_ns)
            reached *= failing
            window = min(2 * window + 1, self.cw_max)
        return mean_ns

    def station(self, node: str) -> StationPlan:
        return next(station for station in self.stations if station.node == node)

    def decodes(self, sender: str, receiver: str, at_ns: int = 0) -> bool:
        """Whether a station's frames are decoded at another, if nothing disturbs them."""
        if isinstance(self.reach, MatrixReach):
            return self.reach.decodes[self._index(sender)][self._index(receiver)]
        return sender != receiver and self.reach.decodes(self._squared(sender, receiver, at_ns))

    def in_reach(self, at_ns: int = 0) -> dict[str, list[str]]:
        """Station -> those with which it can exchange frames: each decodes the other's."""
        if isinstance(self.reach, MatrixReach):
            heard = self.reach.decodes
        else:
            places = [station.position_at(at_ns) for station in self.stations]
            heard = [
                [self.reach.decodes(distance_squared(one, other)) for other in places]
                for one in places
            ]
        return {
            one.node: [
                other.node
                for j, other in enumerate(self.stations)
                if i != j and heard[i][j] and heard[j][i]
            ]
            for i, one in enumerate(self.stations)
        }

    def senses(self, sender: str, receiver: str, at_ns: int = 0) -> bool:
        """Whether the medium is sensed busy at a station while another sends."""
        if isinstance(self.reach, MatrixReach):
            return self.reach.senses[self._index(sender)][self._index(receiver)]
        return sender != receiver and self.reach.senses(self._squared(sender, receiver, at_ns))

    def _index(self, node: str) -> int:
        return next(i for i, station in enumerate(self.stations) if station.node == node)

    def _squared(self, one: str, other: str, at_ns: int) -> float:
        first, second = (self.station(node).position_at(at_ns) for node in (one, other))
        return distance_squared(first, second)
