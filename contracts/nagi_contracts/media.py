# SPDX-License-Identifier: Apache-2.0
"""Plans of shared media: IEEE 802.11 DCF among stations."""

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

FRAMING_BYTES = 36  # added to an IP packet: MAC header, FCS, LLC and SNAP
RTS_BYTES, CTS_BYTES, ACK_BYTES = 20, 14, 14


class Phy(BaseModel):
    """The durations, contention windows and rates of a PHY (physical layer of IEEE 802.11)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    clause: str
    slot_ns: int
    sifs_ns: int
    preamble_ns: int  # preamble and PHY header: the time until the first bit of the MPDU
    short_preamble_ns: int  # 0 if the PHY has none
    symbol_ns: int  # an MPDU takes a whole number of symbols
    service_and_tail_bits: int
    extension_ns: int
    cw_min: int
    cw_max: int
    rates_bps: list[int]

    @property
    def difs_ns(self) -> int:
        return self.sifs_ns + 2 * self.slot_ns


@cache
def load_phys() -> dict[str, Phy]:
    """Return the PHYs in link-emulator/model/medium/phys.json, by name.

    nagi-link is compiled with this file. The file is part of nagi, and therefore assumed to be
    correct.
    """
    return TypeAdapter(dict[str, Phy]).validate_json(paths.PHYS.read_bytes())


def make_mac_address(number: int, index: int) -> str:
    """Make a locally administered MAC address for an end of a link or a station of a medium.

    Args:
        number: The id of the link or medium.
        index: The index of the link's end, or of the medium's station, from 0.
    """
    return f"02:6e:67:{number >> 8:02x}:{number & 0xFF:02x}:{index + 1:02x}"


Position = tuple[float, float]  # x and y in m


def distance_squared(one: Position, other: Position) -> float:
    """Return the square of the distance between two positions, in m^2.

    nagi-link also compares squares, so both programs get the same results.
    """
    return (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2


class RangeReach(Contract):
    """Limits of distance that decide which stations receive or sense each other, as in ns-2."""

    by: Literal["ranges"] = "ranges"
    transmission_m: float = Field(description="distance up to which frames are decoded")
    carrier_sense_m: float = Field(description="distance up to which the medium is sensed busy")
    interference_m: float = Field(description="distance up to which frames collide with others")
    capture_db: float | None = Field(
        None,
        description="power ratio from which the stronger of two colliding frames is received; "
        "null: no capture",
    )

    def decodes(self, squared: float) -> bool:
        """Return whether frames are decoded at a distance whose square is `squared`, in m^2."""
        return squared <= self.transmission_m**2

    def senses(self, squared: float) -> bool:
        """Return whether the medium is sensed busy at a distance with square `squared`, in m^2."""
        return squared <= self.carrier_sense_m**2


class SinrReach(Contract):
    """A model of received power (log-distance path loss) and SINR that decides about reception."""

    by: Literal["sinr"] = "sinr"
    tx_power_dbm: float
    path_loss_exponent: float
    reference_loss_db: float = Field(description="path loss at distances up to 1 m")
    noise_dbm: float
    sensitivity_dbm: float = Field(description="smallest power at which frames are decoded")
    carrier_sense_dbm: float = Field(description="smallest power at which the medium is busy")
    capture_db: float = Field(description="smallest SINR at which a frame is received")
    preamble_db: float = Field(description="smallest SINR at which a frame's preamble is detected")

    @model_validator(mode="before")
    @classmethod
    def _read_earlier_plans(cls, values: Any) -> Any:
        """Complete plans of earlier versions, in which `capture_db` also applies to preambles."""
        if isinstance(values, dict) and "capture_db" in values:
            return {"preamble_db": values["capture_db"], **values}
        return values

    def power_dbm(self, squared: float) -> float:
        """Return the power in dBm received at a distance whose square is `squared`, in m^2."""
        decades = math.log10(max(squared, 1)) / 2
        return self.tx_power_dbm - self.reference_loss_db - 10 * self.path_loss_exponent * decades

    def decodes(self, squared: float) -> bool:
        """Return whether frames are decoded at a distance whose square is `squared`, in m^2."""
        power = self.power_dbm(squared)
        return power >= self.sensitivity_dbm and power - self.noise_dbm >= self.capture_db

    def senses(self, squared: float) -> bool:
        """Return whether the medium is sensed busy at a distance with square `squared`, in m^2."""
        return self.power_dbm(squared) >= self.carrier_sense_dbm


class MatrixReach(Contract):
    """Matrices [sender][receiver] that say which stations receive or sense each other.

    Rows and columns have the order of the medium's stations.
    """

    by: Literal["matrix"] = "matrix"
    decodes: list[list[bool]] = Field(
        description="whether the receiver decodes the sender's frames"
    )
    senses: list[list[bool]] = Field(
        description="whether the receiver senses the medium busy while the sender sends"
    )
    interferes: list[list[bool]] = Field(
        description="whether the sender's frames collide with others at the receiver"
    )


ReachPlan = Annotated[RangeReach | SinrReach | MatrixReach, Field(discriminator="by")]


class StationPlan(Contract):
    """A node's interface on a medium."""

    node: str
    address: str = Field(
        description="IP address of the node's interface on this medium, with prefix length"
    )
    mac: str = Field(description="MAC address of the interface, in labs that choose it")
    position_m: Position | None = Field(
        None, exclude_if=is_none, description="position at the start; null: reach is a matrix"
    )
    trace: list[tuple[int, float, float]] = Field(
        [],
        exclude_if=is_empty,
        description="(instant in ns from the start of the run, x and y in m from then on)",
    )

    def position_at(self, at_ns: int) -> Position:
        """Return the station's position at an instant, in ns from the start of the run."""
        assert self.position_m is not None
        position = self.position_m
        for start, x, y in self.trace:
            if start <= at_ns:
                position = (x, y)
        return position


