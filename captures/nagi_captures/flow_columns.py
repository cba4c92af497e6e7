# SPDX-License-Identifier: Apache-2.0
"""The columns of a table of connections.

captures/native/flows.hpp defines how packets are classified, captures/native/tracking.hpp where a
connection begins and ends. Data packets, unique bytes, retransmissions, duplicate ACKs, zero
windows and RTT samples are those of tcptrace and tshark where these agree; tests/test_tools.py
documents where they do not.
"""

from __future__ import annotations

_RTT = {
    "count": "samples",
    "min": "smallest, ns",
    "mean": "mean, ns",
    "median": "median, ns (within 1 %, as the percentiles)",
    "p95": "95th percentile, ns",
    "p99": "99th percentile, ns",
    "max": "largest, ns",
}

# One row per direction of a connection: row 2 x connection + direction, even if one direction has
# no packet. Direction 0 is the direction of the SYN or, if no SYN was captured, of the first
# packet. All UDP packets between two pairs of address and port are a connection as well. Their TCP
# columns are 0 or missing, and every payload byte counts as delivered for the first time.
FLOW_COLUMNS: dict[str, str] = {
    "connection": "number, from 0 in the order of their first packets",
    "direction": "0 or 1",
    "protocol": "tcp or udp (text)",
    "source": "address (text)",
    "source_port": "",
    "destination": "address (text)",
    "destination_port": "",
    "first_ns": "time of the first packet; 0 without one",
    "last_ns": "time of the last packet; 0 without one",
    "first_data_ns": "time of the first packet with payload; 0 without one",
    "last_data_ns": "time of the last packet with payload that had not been acknowledged before; 0 "
    "without one",
    "ip_bytes_to_data": "bytes of IP packets until last_data_ns, headers included",
    "uncaptured_bytes": "payload bytes that the other side acknowledged, but that are in no "
    "captured packet",
    "packets": "all packets",
    "ip_bytes": "bytes of IP packets, headers included",
    "payload_bytes": "bytes of TCP or UDP payload, with repeated bytes, without those of "
    "keep-alives, window probes and RSTs",
    "data_packets": "packets with payload that counts in payload_bytes",
    "first_time_bytes": "payload bytes that are in no earlier captured packet of this direction",
    "retransmitted_packets": "packets with payload of which at least one byte had been captured "
    "before, without keep-alives and window probes",
    "retransmitted_bytes": "payload bytes of retransmitted packets that had been captured before",
    "out_of_order_packets": "packets with payload that begins below the highest byte captured so "
    "far, and of which no byte had been captured: reordered (RFC 4737), or retransmitted after a "
    "loss before the capture point",
    "packets_inside": "packets with start_ns <= time < end_ns; each of the following columns with "
    "_inside is the column of the same name without _inside for such packets only",
    "ip_bytes_inside": "",
    "payload_bytes_inside": "",
    "data_packets_inside": "",
    "first_time_bytes_inside": "",
    "retransmitted_packets_inside": "",
    "retransmitted_bytes_inside": "",
    "out_of_order_packets_inside": "",
    "duplicate_acks": "packets without payload, SYN and FIN that repeat the highest "
    "acknowledgement and the window, while data of the other direction is outstanding (RFC 5681 "
    "section 2)",
    "sack_packets": "packets with SACK blocks",
    "sack_blocks": "SACK blocks (RFC 2018), DSACK included",
    "keep_alives": "packets with 0 or 1 bytes whose number is one below the next number to send, "
    "while all data is acknowledged (RFC 9293 section 3.8.4)",
    "zero_window_packets": "packets that advertise a window of 0, without RST",
    "window_probes": "packets, while the other side's window is 0, with 1 byte at the next number "
    "to send, or with 0 or 1 bytes whose number is one below (RFC 9293 section 3.8.6.1). A byte at "
    "the next number counts as data when it is acknowledged",
    "captured_twice": "copies of captured packets, from another capture point or from frames that "
    "the link layer sent again; no other column counts them. A copy has the same IP and TCP fields "
    "as a packet at most 4 s before it if the sender increments identifications or the copy has "
    "fewer hops left; otherwise at most 0.2 s before it if it is a SYN or its frame has a mark "
    "(802.11: Retry), or at most 0.1 ms if it has payload",
    "mss": "option of the SYN, bytes; -1 if not captured",
    "window_scale": "option of the SYN, bits; -1 if not captured",
    "sack_permitted": "option of the SYN (bool)",
    "timestamps": "whether any packet has the timestamps option (bool)",
    "syn_packets": "",
    "fin_packets": "",
    "rst_packets": "",
    "complete_handshake": "whether SYN, SYN-ACK and its ACK were captured (bool, same in both "
    "rows)",
    "handshake_rtt_ns": "time from SYN to the ACK of the SYN-ACK (same in both rows); NaN if one "
    "of the three was not captured, or SYN or SYN-ACK was repeated before it was answered",
    "captured_at": "estimated point of capture on this direction's path (text): source, between, "
    "destination; empty if not known",
    **{f"rtt_sequence_{name}_ns".replace("count_ns", "count"): text for name, text in _RTT.items()},
    **{
        f"rtt_timestamps_{name}_ns".replace("count_ns", "count"): text
        for name, text in _RTT.items()
    },
    "in_flight_mean_bytes": "bytes sent and not acknowledged, after each data packet: mean",
    "in_flight_max_bytes": "bytes sent and not acknowledged: maximum",
    "window_min_bytes": "smallest window that this side advertised (scaled, without SYN and RST); "
    "not known without the SYNs, which contain the scale",
    "window_mean_bytes": "mean of the window over packets",
    "window_max_bytes": "largest window",
}
# rtt_*, in_flight_* and window_* are over packets with start_ns <= time < end_ns (for the RTT, the
# packet that acknowledges). They are float64, NaN without samples; rtt_*_count are int64.
#
# rtt_sequence: the time from a segment to the first acknowledgement of its last byte. Each
# acknowledgement gives one sample, of the newest segment that it covers. There is no sample of a
# retransmitted segment, and of a segment with higher numbers that was sent before the
# retransmission, because its acknowledgement waited for the retransmission (Karn's rule).
# rtt_timestamps: the time from the lowest segment with a TSval to the first packet that echoes the
# TSval and acknowledges the segment. Each TSval gives one sample (RFC 7323 section 4.1), or none if
# bytes were sent twice with the same TSval.
# Both RTTs are from the capture point to the receiver of this direction's data and back. Both are
# unknown for a connection with copies of packets more than 1 ms apart, because these packets were
# captured at several points.
#
# captured_at: estimated from the round-trip times from the capture point to the two ends. Each of
# these is the smaller one of the time in the handshake (SYN to SYN-ACK, SYN-ACK to ACK) and the
# smallest RTT by sequence. The estimate is `source` if the time to the source is at most a tenth of
# the sum of both times, and `destination` if the time to the destination is. It is unknown if one
# of the times is unknown, or if their sum is less than 0.2 ms.
