# SPDX-License-Identifier: Apache-2.0
"""What impairments of a direction are told when they are planned."""

from __future__ import annotations

from typing import NoReturn

from nagi_contracts.bounds import get_integer_range
from nagi_contracts.calibration import CalibratedMode
from nagi_contracts.impairments.losses.trace import TraceLossPlan
from nagi_contracts.impairments.planning import RecordedOutcomes
from nagi_contracts.impairments.snr import SnrSteps, SnrTraceFile, SnrTracePlan
from nagi_contracts.plan import DirectionPlan
from nagi_contracts.units import BdpCount, Bitrate, ByteCount, Duration, PacketCount, QueueSize

from nagi.plan.calibrations import calibrated_mode
from nagi.plan.request import PlanRequest
from nagi.plan.trace_files import named_file, trace_file
from nagi.spec.recorded_outcomes import is_parquet, read_outcomes
from nagi.spec.yaml_source import Place


class ImpairmentPlanning:
    """Of the impairment `key` of a direction of a link or of a medium, at `place` in the file; see
    nagi_contracts.impairments.planning. `traffic_s`: when traffic begins; `packet` and
    `base_rtt_ns` are of the flows that cross."""

    def __init__(
        self,
        request: PlanRequest,
        place: Place,
        key: str,
        channel: DirectionPlan,
        traffic_s: float,
        packet: int | None,
        base_rtt_ns: int | None = None,
    ) -> None:
        self._request = request
        self._key = key
        self._place = place
        self._channel = channel
        self._traffic_ns = round(traffic_s * 1e9)
        self._packet = packet
        self._base_rtt_ns = base_rtt_ns

    @property
    def constant_rate_bps(self) -> int | None:
        return None if self.changes_rate else self._channel.rate_bps

    @property
    def changes_rate(self) -> str | None:
        if self._channel.rate_trace is not None:
            return "rate_trace"
        return None if self._channel.burst_bytes is None else "burst"

    @property
    def packet_bytes(self) -> int | None:
        return self._packet

    def refuse(self, what: str, cure: str) -> NoReturn:
        raise self._request.error(self._place, what, cure)

    def read_losses(self, file: str) -> tuple[list[int], int]:
        trace = trace_file(self._request, self._place, file, "loss")
        assert isinstance(trace, TraceLossPlan)
        return trace.lost, trace.length

    def read_outcomes(
        self, file: str, link: str | None, direction: str | None
    ) -> RecordedOutcomes | None:
        path = named_file(self._request, self._place, file)
        if not is_parquet(path):
            return None
        return read_outcomes(path, link, direction).shift_to(self._traffic_ns)

    def read_calibrated_mode(
        self, table: str, modem: str | None, modulation: str | None, code_rate: str | None
    ) -> CalibratedMode:
        if self._place[0] == "media":
            self.refuse(
                "a radio's table on a medium: it is of one link's channel",
                "give another loss model",
            )
        return calibrated_mode(
            self._request,
            self._place,
            table,
            modem=modem,
            modulation=modulation,
            code_rate=code_rate,
        )

    def plan_snr_trace(self, trace: SnrTraceFile | SnrSteps) -> SnrTracePlan:
        if isinstance(trace, SnrTraceFile):
            place = (*self._place, "snr_trace")
            found = trace_file(self._request, place, trace.file, trace.format, "snr")
            assert isinstance(found, SnrTracePlan)
            return found
        return trace.to_plan()

    def resolve_size(self, size: QueueSize) -> tuple[int | None, int | None]:
        rate = self._request.rate_bps(self._channel)
        if rate is None:
            self.refuse(f"`{self._key}` on a link without a rate", "give the link a rate")
        limit = size.limit
        if isinstance(limit, PacketCount):
            return limit.value, None
        if isinstance(limit, ByteCount):
            return None, limit.value
        assert isinstance(limit, BdpCount)
        return self._packets(limit, rate), None

    def _packets(self, limit: BdpCount, rate: int) -> int:
        if not self._base_rtt_ns or self._packet is None:
            why = "no flow crosses this link" if self._packet is None else "the path has no delay"
            what = f"`{self._key}` in bandwidth-delay products, but {why}"
            self.refuse(what, "give it in packets, like '20 packets'")
        rtt, packet = Duration(self._base_rtt_ns), ByteCount(self._packet)
        packets = limit.packets(Bitrate(rate), rtt, packet)
        _, maximum = get_integer_range(
            "queue_packets" if self._key == "queue" else "mark_threshold_packets"
        )
        if packets > maximum:
            what = f"{limit} at {Bitrate(rate)} and {rtt} is {packets} packets of {packet}"
            self.refuse(what, f"give less: at most {maximum} packets")
        return packets
