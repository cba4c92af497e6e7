# SPDX-License-Identifier: Apache-2.0
"""Provide the values on which plans of impairments depend: rate, packet size, files, errors."""

from __future__ import annotations

from typing import NoReturn

from nagi_contracts.bounds import get_integer_range
from nagi_contracts.calibration import CalibratedMode
from nagi_contracts.impairments.losses.trace import TraceLossPlan
from nagi_contracts.impairments.planning import RecordedOutcomes
from nagi_contracts.impairments.snr import SnrSteps, SnrTraceFile, SnrTracePlan
from nagi_contracts.plan import DirectionPlan
from nagi_contracts.units import BdpCount, Bitrate, ByteCount, Duration, PacketCount, QueueSize

from nagi.plan.calibrations import find_calibrated_mode
from nagi.plan.request import PlanRequest
from nagi.plan.trace_files import find_file, load_trace
from nagi.spec.recorded_outcomes import is_parquet, read_outcomes
from nagi.spec.yaml_source import KeyPath


class ImpairmentPlanning:
    """The values on which the plan of one impairment of a direction or medium depends.

    Implements nagi_contracts.impairments.planning.Planning.

    Args:
        request: The point that is planned.
        key_path: Key path of the impairment in the experiment file.
        key: Key of the impairment, such as `loss`.
        channel: A plan of the direction, of which only rate and delay are used.
        traffic_s: Start of the traffic, in seconds since the start of the run.
        packet: IP bytes of the largest packet of the flows that cross the link or medium; None if
            no flow does.
        base_rtt_ns: The longest RTT of these flows with empty queues; None without flows, and sizes
            in bandwidth-delay products are then errors.
    """

    def __init__(
        self,
        request: PlanRequest,
        key_path: KeyPath,
        key: str,
        channel: DirectionPlan,
        traffic_s: float,
        packet: int | None,
        base_rtt_ns: int | None = None,
    ) -> None:
        self._request = request
        self._key = key
        self._key_path = key_path
        self._channel = channel
        self._traffic_ns = round(traffic_s * 1e9)
        self._packet = packet
        self._base_rtt_ns = base_rtt_ns

    @property
    def constant_rate_bps(self) -> int | None:
        """The rate in bit/s; None if there is no limit, or if the rate changes."""
        return None if self.rate_changing_key else self._channel.rate_bps

    @property
    def rate_changing_key(self) -> str | None:
        """The setting that makes the rate change: rate_trace or burst; None if it is constant."""
        if self._channel.rate_trace is not None:
            return "rate_trace"
        return None if self._channel.burst_bytes is None else "burst"

    @property
    def packet_bytes(self) -> int | None:
        """IP bytes of the largest packet of the flows on the link or medium; None without flows."""
        return self._packet

    def refuse(self, message: str, cure: str) -> NoReturn:
        """Raise InputError with the line and key path of the impairment in the file."""
        raise self._request.error(self._key_path, message, cure)

    def read_losses(self, file: str) -> tuple[list[int], int]:
        """Read a loss trace. Return the indices of lost packets, and the number of all packets."""
        trace = load_trace(self._request, self._key_path, file, "loss")
        assert isinstance(trace, TraceLossPlan)
        return trace.lost, trace.length

    def read_outcomes(
        self, file: str, link: str | None, direction: str | None
    ) -> RecordedOutcomes | None:
        """Read the outcomes of an earlier run's transmissions from transmissions.parquet.

        Their times are shifted so that the traffic of the earlier run begins with the traffic of
        this run. Return None if `file` is not in Parquet's format.
        """
        path = find_file(self._request, self._key_path, file)
        if not is_parquet(path):
            return None
        return read_outcomes(path, link, direction).shift_to(self._traffic_ns)

    def read_calibrated_mode(
        self, table: str, modem: str | None, modulation: str | None, code_rate: str | None
    ) -> CalibratedMode:
        """Return a mode of a calibration table; see find_calibrated_mode."""
        if self._key_path[0] == "media":
            self.refuse(
                "loss model sdr on a medium: a radio's table describes the channel of one link",
                "give another loss model",
            )
        return find_calibrated_mode(
            self._request,
            self._key_path,
            table,
            modem=modem,
            modulation=modulation,
            code_rate=code_rate,
        )

    def plan_snr_trace(self, trace: SnrTraceFile | SnrSteps) -> SnrTracePlan:
        """Return the plan of an SNR trace, from a file or from steps."""
        if isinstance(trace, SnrTraceFile):
            key_path = (*self._key_path, "snr_trace")
            snr_plan = load_trace(self._request, key_path, trace.file, trace.format, "snr")
            assert isinstance(snr_plan, SnrTracePlan)
            return snr_plan
        return trace.to_plan()

    def resolve_size(self, size: QueueSize) -> tuple[int | None, int | None]:
        """Return the size of a queue, or a threshold, as (packets, None) or (None, bytes).

        A multiple of the bandwidth-delay product is converted to packets.
        """
        rate = self._request.get_mean_rate_bps(self._channel)
        if rate is None:
            self.refuse(f"`{self._key}` on a link without a rate", "give the link a rate")
        limit = size.limit
        if isinstance(limit, PacketCount):
            return limit.value, None
        if isinstance(limit, ByteCount):
            return None, limit.value
        assert isinstance(limit, BdpCount)
        return self._convert_to_packets(limit, rate), None

    def _convert_to_packets(self, limit: BdpCount, rate: int) -> int:
        """Convert a size in bandwidth-delay products to packets; `rate` is in bit/s."""
        if not self._base_rtt_ns or self._packet is None:
            reason = (
                "no flow crosses this link" if self._packet is None else "the path has no delay"
            )
            message = f"`{self._key}` in bandwidth-delay products, but {reason}"
            self.refuse(message, "give it in packets, like '20 packets'")
        rtt, packet = Duration(self._base_rtt_ns), ByteCount(self._packet)
        packets = limit.packets(Bitrate(rate), rtt, packet)
        _, maximum = get_integer_range(
            "queue_packets" if self._key == "queue" else "mark_threshold_packets"
        )
        if packets > maximum:
            message = f"{limit} at {Bitrate(rate)} and {rtt} is {packets} packets of {packet}"
            self.refuse(message, f"give less: at most {maximum} packets")
        return packets