class MediumTimes(Contract):
    """The settings of a medium that decide the durations of its frames."""

    phy: PhyName
    preamble: Preamble | None = Field(description="preamble of 802.11b; null: the PHY has only one")
    data_rate_bps: int
    basic_rate_bps: int = Field(description="rate of RTS, CTS, ACK and broadcasts")
    rts_threshold_bytes: int | None = Field(
        description="RTS and CTS precede longer MPDUs; null: no RTS and CTS"
    )

    def frame_ns(self, mpdu_bytes: int, rate_bps: int) -> int:
        """Return the duration of a frame in ns, with its preamble and the PHY's extension."""
        phy = load_phys()[self.phy]
        preamble = phy.short_preamble_ns if self.preamble == "short" else phy.preamble_ns
        bits = phy.service_and_tail_bits + 8 * mpdu_bytes
        symbols = -(-bits * 10**9 // (rate_bps * phy.symbol_ns))
        return preamble + symbols * phy.symbol_ns + phy.extension_ns

    def exchange_ns(self, ip_bytes: int) -> int:
        """Return the duration in ns of an IP packet's frame exchange without losses or collisions.

        The exchange consists of DIFS, RTS and CTS if the threshold requires them, the packet, its
        ACK, and the SIFS between these frames. There is no backoff.
        """
        phy, mpdu = load_phys()[self.phy], ip_bytes + FRAMING_BYTES
        frames_ns = self.frame_ns(mpdu, self.data_rate_bps)
        if self.has_rts(ip_bytes):
            for control_bytes in (RTS_BYTES, CTS_BYTES):
                frames_ns += phy.sifs_ns + self.frame_ns(control_bytes, self.basic_rate_bps)
        ack_ns = phy.sifs_ns + self.frame_ns(ACK_BYTES, self.basic_rate_bps)
        return phy.difs_ns + frames_ns + ack_ns

    def has_rts(self, ip_bytes: int) -> bool:
        """Return whether RTS and CTS precede an IP packet of this size."""
        threshold = self.rts_threshold_bytes
        return threshold is not None and ip_bytes + FRAMING_BYTES > threshold


class MediumPlan(MediumTimes):
    """A medium, in the format of nagi-link's configuration.

    The configuration differs in this: null values are left out, and each station has `interface`
    and `name` in place of `node` and `address`.
    """

    name: PlainName
    id: int = Field(
        description="identifies the medium in random draws; the ids of media follow those of links"
    )
    short_retry_limit: int
    long_retry_limit: int
    cw_min: int
    cw_max: int
    queue: QueuePlan = Field(description="queue of each station")
    loss: LossPlan = Field(
        NoLossPlan(), description="losses of all frames at receivers that would decode them"
    )
    resets_nav: bool = Field(
        description="whether a NAV set by an RTS ends if no frame follows the RTS"
    )
    eifs_after: EifsAfter = Field(
        description="when EIFS replaces DIFS. frames: after frames with errors; signals: also "
        "after signals that were only sensed"
    )
    monitor: PlainName | None = Field(
        description="file of the capture of all frames on the air; null: no such capture"
    )
    reach: ReachPlan
    stations: list[StationPlan]

    def mean_sending_ns(self, ip_bytes: int) -> float:
        """Return an upper estimate of the mean time to send an IP packet if no other station sends.

        The time, in ns, consists of all attempts and of the backoffs between them. Without losses,
        there is one attempt. The estimate doubles the contention window with each attempt. In fact
        a CTS resets the window, so the actual time is shorter. For loss models other than
        Bernoulli, half of all attempts are assumed to fail.
        """
        exchange_ns = float(self.exchange_ns(ip_bytes))
        if isinstance(self.loss, NoLossPlan):
            return exchange_ns
        has_rts, failure_probability = self.has_rts(ip_bytes), 0.5
        if isinstance(self.loss, BernoulliLossPlan):
            failure_probability = 1 - (1 - self.loss.probability) ** (4 if has_rts else 2)
        short, long = self.short_retry_limit, self.long_retry_limit
        attempts = short * long if has_rts else max(short, long)
        mean_ns, attempt_probability, window = 0.0, 1.0, self.cw_min
        for number in range(attempts):
            backoff_ns = load_phys()[self.phy].slot_ns * window / 2 if number else 0.0
            mean_ns += attempt_probability * (exchange_ns + backoff_ns)
            attempt_probability *= failure_probability
            window = min(2 * window + 1, self.cw_max)
        return mean_ns

    def station(self, node: str) -> StationPlan:
        """Return the station of a node, which must be on this medium."""
        return next(station for station in self.stations if station.node == node)

    def decodes(self, sender: str, receiver: str, at_ns: int = 0) -> bool:
        """Return whether `receiver` decodes the frames of `sender` while no other station sends.

        Args:
            sender: The node that sends.
            receiver: The node that receives.
            at_ns: The instant, in ns from the start of the run.
        """
        if isinstance(self.reach, MatrixReach):
            return self.reach.decodes[self._index(sender)][self._index(receiver)]
        squared = self._distance_squared(sender, receiver, at_ns)
        return sender != receiver and self.reach.decodes(squared)

    def list_neighbours(self, at_ns: int = 0) -> dict[str, list[str]]:
        """Return node -> its neighbours, in the order of the medium's stations.

        Two nodes are neighbours if each decodes the other's frames.

        Args:
            at_ns: The instant, in ns from the start of the run.
        """
        if isinstance(self.reach, MatrixReach):
            decodes = self.reach.decodes
        else:
            positions = [station.position_at(at_ns) for station in self.stations]
            decodes = [
                [self.reach.decodes(distance_squared(one, other)) for other in positions]
                for one in positions
            ]
        return {
            one.node: [
                other.node
                for j, other in enumerate(self.stations)
                if i != j and decodes[i][j] and decodes[j][i]
            ]
            for i, one in enumerate(self.stations)
        }

    def senses(self, sender: str, receiver: str, at_ns: int = 0) -> bool:
        """Return whether `receiver` senses the medium busy while `sender` sends.

        Args:
            sender: The node that sends.
            receiver: The node that senses the medium.
            at_ns: The instant, in ns from the start of the run.
        """
        if isinstance(self.reach, MatrixReach):
            return self.reach.senses[self._index(sender)][self._index(receiver)]
        squared = self._distance_squared(sender, receiver, at_ns)
        return sender != receiver and self.reach.senses(squared)

    def _index(self, node: str) -> int:
        return next(i for i, station in enumerate(self.stations) if station.node == node)

    def _distance_squared(self, one: str, other: str, at_ns: int) -> float:
        first, second = (self.station(node).position_at(at_ns) for node in (one, other))
        return distance_squared(first, second)
