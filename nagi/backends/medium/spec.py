# SPDX-License-Identifier: Apache-2.0
"""Define the settings of shared media: stations, 802.11's PHY and MAC, reach, and routes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal, Self

from nagi_contracts.base import Flag, Strict, Whole
from nagi_contracts.bounds import get_integer_range, get_number_range
from nagi_contracts.errors import BadValue, suggest
from nagi_contracts.impairments.losses import Loss
from nagi_contracts.impairments.queues import Queue
from nagi_contracts.impairments.queues.base import make_packet_limit
from nagi_contracts.impairments.queues.drop_tail import DropTail
from nagi_contracts.media import (
    EifsAfter,
    MatrixReach,
    Phy,
    PhyName,
    Preamble,
    RangeReach,
    ReachPlan,
    SinrReach,
    load_phys,
)
from nagi_contracts.units import (
    Bitrate,
    Power,
    PowerRatio,
    Range,
    RtsThreshold,
)
from pydantic import Field, model_validator

from nagi.backends.keys import Keys, SectionKey
from nagi.spec.base import MAX_ENDS, Name
from nagi.spec.shared_media import Station

MIN_RETRY_LIMIT, MAX_RETRY_LIMIT = get_integer_range("retry_limit")
MIN_CW, MAX_CW = get_integer_range("contention_window")
MIN_EXPONENT, MAX_EXPONENT = get_number_range("path_loss_exponent")
MIN_STATIONS = 2

ContentionWindow = Annotated[Whole, Field(ge=MIN_CW, le=MAX_CW)]
_PREAMBLE_DB = 4  # the SINR at which preambles are detected is lower than most data rates need
_BY = "ranges: by distance; sinr: by path loss and noise; matrix: by a list of stations"


class Ranges(Strict):
    """Reach by distance, as in ns-2."""

    by: Literal["ranges"] = Field("ranges", description=_BY)
    transmission: Range = Field(Range(250), description="distance up to which frames are decoded")
    carrier_sense: Range = Field(
        Range(550), description="distance up to which the medium is sensed busy"
    )
    interference: Range | None = Field(
        None,
        description="distance up to which a frame disturbs the reception of other frames; "
        "carrier_sense if not given",
    )
    capture: PowerRatio | None = Field(
        None,
        description="power ratio from which on the stronger of two colliding frames is received; "
        "if not given, neither frame is received",
    )

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.carrier_sense.value < self.transmission.value:
            raise BadValue(
                f"a carrier_sense of {self.carrier_sense} is less than a transmission of "
                f"{self.transmission}, but a station that decodes a frame also senses it",
                f"give {self.transmission} or more",
                "carrier_sense",
            )
        return self

    def to_plan(self, names: list[str]) -> ReachPlan:
        """Return the plan. The argument `names` is not used."""
        interference = self.carrier_sense if self.interference is None else self.interference
        return RangeReach(
            transmission_m=self.transmission.value,
            carrier_sense_m=self.carrier_sense.value,
            interference_m=interference.value,
            capture_db=self.capture.value if self.capture else None,
        )


class Sinr(Strict):
    """Reach by path loss, noise and a minimum SINR."""

    by: Literal["sinr"] = Field(description=_BY)
    tx_power: Power = Field(Power(16), description="transmission power of every station")
    path_loss_exponent: float = Field(
        3,
        ge=MIN_EXPONENT,
        le=MAX_EXPONENT,
        allow_inf_nan=False,
        description="exponent of the distance in the path loss",
    )
    reference_loss: PowerRatio = Field(PowerRatio(46.7), description="path loss at 1 m")
    noise: Power = Field(
        Power(-94), description="noise of every receiver, in the channel's bandwidth"
    )
    sensitivity: Power = Field(Power(-82), description="power from which on frames are decoded")
    carrier_sense: Power = Field(
        Power(-82), description="power from which on the medium is sensed busy"
    )
    capture: PowerRatio = Field(
        PowerRatio(10), description="SINR from which on a frame is received"
    )
    preamble: PowerRatio | None = Field(
        None,
        description="SINR from which on a frame's preamble is detected; at most `capture`; if not "
        "given, 4 dB or `capture`, whichever is less",
    )

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.carrier_sense.value > self.sensitivity.value:
            raise BadValue(
                f"a carrier_sense of {self.carrier_sense} is more than a sensitivity of "
                f"{self.sensitivity}, but a station that decodes a frame also senses it",
                f"give {self.sensitivity} or less",
                "carrier_sense",
            )
        return self

    @model_validator(mode="after")
    def _check_preamble(self) -> Self:
        if self.preamble is not None and self.preamble.value > self.capture.value:
            raise BadValue(
                f"a preamble of {self.preamble} is more than a capture of {self.capture}, but a "
                "frame is received only if its preamble is detected",
                f"give {self.capture} or less",
                "preamble",
            )
        return self

    def to_plan(self, names: list[str]) -> ReachPlan:
        """Return the plan. The argument `names` is not used."""
        preamble_db = min(_PREAMBLE_DB, self.capture.value)
        if self.preamble is not None:
            preamble_db = self.preamble.value
        return SinrReach(
            tx_power_dbm=self.tx_power.value,
            path_loss_exponent=self.path_loss_exponent,
            reference_loss_db=self.reference_loss.value,
            noise_dbm=self.noise.value,
            sensitivity_dbm=self.sensitivity.value,
            carrier_sense_dbm=self.carrier_sense.value,
            capture_db=self.capture.value,
            preamble_db=preamble_db,
        )


class Matrix(Strict):
    """Reach by lists of stations."""

    by: Literal["matrix"] = Field(description=_BY)
    decodes: dict[Name, list[Name]] = Field(
        description="sender -> stations at which its frames are decoded"
    )
    senses: dict[Name, list[Name]] = Field(
        {},
        description="sender -> further stations that sense its frames, but do not decode them",
    )
    interferes: dict[Name, list[Name]] = Field(
        {},
        description="sender -> further stations where its frames disturb the reception of other "
        "frames, but are not decoded",
    )

    def check_stations(self, names: Collection[str]) -> None:
        """Check that the lists contain only stations, and no sender in its own list.

        Args:
            names: The names of all stations of the medium.

        Raises:
            BadValue: A list contains another name, or the name of its sender.
        """
        for key in ("decodes", "senses", "interferes"):
            for sender, receivers in getattr(self, key).items():
                for name in (sender, *receivers):
                    if name not in names:
                        message = f"there is no station {name}"
                        key_path = f"reach.{key}.{sender}"
                        raise BadValue(message, suggest(name, names, "stations"), key_path)
                if sender in receivers:
                    message = f"{sender} is listed as a receiver of itself"
                    raise BadValue(message, f"remove {sender}", f"reach.{key}.{sender}")

    def to_plan(self, names: list[str]) -> ReachPlan:
        """Return the plan as matrices: one row per sender and one column per receiver.

        Args:
            names: The names of all stations, in the order of rows and columns.
        """

        def make_matrix(*lists: dict[str, list[str]]) -> list[list[bool]]:
            return [
                [
                    any(receiver in receivers.get(sender, ()) for receivers in lists)
                    for receiver in names
                ]
                for sender in names
            ]

        return MatrixReach(
            decodes=make_matrix(self.decodes),
            senses=make_matrix(self.decodes, self.senses),
            interferes=make_matrix(self.decodes, self.interferes),
        )


Reach = Annotated[Ranges | Sinr | Matrix, Field(discriminator="by")]


# Settings that links have but media do not: key -> (message, cure).
UNSUPPORTED_SETTINGS = {
    "shaped_by": ("a switch cannot shape a medium", "remove it"),
    "rate": ("a medium has the rate of its stations", "write `data_rate` instead"),
    "between": ("a medium joins any number of nodes", "write `stations: {NODE: {at: [X, Y]}}`"),
}


class Medium(Strict):
    """A shared medium: stations that contend for it by IEEE 802.11 DCF."""

    phy: PhyName = Field(
        description="the PHY of IEEE 802.11, which defines bit rates and durations"
    )
    preamble: Preamble | None = Field(None, description="preamble of 802.11b; long if not given")
    data_rate: Bitrate = Field(description="rate of data frames; one of the PHY's rates")
    basic_rate: Bitrate | None = Field(
        None,
        description="rate of RTS, CTS, ACK and broadcasts; one of the PHY's rates, the lowest if "
        "not given",
    )
    rts_threshold: RtsThreshold | None = Field(
        None,
        description="size of MPDUs above which RTS and CTS precede them; if not given, RTS and CTS "
        "are not used",
    )
    short_retry_limit: Whole = Field(
        7,
        ge=MIN_RETRY_LIMIT,
        le=MAX_RETRY_LIMIT,
        description="largest number of retries of frames without RTS, and of RTS",
    )
    long_retry_limit: Whole = Field(
        4,
        ge=MIN_RETRY_LIMIT,
        le=MAX_RETRY_LIMIT,
        description="largest number of retries of frames that follow RTS and CTS",
    )
    cw_min: ContentionWindow | None = Field(
        None, description="smallest contention window, 2^n - 1 slots; the PHY's if not given"
    )
    cw_max: ContentionWindow | None = Field(
        None, description="largest contention window, 2^n - 1 slots; the PHY's if not given"
    )
    queue: Queue = Field(
        DropTail(limit=make_packet_limit(50)), description="the queue of each station"
    )
    loss: Loss | None = Field(
        None, description="losses of frames in addition to collisions; none if not given"
    )
    resets_nav: Flag = Field(
        True,
        description="whether a station whose NAV was set by an RTS resets its NAV if no frame "
        "follows the RTS",
    )
    eifs_after: EifsAfter = Field(
        "frames",
        description="events after which stations wait EIFS; frames: frames received with errors; "
        "signals: also signals that were only sensed, as in ns-2",
    )
    monitor: Flag = Field(
        False, description="whether all frames on the air are captured in monitor.NAME.pcapng"
    )
    stations: dict[Name, Station] = Field(
        min_length=MIN_STATIONS,
        max_length=MAX_ENDS,
        description="node -> its station; the node must be a host or a router",
    )
    reach: Reach = Field(
        Ranges(),
        description="which stations receive each other; if not given, by distance, with the "
        "default ranges of ns-2",
    )
    routes: dict[Name, dict[Name, Name]] = Field(
        {},
        description="node -> destination -> next hop; if not given, shortest paths, computed from "
        "the positions at the start of the run",
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_link_settings(cls, value: object) -> object:
        for key in value if isinstance(value, dict) else ():
            if key in UNSUPPORTED_SETTINGS:
                message, cure = UNSUPPORTED_SETTINGS[key]
                raise BadValue(message, cure, key)
        return value

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        self._check_rates()
        self._check_windows()
        self._check_loss()
        self._check_reach()
        return self

    def _check_rates(self) -> None:
        """Check that the PHY has the medium's preamble and rates."""
        if self.preamble is not None and self.phy != "802.11b":
            message = f"{self.phy} has no {self.preamble} preamble"
            raise BadValue(message, "remove it, or write `phy: 802.11b`", "preamble")
        preamble = " with a short preamble" if self.preamble == "short" else ""
        rate_names = [str(Bitrate(rate)) for rate in self._rates]
        for key in ("data_rate", "basic_rate"):
            rate = getattr(self, key)
            if rate is not None and rate.value not in self._rates:
                message = f"{rate} is no rate of {self.phy}{preamble}"
                raise BadValue(message, f"one of: {', '.join(rate_names)}", key)
        if self.lowest_rate.value > self.data_rate.value:
            raise BadValue(
                f"a basic_rate of {self.lowest_rate} is more than a data_rate of {self.data_rate}",
                f"give {self.data_rate} or less",
                "basic_rate",
            )

    def _check_windows(self) -> None:
        """Check that contention windows are 2^n - 1, and that cw_min is not above cw_max."""
        for key in ("cw_min", "cw_max"):
            window = getattr(self, key)
            if window is not None and window & (window + 1):
                lower = (1 << window.bit_length() - 1) - 1
                cure = f"give {lower} or {2 * lower + 1}"
                raise BadValue(f"a contention window of {window} is no 2^n - 1", cure, key)
        cw_min, cw_max = self.windows
        if cw_min > cw_max:
            key = "cw_min" if self.cw_min is not None else "cw_max"
            message = f"a cw_min of {cw_min} is more than a cw_max of {cw_max}"
            cure = f"give {cw_max} or less" if key == "cw_min" else f"give {cw_min} or more"
            raise BadValue(message, cure, key)

    def _check_loss(self) -> None:
        if self.loss is not None and "at" in self.loss.model_fields_set:
            message = "the loss model of a medium always acts at the receivers of frames"
            raise BadValue(message, "remove `at`", "loss.at")

    def _check_reach(self) -> None:
        """Check that stations have positions if, and only if, the reach model uses positions."""
        if isinstance(self.reach, Matrix):
            self.reach.check_stations(self.stations)
            for name, station in self.stations.items():
                for key in ("at", "trace"):
                    if getattr(station, key):
                        message = "a medium with a reach matrix does not use positions"
                        cure = f"remove `{key}`, or the matrix"
                        raise BadValue(message, cure, f"stations.{name}.{key}")
            return
        for name, station in self.stations.items():
            if station.at is None:
                raise BadValue(
                    f"{name} has no position, but reach is by {self.reach.by}",
                    "add `at: [0 m, 0 m]`, or give `reach: {by: matrix, ...}`",
                    f"stations.{name}",
                )

    @property
    def _phy(self) -> Phy:
        return load_phys()[self.phy]

    @property
    def _rates(self) -> list[int]:
        """The rates of the PHY in bit/s; a short preamble excludes 1 Mb/s."""
        rates = self._phy.rates_bps
        return [rate for rate in rates if rate > 10**6] if self.preamble == "short" else rates

    @property
    def lowest_rate(self) -> Bitrate:
        """The rate of RTS, CTS, ACK and broadcasts."""
        return self.basic_rate or Bitrate(self._rates[0])

    @property
    def windows(self) -> tuple[int, int]:
        """The smallest and the largest contention window."""
        return (
            self._phy.cw_min if self.cw_min is None else self.cw_min,
            self._phy.cw_max if self.cw_max is None else self.cw_max,
        )

    @property
    def marks(self) -> bool:
        """True if the medium's stations mark packets that support ECN."""
        return self.queue.marks

    def to_timing(self) -> dict[str, Any]:
        """Return field -> value, for the fields of nagi_contracts.media.MediumTimes."""
        return {
            "phy": self.phy,
            "preamble": (self.preamble or "long") if self.phy == "802.11b" else None,
            "data_rate_bps": self.data_rate.value,
            "basic_rate_bps": self.lowest_rate.value,
            "rts_threshold_bytes": self.rts_threshold.value if self.rts_threshold else None,
        }


part = Keys(
    sections={
        "media": SectionKey(
            Medium,
            noun="medium",
            description="name -> medium that nodes share: wireless, by IEEE 802.11",
        )
    },
    union_tags={"by": "reach model"},
)
